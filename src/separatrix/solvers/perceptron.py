r"""The perceptron family in the primal form.

Joint rule: for a sample ``(x̃, c)`` every rival ``k ≠ c`` with ``a_k·x̃ + b > a_c·x̃`` gets
``a_k −= η x̃``, and if there was one, ``a_c += η x̃``. Column rule (binary problems side by side):
``w += η y x̃`` where ``y f(x) ≤ 0`` or ``y f(x) < b``. The passes run in ``_hot/perceptron.hpp``.

Which weights are returned: those of the last step, those of the pass whose end has the fewest
margin errors on the training set (the *pocket*), or the mean of the weights after every
presentation (Freund and Schapire, 1999). The errors of a pass's end are counted while the next pass
reads the rows, so the pocket costs no reading of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import CsrView, DenseView
from separatrix.data.view import BLOCK_BYTES, Array
from separatrix.problem import Problem
from separatrix.solvers._judge import judge_linear
from separatrix.solvers._loop import Control, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._pocket import Pocket

#: Multiply-adds between two looks at the clock: some 10 ms of work.
_CHUNK_WORK = 1 << 24


class PerceptronSolver:
    """One perceptron fit, pass by pass.

    Parameters
    ----------
    problem : Problem
        Samples, codes, penalty and weights; its view must be in memory.
    coef, intercept : ndarray
        Initial weights of shape (columns, features) and (columns,).
    eta, margin : float
        Learning rate and margin ``b``.
    keep : {"best", "last", "average"}
        Which weights to return.
    shuffle : bool
        Whether each pass visits the samples in a new random order.
    seed : int
        Where the random orders start.
    judge_start : bool
        Whether the initial weights compete for the pocket.
    validate : callable or None
        ``validate(coef, intercept) -> accuracy`` on held-out samples; its negative is then the
        measure that the stop rule watches.
    """

    def __init__(
        self,
        problem: Problem,
        coef: Array,
        intercept: Array,
        *,
        eta: float,
        margin: float,
        keep: str = "last",
        shuffle: bool = False,
        seed: int = 0,
        judge_start: bool = False,
        validate: Callable[[Array, Array], float] | None = None,
        average_state: dict[str, Array] | None = None,
    ) -> None:
        view = problem.view
        if not isinstance(view, DenseView | CsrView):
            raise TypeError(
                f"the perceptron visits rows one by one and needs data in memory, not {type(view).__name__}."
            )
        self.problem, self.view, self.eta, self.margin, self.keep = problem, view, eta, margin, keep
        self.validate, self.judge_start = validate, judge_start
        self._within_pass = False
        self.sparse = isinstance(view, CsrView)
        self.visits = Visits(view, problem.classes, problem.weights, shuffle=shuffle, seed=seed)
        self._allocate(coef, intercept, average_state)

    def _allocate(self, coef: Array, intercept: Array, average_state: dict[str, Array] | None) -> None:
        problem, dtype, P = self.problem, self.view.dtype, self.problem.columns
        d, K = self.view.shape[1], problem.codes.shape[0]
        self.judging = self.keep == "best"
        self.total = 2 * P if self.judging else P
        self._weights = np.zeros((d, self.total) if self.sparse else (self.total, d), dtype=dtype)
        self._intercepts = np.zeros(self.total, dtype=dtype)
        self.coef[...], self.intercept[...] = coef, intercept
        self.active = np.ones(P, dtype=bool)
        self._codes = np.ascontiguousarray(problem.codes, dtype=np.int8)
        self._wanted = np.ones((K, self.total), dtype=np.uint8)
        self._want_scores()
        self.pocket = Pocket(problem, self.coef, self.intercept)
        self.averaging = self.keep == "average"
        self.clock = np.zeros(1)
        drift = np.zeros((d, P) if self.sparse else (P, d)) if self.averaging else None
        drift_intercepts = np.zeros(P) if self.averaging else None
        if average_state and self.averaging:
            self.clock[:] = average_state["clock"]
            self._by_column(drift)[...] = average_state["drift"]
            drift_intercepts = average_state["drift_intercepts"].copy()
        penalty = problem.penalty
        self._arrays: dict[str, Any] = {
            "classes": np.ascontiguousarray(problem.classes, dtype=np.int32),
            "row_weights": None
            if self.visits.weights is None
            else np.ascontiguousarray(self.visits.weights, dtype=dtype),
            "codes": self._codes,
            "wanted": self._wanted,
            "weights": self._weights,
            "intercepts": self._intercepts,
            "drift": drift,
            "drift_intercepts": drift_intercepts,
            "clock": self.clock,
            "scale": np.ones(P) if penalty else None,
            "owed": np.zeros(P) if penalty else None,
            "paid": np.zeros_like(self._weights) if penalty else None,
            "updates": np.zeros(P, dtype=np.int64),
            "judged": np.zeros(P),
            "tally": np.zeros(3),
            "remaining": np.zeros(1),
            "scores": np.zeros(self.total, dtype=dtype),
        }
        kind = _hot.PerceptronFloat32 if dtype == np.float32 else _hot.PerceptronFloat64
        self._pass = kind(
            **self._arrays,
            decay=self.eta * penalty.l2,
            truncation=self.eta * penalty.l1,
            joint=problem.joint,
            largest_wins=problem.largest_wins,
            fit_intercept=problem.fit_intercept,
            eta=self.eta,
            margin=self.margin,
        )

    def _by_column(self, weights: Any) -> Array:
        """Return the weights as (columns, features), whatever their layout."""
        return np.asarray(weights.T if self.sparse else weights)

    @property
    def coef(self) -> Array:
        """Current weights, of shape (columns, features); a view."""
        return self._by_column(self._weights)[: self.problem.columns]

    @property
    def intercept(self) -> Array:
        """Current intercepts; a view."""
        return self._intercepts[: self.problem.columns]

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each pass."""
        tally, updates = self._arrays["tally"], self._arrays["updates"]
        before: dict[str, Any] = {}
        while True:
            tally[:], updates[:] = 0.0, 0
            self.visits.next_pass()
            if self.judging:
                self._freeze()
            self._within_pass = True
            if not self._visit(control):
                return
            self._within_pass = False
            self._pay_penalty()
            norm = float(np.hypot(np.linalg.norm(self.coef), np.linalg.norm(self.intercept)))
            if not np.isfinite(norm):
                raise ValueError(
                    "Floating-point under-/overflow occurred in the perceptron's weights. Scale the "
                    "features, for example with sklearn.preprocessing.StandardScaler, or use a smaller eta0."
                )
            if self.judging:
                before["training_errors"] = self._fill_pocket(bool(before) or self.judge_start)
            record: dict[str, Any] = {
                "mistakes": int(tally[0]),
                "margin_errors": int(tally[1]),
                "criterion": float(tally[2]),
                "norm": norm,
                "training_errors": None,
            }
            measure = float(tally[2]) / self.visits.total + self.problem.penalty.value(self.coef)
            if self.validate is not None:
                record["validation_score"] = self.validate(self.coef, self.intercept)
                measure = -record["validation_score"]
            still = updates == 0
            finished = None
            if not self.problem.penalty:
                if not self.problem.joint:
                    self.active &= ~still
                    self._want_scores()
                if still.all():
                    record["training_errors"] = 0.0 if tally[0] == 0 else None
                    finished = "converged"
            step = Step(record, measure, finished)
            before = step.record
            yield step

    def _visit(self, control: Control) -> bool:
        """Present every sample once; return False if the loop wants to stop within the pass."""
        n = self.visits.order.shape[0]
        per_row = max(1.0, self.view.row_elements) * self.total
        chunk = int(max(1, _CHUNK_WORK // per_row))
        if not self.view.rows_in_place:
            row_bytes = max(1.0, self.view.row_elements) * (self.view.dtype.itemsize + 8 * self.sparse)
            chunk = int(max(1, min(chunk, BLOCK_BYTES // row_bytes)))
        for begin in range(0, n, chunk):
            end = min(begin + chunk, n)
            if self.view.rows_in_place:
                source, gathered = self.view.array, -1
            else:
                source, gathered = self.view.take(self.visits.order[begin:end]), begin
            position = begin
            while position < end:
                position = self._run(source, position, end, chunk, gathered)
                if control.expired() and (position < end or end < n):
                    return False
        return True

    def _run(self, source: Any, begin: int, end: int, budget: int, gathered: int) -> int:
        fetch = self.visits.fetch if gathered < 0 else None
        visits = (self.visits.order, fetch, begin, end, budget, gathered)
        if sparse.issparse(source):
            csr = (source.data, source.indices, source.indptr, self.view.shape[1])
            return int(self._pass.run_csr(*csr, *visits))
        return int(self._pass.run_dense(source, *visits))

    def _want_scores(self) -> None:
        """Say which scores a sample of each class needs: of its own, still learning columns."""
        P, taking_part = self.problem.columns, self._codes != 0
        self._wanted[:, :P] = taking_part & self.active
        self._wanted[:, P:] = taking_part[:, : self.total - P]

    def _freeze(self) -> None:
        """Copy the current columns to where the next pass counts their errors."""
        P = self.problem.columns
        self._by_column(self._weights)[P:] = self.coef
        self._intercepts[P:] = self.intercept
        self._arrays["judged"][:] = 0.0

    def _fill_pocket(self, competes: bool) -> float:
        """Offer the frozen columns to the pocket; return their errors."""
        P = self.problem.columns
        errors = self._arrays["judged"][: self.pocket.errors.shape[0]]
        if competes:
            self.pocket.offer(errors, self._by_column(self._weights)[P:], self._intercepts[P:])
        return float(errors.sum())

    def _pay_penalty(self) -> None:
        """Multiply the scale in and let all weights pay what they owe to L1."""
        if not self.problem.penalty:
            return
        P, arrays = self.problem.columns, self._arrays
        w = self.coef.astype(np.float64) * arrays["scale"][:, None]
        paid, owed = self._by_column(arrays["paid"])[:P], arrays["owed"][:, None]
        lower = np.where(w > 0, np.maximum(0.0, w - (owed + paid)), np.minimum(0.0, w + (owed - paid)))
        settled = lower if self.problem.penalty.l1 > 0 else w
        paid += settled - w
        self.coef[...], arrays["scale"][:] = settled, 1.0

    def finish(self, history: list[dict[str, Any]]) -> tuple[Array, Array]:
        """Return the weights to keep, after whatever ended the passes."""
        self._pay_penalty()
        coef, intercept = self.coef.copy(), self.intercept.copy()
        if self.averaging and self.clock[0] > 0:
            coef -= self._by_column(self._arrays["drift"]) / self.clock[0]
            intercept -= self._arrays["drift_intercepts"] / self.clock[0]
        if not self.judging:
            return coef, intercept
        if self._within_pass:
            # The pass that would have counted the errors of the last pass's end was cut short.
            P = self.problem.columns
            if history or self.judge_start:
                frozen = self._by_column(self._weights)[P:], self._intercepts[P:]
                errors = self._offer(*frozen)
                if history:
                    history[-1]["training_errors"] = errors
            self._offer(coef, intercept)
        elif history[-1]["training_errors"] == 0.0:
            return coef, intercept
        else:
            history[-1]["training_errors"] = self._offer(coef, intercept)
        return self.pocket.coef, self.pocket.intercept

    def _offer(self, coef: Array, intercept: Array) -> float:
        errors = judge_linear(self.problem, coef, intercept, self.margin).errors
        self.pocket.offer(errors, coef, intercept)
        return float(errors.sum())

    def average_state(self) -> dict[str, Array]:
        """Return what a later batch needs to go on with the average."""
        return {
            "coef": self.coef.copy(),
            "intercept": self.intercept.copy(),
            "clock": self.clock,
            "drift": self._by_column(self._arrays["drift"]).copy(),
            "drift_intercepts": self._arrays["drift_intercepts"],
        }
