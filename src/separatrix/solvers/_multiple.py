"""The best multiple of given weights, found where the derivative of the objective in it changes its sign.

With a very large C all that samples lack is as little as rounding, and costs more than all else: weights a
trifle longer lack nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.data.view import Array

#: Least and greatest multiple, and how often the range between them is halved.
_MULTIPLES, _HALVINGS = (0.5, 2.0), 48
LONGER = (1.0, 2.0, 4.0)
"""How many times what rounded weights lack is added before they are rounded, which takes some away again."""


def best_multiple(
    columns: int, slope: Callable[[Array], Array], value: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Return which multiple of its weights is best for each column, and its objective.

    Parameters
    ----------
    columns : int
        Number of columns, each with a multiple of its own.
    slope, value : callable
        Derivative and value of the columns' convex objectives at their multiples.

    Examples
    --------
    >>> s, f = best_multiple(1, slope=lambda s: 2 * (s - 1.25), value=lambda s: (s - 1.25) ** 2)
    >>> s.round(6).tolist(), f.round(6).tolist()
    ([1.25], [0.0])
    """
    low, high = (np.full(columns, end) for end in _MULTIPLES)
    for _ in range(_HALVINGS):
        s = 0.5 * (low + high)
        rises = slope(s) > 0
        low, high = np.where(rises, low, s), np.where(rises, s, high)
    found = np.stack([np.ones_like(low), low, high])
    values = np.stack([value(s) for s in found])
    best = values.argmin(axis=0)[None]
    return np.take_along_axis(found, best, 0)[0], np.take_along_axis(values, best, 0)[0]
