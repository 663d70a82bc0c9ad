r"""Joint discriminants: whether ``K`` of them exist that separate all classes.

Wanted are ``f_k(x) = w_k·φ(x) + b_k`` with ``f_c(x_i) > f_k(x_i)`` for every sample ``i``, its class ``c``
and every rival ``k``. Kesler's construction makes one vector of each such pair, ``(e_c − e_k) ⊗ (φ(x_i),
s)``: the discriminants are one weight vector that has a positive inner product with all of them, and exist
exactly if 0 is no convex combination of the vectors. The shortest vector of their hull (``_min_norm``) is
such a weight vector, or 0.

The constant ``s`` is the largest ``‖φ(x)‖``; it carries the intercepts. As with two hulls, exact solutions on
some pairs alternate with scans of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers._min_norm import Atoms, MinNorm, Products, Vectors
from separatrix.solvers.hulls import LinearRows, Similarities

#: Most entries of explicit vectors in a working set.
_EXPLICIT = 1 << 23


class JointHull:
    """One search for joint discriminants, round by round, driven by the loop.

    Parameters
    ----------
    matrix : Similarities
        Kernel values between samples, as in `hulls.NearestPoints`.
    classes : ndarray of int of shape (n,)
        Class of each sample, each class from 0 on having some.
    zero : float
        Length of a convex combination, relative to the largest vector, that counts as 0.

    Attributes
    ----------
    tau : ndarray of shape (n, K)
        Coefficients: ``w_k = Σ_i tau_ik φ(x_i)`` and ``b_k = s² Σ_i tau_ik``.
    weights : ndarray of shape (n, K)
        The convex combination: a weight for each sample and rival.
    least : float
        Smallest ``f_c(x_i) − f_k(x_i)``.
    length : float
        Length of the combination, relative to the largest vector.
    """

    def __init__(self, matrix: Similarities, classes: Array, *, zero: float) -> None:
        self.matrix, self.classes, self.zero = matrix, classes.astype(np.intp), zero
        self.n, self.K = len(classes), int(classes.max()) + 1
        self.constant = float(max(matrix.diag.max(), 0.0)) or 1.0
        self.extent = 2 * float(np.sqrt(self.constant))
        self.every = np.arange(self.n)
        self.weights = np.zeros((self.n, self.K))
        self.weights[0, (self.classes[0] + 1) % self.K] = 1.0
        self._measure()

    def _measure(self) -> None:
        self.tau = -self.weights
        self.tau[self.every, self.classes] = self.weights.sum(axis=1)
        used = np.flatnonzero(self.weights.any(axis=1))
        self.intercept = self.constant * self.tau.sum(axis=0)
        self.scores = self.matrix.product(used, self.tau[used]) + self.intercept
        self.margins = self.scores[self.every, self.classes][:, None] - self.scores
        self.square = max(0.0, float((self.weights[used] * self.margins[used]).sum()))
        self.length = float(np.sqrt(self.square)) / self.extent
        self.margins[self.every, self.classes] = np.inf
        self.least = float(self.margins.min())

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each round; its measure is what part of the length is not proven."""
        width = 100
        while not control.expired():
            before = self.square
            working = self._working(width)
            with single_threaded(np.inf):
                self._round(*working, control)
            stuck = not self.square < before * (1 - 1e-12)
            width = 3 * width if stuck else width
            finished = None
            if self.length <= self.zero:
                finished = "inseparable"
            elif stuck and len(working[0]) == self.n * (self.K - 1):
                finished = "converged"
            record = {"length": self.length, "least_margin": self.least, "working_set": len(working[0])}
            yield Step(record, 1.0 - self.least / self.square if self.square > 0 else 0.0, finished)

    def _working(self, width: int) -> tuple[Array, Array]:
        """Return the pairs in use and those with the lowest margins."""
        used = self.weights > 0
        count = max(width, int(np.count_nonzero(used)))
        order = np.where(used, np.inf, self.margins).ravel()
        low = np.argpartition(order, count)[:count] if count < order.size else np.arange(order.size)
        chosen = used.ravel()
        chosen[low[np.isfinite(order[low])]] = True
        return np.divmod(np.flatnonzero(chosen), self.K)

    def _round(self, sample: Array, rival: Array, control: Control) -> None:
        signs = np.eye(self.K)[self.classes[sample]] - np.eye(self.K)[rival]
        rows, place = np.unique(sample, return_inverse=True)
        matrix = self.matrix
        atoms: Atoms
        if isinstance(matrix, LinearRows) and len(sample) * self.K * (matrix.view.shape[1] + 1) <= _EXPLICIT:
            x = np.column_stack([matrix.points(rows), np.full(len(rows), np.sqrt(self.constant))])[place]
            atoms = Vectors((signs[:, :, None] * x[:, None, :]).reshape(len(sample), -1))
        else:
            block: Any = np.asarray(self.matrix.block(rows, rows), dtype=np.float64) + self.constant
            atoms = Products((signs @ signs.T) * block[np.ix_(place, place)])
        one = np.zeros(len(sample), dtype=np.intp)
        solver = MinNorm(atoms, one, tol=0.01, zero=0.1 * self.zero * self.extent)
        a = self.weights[sample, rival]
        start = np.flatnonzero(a)
        found, weights = solver.solve(start, a[start], control)
        kept, square = self.weights, self.square
        self.weights = np.zeros_like(kept)
        self.weights[sample[found], rival[found]] = weights / weights.sum()
        self._measure()
        if not self.square < square:
            self.weights = kept
            self._measure()
