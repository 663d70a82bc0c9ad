r"""The support vector machines as one dual form, and what a solution of it means.

    min ½ a'Qa + p'a   subject to   0 ≤ a ≤ u,  s'a = Δ  [and Σ a = E],   Q_ij = s_i s_j k(x_{r_i}, x_{r_j})

=================  ==========================  ==========  ============  ==========================
machine            samples                     p           u             sums
=================  ==========================  ==========  ============  ==========================
classification     each once, s = y            −1          C s_i         Δ = 0
ν-classification   each once, s = y            0           s_i           Δ = 0, E = ν Σ s_i
regression         twice, s = +1 and −1        ε − s t     C s_i         Δ = 0
ν-regression       twice, s = +1 and −1        −s t        C s_i         Δ = 0, E = ν C Σ s_i
one class          each once, s = +1           0           s_i           Δ = ν Σ s_i
=================  ==========================  ==========  ============  ==========================

(In the column u, ``s_i`` are sample weights; ``t`` are a regression's targets.) What a solution means is said
in :mod:`separatrix.solvers.machines`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._dual import Work
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.dual_problems import STATUS, DualProblems, DualSolutions
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import Machines, drowned, machines_of
from separatrix.solvers.small_problems import SmallProblems
from separatrix.solvers.smo import DualProblem, SequentialMinimal

#: Steps of one problem after which a fit without max_iter gives up, as LIBSVM does; or 100 per sample.
_MOST_STEPS = 10_000_000
#: How often the tolerance may be tightened until the gap is small, and the factor.
_ROUNDS, _TIGHTER = 8, 0.1
#: Part of the tolerance that small problems are solved to.
_CLOSE = 1e-4
#: Steps that a tighter tolerance may cost, in units of those before.
_MORE = 10
#: Steps of a small problem from which on it is hard, in the same units.
_HARD = 100
#: Relative gap from which on a solution that is mostly rounding errors is none: at most, at least, and in
#: units of the tolerance, since bounds of rounding errors are that much larger than they mostly are.
_LOST, _LOST_LEAST, _LOST_UNITS = 0.1, 1e-6, 30
#: What a step adds to the rounding errors of a gradient, in units of the largest term.
_DRIFT = float(np.finfo(np.float64).eps)
#: Share of tolerance and gap that rounding errors may have in a gradient that is not computed anew.
_UNSURE = 0.1
#: What a last look at the scores may cost, in features of kernel values, and what a formula costs in these.
_LOOK, _FORMULA = 1e9, 16
#: Statuses of problems that may go on: up to the last of these.
_RUNNING, _CONVERGED, _OUT = (STATUS.index(name) for name in ("running", "converged", "max_iter"))


def classification(
    offsets: Array, rows: Array, signs: Array, upper: Array, order: tuple[Array, Array] | None = None
) -> DualProblems:
    """Return C-SVMs, each ``min ½‖w‖² + Σ u_i max(0, 1 − y_i f(x_i))``.

    The variables of problem k are ``offsets[k] … offsets[k + 1] − 1``; ``order`` as in :class:`DualProblems`.
    """
    linear, start = np.full(rows.size, -1.0), np.zeros(rows.size)
    return DualProblems(offsets, rows, signs, linear, upper, start, order=order)


def nu_classification(
    offsets: Array,
    rows: Array,
    signs: Array,
    upper: Array,
    nu: float,
    order: tuple[Array, Array] | None = None,
) -> DualProblems:
    """Return ν-SVMs, each ``min ½‖w‖² − E ρ + Σ u_i max(0, ρ − y_i f(x_i))``; an infeasible ν is refused."""
    zeros, start = np.zeros(rows.size), np.zeros(rows.size)
    problems = DualProblems(offsets, rows, signs, zeros, upper, start, separate=True, order=order)
    positive = signs > 0
    sums = np.array([problems.sums(np.where(group, upper, 0.0)) for group in (positive, ~positive)])
    total = sums.sum(axis=0)
    scarce = sums.min(axis=0) < 0.5 * nu * total * (1 - 1e-12)
    if scarce.any():
        k = int(np.argmax(scarce))
        raise ValueError(
            f"specified nu is infeasible: nu={nu:g} asks for more margin errors than the smaller class "
            f"has samples (total weights {sums[0, k]:g} and {sums[1, k]:g}). Choose nu <= "
            f"{2 * sums[:, k].min() / max(total[k], 1e-300):.6g}, or weights that balance the classes."
        )
    # Either class of each problem is a run of variables, once sorted.
    key = 2 * problems.owner + ~positive
    by_class = np.argsort(key, kind="stable")
    begins = np.searchsorted(key[by_class], np.arange(2 * len(problems)))
    start[by_class] = _poured(upper[by_class], np.repeat(0.5 * nu * total, 2), begins)
    return problems


def regression(rows: Array, targets: Array, upper: Array, epsilon: float) -> DualProblem:
    """Return the ε-regression: ``min ½‖w‖² + Σ u_i max(0, |t_i − f(x_i)| − ε)``."""
    signs, linear = _twice(targets)
    m = rows.size
    return DualProblem(np.tile(rows, 2), signs, linear + epsilon, np.tile(upper, 2), np.zeros(2 * m))


def nu_regression(rows: Array, targets: Array, upper: Array, nu: float) -> DualProblem:
    """Return the ν-regression, its tube learnt: ``min ½‖w‖² + E ε + Σ u_i max(0, |t_i − f(x_i)| − ε)``."""
    signs, linear = _twice(targets)
    start = np.tile(_poured(upper, np.array([0.5 * nu * float(upper.sum())])), 2)
    return DualProblem(np.tile(rows, 2), signs, linear, np.tile(upper, 2), start, separate=True)


def one_class(rows: Array, upper: Array, nu: float) -> DualProblem:
    """Return the one-class SVM: ``min ½‖w‖² − Δ ρ + Σ u_i max(0, ρ − w·x_i)``, ``b = −ρ``."""
    start = _poured(upper, np.array([nu * float(upper.sum())]))
    return DualProblem(rows, np.ones(rows.size), np.zeros(rows.size), upper, start)


def _twice(targets: Array) -> tuple[Array, Array]:
    signs = np.repeat([1.0, -1.0], targets.size)
    return signs, -signs * np.tile(targets, 2)


def _poured(upper: Array, totals: Array, begins: Array | None = None) -> Array:
    """Return how totals fill boxes of these sizes one after the other, each from its own beginning on."""
    before = np.cumsum(upper) - upper
    if begins is None:
        return np.asarray(np.clip(totals[0] - before, 0.0, upper))
    counts = np.diff(np.append(begins, upper.size))
    return np.asarray(np.clip(np.repeat(totals + before[begins], counts) - before, 0.0, upper))


class SupportMachines:
    """Solves several problems on one kernel matrix until violation *and* relative gap are small.

    ``tol`` bounds the KKT violation, as in LIBSVM. Where the relative gap of a problem is still larger than
    ``gap``, that problem goes on with a tighter tolerance.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix that all problems share.
    problems : sequence of DualProblem
        The problems.
    tol, gap : float
        Largest KKT violation and relative gap.
    aim : float or None
        Violation that the solver aims at, where going on costs next to nothing; ``tol`` if None.
    max_steps : int
        Most steps per problem; −1: as LIBSVM, ten million or 100 per sample.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        problems: Sequence[DualProblem],
        *,
        tol: float,
        gap: float,
        aim: float | None = None,
        max_steps: int = -1,
    ) -> None:
        self.matrix, self.problems, self.tol, self.gap = matrix, DualProblems.of(problems), tol, gap
        self.aim = tol if aim is None else aim
        count, longest = len(self.problems), self.problems.longest
        self.max_steps = max(_MOST_STEPS, 100 * longest) if max_steps < 0 else max_steps
        self._given, self._most = max_steps >= 0, self.max_steps
        most = max_steps
        if self.aim < tol:
            # A mere aim may cost so many steps; counted by the solver, so that every run ends at the same.
            most = self._most = min(self.max_steps, _MORE * (1000 + 10 * longest))
        self._open, self._done = np.arange(count), np.zeros(count, dtype=np.int64)
        self._collected: list[tuple[int, str, float, int] | None] = [None] * count
        self._solver: SmallProblems | SequentialMinimal
        if SmallProblems.suits(matrix, self.problems):
            # To go on costs next to nothing, and makes the gap small as well.
            close = min(self.aim, _CLOSE * tol)
            # Those that are hard are left to a solver that takes other steps, too.
            few = min(self._most, _HARD * (1000 + 10 * longest))
            self._solver = SmallProblems(matrix, self.problems, tol=close, max_steps=few)
            self.solutions = self._solver.solutions
        else:
            self._solver = SequentialMinimal(matrix, self.problems, tol=self.aim, gap=gap, max_steps=most)
            self.solutions = DualSolutions(self.problems)
            self._collect()
        self._machines: Machines | None = None

    @property
    def machines(self) -> Machines:
        """Return what the present solutions mean."""
        if self._machines is None:
            s = self.solutions
            if isinstance(self._solver, SmallProblems):
                self._solver.settle()
            else:
                for k, known in enumerate(s.known):
                    if known is not None and not known.size:  # it has not had its turn
                        solution = s[k]
                        work = Work(self.matrix, self.problems[k], solution)
                        work.begin(self._solver.precision, glance=True)
                        s.put(k, solution)
            self._machines = machines_of(
                self.problems, s.alpha, s.gradient, s.violation, self.matrix, s.doubt, s.known
            )
        return self._machines

    @property
    def iterations(self) -> Array:
        """Return the steps of each problem."""
        return self.solutions.steps

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield the steps of the solver, and those of its continuations with a tighter tolerance."""
        tol, before = self.aim, np.array(np.inf)
        for _ in range(_ROUNDS):
            finished = None
            for step in self._solver.steps(control):
                finished, step.finished = step.finished, None
                if finished is not None:
                    break
                self._collect()
                if self._spent():
                    finished = "max_iter"
                    break
                yield step
            self._collect(whole=True)
            if finished is None or not self._make_sure(control):  # told to stop
                return
            if self._solved():
                break
            wanted, next_tol = self._open[self._short()[self._open]], self.tol
            if not wanted.size:
                wanted = self._open[self._worth_more(before)[self._open]]
                reached = bool((self.solutions.status[wanted] == _CONVERGED).all())
                next_tol = _TIGHTER * tol if reached else tol
            if not wanted.size:
                break
            yield step
            tol, before = next_tol, self.machines.relative_gap
            self._continue(wanted, tol)
        step.finished = self._status()
        yield step

    def _collect(self, *, whole: bool = False) -> None:
        self._machines = None
        if isinstance(self._solver, SequentialMinimal):
            places = zip(self._open.tolist(), self._done.tolist(), strict=True)
            for (k, done), solution in zip(places, self._solver.solutions, strict=True):
                # Of many problems most have not changed since the last step.
                known = -1 if solution.known is None else solution.known.size
                now = solution.steps + done, solution.status, solution.violation, known
                if whole or self._collected[k] != now:
                    self._collected[k] = now
                    self.solutions.put(k, solution, done)

    def _make_sure(self, control: Control) -> bool:
        """Compute gradients anew that rounding errors of the steps may have led astray.

        Return whether time was enough for that.
        """
        found, p = self.solutions, self.problems
        small = isinstance(self._solver, SmallProblems)
        # Steps round gradient and variables, so that sums which they keep drift away: that moves all scores.
        lengths = found.alpha * np.abs(self.matrix.diag[p.rows])
        drift = _DRIFT * np.sqrt(found.steps) * p.largest(lengths)
        drift += np.abs(p.sums(p.signs * (found.alpha - p.start))) * self.matrix.largest
        found.doubt = np.maximum(found.doubt, drift)
        self._machines = None
        machines = self.machines
        doubtful = machines.rounding * machines.relative_gap > _UNSURE * self.gap * machines.gap
        doubtful |= found.doubt > _UNSURE * self.tol
        if not doubtful.any():
            return True
        for k in np.flatnonzero(doubtful & (found.doubt > 0) & (found.violation <= self.tol)).tolist():
            if not self._recompute(k, control):
                return False
            if found.violation[k] > self.tol:
                # What another solver may cure, if it has not been at work.
                found.status[k] = STATUS.index("max_iter" if small else "rounding")
        return True

    def _recompute(self, k: int, control: Control | None = None) -> bool:
        """Compute the gradient of a problem anew in double; return whether there was time for that."""
        solution = self.solutions[k]
        work = Work(self.matrix, self.problems[k], solution)
        if control is not None:
            work.expired = control.expired
        if not work.recompute("float64"):
            return False
        work.read(work.alpha, work.E, work.scores()[1])
        self.solutions.put(k, solution)
        self._machines = None
        return True

    def look_again(self) -> None:
        """Compute gradients anew that single precision leaves vague, where time ended a fit between steps.

        What the certificate adds to the gap for rounding may be many times the gap. Long looks are spared.
        """
        found, p = self.solutions, self.problems
        if self.matrix.native is None:
            return
        used, sizes = p.sums((found.alpha > 0).astype(np.float64)), np.diff(p.offsets)
        costs = used * sizes * (self.matrix.features_per_entry + _FORMULA)
        vague = np.flatnonzero((found.doubt > 0) | [known is not None for known in found.known])
        for k in vague[np.cumsum(costs[vague]) <= _LOOK].tolist():
            self._recompute(k)

    def _spent(self) -> bool:
        """Return whether all problems that still run have taken as many steps as this round may cost."""
        running = self.solutions.status[self._open] <= _RUNNING
        return bool((self.solutions.steps[self._open] - self._done >= self._most)[running].all())

    def _short(self) -> Array:
        """Return which problems ran out of the steps for a mere aim before they reached the tolerance."""
        found = self.solutions
        left = (found.violation > self.tol) & (found.steps < self.max_steps)
        return np.asarray(left & ((found.status <= _RUNNING) | (found.status == _OUT)))

    def _worth_more(self, before: Array) -> Array:
        """Return of which problems the gap is too large, and fell enough in the last round."""
        found, machines = self.solutions, self.machines
        wide = (machines.relative_gap > self.gap) & (machines.relative_gap <= 0.5 * before)
        able = (found.status <= _OUT) & (found.steps < self.max_steps)
        able &= ~(machines.vanishes | machines.indefinite)
        return np.asarray(wide & able)

    def _continue(self, wanted: Array, tol: float) -> None:
        again = [self.solutions.problem(k) for k in wanted.tolist()]
        self._done = self.solutions.steps[wanted]
        # What a tighter tolerance may cost is bounded: rounding errors can put it out of reach. Unless a user
        # limits their number, the solver is free to take other steps than those it counts.
        most = int(self._done.max())
        self._most = self.max_steps - most
        if tol < self.tol:
            self._most = min(self._most, _MORE * (1000 + most))
        self._open = wanted
        self._solver = SequentialMinimal(
            self.matrix,
            again,
            tol=tol,
            gap=self.gap,
            max_steps=max(0, self._most) if self._given else -1,
            gradients=[self.solutions[k].gradient for k in wanted.tolist()],
        )

    def _solved(self) -> bool:
        """Return whether violations and gaps of all problems are as small as asked."""
        return bool(
            self.solutions.violation.max() <= self.tol and self.machines.relative_gap.max() <= self.gap
        )

    def _missed(self) -> set[str]:
        """Return how problems ended that are not solved."""
        if self._solved():
            return set()
        found = self.solutions
        codes = np.maximum(found.status, 0)
        most = min(_LOST, max(_LOST_LEAST, _LOST_UNITS * self.tol))
        lost = drowned(self.machines, max(self.gap, most))
        lost &= (found.violation <= self.tol) & ~(self.machines.vanishes | self.machines.indefinite)
        codes[lost] = STATUS.index("rounding")
        return {STATUS[code] for code in codes[lost | ~(found.violation <= self.tol)].tolist()}

    @property
    def out_of_reach(self) -> bool:
        """Whether rounding errors, not a number of steps, kept problems from the tolerance."""
        return "rounding" in self._missed()

    def _status(self) -> str:
        found, missed = self.solutions, self._missed()
        if "unbounded" in missed:
            return "inseparable"
        if missed & {"max_iter", "running", "rounding"}:
            return "max_iter"
        nonconvex = (found.status == STATUS.index("nonconvex")) | self.machines.indefinite
        return "nonconvex" if nonconvex.any() else "converged"
