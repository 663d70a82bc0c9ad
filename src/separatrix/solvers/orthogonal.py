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

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.moments import class_moments
from separatrix.solvers.regression import LeastSquaresSolver, Regression, row_pieces

#: Largest number of entries of a matrix that is factorised without being reduced (wide data).
LARGEST_WIDE = 1 << 24
_EPS = float(np.finfo(np.float64).eps)


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
        return _Rows([triangle])

    def triangle(self) -> Array:
        """Return the rows, as few of them as the columns at most."""
        return self._reduced(0).parts[0]


class Orthogonal(LeastSquaresSolver):
    """The route by triangular factors and, where the rank is in doubt, singular values."""

    description = "an orthogonal factorisation of the data"
    route = "svd"

    def __init__(self, problem: Regression) -> None:
        super().__init__(problem)
        #: Rank that was found for each penalty.
        self.rank = 0

    def steps(self, control: Control) -> Iterator[Step]:
        """Factorise, solve and judge; nothing is left to do after one step."""
        self.solve()
        self.gap = self._correct()[1]
        yield Step({"objective": self.objective, "relative_gap": self.relative(self.gap)}, 0.0, "converged")

    def _correct(self) -> tuple[Array, float]:
        """Return the correction that the residuals of the data ask for, and the gap it closes."""
        judged = self._judge()
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
        ratio = float(np.max(np.hypot(length, self.scale) / self.scale, where=~self.constant, initial=1.0))
        eps = float(np.finfo(p.view.dtype).eps)
        #: What rounding the data to their own precision leaves of a singular value that is 0.
        self.tolerance = min(eps * max(d, 16) * ratio, float(np.sqrt(eps)))

        def part(rows: slice, block: Any) -> _Rows:
            s = None if p.weights is None else np.sqrt(p.weights[rows])
            pieces = []
            for piece in row_pieces(block) if hasattr(block, "tocsr") else [slice(0, block.shape[0])]:
                X = block[piece].toarray() if hasattr(block, "tocsr") else block[piece]
                A = np.empty((X.shape[0], d + p.columns))
                np.subtract(X, self.mean, out=A[:, :d])
                A[:, :d] -= rest
                A[:, :d] /= self.scale
                A[:, :d][:, self.constant] = 0.0
                A[:, d:] = p.centred_targets[p.classes[rows][piece]]
                if s is not None:
                    A *= s[piece][:, None]
                pieces.append(A)
            return _Rows(pieces)._reduced(1)

        with single_threaded(n * d * d):
            whole = p.view.map_sum(part, 40 * (d + p.columns) ** 2).triangle()
        self._triangle = whole[:, :d]
        return np.asarray(whole[:, d:])

    def solve(self) -> None:
        """Set the weights."""
        p, Z = self.problem, self._reduce()
        self._factors: dict[float, tuple[Array, ...]] = {}
        for alpha in np.unique(p.alpha):
            columns = p.alpha == alpha
            factor = self._factor(float(alpha))
            self._factors[float(alpha)] = factor
            padded = np.zeros((factor[0].shape[0], int(columns.sum())))
            padded[: Z.shape[0]] = Z[:, columns]
            self.W[:, columns] = self._shortest(factor, (factor[0].T @ padded) / factor[1][:, None])

    def _factor(self, alpha: float) -> tuple[Array, ...]:
        """Return ``U, σ, V`` of the triangle with the penalty's rows below it, zero values left out."""
        R = self._triangle
        if alpha > 0:
            R = np.concatenate([R, np.diag(np.sqrt(alpha) / self.scale)])
        U, sigma, Vt = linalg.svd(R, full_matrices=False, check_finite=False)
        tolerance = self.tolerance if alpha == 0 else _EPS
        kept = sigma > tolerance * sigma[0] if sigma.size else np.zeros(0, dtype=bool)
        self.rank = int(kept.sum())
        return U[:, kept], sigma[kept], Vt[kept].T

    def _shortest(self, factor: tuple[Array, ...], G: Array) -> Array:
        """Return the shortest ``W`` with ``Vᵀ D W = G``."""
        V = factor[2]
        if V.shape[0] == V.shape[1]:
            return np.asarray((V @ G) / self.scale[:, None])
        return shortest(V * self.scale[:, None], G)

    def _inverse(self, gradient: Array) -> Array:
        out = np.zeros_like(gradient)
        for alpha, factor in self._factors.items():
            columns = self.problem.alpha == alpha
            g = gradient[:, columns] / self.scale[:, None]
            g[self.constant] = 0.0
            out[:, columns] = self._shortest(factor, (factor[2].T @ g) / np.square(factor[1])[:, None])
        return out


def column_scale(variance: Array, length: Array, problem: Regression) -> tuple[Array, Array]:
    """Return the length of each centred column, and which columns are constant but for rounding.

    A constant column, whose values leave rounding errors of their mean behind, has length 1.
    """
    floor = np.square(32 * _EPS * length) if problem.fit_intercept else np.zeros_like(length)
    constant = variance <= floor
    scale = np.sqrt(np.where(constant, 1.0, variance))
    return scale, constant


def shortest(B: Array, G: Array) -> Array:
    """Return the shortest ``W`` with ``Bᵀ W = G``; the rows of ``B`` may differ by many magnitudes."""
    if B.shape[1] == 0:
        return np.zeros((B.shape[0], G.shape[1]))
    order = np.argsort(-np.abs(B).max(axis=1), kind="stable")
    Q, L, pivots = linalg.qr(B[order], mode="economic", pivoting=True, check_finite=False)
    W = np.empty((B.shape[0], G.shape[1]))
    W[order] = Q @ linalg.solve_triangular(L, G[pivots], trans="T", check_finite=False)
    return W
