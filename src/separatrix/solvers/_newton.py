r"""A Newton step on the free variables of a dual problem.

With ``β = s a`` the objective is quadratic with Hessian K, gradient E, and the sum of β is kept. On the free
variables the step solves ``K d = b 1 − E``, ``1'd = 0``. Where it would leave the box, the variables that do are
put on their bounds and the others solved for again. Pairs of variables, one after the other, need very many
steps where C is large; this needs one factorisation.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array

#: How often variables that would leave the box are put on their bounds.
_TRIES = 8


def newton_step(K: Array, E: Array, value: Array, low: Array, high: Array, groups: Array) -> Array | None:
    """Return a step of ``β`` that decreases the objective and keeps the box and each group's sum.

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
        The step; None if there is none that is worth taking.
    """
    f = value.size
    step, fixed = np.zeros(f), np.zeros(f, dtype=bool)
    ridge = 1e-12 * float(np.abs(np.diagonal(K)).mean())
    with single_threaded(np.inf):
        for _ in range(_TRIES):
            inside = np.flatnonzero(~fixed)
            if inside.size < 2:
                return None
            block = K[np.ix_(inside, inside)]
            block[np.arange(inside.size), np.arange(inside.size)] += ridge
            try:
                factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                return None
            # What the variables on their bounds have changed already.
            gradient = E[inside] + K[np.ix_(inside, np.flatnonzero(fixed))] @ step[fixed]
            ones = groups[:, inside].astype(np.float64)
            solved = cho_solve(factor, np.column_stack([gradient, ones.T]), check_finite=False)
            sums = np.array([-step[group & fixed].sum() for group in groups])
            try:
                shift = np.linalg.solve(ones @ solved[:, 1:], sums + ones @ solved[:, 0])
            except np.linalg.LinAlgError:
                return None
            step[inside] = solved[:, 1:] @ shift - solved[:, 0]
            after = value + step
            outside = ((after < low) | (after > high)) & ~fixed
            if not outside.any():
                break
            step[outside] = np.clip(after, low, high)[outside] - value[outside]
            fixed |= outside
        else:
            return None
        decrease = -float(E @ step + 0.5 * step @ (K @ step))
    return step if np.isfinite(decrease) and decrease > 0 else None
