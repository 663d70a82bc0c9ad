r"""The perceptron family in the dual form: ``f(x) = Σ_i a_i k(x_i, x) + b``.

The same rules as in the primal form, with the scores of all training samples kept up to date: a
step on sample ``i`` adds ``step · k(x_i, ·)`` to them. Samples between two mistakes are passed over
in one vectorised look. Kernel rows are computed when first needed and kept within a budget.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import numpy as np

from separatrix.data.memory import CsrView, DenseView
from separatrix.data.texts import TextView
from separatrix.data.view import Array
from separatrix.kernels import Kernel
from separatrix.problem import Problem, Result
from separatrix.solvers import _judge
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._pocket import Pocket


class KernelRows:
    """Rows of the kernel matrix, least recently used ones dropped beyond a budget of bytes."""

    def __init__(self, problem: Problem, budget: float) -> None:
        if problem.kernel is None:
            raise TypeError("the problem has no kernel.")
        self.kernel: Kernel = problem.kernel
        self.view, self.budget, self.used = problem.view, budget, 0
        self.rows: OrderedDict[int, Array] = OrderedDict()

    def __getitem__(self, i: int) -> Array:
        if i in self.rows:
            self.rows.move_to_end(i)
            return self.rows[i]
        x = self.view.take(np.array([i]))
        row = np.empty(self.view.shape[0], dtype=self.view.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in self.view.blocks():
                row[rows] = self.kernel(x, block)[0]
        if not np.isfinite(row).all():
            raise ValueError(
                f"the kernel values of sample {i} are not finite: they overflow {row.dtype}. Scale the "
                "features, for example with sklearn.preprocessing.StandardScaler, or choose other kernel "
                "parameters."
            )
        while self.rows and self.used + row.nbytes > self.budget:
            self.used -= self.rows.popitem(last=False)[1].nbytes
        if row.nbytes <= self.budget:
            self.rows[i] = row
            self.used += row.nbytes
        return row


class KernelPerceptronSolver:
    """One kernel perceptron fit, pass by pass.

    Parameters
    ----------
    problem : Problem
        Samples, codes, kernel and weights.
    eta, margin : float
        Learning rate and margin ``b``.
    keep : {"best", "last", "average"}
        Which coefficients to return.
    shuffle : bool
        Whether each pass visits the samples in a new random order.
    seed : int
        Where the random orders start.
    cache_bytes : float
        Budget of the kept kernel rows.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        eta: float,
        margin: float,
        keep: str = "last",
        shuffle: bool = False,
        seed: int = 0,
        cache_bytes: float = 200e6,
    ) -> None:
        self.problem, self.eta, self.margin, self.keep = problem, eta, margin, keep
        self.kernel_rows = KernelRows(problem, cache_bytes)
        n, P = problem.view.shape[0], problem.columns
        if not isinstance(problem.view, DenseView | CsrView | TextView):
            raise TypeError(f"the kernel perceptron needs data in memory, not {type(problem.view).__name__}.")
        self.visits = Visits(problem.view, problem.classes, problem.weights, shuffle=shuffle, seed=seed)
        self.coef, self.intercept = np.zeros((P, n)), np.zeros(P)
        self.scores = np.zeros((n, P))
        self.clock = 0.0
        self.drift, self.drift_intercept = np.zeros((P, n) if keep == "average" else (0, 0)), np.zeros(P)
        self.pocket = Pocket(problem, self.coef, self.intercept)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each pass."""
        while True:
            self.visits.next_pass()
            self.mistakes = self.margin_errors = self.updates = 0
            self.criterion = 0.0
            if not self._visit(control):
                return
            judgement = self.judge()
            if self.keep == "best":
                self.pocket.offer(judgement.errors, self.coef, self.intercept)
            record = {
                "mistakes": self.mistakes,
                "margin_errors": self.margin_errors,
                "criterion": self.criterion,
                "norm": float(np.sqrt(max(0.0, float((self.coef.T * (self.scores - self.intercept)).sum())))),
                "training_errors": float(judgement.errors.sum()),
            }
            measure = self.criterion / self.visits.total
            yield Step(record, measure, "converged" if self.updates == 0 else None)

    def judge(self) -> _judge.Judgement:
        """Judge the current scores of the training samples."""
        judgement = _judge.start(self.problem)
        _judge.add(
            judgement, self.problem, self.scores, self.problem.classes, self.problem.weights, self.margin
        )
        return judgement

    def _shortfalls(self, samples: Array) -> tuple[Array, Array, Array]:
        """Return, per sample and column, the wanted step sign; the criterion's part; who is mistaken."""
        f, classes = self.scores[samples], self.problem.classes[samples]
        codes = self.problem.codes[classes].astype(np.float64)
        if self.problem.joint:
            own, _, beaten = _judge.own_and_rival(f, classes)
            excess = f + self.margin - own[:, None]
            excess[np.arange(samples.shape[0]), classes] = 0.0
            signs = -(excess > 0).astype(np.float64)
            signs[np.arange(samples.shape[0]), classes] = (excess > 0).any(axis=1)
            return signs, np.maximum(excess.max(axis=1), 0.0), beaten.astype(int)
        m = codes * f
        taking_part = codes != 0
        mistaken = taking_part & (m <= 0)
        signs = np.where(mistaken | (taking_part & (m < self.margin)), codes, 0.0)
        part = np.where(taking_part, np.maximum(self.margin - m, 0.0), 0.0).sum(axis=1)
        return signs, part, mistaken.sum(axis=1)

    def _visit(self, control: Control) -> bool:
        order, weights = self.visits.order, self.visits.weights
        position, n = 0, order.shape[0]
        window = 32
        while position < n:
            ahead = order[position : position + window]
            signs, part, mistaken = self._shortfalls(ahead)
            wrong = np.flatnonzero(signs.any(axis=1))
            passed = int(wrong[0]) if wrong.size else ahead.shape[0]
            s = np.ones(passed) if weights is None else weights[ahead[:passed]]
            self.clock += float(s.sum())
            # A tie counts as a mistake of the decision even where the strict rule lets it pass.
            self.mistakes += int(mistaken[:passed].sum())
            self.criterion += float(s @ part[:passed])
            position += passed
            window = min(2 * window, 1 << 14) if not wrong.size else 32
            if wrong.size:
                self._present(int(ahead[passed]), control)
                position += 1
            if control.expired() and position < n:
                return False
        return True

    def _present(self, i: int, control: Control) -> None:
        """Present sample ``i`` as often as its weight says, the last time with the fraction."""
        left = 1.0 if self.visits.weights is None else float(self.visits.weights[i])
        row: Array | None = None
        while left > 0:
            weight = min(1.0, left)
            signs, part, mistaken = self._shortfalls(np.array([i]))
            if not signs.any() or control.expired():
                self.clock += left
                return
            row = self.kernel_rows[i] if row is None else row
            self._step(i, row, signs[0] * self.eta * weight)
            self.mistakes += int(mistaken[0])
            self.margin_errors += 1 if self.problem.joint else int(np.count_nonzero(signs))
            self.criterion += weight * float(part[0])
            self.clock += weight
            left -= weight

    def _step(self, i: int, row: Array, steps: Array) -> None:
        columns = np.flatnonzero(steps)
        self.coef[columns, i] += steps[columns]
        self.scores[:, columns] += row[:, None] * steps[columns]
        if self.problem.fit_intercept:
            self.intercept[columns] += steps[columns]
            self.scores[:, columns] += steps[columns]
        if self.keep == "average":
            self.drift[columns, i] += self.clock * steps[columns]
            if self.problem.fit_intercept:
                self.drift_intercept[columns] += self.clock * steps[columns]
        self.updates += 1

    def finish(self, outcome: Outcome) -> Result:
        """Return the coefficients to keep and what they prove, after whatever ended the passes."""
        coef, intercept = self.coef, self.intercept
        if self.keep == "average" and self.clock > 0:
            coef = coef - self.drift / self.clock
            intercept = intercept - self.drift_intercept / self.clock
        elif self.keep == "best":
            self.pocket.offer(self.judge().errors, coef, intercept)
            coef, intercept = self.pocket.coef, self.pocket.intercept
        if coef is not self.coef:
            self._rescore(coef, intercept)
        judgement = self.judge()
        proven = judgement.smallest > self.rounding_bound()
        certificate = _judge.certify(judgement, outcome, proven=proven, margin=self.margin)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)

    def rounding_bound(self) -> float:
        """Return a bound on the rounding error of the training scores."""
        used = np.flatnonzero(self.coef.any(axis=0))
        if used.size == 0:
            return 0.0
        diagonal = float(np.abs(self.kernel_rows.kernel.diag(self.problem.view.take(used))).max())
        mass = float(np.abs(self.coef).sum(axis=1).max()) * diagonal + float(np.abs(self.intercept).max())
        return 4.0 * (used.size + 2) * float(np.finfo(self.problem.view.dtype).eps) * mass

    def _rescore(self, coef: Array, intercept: Array) -> None:
        """Compute the scores of the given coefficients from the difference to the current ones."""
        change = coef - self.coef
        for i in np.flatnonzero(change.any(axis=0)):
            self.scores += self.kernel_rows[int(i)][:, None] * change[:, i]
        self.scores += intercept - self.intercept
        self.coef, self.intercept = coef, intercept
