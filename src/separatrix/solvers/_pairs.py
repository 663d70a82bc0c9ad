"""Margins of training samples against their rivals, as rows of a homogeneous linear system.

A sample of class ``c`` has one margin per rival: for a binary column ``y (w·x + b)``, for a joint problem
``(w_c − w_k)·x + b_c − b_k`` for each ``k ≠ c``. Each is linear in the parameters, ``a·z`` with one row ``a``
per *pair* of sample and rival, so questions of separation are questions about the cone ``A z ≥ 0``.

The rows are written in scaled coordinates: each feature divided by its largest size, and shifted first where
all its values are far from 0 (possible only with an intercept, which takes up the shift). The last class of a
joint problem has all parameters 0: only differences of classes matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.problem import Problem
from separatrix.solvers._judge import _parts

#: Rounding error of a double.
EPS = float(np.finfo(np.float64).eps)
#: Margins down to ``−ZERO u`` times their size count as 0, ``u`` the rounding error of a score.
ZERO = 4.0
#: How far above that a margin must be to count as positive where others are 0.
CLEAR = 1000.0

Direction = tuple[Array, Array]
"""Weights of shape (columns, d) and intercepts of shape (columns,)."""

Pairs = tuple[Array, Array]
"""Numbers of the samples and of the rival classes (0 for a binary column)."""


@dataclass(frozen=True, eq=False)
class Unit:
    """What is decided at once: one binary column of a problem, or all columns of a joint one.

    Attributes
    ----------
    problem : Problem
        The samples and what they mean.
    column : int or None
        The column; None for a joint problem.
    """

    problem: Problem
    column: int | None = None

    @property
    def rivals(self) -> int:
        """Margins per sample: 1 for a column; for a joint problem one per class, its own left out."""
        return self.problem.columns if self.column is None else 1

    @property
    def blocks(self) -> int:
        """Number of free weight vectors."""
        return max(1, self.rivals - 1)

    @property
    def dimension(self) -> int:
        """Number of free parameters."""
        return self.blocks * (self.problem.view.shape[1] + self.problem.fit_intercept)

    @property
    def pairs(self) -> int:
        """Number of pairs of a sample and a rival, samples without weight counted."""
        return self.problem.view.shape[0] * self.blocks

    def normalised(self, coef: Array, intercept: Array) -> Direction | None:
        """Return the direction with ``‖coef‖ = 1``, columns of a joint problem centred; None if it is 0.

        Without any weights the intercepts have length 1.
        """
        W = np.array(coef, dtype=np.float64).reshape(self.rivals, -1)
        b = np.array(intercept, dtype=np.float64).reshape(-1)
        b = np.resize(b, self.rivals) if self.problem.fit_intercept else np.zeros(self.rivals)
        if not (np.isfinite(W).all() and np.isfinite(b).all()):
            return None
        if self.column is None:
            W -= W.mean(axis=0)
            b -= b.mean()
        largest, constant = float(np.abs(W).max(initial=0.0)), float(np.abs(b).max())
        if largest <= 1e-200 * constant:
            W[:] = 0.0
        if max(largest, constant) == 0.0:
            return None
        W, b = W / max(largest, constant), b / max(largest, constant)
        length = float(np.linalg.norm(W)) or float(np.linalg.norm(b))
        return W / length, b / length

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows; the products of a loop over them run in one thread."""
        with single_threaded(self.problem.view.shape[0] * self.dimension):
            yield from _parts(self.problem)

    def counted(self, rows: slice | Array) -> Array:
        """Return, of shape (rows, rivals), which pairs of these samples exist."""
        classes = self.problem.classes[rows]
        if self.column is None:
            pairs = np.arange(self.rivals) != classes[:, None]
        else:
            pairs = self.problem.codes[classes, self.column][:, None] != 0
        if self.problem.weights is not None:
            pairs &= self.problem.weights[rows][:, None] > 0
        return np.asarray(pairs)

    def margins(self, rows: slice, block: Any, direction: Direction) -> Array:
        """Return the margins of a block's rows, of shape (rows, rivals); ``inf`` where there is no pair."""
        W, b = direction
        scores = np.asarray(block @ W.T) + b
        classes = self.problem.classes[rows]
        if self.column is None:
            m = scores[np.arange(len(classes)), classes][:, None] - scores
        else:
            m = self.problem.codes[classes, self.column][:, None] * scores
        m[~self.counted(rows)] = np.inf
        return np.asarray(m)

    def sizes(self, classes: Array, block: Any, direction: Direction) -> Array:
        """Return ``Σ_j |w_j x_j| + |b|`` of the margins: what their rounding errors scale with."""
        W, b = direction
        sizes = np.asarray(abs(block) @ np.abs(W).T) + np.abs(b)
        if self.column is None:
            sizes = sizes + sizes[np.arange(len(classes)), classes][:, None]
        return np.asarray(sizes)


def units(problem: Problem) -> tuple[Unit, ...]:
    """Return what is decided at once: the columns one by one, or all of a joint problem together."""
    return (Unit(problem),) if problem.joint else tuple(Unit(problem, j) for j in range(problem.columns))


def rounding(block: Any) -> float:
    """Return ``u``: a computed score of a row differs from the exact one by at most ``u`` times its size."""
    terms = int(np.diff(block.indptr).max(initial=0)) if hasattr(block, "indptr") else block.shape[1]
    return (terms + 2) * EPS


def tolerance(block: Any) -> float:
    """Return how far below 0, relative to its size, a margin may be that counts as 0."""
    return ZERO * rounding(block)


@dataclass(frozen=True, eq=False)
class Scale:
    """Feature ``j`` becomes ``(x_j − centre_j) / width_j``, within −1 … 1."""

    centre: Array
    width: Array

    @classmethod
    def of(cls, problem: Problem) -> Scale:
        """Read the ranges of all features in one pass."""
        d = problem.view.shape[1]
        low, high = np.full(d, np.inf), np.full(d, -np.inf)
        for rows, block in problem.view.blocks():
            if problem.weights is not None and not (problem.weights[rows] > 0).all():
                block = block[np.flatnonzero(problem.weights[rows] > 0)]
            if block.shape[0] == 0:
                continue
            least, most = block.min(axis=0), block.max(axis=0)
            if hasattr(least, "toarray"):
                least, most = least.toarray().ravel(), most.toarray().ravel()
            np.minimum(low, least, out=low)
            np.maximum(high, most, out=high)
        low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
        middle = low / 2 + high / 2
        # A shift costs accuracy at values near 0, so only features that have none are shifted.
        shifted = np.abs(middle) > 2 * (high / 2 - low / 2)
        if not problem.fit_intercept or hasattr(next(problem.view.blocks())[1], "indptr"):
            shifted[:] = False
        centre = np.where(shifted, middle, 0.0)
        width = np.maximum(high - centre, centre - low)
        return cls(centre, np.where(width > 0, width, 1.0))

    def inward(self, unit: Unit, direction: Direction) -> Array:
        """Return the direction in scaled coordinates, as one vector."""
        W, b = direction
        if unit.column is None:
            W, b = W[:-1] - W[-1], b[:-1] - b[-1]
        parts = W * self.width
        if unit.problem.fit_intercept:
            parts = np.column_stack([parts, b + W @ self.centre])
        return np.asarray(parts.ravel())

    def outward(self, unit: Unit, z: Array) -> Direction:
        """Return the weights and intercepts that the vector ``z`` of scaled coordinates means."""
        parts = z.reshape(unit.blocks, -1)
        d = self.width.shape[0]
        W = parts[:, :d] / self.width
        b = parts[:, d] - W @ self.centre if unit.problem.fit_intercept else np.zeros(unit.blocks)
        if unit.column is None:
            W, b = np.vstack([W, np.zeros(d)]), np.append(b, 0.0)
        return W, b

    def samples(self, problem: Problem, block: Any) -> Any:
        """Return rows ``(x, 1)`` of a block in scaled coordinates, the largest entry of each of size 1."""
        if hasattr(block, "indptr"):
            x = block.astype(np.float64) @ sparse.diags_array(1 / self.width)
            if problem.fit_intercept:
                x = sparse.hstack([x, np.ones((x.shape[0], 1))], format="csr")
            largest = abs(x).max(axis=1).toarray().ravel()
            return sparse.csr_array(sparse.diags_array(1 / np.where(largest > 0, largest, 1.0)) @ x)
        x = np.ones((block.shape[0], self.width.shape[0] + problem.fit_intercept))
        part = x[:, : self.width.shape[0]]
        np.subtract(block, self.centre, out=part)
        part /= self.width
        largest = np.abs(x).max(axis=1, initial=0.0)
        x /= np.where(largest > 0, largest, 1.0)[:, None]
        return x

    def rows(self, unit: Unit, pairs: Pairs) -> Any:
        """Return one row ``a`` per pair, its largest entry of size 1; CSR for sparse data or many classes."""
        samples, rivals = pairs
        classes = unit.problem.classes[samples]
        x = self.samples(unit.problem, unit.problem.view.take(samples))
        if unit.column is not None:
            y = unit.problem.codes[classes, unit.column].astype(np.float64)
            if isinstance(x, np.ndarray):
                return x * y[:, None]
            return sparse.csr_array(sparse.diags_array(y) @ x)
        if isinstance(x, np.ndarray) and unit.blocks <= 2:
            a = np.zeros((len(samples), unit.blocks, x.shape[1]))
            for block_of, sign in ((classes, 1.0), (rivals, -1.0)):
                free = np.flatnonzero(block_of < unit.blocks)
                a[free, block_of[free]] += sign * x[free]
            return a.reshape(len(samples), -1)
        entries, width = sparse.coo_array(x), x.shape[1]
        i, j, v = entries.row, entries.col, entries.data
        parts = []
        for block_of, sign in ((classes.astype(np.intp), 1.0), (rivals, -1.0)):
            free = block_of[i] < unit.blocks
            parts.append((i[free], j[free] + width * block_of[i[free]], sign * v[free]))
        i, j, v = (np.concatenate([part[n] for part in parts]) for n in range(3))
        return sparse.csr_array((v, (i, j)), shape=(len(samples), unit.dimension))

    def total(self, unit: Unit, flat: Direction | None = None) -> Array:
        """Return the sum of the rows ``a`` of all pairs, or of those with no margin along ``flat``."""
        out = np.zeros((unit.blocks, unit.dimension // unit.blocks))
        for rows, block in unit.parts():
            counted, classes = unit.counted(rows), unit.problem.classes[rows]
            if flat is not None:
                bounds = CLEAR * tolerance(block) * unit.sizes(classes, block, flat)
                counted &= unit.margins(rows, block, flat) <= bounds
            if unit.column is not None:
                factors = counted * unit.problem.codes[classes, unit.column][:, None].astype(np.float64)
            else:
                factors = -counted.astype(np.float64)
                factors[np.arange(len(classes)), classes] = counted.sum(axis=1)
            out += (self.samples(unit.problem, block).T @ factors[:, : unit.blocks]).T
        return np.asarray(out.ravel())
