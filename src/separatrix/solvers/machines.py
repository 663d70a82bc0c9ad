r"""What dual points mean: machines, and what is proven of them, for all problems of a fit at once.

With multipliers ``b`` of ``s'a`` and ``ρ`` of ``Σ a``, and ``h = Qa + p + s b − ρ``, the primal and dual
values are

    P = ½ w'w + Σ u_i max(0, −h_i) + b Δ − ρ E,      D = −½ a'Qa − p'a,
    P − D = Σ a_i h_i + u_i max(0, −h_i)  ≥  0,

for any ``b`` and ``ρ``: every solution certifies itself. ``max(0, −h_i)`` is the slack of sample ``i``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._dual import DualProblem, DualSolution
from separatrix.solvers.dual_problems import DualProblems

#: Part of the summed lengths below which a difference of vectors is no more than rounding.
_CANCELLED = 1e-9


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


#: The attributes of a machine that are numbers.
_NUMBERS = ("intercept", "rho", "square", "primal", "dual", "gap", "relative_gap", "violation", "vanishes")


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
    vanishes: Array

    def __init__(self, offsets: Array, coef: Array, slack: Array, **numbers: Array) -> None:
        self.offsets, self.coef, self.slack = offsets, coef, slack
        for name in _NUMBERS:
            setattr(self, name, numbers[name])

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


def machine(problem: DualProblem, solution: DualSolution, diag: Array) -> Machine:
    """Return what a dual point means; ``diag`` are the kernel values ``k(x_i, x_i)`` of all samples."""
    problems, violation = DualProblems.of([problem]), np.array([solution.violation])
    return machines_of(problems, solution.alpha, solution.gradient, violation, diag)[0]


def machines_of(problems: DualProblems, a: Array, gradient: Array, violation: Array, diag: Array) -> Machines:
    """Return what dual points mean; computed in double from the points themselves.

    Parameters
    ----------
    problems : DualProblems
        The problems.
    a, gradient : ndarray of shape (variables,)
        Feasible points, and ``Qa + p`` there.
    violation : ndarray of shape (problems,)
        Their violations of optimality; infinite where they are not known.
    diag : ndarray of shape (n,)
        The kernel values ``k(x_i, x_i)`` of all samples.
    """
    s, u = problems.signs, problems.upper
    up, empty, full = s > 0, a <= 0, a >= u
    free = ~(empty | full)
    counts = u > 0  # a sample without weight says nothing of the level
    if problems.separate:
        first, second = (
            _levels(problems, gradient, free & group, full & group & counts, empty & group & counts)
            for group in (up, ~up)
        )
        rho, intercept = 0.5 * (first + second), 0.5 * (second - first)
        h = gradient + s * problems.spread(intercept) - problems.spread(rho)
    else:
        # With s = −1 a variable that grows moves s a down: its bounds change places.
        bound = ~free & counts
        intercept = -_levels(problems, s * gradient, free, (full == up) & bound, (empty == up) & bound)
        rho = np.zeros(len(problems))
        h = gradient + s * problems.spread(intercept)
    slack = np.maximum(-h, 0.0)
    products, constant = problems.sums(a * gradient), problems.sums(a * problems.linear)
    square, dual = products - constant, -0.5 * (products + constant)
    hard = u[problems.offsets[:-1]] == np.inf
    if hard.any():
        primal = _hard_primal(problems, square, slack)
        gap = primal - dual
    else:
        gap = problems.sums(a * h + u * slack)
        primal = dual + gap
    size = np.maximum(np.abs(primal), np.abs(dual))
    relative = np.where(gap == 0, 0.0, np.inf)
    np.divide(gap, size, out=relative, where=(size > 0) & (size < np.inf))
    # Only the sum of fixed totals can come to nothing; a machine with a linear term is free to be 0.
    vanishes = constant == 0
    if vanishes.any():
        lengths = problems.sums(a * np.sqrt(np.abs(diag[problems.rows])))
        vanishes &= square <= _CANCELLED * lengths**2
    if not np.isfinite(violation).all():
        violation = violation.copy()
        for k in np.flatnonzero(np.isinf(violation)).tolist():
            part = problems.part(k)
            violation[k] = kkt_violation(problems[k], a[part], gradient[part])
    return Machines(
        problems.offsets,
        s * a + 0.0,  # no −0.0
        slack,
        intercept=intercept + 0.0,
        rho=rho,
        square=square,
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=relative,
        violation=violation,
        vanishes=vanishes,
    )


def _hard_primal(problems: DualProblems, square: Array, slack: Array) -> Array:
    """Return the objectives of hard margins: the weights are stretched until no sample violates them."""
    room = 1.0 - problems.largest(slack)
    possible = (room > 0) & (problems.largest(np.abs(problems.linear + 1.0)) == 0)
    primal = np.full(len(problems), np.inf)
    np.divide(0.5 * square, room**2, out=primal, where=possible)
    return primal


def _levels(problems: DualProblems, values: Array, free: Array, below: Array, above: Array) -> Array:
    """Return the mean over the free variables, else the middle of the interval that optimality leaves.

    ``below`` are the variables whose values bound the level from below, ``above`` from above.
    """
    count = problems.sums(free.astype(np.float64))
    levels = problems.sums(np.where(free, values, 0.0)) / np.maximum(count, 1.0)
    if count.all():
        return levels
    low = problems.largest(np.where(below, values, -np.inf))
    high = -problems.largest(np.where(above, -values, -np.inf))
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    middle = np.where(np.isfinite(low), 0.5 * (low + high), 0.0)
    return np.where(count > 0, levels, middle)


def kkt_violation(problem: DualProblem, alpha: Array, gradient: Array) -> float:
    """Return how far a point is from optimality: ``m(a) − M(a)`` as in LIBSVM, 0 if it is optimal."""
    E, up, worst = problem.signs * gradient, problem.signs > 0, 0.0
    more, less = alpha < problem.upper, alpha > 0
    grow, fall = np.where(up, more, less), np.where(up, less, more)
    for group in (up, ~up) if problem.separate else (np.ones_like(up),):
        least = E[grow & group].min(initial=np.inf)
        worst = max(worst, float(E[fall & group].max(initial=-np.inf) - least))
    return worst
