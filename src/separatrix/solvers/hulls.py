r"""Nearest points of two convex hulls: the widest margin between two classes, or that they meet.

In a kernel's feature space, for samples ``i`` of a first and ``j`` of a second class,

    min over a, b:  ‖Σ_i a_i φ(x_i) − Σ_j b_j φ(x_j)‖   subject to  a, b ≥ 0,  Σ a = Σ b = 1.

With ``w`` the difference of the two points, the hyperplane across its middle has the widest margin, and
``‖w‖`` is its width: the hard-margin SVM has the weights ``2 w/‖w‖²`` and ``α = 2 a/‖w‖²`` (Bennett and
Bredensteiner, 2000). Any ``w`` of this form proves

    (min_i w·φ(x_i) − max_j w·φ(x_j)) / ‖w‖  ≤  distance of the hulls  ≤  ‖w‖,

so that the distance is known from both sides at any time. Distance 0 means coinciding convex combinations.

The active-set method of ``_min_norm`` works on some samples; a scan of all samples then adds those that
violate optimality most. The objective falls with every round, so the method is finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from separatrix.data.threads import asking, single_threaded
from separatrix.data.view import Array, DataView
from separatrix.solvers._loop import Control, OutOfTimeError, Step
from separatrix.solvers._min_norm import Atoms, MinNorm, Products, Vectors

#: Entries of the samples (or of their kernel matrix) up to which all of them are worked on at once.
_ALL = 1 << 18
#: Most entries of explicit vectors that a working set may hold.
_EXPLICIT = 1 << 23
#: Samples whose mean gives the first direction.
_FIRST = 256


class Similarities(Protocol):
    """What is needed of a kernel matrix; `kernel_matrix.KernelMatrix` and `LinearRows` have it."""

    diag: Array

    def block(self, rows: Array, columns: Array) -> Array:
        """Return ``k(x_i, x_j)`` for the given samples."""

    def product(self, rows: Array, coef: Array, targets: Array | None = None) -> Array:
        """Return ``Σ_j k(x_t, x_j) coef[j]`` over the given rows, for the targets or for all samples."""


class LinearRows:
    """The linear kernel ``(x − m)·(z − m)`` of scaled features, without ever forming its matrix.

    Distances within hulls do not depend on ``m``, their rounding errors do.

    Parameters
    ----------
    view : DataView
        The samples.
    centre : ndarray of shape (d,) or None
        ``m``, in units of the data; None for no shift.
    width : ndarray of shape (d,) or None
        What each feature is divided by; None for 1.
    """

    def __init__(self, view: DataView, centre: Array | None = None, width: Array | None = None) -> None:
        d = view.shape[1]
        self.view, self.shape = view, (view.shape[0], view.shape[0])
        self.centre = np.zeros(d) if centre is None else centre
        self.width = np.ones(d) if width is None else width
        self.diag = np.empty(view.shape[0])
        for rows, block in view.blocks():
            if view.sparse:
                double = block.astype(np.float64)
                scaled = self.centre / self.width**2
                cross = double.power(2) @ (1 / self.width**2) - 2 * (double @ scaled)
                self.diag[rows] = np.maximum(cross + self.centre @ scaled, 0.0)
            else:
                self.diag[rows] = np.square((block - self.centre) / self.width).sum(axis=1)

    def points(self, rows: Array) -> Array:
        """Return samples as dense double vectors, moved and scaled."""
        block = self.view.take(rows)
        dense = np.asarray(block.toarray() if self.view.sparse else block, dtype=np.float64)
        return np.asarray((dense - self.centre) / self.width)

    def block(self, rows: Array, columns: Array) -> Array:
        """Return inner products."""
        if not self.view.sparse:
            return np.asarray(self.points(rows) @ self.points(columns).T)
        first, second = (self.view.take(part).astype(np.float64) for part in (rows, columns))
        scaled = self.centre / self.width**2
        cross = (first @ scaled)[:, None] + second @ scaled - float(self.centre @ scaled)
        first = first.multiply(1 / self.width**2).tocsr()
        return np.asarray((first @ second.T).toarray() - cross)

    def weights(self, rows: Array, coef: Array) -> Array:
        """Return ``Σ_i coef_i x_i`` of moved and scaled samples, for each column of coefficients."""
        if not self.view.sparse or len(rows) * self.view.shape[1] <= _EXPLICIT:
            return np.asarray(self.points(rows).T @ coef)
        sums = np.asarray(self.view.take(rows).astype(np.float64).T @ coef)
        shift = np.multiply.outer(self.centre, coef.sum(axis=0))
        return np.asarray(((sums - shift).T / self.width).T)

    def product(self, rows: Array, coef: Array, targets: Array | None = None) -> Array:
        """Return the scores of all samples (or of the targets) for these coefficients."""
        W = self.weights(rows, coef) / self.width[:, None]
        out = np.empty((self.view.shape[0], coef.shape[1]))
        for part, block in self.view.blocks():
            out[part] = block @ W - self.centre @ W if self.view.sparse else (block - self.centre) @ W
        return out if targets is None else out[targets]


@dataclass(frozen=True, eq=False)
class Nearest:
    """Where two hulls are nearest.

    Attributes
    ----------
    first, second : ndarray
        Weights of the samples of either hull, in the order of the given indices: not negative, of sum 1.
    lower, upper : float
        What the distance is between; ``lower`` is negative while no hyperplane separates.
    gradient : ndarray of shape (len(first) + len(second),)
        ``w·φ(x)`` of the samples of the first and ``−w·φ(x)`` of the second.
    square : float
        ``‖w‖²``.
    """

    first: Array
    second: Array
    lower: float
    upper: float
    gradient: Array
    square: float

    @property
    def threshold(self) -> float:
        """The value of ``w·φ(x)`` midway between the classes: the hyperplane is ``w·φ(x) = threshold``."""
        m = len(self.first)
        return float(self.gradient[:m].min() - self.gradient[m:].min()) / 2


class NearestPoints:
    """One search for nearest points, round by round, driven by the loop.

    Parameters
    ----------
    matrix : Similarities
        Kernel values between samples: ``block``, ``product`` and ``diag``. Of `LinearRows` the
        explicit vectors are used, which are accurate to the rounding error instead of its square root.
    first, second : ndarray of int
        Numbers of the samples of either class, of each one at least.
    tol : float
        Relative gap ``1 − lower/upper`` that the fit is meant to reach.
    zero : float
        Distance, relative to the largest ``‖φ(x)‖``, at which hulls count as meeting.
    start : ndarray of shape (len(first) + len(second),) or None
        Weights to start from, as from a nearby problem.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.solvers._loop import Below, run
    >>> rows = LinearRows(view_of(np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 1.0]])))
    >>> search = NearestPoints(rows, np.array([2]), np.array([0, 1]))
    >>> run(search, Below(1e-10), max_iter=100).status
    'converged'
    >>> search.nearest.upper, search.nearest.second.round(9).tolist()
    (3.0, [0.5, 0.5])
    """

    def __init__(
        self,
        matrix: Similarities,
        first: Array,
        second: Array,
        *,
        tol: float = 1e-10,
        zero: float | None = None,
        start: Array | None = None,
    ) -> None:
        if len(first) == 0 or len(second) == 0:
            raise ValueError("each of the two hulls needs one sample at least.")
        self.matrix = matrix
        self.index = np.concatenate([first, second]).astype(np.intp)
        self.groups = np.repeat([0, 1], [len(first), len(second)])
        self.signs = np.where(self.groups == 0, 1.0, -1.0)
        self.tol = tol
        self.extent = float(np.sqrt(max(float(matrix.diag[self.index].max()), 0.0))) or 1.0
        explicit = isinstance(matrix, LinearRows)
        self.zero = (1e-13 if explicit else 1e-7) if zero is None else zero
        self.a = np.zeros(len(self.index))
        if start is None:
            self._first_points()
        else:
            total = np.bincount(self.groups, np.maximum(start, 0.0), 2)
            if not np.all(total > 0):
                raise ValueError("the weights to start from must have a positive sum in each class.")
            self.a = np.maximum(start, 0.0) / total[self.groups]
        self._measure()

    def _first_points(self) -> None:
        """Start from the samples that are nearest to the other class along the line between the means."""
        mean = np.zeros(len(self.index))
        for k in (0, 1):
            members = np.flatnonzero(self.groups == k)
            some = members[:: max(1, len(members) // _FIRST)]
            mean[some] = 1.0 / len(some)
        gradient = self._gradient(mean)
        for k in (0, 1):
            members = np.flatnonzero(self.groups == k)
            self.a[members[int(np.argmin(gradient[members]))]] = 1.0

    def _gradient(self, a: Array) -> Array:
        used = np.flatnonzero(a)
        coef = (self.signs * a)[used]
        product = self.matrix.product(self.index[used], coef[:, None], self.index)
        return np.asarray(self.signs * product[:, 0])

    def _measure(self) -> None:
        """Compute gradient and bounds of the present weights anew."""
        used = np.flatnonzero(self.a)
        self.gradient = self._gradient(self.a)
        if isinstance(self.matrix, LinearRows):
            w = self.matrix.weights(self.index[used], (self.signs * self.a)[used])
            self.square = float(w @ w)
        else:
            self.square = max(0.0, float(self.a[used] @ self.gradient[used]))
        self.upper = float(np.sqrt(self.square))
        least = sum(float(self.gradient[self.groups == k].min()) for k in (0, 1))
        self.lower = least / self.upper if self.upper > 0 else 0.0

    @property
    def nearest(self) -> Nearest:
        """The nearest points found so far."""
        m = int(np.count_nonzero(self.groups == 0))
        return Nearest(
            self.a[:m].copy(), self.a[m:].copy(), self.lower, self.upper, self.gradient, self.square
        )

    @property
    def meets(self) -> bool:
        """Whether the hulls meet, up to the tolerance."""
        return self.upper <= self.zero * self.extent

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each round; its measure is the relative gap."""
        size = 0
        while True:
            if control.expired():
                return
            working = self._working(size)
            size = len(working)
            before = self.square
            with single_threaded(np.inf):  # many small products: threads would only wait for each other
                self._round(working, control)
            record = {"distance": self.upper, "lower_bound": self.lower, "working_set": size}
            gap = 1.0 - self.lower / self.upper if self.upper > 0 else 0.0
            finished = None
            if self.meets:
                finished = "inseparable"
            elif control.expired():
                finished = None  # that nothing has moved says nothing then
            elif not self.square < before and size == len(self.index):
                finished = "converged"  # nothing moves any more: the rest of the gap is rounding
            elif not self.square < before:
                size *= 4  # a set that is too small to move: look at more
            yield Step(record, gap, finished)

    def _working(self, size: int) -> Array:
        """Return the samples in use and those that violate optimality most."""
        n = len(self.index)
        d = self.matrix.view.shape[1] if isinstance(self.matrix, LinearRows) else n
        if n * min(d, n) <= _ALL:
            return np.arange(n)
        used = np.flatnonzero(self.a)
        each = max(60, 2 * len(used), size // 4)
        parts = [used]
        for k in (0, 1):
            members = np.flatnonzero((self.groups == k) & (self.a == 0))
            if len(members) > each:
                members = members[np.argpartition(self.gradient[members], each)[:each]]
            parts.append(members)
        return np.sort(np.concatenate(parts))

    def _round(self, working: Array, control: Control) -> None:
        """Solve exactly on the working set."""
        rows, signs = self.index[working], self.signs[working]
        atoms: Atoms
        if isinstance(self.matrix, LinearRows) and len(rows) * self.matrix.view.shape[1] <= _EXPLICIT:
            atoms = Vectors(self.matrix.points(rows) * signs[:, None])
        else:
            block: Any = np.asarray(self.matrix.block(rows, rows), dtype=np.float64)
            atoms = Products(block * signs[:, None] * signs)
        solver = MinNorm(atoms, self.groups[working], tol=0.1 * self.tol, zero=0.1 * self.zero * self.extent)
        used = np.flatnonzero(self.a[working])
        found, weights = solver.solve(used, self.a[working][used], control)
        old = self.a
        kept = (old, self.gradient, self.square, self.upper, self.lower)
        self.a = np.zeros_like(old)
        self.a[working[found]] = weights
        self.a /= np.bincount(self.groups, self.a, 2)[self.groups]
        try:
            with asking(control.ask):
                self._measure()
        except OutOfTimeError:
            self.square = np.inf  # what is not measured is not known to be better
        if not self.square < kept[2]:
            self.a, self.gradient, self.square, self.upper, self.lower = kept
