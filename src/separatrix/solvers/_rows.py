"""How a row solver runs its compiled loop: chunk by chunk, on dense or CSR rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scipy import sparse

from separatrix.data.memory import CsrView, DenseView
from separatrix.data.view import Array

#: What is read between two looks at the clock: it fits the caches and takes a few milliseconds.
_CHUNK_BYTES = 4 << 20
_CHUNK_WORK = 64 << 20


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
    each = row_bytes(view)
    return int(max(1, min(_CHUNK_BYTES // each, _CHUNK_WORK // (each * columns))))


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


def run_rows(
    state: Any, rows: Any, order: Array, begin: int, end: int, budget: int, gathered: int, judge: Any = None
) -> int:
    """Run a compiled loop over positions of the order; return where it stopped."""
    visits = (order, begin, end, budget, gathered)
    if sparse.issparse(rows):
        csr = (rows.data, rows.indices, rows.indptr, rows.shape[1])
        return int(state.run_csr(*csr, *visits, judge))
    return int(state.run_dense(rows, *visits, judge))
