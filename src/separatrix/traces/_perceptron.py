r"""The perceptron, sample by sample.

Column rule: where ``y f(x) ≤ 0`` or ``y f(x) < b``, do ``w += η y x̃``. Joint rule: every rival ``k`` of the
true class ``c`` with ``a_k·x̃ + b > a_c·x̃`` gets ``a_k −= η x̃``, and if there was one, ``a_c += η x̃``. Scores
are summed in the order of the compiled pass, so that a trace and a fit agree to the last bit. With a kernel,
``f(x) = Σ a_i k(x_i, x) + b``: a step on sample ``i`` changes ``a_i`` instead of ``w``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.kernels import resolve_kernel
from separatrix.models._weights import sample_weights
from separatrix.multiclass import Coding
from separatrix.solvers._loop import NoImprovement
from separatrix.solvers._order import Visits
from separatrix.solvers.perceptron import intercept_step
from separatrix.traces._types import TraceStep, frozen, linear_columns, number

_LANES = 8


def lane_dots(X: Array, w: Array) -> Array:
    """Return ``X w``, each product summed in 8 lanes that are folded in one order, as the core does it."""
    d = X.shape[1]
    products = X * w
    lanes = np.zeros((X.shape[0], _LANES), dtype=X.dtype)
    whole = d - d % _LANES if d >= _LANES else 0
    for start in range(0, whole, _LANES):
        lanes += products[:, start : start + _LANES]
    rest = d - whole
    if rest:
        # What is left of a long row goes to the last lanes, all of a short one to the first.
        place = slice(_LANES - rest, _LANES) if d >= _LANES else slice(0, rest)
        lanes[:, place] += products[:, whole:]
    a, b, c, e = (lanes[:, k] + lanes[:, k + 4] for k in (0, 2, 1, 3))
    return np.asarray((a + b) + (c + e))


class PerceptronTracer:
    """One perceptron fit, presentation by presentation."""

    unit = "pass"
    #: What the steps of the intercept are multiplied by.
    intercept_step = 1.0

    def __init__(self, model: Any, X: Array, y: Array, classes: Array, numbers: Array, weight: Any) -> None:
        for name, off in (("penalty", None), ("early_stopping", False)):
            given = getattr(model, name, off)
            if given != off:
                raise ValueError(
                    f"trace shows the plain perceptron and knows no {name}={given!r}: set {name}={off!r}"
                )
        self.model, self.X, self.classes, self.numbers = model, X, classes, numbers
        self.coding = Coding.of(model.multiclass, len(classes))
        self.sizes = sample_weights(X, y, numbers, classes, weight, None)
        weights = sample_weights(X, y, numbers, classes, weight, model.class_weight)
        seed = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
        self.visits = Visits(view_of(X), numbers, weights, shuffle=model.shuffle, seed=seed)
        if not self.coding.joint and not hasattr(model, "kernel"):
            self.intercept_step = intercept_step(view_of(X), weights)
        self.start(X.shape[1], X.dtype)

    def start(self, size: int, dtype: Any) -> None:
        """Set all to zero: `size` weights for each column."""
        T, model, P = dtype.type, self.model, self.coding.columns
        margin = model.margin
        if margin is None:
            margin = model.eta0 if self.coding.joint else 0.0
        self.number, self.eta, self.margin = T, T(model.eta0), T(margin)
        self.W, self.b = np.zeros((P, size), dtype=dtype), np.zeros(P, dtype=dtype)
        self.active = np.ones(P, dtype=bool)
        self.largest_wins = self.coding.joint or (P > 1 and bool(np.all(self.coding.codes)))
        # For the mean of the weights: sum of the steps, each times the presentations before it.
        self.clock, self.drift, self.drift_b = 0.0, np.zeros(self.W.shape), np.zeros(P)
        self.best: tuple[Array, Array, Array] | None = None
        self.counter, self.mistakes = 0, 0

    def columns(self, step: TraceStep, points: Array) -> Array:
        """Return the score columns of points under the weights after a step."""
        return linear_columns(step, points)

    def scores(self, rows: Any) -> Array:
        """Return the score columns of samples."""
        X = self.X[rows]
        return np.stack([lane_dots(X, w) for w in self.W], axis=1) + self.b

    def add(self, k: int, row: int, amount: Any) -> None:
        """Add a multiple of a sample to a column."""
        self.W[k] += amount * self.X[row]
        self.drift[k] += self.clock * float(amount) * self.X[row]
        if self.model.fit_intercept:
            self.b[k] += amount * self.number(self.intercept_step)
            self.drift_b[k] += self.clock * float(amount) * float(self.number(self.intercept_step))

    def words(self, index: str, row: int) -> tuple[str, str]:
        """Return what a step changes and what it adds, in words."""
        return f"w{index}", " x"

    def parameters(self, W: Array, b: Array) -> dict[str, Any]:
        """Return the parameters as a step holds them."""
        return {"coef": frozen(W), "intercept": frozen(b)}

    def steps(self) -> Iterator[TraceStep]:
        """Yield every presentation, then what the fit returns."""
        model, visits = self.model, self.visits
        each = None if visits.weights is None else visits.weights.astype(self.b.dtype)
        rule = NoImprovement(model.tol, model.n_iter_no_change)
        why = f"max_iter = {model.max_iter} passes are over"
        for index in range(1, model.max_iter + 1):
            visits.next_pass()
            self.updates, self.criterion = np.zeros(len(self.b), dtype=int), 0.0
            for row in visits.order.tolist():
                left = 1.0 if each is None else float(each[row])
                while left > 0:
                    weight = min(left, 1.0)
                    yield self._present(index, row, weight)
                    left -= weight
            self._judge()
            still = self.updates == 0
            if not self.coding.joint:
                self.active &= ~still
            if still.all():
                why = "a whole pass changed nothing"
                break
            if rule(self.criterion / visits.total):
                why = f"no better by tol for {model.n_iter_no_change} passes"
                break
        yield self._close(index, why, bool(still.all()))

    def _present(self, index: int, row: int, weight: float) -> TraceStep:
        c = int(self.numbers[row])
        scores = self.scores([row])[0]
        learn = self._learn_jointly if self.coding.joint else self._learn_columns
        why, pushed = learn(scores, c, weight)
        words = []
        for k, sign in pushed:
            amount = self.number(sign) * self.eta * self.number(weight)
            self.add(k, row, amount)
            self.updates[k] += 1
            words.append(self._words(k, row, float(amount)))
        self.clock += weight
        self.counter += 1
        return TraceStep(
            self.counter,
            index,
            (row,),
            bool(pushed),
            why,
            "; ".join(words) or "nothing changes",
            **self.parameters(self.W, self.b),
            facts={"score": float(scores[c if self.coding.joint else 0]), "mistakes": self.mistakes},
            unit=self.unit,
            names=(str(self.classes[c]),),
        )

    def _words(self, k: int, row: int, amount: float) -> str:
        index = "" if len(self.W) == 1 else self._label(k)
        sign = "+=" if amount > 0 else "−="
        size = number(abs(amount))
        what, times = self.words(index, row)
        of_intercept = number(abs(amount) * self.intercept_step)
        intercept = f", b{index} {sign} {of_intercept}" if self.model.fit_intercept else ""
        return f"{what} {sign} {size}{times}{intercept}"

    def _label(self, k: int) -> str:
        """Name a column: its class, or its pair of classes."""
        codes = self.coding.codes[:, k]
        positive = self.classes[np.flatnonzero(codes > 0)[0]]
        if self.coding.name == "ovo":
            return f"[{positive}|{self.classes[np.flatnonzero(codes < 0)[0]]}]"
        return f"[{positive}]"

    def _learn_columns(self, scores: Array, c: int, weight: float) -> tuple[str, list[tuple[int, int]]]:
        pushed, seen = [], []
        for k, y in enumerate(self.coding.codes[c].tolist()):
            if y == 0 or not self.active[k]:
                continue
            m = self.number(y) * scores[k]
            if m < self.margin:
                self.criterion += weight * (float(self.margin) - float(m))
            self.mistakes += bool(m <= 0)
            index = "" if len(self.W) == 1 else self._label(k)
            if m <= 0:
                seen.append(f"y f{index}(x) = {number(m)} is not positive")
                pushed.append((k, y))
            elif m < self.margin:
                seen.append(f"y f{index}(x) = {number(m)} is below the margin {number(self.margin)}")
                pushed.append((k, y))
            elif len(self.W) == 1:
                seen.append(f"y f(x) = {number(m)} is on the right side")
        return " and ".join(seen) or "every column is on the right side", pushed

    def _learn_jointly(self, scores: Array, c: int, weight: float) -> tuple[str, list[tuple[int, int]]]:
        own, pushed, deepest = scores[c], [], 0.0
        for k, f in enumerate(scores):
            if k != c and f + self.margin > own:
                pushed.append((k, -1))
                deepest = max(deepest, float(f + self.margin) - float(own))
        self.mistakes += int(np.argmax(scores)) != c
        self.criterion += weight * deepest
        if not pushed:
            return f"its own score {number(own)} leads by the margin {number(self.margin)}", []
        rivals = ", ".join(f"{self.classes[k]} ({number(scores[k])})" for k, _ in pushed)
        return f"its own score {number(own)} does not lead {rivals} by the margin", [*pushed, (c, 1)]

    def _judge(self) -> None:
        """Offer the weights to the pocket: fewest margin errors on all samples, of equals the later."""
        if self.model.keep != "best":
            return
        weights = self.visits.weights
        s = np.ones(len(self.numbers)) if weights is None else weights
        every = np.arange(len(self.numbers))
        F = self.scores(every)
        if self.largest_wins:
            own = F[every, self.numbers]
            others = F.copy()
            others[every, self.numbers] = -np.inf
            wrong = (F.argmax(axis=1) != self.numbers) | (others.max(axis=1) + self.margin > own)
            errors = np.array([(s * wrong).sum()])
        else:
            codes = self.coding.codes[self.numbers]
            wrong = ((F >= 0) != (codes > 0)) | (codes * F < self.margin)
            errors = s @ (wrong & (codes != 0))
        if self.best is None:
            self.best = errors, self.W.copy(), self.b.copy()
            return
        fewest, W, b = self.best
        better = errors <= fewest
        columns = np.broadcast_to(better, self.b.shape)
        W[columns], b[columns] = self.W[columns], self.b[columns]
        self.best = np.where(better, errors, fewest), W, b

    def _close(self, index: int, why: str, done: bool) -> TraceStep:
        W, b, what = self.W, self.b, "the last weights are returned"
        if self.model.keep == "average":
            W, b = W - self.drift / self.clock, b - self.drift_b / self.clock
            what = "the mean of the weights after every presentation is returned"
        elif self.model.keep == "best" and not done and self.best is not None:
            fewest, W, b = self.best
            what = f"the weights of the pass with the fewest errors ({number(fewest.sum())}) are returned"
        facts = {"mistakes": float(self.mistakes)}
        found = self.parameters(W.astype(self.W.dtype), b.astype(self.b.dtype))
        return TraceStep(0, index, (), False, why, what, **found, facts=facts, end=True, unit=self.unit)


class KernelPerceptronTracer(PerceptronTracer):
    """One kernel perceptron fit, presentation by presentation; the weights are those of the samples."""

    def start(self, size: int, dtype: Any) -> None:
        """Set all to zero, the scores of the samples included, which every step keeps up to date."""
        super().start(len(self.numbers), np.dtype(np.float64))
        model = self.model
        self.kernel = resolve_kernel(
            model.kernel,
            gamma=model.gamma,
            degree=model.degree,
            coef0=model.coef0,
            X=self.X,
            weights=self.sizes,
        )
        self.F = np.zeros((len(self.numbers), len(self.b)))

    def columns(self, step: TraceStep, points: Array) -> Array:
        """Return ``Σ a_i k(x_i, x) + b`` for each point and column."""
        A = np.atleast_2d(np.asarray(step.alpha))
        rows = np.flatnonzero(A.any(axis=0))
        scores = np.tile(step.intercept, (len(points), 1))
        if rows.size:
            scores += np.asarray(self.kernel(points, self.X[rows])) @ A[:, rows].T
        return scores

    def scores(self, rows: Any) -> Array:
        """Return the score columns of samples."""
        return np.asarray(self.F[rows])

    def add(self, k: int, row: int, amount: Any) -> None:
        """Add to a sample's coefficient in a column, and its kernel row to the scores."""
        self.W[k, row] += amount
        self.drift[k, row] += self.clock * amount
        self.F[:, k] += np.asarray(self.kernel(self.X[[row]], self.X))[0] * amount
        if self.model.fit_intercept:
            self.b[k] += amount
            self.drift_b[k] += self.clock * amount
            self.F[:, k] += amount

    def words(self, index: str, row: int) -> tuple[str, str]:
        """Return what a step changes and what it adds, in words."""
        return f"a{index}[{row}]", ""

    def parameters(self, W: Array, b: Array) -> dict[str, Any]:
        """Return the parameters as a step holds them."""
        return {"coef": None, "intercept": frozen(b), "alpha": frozen(W[0] if len(W) == 1 else W)}
