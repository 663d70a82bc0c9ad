"""Products of sparse rows with weights, and of their transpose, in double precision.

SciPy cuts blocks of rows out by copying them; the compiled loops read them where they lie. Weights stand
as (features, columns), the columns padded to whole registers: one look-up of a feature serves all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads
from separatrix.data.view import Array, DataView, padding

#: Up to this width threads share the rows of a transposed product, beyond it the columns.
_NARROW = 16
_TASK_COLUMNS = 32


def sparse_scores(view: DataView, rows: slice, W: Array) -> Array:
    """Return ``X W`` of some rows, padded as the weights are."""
    if padding(W.shape[1]) != W.shape[1]:
        return np.asarray(view.read(rows) @ W)
    out = np.empty((rows.stop - rows.start, W.shape[1]))
    _hot.padded_scores(*view.compiled_rows(rows), W, out)
    return out


def sparse_transposed(view: DataView, R: Array, out: Array | None = None) -> Array:
    """Return ``Xᵀ R`` for a padded matrix ``R`` with one row per row of ``X``.

    Few columns: two halves of the rows are summed apart. Many: the columns are, some at a time, in ``out``.
    """
    d, padded = view.shape[1], R.shape[1]
    if padded <= _NARROW:
        parts = view.parts()
        halves = [parts[: len(parts) // 2], parts[len(parts) // 2 :]]

        def half(number: int) -> Array:
            total = np.zeros((d, padded))
            for rows in halves[number]:
                _hot.add_padded_transposed(*view.compiled_rows(rows), R[rows], 0, padded, total)
            return total

        if not halves[0]:
            return half(1)
        first, second = in_threads(half, 2)
        first += second
        return first
    total = np.empty((d, padded)) if out is None else out
    total[:] = 0.0
    starts = range(0, padded, _TASK_COLUMNS)
    for rows in view.parts():
        arguments = (*view.compiled_rows(rows), R[rows])

        def some(number: int, arguments: tuple[Any, ...] = arguments) -> None:
            begin = starts[number]
            _hot.add_padded_transposed(*arguments, begin, min(begin + _TASK_COLUMNS, padded), total)

        list(in_threads(some, len(starts)))
    return total


def sparse_normal(view: DataView, P: Array, along: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return ``Xᵀ Q`` and the sums of the columns of ``Q = s (X P − 1 along)``, on one reading of the rows.

    Two halves of the rows are summed apart.
    """
    (d, K), width = P.shape, padding(P.shape[1])
    W, moved = np.ascontiguousarray(P), along
    if width != K:
        W, moved = np.zeros((d, width)), np.zeros(width)
        W[:, :K], moved[:K] = P, along
    parts = view.parts()

    def half(number: int) -> Array:
        total = np.zeros((d + 1, width))
        for rows in parts[: len(parts) // 2] if number == 0 else parts[len(parts) // 2 :]:
            Q = sparse_scores(view, rows, W)
            Q -= moved
            if weights is not None:
                Q *= weights[rows][:, None]
            _hot.add_padded_transposed(*view.compiled_rows(rows), Q, 0, width, total[:d])
            total[d] += Q.sum(axis=0)
        return total

    if len(parts) == 1:
        total = half(1)
    else:
        total, second = in_threads(half, 2)
        total += second
    return total[:d, :K], total[d, :K]
