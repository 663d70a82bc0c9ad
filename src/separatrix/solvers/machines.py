r"""What dual points mean: machines, and what is proven of them, for all problems of a fit at once.

With multipliers ``b`` of ``s'a`` and ``ρ`` of ``Σ a``, and ``h = Qa + p + s b − ρ``, the primal and dual
values are

    P = ½ w'w + Σ u_i max(0, −h_i) + b Δ − ρ E,      D = −½ a'Qa − p'a,
    P − D = Σ a_i h_i + u_i max(0, −h_i)  ≥  0,

for any ``b`` and ``ρ``: every solution certifies itself. ``max(0, −h_i)`` is the slack of sample ``i``. What
rounding may have added widens the gap, half of it on either side: each ``h_i`` may be wrong by
``η √k(x_i, x_i) √Σ_j a_j² k(x_j, x_j)``, where ``η`` is the relative error of kernel values, and by what
steps have left in the gradient, so that the worst ``h_i`` counts that is as near; besides about
``4·2⁻⁵³ Σ a_i² k(x_i, x_i)`` of the products, and what makes ``w'w`` negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import overload

import numpy as np

from separatrix import _hot
from separatrix.data.view import Array
from separatrix.solvers._dual_problem import DualProblem, DualSolution
from separatrix.solvers.dual_problems import DualProblems
from separatrix.solvers.kernel_matrix import KernelMatrix


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
    rounding : float
        What rounding errors may have made of the gap, which counts them.
    vanishes : bool
        Whether ``w`` is 0 but for rounding errors: its parts cancel.
    indefinite : bool
        Whether ``w'w`` is less than 0 by more than rounding errors: the kernel is not positive semidefinite,
        and nothing is proven of the minimum.
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
    rounding: float
    vanishes: bool
    indefinite: bool


#: The attributes of a machine that are numbers; all but the last in the order of the compiled loop.
_NUMBERS = (
    "intercept",
    "rho",
    "square",
    "primal",
    "dual",
    "gap",
    "relative_gap",
    "rounding",
    "vanishes",
    "indefinite",
    "violation",
)


#: What holds of any machine: its objective, its weights' length and their gap are not known.
_UNPROVEN = {
    "square": np.nan,
    "primal": np.inf,
    "dual": -np.inf,
    "gap": np.inf,
    "relative_gap": np.inf,
    "rounding": 0.0,
    "vanishes": False,
    "indefinite": False,
    "violation": np.inf,
}


class Machines(Sequence[Machine]):
    """Machines in one set of arrays: ``coef`` and ``slack`` per variable, all else per machine.

    Parameters
    ----------
    offsets : ndarray of int64, shape (machines + 1,)
        The variables of machine k are ``offsets[k] … offsets[k + 1] − 1``.
    coef, slack : ndarray of shape (variables,)
        As in :class:`Machine`.
    **numbers : ndarray of shape (machines,)
        The other attributes of :class:`Machine`.
    """

    intercept: Array
    rho: Array
    square: Array
    primal: Array
    dual: Array
    gap: Array
    relative_gap: Array
    violation: Array
    rounding: Array
    vanishes: Array
    indefinite: Array

    def __init__(self, offsets: Array, coef: Array, slack: Array, **numbers: Array) -> None:
        self.offsets, self.coef, self.slack = offsets, coef, slack
        self.__dict__.update(numbers)

    @classmethod
    def of(cls, machines: Sequence[Machine]) -> Machines:
        """Return machines as one object."""
        if isinstance(machines, Machines):
            return machines
        sizes = [m.coef.size for m in machines]
        coef, slack = (np.concatenate([getattr(m, name) for m in machines]) for name in ("coef", "slack"))
        numbers = {name: np.array([getattr(m, name) for m in machines]) for name in _NUMBERS}
        return cls(np.cumsum([0, *sizes]), coef, slack, **numbers)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, k: int) -> Machine: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Machine]: ...
    def __getitem__(self, k: int | slice) -> Machine | Sequence[Machine]:
        if isinstance(k, slice):
            return [self[number] for number in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        part = slice(int(self.offsets[k]), int(self.offsets[k % len(self) + 1]))
        numbers = {name: getattr(self, name)[k].item() for name in _NUMBERS}
        return Machine(coef=self.coef[part], slack=self.slack[part], **numbers)


def machine(problem: DualProblem, solution: DualSolution, matrix: KernelMatrix) -> Machine:
    """Return what a dual point means."""
    problems = DualProblems.of([problem])
    violation, doubt = np.array([solution.violation]), np.array([solution.doubt])
    alpha, gradient, known = solution.alpha, solution.gradient, [solution.known]
    return machines_of(problems, alpha, gradient, violation, matrix, doubt, known)[0]


def machines_of(
    problems: DualProblems,
    a: Array,
    gradient: Array,
    violation: Array,
    matrix: KernelMatrix,
    doubt: Array,
    known: Sequence[Array | None] = (),
) -> Machines:
    """Return what dual points mean; computed in double from the points themselves.

    Parameters
    ----------
    problems : DualProblems
        The problems.
    a, gradient : ndarray of shape (variables,)
        Feasible points, and ``Qa + p`` there.
    violation : ndarray of shape (problems,)
        Their violations of optimality; infinite where they are not known.
    matrix : KernelMatrix
        The kernel values of all samples.
    doubt : ndarray of shape (problems,)
        How far the gradients may be from those in double.
    known : sequence of ndarray or None
        The variables of each problem whose gradient is known; None, or nothing at all: all of them.
    """
    count, size = len(problems), problems.rows.size
    numbers, variables = np.empty((len(_NUMBERS) - 1, count)), np.empty((2, size))
    _hot.dual_machines(
        problems.offsets,
        problems.rows,
        problems.signs,
        problems.linear,
        problems.upper,
        a,
        gradient,
        matrix.lengths,
        matrix.relative_error(),
        doubt,
        problems.separate,
        numbers,
        variables,
    )
    if not isfinite(violation.sum()):
        violation = violation.copy()
        for k in np.flatnonzero(np.isinf(violation)).tolist():
            part = problems.part(k)
            violation[k] = kkt_violation(problems[k], a[part], gradient[part])
    *others, vanishes, indefinite = numbers
    names = zip(_NUMBERS, (*others, vanishes > 0, indefinite > 0, violation), strict=True)
    found = Machines(problems.offsets, *variables, **dict(names))
    for k, some in enumerate(known):
        if some is not None:
            part = problems.part(k)
            _tell_part(found, k, problems[k], DualSolution(a[part], gradient[part], known=some), matrix)
    return found


def _tell_part(
    found: Machines, k: int, problem: DualProblem, solution: DualSolution, matrix: KernelMatrix
) -> None:
    """Let a machine be what the variables tell whose gradient is known, and nothing be proven of it."""
    some, names = solution.known, ("rows", "signs", "linear", "upper", "start")
    part = replace(problem, **{name: getattr(problem, name)[some] for name in names})
    level = machine(part, DualSolution(solution.alpha[some], solution.gradient[some]), matrix)
    for name in _NUMBERS:
        getattr(found, name)[k] = _UNPROVEN.get(name, getattr(level, name))
    slack = found.slack[found.offsets[k] : found.offsets[k + 1]]
    slack[:] = np.nan
    slack[some] = level.slack


def drowned(machines: Machines, gap: float) -> Array:
    """Return of which machines the relative gap is larger than asked, and most of it rounding errors."""
    return np.asarray((machines.relative_gap > gap) & (machines.rounding > 0.5 * machines.gap))


def raised(machine: Machine, upper: Array, by: float, doubt: float) -> Machine:
    """Return a one-class machine whose intercept is larger by a number, and what is proven of that one.

    ``P(b + δ) = P(b) + δ Σ a + Σ u_i (max(0, −h_i − δ) − max(0, −h_i))``. Scores ``h`` may be wrong by
    ``doubt``, so that slacks count as smaller by it: less can be saved of them.
    """
    saved = np.clip(machine.slack - doubt, 0.0, by)
    more = by * float(machine.coef.sum()) - float(np.sum(upper * saved))
    slack = np.maximum(machine.slack - by, 0.0)
    return _dearer(replace(machine, intercept=machine.intercept + by, slack=slack), more)


def moved(machine: Machine, upper: Array, by: float) -> Machine:
    """Return a regression whose targets and intercept lie farther up, and what is proven of that one.

    The sum of two numbers is rounded, by an error δ: ``P(b + δ) ≤ P(b) + |δ| Σ u_i``.
    """
    intercept = machine.intercept + by
    large, small = (by, machine.intercept) if abs(by) >= abs(machine.intercept) else (machine.intercept, by)
    error, total = abs((intercept - large) - small), float(upper.sum())
    return _dearer(replace(machine, intercept=intercept), error * total if isfinite(total) else 0.0)


def _dearer(machine: Machine, more: float) -> Machine:
    """Return a machine whose objective is larger by so much, at the same bound."""
    primal, gap = machine.primal + more, machine.gap + more
    size = max(abs(primal), abs(machine.dual))
    return replace(machine, primal=primal, gap=gap, relative_gap=gap / size if size > 0 else 0.0)


def kkt_violation(problem: DualProblem, alpha: Array, gradient: Array) -> float:
    """Return how far a point is from optimality: ``m(a) − M(a)`` as in LIBSVM, 0 if it is optimal."""
    E, up, worst = problem.signs * gradient, problem.signs > 0, 0.0
    more, less = alpha < problem.upper, alpha > 0
    grow, fall = np.where(up, more, less), np.where(up, less, more)
    for group in (up, ~up) if problem.separate else (np.ones_like(up),):
        least = E[grow & group].min(initial=np.inf)
        worst = max(worst, float(E[fall & group].max(initial=-np.inf) - least))
    return worst
