r"""Logistic and softmax regression by Newton's method, or by gradient descent, step by step.

``F(W, b) = C Σ_i s_i l(f(x_i), c_i) + ½‖W‖²``. Newton: ``(W, b) −= t H⁻¹ ∇F`` with the Hessian ``H``, and the
largest ``t`` of 1, ½, ¼, … that makes ``F`` fall by a share of what the slope promises. Half of
``∇F·H⁻¹∇F`` estimates how far ``F`` is from its minimum, and ends the run. Gradient descent:
``(W, b) −= ∇F/L`` with a bound ``L`` of the curvature.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg, sparse

from separatrix.data.view import Array
from separatrix.losses import softmax
from separatrix.models._logistic_penalty import strength_of
from separatrix.models._weights import refuse_empty_classes, sample_weights
from separatrix.multiclass import Coding
from separatrix.traces._types import TraceStep, frozen, linear_columns, number

_ARMIJO = 1e-4
_MOST_PARAMETERS = 4000
# Losses this small tell of classes that a hyperplane separates.
_NOTHING = 1e-8


class LogisticTracer:
    """One logistic fit, iteration by iteration."""

    unit = "iteration"

    def __init__(self, model: Any, X: Any, y: Array, classes: Array, numbers: Array, weight: Any,
                 method: str) -> None:  # fmt: skip
        C, ratio = strength_of(model)
        if ratio > 0 and np.isfinite(C):
            raise ValueError("trace follows smooth objectives: set l1_ratio=0")
        if model.solver == "liblinear" and model.fit_intercept:
            raise ValueError("trace leaves the intercept free, unlike solver='liblinear': set solver='auto'")
        self.model, self.method, self.C = model, method, C
        self.coding = Coding.of("ovr" if len(classes) == 2 else model.multiclass, len(classes))
        dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        constant = np.full((len(dense), 1), 1.0 if model.fit_intercept else 0.0)
        self.X = np.hstack([dense, constant])
        self.numbers, P, d = numbers, self.coding.columns, self.X.shape[1]
        if method == "newton" and P * d > _MOST_PARAMETERS:
            raise ValueError(
                f"the Hessian of {P * d:,} parameters is too large to look at: take fewer features, or "
                "method='gradient'"
            )
        weights = sample_weights(X, y, numbers, classes, weight, model.class_weight, by_weight=True)
        refuse_empty_classes(classes, numbers, weights)
        self.s = np.ones(len(dense)) if weights is None else weights
        # Factor of the loss, and whether there is a penalty.
        self.factor: float = C if np.isfinite(C) else 1.0
        self.l2 = 1.0 if np.isfinite(C) else 0.0
        problem = model._problem(X, numbers, self.coding, weights)
        coef, intercept = model._start(problem, classes)
        self.W = np.hstack([coef, intercept[:, None]])
        if method == "gradient":
            # Of one column the curvature is at most ¼ of the scatter, of softmax columns ½.
            most = 0.5 if self.coding.joint else 0.25
            scatter = float(linalg.norm(self.X * np.sqrt(self.s)[:, None], 2)) ** 2
            self.rate = 1.0 / (most * self.factor * scatter + self.l2)

    columns = staticmethod(linear_columns)

    def steps(self) -> Iterator[TraceStep]:
        """Yield every iteration, then what the fit returns."""
        model = self.model
        goal = max(1e-4 * model.tol, min(model.tol, 1e-12))
        value, gradient, parts = self._measure(self.W)
        why, index = f"max_iter = {model.max_iter} iterations are over", 0
        for index in range(1, model.max_iter + 1):
            direction = self._direction(gradient, parts)
            promise = float(np.sum(gradient * direction))
            if self.method == "newton" and 0.5 * promise <= goal * max(abs(value), 1e-300):
                why = f"half the decrement, {number(0.5 * promise)}, is within the tolerance"
                index -= 1
                break
            if float(np.abs(gradient).max()) <= model.tol * 1e-6 * max(1.0, self.factor):
                why = "the gradient vanishes"
                index -= 1
                break
            before = value
            length, value, gradient, parts = self._search(value, direction, promise)
            if length == 0.0:
                why = "no step along the direction makes the objective smaller any more"
                index -= 1
                break
            yield self._step(index, before, value, gradient, promise, length)
            if self.l2 == 0 and value <= _NOTHING * self.s.sum():
                why = "the loss vanishes: the classes are separable, and unpenalised weights grow for ever"
                break
        yield TraceStep(0, index, (), False, why, "the weights are returned", frozen(self.W[:, :-1]),
                        frozen(self.W[:, -1]), objective=value, end=True, unit=self.unit)  # fmt: skip

    def _step(self, index: int, before: float, value: float, gradient: Array, promise: float,
              length: float) -> TraceStep:  # fmt: skip
        size = float(np.linalg.norm(gradient))
        if self.method == "newton":
            why = f"the quadratic model promises a fall by {number(0.5 * promise)}"
            what = f"W −= {'' if length == 1 else number(length) + ' '}H⁻¹∇F"
        else:
            why = f"F falls at the rate {number(promise / length)} along −∇F"
            what = f"W −= {number(length)} ∇F"
        what += f": F {number(before)} → {number(value)}, |∇F| = {number(size)}"
        facts = {"length": length, "gradient": size, "promise": promise}
        return TraceStep(index, index, (), True, why, what, frozen(self.W[:, :-1]), frozen(self.W[:, -1]),
                         objective=value, facts=facts, unit=self.unit)  # fmt: skip

    def _measure(self, W: Array) -> tuple[float, Array, Array]:
        """Return objective, gradient, and the probabilities from which the Hessian follows."""
        F = self.X @ W.T
        if self.coding.joint:
            losses = np.logaddexp.reduce(F, axis=1) - F[np.arange(len(F)), self.numbers]
            P = softmax(F)
            R = P.copy()
            R[np.arange(len(F)), self.numbers] -= 1.0
        else:
            codes = self.coding.codes[self.numbers]
            losses = np.logaddexp(0.0, -codes * F).sum(axis=1)
            P = 0.5 * (1.0 + np.tanh(0.5 * F))
            R = P - (codes > 0)
        penalty = self.l2 * W
        penalty[:, -1] = 0.0
        value = self.factor * float(self.s @ losses) + 0.5 * float(np.sum(penalty * W))
        gradient = self.factor * (R * self.s[:, None]).T @ self.X + penalty
        return value, gradient, P

    def _direction(self, gradient: Array, P: Array) -> Array:
        K, d = gradient.shape
        if self.method == "gradient":
            return np.asarray(gradient * self.rate)
        H = np.zeros((K, d, K, d))
        for k in range(K):
            for l in range(K) if self.coding.joint else (k,):
                curvature = P[:, k] * ((k == l) - P[:, l])
                H[k, :, l] = self.factor * (self.X * (self.s * curvature)[:, None]).T @ self.X
            H[k, np.arange(d - 1), k, np.arange(d - 1)] += self.l2
        flat = H.reshape(K * d, K * d)
        # Softmax weights may all move together without a change: the shortest direction is taken.
        step, *_ = linalg.lstsq(flat, gradient.ravel(), cond=1e-13)
        return np.asarray(step.reshape(K, d))

    def _search(self, value: float, direction: Array, promise: float) -> tuple[float, float, Array, Array]:
        """Take the longest step that keeps a part of the promise; none if rounding hides every fall."""
        length = 1.0
        while length > 1e-10:
            W = self.W - length * direction
            found, gradient, parts = self._measure(W)
            if found <= value - _ARMIJO * length * promise:
                self.W = W
                scale = self.rate if self.method == "gradient" else 1.0
                return length * scale, found, gradient, parts
            length *= 0.5
        return 0.0, value, *self._measure(self.W)[1:]
