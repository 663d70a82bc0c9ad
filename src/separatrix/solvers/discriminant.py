r"""Discriminant directions, in the conventions of scikit-learn.

With ``W Wᵀ = Σ⁺`` of the covariance within classes, the discriminant directions are ``W V``: the columns of
``V`` are the eigenvectors of ``Wᵀ Σ_b W`` (``Σ_b``: covariance between classes), largest eigenvalue first.
They do not depend on which ``W`` is taken.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from separatrix.data.view import Array
from separatrix.solvers.covariance import Factor


def directions_of_means(
    means: Array, centre: Array, shares: Array, factor: Factor, tol: float
) -> tuple[Array, Array]:
    """Return directions ``W V`` and the share of the variance between class means along each.

    Parameters
    ----------
    means, centre : ndarray of shape (K, d) and (d,)
        Class means and their weighted mean.
    shares : ndarray of shape (K,)
        Weights of the classes.
    factor : Factor
        Factor of the covariance within classes.
    tol : float
        Directions whose singular value is up to ``tol`` times the largest are left out.

    Returns
    -------
    directions : ndarray of shape (d, rank)
    ratios : ndarray of shape (min(K, rank of the covariance),)
        They sum to 1.
    """
    spread = np.sqrt(shares)[:, None] * ((means - centre) @ factor.whitening)
    _, sigma, Vt = linalg.svd(spread, full_matrices=False)
    kept = int(np.sum(sigma > tol * sigma[0])) if sigma.size else 0
    total = np.square(sigma).sum()
    ratios = np.square(sigma) / total if total > 0 else np.zeros_like(sigma)
    return factor.whitening @ Vt.T[:, :kept], ratios


def directions_of_covariance(between: Array, factor: Factor) -> tuple[Array, Array]:
    """Return all generalised eigenvectors of (between, within), and their shares of the eigenvalues' sum."""
    W = factor.whitening
    values, vectors = linalg.eigh(W.T @ between @ W)
    order = np.argsort(values)[::-1]
    total = values.sum()
    return W @ vectors[:, order], values[order] / total if total else values[order]
