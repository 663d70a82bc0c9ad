r"""Sequential minimal optimisation, pair by pair.

``min ½ αᵀQα − Σα``, ``0 ≤ α_i ≤ C_i``, ``Σ y_i α_i = 0``, ``Q_ij = y_i y_j k(x_i, x_j)``, by two variables at
a time. With ``g = Qα − 1``: ``i`` is the sample with the largest ``−y_i g_i`` among those whose ``y α`` may
grow; ``j`` is, of those whose ``y α`` may fall, the one whose joint step with ``i`` lowers the objective most
(Fan, Chen and Lin, "Working set selection using second order information", 2005). At a solution no such pair
differs by more than the tolerance. Then ``f(x) = Σ α_i y_i k(x_i, x) + b``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.view import Array
from separatrix.kernels import resolve_kernel
from separatrix.models._weights import checked_weights, sample_weights
from separatrix.multiclass import Coding
from separatrix.traces._types import TraceStep, frozen, number

_MOST_SAMPLES = 4000
# The curvature of a pair that has none, as LIBSVM takes it.
_TAU = 1e-12


class SmoTracer:
    """One support vector machine of two classes, pair by pair."""

    unit = "iteration"

    def __init__(self, model: Any, X: Any, y: Array, classes: Array, numbers: Array, weight: Any) -> None:
        if len(classes) != 2:
            raise ValueError(f"trace follows an SVC of two classes; y holds {len(classes)}: choose two")
        if len(numbers) > _MOST_SAMPLES:
            raise ValueError(
                f"trace keeps the whole kernel matrix: {_MOST_SAMPLES:,} samples, not {len(numbers):,}"
            )
        self.model, self.classes, self.numbers = model, classes, numbers
        self.coding = Coding.of("ovr", 2)
        weights = sample_weights(X, y, numbers, classes, weight, model.class_weight)
        self.X = X.tocsr() if sparse.issparse(X) else X
        self.linear = isinstance(model.kernel, str) and model.kernel == "linear"
        if isinstance(model.kernel, str) and model.kernel == "precomputed":
            self.K = np.asarray(X, dtype=np.float64)
            if self.K.shape != (len(numbers), len(numbers)):
                raise ValueError(f"a precomputed kernel matrix must be square, not of shape {self.K.shape}")
        else:
            # gamma="scale" counts a sample by its weight here, and by itself in scikit-learn.
            own = type(model).__module__.startswith("separatrix")
            self.kernel = resolve_kernel(
                model.kernel,
                gamma=model.gamma,
                degree=model.degree,
                coef0=model.coef0,
                X=X,
                weights=checked_weights(X, weight) if own else None,
            )
            self.K = np.asarray(self.kernel(self.X), dtype=np.float64)
        self.y = np.where(numbers == 1, 1.0, -1.0)
        self.C = float(model.C) * (np.ones(len(numbers)) if weights is None else weights)
        self.alpha, self.g = np.zeros(len(numbers)), -np.ones(len(numbers))

    def columns(self, step: TraceStep, points: Array) -> Array:
        """Return ``Σ α_i y_i k(x_i, x) + b`` for each point."""
        if step.alpha is None or not hasattr(self, "kernel"):
            raise ValueError("a precomputed kernel knows no points between the samples")
        rows = np.flatnonzero(step.alpha)
        scores = np.full(len(points), float(step.intercept[0]))
        if rows.size:
            scores += np.asarray(self.kernel(points, self.X[rows])) @ (step.alpha * self.y)[rows]
        return scores[:, None]

    def steps(self) -> Iterator[TraceStep]:
        """Yield every pair, then what the fit returns."""
        tol, limit = float(self.model.tol), int(getattr(self.model, "max_iter", -1))
        index, why = 0, f"max_iter = {limit} pairs are over"
        while limit < 0 or index < limit:
            chosen = self._choose(tol)
            if chosen is None:
                why = f"no pair is off by more than tol = {tol:g}"
                break
            index += 1
            yield self._move(index, *chosen)
        yield TraceStep(0, index, (), False, why, self._summary(), self._coef(), frozen([self._intercept()]),
                        frozen(self.alpha), self._dual(), end=True, unit=self.unit)  # fmt: skip

    def _sides(self) -> tuple[Array, Array]:
        """Return the samples whose ``y α`` may grow, and those whose may fall."""
        below, above = self.alpha < self.C, self.alpha > 0
        positive = self.y > 0
        return np.where(positive, below, above), np.where(positive, above, below)

    def _choose(self, tol: float) -> tuple[int, int, float, float] | None:
        """Return the pair, its violation, and how much the objective would fall without the bounds."""
        up, low = self._sides()
        pull = -self.y * self.g
        if not up.any() or not low.any():
            return None
        i = int(np.where(up, pull, -np.inf).argmax())
        if pull[i] - np.where(low, pull, np.inf).min() <= tol:
            return None
        off = pull[i] - pull
        curvature = self.K[i, i] + np.diagonal(self.K) - 2.0 * self.K[i]
        curvature = np.where(curvature > 0, curvature, _TAU)
        gain = np.where(low & (off > 0), 0.5 * off**2 / curvature, -np.inf)
        j = int(gain.argmax())
        return i, j, float(off[j]), float(gain[j])

    def _move(self, index: int, i: int, j: int, off: float, gain: float) -> TraceStep:
        y, alpha = self.y, self.alpha
        curvature = self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j]
        # Along y_i e_i − y_j e_j the sum of y α keeps its value; the bounds cut the step.
        room = self.C[i] - alpha[i] if y[i] > 0 else alpha[i]
        other = alpha[j] if y[j] > 0 else self.C[j] - alpha[j]
        free = off / (curvature if curvature > 0 else _TAU)
        step = min(free, room, other)
        before = alpha[i], alpha[j]
        alpha[i] += y[i] * step
        alpha[j] -= y[j] * step
        # A bound that stopped the step is reached exactly, without rounding.
        if step == room:
            alpha[i] = self.C[i] if y[i] > 0 else 0.0
        if step == other:
            alpha[j] = 0.0 if y[j] > 0 else self.C[j]
        changes = alpha[i] - before[0], alpha[j] - before[1]
        self.g += y * (y[i] * changes[0] * self.K[i] + y[j] * changes[1] * self.K[j])
        bound = "" if step == free else ", cut by a bound"
        why = f"the pair is off by {number(off)} and promises most, {number(gain)}"
        what = (
            f"α[{i}] {number(before[0])} → {number(alpha[i])}, "
            f"α[{j}] {number(before[1])} → {number(alpha[j])}{bound}"
        )
        return TraceStep(
            index,
            index,
            (i, j),
            bool(step > 0),
            why,
            what,
            self._coef(),
            frozen([self._intercept()]),
            frozen(alpha),
            self._dual(),
            facts={"violation": off, "promise": gain, "step": step},
            unit=self.unit,
            names=(str(self.classes[self.numbers[i]]), str(self.classes[self.numbers[j]])),
        )

    def _dual(self) -> float:
        """Return the dual objective ``Σα − ½ αᵀQα``, which grows."""
        return float(-0.5 * (self.alpha @ (self.g - 1.0)))

    def _coef(self) -> Array | None:
        return frozen(np.atleast_2d(self.X.T @ (self.alpha * self.y))) if self.linear else None

    def _intercept(self) -> float:
        """Return ``b``: the mean over free samples of ``−y g``, or the middle of what the bounds leave."""
        free = (self.alpha > 0) & (self.alpha < self.C)
        pull = -self.y * self.g
        if free.any():
            return float(pull[free].mean())
        up, low = self._sides()
        return float(0.5 * (pull[up].max() + pull[low].min())) if up.any() and low.any() else 0.0

    def _summary(self) -> str:
        free = int(((self.alpha > 0) & (self.alpha < self.C)).sum())
        held = int((self.alpha > 0).sum())
        return f"{held} support vectors, {free} of them free on the margin"
