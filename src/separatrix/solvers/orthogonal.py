r"""Least squares by an orthogonal factorisation of the data.

The weighted, centred samples ``A = √s (x − μ)/D``, each column divided by its length ``D_j``, are
reduced block by block to a triangle ``R`` with ``AᵀA = RᵀR`` (TSQR: two triangles merge by the
factorisation of one above the other). The condition of the problem is not squared as in the normal
equations, so this route decides what the normal equations cannot see.

Rank: singular values of ``R`` below ``ε`` times the largest are zero, ``ε`` being what rounding the
data leaves behind. The solution of smallest norm in the *original* coordinates is found in two steps:
with ``R = U Σ V_rᵀ`` every solution satisfies ``V_rᵀ D w = Σ⁻¹Uᵀz``, and of these the shortest is
``w = Q L⁻¹Σ⁻¹Uᵀz`` where ``D V_r = Q Lᵀ``. That matrix has rows of very different length, so it is
factorised with its rows sorted and its columns pivoted, which is stable row by row (Cox and Higham,
1998).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import linalg

from separatrix.data.threads import one_thread_for, single_threaded, threads_allowed
from separatrix.data.view import Array
from separatrix.solvers._loop import Control, OutOfTimeError, Step
from separatrix.solvers.moments import class_moments
from separatrix.solvers.regression import LeastSquaresSolver, Regression, row_pieces

#: Largest number of entries of a matrix that is factorised without being reduced (wide data).
LARGEST_WIDE = 1 << 24
_EPS = float(np.finfo(np.float64).eps)
#: Cubes of rows of a square matrix whose singular vectors one processor finds in a second, for an estimate.
_SINGULAR_RATE = 4e9


class _Rows:
    """Rows of a tall matrix; they add up to a triangle with the same Gram matrix."""

    def __init__(self, parts: list[Array]) -> None:
        self.parts = parts

    def __add__(self, other: _Rows) -> _Rows:
        return _Rows([*self.parts, *other.parts])._reduced(4)

    def _reduced(self, factor: int) -> _Rows:
        rows, columns = sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]
        if len(self.parts) > 1 and rows <= factor * columns:
            return self
        stacked = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)
        if rows <= columns:
            return _Rows([stacked])
        triangle = linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][:columns]
        return _Rows([triangle.copy()])  # the zeros below would stay in memory as long as it does

    def triangle(self) -> Array:
        """Return the rows, as few of them as the columns at most."""
        return self._reduced(0).parts[0]


class Singular:
    """Singular values ``σ`` and right vectors ``V`` of the scaled samples, and the shortest solutions."""

    def __init__(self, sigma: Array, V: Array, scale: Array) -> None:
        self.sigma, self.V = sigma, V
        self._scale = scale[:, None]
        if V.shape[0] == V.shape[1]:
            return
        # The rows of D V may differ by many magnitudes.
        B = V * self._scale
        self._order = np.argsort(-np.abs(B).max(axis=1, initial=0.0), kind="stable")
        with one_thread_for(V.shape[0]):
            self._factors = linalg.qr(B[self._order], mode="economic", pivoting=True, check_finite=False)

    def shortest(self, G: Array) -> Array:
        """Return the shortest ``W`` with ``Vᵀ D W = G``."""
        if self.V.shape[0] == self.V.shape[1]:
            return np.asarray((self.V @ G) / self._scale)
        Q, L, pivots = self._factors
        W = np.zeros((self.V.shape[0], G.shape[1]))
        if G.shape[0]:
            with one_thread_for(self.V.shape[0]):
                W[self._order] = Q @ linalg.solve_triangular(L, G[pivots], trans="T", check_finite=False)
        return W


class Orthogonal(LeastSquaresSolver):
    """The route by triangular factors and, where the rank is in doubt, singular values."""

    description = "an orthogonal factorisation of the data"
    route = "svd"

    def __init__(self, problem: Regression) -> None:
        super().__init__(problem)
        #: Rank that was found for each penalty.
        self.rank = 0
        #: Makes the route for what time is left where a factorisation would take longer.
        self.otherwise: Callable[[Regression], LeastSquaresSolver] | None = None
        self._control: Control | None = None

    @staticmethod
    def bytes(problem: Regression) -> float:
        """Return the most bytes of its matrices: rows being reduced, a triangle, its singular vectors."""
        (n, d), q = problem.view.shape, problem.columns
        across, rank = d + q + 1.0, float(min(n, d))
        reduced = across * min(4.0 * n, 18.0 * threads_allowed() * across)
        height = rank + d * bool(problem.alpha.any())
        vectors = 3.0 * height * d + 3.0 * rank * d + 5.0 * min(height, d) ** 2
        return 8.0 * (rank * across + max(reduced, vectors))

    def steps(self, control: Control) -> Iterator[Step]:
        """Factorise, solve and judge; nothing is left to do after one step."""
        self._control = control
        if not self._in_time(control, self.solve):
            yield from self._iterate_instead(control)
            return
        self.gap = self._correct()[1]
        yield Step({"objective": self.objective, "relative_gap": self.relative(self.gap)}, 0.0, "converged")

    def _afford(self, seconds: float) -> None:
        """Refuse a factorisation, which nothing can interrupt, that takes longer than the time left."""
        if self._control is not None and self.otherwise is not None and seconds > self._control.left():
            raise OutOfTimeError

    def _iterate_instead(self, control: Control) -> Iterator[Step]:
        """Go on with iterations where time is left, but too little for a factorisation."""
        if self.otherwise is not None and not control.expired():
            yield from self._hand_over(self.otherwise(self.problem), control)

    def _correct(self, *, single: bool = False) -> tuple[Array, float]:
        """Return the correction that the residuals of the data ask for, and the gap it closes."""
        judged = self._judge(single=single)
        delta = self._inverse(judged.gradient)
        return delta, max(float(np.sum(delta * judged.gradient)), 0.0) + self._slack_gap(judged)

    def _reduce(self) -> Array:
        """Reduce the data to a triangle; return what belongs to it of the targets."""
        p = self.problem
        n, d = p.view.shape
        moments = class_moments(p.view, np.zeros(n, dtype=np.int8), 1, p.weights, kind="diagonal")
        variance = moments.scatter[0]
        if p.fit_intercept:
            self.mean, rest = moments.mean[0], moments.rest[0]
        else:
            self.mean, rest = np.zeros(d), np.zeros(d)
            variance = variance + p.total * np.square(moments.mean[0])
        length = np.sqrt(p.total) * np.abs(moments.mean[0])
        self.scale, self.constant = column_scale(variance, length, p)
        self.shift = True
        self.tolerance = self._rounding(length)
        # Means are rounded sums; a first column of ones takes out what they leave.
        first = int(p.fit_intercept)

        def part(rows: slice, block: Any) -> _Rows:
            s = None if p.weights is None else np.sqrt(p.weights[rows])
            pieces = []
            for piece in row_pieces(block) if hasattr(block, "tocsr") else [slice(0, block.shape[0])]:
                X = block[piece].toarray() if hasattr(block, "tocsr") else block[piece]
                whole = np.empty((X.shape[0], first + d + p.columns))
                whole[:, :first] = 1.0 / np.sqrt(p.total)
                A = whole[:, first : first + d]
                np.subtract(X, self.mean, out=A)
                A -= rest
                A /= self.scale
                A[:, self.constant] = 0.0
                whole[:, first + d :] = p.centred_targets[p.classes[rows][piece]]
                if s is not None:
                    whole *= s[piece][:, None]
                pieces.append(whole)
            return _Rows(pieces)._reduced(1)

        with single_threaded(n * d * d):
            whole = p.view.map_sum(part, 40 * (d + p.columns) ** 2).triangle()
            if first and whole.shape[0] <= whole.shape[1]:
                whole = linalg.qr(whole, mode="r", overwrite_a=True, check_finite=False)[0]
        self._triangle = whole[first:, first : first + d]
        return np.asarray(whole[first:, first + d :])

    def _rounding(self, length: Array) -> float:
        """Return what rounding the data to their own precision leaves of a singular value that is 0."""
        eps, d = float(np.finfo(self.problem.view.dtype).eps), length.shape[0]
        ratio = float(np.max(np.hypot(length, self.scale) / self.scale, where=~self.constant, initial=1.0))
        return float(min(eps * max(d, 16) * ratio, np.sqrt(eps)))

    def solve(self) -> None:
        """Set the weights."""
        p, Z = self.problem, self._reduce()
        self._factors: dict[float, Singular] = {}
        for alpha in np.unique(p.alpha):
            columns = p.alpha == alpha
            U, factor = self._factor(float(alpha))
            self._factors[float(alpha)] = factor
            padded = np.zeros((U.shape[0], int(columns.sum())))
            padded[: Z.shape[0]] = Z[:, columns]
            self.W[:, columns] = factor.shortest((U.T @ padded) / factor.sigma[:, None])

    def _factor(self, alpha: float) -> tuple[Array, Singular]:
        """Return ``U`` and ``σ, V`` of the triangle above the penalty's rows, zero values left out."""
        R = self._triangle
        self._afford(R.shape[1] ** 2 * float(R.shape[0] + R.shape[1]) / _SINGULAR_RATE)
        if alpha > 0:
            R = np.concatenate([R, np.diag(np.sqrt(alpha) / self.scale)])
        with one_thread_for(R.shape[1]):
            U, sigma, Vt = linalg.svd(R, full_matrices=False, check_finite=False)
        tolerance = self.tolerance if alpha == 0 else _EPS
        kept = sigma > tolerance * sigma[0] if sigma.size else np.zeros(0, dtype=bool)
        self.rank = int(kept.sum())
        return U[:, kept], Singular(sigma[kept], Vt[kept].T, self.scale)

    def _inverse(self, gradient: Array) -> Array:
        out = np.zeros_like(gradient)
        for alpha, factor in self._factors.items():
            columns = self.problem.alpha == alpha
            g = gradient[:, columns] / self.scale[:, None]
            g[self.constant] = 0.0
            out[:, columns] = factor.shortest((factor.V.T @ g) / np.square(factor.sigma)[:, None])
        return out


def column_scale(variance: Array, length: Array, problem: Regression) -> tuple[Array, Array]:
    """Return the length of each centred column, and which columns are constant but for rounding.

    A constant column, whose values leave rounding errors of their mean behind, has length 1.
    """
    floor = np.square(32 * _EPS * length) if problem.fit_intercept else np.zeros_like(length)
    constant = variance <= floor
    scale = np.sqrt(np.where(constant, 1.0, variance))
    return scale, constant
