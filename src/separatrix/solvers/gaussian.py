r"""Gaussian densities of classes: estimates from moments, scores, log-likelihood.

    log N(x; μ, Σ) = −½ ‖Wᵀ(x − μ)‖² − ½ log det Σ − ½ r log 2π,   W Wᵀ = Σ⁺,   r = rank Σ

Where ``Σ`` is singular, this is the density on the subspace of the data, with the pseudo-determinant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.view import Array, DataView
from separatrix.solvers.covariance import (
    EPS,
    Factor,
    dense_pieces,
    factorise,
    ledoit_wolf_amount,
    oas_amount,
    shrunk,
    trace_product,
)
from separatrix.solvers.moments import Moments

LOG_2PI = float(np.log(2.0 * np.pi))
#: Squared mean over variance from which on a feature of sparse data is far from 0.
_FAR = 1e4


def weighted_mean(means: Array, shares: Array) -> Array:
    """Return ``Σ π_k μ_k`` for shares that sum to 1, by differences: far from 0 it keeps its digits."""
    origin = means[int(np.argmax(shares))]
    return np.asarray(origin + shares @ (means - origin))


class SingularClassError(np.linalg.LinAlgError):
    """The covariance of one class, by number, is singular."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"the covariance of class number {number} is singular: the class {why}.")
        self.number, self.why = number, why


@dataclass(frozen=True, eq=False)
class Estimate:
    """Covariances and what follows from them.

    Attributes
    ----------
    covariance : ndarray
        (d, d) for "shared", (K, d, d) for "full", (K, d) for "diagonal", (K,) for "spherical".
    whitening : ndarray of shape (d, r) or (K, d, d), or None
        ``W`` with ``W Wᵀ = Σ⁺``, for "shared" and "full".
    log_det : float or ndarray of shape (K,)
        Logarithms of the determinants.
    rank : int
        Rank of the covariances.
    shrinkage : float or ndarray of shape (K,)
        Amounts of shrinkage.
    trace : float
        ``Σ_k tr(Σ_k⁺ S_k)``.
    """

    covariance: Array
    whitening: Array | None
    log_det: Any
    rank: int
    shrinkage: Any
    trace: float


def estimate(moments: Moments, form: str, shrinkage: Any, *, unbiased: bool, fourth: Array) -> Estimate:
    """Return the covariances of the classes.

    Parameters
    ----------
    moments : Moments
        Of the kind that the form needs: "diagonal" for "spherical", else of its name.
    form : {"shared", "full", "diagonal", "spherical"}
        Form of the covariances.
    shrinkage : float, "ledoit-wolf", "oas" or None
        Amount of shrinkage, or the rule for it.
    unbiased : bool
        Whether scatter is divided by the degrees of freedom instead of the weight.
    fourth : ndarray of shape (K,)
        ``Σ ‖x_i − μ_k‖⁴`` of each class, for Ledoit and Wolf.
    """

    def amount(cov: Array, n: float, q: float) -> float:
        if shrinkage == "oas":
            return oas_amount(cov, n)
        return ledoit_wolf_amount(cov, n, q) if shrinkage == "ledoit-wolf" else float(shrinkage or 0.0)

    if form == "shared":
        n = moments.total_weight
        divisor = _divisor(n, int(np.count_nonzero(moments.weight)), unbiased)
        scatter = moments.within()
        a = amount(scatter / n, n, float(fourth.sum()))
        cov = shrunk(scatter / divisor, a)
        factor = factorise(cov, np.abs(moments.mean).max(axis=0))
        trace = trace_product(factor, scatter) if a else divisor * factor.rank
        return Estimate(cov, factor.whitening, factor.log_det, factor.rank, a, trace)
    divisors = [_divisor(n, 1, unbiased) for n in moments.weight]
    if form == "full":
        return _estimate_full(moments, divisors, amount, fourth)
    n_classes, d = moments.mean.shape
    # A class that a stream has not met has prior 0: its density does not matter.
    variances = np.ones((n_classes, d))
    a = float(shrinkage or 0.0)
    for k in map(int, np.flatnonzero(moments.weight)):
        own = moments.scatter[k] / divisors[k]
        variances[k] = own.mean() if form == "spherical" else shrunk(own, a)
        constant = np.flatnonzero(variances[k] <= np.square(8 * EPS * moments.mean[k]))
        if constant.size:
            raise SingularClassError(k, f"does not vary in feature {constant[0]}")
    trace = float((moments.scatter / variances).sum())
    log_dets = np.log(variances).sum(axis=1)
    return Estimate(variances[:, 0] if form == "spherical" else variances, None, log_dets, d, a, trace)


def _estimate_full(moments: Moments, divisors: list[float], amount: Any, fourth: Array) -> Estimate:
    n_classes, d = moments.mean.shape
    covariances, whitenings = np.empty((n_classes, d, d)), np.empty((n_classes, d, d))
    covariances[:] = whitenings[:] = np.eye(d)
    amounts, log_dets, trace = np.zeros(n_classes), np.zeros(n_classes), 0.0
    for k in map(int, np.flatnonzero(moments.weight)):
        n, scatter = float(moments.weight[k]), moments.scatter[k]
        a = amounts[k] = amount(scatter / n, n, float(fourth[k]))
        covariances[k] = shrunk(scatter / divisors[k], a)
        factor = factorise(covariances[k], moments.mean[k])
        if factor.rank < d:
            raise SingularClassError(k, f"has rank {factor.rank} in {d} dimensions")
        whitenings[k], log_dets[k] = factor.whitening, factor.log_det
        trace += trace_product(factor, scatter) if a else divisors[k] * d
    return Estimate(covariances, whitenings, log_dets, d, amounts, trace)


def _divisor(weight: float, lost: int, unbiased: bool) -> float:
    if not unbiased or weight == 0:
        return float(weight)
    if weight <= lost:
        raise ValueError(
            f"divisor='unbiased' needs a weight above {lost}, but the samples weigh {weight:g} in all: give "
            "more samples or choose divisor='ml'."
        )
    return float(weight - lost)


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
    out = np.empty((view.shape[0], means.shape[0]))
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
    out -= 0.5 * (factor.log_det + factor.rank * LOG_2PI)
    return out


def full_log_densities(view: DataView, means: Array, whitenings: Any, log_dets: Array) -> Array:
    """Return ``log N(x; μ_k, Σ_k)`` of each row and class."""
    out = np.empty((view.shape[0], means.shape[0]))
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
    out -= 0.5 * (log_dets + means.shape[1] * LOG_2PI)
    return out


def diagonal_log_densities(view: DataView, means: Array, variances: Array) -> Array:
    """Return ``log N(x; μ_k, diag σ_k²)`` of each row and class; CSR rows stay sparse."""
    dtype = view.dtype
    precision = 1.0 / variances
    constant = -0.5 * (np.log(variances).sum(axis=1) + means.shape[1] * LOG_2PI)
    out = np.empty((view.shape[0], means.shape[0]))
    scales, centres = np.sqrt(precision).astype(dtype), means.astype(dtype, copy=False)
    # (x − μ)² p = μ² p + x (x − 2 μ) p: an unstored 0 adds only the first term. Features far from 0, as their
    # spread goes, would lose all digits by that; hardly a 0 is among them, and they are taken as they are.
    far = (
        np.flatnonzero((np.square(means) * precision > _FAR).any(axis=0)) if view.sparse else np.empty(0, int)
    )
    near = precision.copy()
    near[:, far] = 0.0
    at_zero = np.einsum("kj,kj->k", np.square(means), near)

    def squares(X: Array, columns: Any, k: int) -> Array:
        Z = (X - centres[k, columns]) * scales[k, columns]
        return np.asarray(np.einsum("ij,ij->i", Z, Z))

    def part(rows: slice, block: Any) -> int:
        if hasattr(block, "tocsr"):
            wide = block.astype(np.float64)
            total = wide.multiply(wide).tocsr() @ near.T - 2.0 * (wide @ (means * near).T) + at_zero
            if far.size:
                for piece, X in dense_pieces(wide[:, far]):
                    for k in range(means.shape[0]):
                        total[piece, k] += squares(X, far, k)
            out[rows] = constant - 0.5 * total
        else:
            for k in range(means.shape[0]):
                out[rows, k] = constant[k] - 0.5 * squares(block, slice(None), k)
        return 0

    view.map_sum(part)
    return out


def log_sum_exp(scores: Array) -> Array:
    """Return ``log Σ_k exp s_k`` of each row; −inf where all scores are."""
    top = scores.max(axis=1)
    finite = np.where(np.isfinite(top), top, 0.0).astype(scores.dtype)
    with np.errstate(divide="ignore"):
        return np.asarray(finite + np.log(np.exp(scores - finite[:, None]).sum(axis=1)))


def posterior(scores: Array) -> Array:
    """Return ``p(k | x)`` from scores that are right up to a constant per row."""
    p = scores - scores.max(axis=1)[:, None]
    np.exp(p, out=p)
    p /= p.sum(axis=1)[:, None]
    return np.asarray(p)


def log_posterior(scores: Array) -> Array:
    """Return ``log p(k | x)`` from scores that are right up to a constant per row."""
    return np.asarray(scores - log_sum_exp(scores)[:, None])


def log_likelihood(moments: Moments, log_priors: Array, log_dets: Any, ranks: Any, traces: float) -> float:
    """Return ``Σ s_i log(π_k N(x_i; μ_k, Σ_k))`` over the samples that the moments describe.

    ``traces`` is ``Σ_k tr(Σ_k⁺ S_k)``.
    """
    seen = moments.weight > 0
    each = np.asarray(log_priors - 0.5 * (log_dets + np.asarray(ranks) * LOG_2PI))
    return float(moments.weight[seen] @ each[seen] - 0.5 * traces)
