r"""The pieces of joint (Crammer–Singer) duals: exact steps within products of simplices.

A sample's dual variables ``μ_i`` are a point of the simplex, ``α_i = C_i (t_i − μ_i)``. With ``h`` the scores
plus 1 for rivals, a change ``d`` of ``μ`` raises the dual by ``Σ_i C_i d_i·h_i − ½‖Σ_i C_i d_i ⊗ x_i‖²``.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from separatrix.data.view import Array

#: What part of the variables that fall may end at 0 in a step: these are tried.
_SHARES = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)


def project(V: Array) -> Array:
    """Return the point of the simplex that is nearest to each row, by sorting.

    Examples
    --------
    >>> import numpy as np
    >>> project(np.array([[0.5, 0.9, -1.0], [3.0, 0.0, 0.0]])).round(2).tolist()
    [[0.3, 0.7, 0.0], [1.0, 0.0, 0.0]]
    """
    ordered = -np.sort(-V, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    counts = np.arange(1, V.shape[1] + 1)
    last = np.count_nonzero(ordered * counts > excess, axis=1) - 1
    beta = excess[np.arange(V.shape[0]), last] / (last + 1)
    return np.asarray(np.maximum(V - beta[:, None], 0.0))


def freedom(mu: Array) -> Array:
    """Return how many directions of each row stay within the simplex both ways."""
    return np.asarray(np.count_nonzero(mu, axis=1) - 1)


def newton_direction(mu: Array, h: Array, cost: Array, gram: Array) -> Array:
    """Return a change of ``μ`` towards the maximum over the classes that each sample uses.

    Parameters
    ----------
    mu, h : ndarray of shape (m, K)
        Dual variables and scores (with 1 added for rivals) of samples that use two classes at least.
    cost : ndarray of shape (m,)
        Their ``C_i``.
    gram : ndarray of shape (m, m)
        Inner products of these samples.

    Returns
    -------
    ndarray of shape (m, K)
        A feasible change: ``μ`` plus any part of it is in the simplex.
    """
    m, K = mu.shape
    every, lead = np.arange(m), mu.argmax(axis=1)
    free = mu > 0
    free[every, lead] = False
    i, k = np.nonzero(free)
    signs = np.eye(K)[lead[i]] - np.eye(K)[k]
    H = (signs @ signs.T) * gram[np.ix_(i, i)]
    H *= cost[i][:, None] * cost[i]
    g = cost[i] * (h[i, k] - h[i, lead[i]])
    # Where samples depend on each other the maximum lies at the border: there the projection decides.
    H[np.diag_indices_from(H)] += 1e-10 * max(float(H.diagonal().max()), 1e-300)
    _, v, info = lapack.dposv(H, g, lower=0, overwrite_a=1)
    if info != 0:
        return np.zeros_like(mu)
    V = np.zeros_like(mu)
    V[i, k] = v
    np.subtract.at(V, (i, lead[i]), v)
    return _along_the_arc(mu, V, h, cost, gram)


def _along_the_arc(mu: Array, V: Array, h: Array, cost: Array, gram: Array) -> Array:
    """Return the best of some changes ``project(μ + t V) − μ``: for longer steps more variables end at 0."""
    falling = V < 0
    ends = np.sort(mu[falling] / -V[falling])
    parts = [ends[int(share * (len(ends) - 1))] for share in _SHARES] if len(ends) else []
    best, found = 0.0, np.zeros_like(mu)
    for t in sorted({min(1.0, float(part)) for part in (*parts, 1.0)}):
        d = project(mu + t * V) - mu
        change = cost[:, None] * d
        gain = float((change * h).sum() - 0.5 * (change * (gram @ change)).sum())
        if gain > best:
            best, found = gain, d
    return found


def best_part(slope: float, curvature: float) -> float:
    """Return the part of a direction, 1 at most, with the largest gain ``t slope − ½ t² curvature``."""
    if not slope > 0:
        return 0.0
    return 1.0 if curvature <= slope else slope / curvature
