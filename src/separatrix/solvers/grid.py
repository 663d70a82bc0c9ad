"""Values that are whole numbers of a common fraction: grey values in 0 … 1, counts, decimals, codes.

Products of whole numbers up to some thousands are exact in 16-bit integers, of which x86 processors multiply
four times as many at a time as of doubles. Data such as ``k/255`` are whole numbers but for the rounding of
the division, which changes a value by a unit in its last place at most.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from separatrix.data.view import Array, DataView

#: Fewest features, and values in all, whose products matter; rows that tell whether they are such.
_MANY, _LARGE, _SEEN = 64, 1 << 20, 64
#: Largest number of steps from 0 to 1, as whole numbers of 16 bits allow.
_FINEST = 1 << 15


class Grid(NamedTuple):
    """``steps x`` of these rows are whole numbers; values differ from them by ``blur`` (relative) at most."""

    steps: int
    blur: float
    rows: Array
    seen: Array


def grid_of(view: DataView, weights: Array | None) -> Grid | None:
    """Return the grid on which all of a few rows lie, where sums of exact products are worth it, or None."""
    n, d = view.shape
    in_memory = getattr(view, "rows_in_place", False) and not view.sparse
    if weights is not None or not in_memory or d < _MANY or n * d < _LARGE:
        return None
    seen = np.arange(_SEEN) * n // _SEEN
    rows = view.take(seen)
    steps = common_steps(rows) if common_steps(rows[0]) is not None else None
    if steps is None:
        return None
    # Halves and quarters are exact; rounding of doubles does not count beside that of their sums.
    exact = steps & (steps - 1) == 0 or rows.dtype == np.float64
    return Grid(steps, 0.0 if exact else 1.5 * float(np.finfo(rows.dtype).eps), rows, seen)


def common_steps(values: Array) -> int | None:
    """Return the least ``m`` such that all values are multiples of ``1/m`` but for rounding; None above 2¹⁵.

    Examples
    --------
    >>> import numpy as np
    >>> common_steps(np.array([0.25, 3.0])), common_steps(np.arange(256, dtype=np.float32) / 255)
    (4, 255)
    >>> common_steps(np.array([0.1, np.pi])) is None
    True
    """
    eps = float(np.finfo(values.dtype).eps)
    size = np.abs(values.astype(np.float64)).ravel()
    if not np.all(size < _FINEST):
        return None
    steps = 1
    while True:
        scaled = size * steps
        off = size[np.abs(scaled - np.rint(scaled)) > eps * scaled]
        if not off.size:
            return steps
        # The least value is a few steps only: no other fraction is as simple, and as near.
        least = Fraction(float(off.min()))
        for digits in range(_FINEST.bit_length()):
            fraction = least.limit_denominator(1 << digits)
            if abs(fraction - least) <= eps * least:
                break
        else:
            return None
        steps = lcm(steps, fraction.denominator)
        if steps > _FINEST:
            return None
