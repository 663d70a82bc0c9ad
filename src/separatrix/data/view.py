"""The data view: the only door through which solvers touch data.

A view is a matrix of ``n`` rows that can be read in blocks. Everything a *pass solver* needs
(scores, transposed products, weighted Gram matrices, sums over rows) follows from the blocks, so
dense, sparse, chunked and distributed data share one implementation: a new kind of data has to say
only how its blocks are read. Sums run over the blocks in an order that is fixed by their number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.data.products import NotFiniteError, Precision, add_products, symmetric
from separatrix.data.threads import in_threads, question, single_threaded

Array = NDArray[Any]
Total = TypeVar("Total")

#: Bytes of one block: large enough for BLAS, small enough for the caches and any memory budget.
BLOCK_BYTES = 4 << 20
#: Most groups of blocks that are summed side by side, and most bytes of all their totals.
_GROUPS, _TOTAL_BYTES = 16, 64 << 20
#: Rows of a triangle that are added at a time.
_SIDE = 64
#: Rows from which adding their products to a matrix costs little beside them, and most bytes of such blocks.
_PRODUCT_ROWS, _PRODUCT_BYTES = 928, 32 << 20
#: Multiply-adds up to which blocks and threads cost more than they gain; the same for sparse rows.
_SERIAL, _SERIAL_SPARSE = 1 << 22, 1 << 18
#: With fewer stored values per feature, padding the weights costs more than it saves.
_FEW = 4
#: Most columns of weights for which BLAS spends more on packing rows than on products, and bytes of a row
#: that each of them needs: products are summed in registers, which are folded at the end of a row.
_THIN, _ROW_BYTES = 12, 64


def _dense(product: Any) -> Array:
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)


def csr_parts(block: Any) -> tuple[Array, Array, Array]:
    """Return the values, column indices and row pointers of a CSR block, as compiled loops want them."""
    indices, indptr = block.indices, block.indptr
    if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    return np.ascontiguousarray(block.data), np.ascontiguousarray(indices), np.ascontiguousarray(indptr)


def padding(columns: int) -> int:
    """Return how many columns so many are padded to: whole registers."""
    return 1 if columns == 1 else -(-columns // 8) * 8


def by_feature(view: DataView, coef: Array, dtype: Any = np.float64) -> Array:
    """Return weights of shape (columns, features) as (features, columns), padded unless the rows are few.

    One look-up of a feature then serves all columns, in whole registers.
    """
    K, d = coef.shape
    if padding(K) == K or view.shape[0] * view.row_elements < _FEW * d:
        return np.ascontiguousarray(coef.T, dtype=dtype)
    W = np.empty((d, padding(K)), dtype=dtype)
    W[:, :K], W[:, K:] = coef.T, 0.0
    return W


class _Sums:
    """Sums of weighted products, on and above the diagonal, and of rows by class."""

    def __init__(self, d: int, n_classes: int) -> None:
        self.product = np.zeros((d, d))
        self.by_class = np.zeros((n_classes, d))

    def __iadd__(self, other: _Sums) -> _Sums:
        for part in self._parts():
            self.product[part] += other.product[part]
        self.by_class += other.by_class
        return self

    def cleared(self) -> _Sums:
        """Return the same sums, empty again."""
        for part in self._parts():
            self.product[part] = 0.0
        self.by_class[:] = 0.0
        return self

    def _parts(self) -> list[tuple[slice, slice]]:
        """Return what to look at of the products: whole rows would read twice as much."""
        return [(slice(k, k + _SIDE), slice(k, None)) for k in range(0, self.product.shape[0], _SIDE)]


class DataView(ABC):
    """A matrix read by blocks of rows.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy.dtype
        float32 or float64, the precision in which solvers work on these data.
    sparse : bool
        Whether blocks are CSR matrices.
    rows_in_place : bool
        Whether compiled loops can follow sparse rows where they lie, in blocks of any length.
    """

    rows_in_place = False

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sparse: bool

    @property
    def row_elements(self) -> float:
        """Mean number of stored values in a row."""
        return float(self.shape[1])

    @abstractmethod
    def parts(self) -> list[slice]:
        """Return the rows of each block, in order."""

    @abstractmethod
    def read(self, rows: slice) -> Any:
        """Return neighbouring rows as a float array or CSR matrix, not copied where they are one."""

    @abstractmethod
    def take(self, rows: Array) -> Any:
        """Return the given rows, in the given order, as one float block."""

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield ``(rows, block)`` in order; a block is a float array or CSR matrix."""
        ask = question()
        for rows in self.parts():
            ask()
            yield rows, self.read(rows)

    def fold(
        self,
        start: Callable[[], Total],
        add: Callable[[Total, slice, Any], Total],
        size: int = 0,
        clear: Callable[[Total], Total] | None = None,
    ) -> Total:
        """Return all blocks' contributions to a sum, taken up by several threads.

        The blocks form neighbouring groups; each group is folded in order from ``start()`` by
        ``add(total, rows, block)``, and the groups' totals are added in order. The groups do not
        depend on the number of threads, so neither does the result. Before each block it asks whether
        to go on (:func:`separatrix.data.threads.asking`).

        Parameters
        ----------
        start : callable
            Returns an empty total, an object that knows ``+=``.
        add : callable
            Returns the total with a block added; may change it in place.
        size : int
            Bytes of a total: large totals are kept few.
        clear : callable or None
            Returns a total that is no longer needed, empty again: the first touch of fresh memory takes
            longer.
        """
        parts, ask = self.parts(), question()
        spare: list[Total] = []
        ready: dict[int, Total] = {}  # totals by number; −1: the sum of those that were added
        added: list[int] = []
        lock = Lock()
        most = max(2, min(_GROUPS, _TOTAL_BYTES // max(1, size)))
        most -= most % 4 if most > 4 else 0  # shared out evenly by two threads, or four
        count = min(len(parts), most)

        def group(number: int) -> Total:
            try:
                total = clear(spare.pop()) if clear else start()
            except IndexError:  # none is there yet, or another thread was quicker
                total = start()
            for rows in parts[number * len(parts) // count : (number + 1) * len(parts) // count]:
                ask()
                total = add(total, rows, self.read(rows))
            return total

        if count <= 1:
            return group(0) if parts else start()

        def task(number: int) -> None:
            total = group(number)
            with lock:  # who has the next total adds it, and those that have waited for it
                ready[number] = total
                while (following := len(added)) in ready:
                    total = ready.pop(following)
                    added.append(following)
                    if following == 0:
                        ready[-1] = total
                        continue
                    ready[-1] += total  # type: ignore[operator]
                    spare.append(total)

        # The groups' own products use one thread each.
        with single_threaded(np.inf):
            for _ in in_threads(task, count):
                pass
        return ready[-1]

    def map_sum(self, function: Callable[[slice, Any], Any], size: int = 0) -> Any:
        """Return the sum of ``function(rows, block)`` over all blocks, as :meth:`fold` adds it."""

        def add(total: Any, rows: slice, block: Any) -> Any:
            part = function(rows, block)
            if total is None:
                return part
            total += part
            return total

        return self.fold(lambda: None, add, size)

    def compiled_rows(self, rows: slice) -> tuple[Any, ...]:
        """Return neighbouring sparse rows as compiled loops take them: values, places, pointers, features."""
        return *csr_parts(self.read(rows)), self.shape[1]

    def scores(self, coef: Array, intercept: Array | float = 0.0) -> Array:
        """Return ``X Wᵀ + b``, of shape (rows, rows of W)."""
        (n, d), K = self.shape, coef.shape[0]
        if coef.shape[1] != d:
            raise ValueError(f"weights for {coef.shape[1]} features, but X has {d}: the model was altered.")
        out = np.empty((n, K), dtype=np.result_type(self.dtype, coef.dtype))
        work = n * self.row_elements * K
        serial = _SERIAL_SPARSE if self.sparse else _SERIAL
        parts = self.parts() if work > serial else [slice(0, n)]
        # Not shorter than a thread takes to wake; but blocks that are converted must be small.
        if self.rows_in_place and len(parts) > 2 and (self.sparse or out.dtype == self.dtype):
            count = max(2, min(len(parts), int(work / (4 * serial))))
            parts = [slice(k * n // count, (k + 1) * n // count) for k in range(count)]
        write = self._sparse_scores(coef, out) if self.sparse else self._dense_scores(coef, out)

        def task(number: int) -> None:
            write(parts[number])
            out[parts[number]] += intercept

        with single_threaded(0.0 if self.sparse else work):
            for _ in in_threads(task, len(parts)):
                pass
        return out

    def _dense_scores(self, coef: Array, out: Array) -> Callable[[slice], None]:
        """Return what writes the scores of some dense rows."""
        (K, d), same = coef.shape, out.dtype == self.dtype
        thin = same and 1 < K <= min(_THIN, d * self.dtype.itemsize // _ROW_BYTES)
        weights, none = np.ascontiguousarray(coef, dtype=np.float64), np.zeros(K)

        def write(rows: slice) -> None:
            block = self.read(rows)
            if thin and block.strides[1] == block.itemsize:
                _hot.dense_scores(block, weights, none, out[rows])
            elif same:
                np.matmul(block, coef.T, out=out[rows])
            else:
                out[rows] = block @ coef.T

        return write

    def _sparse_scores(self, coef: Array, out: Array) -> Callable[[slice], None]:
        """Return what writes the scores of some sparse rows."""
        K, weights = coef.shape[0], by_feature(self, coef, out.dtype)
        padded = weights.shape[1]

        def write(rows: slice) -> None:
            if padded != padding(K):
                out[rows] = self.read(rows) @ weights
                return
            found = out[rows] if padded == K else np.empty((rows.stop - rows.start, padded), dtype=out.dtype)
            _hot.padded_scores(*self.compiled_rows(rows), weights, found)
            if padded > K:
                out[rows] = found[:, :K]

        return write

    def transposed(self, R: Array) -> Array:
        """Return ``Xᵀ R`` for a matrix ``R`` with one row per row of ``X``."""
        size = self.shape[1] * R.shape[1] * 8
        return np.asarray(self.map_sum(lambda rows, block: _dense(block.T @ R[rows]), size))

    def column_sums(self, weights: Array | None = None) -> Array:
        """Return ``Σ_i s_i x_i`` in double precision, of shape (features,); weights of one if not given."""

        def add(total: Array, rows: slice, block: Any) -> Array:
            s = None if weights is None else weights[rows]
            if hasattr(block, "tocsr"):
                total += block.T @ (np.ones(block.shape[0]) if s is None else s)
            else:
                add_products(block, None, total, weights=s)
            return total

        return self.fold(lambda: np.zeros(self.shape[1]), add, 8 * self.shape[1])

    def gram(self, weights: Array | None = None, shift: Array | None = None) -> Array:
        """Return ``(X − m)ᵀ diag(weights) (X − m)`` in double precision.

        Parameters
        ----------
        weights : ndarray of shape (n,) or None
            Not negative; one for each row if not given.
        shift : ndarray of shape (features,) or None
            ``m``, subtracted from each row of dense data before anything is multiplied, so that a
            large mean costs no digits; zero if not given.
        """
        d = self.shape[1]
        far = None if shift is None else np.asarray(shift, dtype=np.float64)

        def add(total: Array, rows: slice, block: Any) -> Array:
            s = None if weights is None else np.ascontiguousarray(weights[rows], dtype=np.float64)
            if hasattr(block, "tocsr"):
                _hot.gram_csr(*csr_parts(block), s, total)
                if far is not None:
                    sums = block.T @ (np.ones(block.shape[0]) if s is None else s)
                    count = block.shape[0] if s is None else float(s.sum())
                    total -= np.outer(far, sums - 0.5 * count * far)
                return total
            add_products(block, total, weights=s, origin=far)
            return total

        sums = self.for_products().fold(lambda: np.zeros((d, d)), add, d * d * 8)
        return sums + sums.T if self.sparse else symmetric(sums)

    def class_products(
        self,
        classes: Array,
        n_classes: int,
        weights: Array | None = None,
        origin: Array | None = None,
        *,
        precision: Precision = "double",
        steps: int = 1,
    ) -> tuple[Array, Array]:
        """Return ``Σ s_i z_i z_iᵀ`` and, for each class, ``Σ s_i z_i`` of dense rows, ``z = x − origin``.

        Rows that are not finite, or whose squares are not, raise NotFiniteError.

        Parameters
        ----------
        classes : ndarray of int of shape (n,)
            Number of each row's class, below ``n_classes``.
        n_classes : int
            Number of classes.
        weights, origin, precision, steps
            As in :func:`separatrix.data.products.add_products`.
        """
        d, largest = self.shape[1], np.finfo(self.dtype).max

        def add(total: _Sums, rows: slice, block: Array) -> _Sums:
            add_products(
                block,
                total.product,
                total.by_class,
                classes=None if n_classes == 1 else classes[rows],
                weights=None if weights is None else weights[rows],
                origin=origin,
                precision=precision,
                steps=steps,
            )
            if not np.all(total.product.diagonal() <= largest):
                raise NotFiniteError
            return total

        sums = self.for_products().fold(lambda: _Sums(d, n_classes), add, 8 * d * d, _Sums.cleared)
        return symmetric(sums.product), sums.by_class

    def for_products(self) -> DataView:
        """Return the view in blocks of rows enough that their products are worth adding to a matrix."""
        least = min(_PRODUCT_ROWS, _PRODUCT_BYTES // max(1, 8 * self.shape[1]))
        enough = BLOCK_BYTES // max(1, self.shape[1] * self.dtype.itemsize) >= least
        return self if self.sparse or enough else _LongBlocks(self, least)

    def row_norms(self) -> Array:
        """Return ``‖x_i‖²`` of every row, in double precision."""
        out = np.empty(self.shape[0])
        for rows, block in self.blocks():
            if hasattr(block, "tocsr"):
                out[rows] = np.asarray(block.astype(np.float64).power(2).sum(axis=1)).ravel()
            else:
                out[rows] = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        return out


class _LongBlocks(DataView):
    """Another view in blocks of more rows."""

    def __init__(self, view: DataView, rows: int) -> None:
        self.view, self.rows = view, max(1, rows)
        self.shape, self.dtype, self.sparse = view.shape, view.dtype, view.sparse

    def parts(self) -> list[slice]:
        n = self.shape[0]
        return [slice(begin, min(begin + self.rows, n)) for begin in range(0, n, self.rows)]

    def read(self, rows: slice) -> Any:
        return self.view.read(rows)

    def take(self, rows: Array) -> Any:
        return self.view.take(rows)
