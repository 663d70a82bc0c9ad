r"""Gaussian densities: covariances from moments, their factors, and scores.

    log N(x; μ, Σ) = −½ ‖Wᵀ(x − μ)‖² − ½ log det Σ − ½ r log 2π,   W Wᵀ = Σ⁺,   r = rank Σ

A covariance ``Σ = D R D`` is factorised through its correlations ``R`` (``D``: standard deviations), so that
units of 1e-8 and of 1e8 side by side cost no digits. Where ``R`` is regular, ``W = D⁻¹ L⁻ᵀ`` with the
Cholesky factor ``R = L Lᵀ``; else the eigenvalues of ``R`` tell the rank, and ``W`` belongs to the
pseudo-inverse, the density being that on the subspace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from separatrix.data.view import BLOCK_BYTES, Array, DataView
from separatrix.solvers.moments import Moments

_EPS = float(np.finfo(np.float64).eps)
_LOG_2PI = float(np.log(2.0 * np.pi))


def weighted_mean(means: Array, shares: Array) -> Array:
    """Return ``Σ π_k μ_k`` for shares that sum to 1, by differences: far from 0 it keeps its digits."""
    origin = means[int(np.argmax(shares))]
    return np.asarray(origin + shares @ (means - origin))


@dataclass(frozen=True, eq=False)
class Factor:
    """``whitening`` W with ``W Wᵀ = Σ⁺``, of shape (d, r), and the logarithm of the (pseudo-)determinant."""

    whitening: Array
    log_det: float

    @property
    def rank(self) -> int:
        """Rank of the covariance."""
        return int(self.whitening.shape[1])


def factorise(cov: Array, size: Array | None = None, *, tol: float = 0.0) -> Factor:
    """Factorise a covariance.

    Parameters
    ----------
    cov : ndarray of shape (d, d)
        A covariance matrix.
    size : ndarray of shape (d,) or None
        Magnitude of the features: one that varies by rounding errors of this size is constant.
    tol : float
        Eigenvalues of the correlation matrix up to this are taken for 0; never less than their
        rounding error.
    """
    d = cov.shape[0]
    std = np.sqrt(np.maximum(np.diag(cov), 0.0))
    varies = std > (0.0 if size is None else 8 * _EPS * np.abs(size))
    if not varies.all():
        part = factorise(cov[np.ix_(varies, varies)], tol=tol) if varies.any() else None
        whitening = np.zeros((d, part.rank if part else 0))
        if part:
            whitening[varies] = part.whitening
        return Factor(whitening, part.log_det if part else 0.0)
    R = cov / std
    R /= std[:, None]
    floor = max(tol, 16 * d * _EPS)
    lower, failed = linalg.lapack.dpotrf(R, lower=1, clean=1)
    if not failed:
        # ‖R⁻¹‖₁ bounds 1/λ_min from above; LAPACK's estimate of it is hardly ever 3 times too small.
        norm = float(np.abs(R).sum(axis=0).max())
        inverse_condition, _ = linalg.lapack.dpocon(lower, norm, uplo="L")
        if inverse_condition * norm > 10 * floor:
            inverse, _ = linalg.lapack.dtrtri(lower, lower=1)
            log_det = 2.0 * float(np.log(np.diag(lower)).sum() + np.log(std).sum())
            return Factor(np.ascontiguousarray((inverse / std).T), log_det)
    values, vectors = linalg.eigh(R)
    kept = values > max(floor, floor * values[-1])
    vectors, values = vectors[:, kept], values[kept]
    if kept.all():
        log_det = float(np.log(values).sum() + 2.0 * np.log(std).sum())
        return Factor(vectors / np.sqrt(values) / std[:, None], log_det)
    # Σ = B Bᵀ = Q T Tᵀ Qᵀ, so that Σ⁺ = Q T⁻ᵀ T⁻¹ Qᵀ in the features' own units.
    Q, T = linalg.qr(std[:, None] * vectors * np.sqrt(values), mode="economic")
    whitening = linalg.solve_triangular(T, Q.T).T
    return Factor(np.ascontiguousarray(whitening), 2.0 * float(np.log(np.abs(np.diag(T))).sum()))


def root(whitening: Array) -> Array:
    """Return ``A`` with ``A Aᵀ = Σ`` and ``Wᵀ A = 1``, of the shape of W."""
    Q, T = linalg.qr(np.asarray(whitening, dtype=np.float64), mode="economic")
    return np.asarray(linalg.solve_triangular(T, Q.T).T)


def shrunk(cov: Array, amount: float) -> Array:
    """Return ``(1 − a) Σ + a (tr Σ/d) 1``; variances alone (one axis) shrink towards their mean."""
    out = (1.0 - amount) * cov
    if cov.ndim == 1:
        return np.asarray(out + amount * cov.mean())
    out.flat[:: cov.shape[0] + 1] += amount * np.trace(cov) / cov.shape[0]
    return np.asarray(out)


def oas_amount(cov: Array, n: float) -> float:
    """Return the oracle approximating shrinkage of a covariance of ``n`` samples.

    Chen, Wiesel, Eldar and Hero (2010), equation 23, without its factor ``2/d``, as in scikit-learn.
    """
    d = cov.shape[0]
    if d == 1:
        return 0.0
    mean_square, level = float(np.mean(np.square(cov))), float(np.trace(cov) / d) ** 2
    denominator = (n + 1.0) * (mean_square - level / d)
    return 1.0 if denominator <= 0 else min((mean_square + level) / denominator, 1.0)


def ledoit_wolf_amount(cov: Array, n: float, fourth: float) -> float:
    """Return the shrinkage of Ledoit and Wolf (2004) for ``n`` samples with ``Σ ‖x_i − μ‖⁴ = fourth``."""
    d = cov.shape[0]
    if d == 1:
        return 0.0
    square = float(np.square(cov).sum())
    level = float(np.trace(cov)) / d
    beta = (fourth / n - square) / (d * n)
    delta = (square - d * level**2) / d
    beta = min(beta, delta)
    return 0.0 if beta <= 0 else beta / delta


def standardised_ledoit_wolf(cov: Array, scale: Array, n: float, fourth: float) -> Array:
    """Return the covariance shrunk by Ledoit and Wolf in units of the features' standard deviations."""
    R = cov / scale / scale[:, None]
    return np.asarray(shrunk(R, ledoit_wolf_amount(R, n, fourth)) * scale * scale[:, None])


def fourth_moments(
    view: DataView, classes: Array, weights: Array | None, means: Array, scales: Array
) -> Array:
    """Return ``Σ_i s_i (Σ_j ((x_ij − μ_kj)/σ_kj)²)²`` over the samples of each class ``k``."""
    n_classes = means.shape[0]

    def part(rows: slice, block: Any) -> Array:
        total = np.zeros(n_classes)
        for piece, X in dense_pieces(block):
            c = classes[rows][piece]
            s = np.ones(c.shape[0]) if weights is None else weights[rows][piece]
            Z = (X - means[c]) / scales[c]
            total += np.bincount(c, weights=s * np.square(np.einsum("ij,ij->i", Z, Z)), minlength=n_classes)
        return total

    return np.asarray(view.map_sum(part))


def dense_pieces(block: Any) -> Any:
    """Yield a block in dense pieces of bounded size, with their rows."""
    if not hasattr(block, "tocsr"):
        yield slice(0, block.shape[0]), block
        return
    step = max(1, BLOCK_BYTES // (8 * max(1, block.shape[1])))
    for begin in range(0, block.shape[0], step):
        rows = slice(begin, min(begin + step, block.shape[0]))
        yield rows, block[rows].toarray()


def linear_rule(means: Array, directions: Array, log_priors: Array, centre: Array) -> tuple[Array, Array]:
    """Return weights and constants of the scores ``log π_k + log N(x; μ_k, Σ)`` without their common part.

    ``w_k = A Aᵀ (μ_k − c)``, ``b_k = log π_k − ½ (μ_k − c)·w_k − c·w_k`` with directions ``A``, for which
    ``A Aᵀ`` is ``Σ⁺`` or does the same to the differences of the means. Two classes have one rule, the
    difference of theirs.
    """
    if means.shape[0] == 2:
        w = ((means[1:] - means[:1]) @ directions) @ directions.T
        middle = means[0] + 0.5 * (means[1] - means[0])
        return w, np.asarray(log_priors[1:] - log_priors[:1] - w @ middle)
    M = (means - centre) @ directions
    coef = M @ directions.T
    return coef, np.asarray(log_priors - 0.5 * np.square(M).sum(axis=1) - coef @ centre)


def shared_log_densities(view: DataView, means: Array, factor: Factor) -> Array:
    """Return ``log N(x; μ_k, Σ)`` of each row and class, for one covariance."""
    centre = means.mean(axis=0)
    W = factor.whitening.astype(view.dtype, copy=False)
    M = (means - centre) @ factor.whitening
    out = np.empty((view.shape[0], means.shape[0]), dtype=view.dtype)
    centre, M = centre.astype(view.dtype), M.astype(view.dtype)

    def part(rows: slice, block: Any) -> int:
        target = out[rows]
        for piece, X in dense_pieces(block):
            Z = (X - centre) @ W
            for k, m in enumerate(M):
                difference = Z - m
                target[piece, k] = np.einsum("ij,ij->i", difference, difference)
        return 0

    view.map_sum(part)
    out *= -0.5
    out -= 0.5 * (factor.log_det + factor.rank * _LOG_2PI)
    return out


def full_log_densities(view: DataView, means: Array, whitenings: Any, log_dets: Array) -> Array:
    """Return ``log N(x; μ_k, Σ_k)`` of each row and class."""
    out = np.empty((view.shape[0], means.shape[0]), dtype=view.dtype)
    means = means.astype(view.dtype, copy=False)
    whitenings = [W.astype(view.dtype, copy=False) for W in whitenings]

    def part(rows: slice, block: Any) -> int:
        target = out[rows]
        for piece, X in dense_pieces(block):
            for k, W in enumerate(whitenings):
                Z = (X - means[k]) @ W
                target[piece, k] = np.einsum("ij,ij->i", Z, Z)
        return 0

    view.map_sum(part)
    out *= -0.5
    out -= (0.5 * (log_dets + means.shape[1] * _LOG_2PI)).astype(view.dtype)
    return out


def diagonal_log_densities(view: DataView, means: Array, variances: Array) -> Array:
    """Return ``log N(x; μ_k, diag σ_k²)`` of each row and class; CSR rows stay sparse."""
    dtype = view.dtype
    precision = 1.0 / variances
    constant = -0.5 * (np.log(variances).sum(axis=1) + means.shape[1] * _LOG_2PI)
    # (x − μ)² p = μ² p + x (x − 2 μ) p: an unstored 0 adds only the first term.
    at_zero = np.einsum("kj,kj->k", np.square(means), precision)
    out = np.empty((view.shape[0], means.shape[0]), dtype=dtype)
    scales, centres = np.sqrt(precision).astype(dtype), means.astype(dtype, copy=False)

    def part(rows: slice, block: Any) -> int:
        if hasattr(block, "tocsr"):
            quadratic = block.multiply(block).tocsr() @ precision.T - 2.0 * (block @ (means * precision).T)
            out[rows] = constant - 0.5 * (quadratic + at_zero)
        else:
            for k in range(means.shape[0]):
                Z = (block - centres[k]) * scales[k]
                out[rows, k] = constant[k] - 0.5 * np.einsum("ij,ij->i", Z, Z)
        return 0

    view.map_sum(part)
    return out


def log_sum_exp(scores: Array) -> Array:
    """Return ``log Σ_k exp s_k`` of each row; −inf where all scores are."""
    top = scores.max(axis=1)
    finite = np.where(np.isfinite(top), top, 0.0).astype(scores.dtype)
    with np.errstate(divide="ignore"):
        return np.asarray(finite + np.log(np.exp(scores - finite[:, None]).sum(axis=1)))


def log_posterior(scores: Array) -> Array:
    """Return ``log p(k | x)`` from scores that are right up to a constant per row."""
    return np.asarray(scores - log_sum_exp(scores)[:, None])


def log_likelihood(
    moments: Moments, log_priors: Array, log_dets: Any, ranks: Any, traces: float
) -> float:
    """Return ``Σ s_i log(π_k N(x_i; μ_k, Σ_k))`` over the samples that the moments describe.

    ``traces`` is ``Σ_k tr(Σ_k⁺ S_k)``.
    """
    seen = moments.weight > 0
    each = np.asarray(log_priors - 0.5 * (log_dets + np.asarray(ranks) * _LOG_2PI))
    return float(moments.weight[seen] @ each[seen] - 0.5 * traces)


def trace_product(factor: Factor, scatter: Array) -> float:
    """Return ``tr(Σ⁺ S)``."""
    return float(np.sum((scatter @ factor.whitening) * factor.whitening))
