r"""Scores of the training samples by machines that have not seen them, from warm-started folds.

The samples form a few folds. Without one fold, a problem is nearly the one that is already solved: the
multipliers of the remaining samples, made feasible again, are its start, and samples well beyond the margin
stay without a part in it. So the folds work on the support vectors and what is near the margin only; their
kernel values are computed once for all folds, and so are those of the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._loop import Below, Control, Step, run
from separatrix.solvers.dual_problems import DualProblems, DualSolutions
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision
from separatrix.solvers.machines import Machine, machine, machines_of
from separatrix.solvers.small_problems import SmallProblems
from separatrix.solvers.smo import DualProblem, DualSolution, SequentialMinimal

#: Steps of one small problem, should it be a hard one.
_MOST_STEPS = 100_000
#: Samples so far beyond the margin, in units of its half-width, are left out of the folds' problems.
_NEAR = 0.25
#: Samples that are scored in any case.
_FEWEST = 64


def deal(numbers: Array, folds: int, random: np.random.RandomState) -> Array:
    """Return the fold of each sample, the samples of a class dealt out evenly."""
    found = np.empty(numbers.shape[0], dtype=np.intp)
    for k in range(int(numbers.max(initial=-1)) + 1):
        members = np.flatnonzero(numbers == k)
        found[random.permutation(members)] = np.arange(members.size) % folds
    return found


def _summing_to(a: Array, upper: Array, total: float) -> Array:
    """Return nearby multipliers within their bounds that have this sum."""
    present = float(a.sum())
    if present > 0:
        a = np.minimum(a * (total / present), upper)
    missing = total - float(a.sum())
    if missing > 0:
        room = upper - a
        space = float(room.sum())
        if space > 0:
            a = a + room * min(1.0, missing / space)
    return a


def _mask(some: Array | None, size: int) -> Array:
    mask = np.zeros(size, dtype=bool)
    mask[slice(None) if some is None else some] = True
    return mask


def balanced(problems: DualProblems, a: Array, totals: Array | None) -> Array:
    """Return nearby multipliers within their bounds, of the same sum over either sign in each problem.

    Parameters
    ----------
    problems : DualProblems
        The problems.
    a : ndarray of shape (variables,)
        Multipliers within their bounds.
    totals : ndarray of shape (problems,) or None
        The sums; None takes the smaller one of either sign.
    """
    positive = problems.signs > 0
    groups = (positive, ~positive)
    sums = [problems.sums(np.where(group, a, 0.0)) for group in groups]
    wanted = np.minimum(*sums) if totals is None else totals
    found = np.zeros(a.size)
    for group, present in zip(groups, sums, strict=True):
        less = np.minimum(1.0, wanted / np.where(present > 0, present, 1.0))
        part = np.where(group, a * problems.spread(less), 0.0)
        # What is missing is shared among the rooms that are left.
        room = np.where(group, problems.upper - part, 0.0)
        missing, space = wanted - problems.sums(part), problems.sums(room)
        share = np.clip(missing / np.where(space > 0, space, 1.0), 0.0, 1.0)
        found += part + room * problems.spread(share)
    return np.minimum(found, problems.upper)


@dataclass
class _Pieces:
    """A problem without each of its folds: the samples near the margin, and the subproblems on them."""

    near: Array
    subproblems: list[DualProblem]
    starts: list[DualSolution]
    columns: list[int]
    machines: list[Machine]


class Folds:
    """Out-of-fold scores of classification problems that have been solved.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix that all problems share.
    fold_of : ndarray of shape (n,)
        Fold of each sample, from 0 on.
    tol : float
        KKT violation that the folds are solved to.
    max_steps, max_time
        Limits, as in the fit itself.
    nu : float or None
        ``ν`` of ν-problems, whose scores are divided by ``ρ``.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        fold_of: Array,
        *,
        tol: float,
        max_steps: int = -1,
        max_time: float | None = None,
        nu: float | None = None,
    ) -> None:
        self.matrix, self.fold_of, self.tol, self.nu = matrix, fold_of, tol, nu
        self.max_steps, self.max_time = max_steps, max_time
        self.folds = int(fold_of.max(initial=-1)) + 1
        #: How the folds ended: "converged", or why they had to stop before.
        self.status = "converged"
        #: Which variables have scores, where time was not enough for all.
        self.scored: Array | None = None

    def scores(self, problems: DualProblems, solutions: DualSolutions | Sequence[DualSolution]) -> Array:
        """Return the scores of all problems' variables by machines learnt without their fold."""
        if isinstance(solutions, DualSolutions) and SmallProblems.suits(self.matrix, problems):
            return self._together(problems, solutions.alpha)
        task = _Task(self, list(zip(problems, solutions, strict=True)))
        self.status = run(task, Below(-1.0), max_iter=np.inf, max_time=self.max_time).status
        found = task.scored
        if not all(known.all() for _, known in found):
            self.scored = np.concatenate([known for _, known in found])
        return np.concatenate([scores for scores, _ in found])

    def _together(self, problems: DualProblems, alpha: Array) -> Array:
        """Return the scores where problems are small: of all problems and folds at once.

        A sample whose upper bound is 0 has no part in a machine, and its gradient still tells its score.
        """
        folds, count = self.folds, len(problems)
        without, sizes = np.tile(np.arange(folds), count), np.repeat(problems.sizes, folds)
        offsets = np.append(0, np.cumsum(sizes))
        shift = np.repeat(problems.offsets[:-1], folds) - offsets[:-1]
        variables = np.repeat(shift, sizes) + np.arange(offsets[-1])
        held = self.fold_of[problems.rows[variables]] == np.repeat(without, sizes)
        every = DualProblems(
            offsets,
            problems.rows[variables],
            problems.signs[variables],
            problems.linear[variables],
            np.where(held, 0.0, problems.upper[variables]),
            np.zeros(variables.size),
            separate=problems.separate,
            order=(problems.order[0], problems.order[1][variables]),
        )
        positive = every.signs > 0
        groups = (positive, ~positive)
        rooms = [every.sums(np.where(group, every.upper, 0.0)) for group in groups]
        # The multipliers of the solution, less of those of the class that has lost less.
        start = np.where(held, 0.0, alpha[variables])
        total, least = None, np.minimum(*rooms)
        if self.nu is not None:
            total = np.minimum(0.5 * self.nu * (rooms[0] + rooms[1]), least)
        every.start[:] = balanced(every, start, total)
        most = _MOST_STEPS if self.max_steps < 0 else self.max_steps
        solver = SmallProblems(self.matrix, every, tol=self.tol, max_steps=most)
        self.status = run(solver, Below(-1.0), max_iter=np.inf, max_time=self.max_time).status
        solver.settle()
        found = solver.solutions
        machines = machines_of(
            every, found.alpha, found.gradient, found.violation, self.matrix, found.doubt, found.known
        )
        scores = every.signs * (found.gradient - every.linear) + every.spread(machines.intercept)
        if self.nu is not None:
            scores /= every.spread(np.where(machines.rho > 0, machines.rho, 1.0))
        missing = least == 0
        if missing.any():
            # Only one class is left, and there is nothing to learn.
            constant = np.sign(rooms[0] - rooms[1])
            scores = np.where(every.spread(missing), every.spread(constant), scores)
        out = np.empty(problems.rows.size)
        out[variables[held]] = scores[held]
        if any(some is not None for some in found.known):
            known = np.concatenate([_mask(some, size) for some, size in zip(found.known, sizes, strict=True)])
            self.scored = np.empty(out.size, dtype=bool)
            self.scored[variables[held]] = known[held]
        return out

    def pieces(self, problem: DualProblem, solution: DualSolution, expired: Callable[[], bool]) -> _Pieces:
        """Return the subproblems of a problem, and where they start."""
        found = machine(problem, solution, self.matrix)
        unit = 1.0 if self.nu is None else max(found.rho, 0.0)
        beyond = solution.gradient + problem.signs * found.intercept - found.rho
        is_near = (solution.alpha > 0) | (beyond < _NEAR * unit)
        if solution.known is not None:  # of the others nobody knows where they are
            is_near |= ~np.isin(np.arange(is_near.size), solution.known)
        near = np.flatnonzero(is_near)
        pieces = _Pieces(near, [], [], [], [])
        folds = self.fold_of[problem.rows]
        places = []
        for fold in range(self.folds):
            kept = np.flatnonzero(folds[near] != fold)
            left = self._without(problem, solution.alpha, near[kept], folds != fold)
            if left is not None:
                pieces.subproblems.append(left)
                pieces.columns.append(fold)
                places.append(kept)
        pieces.starts = self._starts(problem.rows[near], pieces.subproblems, places, expired)
        return pieces

    def _sums(
        self,
        rows: Array,
        coef: Array,
        targets: Array,
        precision: Precision | None,
        expired: Callable[[], bool],
    ) -> tuple[Array, Array]:
        """Return ``Σ_j k(x_t, x_rows_j) coef[j, :]`` of targets, and which have it: all if time is enough.

        Some have it in any case, spread among all.
        """
        sums, known = np.zeros((targets.size, coef.shape[1])), np.zeros(targets.size, dtype=bool)
        step = _FEWEST if expired() else self.matrix.targets_at_once(rows.size)
        parts = max(1, -(-targets.size // step)) if rows.size else 1
        for number in range(parts):
            part = slice(number, None, parts)
            sums[part] = self.matrix.product(rows, coef, targets[part], precision)
            known[part] = True
            if expired():
                break
        return sums, known

    def _starts(
        self, near: Array, problems: list[DualProblem], places: list[Array], expired: Callable[[], bool]
    ) -> list[DualSolution]:
        """Return the starts of all folds with their gradients, whose kernel values they share."""
        coef = np.zeros((near.size, len(problems)))
        for column, (problem, kept) in enumerate(zip(problems, places, strict=True)):
            coef[kept, column] = problem.signs * problem.start
        used = np.flatnonzero(coef.any(axis=1))
        sums, known = self._sums(near[used], coef[used], near, "float32", expired)
        starts = []
        for column, (problem, kept) in enumerate(zip(problems, places, strict=True)):
            start = DualSolution(problem.start, problem.linear + problem.signs * sums[kept, column])
            start.known = None if known.all() else np.flatnonzero(known[kept])
            starts.append(start)
        return starts

    def _without(self, problem: DualProblem, alpha: Array, kept: Array, others: Array) -> DualProblem | None:
        """Return the problem on the kept samples, started near ``alpha``; None where a class is missing."""
        signs, upper = problem.signs[kept], problem.upper[kept]
        groups = [signs > 0, signs < 0]
        if not all(group.any() for group in groups):
            return None
        start = alpha[kept].copy()
        if self.nu is None:
            total = min(float(start[group].sum()) for group in groups)
        else:
            room = min(float(upper[group].sum()) for group in groups)
            total = min(0.5 * self.nu * float(problem.upper[others].sum()), room)
        for group in groups:
            start[group] = _summing_to(start[group], upper[group], total)
        return replace(
            problem,
            rows=problem.rows[kept],
            signs=signs,
            linear=problem.linear[kept],
            upper=upper,
            start=start,
        )

    def solve(self, pieces: Sequence[_Pieces], control: Control) -> bool:
        """Solve the subproblems; return whether time was enough for that."""
        problems = [problem for piece in pieces for problem in piece.subproblems]
        empty = [replace(problem, start=np.zeros(problem.rows.size)) for problem in problems]
        solver = SequentialMinimal(self.matrix, empty, tol=self.tol, max_steps=self.max_steps)
        solver.solutions = [start for piece in pieces for start in piece.starts]
        finished = not problems
        if all(start.known is None for start in solver.solutions):
            for step in solver.steps(control):
                finished = step.finished is not None
                if finished or control.expired():
                    break
        solutions = iter(solver.solutions)
        for piece in pieces:
            piece.machines = [machine(p, next(solutions), self.matrix) for p in piece.subproblems]
        return finished

    def assemble(
        self, problem: DualProblem, piece: _Pieces, expired: Callable[[], bool]
    ) -> tuple[Array, Array]:
        """Return the score of each variable by the machine that has not seen its fold, and which have one."""
        folds = self.fold_of[problem.rows]
        near = problem.rows[piece.near]
        place = np.empty(self.matrix.shape[0], dtype=np.intp)
        place[near] = np.arange(near.size)
        coef, constant = np.zeros((near.size, self.folds)), np.zeros(self.folds)
        for column, left, found in zip(piece.columns, piece.subproblems, piece.machines, strict=True):
            scale = found.rho if self.nu is not None and found.rho > 0 else 1.0
            coef[place[left.rows], column] = found.coef / scale
            constant[column] = found.intercept / scale
        for column in set(range(self.folds)) - set(piece.columns):
            # Only one class is left without this fold, and there is nothing to learn.
            rest = problem.signs[folds != column]
            constant[column] = rest[0] if rest.size else 0.0
        used = np.flatnonzero(coef.any(axis=1))
        sums, known = self._sums(near[used], coef[used], problem.rows, None, expired)
        return np.asarray((sums + constant)[np.arange(folds.size), folds]), known


class _Task:
    """The folds of all problems from their starts to their scores, driven by the loop."""

    def __init__(self, folds: Folds, solved: list[tuple[DualProblem, DualSolution]]) -> None:
        self.folds, self.solved = folds, solved
        self.scored: list[tuple[Array, Array]] = []

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield one step when all is done, or as much of it as there is time for."""
        folds, expired = self.folds, control.expired
        pieces = [folds.pieces(p, s, expired) for p, s in self.solved]
        finished = folds.solve(pieces, control)
        for (problem, _), piece in zip(self.solved, pieces, strict=True):
            self.scored.append(folds.assemble(problem, piece, expired))
        finished = finished and all(known.all() for _, known in self.scored)
        yield Step({}, 0.0, "converged" if finished else control.reason() or "max_iter")
