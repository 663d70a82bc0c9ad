"""Values that are whole multiples of a quantum: grey values, counts, numbers of few decimals."""

from __future__ import annotations

import numpy as np

from separatrix.data.view import Array

#: Steps between the smallest and the largest value, at most, and how far from whole they may be.
_MOST_STEPS, _WHOLE = 32767, 1e-3


def on_lattice(values: Array, shift: Array) -> tuple[Array, float]:
    """Return a shift that keeps lattice values on the lattice, and its quantum: 0 where there is none.

    ``x_j = o + q k`` with whole ``k``: the shift of each column becomes the lattice point next to it.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        Some samples; others may lie elsewhere.
    shift : ndarray of shape (d,)
        What is meant to be subtracted from the columns.

    Examples
    --------
    >>> import numpy as np
    >>> on_lattice(np.array([[0.25, 1.0], [0.5, 2.0]]), np.array([0.3, 1.6]))
    (array([0.25, 1.5 ]), 0.25)
    """
    found = np.unique(values)
    spread = found[-1] - found[0]
    gap = np.diff(found).min() if found.size > 1 else 0.0
    if not 0 < spread <= _MOST_STEPS * gap:
        return shift, 0.0
    quantum = float(spread / np.rint(spread / gap))
    steps = (found - found[0]) / quantum
    if np.abs(steps - np.rint(steps)).max() > _WHOLE:
        return shift, 0.0
    return found[0] + quantum * np.rint((shift - found[0]) / quantum), quantum
