r"""Stochastic gradient descent, sample by sample.

Visit ``t`` of a sample: ``f = w·x + b``, ``g = s l'(f)``, then ``w ← (1 − η_t l2) w − η_t g x`` and
``b ← b − η_t g``; what L1 asks for is paid by the weights afterwards, at most down to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.models._weights import checked_weights
from separatrix.multiclass import Coding
from separatrix.solvers._loop import NoImprovement
from separatrix.solvers._order import Visits
from separatrix.solvers.sgd import SPARSE_INTERCEPT_DECAY, StepRule
from separatrix.traces._types import TraceStep, frozen, linear_columns, number

_LARGEST_SLOPE = 1e12
_SMALLEST_ETA = 1e-6


class SgdTracer:
    """One fit by stochastic gradient descent, visit by visit."""

    unit = "pass"

    def __init__(self, model: Any, X: Any, y: Array, classes: Array, numbers: Array, weight: Any) -> None:
        if model.early_stopping:
            raise ValueError("trace holds no samples out: set early_stopping=False")
        model._check_combination()
        self.model, self.classes, self.numbers = model, classes, numbers
        self.coding = Coding.of("ovr", len(classes))
        model.classes_ = classes
        self.problem = model._coded(X, y, numbers, self.coding, checked_weights(X, weight))
        self.decay = SPARSE_INTERCEPT_DECAY if sparse.issparse(X) else 1.0
        self.X = X
        weights, seed = self.problem.weights, model._seed()
        self.visits = Visits(view_of(X), numbers, weights, shuffle=model.shuffle, seed=seed, content=False)
        self.rule = StepRule(model.learning_rate, float(model.eta0), float(model.power_t), float(model.alpha))
        K = self.coding.columns
        self.W, self.b = np.zeros((K, X.shape[1])), np.zeros(K)
        self.owed, self.paid = np.zeros(K), np.zeros(self.W.shape)
        self.eta, self.active = np.full(K, self.rule.eta0), np.ones(K, dtype=bool)
        self.t, self.sums = 1, (np.zeros(self.W.shape), np.zeros(K), np.zeros(K))

    columns = staticmethod(linear_columns)

    def steps(self) -> Iterator[TraceStep]:
        """Yield every visit, then what the fit returns."""
        model, penalty = self.model, self.problem.penalty
        rules = [NoImprovement(model.tol, int(model.n_iter_no_change)) for _ in self.b]
        why = f"max_iter = {model.max_iter} passes are over"
        n = max(1, len(self.visits.order))
        for index in range(1, model.max_iter + 1):
            self.visits.next_pass()
            losses = np.zeros(len(self.b))
            for row in self.visits.order.tolist():
                yield self._visit(index, row, losses)
            objectives = losses / n + 0.5 * penalty.l2 * np.square(self.W).sum(axis=1)
            objectives += penalty.l1 * np.abs(self.W).sum(axis=1)
            for k in np.flatnonzero(self.active):
                if not rules[k](objectives[k]):
                    continue
                if self.rule.name == "adaptive" and self.eta[k] > _SMALLEST_ETA:
                    self.eta[k] /= 5.0
                    rules[k].waited = 0
                else:
                    self.active[k] = False
            if not self.active.any():
                why = f"no column got better by tol for {model.n_iter_no_change} passes"
                break
        W, b, what = self.W, self.b, "the last weights are returned"
        if model.average and self.sums[2].min() > 0:
            counts = self.sums[2]
            W, b = self.sums[0] / counts[:, None], self.sums[1] / counts
            what = "the mean of the weights is returned"
        yield TraceStep(0, index, (), False, why, what, frozen(W), frozen(b), end=True, unit=self.unit)

    def _visit(self, index: int, row: int, losses: Array) -> TraceStep:
        problem, K = self.problem, len(self.b)
        x, stored = self._row(row)
        c = int(self.numbers[row])
        y = problem.codes[c].astype(np.float64)
        weight = 1.0 if self.visits.weights is None else float(self.visits.weights[row])
        s = weight * (np.ones(K) if problem.factors is None else problem.factors[c])
        f = self.W @ x + self.b
        place = y * f if problem.loss.of == "margin" else f - y
        values = np.asarray(problem.loss.value(place))
        slopes = np.asarray(problem.loss.slope(place)) * (y if problem.loss.of == "margin" else 1.0)
        slopes = np.clip(slopes, -_LARGEST_SLOPE, _LARGEST_SLOPE)
        norm = float(x @ x)
        words, moved = [], False
        for k in np.flatnonzero(self.active) if not (self.rule.name == "pa1" and norm == 0.0) else ():
            eta = self._eta(int(k))
            size = self._aggression(values[k], slopes[k], norm)
            step = -s[k] * (eta * slopes[k] if size is None else size)
            losses[k] += s[k] * values[k]
            self.W[k] *= max(0.0, 1.0 - problem.penalty.l2 * eta)
            self.owed[k] += problem.penalty.l1 * eta
            moved |= bool(step != 0.0) or problem.penalty.l2 > 0
            self.W[k] += step * x
            if problem.fit_intercept:
                self.b[k] += step * self.decay
            name = "" if K == 1 else f"[{self.classes[k]}]"
            words.append(f"w{name} {'+=' if step > 0 else '−='} {number(abs(step))} x" if step else "")
        if self.model.average and self.t >= int(self.model.average):
            for k in np.flatnonzero(self.active):
                self.sums[0][k] += self.W[k]
                self.sums[1][k] += self.b[k]
                self.sums[2][k] += 1
        if problem.penalty.l1 > 0:
            self._pay(stored)
        eta = self._eta(0)
        self.t += 1
        acted = "; ".join(word for word in words if word)
        if problem.penalty.l2 > 0:
            acted = f"{acted}; " if acted else ""
            acted += f"w shrinks by the factor {number(1 - problem.penalty.l2 * eta)}"
        margin = ", ".join(number(value) for value in y * f)
        why = f"margin y f(x) = {margin}, loss {number(values.sum())}, η = {number(eta)}"
        return TraceStep(
            self.t - 1,
            index,
            (row,),
            moved,
            why,
            acted or "nothing changes",
            frozen(self.W),
            frozen(self.b),
            facts={"eta": eta, "loss": float(values.sum())},
            unit=self.unit,
            names=(str(self.classes[c]),),
        )

    def _row(self, row: int) -> tuple[Array, Any]:
        """Return a sample in double precision, and which of its features are stored."""
        if sparse.issparse(self.X):
            one = self.X[[row]]
            return np.asarray(one.toarray(), dtype=np.float64)[0], one.indices
        return np.asarray(self.X[row], dtype=np.float64), slice(None)

    def _eta(self, k: int) -> float:
        rule, t = self.rule, float(self.t)
        if rule.name in ("optimal", "pegasos"):
            return 1.0 / (rule.alpha * (rule.t0 + t - 1))
        if rule.name == "invscaling":
            return rule.eta0 / math.pow(t, rule.power)
        return float(self.eta[k]) if rule.name == "adaptive" else rule.eta0

    def _aggression(self, loss: float, slope: float, norm: float) -> float | None:
        """Return the passive-aggressive step, with the sign of the slope; None for other rules."""
        if self.rule.name not in ("pa1", "pa2"):
            return None
        most = self.rule.eta0
        size = loss / (norm + 0.5 / most) if self.rule.name == "pa2" else min(most, loss / norm)
        return float(np.sign(slope) * size)

    def _pay(self, stored: Any) -> None:
        for k in np.flatnonzero(self.active):
            before, had = self.W[k, stored], self.paid[k, stored]
            lower = np.maximum(0.0, before - (self.owed[k] + had))
            upper = np.minimum(0.0, before + (self.owed[k] - had))
            after = np.where(before > 0, lower, np.where(before < 0, upper, before))
            self.paid[k, stored] = had + after - before
            self.W[k, stored] = after
