r"""The squared hinge loss with an L1 penalty by an interior point method, where Newton steps crawl.

    min_{w,b}  Σ_i s_i max(0, 1 − y_i (w·x_i + b))² + Σ_j λ_j |w_j| + (λ₂/2) ‖w‖²

With C so large that the loss nearly vanishes this is about a linear programme: each step of another method
changes the side of many samples and stops at the first. With ``w = p − q``, ``G`` the slope of the smooth
part and ``u_i`` the multiplier of sample i, optimal are numbers x = (p, q, u) ≥ 0 whose partners

    z = (λ + G,  λ − G,  y_i f(x_i) − 1 + u_i / (2 s_i)) ≥ 0,        G = −Σ_i u_i y_i x_i + λ₂ w,

are 0 wherever they are not: ``x_i z_i = 0``. The method goes through points with ``x_i z_i = μ`` for falling
μ, some 20 to 40 steps whatever C is, each with a matrix of features or of samples, whichever are fewer
(predictor and corrector by Mehrotra, 1992).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from separatrix.data.view import Array, DataView
from separatrix.solvers._box_programme import way_to_zero

#: Most iterations; the way to the boundary that each goes at most.
_ITERATIONS, _WAY = 100, 0.995
#: Error, in units of the least so far, and length of a step at which rounding has taken over.
_WORSE, _SHORT = 1e3, 1e-6
#: Corrections of a solution of the linear equations by what it leaves of them.
_REFINEMENTS = 2
#: Multiply-adds of one matrix up to which the method takes seconds, and values of the samples, held thrice.
_WORK, _VALUES = 4e9, 1 << 23


def affordable(n: int, m: int) -> bool:
    """Return whether the method takes no more than seconds, and little memory, on n samples of m features."""
    return float(n) * m * min(n, m) <= _WORK and n * m <= _VALUES


def chosen_rows(view: DataView, rows: Array, features: Array) -> Array:
    """Return some features of some samples, in order, in double precision."""
    chosen, out = np.zeros(view.shape[0], dtype=bool), np.empty((rows.shape[0], features.shape[0]))
    chosen[rows] = True
    begin = 0
    for where, block in view.blocks():
        part: Any = block[np.flatnonzero(chosen[where])][:, features]
        out[begin : begin + part.shape[0]] = part.toarray() if hasattr(part, "toarray") else part
        begin += part.shape[0]
    return out


def l1_programme(
    X: Array,
    y: Array,
    s: Array,
    factors: Array,
    l2: float,
    free: bool,
    tol: float,
    expired: Callable[[], bool] = lambda: False,
) -> tuple[Array, float, Array] | None:
    """Return weights, intercept and multipliers ``u`` of the problem above; None if there are none.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Samples.
    y, s : ndarray of shape (n,)
        Signs, and positive factors of the loss.
    factors : ndarray of shape (m,)
        The penalties λ_j > 0.
    l2 : float
        The penalty λ₂ ≥ 0.
    free : bool
        Whether there is an intercept, which has no penalty; both signs must occur then.
    tol : float
        Relative duality gap to reach.
    expired : callable
        Tells whether time is up.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[-1.0, 0.5], [-2.0, 0.1], [1.0, 0.3], [3.0, 0.2]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> w, b, u = l1_programme(X, y, np.full(4, 1e6), np.ones(2), 0.0, True, 1e-9)
    >>> w.round(5).tolist(), u.round(5).tolist()
    ([1.0, 0.0], [0.5, 0.0, 0.5, 0.0])
    """
    if free and not (np.any(y > 0) and np.any(y < 0)):
        return None
    m, A = X.shape[1], y[:, None] * X
    lengths = np.sqrt(np.einsum("ij,ij->j", A, A))
    x, z = _start(s, factors, lengths)
    b, best, least, kept, zeros = 0.0, np.inf, np.inf, None, np.zeros(m, dtype=bool)
    for _ in range(_ITERATIONS):
        u, w = x[2 * m :], x[:m] - x[m : 2 * m]
        V, margins = A.T @ u, A @ w + b * y
        G = l2 * w - V
        rest = np.concatenate([factors + G, factors - G, margins - 1.0 + u / (2.0 * s)]) - z
        unbalanced = float(y @ u) if free else 0.0
        mu = float(x @ z) / x.size
        primal = _objective(w, margins, s, factors, l2)
        distance = primal - _bound(V, u, s, factors, l2) + abs(unbalanced) * (1.0 + abs(b))
        if distance < best:
            best, kept, zeros = distance, (w, b, u), _vanishing(x, z, w, factors, lengths)
        # In the end the systems are so ill-conditioned that steps lead away again.
        error = float(x @ (z + np.abs(rest)))
        least = min(least, error)
        if distance <= tol * primal or expired() or not error < _WORSE * least:
            break
        try:
            system = _System(A, y, x, z, s, l2, free)
        except LinAlgError:
            break
        # Straight to the boundary, to see how much of μ can be taken away; then that, with its curvature.
        dx, dz, db = system.step(-x * z, rest, unbalanced)
        way = min(1.0, way_to_zero((x, dx), (z, dz)))
        ahead = float((x + way * dx) @ (z + way * dz)) / x.size
        dx, dz, db = system.step((ahead / mu) ** 3 * mu - x * z - dx * dz, rest, unbalanced)
        way = min(1.0, _WAY * way_to_zero((x, dx), (z, dz)))
        if not (way > _SHORT and np.isfinite(db)):
            break
        x, z, b = x + way * dx, z + way * dz, b + way * db
    if kept is None:
        return None
    w, b, u = kept
    # Weights that have all but vanished are 0, unless too much hangs on them.
    fewer = np.where(zeros, 0.0, w)
    before, after = (_objective(v, A @ v + b * y, s, factors, l2) for v in (w, fewer))
    return (fewer if after <= (1.0 + tol) * before else w), b, u


def _parts(x: Array, m: int) -> tuple[Array, Array, Array]:
    return x[:m], x[m : 2 * m], x[2 * m :]


def _start(s: Array, factors: Array, lengths: Array) -> tuple[Array, Array]:
    """Return a point amid all, with the same product for all: each sample has the multiplier of no weights.

    The partners of weights are as large as these multipliers can make the slopes.
    """
    u = 2.0 * s
    slack = factors + lengths * float(np.sqrt(u @ u))
    mu = float(u.mean())
    z = np.concatenate([slack, slack, mu / u])
    return mu / z, z


def _objective(w: Array, margins: Array, s: Array, factors: Array, l2: float) -> float:
    loss = float(s @ np.square(np.maximum(1.0 - margins, 0.0)))
    return loss + float(factors @ np.abs(w)) + 0.5 * l2 * float(w @ w)


def _bound(V: Array, u: Array, s: Array, factors: Array, l2: float) -> float:
    """Return the dual value of a multiple of ``u`` that is feasible."""
    scale = 1.0
    if l2 == 0:
        scale /= max(1.0, float((np.abs(V) / factors).max(initial=0.0)))
    value = scale * float(u.sum()) - scale**2 * float((np.square(u) / (4.0 * s)).sum())
    if l2 > 0:
        value -= float(np.square(np.maximum(np.abs(V) - factors, 0.0)).sum()) / (2.0 * l2)
    return value


def _vanishing(x: Array, z: Array, w: Array, factors: Array, lengths: Array) -> Array:
    """Return which weights are on their way to 0: those that have gone further than their partners."""
    m = w.size
    larger, smaller = np.maximum(x[:m], x[m : 2 * m]) * lengths, np.minimum(z[:m], z[m : 2 * m]) / factors
    return np.asarray(larger <= smaller * float((np.abs(w) * lengths).max(initial=0.0)))


class _System:
    """The linear equations of a step, by a factor of ``I + BᵀB`` or ``I + BBᵀ``, ``B = √h A √D``.

    ``dw = e + D Aᵀdu`` and ``du = h (ρ − A dw − y db)``: ``D`` and ``h`` say how weights and multipliers
    give way.
    """

    def __init__(self, A: Array, y: Array, x: Array, z: Array, s: Array, l2: float, free: bool) -> None:
        n, m = A.shape
        self.A, self.y, self.x, self.z, self.l2, self.free, self.m = A, y, x, z, l2, free, m
        ratio = x / z
        self.bend = 1.0 + l2 * (ratio[:m] + ratio[m : 2 * m])
        self.D = (ratio[:m] + ratio[m : 2 * m]) / self.bend
        self.h = 1.0 / (1.0 / (2.0 * s) + 1.0 / ratio[2 * m :])
        self.roots = np.sqrt(self.D), np.sqrt(self.h)
        B = A * self.roots[1][:, None] * self.roots[0]
        M = B.T @ B if m <= n else B @ B.T
        M[np.diag_indices_from(M)] += 1.0
        if not np.isfinite(M).all():
            raise LinAlgError
        self.features = m <= n
        self.factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        self.constant = self._solve(np.zeros(m), y) if free else None

    def _solve(self, e: Array, rho: Array) -> tuple[Array, Array]:
        """Return dw and du for an intercept that stays."""
        dw, du = self._rough(e, rho)
        for _ in range(_REFINEMENTS):
            more = self._rough(e - dw + self.D * (self.A.T @ du), rho - self.A @ dw - du / self.h)
            dw, du = dw + more[0], du + more[1]
        return dw, du

    def _rough(self, e: Array, rho: Array) -> tuple[Array, Array]:
        A, (root_D, root_h) = self.A, self.roots
        if self.features:
            right = e / root_D + root_D * (A.T @ (self.h * rho))
            dw = root_D * cho_solve(self.factor, right, check_finite=False)
            return dw, self.h * (rho - A @ dw)
        du = root_h * cho_solve(self.factor, root_h * (rho - A @ e), check_finite=False)
        return e + self.D * (A.T @ du), du

    def step(self, target: Array, rest: Array, unbalanced: float) -> tuple[Array, Array, float]:
        """Return the step after which products change by ``target`` and nothing of ``rest`` remains."""
        x, z, m = self.x, self.z, self.m
        (tp, tq, tu), (p, q, u), (a, c, _) = (_parts(v, m) for v in (target, x, z))
        ra, rc, rz = _parts(rest, m)
        e = ((tp - p * ra) / a - (tq - q * rc) / c) / self.bend
        dw, du = self._solve(e, tu / u - rz)
        db = 0.0
        if self.constant is not None:
            db = float((self.y @ du + unbalanced) / (self.y @ self.constant[1]))
            dw, du = dw - db * self.constant[0], du - db * self.constant[1]
        dG = self.l2 * dw - self.A.T @ du
        dx = np.concatenate([(tp - p * (ra + dG)) / a, (tq - q * (rc - dG)) / c, du])
        return dx, (target - z * dx) / x, db
