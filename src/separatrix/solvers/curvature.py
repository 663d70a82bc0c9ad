r"""Models of the Hessian of a smooth linear model: what turns a gradient into a step.

The Hessian of ``Σ s_i ℓ(W x_i + b) + (λ/2)‖W‖²`` has the blocks

    H_kl = Σ_i s_i p_ik (δ_kl − p_il) x̃_i x̃_iᵀ + λ δ_kl,       p = softmax of the scores,

or, for independent columns, only the diagonal ones with ``p (1 − p)``. Each model here is a cheaper
matrix near it: the whole, its diagonal blocks, or its diagonal, from all rows or from a sample. They
work in centred features, ``score = w·(x − x̄) + b'``, where the intercept hardly interacts with the
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit

from separatrix.data.memory import view_of
from separatrix.data.view import Array, DataView
from separatrix.solvers.smooth import Point, SmoothObjective

#: Smallest eigenvalue, relative to the largest, that a scaled Hessian is given.
_RIDGE = 1e-11


def probabilities(objective: SmoothObjective, scores: Array) -> Array:
    """Return the softmax of the scores, or σ of each column's."""
    if objective.codes is None:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return np.asarray(p)
    return np.asarray(expit(scores))


@dataclass
class Whole:
    """An objective over all rows, with what its features are like.

    Attributes
    ----------
    objective : SmoothObjective
        The objective.
    mean : ndarray of shape (features,)
        ``x̄``, weighted.
    squares : ndarray of shape (features,)
        ``Σ s (x − x̄)²``.
    total : float
        ``Σ s``.
    """

    objective: SmoothObjective
    mean: Array
    squares: Array
    total: float


def moments(objective: SmoothObjective) -> Whole:
    """Return the objective with its features' weighted means and squares."""
    view = objective.view
    s = objective.weights
    d = view.shape[1]

    def add(total: Array, rows: slice, block: Any) -> Array:
        w = np.ones(block.shape[0], dtype=block.dtype) if s is None else s[rows]
        total[0] += w @ block
        total[1] += w @ (block.power(2) if sparse.issparse(block) else np.square(block))
        return total

    sums = view.fold(lambda: np.zeros((2, d)), add, 16 * d)
    total = float(view.shape[0] if s is None else s.sum())
    mean = sums[0] / total
    if not objective.problem.fit_intercept:
        mean = np.zeros(d)
    return Whole(objective, mean, np.maximum(sums[1] - total * np.square(mean), 0.0), total)


class Curvature:
    """A positive definite matrix near the Hessian.

    Parameters
    ----------
    whole : Whole
        The objective whose Hessian is meant.
    """

    def __init__(self, whole: Whole) -> None:
        self.objective, self.mean = whole.objective, whole.mean

    def refresh(self, point: Point) -> None:
        """Form the matrix for these parameters."""
        raise NotImplementedError

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times a gradient in (w, b')."""
        raise NotImplementedError


class FromRows(Curvature):
    """What the models from rows share: the rows, all of them or a sample, with their probabilities."""

    def __init__(self, whole: Whole, rows: SmoothObjective) -> None:
        super().__init__(whole)
        self.rows = rows
        s = rows.weights
        self.share = np.ones(rows.view.shape[0]) if s is None else s
        # A sample may have missed some of a rare feature, which all rows together know.
        known = moments(rows).squares if rows is not whole.objective else whole.squares
        self.missed = np.maximum(0.0, whole.squares - known) / whole.total

    def _each(self, point: Point) -> tuple[Array, Array]:
        """Return the probabilities of the rows, and ``s p (1 − p)``."""
        scores = np.asarray(self.rows.view.scores(point.coef, point.intercept), dtype=np.float64)
        p = probabilities(self.rows, scores)
        return p, self.share[:, None] * p * (1.0 - p) * self.rows.taking_part()

    def _bordered(self, weights: Array, view: DataView) -> Array:
        """Return ``Σ v (x − x̄)(x − x̄)ᵀ`` with a border for the intercept."""
        d = view.shape[1]
        out = np.empty((d + 1, d + 1))
        total = float(weights.sum())
        first = view.transposed(weights[:, None]).ravel().astype(np.float64) - total * self.mean
        out[:d, :d] = view.gram(weights, self.mean)
        out[np.arange(d), np.arange(d)] += self.missed * total
        free = self.objective.problem.fit_intercept
        out[:d, d] = out[d, :d] = first if free else 0.0
        out[d, d] = total if free else 0.0
        return out


class Coupled(FromRows):
    """The whole Hessian, with the coupling of the columns that are learnt together."""

    def refresh(self, point: Point) -> None:
        """Form the matrix for these parameters."""
        p, _ = self._each(point)
        P, d = self.objective.columns, self.objective.features
        H = np.empty((P, d + 1, P, d + 1))
        every = np.arange(d)
        for k in range(P):
            for l in range(k + 1):
                v = self.share * p[:, k] * (1.0 - p[:, k] if k == l else p[:, l])
                block = self._bordered(v, self.rows.view)
                H[k, :, l, :] = block if k == l else -block
                H[l, :, k, :] = H[k, :, l, :].T
            H[k, every, k, every] += self.objective.l2
        size = P * (d + 1)
        self.factor = _factor(H.reshape(size, size))

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times a gradient in (w, b')."""
        right = np.column_stack([gradient, slopes])
        out = _solve(self.factor, right.ravel()).reshape(right.shape)
        return out[:, :-1], out[:, -1]


class Shared(FromRows):
    """The Kronecker product ``A ⊗ G``: how the columns bend each other on average, and one Gram matrix.

    ``A = Σ s (diag p − p pᵀ) / Σ s``, or its diagonal for independent columns, and
    ``G = Σ v (x − x̄)(x − x̄)ᵀ`` with the columns' mean curvature as weights.
    """

    def refresh(self, point: Point) -> None:
        """Form the matrices for these parameters."""
        p, each = self._each(point)
        mean = each.mean(axis=1)
        total = max(float(mean.sum()), 1e-300)
        bend = np.diag(each.sum(axis=0))
        if self.objective.codes is None:
            bend = np.diag(self.share @ p) - (self.share[:, None] * p).T @ p
        values, vectors = np.linalg.eigh(bend)
        values = np.maximum(values, 1e-3 * values[-1])
        self.inverse = (vectors / values) @ vectors.T
        d = self.objective.features
        gram = self._bordered(mean / total, self.rows.view)[:d, :d]
        gram[np.arange(d), np.arange(d)] += self.objective.l2 / float(np.diag(bend).mean())
        self.factor = _factor(gram)

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times a gradient in (w, b')."""
        return self.inverse @ _solve(self.factor, gradient.T).T, self.inverse @ slopes


class Blocks(FromRows):
    """The Hessian's diagonal blocks, one matrix for each column.

    Rows of which a column is sure hardly bend it: with ``share`` below 1 the heaviest rows that hold
    this share of a column's curvature stand for all.
    """

    def __init__(self, whole: Whole, rows: SmoothObjective, share: float = 1.0) -> None:
        super().__init__(whole, rows)
        self.heavy = share

    def refresh(self, point: Point) -> None:
        """Form the matrices for these parameters."""
        _, each = self._each(point)
        d = self.objective.features
        every = np.arange(d)
        self.factors = []
        for v in each.T:
            weights, view = self._heaviest(np.ascontiguousarray(v))
            block = self._bordered(weights, view)
            block[every, every] += self.objective.l2
            self.factors.append(_factor(block))

    def _heaviest(self, weights: Array) -> tuple[Array, DataView]:
        view = self.rows.view
        if self.heavy >= 1.0:
            return weights, view
        total = float(weights.sum())
        order = np.argsort(-weights, kind="stable")
        count = int(np.searchsorted(np.cumsum(weights[order]), self.heavy * total)) + 1
        count = max(count, 4 * view.shape[1])
        if count > 0.7 * weights.shape[0]:
            return weights, view
        chosen = np.sort(order[:count])
        kept = weights[chosen]
        return kept * (total / max(float(kept.sum()), 1e-300)), view_of(view.take(chosen))

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrices' inverses times a gradient in (w, b')."""
        right = np.column_stack([gradient, slopes])
        out = np.stack([_solve(f, r) for f, r in zip(self.factors, right, strict=True)])
        return out[:, :-1], out[:, -1]


def _factor(H: Array) -> tuple[Any, Array]:
    """Return a Cholesky factor of the matrix scaled to unit diagonal, and the scales."""
    diagonal = np.diag(H).copy()
    # A feature that never varies, without a penalty: no step in its direction.
    scale = np.zeros_like(diagonal)
    np.divide(1.0, np.sqrt(np.abs(diagonal)), out=scale, where=diagonal > 1e-290)
    scaled = H * scale[:, None] * scale[None, :]
    ridge = _RIDGE
    while True:
        np.fill_diagonal(scaled, 1.0 + ridge)
        try:
            return linalg.cho_factor(scaled, lower=True, check_finite=False), scale
        except linalg.LinAlgError:
            ridge *= 100.0


def _solve(factor: tuple[Any, Array], right: Array) -> Array:
    cholesky, scale = factor
    shaped = scale if right.ndim == 1 else scale[:, None]
    return np.asarray(shaped * linalg.cho_solve(cholesky, shaped * right, check_finite=False))


class Diagonal(Curvature):
    """The Hessian's diagonal, for features too many to pair."""

    def __init__(self, whole: Whole) -> None:
        super().__init__(whole)
        self.squares, self.total = whole.squares, whole.total

    def refresh(self, point: Point) -> None:
        """Form the diagonal for the mean probabilities at these parameters."""
        shares = self._shares(point)
        self.diagonal = shares[:, None] * self.squares[None, :] + self.objective.l2
        self.diagonal = np.maximum(self.diagonal, 1e-12 * self.diagonal.max())
        self.totals = np.maximum(shares * self.total, 1e-300)

    def _shares(self, point: Point) -> Array:
        """Return the mean of ``p (1 − p)`` for each column, from some rows."""
        objective = self.objective
        rows = np.unique(np.linspace(0, objective.view.shape[0] - 1, 2000).astype(np.int64))
        scores = objective.view.take(rows) @ point.coef.T + point.intercept
        p = probabilities(objective, np.asarray(scores, dtype=np.float64))
        return np.asarray(np.maximum((p * (1.0 - p)).mean(axis=0), 1e-3 / max(2, objective.columns)))

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times a gradient in (w, b')."""
        return gradient / self.diagonal, slopes / self.totals
