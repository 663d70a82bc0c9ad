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


def joint(K, classes, upper):
    """``min ½ Σ_k‖w_k‖² + Σ u ξ`` subject to ``(w_c − w_k)·x ≥ 1 − ξ`` for all ``k ≠ c``, ``ξ ≥ 0``."""
    F, n = vectors(K), len(classes)
    r, m = F.shape[1], int(classes.max()) + 1
    rows = []
    for i, c in enumerate(classes):
        for k in set(range(m)) - {c}:
            row = np.zeros(m * r + n)
            row[c * r : (c + 1) * r], row[k * r : (k + 1) * r], row[m * r + i] = -F[i], F[i], -1.0
            rows.append(row)
    G = np.vstack([*rows, np.hstack([np.zeros((n, m * r)), -np.eye(n)])])
    h = np.concatenate([-np.ones(len(rows)), np.zeros(n)])
    z, value = _solve(m * r, np.concatenate([np.zeros(m * r), upper]), G, h)
    return value, F @ z[: m * r].reshape(m, r).T


def exact_kernel(model, A, B):
    """Kernel values of a fitted machine in long double; for linear, polynomial and RBF kernels."""
    A, B = (np.asarray(part, dtype=np.longdouble) for part in (A, B))
    products, gamma = A @ B.T, np.longdouble(getattr(model.kernel_, "gamma", 1.0))
    if model.kernel == "linear":
        return products
    if model.kernel == "poly":
        return (gamma * products + np.longdouble(model.coef0)) ** model.degree
    squares = [np.sum(part * part, axis=1) for part in (A, B)]
    return np.exp(-gamma * np.maximum(squares[0][:, None] + squares[1][None, :] - 2 * products, 0))


def _exact_sums(model, X):
    """Coefficients, ``w'w`` and the scores without intercept of a machine, in long double."""
    beta, support = model.dual_coef_[0].astype(np.longdouble), X[model.support_]
    return beta, beta @ (exact_kernel(model, support, support) @ beta), exact_kernel(model, X, support) @ beta


def exact_regression(model, X, targets):
    """Primal and dual value of a fitted regression, in long double; of a ν-regression with the best tube."""
    beta, square, scores = _exact_sums(model, X)
    targets = targets.astype(np.longdouble)
    away = np.sort(np.abs(targets - scores - np.longdouble(model.intercept_[0])))
    dual = -square / 2 + beta @ targets[model.support_]
    if hasattr(model, "epsilon"):
        outside = np.maximum(away - np.longdouble(model.epsilon), 0).sum()
        return square / 2 + model.C * outside, dual - np.longdouble(model.epsilon) * np.abs(beta).sum()
    beyond = np.cumsum(away[::-1])[::-1] - away * np.arange(away.size, 0, -1)
    return square / 2 + model.C * np.min(beyond + model.nu * away.size * away), dual


def exact_one_class(model, X):
    """Primal and dual value of a fitted one-class machine, in long double."""
    _, square, scores = _exact_sums(model, X)
    rho = np.longdouble(model.offset_[0])
    outside = np.maximum(rho - scores, 0).sum()
    return square / 2 - np.longdouble(model.nu) * len(X) * rho + outside, -square / 2
