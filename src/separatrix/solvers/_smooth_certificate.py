"""What a fit of logistic or softmax regression proves; :mod:`.quasi_newton` tells how it is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from separatrix.certificate import Certificate
from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.solvers._loop import Outcome
from separatrix.solvers.curvature import Whole
from separatrix.solvers.smooth import Point, SmoothObjective

if TYPE_CHECKING:
    from separatrix.solvers.quasi_newton import QuasiNewton

#: Sum of the residuals of a column, as a share of all weights, that counts as 0.
_FEASIBLE = 1e-11
#: Rows that the Hessian in the intercepts is formed from at a time.
_AT_ONCE = 1 << 12
#: Share of such a sum that a step leaves where the Hessian hardly changes.
_QUICK = 1e-3


def certify(
    solver: QuasiNewton, point: Point, outcome: Outcome, distance: float, dual: float | None
) -> Certificate:
    """Return the certificate of a smooth fit."""
    objective, value, unit, tol = solver.objective, point.value, solver.unit, solver.tol
    largest = max(float(np.abs(point.gradient).max()), float(np.abs(point.gradient_intercept).max()))
    size = max(abs(value), 1e-300)
    if dual is not None:
        dual = max(dual, 0.0)  # neither loss nor penalty is below 0
    # Far from the minimum the decrement tells too little: it counts where the fit has ended.
    near = outcome.status == "converged"
    enough = max(tol * size, solver.last.caution() * distance)
    if dual is not None and (not near or value - dual <= enough):
        gap = max(value - dual, 0.0)
        found = f"within {gap / size:.1e} of the minimum (duality gap)"
    else:
        gap, dual = distance, None
        found = f"within an estimated {gap / size:.1e} of the minimum (Newton decrement)"
    message = {
        "converged": found,
        "separable": "the classes are separable, so the likelihood has no maximum",
        "max_iter": f"max_iter iterations done, {found}; raise it or scale the features",
        "max_time": f"max_time is over, {found}; raise it for more iterations",
        "interrupted": f"interrupted, {found}; fit again with warm_start=True to go on",
    }[outcome.status]
    return Certificate(
        status=outcome.status,
        message=message,
        iterations=outcome.iterations,
        seconds=outcome.seconds,
        primal=value * unit,
        dual=None if dual is None else dual * unit,
        gap=gap * unit,
        relative_gap=gap / size,
        kkt_violation=largest * unit,
        samples=int(objective.view.shape[0] if objective.weights is None else np.sum(objective.weights > 0)),
    )


def dual_value(whole: Whole, point: Point) -> float | None:
    """Return the value of a feasible dual point, or None where there is none to tell.

    The residuals at (W, b) are dual variables. They are feasible if they sum to 0 in each column,
    that is, if b is optimal for W: Newton's steps on b alone, which need only the scores, see to it.
    """
    objective = whole.objective
    if objective.l2 == 0:
        return None
    if np.abs(point.gradient_intercept).max() <= _FEASIBLE * whole.total:
        loss, pull = point.loss, point.gradient - objective.l2 * point.coef
    else:
        scores = objective.view.scores(point.coef).astype(np.float64, copy=False)
        loss, residuals, best = _best_intercepts(objective, scores, point.intercept, _FEASIBLE * whole.total)
        if objective.view.sparse:
            pull = objective.view.transposed(residuals).T
        else:  # a sweep takes less than a product with all residuals
            there = objective.at(point.coef, best)
            loss, pull = there.loss, there.gradient - objective.l2 * point.coef
    return float(loss - np.vdot(point.coef, pull) - np.vdot(pull, pull) / (2 * objective.l2))


def _best_intercepts(
    objective: SmoothObjective, scores: Array, intercept: Array, small: float
) -> tuple[float, Array, Array]:
    """Return the loss, its residuals and the intercepts where these are best for the scores ``W x``."""
    residuals = np.empty(scores.shape)
    alone = SmoothObjective(replace(objective.problem, view=view_of(scores)), 0.0)
    same = np.eye(objective.columns)
    before = 0.0
    best = intercept
    for _ in range(6):
        intercept = best
        at = alone.at(same, intercept, residuals=residuals)
        size = float(np.abs(at.gradient_intercept).max())
        if not size > small:
            break
        if size > _QUICK * before:  # else the Hessian of the last step serves for the next one, too
            H = _bend(objective, residuals)
        before = size
        best = intercept - np.linalg.lstsq(H, at.gradient_intercept, rcond=1e-12)[0]
    return at.loss, residuals, intercept


def _bend(objective: SmoothObjective, residuals: Array) -> Array:
    """Return the Hessian in the intercepts, the weights being fixed."""
    n, K = residuals.shape
    total = np.zeros((K, K))
    for first in range(0, n, _AT_ONCE):  # so that what is formed on the way stays in the caches
        rows = slice(first, first + _AT_ONCE)
        s = np.ones(len(residuals[rows])) if objective.weights is None else objective.weights[rows]
        shares = residuals[rows] / np.where(s > 0, s, 1.0)[:, None]
        if objective.codes is None:
            p = shares + (objective.classes[rows, None] == np.arange(K))
            total += np.diag(s @ p) - (s[:, None] * p).T @ p
        else:
            total += np.diag(s @ (np.abs(shares) * (1.0 - np.abs(shares))))
    return total if objective.codes is None else np.diag(np.maximum(np.diag(total), 1e-300))
