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

(In the column u, ``s_i`` are sample weights; ``t`` are a regression's targets.) With multipliers ``b`` of
``s'a`` and ``ρ`` of ``Σ a``, and ``h = Qa + p + s b − ρ``, the primal and dual values are

    P = ½ w'w + Σ u_i max(0, −h_i) + b Δ − ρ E,      D = −½ a'Qa − p'a,
    P − D = Σ a_i h_i + u_i max(0, −h_i)  ≥  0,

for any ``b`` and ``ρ``: every solution certifies itself. ``max(0, −h_i)`` is the slack of sample ``i``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import DualProblem, DualSolution, SequentialMinimal

#: Steps of one problem after which a fit without max_iter gives up, as LIBSVM does; or 100 per sample.
_MOST_STEPS = 10_000_000
#: How often the tolerance may be tightened until the gap is small, and the factor.
_ROUNDS, _TIGHTER = 8, 0.1
#: Steps that a tighter tolerance may cost, in units of those before.
_MORE = 10
#: Part of the summed lengths below which a difference of vectors is no more than rounding.
_CANCELLED = 1e-9


def classification(rows: Array, signs: Array, upper: Array) -> DualProblem:
    """Return the C-SVM: ``min ½‖w‖² + Σ u_i max(0, 1 − y_i f(x_i))``."""
    return DualProblem(rows, signs, np.full(rows.size, -1.0), upper, np.zeros(rows.size))


def nu_classification(rows: Array, signs: Array, upper: Array, nu: float) -> DualProblem:
    """Return the ν-SVM: ``min ½‖w‖² − E ρ + Σ u_i max(0, ρ − y_i f(x_i))``; an infeasible ν is refused."""
    half = 0.5 * nu * float(upper.sum())
    start = np.zeros(rows.size)
    for sign in (1.0, -1.0):
        members = np.flatnonzero(signs == sign)
        if float(upper[members].sum()) < half * (1 - 1e-12):
            sums = [float(upper[signs == s].sum()) for s in (1.0, -1.0)]
            raise ValueError(
                f"specified nu is infeasible: nu={nu:g} asks for more margin errors than the smaller class "
                f"has samples (total weights {sums[0]:g} and {sums[1]:g}). Choose nu <= "
                f"{2 * min(sums) / max(sum(sums), 1e-300):.6g}, or weights that balance the classes."
            )
        start[members] = _poured(upper[members], half)
    return DualProblem(rows, signs, np.zeros(rows.size), upper, start, separate=True)


def regression(rows: Array, targets: Array, upper: Array, epsilon: float) -> DualProblem:
    """Return the ε-regression: ``min ½‖w‖² + Σ u_i max(0, |t_i − f(x_i)| − ε)``."""
    signs, linear = _twice(targets)
    m = rows.size
    return DualProblem(np.tile(rows, 2), signs, linear + epsilon, np.tile(upper, 2), np.zeros(2 * m))


def nu_regression(rows: Array, targets: Array, upper: Array, nu: float) -> DualProblem:
    """Return the ν-regression, its tube learnt: ``min ½‖w‖² + E ε + Σ u_i max(0, |t_i − f(x_i)| − ε)``."""
    signs, linear = _twice(targets)
    start = np.tile(_poured(upper, 0.5 * nu * float(upper.sum())), 2)
    return DualProblem(np.tile(rows, 2), signs, linear, np.tile(upper, 2), start, separate=True)


def one_class(rows: Array, upper: Array, nu: float) -> DualProblem:
    """Return the one-class SVM: ``min ½‖w‖² − Δ ρ + Σ u_i max(0, ρ − w·x_i)``, ``b = −ρ``."""
    start = _poured(upper, nu * float(upper.sum()))
    return DualProblem(rows, np.ones(rows.size), np.zeros(rows.size), upper, start)


def _twice(targets: Array) -> tuple[Array, Array]:
    signs = np.repeat([1.0, -1.0], targets.size)
    return signs, -signs * np.tile(targets, 2)


def _poured(upper: Array, total: float) -> Array:
    """Return how ``total`` fills boxes of the given sizes one after the other."""
    before = np.concatenate([[0.0], np.cumsum(upper)[:-1]])
    return np.clip(total - before, 0.0, upper)


@dataclass(eq=False)
class Machine:
    """One solved problem: ``f(x) = Σ coef_i k(x_i, x) + intercept``, and what is proven of it.

    Attributes
    ----------
    coef : ndarray of shape (m,)
        ``s a`` of each of the problem's variables.
    intercept, rho : float
        ``b``, and ``ρ`` (0 where ``Σ a`` is free).
    square : float
        ``w'w``.
    slack : ndarray of shape (m,)
        ``max(0, −h)``.
    primal, dual : float
        Objective of this model and a lower bound of every model's (infinite where a hard margin is violated).
    gap, relative_gap : float
        ``P − D``, and ``(P − D) / max(|P|, |D|)``.
    violation : float
        Largest violation of the optimality conditions.
    vanishes : bool
        Whether ``w`` is 0 but for rounding errors: its parts cancel.
    """

    coef: Array
    intercept: float
    rho: float
    square: float
    slack: Array
    primal: float
    dual: float
    gap: float
    relative_gap: float
    violation: float
    vanishes: bool


def machine(problem: DualProblem, solution: DualSolution, diag: Array) -> Machine:
    """Return what a dual point means; computed in double from the point itself.

    ``diag`` are the kernel values ``k(x_i, x_i)`` of all samples.
    """
    a, s, u, gradient = solution.alpha, problem.signs, problem.upper, solution.gradient
    empty, full = a <= 0, a >= u
    free = ~(empty | full)
    if problem.separate:
        groups = (s > 0, s < 0)
        first, second = (_level(gradient[g], free[g], full[g], empty[g]) for g in groups)
        rho, intercept = 0.5 * (first + second), 0.5 * (second - first)
    else:
        # With s = −1 a variable that grows moves s a down: its bounds change places.
        up = s > 0
        rho, intercept = 0.0, -_level(s * gradient, free, (full == up) & ~free, (empty == up) & ~free)
    h = gradient + s * intercept - rho
    slack = np.maximum(-h, 0.0)
    products, constant = float(a @ gradient), float(a @ problem.linear)
    square, dual = products - constant, -0.5 * (products + constant)
    if u.size and u[0] == np.inf:
        # A hard margin: the weights are stretched until no sample violates it.
        room = 1.0 - float(slack.max(initial=0.0))
        primal = 0.5 * square / room**2 if room > 0 and np.all(problem.linear == -1.0) else np.inf
        gap = primal - dual
    else:
        gap = float(a @ h) + float(u @ slack)
        primal = dual + gap
    size = max(abs(primal), abs(dual))
    # Only the sum of fixed totals can come to nothing; a machine with a linear term is free to be 0.
    vanishes = constant == 0 and square <= _CANCELLED * float(a @ np.sqrt(np.abs(diag[problem.rows]))) ** 2
    relative = gap / size if 0 < size < np.inf else (0.0 if gap == 0 else np.inf)
    return Machine(
        coef=s * a + 0.0,  # no −0.0
        intercept=intercept + 0.0,
        rho=rho,
        square=square,
        slack=slack,
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=relative,
        violation=solution.violation if solution.violation < np.inf else kkt_violation(problem, a, gradient),
        vanishes=vanishes,
    )


def _level(values: Array, free: Array, below: Array, above: Array) -> float:
    """Return the mean over the free variables, else the middle of the interval that optimality leaves.

    ``below`` are the variables whose values bound the level from below, ``above`` from above.
    """
    inner = values[free]
    if inner.size:
        return float(inner.sum()) / inner.size
    ends = (float(values[below].max(initial=-np.inf)), float(values[above].min(initial=np.inf)))
    finite = [end for end in ends if np.isfinite(end)]
    return sum(finite) / len(finite) if finite else 0.0


def kkt_violation(problem: DualProblem, alpha: Array, gradient: Array) -> float:
    """Return how far a point is from optimality: ``m(a) − M(a)`` as in LIBSVM, 0 if it is optimal."""
    E, up, worst = problem.signs * gradient, problem.signs > 0, 0.0
    more, less = alpha < problem.upper, alpha > 0
    grow, fall = np.where(up, more, less), np.where(up, less, more)
    for group in (up, ~up) if problem.separate else (np.ones_like(up),):
        least = E[grow & group].min(initial=np.inf)
        worst = max(worst, float(E[fall & group].max(initial=-np.inf) - least))
    return worst


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
        self.matrix, self.problems, self.tol, self.gap = matrix, list(problems), tol, gap
        self.aim = tol if aim is None else aim
        longest = max((p.rows.size for p in self.problems), default=0)
        self.max_steps = max(_MOST_STEPS, 100 * longest) if max_steps < 0 else max_steps
        self._given, self._most = max_steps >= 0, self.max_steps
        most = max_steps
        if self.aim < tol:
            # A mere aim may cost so many steps; counted by the solver, so that every run ends at the same.
            most = self._most = min(self.max_steps, _MORE * (1000 + 10 * longest))
        solver = SequentialMinimal(matrix, self.problems, tol=self.aim, max_steps=most)
        self.solutions: list[DualSolution] = list(solver.solutions)
        self._solver, self._open = solver, list(range(len(self.problems)))
        self._done = [0] * len(self.problems)
        self._machines: list[Machine] | None = None

    @property
    def machines(self) -> list[Machine]:
        """Return what the present solutions mean."""
        if self._machines is None:
            pairs = zip(self.problems, self.solutions, strict=True)
            self._machines = [machine(p, solution, self.matrix.diag) for p, solution in pairs]
        return self._machines

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield the steps of the solver, and those of its continuations with a tighter tolerance."""
        tol, before = self.aim, [np.inf] * len(self.problems)
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
            self._collect()
            if finished is None:  # told to stop
                return
            wanted, next_tol = [k for k in self._open if self._short(k)], self.tol
            if not wanted:
                wanted = [k for k in self._open if self._worth_more(k, before[k])]
                reached = all(self.solutions[k].status == "converged" for k in wanted)
                next_tol = _TIGHTER * tol if reached else tol
            if not wanted:
                break
            yield step
            tol, before = next_tol, [found.relative_gap for found in self.machines]
            self._continue(wanted, tol)
        step.finished = self._status()
        yield step

    def _collect(self) -> None:
        for number, solution, done in zip(self._open, self._solver.solutions, self._done, strict=True):
            self.solutions[number] = replace(solution, steps=solution.steps + done) if done else solution
        self._machines = None

    def _spent(self) -> bool:
        """Return whether all problems that still run have taken as many steps as this round may cost."""
        solutions = self._solver.solutions
        return all(s.steps >= self._most for s in solutions if s.status == "running")

    def _short(self, number: int) -> bool:
        """Return whether a problem ran out of the steps for a mere aim before it reached the tolerance."""
        solution = self.solutions[number]
        left = solution.status in ("max_iter", "running") and solution.steps < self.max_steps
        return left and solution.violation > self.tol

    def _worth_more(self, number: int, before: float) -> bool:
        """Return whether a problem's gap is too large, and fell enough in the last round."""
        solution, found = self.solutions[number], self.machines[number]
        able = solution.status in ("converged", "max_iter", "running") and solution.steps < self.max_steps
        return able and not found.vanishes and self.gap < found.relative_gap <= 0.5 * before

    def _continue(self, wanted: list[int], tol: float) -> None:
        again = [replace(self.problems[k], start=self.solutions[k].alpha) for k in wanted]
        self._done = [self.solutions[k].steps for k in wanted]
        # What a tighter tolerance may cost is bounded: rounding errors can put it out of reach. Unless a user
        # limits their number, the solver is free to take other steps than those it counts.
        self._most = self.max_steps - max(self._done)
        if tol < self.tol:
            self._most = min(self._most, _MORE * (1000 + max(self._done)))
        most = max(0, self._most) if self._given else -1
        self._open = wanted
        self._solver = SequentialMinimal(self.matrix, again, tol=tol, max_steps=most)

    def _status(self) -> str:
        found = {solution.status for solution in self.solutions if not solution.violation <= self.tol}
        for status, name in (("unbounded", "inseparable"), ("max_iter", "max_iter"), ("running", "max_iter")):
            if status in found:
                return name
        nonconvex = any(solution.status == "nonconvex" for solution in self.solutions)
        return "nonconvex" if nonconvex else "converged"
