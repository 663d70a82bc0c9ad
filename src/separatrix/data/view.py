"""The data view: the only door through which solvers touch data.

A view is a matrix of ``n`` rows that can be read in blocks. Everything a *pass solver* needs
(scores, transposed products, weighted Gram matrices, sums over rows) follows from the blocks, so
dense, sparse, chunked and distributed data share one implementation: a new kind of data has to say
only how its blocks are read. Sums run over the blocks in their fixed order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.threads import single_threaded

Array = NDArray[Any]

#: Bytes of one block: large enough for BLAS, small enough for the caches and any memory budget.
BLOCK_BYTES = 4 << 20


def _dense(product: Any) -> Array:
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)


class DataView(ABC):
    """A matrix read by blocks of rows.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy.dtype
        float32 or float64, the precision in which solvers work on these data.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield ``(rows, block)`` in order; a block is a float array or CSR matrix."""

    @abstractmethod
    def take(self, rows: Array) -> Any:
        """Return the given rows, in the given order, as one float block."""

    def map_sum(self, function: Callable[[slice, Any], Any]) -> Any:
        """Return the sum of ``function(rows, block)`` over all blocks, in their order."""
        total = None
        for rows, block in self.blocks():
            part = function(rows, block)
            total = part if total is None else total + part
        return total

    def scores(self, coef: Array, intercept: Array | float = 0.0) -> Array:
        """Return ``X Wᵀ + b``, of shape (rows, rows of W)."""
        out = np.empty((self.shape[0], coef.shape[0]), dtype=np.result_type(self.dtype, coef.dtype))
        with single_threaded(self.shape[0] * coef.size):
            for rows, block in self.blocks():
                out[rows] = block @ coef.T + intercept
        return out

    def transposed(self, R: Array) -> Array:
        """Return ``Xᵀ R`` for a matrix ``R`` with one row per row of ``X``."""
        return np.asarray(self.map_sum(lambda rows, block: _dense(block.T @ R[rows])))

    def gram(self, weights: Array | None = None) -> Array:
        """Return ``Xᵀ diag(weights) X`` (all weights one if not given)."""

        def part(rows: slice, block: Any) -> Array:
            if weights is None:
                return _dense(block.T @ block)
            s = weights[rows]
            scaled = block.multiply(s[:, None]).tocsr() if hasattr(block, "tocsr") else block * s[:, None]
            return _dense(block.T @ scaled)

        return np.asarray(self.map_sum(part))

    def row_norms(self) -> Array:
        """Return ``‖x_i‖²`` of every row, in double precision."""
        out = np.empty(self.shape[0])
        for rows, block in self.blocks():
            if hasattr(block, "tocsr"):
                out[rows] = np.asarray(block.astype(np.float64).power(2).sum(axis=1)).ravel()
            else:
                out[rows] = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        return out
