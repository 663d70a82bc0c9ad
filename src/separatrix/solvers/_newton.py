r"""A Newton step on the free variables of a dual problem.

With ``β = s a`` the objective is quadratic with Hessian K, gradient E, and the sum of β is kept. On the free
variables the step solves ``K d = b 1 − E``, ``1'd = 0``. Where it would leave the box, the variables that do
are put on their bounds and the others solved for again. Pairs of variables, one after the other, need very
many steps where C is large; this needs one factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._dual import Work
from separatrix.solvers._dual_state import State

#: How often variables that would leave the box are put on their bounds.
_TRIES = 10
#: What is added to the diagonal of K, relative to its mean: little, then more if K is not positive definite.
_RIDGES = (1e-13, 1e-10, 1e-7)
#: Most and least free variables of a step.
MOST_FREE, _LEAST = 3000, 2
#: A Newton step on f variables takes as long as one of a pair among f³ over this many variables.
_COST = 12
#: Free variables up to which a step stops at every bound that it meets, one after the other.
_FEW = 300


def newton_cost(work: Work, state: State) -> float:
    """Return about how many variables steps of pairs look at in the time of one on all free variables."""
    return float(np.count_nonzero(work.free(state.alpha, state.kept["upper"]))) ** 3 / _COST


def newton(work: Work, state: State, *, whatever_it_costs: bool = False, exact: bool = False) -> bool:
    """Take a step on the free variables of a loop that is paused; return whether there was one.

    Unless told otherwise, only if the steps of pairs since the last one have taken as long as it will, and
    those that are left will, too. E changes by the rows that the loop has, or in double if it is to be exact.
    """
    signs, upper, alpha = state.kept["signs"], state.kept["upper"], state.alpha
    free = np.flatnonzero(work.free(alpha, upper))
    if work.copies == 2:
        # Only one of the two variables of a point: their columns are the same.
        free = free[np.unique(free % (alpha.size // 2), return_index=True)[1]]
    if not _LEAST <= free.size <= MOST_FREE or free.size**2 * 24 > work.matrix.cache_bytes:
        return False
    steps = min(state.loop.steps - state.newton_at, state.steps_left())
    if not whatever_it_costs and steps * state.width < newton_cost(work, state):
        return False
    state.newton_at = state.loop.steps
    points = work.points if state.points is None else work.points[state.points]
    rows = points[free % points.size]
    K = np.asarray(work.matrix.block(rows, rows, "float64"), dtype=np.float64)
    s, gradient, price = signs[free], state.E[free], state.kept["price"]
    if price is not None:
        # Within a step none goes through zero, where the price changes.
        s = np.sign(alpha[free])
        gradient = gradient + s * price[free]
    low, high = np.where(s > 0, 0.0, -upper[free]), np.where(s > 0, upper[free], 0.0)
    groups = np.ones((1, free.size), dtype=bool)
    if work.separate:
        groups = np.array([free < state.kept["middle"], free >= state.kept["middle"]])
        groups = groups[groups.any(axis=1)]
    value = signs[free] * alpha[free]
    after = newton_step(K, gradient, value, low, high, groups, work.expired)
    if after is None:
        return False
    alpha[free] = signs[free] * after if price is not None else np.abs(after)
    change = after - value
    if exact:
        targets = None if state.points is None and work.everything else points
        product = work.matrix.product(rows, change[:, None], targets, "float64")[:, 0]
        state.E += np.tile(product, work.copies)
    else:
        state.E += state.product(free % points.size, change)
    return True


def newton_step(
    K: Array,
    E: Array,
    value: Array,
    low: Array,
    high: Array,
    groups: Array,
    expired: Callable[[], bool] = lambda: False,
) -> Array | None:
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
    expired : callable
        Whether time is up.

    Returns
    -------
    ndarray or None
        The new ``β``; None if no step is worth taking, or time is up.
    """
    with single_threaded(np.inf):
        if value.size <= _FEW:
            return _from_bound_to_bound(K, E, value, low, high, groups)
        return _clipped(K, E, value, low, high, groups, expired)


def _solve(K: Array, inside: Array, gradient: Array, sums: Array, groups: Array) -> Array | None:
    """Return the minimiser d of ``½ d'Kd + g'd`` in some variables whose groups add up to the given sums."""
    factor, ones = _factor(K, inside), groups[:, inside].astype(np.float64)
    if factor is None or not ones.any(axis=1).all():
        return None
    solved = cho_solve(factor, np.column_stack([gradient, ones.T]), check_finite=False)
    try:
        shift = np.linalg.solve(ones @ solved[:, 1:], sums + ones @ solved[:, 0])
    except np.linalg.LinAlgError:  # kernel values so large that nothing is left of their inverse
        return None
    step = solved[:, 1:] @ shift - solved[:, 0]
    # A nearly singular K leaves the sums inexact.
    for group, total in zip(ones, sums, strict=True):
        step += group * ((total - float(group @ step)) / group.sum())
    return np.asarray(step)


def _from_bound_to_bound(
    K: Array, E: Array, value: Array, low: Array, high: Array, groups: Array
) -> Array | None:
    """Go towards the minimiser until a variable meets its bound, leave it there, and go on with the others.

    K may well be singular: where the objective has no curvature the way leads straight to a bound.
    """
    after, gradient, inside = value.copy(), E.copy(), np.arange(value.size)
    none = np.zeros(len(groups))
    for _ in range(value.size):
        step = _solve(K, inside, gradient[inside], none, groups)
        if step is None or not float(gradient[inside] @ step) < 0:
            break
        room = np.where(step > 0, high[inside] - after[inside], low[inside] - after[inside])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(step != 0, room / step, np.inf)
        length = min(1.0, float(ratio.min()))
        after[inside] += length * step
        gradient += K[:, inside] @ (length * step)
        met = ratio <= length
        after[inside[met]] = np.where(step > 0, high[inside], low[inside])[met]
        if not met.any():
            break
        inside = inside[~met]
    return after if not np.array_equal(after, value) else None


def _clipped(
    K: Array,
    E: Array,
    value: Array,
    low: Array,
    high: Array,
    groups: Array,
    expired: Callable[[], bool] = lambda: False,
) -> Array | None:
    """Put all variables that leave the box on their bounds at once, and solve for the others again."""
    after, fixed = value.copy(), np.zeros(value.size, dtype=bool)
    for _ in range(_TRIES):
        inside = np.flatnonzero(~fixed)
        # What the variables on their bounds have changed already.
        gradient = E[inside] + K[np.ix_(inside, np.flatnonzero(fixed))] @ (after - value)[fixed]
        sums = np.array([-(after - value)[group & fixed].sum() for group in groups])
        step = None if expired() else _solve(K, inside, gradient, sums, groups)
        if step is None:
            return None
        after[inside] = value[inside] + step
        outside = ((after < low) | (after > high)) & ~fixed
        if not outside.any():
            break
        after[outside] = np.clip(after, low, high)[outside]
        fixed |= outside
    else:
        return None
    change = after - value
    slope, curvature = float(E @ change), float(change @ (K @ change))
    if not slope < 0:
        return None
    # Putting variables on bounds may have led too far; on the way there the objective decreases first.
    return after if curvature <= -slope else value + (-slope / curvature) * change


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
