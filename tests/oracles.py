"""Slow, readable references, written straight from the formulas."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
from scipy import sparse


def codes_of(name: str, n_classes: int) -> np.ndarray:
    """Rows: classes; columns: binary problems; +1, -1 or 0."""
    if name == "ovo" and n_classes > 2:
        pairs = list(combinations(range(n_classes), 2))
        return np.array([[(k == i) * 1 - (k == j) * 1 for i, j in pairs] for k in range(n_classes)])
    if n_classes == 2 and name != "joint":
        return np.array([[-1], [1]])
    return 2 * np.eye(n_classes, dtype=int) - 1


class SlowPerceptron:
    """The perceptron family, sample by sample, on augmented vectors (1, x)."""

    def __init__(self, n_classes, n_features, *, name="joint", eta=1.0, margin=0.0, fit_intercept=True):
        self.name, self.eta, self.margin = name, eta, margin
        self.constant = 1.0 if fit_intercept else 0.0
        self.codes = codes_of(name, n_classes)
        self.a = np.zeros((self.codes.shape[1], n_features + 1))
        self.seen = []
        self.mistakes = 0
        self.active = np.ones(self.codes.shape[1], dtype=bool)

    def present(self, x, c, weight=1.0):
        """One presentation; returns the columns that changed."""
        xt = np.concatenate([[self.constant], x])
        scores = self.a @ xt
        changed = set()
        if self.name == "joint":
            if any(s > scores[c] or (s == scores[c] and k < c) for k, s in enumerate(scores) if k != c):
                self.mistakes += 1
            for k in range(len(scores)):
                if k != c and scores[k] + self.margin > scores[c]:
                    self.a[k] -= self.eta * weight * xt
                    changed.add(k)
            if changed:
                self.a[c] += self.eta * weight * xt
                changed.add(c)
        else:
            for k, y in enumerate(self.codes[c]):
                if y == 0 or not self.active[k]:
                    continue
                m = y * scores[k]
                self.mistakes += m <= 0
                if m <= 0 or m < self.margin:
                    self.a[k] += y * self.eta * weight * xt
                    changed.add(k)
        self.seen.append((self.a.copy(), weight))
        return changed

    def run_pass(self, X, classes, weights=None):
        """Present every sample as often as its weight says; returns whether anything changed."""
        touched = set()
        for i, (x, c) in enumerate(zip(X, classes, strict=True)):
            left = 1.0 if weights is None else weights[i]
            while left > 0:
                touched |= self.present(x, c, min(1.0, left))
                left -= min(1.0, left)
        if self.name != "joint":
            self.active &= [k in touched for k in range(len(self.active))]
        return bool(touched)

    def average(self):
        return sum(w * a for a, w in self.seen) / sum(w for _, w in self.seen)


def margin_errors(a, X, classes, weights, margin, name, codes, constant=1.0):
    """Weighted margin errors: one number where the largest score wins, else one per column."""
    Xt = np.column_stack([np.full(len(X), constant), X])
    F = Xt @ a.T
    s = np.ones(len(X)) if weights is None else weights
    if name == "joint" or (name == "ovr" and codes.shape[1] > 1):
        errors = 0.0
        for f, c, w in zip(F, classes, s, strict=True):
            rivals = [k for k in range(len(f)) if k != c]
            beaten = int(np.argmax(f)) != c
            errors += w * (beaten or max(f[k] for k in rivals) + margin > f[c])
        return np.array([errors])
    out = np.zeros(codes.shape[1])
    for f, c, w in zip(F, classes, s, strict=True):
        for k, y in enumerate(codes[c]):
            if y != 0:
                predicted = 1 if f[k] >= 0 else -1
                out[k] += w * (predicted != y or y * f[k] < margin)
    return out


def shuffle(order, state):
    """Fisher-Yates with SplitMix64, as in _hot/random.hpp."""
    mask = (1 << 64) - 1
    order = list(order)
    for last in range(len(order) - 1, 0, -1):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        pick = ((z >> 32) * (last + 1)) >> 32
        order[last], order[pick] = order[pick], order[last]
    return order, state


def permute(order, seed):
    """Fisher-Yates upwards with a 32-bit xorshift, as in _hot/random.hpp."""
    order, bits = list(order), seed or 1
    for at in range(len(order) - 1):
        bits ^= (bits << 13) & 0xFFFFFFFF
        bits ^= bits >> 17
        bits ^= (bits << 5) & 0xFFFFFFFF
        pick = at + (bits & 0x7FFFFFFF) % (len(order) - at)
        order[at], order[pick] = order[pick], order[at]
    return order


def penalised_objective(X, y, coef, intercept, l1, l2, joint):
    """Sum of logistic or softmax losses plus l1 |W| + l2/2 |W|^2; y holds class numbers."""
    W, b = np.asarray(coef, dtype=float), np.asarray(intercept, dtype=float)
    F = np.asarray(X, dtype=float) @ W.T + b
    if joint:
        losses = np.logaddexp.reduce(F, axis=1) - F[np.arange(len(y)), y]
    else:
        losses = np.logaddexp(0.0, -(2 * y - 1) * F[:, 0])
    return losses.sum() + l1 * np.abs(W).sum() + 0.5 * l2 * np.square(W).sum()


def penalised_logistic(X, y, l1, l2, joint, fit_intercept):
    """Smallest penalised objective, by L-BFGS-B on the split W = U - V with U, V >= 0."""
    from scipy.optimize import minimize

    n, d = X.shape
    P = int(y.max()) + 1 if joint else 1

    def value(z):
        U, V, b = z[: P * d].reshape(P, d), z[P * d : 2 * P * d].reshape(P, d), z[2 * P * d :]
        W = U - V
        F = X @ W.T + b
        if joint:
            total = np.logaddexp.reduce(F, axis=1)
            R = np.exp(F - total[:, None])
            R[np.arange(n), y] -= 1
            loss = (total - F[np.arange(n), y]).sum()
        else:
            c = 2 * y - 1
            loss = np.logaddexp(0.0, -c * F[:, 0]).sum()
            R = (-c / (1 + np.exp(c * F[:, 0])))[:, None]
        G = R.T @ X + l2 * W
        gradient = np.concatenate([(G + l1).ravel(), (l1 - G).ravel(), R.sum(axis=0) * fit_intercept])
        return loss + l1 * (U + V).sum() + 0.5 * l2 * np.square(W).sum(), gradient

    free = (None, None) if fit_intercept else (0.0, 0.0)
    bounds = [(0.0, None)] * (2 * P * d) + [free] * P
    options = {"maxiter": 3000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 30}
    return minimize(value, np.zeros(2 * P * d + P), jac=True, method="L-BFGS-B", bounds=bounds,
                    options=options).fun  # fmt: skip


def quadratic_programme(P, q, G=None, h=None, A=None, b=None, lb=None, ub=None):
    """min ½ x'Px + q'x with G x ≤ h, A x = b, lb ≤ x ≤ ub, by an interior-point method."""
    from qpsolvers import solve_qp
    from scipy.sparse import csc_matrix

    P, G, A = (None if M is None else csc_matrix(M) for M in (P, G, A))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Clarabel.*AlmostSolved")  # to 5e-5 instead of 1e-8
        return solve_qp(P, q, G, h, A, b, lb, ub, solver="clarabel")


def slow_smo(K, problem, tol, max_steps):
    """Sequential minimal optimisation, pair by pair; returns the variables and the number of steps."""
    s, u, a = problem.signs, problem.upper, problem.start.copy()
    K = K[np.ix_(problem.rows, problem.rows)]
    E = s * (s * (K @ (s * a)) + problem.linear)
    diag, steps = np.diagonal(K), 0
    while True:
        up, low = np.where(s > 0, a < u, a > 0), np.where(s > 0, a > 0, a < u)
        best, pair, worst = 0.0, None, -np.inf
        for group in (s > 0, s < 0) if problem.separate else (s != 0,):
            if not (up & group).any() or not (low & group).any():
                continue
            i = int(np.argmin(np.where(up & group, E, np.inf)))
            worst = max(worst, float(E[low & group].max() - E[i]))
            b = np.where(low & group, np.maximum(E - E[i], 0), 0)
            gain = b**2 / np.maximum(diag[i] + diag - 2 * K[i], 1e-12 * diag[i])
            if gain.max() > best:
                best, pair = gain.max(), (i, int(np.argmax(gain)))
        if worst <= tol or pair is None or steps == max_steps:
            return a, steps
        i, j = pair
        delta = (E[j] - E[i]) / max(diag[i] + diag[j] - 2 * K[i, j], 1e-12 * (diag[i] + diag[j]))
        delta = min(delta, u[i] - a[i] if s[i] > 0 else a[i], a[j] if s[j] > 0 else u[j] - a[j])
        a[i] = np.clip(a[i] + s[i] * delta, 0, u[i])
        a[j] = np.clip(a[j] - s[j] * delta, 0, u[j])
        E += delta * (K[i] - K[j])
        steps += 1


def dual_meaning(problem, a, gradient, diag, unit, doubt):
    """What a dual point of one support vector machine means, from the formulas in solvers/machines.py."""
    s, u, p = problem.signs, problem.upper, problem.linear
    empty, full = a <= 0, a >= u
    free, counts = ~(empty | full), u > 0

    def level(values, among, below, above):
        if (free & among).any():
            return values[free & among].mean()
        low = values[below & among & counts].max(initial=-np.inf)
        high = values[above & among & counts].min(initial=np.inf)
        ends = [end for end in (low, high) if np.isfinite(end)]
        return np.mean(ends) if ends else 0.0

    rho = 0.0
    if problem.separate:
        first, second = (level(gradient, s == sign, full, empty) for sign in (1, -1))
        rho, b = (first + second) / 2, (second - first) / 2
    else:
        # s a of a variable at a bound may only grow, or only fall.
        b = -level(s * gradient, s != 0, np.where(s > 0, full, empty), np.where(s > 0, empty, full))
    h = gradient + s * b - rho
    slack = np.maximum(-h, 0)
    rounding = 4.0 * 2.0**-53 * (a**2 @ np.abs(diag[problem.rows]))
    square = a @ (gradient - p)
    rounding += 2 * max(0.0, -square)
    roots = np.sqrt(np.abs(diag[problem.rows]))
    if np.isfinite(u).all():
        error = doubt + unit * roots * np.linalg.norm(a * roots)
        ends = [a * np.maximum(end, 0) + (u - a) * np.maximum(-end, 0) for end in (h - error, h, h + error)]
        rounding += float(np.sum(np.maximum(ends[0], ends[2]) - ends[1]))
    dual = -0.5 * (a @ (gradient + p)) - 0.5 * rounding
    if np.isinf(u[0]):
        stretched = 0.5 * square / (1 - slack.max()) ** 2 if slack.max() < 1 else np.inf
        primal = stretched if (p == -1).all() else np.inf
    else:
        primal = dual + a @ h + u @ slack + rounding
    gap, size = primal - dual, max(abs(primal), abs(dual))
    length, traces = a @ roots, (2.0**-52 * a.sum() * roots.max()) ** 2
    below = -max(1e-6 * length**2, traces)
    return {
        "coef": s * a,
        "slack": slack,
        "intercept": b,
        "rho": rho,
        "square": square,
        "primal": primal,
        "dual": dual,
        "gap": gap,
        "relative_gap": gap / size if 0 < size < np.inf else np.inf if gap else 0.0,
        "rounding": rounding,
        "vanishes": not p.any() and below <= square <= max(1e-9 * length**2, traces),
        "indefinite": square < below,
    }


def crammer_singer_epoch(X, classes, cost, constant, order):
    """Exact steps for one sample after the other of the joint SVM's dual, the projection by sorting.

    Returns μ, the weights by feature (the last row is the constant's), and the gain of the dual from α = 0.
    """
    X = np.column_stack([np.asarray(X, dtype=float), np.full(len(X), constant)])
    K = int(classes.max()) + 1
    mu, W, gain = np.eye(K)[classes], np.zeros((X.shape[1], K)), 0.0
    for i in order:
        h = X[i] @ W + 1.0
        h[classes[i]] -= 1.0
        q = cost[i] * X[i] @ X[i]
        D = h / q + mu[i]
        ordered = np.sort(D)[::-1]
        excess = np.cumsum(ordered) - 1.0
        last = np.flatnonzero(ordered * np.arange(1, K + 1) > excess)[-1]
        fresh = np.maximum(D - excess[last] / (last + 1), 0.0)
        d = fresh - mu[i]
        gain += cost[i] * (d @ h - 0.5 * q * d @ d)
        W -= cost[i] * np.outer(X[i], d)
        mu[i] = fresh
    return mu, W, gain


def by_row_order(distances, k):
    """The k least of each line and their columns, equal ones by column: the definition."""
    columns = np.broadcast_to(np.arange(distances.shape[1]), distances.shape)
    order = np.lexsort((columns, distances), axis=1)[:, :k]
    return np.take_along_axis(distances, order, 1), order


def squared_distances(Q, A):
    """Differences in double precision, summed as they come."""
    return ((Q[:, None, :].astype(float) - A[None, :, :].astype(float)) ** 2).sum(axis=2)


def one_hot_solution(X, y, alpha=0.0, weights=None, fit_intercept=True):
    """Shortest W, and b, by lstsq on the weighted centred data, one row per class."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    T = np.eye(y.max() + 1)[y]
    s = np.ones(len(y)) if weights is None else weights
    mean, t = (np.average(A, axis=0, weights=s) if fit_intercept else np.zeros(A.shape[1]) for A in (X, T))
    A, B = np.sqrt(s)[:, None] * (X - mean), np.sqrt(s)[:, None] * (T - t)
    A = np.vstack([A, np.sqrt(alpha) * np.eye(X.shape[1])])
    B = np.vstack([B, np.zeros((X.shape[1], T.shape[1]))])
    W = np.linalg.lstsq(A, B, rcond=None)[0]
    return W.T, t - mean @ W
