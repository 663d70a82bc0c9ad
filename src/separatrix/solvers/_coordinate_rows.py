"""Rows as the compiled loops of coordinate descent take them, and one epoch through them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.memory import CsrView, DenseView
from separatrix.data.view import Array
from separatrix.solvers._loop import Control
from separatrix.solvers._rows import chunks

#: Stored values times columns visited between two looks at the clock: a few milliseconds.
CHUNK_WORK = 4 << 20


def row_arguments(block: Any) -> tuple[Any, ...]:
    """Return a block of rows as the compiled loops take it: the array; or data, places and width."""
    if not sparse.issparse(block):
        unit = block.shape[1] <= 1 or block.strides[1] == block.itemsize
        return (block if unit else np.ascontiguousarray(block),)
    indices, indptr = block.indices, block.indptr
    if indices.dtype != indptr.dtype:
        indices, indptr = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
    return block.data, indices, indptr, block.shape[1]


def visit(state: Any, view: DenseView | CsrView, order: Array, columns: int, control: Control) -> bool:
    """Let the compiled `state` visit the rows in order; return False if the loop wants to stop on the way."""
    size = int(max(1, CHUNK_WORK // (columns * max(1.0, view.row_elements))))
    for block, begin, end, gathered in chunks(view, order, size):
        rows = row_arguments(block)
        run = state.run_dense if len(rows) == 1 else state.run_csr
        run(*rows, order, begin, end, gathered)
        if control.expired():
            return False
    return True
