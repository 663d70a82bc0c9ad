r"""Covariances: factors, shrinkage, spectra.

A covariance ``Σ = D R D`` is factorised through its correlations ``R`` (``D``: standard deviations), so that
units of 1e-8 and of 1e8 side by side cost no digits. Where ``R`` is regular, ``W = D⁻¹ L⁻ᵀ`` with the
Cholesky factor ``R = L Lᵀ`` has ``W Wᵀ = Σ⁻¹``; else the eigenvalues of ``R`` tell the rank, and ``W``
belongs to the pseudo-inverse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from separatrix.data.threads import one_thread_for, single_threaded
from separatrix.data.view import BLOCK_BYTES, Array, DataView

EPS = float(np.finfo(np.float64).eps)
#: Share of a feature's variance, less what others explain, that is nothing but rounding.
_NONE = 1e-10
#: Features below which a spectrum is found in one thread.
_FEW = 256


@dataclass(frozen=True, eq=False)
class Factor:
    """``whitening`` W, of shape (d, r), with ``W Wᵀ`` a (pseudo-)inverse of ``Σ``, and ``log det Σ``.

    Where ``Σ`` is singular, the determinant is the product of its other eigenvalues.
    """

    whitening: Array
    log_det: float

    @property
    def rank(self) -> int:
        """Rank of the covariance."""
        return int(self.whitening.shape[1])


def factorise(cov: Array, size: Array | None = None, *, tol: float = 0.0, own_units: bool = False) -> Factor:
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
    own_units : bool
        Whether a singular covariance gets the pseudo-inverse in the features' own units; else that in
        units of their standard deviations. On the subspace of the data they are the same.
    """
    d = cov.shape[0]
    std = np.sqrt(np.maximum(np.diag(cov), 0.0))
    varies = std > (0.0 if size is None else 8 * EPS * np.abs(size))
    if not varies.all():
        part = factorise(cov[np.ix_(varies, varies)], tol=tol, own_units=own_units) if varies.any() else None
        whitening = np.zeros((d, part.rank if part else 0))
        if part:
            whitening[varies] = part.whitening
        return Factor(whitening, part.log_det if part else 0.0)
    R = cov / std
    R /= std[:, None]
    floor = max(tol, 16 * d * EPS)
    with one_thread_for(d):
        factor = _by_cholesky(R, std, floor)
    if factor is not None:
        return factor
    values, vectors = _correlation_spectrum(R)
    return _by_spectrum(values, vectors, std, floor, own_units)


def _by_cholesky(R: Array, std: Array, floor: float) -> Factor | None:
    """Return the factor of ``D R D``, None where ``R`` may be singular."""
    lower, failed = linalg.lapack.dpotrf(R, lower=1, clean=1)
    if failed:
        return None
    # ‖R⁻¹‖₁ bounds 1/λ_min from above; LAPACK's estimate of it is hardly ever 3 times too small.
    norm = float(np.abs(R).sum(axis=0).max())
    inverse_condition, _ = linalg.lapack.dpocon(lower, norm, uplo="L")
    if inverse_condition * norm <= 10 * floor:
        return None
    inverse, _ = linalg.lapack.dtrtri(lower, lower=1)
    log_det = 2.0 * float(np.log(np.diag(lower)).sum() + np.log(std).sum())
    return Factor(np.ascontiguousarray((inverse / std).T), log_det)


def factorise_rows(rows: Array, size: Array, *, tol: float = 0.0) -> Factor:
    """Factorise ``AᵀA`` from ``A``, which has fewer rows than columns: no matrix of d × d is formed.

    ``R = (A D⁻¹)ᵀ (A D⁻¹)`` has the spectrum of the small ``(A D⁻¹)(A D⁻¹)ᵀ``.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        ``A``.
    size, tol
        As in :func:`factorise`.
    """
    d = rows.shape[1]
    std = np.sqrt(np.einsum("ij,ij->j", rows, rows))
    varies = std > 8 * EPS * np.abs(size)
    A = rows[:, varies] / std[varies]
    values, left = np.linalg.eigh(A @ A.T)
    positive = values > 0
    values, left = values[positive], left[:, positive]
    whitening = np.zeros((d, 0))
    if not values.size:
        return Factor(whitening, 0.0)
    part = _by_spectrum(values, A.T @ (left / np.sqrt(values)), std[varies], max(tol, 16 * d * EPS), False)
    if varies.all():
        return part
    whitening = np.zeros((d, part.rank))
    whitening[varies] = part.whitening
    return Factor(whitening, part.log_det)


def _by_spectrum(values: Array, vectors: Array, std: Array, floor: float, own_units: bool) -> Factor:
    """Return the factor of ``D V Λ Vᵀ D`` without the eigenvalues that are rounding errors."""
    kept = values > max(floor, floor * values[-1])
    vectors, values = vectors[:, kept], values[kept]
    if values.shape[0] == std.shape[0]:
        log_det = float(np.log(values).sum() + 2.0 * np.log(std).sum())
        return Factor(vectors / np.sqrt(values) / std[:, None], log_det)
    # Σ = B Bᵀ = Q T Tᵀ Qᵀ, so that Σ⁺ = Q T⁻ᵀ T⁻¹ Qᵀ in the features' own units.
    Q, T = linalg.qr(std[:, None] * vectors * np.sqrt(values), mode="economic")
    standard = vectors / np.sqrt(values) / std[:, None]
    whitening = np.ascontiguousarray(linalg.solve_triangular(T, Q.T).T) if own_units else standard
    return Factor(whitening, 2.0 * float(np.log(np.abs(np.diag(T))).sum()))


def _correlation_spectrum(R: Array) -> tuple[Array, Array]:
    """Return eigenvalues above rounding error, smallest first, and eigenvectors of a singular correlation.

    Few samples of many features give a matrix of low rank: a Cholesky factorisation with pivots ends at
    the rank ``r`` after ``d r²`` operations, and ``R = L Lᵀ`` has the spectrum of the small ``Lᵀ L``.
    """
    d = R.shape[0]
    lower, pivots, rank, _ = linalg.lapack.dpstrf(R, lower=1, tol=d * EPS)
    if 2 * rank >= d:
        values, vectors = np.linalg.eigh(R)
        return values, vectors
    L = np.empty((d, rank))
    L[pivots - 1] = np.tril(lower[:, :rank])
    values, vectors = np.linalg.eigh(L.T @ L)
    positive = values > 0
    return values[positive], L @ (vectors[:, positive] / np.sqrt(values[positive]))


def least_correlation(scatter: Array) -> float:
    """Return about the least eigenvalue of the correlations, or a bound below it, that is not 0.

    Features in the order of pivots are independent up to the rank; by interlacing their least eigenvalue is
    no larger than that of all features.
    """
    varies = scatter.diagonal() > 0
    R = scatter[np.ix_(varies, varies)]
    std = np.sqrt(R.diagonal())
    R /= std
    R /= std[:, None]
    with one_thread_for(R.shape[0]):
        lower, _, rank, _ = linalg.lapack.dpstrf(R.T, lower=1, tol=_NONE, overwrite_a=1)
        # (With a norm of 1 it is 1/‖R⁻¹‖₁.)
        return float(linalg.lapack.dpocon(lower[:rank, :rank], 1.0, uplo="L")[0]) if rank else 1.0


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
    return oas_of(d, float(np.mean(np.square(cov))), float(np.trace(cov) / d) ** 2, n)


def oas_of(d: int, mean_square: float, level: float, n: float) -> float:
    """Return :func:`oas_amount` of ``d`` features, given the mean square and the mean variance's square."""
    if d == 1:
        return 0.0
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


def dense_pieces(block: Any) -> Iterator[tuple[slice, Array]]:
    """Yield a block in dense pieces of bounded size, with their rows."""
    if not hasattr(block, "tocsr"):
        yield slice(0, block.shape[0]), block
        return
    step = max(1, BLOCK_BYTES // (8 * max(1, block.shape[1])))
    for begin in range(0, block.shape[0], step):
        rows = slice(begin, min(begin + step, block.shape[0]))
        yield rows, block[rows].toarray()


def trace_product(factor: Factor, scatter: Array) -> float:
    """Return ``tr(Σ⁺ S)``."""
    return float(np.sum((scatter @ factor.whitening) * factor.whitening))


def spectrum(cov: Array) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors (columns) of a covariance.

    Features in very different units go by the singular values of ``D L`` (``Σ = D R D``, ``R = L Lᵀ``),
    whose squares keep small eigenvalues that lie below the rounding error of the largest.
    """
    variances = cov.diagonal()
    least, most = float(variances.min()), float(variances.max())
    if 0 < 1e8 * least < most:
        std = np.sqrt(variances)
        lower, failed = linalg.lapack.dpotrf(cov / std / std[:, None], lower=1, clean=1)
        if not failed:
            U, sigma, _ = linalg.svd(std[:, None] * lower)
            return np.square(sigma), U
    # Threads of small matrices wait for each other longer than they work.
    with single_threaded(cov.shape[0] ** 3 if cov.shape[0] < _FEW else 0):
        values, vectors = np.linalg.eigh(cov)
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


def factor_of_spectrum(cov: Array, values: Array, vectors: Array, size: Array) -> Factor:
    """Return the factor by the eigenvectors where they will do, else by :func:`factorise`.

    Eigenvectors mix the units of the features: between very different ones, or with eigenvalues near
    rounding error, they lose digits that correlations keep.
    """
    variances = cov.diagonal()
    least = variances.min()
    even = variances.max() <= 1e4 * least
    if even and values[-1] > 1e-8 * values[0] and least > np.square(EPS * size).max():
        return Factor(vectors / np.sqrt(values), float(np.log(values).sum()))
    return factorise(cov, size)
