"""Logistic and softmax loss as functions of the scores: value, dual variables, curvature, dual bound.

Both give, for scores ``F`` of shape (n, columns) and sample weights ``s``,

- the loss ``Σ_i s_i ℓ(F_i, c_i)``;
- the dual variables ``θ = −∂loss/∂F``, made orthogonal to the constant where the intercept is free:
  every dual variable is multiplied by a factor ``a_c ≤ 1`` of its sample's class such that
  ``Σ_i a_{c_i} θ_i = 0``. As ``Σ_i∈c θ_ik`` are the rates of a Markov chain on the classes, ``a`` is its
  stationary vector; it exists always, keeps ``θ`` in the conjugate's domain and is 1 for the best
  intercept;
- ``−Σ_i s_i ℓ*(−γ θ_i / s_i)``, the loss's part of the dual objective, for any ``0 ≤ γ ≤ 1``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import linalg
from scipy.special import entr

from separatrix.data.view import Array

#: Newton steps that the intercept may take by itself.
_INTERCEPT_STEPS = 50
#: Part of the loss, and of the scores, that the rounding of the sum of losses may take.
_ROUNDED_LOSS, _ROUNDED_SCORES = 1e-13, 1e-16


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second derivative of the loss in the scores: ``diag(q_i)``, or ``diag(q_i) − q_i p_iᵀ`` if joint."""

    q: Array
    p: Array | None

    @property
    def columns(self) -> int:
        """Number of score columns."""
        return int(self.q.shape[1])

    def diagonal(self) -> Array:
        """Return the diagonal of each sample's matrix, of shape (n, columns)."""
        return self.q if self.p is None else self.q * (1.0 - self.p)

    def intercepts(self) -> Array:
        """Return the second derivative in the intercepts, of shape (columns, columns)."""
        total = np.diag(self.q.sum(axis=0))
        return np.asarray(total if self.p is None else total - self.p.T @ self.q)


class Terms(Protocol):
    """What the solver needs of a loss of the scores."""

    columns: int
    joint: bool

    def value(self, F: Array) -> float:
        """Return the loss."""

    def set_scores(self, F: Array) -> None:
        """Compute loss, probabilities and dual variables of these scores."""

    loss: float
    theta: Array

    def curvature(self, caution: float) -> Curvature:
        """Return the second derivative, blended with a global upper bound of it.

        Far from the boundary the true one vanishes, and a step that believes it is far too long. With
        caution 1 the model is nowhere below the loss, so that its minimum is a step forward for sure.
        """

    def balance(self) -> None:
        """Make the dual variables orthogonal to the constant."""

    def dual(self, scale: float) -> float:
        """Return the loss's part of the dual objective at ``scale · θ``."""

    def null_intercept(self) -> Array:
        """Return the best intercept without weights."""


class BinaryTerms:
    """``ln(1 + exp(−y f))`` for codes ``y`` in {−1, 0, +1}; 0 takes no part."""

    columns = 1
    joint = False

    def __init__(self, y: Array, s: Array) -> None:
        self.y = y.astype(np.float64)[:, None]
        self.s = np.where(y != 0, s, 0.0)[:, None]
        self.positive = self.y > 0

    def value(self, F: Array) -> float:
        """Return the loss."""
        m = self.y * F
        return float(self.s[:, 0] @ (np.maximum(-m, 0.0) + np.log1p(np.exp(-np.abs(m))))[:, 0])

    def set_scores(self, F: Array) -> None:
        """Compute loss, probabilities and dual variables of these scores."""
        m = self.y * F
        e = np.exp(-np.abs(m))
        self.loss = float(self.s[:, 0] @ (np.maximum(-m, 0.0) + np.log1p(e))[:, 0])
        self.wrong = np.where(m > 0, e, 1.0) / (1.0 + e)
        self.margins = m
        self.theta = self.s * self.y * self.wrong

    def curvature(self, caution: float) -> Curvature:
        """Return the second derivative, blended with the bound ``tanh(m/2) / (2m)`` of Jaakkola."""
        e = np.exp(-np.abs(self.margins))
        h = e / np.square(1.0 + e)
        if caution > 0:
            size = np.maximum(np.abs(self.margins), 1e-4)
            h = (1.0 - caution) * h + caution * np.tanh(0.5 * size) / (2.0 * size)
        return Curvature(self.s * h, None)

    def balance(self) -> None:
        """Make the dual variables orthogonal to the constant."""
        above = float(self.theta[self.positive].sum())
        below = -float(self.theta.sum() - above)
        low = min(above, below)
        factor = np.where(self.positive, low / above if above > 0 else 0.0, low / below if below > 0 else 0.0)
        self.wrong *= factor
        self.theta *= factor

    def dual(self, scale: float) -> float:
        """Return the loss's part of the dual objective at ``scale · θ``."""
        u = scale * self.wrong
        return float(self.s[:, 0] @ (entr(u) + entr(1.0 - u))[:, 0])

    def null_intercept(self) -> Array:
        """Return the best intercept without weights."""
        above, below = float(self.s[self.y > 0].sum()), float(self.s[self.y < 0].sum())
        return np.array([np.log(above / below)])


class SoftmaxTerms:
    """``ln Σ_k exp(f_k) − f_c``."""

    joint = True
    p: Array

    def __init__(self, classes: Array, columns: int, s: Array) -> None:
        self.columns = columns
        self.s = s
        self.classes = classes
        self.every = np.arange(classes.shape[0])

    def value(self, F: Array) -> float:
        """Return the loss."""
        top = F.max(axis=1)
        total = np.exp(F - top[:, None]).sum(axis=1)
        return float(self.s @ (top + np.log(total) - F[self.every, self.classes]))

    def set_scores(self, F: Array) -> None:
        """Compute loss, probabilities and dual variables of these scores."""
        top = F.max(axis=1)
        p = np.exp(F - top[:, None])
        total = p.sum(axis=1)
        self.loss = float(self.s @ (top + np.log(total) - F[self.every, self.classes]))
        p /= total[:, None]
        self.p = p
        self.theta = -self.s[:, None] * p
        self.theta[self.every, self.classes] += self.s
        self.factor = np.ones(self.columns)

    def curvature(self, caution: float) -> Curvature:
        """Return the second derivative, blended with the bound ``½ (I − 11ᵀ/K)`` of Böhning."""
        K = self.columns
        if caution == 0 or K == 1:
            return Curvature(self.s[:, None] * self.p, self.p)
        p = (1.0 - caution) * self.p + caution / K
        return Curvature(self.s[:, None] * ((1.0 + caution * (0.5 * K - 1.0)) * p), p)

    def balance(self) -> None:
        """Make the dual variables orthogonal to the constant."""
        rates = np.zeros((self.columns, self.columns))
        for c in range(self.columns):
            own = self.classes == c
            rates[c] = self.s[own] @ self.p[own]
        self.factor = stationary(rates)
        self.theta *= self.factor[self.classes][:, None]

    def dual(self, scale: float) -> float:
        """Return the loss's part of the dual objective at ``scale · θ``."""
        u = self.p * (scale * self.factor[self.classes])[:, None]
        u[self.every, self.classes] = 0.0
        rest = np.minimum(u.sum(axis=1), 1.0)
        return float(self.s @ (entr(u).sum(axis=1) + entr(1.0 - rest)))

    def null_intercept(self) -> Array:
        """Return the best intercept without weights."""
        logs = np.log(np.bincount(self.classes, weights=self.s, minlength=self.columns))
        return np.asarray(logs - logs.mean())


def stationary(rates: Array) -> Array:
    """Return ``a ≥ 0`` with largest entry 1 and ``a_k Σ_l rates_kl = Σ_c a_c rates_ck`` (l, c ≠ k).

    The elimination of Grassmann, Taksar and Heyman: without subtractions, so that every entry is exact
    to a few roundings. Zero where no such vector with all entries above zero can be found.

    Examples
    --------
    >>> import numpy as np
    >>> stationary(np.array([[0.0, 1.0], [2.0, 0.0]])).tolist()
    [1.0, 0.5]
    """
    R = rates.copy()
    size = R.shape[0]
    for k in range(size - 1, 0, -1):
        out = R[k, :k].sum()
        if not out > 0:
            return np.zeros(size)
        R[:k, k] /= out
        R[:k, :k] += np.outer(R[:k, k], R[k, :k])
    a = np.ones(size)
    for k in range(1, size):
        a[k] = a[:k] @ R[:k, k]
    largest = a.max()
    return np.asarray(a / largest if 0 < largest < np.inf else np.zeros(size))


def best_intercept(terms: Terms, F: Array, intercept: Array) -> None:
    """Move the intercepts, and the scores with them, to where the loss is least; weights stay.

    Ends with ``terms`` set to the new scores.
    """
    if terms.joint:
        # What all classes share, softmax does not see: rounding alone chose it, and would lose digits to it.
        shared = intercept.mean()
        F -= shared
        intercept -= shared
    terms.set_scores(F)
    # Below this the sum of the dual variables is rounding.
    small = 1e-15 * float(np.abs(terms.theta).sum()) + 1e-300
    for _ in range(_INTERCEPT_STEPS):
        gradient = terms.theta.sum(axis=0)
        if np.abs(gradient).max() <= small:
            return
        H = terms.curvature(0.0).intercepts()
        move = linalg.lstsq(H, gradient, lapack_driver="gelsy")[0] if H.any() else gradient
        if terms.joint:
            move -= move.mean()
        if not np.all(np.isfinite(move)):
            return
        slope, before, last, t = float(gradient @ move), terms.loss, np.abs(gradient).max(), 1.0
        # Rounding hides what a very small step gains: whether it helps, the sums of the dual variables tell.
        rounding = _ROUNDED_LOSS * abs(before) + _ROUNDED_SCORES * float(np.abs(F).sum())
        hidden = slope <= rounding
        while not hidden and terms.value(F + t * move) > before - 1e-4 * t * slope:
            t *= 0.5
            if t <= 1e-10 or t * slope <= 1e-3 * rounding:
                return
        F += t * move
        intercept += t * move
        terms.set_scores(F)
        after = np.abs(terms.theta.sum(axis=0)).max()
        if hidden and after > last:
            F -= move
            intercept -= move
            terms.set_scores(F)
        if hidden and after > 0.5 * last:
            return
