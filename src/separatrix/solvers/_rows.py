"""How a row solver runs its compiled loop: chunk by chunk, on dense or CSR rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.memory import CsrView, DenseView
from separatrix.data.view import Array
from separatrix.solvers._loop import Control
from separatrix.solvers._order import Visits

#: Bytes of rows times columns between two looks at the clock: some ten milliseconds.
_CHUNK_WORK = 64 << 20
#: Rows that are copied at a time, and data that are small: they fit the caches.
_CACHED_BYTES = 4 << 20
#: Passes of small data are made several at a time, for so many seconds, before Python looks at them.
_SECONDS = 0.005
_MOST_PASSES = 64


def apart(size: int, dtype: Any = np.float64) -> Array:
    """Return zeros that share no cache line with other arrays, for what threads write row by row."""
    pad = 256 // np.dtype(dtype).itemsize
    return np.zeros(size + 2 * pad, dtype=dtype)[pad : pad + size]


def in_memory(view: Any, who: str) -> DenseView | CsrView:
    """Return the view if its rows can be visited one by one, else refuse it by name."""
    if not isinstance(view, DenseView | CsrView):
        raise TypeError(f"{who} visits rows one by one and needs data in memory, not {type(view).__name__}.")
    return view


def row_bytes(view: DenseView | CsrView) -> float:
    """Return what reading a row costs, in bytes."""
    return max(1.0, view.row_elements) * (view.dtype.itemsize + 8 * isinstance(view, CsrView))


def chunk_rows(view: DenseView | CsrView, columns: int) -> int:
    """Return how many rows to visit between two looks at the clock."""
    return _rows_within(_CHUNK_WORK if view.rows_in_place else _CACHED_BYTES, view, columns)


def _rows_within(size: int, view: DenseView | CsrView, columns: int) -> int:
    """Return how many rows are within so many bytes, and within the work of a chunk."""
    return int(max(1, min(size, _CHUNK_WORK // columns) // row_bytes(view)))


def chunks(view: DenseView | CsrView, order: Array, chunk: int) -> Iterator[tuple[Any, int, int, int]]:
    """Yield (rows, begin, end, gathered): positions of the order and the rows that they visit.

    Rows that cannot be read in place are gathered for each chunk: ``gathered`` is then the position
    of the first of them, else -1.
    """
    n = order.shape[0]
    for begin in range(0, n, chunk):
        end = min(begin + chunk, n)
        if view.rows_in_place:
            yield view.array, begin, end, -1
        else:
            yield view.take(order[begin:end]), begin, end, begin


def at_one_go(view: DenseView | CsrView, visits: Visits, columns: int) -> bool:
    """Return whether the data are so small that passes are made several at a time."""
    most = _rows_within(_CACHED_BYTES, view, columns)
    few = visits.order.shape[0] <= most and visits.total <= most
    return few and view.rows_in_place and visits.permutes_all


class SmallPasses:
    """Passes over small data, several in one call; ``states`` are the compiled loops for both precisions.

    Parameters
    ----------
    view, visits
        The data, and their order, which the passes permute.
    states : tuple of type
        The compiled passes for float32 and float64.
    record : int
        Numbers reported of each pass; the first one are the seconds since the start of the call.
    given : dict
        What the compiled passes need besides.
    """

    def __init__(
        self, view: DenseView | CsrView, visits: Visits, states: tuple[Any, Any], record: int, **given: Any
    ) -> None:
        self.view, self.order = view, visits.order
        self.records = np.zeros((_MOST_PASSES, record))
        # The arrays must live as long as the compiled passes that point into them.
        self._held = given, np.array([visits.state], dtype=np.uint64) if visits.shuffle else None
        self._passes = states[view.dtype == np.float64](
            order=self.order, random=self._held[1], seconds=_SECONDS, records=self.records, **given
        )

    def run(
        self, control: Control, ahead: float, judge: Any = None
    ) -> Iterator[tuple[list[float], float, bool]]:
        """Make at most ``ahead`` passes; yield the report of each, when it ended, whether others follow."""
        began = control.seconds()
        most = int(max(1, min(ahead, control.ahead(), _MOST_PASSES)))
        if control.deadline is not None and control.deadline - control.started - began < 2 * _SECONDS:
            most = 1
        n = self.order.shape[0]
        made = run_rows(self._passes, self.view.array, self.order, 0, n, most, -1, judge)
        for number, record in enumerate(self.records[:made].tolist(), start=1):
            yield record, began + record[0], number < made


def run_rows(
    state: Any, rows: Any, order: Array, begin: int, end: int, budget: int, gathered: int, judge: Any = None
) -> int:
    """Run a compiled loop over positions of the order; return where it stopped."""
    visits = (order, begin, end, budget, gathered)
    if sparse.issparse(rows):
        csr = (rows.data, rows.indices, rows.indptr, rows.shape[1])
        return int(state.run_csr(*csr, *visits, judge))
    return int(state.run_dense(rows, *visits, judge))
