r"""Scores of the training samples by machines that have not seen them, from warm-started folds.

The samples form a few folds. Without one fold, a problem is nearly the one that is already solved: the
multipliers of the remaining samples, made feasible again, are its start. So all folds together cost little
more than the kernel values that they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._loop import Below, run
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import DualProblem, DualSolution, SequentialMinimal
from separatrix.solvers.svm import machine


def deal(numbers: Array, folds: int, random: np.random.RandomState) -> Array:
    """Return the fold of each sample, the samples of a class dealt out evenly."""
    found = np.empty(numbers.shape[0], dtype=np.intp)
    for k in range(int(numbers.max(initial=-1)) + 1):
        members = np.flatnonzero(numbers == k)
        found[random.permutation(members)] = np.arange(members.size) % folds
    return found


def without(problem: DualProblem, alpha: Array, kept: Array, nu: float | None) -> DualProblem | None:
    """Return the problem on the kept samples, started near ``alpha``; None where a class is missing."""
    signs, upper = problem.signs[kept], problem.upper[kept]
    groups = [signs > 0, signs < 0]
    if not all(group.any() for group in groups):
        return None
    start = alpha[kept].copy()
    if nu is None:
        total = min(float(start[group].sum()) for group in groups)
    else:
        room = min(float(upper[group].sum()) for group in groups)
        total = min(0.5 * nu * float(upper.sum()), room)
    for group in groups:
        start[group] = _summing_to(start[group], upper[group], total)
    return replace(
        problem, rows=problem.rows[kept], signs=signs, linear=problem.linear[kept], upper=upper, start=start
    )


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


def out_of_fold_scores(
    matrix: KernelMatrix,
    problems: Sequence[DualProblem],
    solutions: Sequence[DualSolution],
    fold_of: Array,
    *,
    tol: float,
    max_steps: int = -1,
    max_time: float | None = None,
    nu: float | None = None,
) -> list[Array]:
    """Return for each problem the scores of its variables by machines learnt without their fold.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix that all problems share.
    problems, solutions : sequences
        The classification problems and their solutions on all samples.
    fold_of : ndarray of shape (n,)
        Fold of each sample.
    tol : float
        KKT violation that the folds are solved to.
    max_steps, max_time
        Limits, as in the fit itself.
    nu : float or None
        ``ν`` of ν-problems, whose scores are divided by ``ρ``.
    """
    scores = [np.zeros(problem.rows.size) for problem in problems]
    parts: list[tuple[int, Array]] = []
    subproblems: list[DualProblem] = []
    for number, (problem, solution) in enumerate(zip(problems, solutions, strict=True)):
        folds = fold_of[problem.rows]
        for fold in np.unique(folds):
            kept = folds != fold
            left = without(problem, solution.alpha, kept, nu)
            if left is None:  # only one class is left, and there is nothing to learn
                scores[number][~kept] = problem.signs[kept][0] if kept.any() else 0.0
                continue
            parts.append((number, ~kept))
            subproblems.append(left)
    if not subproblems:
        return scores
    solver = SequentialMinimal(matrix, subproblems, tol=tol, max_steps=max_steps)
    run(solver, Below(tol), max_iter=np.inf, max_time=max_time)
    for (number, held), left, solution in zip(parts, subproblems, solver.solutions, strict=True):
        found = machine(left, solution, matrix.diag)
        used = np.flatnonzero(found.coef)
        targets = problems[number].rows[held]
        sums = matrix.product(left.rows[used], found.coef[used, None], targets)[:, 0]
        rho = found.rho if nu is not None and found.rho > 0 else 1.0
        scores[number][held] = (sums + found.intercept) / rho
    return scores
