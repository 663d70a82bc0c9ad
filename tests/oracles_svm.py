"""Support vector machines as quadratic programmes, straight from their primal problems.

A kernel matrix is ``K = F Fᵀ`` for explicit vectors, the rows of ``F``; the primal problem in
``(w, b, ξ[, ρ or ε])`` with ``f = F w + b`` shares nothing with a dual method. An interior-point solver gives
its value.
"""

from __future__ import annotations

import numpy as np
import qpsolvers
from scipy import sparse


def vectors(K):
    """Rows ``F`` with ``F Fᵀ = K``."""
    values, directions = np.linalg.eigh(K)
    kept = values > 1e-11 * values[-1]
    return directions[:, kept] * np.sqrt(values[kept])


def _solve(r, q, G, h):
    """``min ½‖z[:r]‖² + q·z`` subject to ``G z ≤ h``: the solution and the value."""
    P = sparse.diags_array(np.concatenate([np.ones(r), np.zeros(len(q) - r)]), format="csc")
    P, G = sparse.csc_matrix(P), sparse.csc_matrix(G)
    z = qpsolvers.solve_qp(P, q, G, h, solver="clarabel", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    return z, float(0.5 * z[:r] @ z[:r] + q @ z)


def classification(K, y, upper):
    """``min ½‖w‖² + Σ u ξ`` subject to ``y f ≥ 1 − ξ``, ``ξ ≥ 0``: the value and the scores."""
    F, n = vectors(K), len(y)
    r = F.shape[1]
    q = np.concatenate([np.zeros(r + 1), upper])
    margin = np.hstack([-y[:, None] * F, -y[:, None], -np.eye(n)])
    G = np.vstack([margin, np.hstack([np.zeros((n, r + 1)), -np.eye(n)])])
    z, value = _solve(r, q, G, np.concatenate([-np.ones(n), np.zeros(n)]))
    return value, F @ z[:r] + z[r]


def nu_classification(K, y, upper, nu):
    """``min ½‖w‖² − ν Σu ρ + Σ u ξ`` subject to ``y f ≥ ρ − ξ``: the value and the scores divided by ρ."""
    F, n = vectors(K), len(y)
    r = F.shape[1]
    q = np.concatenate([np.zeros(r + 1), upper, [-nu * upper.sum()]])
    margin = np.hstack([-y[:, None] * F, -y[:, None], -np.eye(n), np.ones((n, 1))])
    slack = np.hstack([np.zeros((n, r + 1)), -np.eye(n), np.zeros((n, 1))])
    z, value = _solve(r, q, np.vstack([margin, slack]), np.zeros(2 * n))
    return value, (F @ z[:r] + z[r]) / z[-1]


def regression(K, t, upper, epsilon=None, nu=None):
    """``min ½‖w‖² + Σ u (ξ + ξ*) [+ ν Σu ε]`` subject to ``|t − f| ≤ ε + ξ``: the value and predictions."""
    F, n = vectors(K), len(t)
    r = F.shape[1]
    learnt = nu is not None
    q = np.concatenate([np.zeros(r + 1), upper, upper, [nu * upper.sum()] if learnt else []])
    eye, none, one = np.eye(n), np.zeros((n, n)), np.ones((n, 1))
    tube = one if learnt else np.empty((n, 0))
    G = [
        np.hstack([-F, -one, -eye, none, -tube]),
        np.hstack([F, one, none, -eye, -tube]),
        np.hstack([0 * F, 0 * one, -eye, none, 0 * tube]),
        np.hstack([0 * F, 0 * one, none, -eye, 0 * tube]),
    ]
    given = 0.0 if learnt else epsilon
    h = [-t + given, t + given, np.zeros(2 * n)]
    if learnt:
        G.append(np.concatenate([np.zeros(r + 1 + 2 * n), [-1.0]])[None, :])
        h.append([0.0])
    z, value = _solve(r, q, np.vstack(G), np.concatenate(h))
    return value, F @ z[:r] + z[r]


def one_class(K, upper, nu):
    """``min ½‖w‖² − ν Σu ρ + Σ u ξ`` subject to ``F w ≥ ρ − ξ``: the value and the scores ``F w − ρ``."""
    F, n = vectors(K), len(upper)
    r = F.shape[1]
    q = np.concatenate([np.zeros(r), upper, [-nu * upper.sum()]])
    margin = np.hstack([-F, -np.eye(n), np.ones((n, 1))])
    slack = np.hstack([np.zeros((n, r)), -np.eye(n), np.zeros((n, 1))])
    z, value = _solve(r, q, np.vstack([margin, slack]), np.zeros(2 * n))
    return value, F @ z[:r] - z[-1]
