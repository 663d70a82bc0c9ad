r"""Stochastic (sub)gradient descent for linear models.

Minimises for each column ``alpha R(w) + (1/n) Σ_i s_i l(y_i, w·x_i + b)``. Visit ``t`` of a sample takes

    w ← w − η_t (∂R-part + s l'(f) x),    b ← b − η_t s l'(f),

the L2 part of the penalty as decay, the L1 part by cumulative truncation. At a minimum
``0 ∈ alpha ∂R(w) + (1/n) Σ_i s_i ∂l_i x_i``. For ``η_t ~ 1/t`` and an L2 penalty the objective approaches
its minimum like ``log t / t``, the mean of the weights (Polyak–Ruppert) like ``1/t``: Bottou, "Stochastic
gradient descent tricks" (2012); Shalev-Shwartz et al., "Pegasos" (2011). The passes run in ``_hot/sgd.hpp``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.memory import CsrView
from separatrix.data.threads import in_threads
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._duality import certify, measure
from separatrix.solvers._loop import Control, NoImprovement, Outcome, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._rows import SmallPasses, at_one_go, chunk_rows, chunks, in_memory
from separatrix.solvers._sgd_columns import SgdColumns, shares

#: The losses that the compiled pass knows, in the order of LOSS_FUNCTIONS in _hot/sgd_losses.hpp.
SGD_LOSSES = (
    "perceptron",
    "hinge",
    "squared_hinge",
    "logistic",
    "modified_huber",
    "squared_error",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
)
#: Step rules by name, and their numbers in the enum Rate of _hot/sgd_state.hpp.
RATES = {
    "constant": 0,
    "adaptive": 0,
    "optimal": 1,
    "pegasos": 1,
    "invscaling": 2,
    "pa1": 3,
    "pa2": 4,
}
#: Steps of the intercept on sparse data are multiplied by this, as scikit-learn does it: features there
#: are mostly 0 while the intercept moves with every sample and would run ahead of them.
SPARSE_INTERCEPT_DECAY = 0.01
#: The adaptive rule does not divide a step below this any more.
_SMALLEST_ETA = 1e-6
#: Multiply-adds of a pass from which threads share its columns.
_THREAD_WORK = 4e6

#: What a pass reports: losses, ‖w‖² and ‖w‖₁ of each column, norm of all, its end, whether others follow.
_Pass = tuple[list[float], list[float], list[float], float, float | None, bool]


@dataclass(frozen=True)
class StepRule:
    r"""How the step ``η_t`` follows from the number ``t`` of the visit.

    ``constant`` and ``adaptive``: ``eta0``, the latter divided by 5 instead of stopping;
    ``invscaling``: ``eta0 / t^power``; ``pegasos``: ``1/(alpha t)``; ``optimal``:
    ``1/(alpha (t₀ + t − 1))`` with ``t₀`` such that the first step is ``alpha^(−1/4)``, a typical size of
    the weights (Bottou); ``pa1`` and ``pa2``: passive-aggressive.

    Examples
    --------
    >>> StepRule("optimal", alpha=1e-4).t0
    1000.0
    """

    name: str
    eta0: float = 0.01
    power: float = 0.5
    alpha: float = 1e-4

    @property
    def t0(self) -> float:
        """Offset of ``t`` in the rules that fall like ``1/t``."""
        return self.alpha**-0.75 if self.name == "optimal" else 1.0


class SgdSolver:
    """One fit by stochastic gradient descent, pass by pass.

    Parameters
    ----------
    problem : Problem
        Samples, codes or targets, loss, penalty and weights; its view must be in memory.
    coef, intercept : ndarray
        Initial weights of shape (columns, features) and (columns,).
    rule : StepRule
        The step rule.
    tol, patience
        Every column stops by itself when its objective failed to fall by ``tol`` for ``patience``
        passes; None: never.
    shuffle, seed
        Whether each pass visits the samples in a new random order, and where the orders start.
    watch : tuple of callable and ndarray, or None
        ``validate(coef, intercept)``, which gives a score per column on held-out samples, and their numbers;
        the negatives of the scores are then watched instead of the objective.
    average_from : int
        The visit from which on the weights are averaged; 0: not at all.
    average : tuple of ndarray or None
        Mean weights and intercepts of earlier batches.
    t : float
        Number of the first visit.
    threads : int
        Most threads that share the columns of large data; what they learn does not depend on it.
    """

    def __init__(
        self,
        problem: Problem,
        coef: Array,
        intercept: Array,
        *,
        rule: StepRule,
        tol: float | None = None,
        patience: int = 5,
        shuffle: bool = True,
        seed: int = 0,
        watch: tuple[Callable[[Array, Array], Array], Array] | None = None,
        average_from: int = 0,
        average: tuple[Array, Array] | None = None,
        t: float = 1.0,
        threads: int = 1,
    ) -> None:
        self.view = in_memory(problem.view, "stochastic gradient descent")
        if problem.loss.name not in SGD_LOSSES or problem.joint:
            raise ValueError(
                f"stochastic gradient descent knows the losses {', '.join(SGD_LOSSES)} on separate "
                f"columns, not {problem.loss.name} with joint={problem.joint}."
            )
        self.problem, self.rule = problem, rule
        self.validate = None if watch is None else watch[0]
        self.sparse = isinstance(self.view, CsrView)
        self.average_from = average_from
        self.visits = Visits(
            self.view,
            problem.classes,
            problem.weights,
            shuffle=shuffle,
            seed=seed,
            content=False,
            targets=problem.targets,
            held=None if watch is None else watch[1],
        )
        self._rules = [NoImprovement(tol, patience) for _ in range(problem.columns)]
        self._chunk = chunk_rows(self.view, problem.columns)
        self.objectives, self._learning = [0.0] * problem.columns, [True] * problem.columns
        self._allocate(coef, intercept, average, t, threads)

    def _allocate(
        self, coef: Array, intercept: Array, average: tuple[Array, Array] | None, t: float, threads: int
    ) -> None:
        problem, dtype, K = self.problem, self.view.dtype, self.problem.columns
        d = self.view.shape[1]
        self._eta, self.active = np.full(K, self.rule.eta0), np.ones(K, dtype=np.uint8)
        # Visits that each column's average holds, up to the time in _counted.
        self._counts, self._counted = np.full(K, self._averaged(0.0, t)), t
        loss, penalty = problem.loss, problem.penalty

        def converted(values: Array | None) -> Array | None:
            return None if values is None else np.ascontiguousarray(values, dtype=dtype)

        regression = problem.targets is not None
        given = {
            "classes": None if regression else np.ascontiguousarray(problem.classes, dtype=np.int32),
            "targets": converted(problem.targets if regression else problem.codes),
            "factors": converted(problem.factors),
            "row_weights": converted(self.visits.weights),
            "active": self.active,
            "eta": self._eta,
        }
        constants = {
            "loss": SGD_LOSSES.index(loss.name),
            "epsilon": 0.0 if loss.epsilon is None else loss.epsilon,
            "l2": penalty.l2,
            "l1": penalty.l1,
            "fit_intercept": problem.fit_intercept,
            "intercept_decay": SPARSE_INTERCEPT_DECAY if self.sparse else 1.0,
            "rate": RATES[self.rule.name],
            "eta0": self.rule.eta0,
            "power": self.rule.power,
            "alpha": self.rule.alpha,
            "t0": self.rule.t0,
            "average_from": float(self.average_from),
        }
        groups = shares(K, threads if self._worth_threads() else 1)
        self._parts = [
            SgdColumns(
                own,
                np.zeros((d, len(each)) if self.sparse else (len(each), d), dtype=dtype),
                each,
                sparse=self.sparse,
                averaging=self.average_from > 0,
                clock=t,
                given=given,
                constants=constants,
            )
            for own, each in ((own, intercept[own]) for own in groups)
        ]
        begun = coef.any()
        for own, part in zip(groups, self._parts, strict=True):
            if begun:
                part.coef[...] = coef[own]
            if part.drift is not None and average is not None:
                part.by_column(part.drift)[...] = -self._counts[own, None] * average[0][own]
                part.intercept_sums[...] = self._counts[own] * average[1][own]

    def _worth_threads(self) -> bool:
        """Return whether a pass takes so long that starting threads does not matter."""
        values = float(self.visits.order.shape[0]) * self.view.row_elements
        return values * self.problem.columns > _THREAD_WORK and not at_one_go(
            self.view, self.visits, self.problem.columns
        )

    @property
    def coef(self) -> Array:
        """Current weights, of shape (columns, features), to be read between passes."""
        if len(self._parts) == 1:
            return self._parts[0].coef
        # As they lie, by feature for sparse rows.
        weights = [part.weights for part in self._parts]
        return np.concatenate(weights, axis=1).T if self.sparse else np.concatenate(weights)

    @property
    def intercepts(self) -> Array:
        """Current intercepts, to be read between passes."""
        return np.concatenate([part.intercepts for part in self._parts])

    @property
    def t(self) -> float:
        """Number of the next visit."""
        return float(self._parts[0].clock[0])

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each pass."""
        n, l2, l1 = max(1, self.visits.order.shape[0]), self.problem.penalty.l2, self.problem.penalty.l1
        for losses, squares, sizes, norm, seconds, followed in self._passes(control):
            # Few numbers per pass: lists are quicker than arrays, and small data need many passes.
            for k, (loss, square, size) in enumerate(zip(losses, squares, sizes, strict=True)):
                if self._learning[k]:
                    self.objectives[k] = loss / n + 0.5 * l2 * square + l1 * size
            record = {"objective": sum(self.objectives), "norm": norm, "learning": sum(self._learning)}
            measures = self.objectives
            if self.validate is not None:
                scores = self.validate(self.coef, self.intercepts)
                measures = (-scores).tolist()
                record["validation_score"] = float(scores.mean())
            self._stop_columns(measures)
            finished = None if any(self._learning) else "converged"
            yield Step(record, record["objective"], finished, seconds, followed)

    def _passes(self, control: Control) -> Iterator[_Pass]:
        """Yield what each pass met."""
        small, epoch = self._small_passes(), 0
        while small is None:
            for part in self._parts:
                part.losses.fill(0.0)
            self.visits.next_pass()
            finished = self._visit(control)
            epoch += 1
            squares, norm = self._settle(epoch)
            if not finished:
                return
            sizes = squares
            if self.problem.penalty.l1 > 0:
                sizes = np.abs(self.coef).sum(axis=1, dtype=np.float64).tolist()
            losses = [loss for part in self._parts for loss in part.losses.tolist()]
            yield losses, squares, sizes, norm, None, False
        K = self.problem.columns
        while True:
            # Within these no column stops, or changes its steps.
            ahead = min((self._rules[k].ahead() for k in range(K) if self._learning[k]), default=1.0)
            for numbers, seconds, followed in small.run(control, ahead):
                epoch += 1
                squares, total = numbers[1 + K : 1 + 2 * K], numbers[-1]
                if not math.isfinite(total):
                    self._check_numbers(epoch)
                if not followed:
                    self._count_averaged()
                norm = math.sqrt(total) if total >= 0 else math.nan
                yield numbers[1 : 1 + K], squares, numbers[1 + 2 * K : 1 + 3 * K], norm, seconds, followed

    def _small_passes(self) -> SmallPasses | None:
        """Return passes that are made several at a time; None where the data are large, or each is judged."""
        K = self.problem.columns
        if self.validate is not None or not at_one_go(self.view, self.visits, K):
            return None
        (only,) = self._parts
        return SmallPasses(
            self.view,
            self.visits,
            (_hot.SgdPassesFloat32, _hot.SgdPassesFloat64),
            2 + 3 * K,
            learner=only.learner,
            weights=only.coef,
            drift=None if only.drift is None else only.by_column(only.drift),
        )

    def _stop_columns(self, measures: list[float]) -> None:
        """Let every column that is not getting better stop, or take shorter steps."""
        for k, measure_of_column in enumerate(measures):
            if not self._learning[k] or not self._rules[k](measure_of_column):
                continue
            if self.rule.name == "adaptive" and self._eta[k] > _SMALLEST_ETA:
                self._eta[k] /= 5.0
                self._rules[k].waited = 0
            else:
                self._learning[k], self.active[k] = False, 0

    def _visit(self, control: Control) -> bool:
        """Visit every sample once; return False if the loop wants to stop within the pass."""
        order, chunk = self.visits.order, self._chunk
        if self.view.rows_in_place and order.shape[0] <= chunk:
            self._visit_chunk(self.view.array, 0, order.shape[0], -1)
            return True
        for rows, begin, end, gathered in chunks(self.view, order, chunk):
            self._visit_chunk(rows, begin, end, gathered)
            if end < order.shape[0] and control.expired():
                return False
        return True

    def _visit_chunk(self, rows: Any, begin: int, end: int, gathered: int) -> None:
        """Let all columns visit these positions of the order."""

        def visit(number: int) -> None:
            self._parts[number].visit(rows, self.visits.order, begin, end, self._chunk, gathered)

        list(in_threads(visit, len(self._parts)))

    def _averaged(self, begin: float, end: float) -> float:
        """Return how many of the visits ``begin`` … ``end − 1`` the average takes in."""
        return max(0.0, end - max(begin, float(self.average_from))) if self.average_from else 0.0

    def _settle(self, epoch: int) -> tuple[list[float], float]:
        """Multiply the scale into the weights, which must be numbers; return ‖w‖² of each and the norm."""
        self._count_averaged()
        decays = self.problem.penalty.l2 > 0
        settled = in_threads(lambda number: self._parts[number].settle(decays=decays), len(self._parts))
        squares = [square for part in settled for square in part]
        total = sum(squares) + sum(b * b for b in self.intercepts.tolist())
        if not math.isfinite(total):
            self._check_numbers(epoch)
        return squares, math.sqrt(total) if total >= 0 else math.nan

    def _count_averaged(self) -> None:
        """Count the visits since the last time for the averages of the columns that learn."""
        if self.average_from:
            self._counts[self.active > 0] += self._averaged(self._counted, self.t)
            self._counted = self.t

    def _check_numbers(self, epoch: int) -> None:
        # Numbers whose squares overflow are numbers nevertheless: look at them one by one.
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercepts).all()):
            raise ValueError(
                f"Floating-point under-/overflow occurred at epoch #{epoch}. Scaling input data with "
                "StandardScaler or MinMaxScaler might help. So may a smaller eta0 (learning rates "
                "'constant', 'invscaling', 'adaptive') or a larger alpha ('optimal', 'pegasos')."
            )

    def mean(self) -> tuple[Array, Array]:
        """Return the mean weights and intercepts, of shape (columns, features) and (columns,)."""
        counts = np.maximum(self._counts, 1.0)
        drifts = np.concatenate([part.by_column(part.drift) for part in self._parts])
        sums = np.concatenate([part.intercept_sums for part in self._parts])
        return -drifts / counts[:, None], sums / counts

    def finish(self, outcome: Outcome, *, bound: bool = True) -> Result:
        """Return the weights to keep and what they prove, after whatever ended the passes."""
        dtype = self.view.dtype
        coef, intercept = self.coef, self.intercepts
        if self.average_from and self._counts.min() > 0:
            coef, intercept = self.mean()
        # Measured as they lie, by feature for sparse rows, before they are turned round.
        coef, intercept = coef.astype(dtype, order="K", copy=False), intercept.astype(dtype)
        objective = measure(self.problem, coef, intercept, bound=bound)
        coef = np.array(coef, order="C")
        certificate = certify(objective, outcome, _explain(outcome.status))
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)


def _explain(status: str) -> str:
    return {
        "converged": "no improvement by tol any more",
        "max_iter": "max_iter passes done; raise it for more",
        "max_time": "max_time is over; raise it for more passes",
        "interrupted": "interrupted; fit again to go on",
    }[status]
