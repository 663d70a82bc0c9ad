r"""Models of the Hessian of a smooth linear model: what turns a gradient into a step.

The Hessian of ``Σ s_i ℓ(W x_i + b) + (λ/2)‖W‖²`` has the blocks

    H_kl = Σ_i s_i p_ik (δ_kl − p_il) x̃_i x̃_iᵀ + λ δ_kl,       p = softmax of the scores,

or, for independent columns, only the diagonal ones with ``p (1 − p)``. Each model here is a cheaper
matrix near it: the whole, its diagonal blocks, or its diagonal, from all rows or from a sample. They
work in centred features, ``score = w·(x − x̄) + b'``, where the intercept hardly interacts with the
weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from separatrix import _hot
from separatrix.data.memory import ChosenRows
from separatrix.data.products import NotFiniteError, Precision, add_products, symmetric
from separatrix.data.view import Array, DataView, csr_parts
from separatrix.losses import softmax
from separatrix.solvers._factor import Factor
from separatrix.solvers.covariance import oas_of
from separatrix.solvers.smooth import Point, SmoothObjective

#: Entries times columns up to which double precision costs no more.
_LITTLE = 1 << 14
#: Features from which products of rows are dear: those that need no more are formed with four digits.
DEAR = 256
#: Entries of all matrices that are formed side by side.
_MOST_ENTRIES = 1 << 20


def probabilities(objective: SmoothObjective, scores: Array) -> Array:
    """Return the softmax of the scores, or σ of each column's."""
    if objective.codes is None:
        return softmax(np.array(scores))
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
    clear : bool
        Whether, as far as is known, features depend so little on each other that models of the Hessian may
        be formed and solved in single precision.
    """

    objective: SmoothObjective
    mean: Array
    squares: Array
    total: float
    clear: bool = True


def moments(objective: SmoothObjective) -> Whole:
    """Return the objective with its features' weighted means and squares.

    Dense samples that are not finite, or whose squares are not, raise NotFiniteError.
    """
    view = objective.view
    s = objective.weights
    d = view.shape[1]

    def add(total: Array, rows: slice, block: Any) -> Array:
        if view.sparse:
            w = np.ones(block.shape[0], dtype=block.dtype) if s is None else s[rows]
            total[0] += w @ block
            total[1] += w @ block.power(2)
        else:
            if block.shape[1] > 1 and block.strides[1] != block.itemsize:
                block = np.ascontiguousarray(block)
            _hot.column_sums(block, None if s is None else s[rows], total)
        return total

    sums = view.fold(lambda: np.zeros((2, d)), add, 16 * d)
    if not np.all(np.isfinite(sums)):
        raise NotFiniteError
    total = float(view.shape[0] if s is None else s.sum())
    mean = sums[0] / total
    if not objective.problem.fit_intercept:
        mean = np.zeros(d)
    return Whole(objective, mean, np.maximum(sums[1] - total * np.square(mean), 0.0), total)


class Curvature(ABC):
    """A positive definite matrix near the Hessian.

    Parameters
    ----------
    whole : Whole
        The objective whose Hessian is meant.
    """

    def __init__(self, whole: Whole) -> None:
        self.objective, self.mean = whole.objective, whole.mean
        #: How much the gradient in the weights changes with that in the intercept, as far as it is known.
        self.slant: Array | float = 0.0

    @abstractmethod
    def refresh(self, point: Point) -> None:
        """Form the matrix for these parameters."""

    @abstractmethod
    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times gradients in (w, b'), one or several."""


class Pairs:
    """Weights ``s p_k |δ_kl − p_l|`` of the pairs ``l ≤ k`` of columns, made when asked for."""

    def __init__(self, p: Array, share: Array) -> None:
        self.p, self.share = np.asfortranarray(p), share
        self.pairs = [(k, l) for k in range(p.shape[1]) for l in range(k + 1)]
        self.shape = (p.shape[0], len(self.pairs))

    def __getitem__(self, rows: slice) -> Array:
        p, share = self.p[rows], self.share[rows]
        out = np.empty((p.shape[0], len(self.pairs)), order="F")
        for m, (k, l) in enumerate(self.pairs):
            np.multiply(p[:, k], 1.0 - p[:, k] if k == l else p[:, l], out=out[:, m])
            out[:, m] *= share
        return out

    def sum(self, axis: int = 0, dtype: Any = np.float64) -> Array:
        """Return the sum of each pair's weights."""
        shared = self.p * self.share[:, None]
        products = shared.T @ self.p
        totals = shared.sum(axis=axis, dtype=dtype)
        return np.array([totals[k] - products[k, k] if k == l else products[k, l] for k, l in self.pairs])


def bordered_grams(view: DataView, weights: Array | Pairs, mean: Array, free: bool, dtype: Any) -> Array:
    """Return ``Σ_i v_im x̃_i x̃_iᵀ`` for each column m of the weights, ``x̃ = (x − x̄, 1)``.

    Products of dense rows are formed in the given precision, or a lower one where single will do and products
    are dear, sums of pieces in double. Without a free intercept the border is 0.
    """
    d, M = view.shape[1], weights.shape[1]
    precision: Precision = "double"
    if np.dtype(dtype) == np.float32:
        precision = "single" if d < DEAR else "coarse"
    near = mean.astype(dtype).astype(np.float64)

    def add(total: Array, rows: slice, block: Any) -> Array:
        own = weights[rows]
        for m in range(M):
            v = np.ascontiguousarray(own[:, m], dtype=np.float64)
            gram, sums = total[m, :-1], total[m, -1]
            if view.sparse:
                _hot.gram_csr(*csr_parts(block), v, gram)
            else:
                add_products(block, gram, sums, weights=v, origin=near, precision=precision)
        if view.sparse:
            total[:, -1] += (block.T @ own).T
        return total

    sums = view.for_products().fold(lambda: np.zeros((M, d + 1, d)), add, M * (d + 1) ** 2 * 8)
    out = np.empty((M, d + 1, d + 1))
    out[:, d, d] = weights.sum(axis=0, dtype=np.float64)
    out[:, :d, d] = sums[:, -1]
    for m in range(M):
        if view.sparse:
            # Sparse rows are not centred one by one: Σ v (x − x̄)(x − x̄)ᵀ, multiplied out.
            half = sums[m, :-1] - np.outer(sums[m, -1] - 0.5 * out[m, d, d] * mean, mean)
            out[m, :d, :d] = half + half.T
            out[m, :d, d] -= out[m, d, d] * mean
        else:
            out[m, :d, :d] = symmetric(sums[m, :-1])
    out[:, d, :d] = out[:, :d, d]
    if not free:
        out[:, d, :] = out[:, :, d] = 0.0
    return out


def diagonal(objective: SmoothObjective, point: Point, mean: Array, features: Array) -> Array:
    """Return ``Σ_i s_i p_ik (1 − p_ik) x̃_ij²`` of some features j, of shape (columns, their number)."""
    residuals, near = objective.residuals(point, single=True), mean[features]

    def add(total: Array, rows: slice, block: Any) -> Array:
        (_, v), own = objective.from_residuals(residuals[rows], rows), block[:, features]
        if sparse.issparse(own):
            total += (own.power(2).T @ v - 2.0 * near[:, None] * (own.T @ v)).T
            total += np.outer(v.sum(axis=0), np.square(near))
        else:
            total += v.T @ np.square(own - near)
        return total

    shape = objective.columns, len(features)
    sums: Array = objective.view.fold(lambda: np.zeros(shape), add, 8 * shape[0] * shape[1])
    return np.maximum(sums, 0.0)


def _missed(sample: Array, whole: Array) -> Array:
    """Return the features whose squares differ much between a sample and all rows."""
    return np.flatnonzero((sample < whole / 1.5) | (sample > 1.5 * whole))


def _squares(rows: SmoothObjective) -> Array:
    """Return the squares of the rows' features, computed once."""
    if rows.squares is None:
        rows.squares = moments(rows).squares
    return rows.squares


class FromRows(Curvature):
    """What the models from rows share.

    Parameters
    ----------
    whole : Whole
        The objective over all rows.
    rows : SmoothObjective
        The rows to form the model from, all or a sample.
    target : SmoothObjective
        The objective whose Hessian is meant. Where the model's rows have missed much of a rare feature,
        the target's diagonal corrects the model's.
    rough : bool
        Whether single precision will do, as it does for what is not exact anyhow; it is twice as fast.
    """

    def __init__(
        self, whole: Whole, rows: SmoothObjective, target: SmoothObjective, rough: bool = False
    ) -> None:
        super().__init__(whole)
        self.whole = whole
        self.rows, self.target = rows, target
        s = rows.weights
        self.share = np.ones(rows.view.shape[0]) if s is None else s
        self.missed = _missed(_squares(rows), whole.squares) if rows is not target else np.empty(0, np.int64)
        large = rows.view.shape[0] * whole.objective.features * whole.objective.columns > _LITTLE
        self.single = rough and large and whole.clear and whole.objective.l2 > 0
        # Nor is a sample exact.
        exact = rows is whole.objective or rows.view.dtype == np.float64
        self.dtype = np.float64 if exact and not self.single else np.float32

    def refresh(self, point: Point) -> None:
        """Form the matrix for these parameters; in double precision, if single turns out to be too coarse."""
        if not self._refreshed(point):
            self.whole.clear = self.single = False
            self.dtype = np.float64
            self._refreshed(point)

    @abstractmethod
    def _refreshed(self, point: Point) -> bool:
        """Form the matrix for these parameters; return whether its precision was enough."""

    def _each(self, point: Point) -> tuple[Array, Array]:
        """Return the probabilities of the rows, and ``s p (1 − p)``."""
        residuals = point.residuals if self.rows is self.target else None
        if residuals is None:
            residuals = self.rows.residuals(point, single=self.dtype == np.float32)
        return self.rows.from_residuals(residuals)

    def _grams(self, weights: Array | Pairs, view: DataView | None = None) -> Array:
        free = self.objective.problem.fit_intercept
        view = self.rows.view if view is None else view
        return bordered_grams(view, weights, self.mean, free, self.dtype)

    def _corrections(
        self, blocks: list[Array], point: Point, scales: Array | float = 1.0, *, common: bool = False
    ) -> tuple[Array, Array] | None:
        """Return factors for the model's rows and columns, and what to add to its diagonal.

        ``blocks`` times ``scales`` are the model's diagonal blocks, one for all or one for each column. What
        a feature that hardly varies in the sample is like in other rows, only the diagonal can tell. Of
        coupled columns the factors are common to all: a change of all scores alike bends nothing, and must
        not come to.
        """
        if not self.missed.size:
            return None
        own = np.stack([np.diag(block)[self.missed] for block in blocks])
        levels = [np.square(block[self.missed, -1]) / max(float(block[-1, -1]), 1e-300) for block in blocks]
        varying, own = (own - levels) * scales, own * scales
        true = diagonal(self.target, point, self.mean, self.missed)
        missing = np.maximum(true - own, 0.0)
        if common:
            own, varying, true = (np.tile(a.mean(axis=0), (len(a), 1)) for a in (own, varying, true))
        known = varying > 1e-3 * true
        out = np.ones((2, true.shape[0], self.objective.features + 1))
        out[1] = 0.0
        out[0][:, self.missed] = np.sqrt(np.divide(true, own, out=np.ones_like(true), where=known))
        out[1][:, self.missed] = np.where(known, 0.0, missing)
        return out[0], out[1]


class Coupled(FromRows):
    """The whole Hessian, with the coupling of the columns that are learnt together."""

    def _refreshed(self, point: Point) -> bool:
        p, _ = self._each(point)
        P, d = self.objective.columns, self.objective.features
        weights = Pairs(p, self.share)
        H = np.empty((P, d + 1, P, d + 1))
        for (k, l), block in zip(weights.pairs, self._grams(weights), strict=True):
            H[k, :, l, :] = block if k == l else -block
            H[l, :, k, :] = H[k, :, l, :].T
        size = P * (d + 1)
        flat = H.reshape(size, size)
        corrections = self._corrections([H[k, :, k, :] for k in range(P)], point, common=True)
        if corrections is not None:
            factors, missing = (c.ravel() for c in corrections)
            flat *= factors[:, None] * factors[None, :]
            flat[np.arange(size), np.arange(size)] += missing
        for k in range(P):
            H[k, np.arange(d), k, np.arange(d)] += self.target.l2
        self.factor = Factor(flat, self.single)
        return self.factor.single or not self.single

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times gradients in (w, b')."""
        right = np.concatenate([gradient, slopes[..., None]], axis=-1)
        out = self.factor.solve(right.reshape(-1, right.shape[-2] * right.shape[-1]).T).T.reshape(right.shape)
        return out[..., :-1], out[..., -1]


def _shrink(gram: Array, n: int) -> None:
    """Shrink the correlations of ``n`` sampled rows, if most of what they show is chance."""
    variances = np.diag(gram).copy()
    inverse = np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)
    d = variances.shape[0]
    # Squares of correlations, without their matrix: new memory of that size costs more than they do.
    mean_square = float(inverse @ np.einsum("ij,ij,j->i", gram, gram, inverse)) / d**2
    amount = oas_of(d, mean_square, (np.count_nonzero(inverse) / d) ** 2, n)
    # A little of it would hide features that depend on each other, which rows of any number show.
    if amount > 0.5:
        gram *= 1.0 - amount
        np.fill_diagonal(gram, variances)


class Shared(FromRows):
    """The Kronecker product ``A ⊗ G``: how the columns bend each other on average, and one Gram matrix.

    ``A = Σ s (diag p − p pᵀ) / Σ s``, or its diagonal for independent columns, and
    ``G = Σ v (x − x̄)(x − x̄)ᵀ`` with the columns' mean curvature as weights.
    """

    def _refreshed(self, point: Point) -> bool:
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
        every = np.arange(d)
        bordered = self._grams(mean[:, None] / total)[0]
        gram = np.ascontiguousarray(bordered[:d, :d])
        if self.rows is not self.objective:
            _shrink(gram, self.rows.view.shape[0])
        corrections = self._corrections([bordered], point, np.diag(bend)[:, None])
        if corrections is not None:
            factors, missing = (c[:, :d].mean(axis=0) for c in corrections)
            gram *= factors[:, None] * factors[None, :]
            gram[every, every] += missing / float(np.diag(bend).mean())
        gram[every, every] += self.target.l2 / float(np.diag(bend).mean())
        self.factor = Factor(gram, self.single)
        return self.factor.single or not self.single

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times gradients in (w, b')."""
        out = self.factor.solve(gradient.reshape(-1, gradient.shape[-1]).T).T.reshape(gradient.shape)
        return self.inverse @ out, slopes @ self.inverse


class Blocks(FromRows):
    """The Hessian's diagonal blocks, one matrix for each column.

    Rows of which a column is sure hardly bend it: with ``share`` below 1 the heaviest rows that hold
    this share of a column's curvature stand for all.
    """

    def __init__(
        self,
        whole: Whole,
        rows: SmoothObjective,
        target: SmoothObjective,
        rough: bool = False,
        share: float = 1.0,
    ) -> None:
        super().__init__(whole, rows, target, rough)
        self.heavy = share

    def _refreshed(self, point: Point) -> bool:
        _, each = self._each(point)
        d = self.objective.features
        chosen = [self._heaviest(np.ascontiguousarray(v)) for v in each.T]
        if all(view is self.rows.view for _, view in chosen) and each.shape[1] * d**2 <= _MOST_ENTRIES:
            blocks = list(self._grams(each))
        else:
            blocks = [self._grams(weights[:, None], view)[0] for weights, view in chosen]
        corrections = self._corrections(blocks, point)
        self.slant = np.stack([block[:d, d] / max(float(block[d, d]), 1e-300) for block in blocks])
        self.factors = []
        for k, block in enumerate(blocks):
            if corrections is not None:
                block *= corrections[0][k][:, None] * corrections[0][k][None, :]
                block[np.arange(d + 1), np.arange(d + 1)] += corrections[1][k]
            block[np.arange(d), np.arange(d)] += self.target.l2
            self.factors.append(Factor(block, self.single))
            if self.single and not self.factors[-1].single:
                return False
        return True

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
        return kept * (total / max(float(kept.sum()), 1e-300)), ChosenRows(view, chosen)

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrices' inverses times gradients in (w, b')."""
        right = np.concatenate([gradient, slopes[..., None]], axis=-1)
        for k, factor in enumerate(self.factors):
            own = right[..., k, :]
            own[...] = factor.solve(np.atleast_2d(own).T).T.reshape(own.shape)
        return right[..., :-1], right[..., -1]


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
        scores = ChosenRows(objective.view, rows).scores(point.coef, point.intercept)
        p = probabilities(objective, np.asarray(scores, dtype=np.float64))
        return np.asarray(np.maximum((p * (1.0 - p)).mean(axis=0), 1e-3 / max(2, objective.columns)))

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times a gradient in (w, b')."""
        return gradient / self.diagonal, slopes / self.totals
