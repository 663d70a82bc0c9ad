r"""The perceptron family in the primal form.

Joint rule: for a sample ``(x̃, c)`` every rival ``k ≠ c`` with ``a_k·x̃ + b > a_c·x̃`` gets
``a_k −= η x̃``, and if there was one, ``a_c += η x̃``. Column rule (binary problems side by side):
``w += η y x̃`` where ``y f(x) ≤ 0`` or ``y f(x) < b``. The passes run in ``_hot/perceptron.hpp``.

Which weights are returned: those of the last step, those of the pass whose end has the fewest
margin errors on the training set (the *pocket*), or the mean of the weights after every
presentation (Freund and Schapire, 1999). The errors of a pass's end are counted while the next pass
reads the rows, so the pocket costs no reading of its own. For sparse rows the weights that are judged
stand beside those that learn, feature by feature, so that it costs no look-ups of its own either.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import CsrView
from separatrix.data.view import Array, DataView
from separatrix.problem import Problem, Result
from separatrix.solvers._judge import certify, judge_linear, proves_separation
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._pocket import Pocket
from separatrix.solvers._rows import (
    SmallPasses,
    apart,
    at_one_go,
    chunk_rows,
    chunks,
    in_memory,
    row_bytes,
    run_rows,
)

#: Data above this size are judged in a thread of their own.
_THREAD_BYTES = 8 << 20
#: Of so many features at least, of which fewer than this part differ from zero, a model is one of words: its
#: intercept takes these steps. So many values are looked at, of so many rows at least.
_WIDE, _FILLED, _SMALL_STEP = 64, 0.1, 0.01
_VALUES, _ROWS = 1 << 18, 256


def _square(weights: Array) -> Any:
    """Return ``‖W‖²`` in double; not by BLAS, whose threads cost more than a pass when cores are busy."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.einsum("kj,kj->", weights, weights, dtype=np.float64)


def intercept_step(view: DataView, weights: Array | None) -> float:
    """Return what the steps of an intercept are multiplied by, where each column learns for itself.

    That is 1, but 0.01 for rows of many features that are mostly 0, as scikit-learn has it for sparse rows:
    each feature moves with few samples there, the intercept with every one, and would run ahead of them. (It
    is the same as a constant feature of 0.1 in place of 1.) What rows hold decides, not how they are stored.
    """
    n, d = view.shape
    if d < _WIDE or n == 0:
        return 1.0
    rows = np.linspace(0, n - 1, min(n, max(_ROWS, _VALUES // d))).astype(np.int64)
    block = view.take(rows)
    if sparse.issparse(block):
        each = np.bincount(np.repeat(np.arange(rows.size), np.diff(block.indptr)), block.data != 0, rows.size)
    else:
        each = np.count_nonzero(block, axis=1)
    present = np.ones(rows.size) if weights is None else weights[rows]
    return _SMALL_STEP if 0.0 < float(present @ each) < _FILLED * d * float(present.sum()) else 1.0


def _record(mistakes: float, margin_errors: float, criterion: float, square: float) -> dict[str, Any]:
    """Return what is reported of a pass; the errors of its end are filled in when they have been counted."""
    return {
        "mistakes": int(mistakes),
        "margin_errors": int(margin_errors),
        "criterion": criterion,
        "norm": math.sqrt(square),
        "training_errors": None,
    }


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
    average_state : dict or None
        :meth:`average_state` of an earlier batch.
    threads : int
        Threads to use; the result does not depend on it.
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
        threads: int = 1,
    ) -> None:
        view = in_memory(problem.view, "the perceptron")
        self.problem, self.view, self.eta, self.margin, self.keep = problem, view, eta, margin, keep
        self.validate, self.judge_start = validate, judge_start
        self._within_pass = self._cut_short = False
        self.threads = threads
        self.sparse = isinstance(view, CsrView)
        self.visits = Visits(view, problem.classes, problem.weights, shuffle=shuffle, seed=seed)
        small = problem.fit_intercept and not problem.joint
        self._intercept_step = intercept_step(view, problem.weights) if small else 1.0
        self._allocate(coef, intercept, average_state)

    def _allocate(self, coef: Array, intercept: Array, average_state: dict[str, Array] | None) -> None:
        problem, dtype, P = self.problem, self.view.dtype, self.problem.columns
        d = self.view.shape[1]
        layout = (d, P) if self.sparse else (P, d)
        self.judging = self.keep == "best"
        # One column is judged on the way, which costs next to nothing; several columns of data beyond the
        # caches in a second thread, so that whoever comes second finds the row in the shared cache.
        large = self.visits.order.shape[0] * row_bytes(self.view) > _THREAD_BYTES and self.view.rows_in_place
        several = not problem.penalty and self.validate is None
        self._at_one_go = several and at_one_go(self.view, self.visits, P)
        self._beside = self.judging and large and self.threads > 1 and P > 1 and not self._at_one_go
        # What is judged on the way stands beside what learns, feature by feature; see JudgeState in _hot.
        side_by_side = self.judging and self.sparse and not self._beside
        self._weights = np.zeros((d, 2 * P) if side_by_side else layout, dtype=dtype)
        self.intercept = apart(P, dtype)
        scores = apart(2 * P, dtype)
        self.intercept[...] = intercept
        if coef.any():
            self.coef[...] = coef
        self.active = np.ones(P, dtype=bool)
        self.averaging = self.keep == "average"
        self.clock = apart(1)
        drift = np.zeros(layout) if self.averaging else None
        drift_intercepts = np.zeros(P) if self.averaging else None
        if average_state and self.averaging:
            self.clock[:] = average_state["clock"]
            self._by_column(drift)[...] = average_state["drift"]
            drift_intercepts = average_state["drift_intercepts"].copy()
        penalty, weights = problem.penalty, self.visits.weights
        codes = np.ascontiguousarray(problem.codes, dtype=np.int8)
        shared: dict[str, Any] = {
            "classes": np.ascontiguousarray(problem.classes, dtype=np.int32),
            "row_weights": None if weights is None else np.ascontiguousarray(weights, dtype=dtype),
            "codes": codes,
        }
        # The arrays must live as long as the compiled states that point into them.
        self._shared = shared
        self._wanted = np.ascontiguousarray(codes != 0, dtype=np.uint8)
        self._arrays: dict[str, Any] = {
            "wanted": self._wanted,
            "weights": self._weights,
            "intercepts": self.intercept,
            "drift": drift,
            "drift_intercepts": drift_intercepts,
            "clock": self.clock,
            "scale": np.ones(P) if penalty else None,
            "owed": np.zeros(P) if penalty else None,
            "paid": np.zeros_like(self._weights) if penalty else None,
            "updates": apart(P, np.int64),
            "tally": apart(3),
            "remaining": apart(1),
            "scores": scores[:P],
        }
        single = dtype == np.float32
        self._learner = (_hot.PerceptronFloat32 if single else _hot.PerceptronFloat64)(
            **shared,
            **self._arrays,
            decay=self.eta * penalty.l2,
            truncation=self.eta * penalty.l1,
            joint=problem.joint,
            fit_intercept=problem.fit_intercept,
            intercept_step=self._intercept_step,
            eta=self.eta,
            margin=self.margin,
            largest=float(np.abs(coef).max(initial=0.0)),
        )
        if not self.judging:
            return
        self.pocket = Pocket(problem, self.coef, self.intercept)
        self._frozen: dict[str, Any] = {
            "wanted": self._wanted.copy(),
            "weights": self._weights[:, P:] if side_by_side else np.zeros_like(self._weights),
            "intercepts": apart(P, dtype),
            "largest": apart(1, dtype),
            "errors": apart(P),
            "scores": scores[P:] if side_by_side else apart(P, dtype),
        }
        self._judge = (_hot.JudgeFloat32 if single else _hot.JudgeFloat64)(
            **shared,
            **self._frozen,
            largest_wins=problem.largest_wins,
            margin=self.margin,
        )

    def _small_passes(self) -> SmallPasses | None:
        """Return passes that are made several at a time; None where the data are large, or each is judged."""
        if not self._at_one_go:
            return None
        given: dict[str, Any] = {"pocket": self.coef, "frozen": self.coef}
        given |= dict.fromkeys(("frozen_intercepts", "pocket_intercepts"), self.intercept)
        given |= dict.fromkeys(("errors", "pocket_errors"), self.clock)
        if self.judging:
            given["frozen"] = self._by_column(self._frozen["weights"])
            given["frozen_intercepts"], given["errors"] = self._frozen["intercepts"], self._frozen["errors"]
            given["pocket"], given["pocket_intercepts"] = self.pocket.coef, self.pocket.intercept
            given["pocket_errors"] = self.pocket.errors
        return SmallPasses(
            self.view,
            self.visits,
            (_hot.PerceptronPassesFloat32, _hot.PerceptronPassesFloat64),
            7,
            learner=self._learner,
            wanted=self._wanted,
            begun=self.judge_start,
            weights=self.coef,
            **given,
        )

    def _by_column(self, weights: Any) -> Array:
        """Return the weights as (columns, features), whatever their layout."""
        return np.asarray(weights.T if self.sparse else weights)

    @property
    def coef(self) -> Array:
        """Current weights, of shape (columns, features); a view."""
        weights = self._weights
        return self._by_column(weights[:, : self.problem.columns] if self.sparse else weights)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each pass."""
        small = self._small_passes()
        if small is not None:
            yield from self._small_steps(small, control)
            return
        tally, updates = self._arrays["tally"], self._arrays["updates"]
        before: dict[str, Any] = {}
        while True:
            tally[:], updates[:] = 0.0, 0
            self.visits.next_pass()
            # Weights that nothing has been learnt for do not compete, so nobody counts their errors.
            judged = self.judging and (bool(before) or self.judge_start)
            if judged:
                self._freeze()
            self._within_pass = True
            if not self._visit(control, judged):
                return
            self._within_pass = False
            self._pay_penalty()
            square = _square(self.coef) + _square(self.intercept[None])
            self._check_size(square)
            if judged:
                before["training_errors"] = self._fill_pocket()
            mistakes, margin_errors, criterion = tally.tolist()
            record = _record(mistakes, margin_errors, criterion, square)
            measure = criterion / self.visits.total + self.problem.penalty.value(self.coef)
            if self.validate is not None:
                record["validation_score"] = self.validate(self.coef, self.intercept)
                measure = -record["validation_score"]
            still = updates == 0
            finished = None
            if not self.problem.penalty:
                if not self.problem.joint:
                    self.active &= ~still
                    self._wanted[...] = (self.problem.codes != 0) & self.active
                if still.all():
                    record["training_errors"] = 0.0 if tally[0] == 0 else None
                    finished = "converged"
            step = Step(record, measure, finished)
            before = step.record
            yield step

    def _small_steps(self, small: SmallPasses, control: Control) -> Iterator[Step]:
        """Yield a step after each pass; passes are made several at a time."""
        judge = self._judge if self.judging else None
        largest, total = float(np.finfo(self.view.dtype).max), self.visits.total
        before: dict[str, Any] = {}
        while True:
            for numbers, seconds, followed in small.run(control, float("inf"), judge):
                _, mistakes, margin_errors, criterion, square, errors, still = numbers
                if not square <= largest:
                    self._check_size(square)
                if errors >= 0:
                    before["training_errors"] = errors
                record = _record(mistakes, margin_errors, criterion, square)
                finished = None
                if still:
                    record["training_errors"], finished = (0.0 if mistakes == 0 else None), "converged"
                step = Step(record, criterion / total, finished, seconds, followed)
                before = step.record
                yield step

    def _check_size(self, square: float) -> None:
        # Products of such weights would overflow in the precision of the data.
        if not square <= float(np.finfo(self.view.dtype).max):
            raise ValueError(
                "Floating-point under-/overflow occurred in the perceptron's weights. Scale the "
                "features, for example with sklearn.preprocessing.StandardScaler, or use a smaller eta0."
            )

    def _visit(self, control: Control, judged: bool) -> bool:
        """Present every sample once; return False if the loop wants to stop within the pass.

        Where the pass's start is to be judged, that happens on the same rows, on the way or beside.
        """
        order = self.visits.order
        n, chunk = order.shape[0], chunk_rows(self.view, self.problem.columns)
        beside = judged and self._beside
        judge = self._judge if judged and not beside else None
        helper = threading.Thread(target=self._judge_chunks, args=(order, chunk)) if beside else None
        self._cut_short = False
        if helper is not None:
            helper.start()
        try:
            for rows, begin, end, gathered in chunks(self.view, order, chunk):
                position = begin
                while position < end:
                    position = run_rows(self._learner, rows, order, position, end, chunk, gathered, judge)
                    if control.expired() and (position < end or end < n):
                        self._cut_short = True
                        return False
        finally:
            if helper is not None:
                helper.join()
        return True

    def _judge_chunks(self, order: Array, chunk: int) -> None:
        """Count the errors of the frozen weights on all samples, unless the pass is cut short."""
        if self.sparse:  # what learns on the way knows for itself how large they can be
            frozen = self._frozen["weights"]
            self._frozen["largest"][0] = max(frozen.max(initial=0.0), -frozen.min(initial=0.0))
        for rows, begin, end, gathered in chunks(self.view, order, chunk):
            if self._cut_short:
                return
            run_rows(self._judge, rows, order, begin, end, chunk, gathered)

    def _freeze(self) -> None:
        """Copy the current weights to where this pass counts their errors."""
        self._by_column(self._frozen["weights"])[...] = self.coef
        self._frozen["intercepts"][...] = self.intercept
        self._frozen["errors"][:] = 0.0

    def _fill_pocket(self) -> float:
        """Offer the frozen weights to the pocket; return their errors."""
        errors = self._frozen["errors"][: self.pocket.errors.shape[0]]
        self.pocket.offer(errors, self._by_column(self._frozen["weights"]), self._frozen["intercepts"])
        return float(errors.sum())

    def _pay_penalty(self) -> None:
        """Multiply the scale in and let all weights pay what they owe to L1."""
        if not self.problem.penalty:
            return
        arrays = self._arrays
        w = self.coef.astype(np.float64) * arrays["scale"][:, None]
        paid, owed = self._by_column(arrays["paid"])[: self.problem.columns], arrays["owed"][:, None]
        lower = np.where(w > 0, np.maximum(0.0, w - (owed + paid)), np.minimum(0.0, w + (owed - paid)))
        settled = lower if self.problem.penalty.l1 > 0 else w
        paid += settled - w
        self.coef[...], arrays["scale"][:] = settled, 1.0

    def finish(self, outcome: Outcome) -> Result:
        """Return the weights to keep and what they prove, after whatever ended the passes."""
        self._pay_penalty()
        coef, intercept = self.coef, self.intercept
        if self.judging:
            coef, intercept = self._choose(outcome.history, coef, intercept)
        coef, intercept = np.array(coef, order="C"), intercept.copy()
        if self.averaging and self.clock[0] > 0:
            coef -= self._by_column(self._arrays["drift"]) / self.clock[0]
            intercept -= self._arrays["drift_intercepts"] / self.clock[0]
        judgement = judge_linear(self.problem, coef, intercept, self.margin)
        proven = judgement.smallest > 0 and proves_separation(self.problem, coef, intercept)
        certificate = certify(judgement, outcome, proven=proven, margin=self.margin)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)

    def _choose(self, history: list[dict[str, Any]], coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return the best weights: those in the pocket, or the current ones."""
        nothing_yet = self._within_pass and not history and not self.judge_start
        if nothing_yet or (not self._within_pass and history[-1]["training_errors"] == 0.0):
            return coef, intercept
        # A pass that was cut short would have counted the errors of the last pass's end, which are frozen.
        # What the cut left half-way does not compete: a fit that must stop judges no more than it must.
        if not self._within_pass:
            self._freeze()
        self._frozen["errors"][:], self._cut_short = 0.0, False
        self._judge_chunks(self.visits.order, chunk_rows(self.view, self.problem.columns))
        errors = self._fill_pocket()
        if history:
            history[-1]["training_errors"] = errors
        return self.pocket.coef, self.pocket.intercept

    def average_state(self) -> dict[str, Array]:
        """Return what a later batch needs to go on with the average."""
        return {
            "coef": self.coef.copy(),
            "intercept": self.intercept.copy(),
            "clock": self.clock,
            "drift": self._by_column(self._arrays["drift"]).copy(),
            "drift_intercepts": self._arrays["drift_intercepts"],
        }
