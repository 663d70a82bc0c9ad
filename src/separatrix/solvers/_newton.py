r"""A Newton step on the free variables of a dual problem.

With ``β = s a`` the objective is quadratic with Hessian K, gradient E, and the sum of β is kept. On the free
variables the step solves ``K d = b 1 − E``, ``1'd = 0``. Where it would leave the box, the variables that do
are put on their bounds and the others solved for again. Pairs of variables, one after the other, need very
many steps where C is large; this needs one factorisation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._dual import State, Work

#: How often variables that would leave the box are put on their bounds.
_TRIES = 10
#: What is added to the diagonal of K, relative to its mean: little, then more if K is not positive definite.
_RIDGES = (1e-13, 1e-10, 1e-7)
#: Most and least free variables of a step.
_MOST, _LEAST = 3000, 20


def newton(work: Work, state: State) -> bool:
    """Take a step on the free variables of a loop that is paused; return whether there was one."""
    signs, upper, alpha = state.kept["signs"], state.kept["upper"], state.alpha
    free = np.flatnonzero((alpha > 0) & (alpha < upper))
    if work.copies == 2:
        # Only one of the two variables of a point: their columns are the same.
        free = free[np.unique(free % (alpha.size // 2), return_index=True)[1]]
    if not _LEAST <= free.size <= _MOST or free.size**2 * 24 > work.matrix.cache_bytes:
        return False
    points = work.points if state.points is None else work.points[state.points]
    rows = points[free % points.size]
    K = np.asarray(work.matrix.block(rows, rows, "float64"), dtype=np.float64)
    s = signs[free]
    low, high = np.where(s > 0, 0.0, -upper[free]), np.where(s > 0, upper[free], 0.0)
    groups = np.ones((1, free.size), dtype=bool)
    if work.separate:
        groups = np.array([free < state.kept["middle"], free >= state.kept["middle"]])
        groups = groups[groups.any(axis=1)]
    value = s * alpha[free]
    after = newton_step(K, state.E[free], value, low, high, groups)
    if after is None:
        return False
    alpha[free] = np.abs(after)
    change = (after - value)[:, None]
    targets = None if state.points is None and work.everything else points
    state.E += np.tile(work.matrix.product(rows, change, targets, "float64")[:, 0], work.copies)
    return True


def newton_step(K: Array, E: Array, value: Array, low: Array, high: Array, groups: Array) -> Array | None:
    """Return where a step of ``β`` leads that decreases the objective and keeps the box and each group's sum.

    Parameters
    ----------
    K : ndarray of shape (f, f)
        Kernel values between the free points, in double precision.
    E : ndarray of shape (f,)
        The gradient.
    value, low, high : ndarray of shape (f,)
        ``β`` and its box.
    groups : ndarray of bool, shape (g, f)
        Which variables share a sum.

    Returns
    -------
    ndarray or None
        The new ``β``; None if no step is worth taking.
    """
    after, fixed = value.copy(), np.zeros(value.size, dtype=bool)
    with single_threaded(np.inf):
        for _ in range(_TRIES):
            inside = np.flatnonzero(~fixed)
            factor = _factor(K, inside)
            if factor is None:
                return None
            # What the variables on their bounds have changed already.
            gradient = E[inside] + K[np.ix_(inside, np.flatnonzero(fixed))] @ (after - value)[fixed]
            ones = groups[:, inside].astype(np.float64)
            if not ones.any(axis=1).all():
                return None
            solved = cho_solve(factor, np.column_stack([gradient, ones.T]), check_finite=False)
            sums = np.array([-(after - value)[group & fixed].sum() for group in groups])
            shift = np.linalg.solve(ones @ solved[:, 1:], sums + ones @ solved[:, 0])
            after[inside] = value[inside] + (solved[:, 1:] @ shift - solved[:, 0])
            outside = ((after < low) | (after > high)) & ~fixed
            if not outside.any():
                break
            after[outside] = np.clip(after, low, high)[outside]
            fixed |= outside
        else:
            return None
        step = after - value
        slope, curvature = float(E @ step), float(step @ (K @ step))
    if not slope < 0:
        return None
    # Putting variables on bounds may have led too far; on the way there the objective decreases first.
    return after if curvature <= -slope else value + (-slope / curvature) * step


def _factor(K: Array, inside: Array) -> Any:
    """Return Cholesky's factor of K on some variables, with as small a ridge as it needs, or None."""
    if inside.size < 2:
        return None
    block = K[np.ix_(inside, inside)]
    diagonal, mean = np.diagonal(block).copy(), float(np.abs(np.diagonal(block)).mean())
    for ridge in _RIDGES:
        np.fill_diagonal(block, diagonal + ridge * mean)
        try:
            return cho_factor(block, lower=True, check_finite=False)
        except LinAlgError:
            continue
    return None
