r"""Linear machines whose loss has kinks by an interior point method, where Newton steps crawl.

With ``x̃ = (x, γ)`` the dual of a column is the programme of :mod:`separatrix.solvers._box_programme`,

    max_v  Σ_i v_i t_i − ε|v_i| − ½ ‖Σ_i v_i x̃_i‖²,     v_i = y_i a_i, 0 ≤ a_i ≤ U_i     (classes),
                                                        v_i = a_i − a'_i, 0 ≤ a_i, a'_i ≤ U_i     (numbers),

and ``Σ v = 0`` where the intercept is free; ``w = Σ v x``. Some 30 to 80 steps, each with a matrix of
features, go far where Newton's method crawls; elsewhere that is quicker.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.data.room import allowed
from separatrix.data.view import Array
from separatrix.solvers._box_programme import Rows, inner_point

#: Multiply-adds of all columns' matrices, of which a second has more; bytes of the rows, thrice.
_WORK, _BYTES = 5e9, float(1 << 30)


def affordable(n: int, m: int, columns: int) -> bool:
    """Return whether the method takes no more than a minute, and some memory, on n samples of m features."""
    return float(n) * m * m * columns <= _WORK and 24.0 * n * m <= min(_BYTES, allowed() / 4)


def kinked_programme(
    X: Array,
    codes: Array | None,
    numbers: Array | None,
    upper: Array,
    epsilon: float,
    square: float,
    free: bool,
    expired: Callable[[], bool],
) -> tuple[Array, Array] | None:
    """Return weights (last, the intercept's ``b/γ``) and ``v`` of samples X; None if time is up.

    ``Σ v x̃`` itself would carry the rounding errors of a sum whose terms are far larger.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Samples.
    codes, numbers : ndarray of shape (n,) or None
        Codes ±1 of a class, or the numbers of a regression.
    upper : ndarray of shape (n,)
        ``U > 0``.
    epsilon : float
        Half of the tube's width, 0 for classes.
    square : float
        ``γ²``, 0 without a penalised intercept.
    free : bool
        Whether the intercept is free.
    """
    n = X.shape[0]
    F = np.column_stack([X, np.full(n, np.sqrt(square))]) if square > 0 else X
    if codes is not None:
        signs, p, u = codes, np.full(n, -1.0), upper
    else:
        assert numbers is not None
        signs = np.repeat([1.0, -1.0], n)
        p, u = np.concatenate([epsilon - numbers, epsilon + numbers]), np.tile(upper, 2)
    A = signs[None] if free else np.empty((0, signs.size))
    found = inner_point(Rows(F, signs), p, u, A, np.zeros(A.shape[0]), expired=expired)
    if found is None:
        return None
    return found.x, (signs * np.minimum(found.a, u)).reshape(-1, n).sum(axis=0)
