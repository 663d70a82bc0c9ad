r"""The joint multiclass SVM (Crammer–Singer), linear: Newton's method and multipliers, data of any size.

The method of ``_hot/small_joint.hpp``, through the view. Each sample's loss is replaced by its envelope
around the last dual variables ``μ⁰``,

    C_i max over μ in the simplex:  μ·h_i − h_{i c_i} − ‖μ − μ⁰_i‖²/(2ρ),      μ_i = project(μ⁰_i + ρ h_i),

and once the smoothed problem is solved well enough, ``μ⁰ = μ`` and ρ grows. On the classes ``S`` that
``μ_i`` uses its Hessian in ``h_i`` is ``C_i ρ P_i``, ``P_i = I − 11ᵀ/|S|``, so that only samples that use
several classes take part in a step's system

    (I + Σ_i C_i ρ P_i ⊗ x̃_i x̃_iᵀ) M = −∇.

It is solved for the ``K (d + 1)`` weights, or, where the free directions of ``μ`` are fewer, for these
(Woodbury): with ``B`` the directions ``(e_l − e_k) ⊗ x̃_i`` from a sample's leading class ``l`` to each other
one that it uses,

    M = B T⁻¹ Bᵀ∇ − ∇,      T = BᵀB + (I + 11ᵀ)/(C_i ρ) within a sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.room import allowed
from separatrix.data.threads import question, single_threaded
from separatrix.data.view import Array, DataView
from separatrix.solvers._cholesky import solver_of
from separatrix.solvers._simplex import freedom, project

#: Most weights, and most free directions, of a system that is solved.
_MOST_WEIGHTS, _MOST_FREE = 3_000, 2_500
#: Numbers of samples that are made dense at a time.
_BLOCK = 1 << 20
#: How fast ρ grows, at most and at least, and its end; length of a step that says that ρ was too large.
_MOST_GROWTH, _LEAST_GROWTH, _STEEPEST, _SHORT = 10.0, 1.5, 1e9, 0.02
#: Part of the gap, and of ‖w‖², that may be left of a smoothed problem.
_REST, _OF_WEIGHTS = 0.1, 0.05
#: Part of the slope that a step must gain, the shortest one, and what rounding may hide of it.
_ARMIJO, _SHORTEST, _NOISE = 1e-4, 1e-6, 1e-13
#: Arrays of the size of μ, and matrices of the size of the system, in work.
_ARRAYS, _MATRICES = 10.0, 4.0


class JointNewton:
    """Newton steps from given weights and dual variables, both changed in place.

    Parameters
    ----------
    view : DataView
        Samples.
    classes : ndarray of int of shape (n,)
        Class of each sample.
    cost : ndarray of shape (n,)
        ``C_i``.
    constant : float
        The constant feature whose weights carry the intercepts; 0 for none.
    W : ndarray of shape (K, d) or (K, d + 1)
        Weights, last that of the constant feature, if there is one.
    mu : ndarray of shape (n, K)
        Dual variables.
    rho : float
        ``ρ`` of the first steps.
    tol : float
        Relative gap to reach.

    Attributes
    ----------
    stuck : bool
        Whether no system that can be solved leads on.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> W, mu = np.zeros((3, 3)), np.eye(3)
    >>> newton = JointNewton(view_of(np.eye(3)), np.arange(3), np.full(3, 10.0), 0.0, W, mu, 1.0, 1e-9)
    >>> newton.run(20)
    >>> primal, dual, steps = newton.measure()
    >>> bool(primal - dual <= 1e-9 * primal), W.round(3).tolist()[0]
    (True, [0.667, -0.333, -0.333])
    """

    def __init__(
        self,
        view: DataView,
        classes: Array,
        cost: Array,
        constant: float,
        W: Array,
        mu: Array,
        rho: float,
        tol: float,
    ) -> None:
        self.view, self.classes, self.cost, self.constant = view, classes, cost, constant
        self.W, self.mu, self.rho, self.tol = W, mu, rho, tol
        self.every = np.arange(view.shape[0])
        self.mu0, self.growth, self.inner, self.steps = mu.copy(), 3.0, 0, 0
        self.stuck = False
        self.h = self._scores(W) + 1.0
        self.h[self.every, classes] -= 1.0
        self.value = self._settle(self.h)
        self.rest = self._measure()

    def run(self, steps: int) -> None:
        """Take some steps, fewer where the gap is within ``tol`` before."""
        for _ in range(steps):
            rest, gap = self.rest, self.primal - self.dual
            if gap <= self.tol * self.primal or self.stuck:
                return
            # (Where C is large the gap tells little: weights and dual variables must also agree.)
            enough = rest <= _REST * gap and rest <= _OF_WEIGHTS * float(np.vdot(self.W, self.W))
            if enough and self.rho < _STEEPEST:
                # The easier the last smoothed problem was, the more the kink narrows in the next.
                grown = self.growth * (2.0 if self.inner <= 1 else 1.0 if self.inner <= 3 else 0.5)
                self.growth = min(max(grown, _LEAST_GROWTH), _MOST_GROWTH)
                self.mu0[...] = self.mu
                self.rho *= self.growth
                self.inner = 0
                self.value = self._settle(self.h)
                self._measure()
            self._step()
            self.rest = self._measure()

    def measure(self) -> tuple[float, float, int]:
        """Return the objective of the weights, the bound of the dual variables, and the steps so far."""
        return self.primal, self.dual, self.steps

    def _scores(self, W: Array) -> Array:
        d = self.view.shape[1]
        return self.view.scores(np.ascontiguousarray(W[:, :d]), self._intercept(W))

    def _intercept(self, W: Array) -> Array | float:
        return self.constant * W[:, -1] if self.constant else 0.0

    def _smooth(self, h: Array) -> tuple[Array, float]:
        """Return μ of these scores, and the sum of the smoothed losses."""
        mu = _projected(self.mu0 + self.rho * h)
        change = mu - self.mu0
        values = np.einsum("ik,ik->i", mu, h) - h[self.every, self.classes]
        values -= np.einsum("ik,ik->i", change, change) / (2.0 * self.rho)
        return mu, float(self.cost @ values)

    def _settle(self, h: Array) -> float:
        self.mu[...], value = self._smooth(h)
        return value

    def _measure(self) -> float:
        """Compute objective, bound and gradient; return what steps may still gain in the smoothed problem."""
        alpha = -self.mu * self.cost[:, None]
        alpha[self.every, self.classes] += self.cost
        G = np.empty_like(self.W)
        d = self.view.shape[1]
        with single_threaded(self.view.shape[0] * self.view.row_elements * self.W.shape[0]):
            G[:, :d] = self.view.transposed(alpha).T
        if self.constant:
            G[:, d] = self.constant * alpha.sum(axis=0)
        own = self.h[self.every, self.classes]
        losses = float(self.cost @ (self.h.max(axis=1) - own))
        self.primal = losses + 0.5 * float(np.vdot(self.W, self.W))
        self.dual = float(self.cost @ (1.0 - self.mu[self.every, self.classes])) - 0.5 * float(np.vdot(G, G))
        self.gradient = self.W - G
        return 0.5 * float(np.vdot(self.gradient, self.gradient))

    def _step(self) -> None:
        move = self._direction()
        if move is None:
            self.stuck = True
            return
        change = self._scores(move)
        square, first = 0.5 * float(np.vdot(self.W, self.W)), float(np.vdot(self.W, move))
        curve, slope = 0.5 * float(np.vdot(move, move)), float(np.vdot(self.gradient, move))
        before, t = square + self.value, 1.0
        while True:
            mu, after = self._smooth(self.h + t * change)
            gained = before - (square + t * (first + t * curve) + after)
            if gained >= -_ARMIJO * t * slope - _NOISE * abs(before) or t < _SHORTEST:
                break
            t *= 0.5
        self.W += t * move
        self.h += t * change
        self.mu[...], self.value = mu, after
        self.inner += 1
        self.steps += 1
        if t < _SHORT:
            # So few samples lie inside the kink that their piece tells little.
            self.rho /= max(4.0, self.growth)
            self.growth = _LEAST_GROWTH
            self.value = self._settle(self.h)

    def _direction(self) -> Array | None:
        """Return Newton's step, None if its system is too large."""
        rows = np.flatnonzero((freedom(self.mu) > 0) & (self.cost > 0))
        if _by_samples(int(freedom(self.mu[rows]).sum()), self.W.size):
            return self._by_samples(rows)
        return self._by_weights(rows) if self.W.size <= _MOST_WEIGHTS else None

    def _dense(self, rows: Array) -> Array:
        """Return these samples with their constant feature, in double precision."""
        d, block = self.view.shape[1], self.view.take(rows)
        x = np.empty((rows.size, self.W.shape[1]))
        x[:, :d] = block.toarray() if self.view.sparse else block
        x[:, d:] = self.constant
        return x

    def _by_weights(self, rows: Array) -> Array:
        K, D = self.W.shape
        used = self.mu[rows] > 0
        counts, scale = used.sum(axis=1), self.rho * self.cost[rows]

        def build() -> Array:
            H: Array = np.zeros((K, D, K, D))
            step = max(1, _BLOCK // D)
            ask = question()
            for begin in range(0, rows.size, step):
                ask()
                part = slice(begin, begin + step)
                x, mine = self._dense(rows[part]), used[part]
                for k in range(K):
                    with_k = np.flatnonzero(mine[:, k])
                    xk, others = x[with_k], mine[with_k]
                    c = scale[part][with_k]
                    weighted = xk * (c * (1.0 - 1.0 / counts[part][with_k]))[:, None]
                    H[k, :, k] += weighted.T @ xk
                    shared = c / counts[part][with_k]
                    for m in range(k + 1, K):
                        both = np.flatnonzero(others[:, m])
                        if both.size:
                            H[k, :, m] -= (xk[both] * shared[both][:, None]).T @ xk[both]
            H = H.reshape(K * D, K * D)
            H[np.diag_indices(K * D)] += 1.0
            return H

        return -solver_of(build)(self.gradient.ravel()).reshape(K, D)

    def _by_samples(self, rows: Array) -> Array:
        K = self.W.shape[0]
        mu, every = self.mu[rows], np.arange(rows.size)
        lead, free = mu.argmax(axis=1), mu > 0
        free[every, lead] = False
        i, k = np.nonzero(free)
        signs = np.eye(K)[lead[i]] - np.eye(K)[k]
        block: Any = self.view.take(rows).astype(np.float64)
        products: Any = block @ block.T
        gram = np.asarray(products.toarray() if self.view.sparse else products) + self.constant**2
        softness = 1.0 / (self.rho * self.cost[rows][i])

        def build() -> Array:
            T: Array = signs @ signs.T
            T *= gram[np.ix_(i, i)]
            T += softness[:, None] * (i == i[:, None])
            T[np.diag_indices_from(T)] += softness
            return T

        d = self.view.shape[1]
        scores = np.asarray(block @ self.gradient[:, :d].T) + self._intercept(self.gradient)
        y = solver_of(build)(scores[i, lead[i]] - scores[i, k])
        sums = np.zeros((rows.size, K))
        np.add.at(sums, (i, lead[i]), y)
        sums[i, k] -= y
        move = -self.gradient
        move[:, :d] += np.asarray(block.T @ sums).T
        if self.constant:
            move[:, d] += self.constant * sums.sum(axis=0)
        return np.asarray(move)


def _by_samples(free: float, size: int) -> bool:
    """Return whether a system is one of free directions, not of weights."""
    return free < min(size, _MOST_FREE + 1)


def work(view: DataView, mu: Array, size: int) -> float:
    """Return about how many multiply-adds a step takes from these dual variables.

    Infinitely many: the system is too large, or the room of the fit too small.
    """
    degrees = freedom(mu)
    free, rows, (n, d) = float(degrees.sum()), np.count_nonzero(degrees), view.shape
    by_samples = _by_samples(free, size)
    if not by_samples and size > _MOST_WEIGHTS:
        return np.inf
    if 8.0 * (_ARRAYS * mu.size + _MATRICES * min(size, free) ** 2) > allowed() / 2:
        return np.inf
    sweeps = 4.0 * n * mu.shape[1] * view.row_elements
    if by_samples:
        return float(free**3 / 3 + rows**2 * view.row_elements + sweeps)
    used = degrees + 1.0
    pairs = float((used * (used + 1.0) / 2)[degrees > 0].sum())
    return float(size**3 / 3 + pairs * (d + 1.0) ** 2 + sweeps)


def _projected(Z: Array) -> Array:
    """Return the point of the simplex that is nearest to each row: mostly a corner."""
    top = Z.argmax(axis=1)
    largest = Z[np.arange(Z.shape[0]), top]
    several = np.flatnonzero(np.count_nonzero((largest - 1.0)[:, None] < Z, axis=1) > 1)
    mu = np.zeros_like(Z)
    mu[np.arange(Z.shape[0]), top] = 1.0
    if several.size:
        mu[several] = project(Z[several])
        # Large scores leave rounding: what is on the simplex proves a bound.
        mu[several] /= mu[several].sum(axis=1, keepdims=True)
    return mu
