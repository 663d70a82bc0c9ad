"""Views of dense and CSR matrices in memory.

float32 and float64 input is never copied: a view keeps a reference and reads blocks of it. Integer
(and boolean) input is converted block by block, so that no float copy of the whole ever exists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.view import BLOCK_BYTES, Array, DataView


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the precision in which data of this type are worked on."""
    return np.dtype(np.float32 if dtype in (np.float32, np.float16) else np.float64)


def _parts(n_rows: int, row_bytes: float) -> list[slice]:
    count = -(-n_rows // int(max(1, BLOCK_BYTES // max(row_bytes, 1))))
    count += count % 2 if 1 < count < n_rows else 0  # shared out evenly by two threads
    return [slice(k * n_rows // count, (k + 1) * n_rows // count) for k in range(count)]


class DenseView(DataView):
    """View of a two-dimensional array in C, Fortran or any strided order.

    Examples
    --------
    >>> import numpy as np
    >>> view = DenseView(np.arange(6).reshape(3, 2))
    >>> view.dtype, view.gram().tolist()
    (dtype('float64'), [[20.0, 26.0], [26.0, 35.0]])
    """

    sparse = False

    def __init__(self, X: Array) -> None:
        self.array = X
        self.shape = (X.shape[0], X.shape[1])
        self.dtype = working_dtype(X.dtype)
        unit_stride = X.shape[1] <= 1 or X.strides[1] == X.itemsize
        whole_items = X.shape[0] <= 1 or X.strides[0] % X.itemsize == 0
        #: Whether compiled row loops may read the rows where they are.
        self.rows_in_place = X.dtype == self.dtype and unit_stride and whole_items and X.dtype.isnative

    def parts(self) -> list[slice]:
        """Return the rows of each block, in order."""
        return _parts(self.shape[0], self.shape[1] * self.dtype.itemsize)

    def read(self, rows: slice) -> Array:
        """Return neighbouring rows as a float array."""
        return np.asarray(self.array[rows], dtype=self.dtype)

    def take(self, rows: Array) -> Array:
        """Return the given rows as one contiguous float array."""
        if self.array.flags.c_contiguous and self.array.dtype == self.dtype and self.array.dtype.isnative:
            return np.asarray(np.take(self.array, rows, axis=0))  # twice as fast as an index
        return np.ascontiguousarray(self.array[rows], dtype=self.dtype)


def check_structure(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix whose indices lead out of it: SciPy and compiled loops follow them unseen.

    Parameters
    ----------
    X : sparse matrix
        Of the formats CSR, CSC, BSR and COO; others are not looked at.
    name : str
        What the message calls it.

    Examples
    --------
    >>> from scipy import sparse
    >>> X = sparse.csr_array([[0.0, 2.0], [1.0, 0.0]])
    >>> check_structure(X)
    >>> X.indices[0] = 7
    >>> check_structure(X)
    Traceback (most recent call last):
        ...
    ValueError: X is a damaged CSR matrix: its indptr must rise from 0 to the number of stored values and ...
    """
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D input, got sparse {name} with shape {X.shape}: reshape it with reshape(-1, 1) if "
            "it holds one feature, or with reshape(1, -1) if it holds one sample."
        )
    if X.format == "coo":
        if not all(_inside(at, size) for at, size in zip((X.row, X.col), X.shape, strict=True)):
            raise ValueError(
                f"{name} is a damaged COO matrix: its row and col must lie within its shape {X.shape}. Build "
                "it anew."
            )
        return
    if X.format not in ("csr", "csc", "bsr"):
        return
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    rows, features = X.shape[::-1] if X.format == "csc" else (X.shape[0] // height, X.shape[1] // width)
    indptr, indices = X.indptr, X.indices
    sound = (
        indptr.shape[0] == rows + 1
        and indptr[0] == 0
        and indptr[-1] <= min(X.data.shape[0], indices.shape[0])
        and bool(np.all(indptr[1:] >= indptr[:-1]))
        and _inside(indices, features)
    )
    if not sound:
        raise ValueError(
            f"{name} is a damaged {X.format.upper()} matrix: its indptr must rise from 0 to the number of "
            f"stored values and its indices must lie in 0 … {features - 1}. Build it anew from its entries, "
            "for example with scipy.sparse.coo_array((values, (rows, columns))).tocsr()."
        )


def _inside(indices: Array, size: int) -> bool:
    # Read as unsigned, a negative index is a huge one.
    return not indices.size or int(indices.view(indices.dtype.str.replace("i", "u")).max()) < size


class CsrView(DataView):
    """View of a SciPy CSR matrix or array with 32- or 64-bit indices.

    The structure is checked here once, because compiled loops follow the indices unseen.

    Examples
    --------
    >>> from scipy import sparse
    >>> view = CsrView(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    >>> view.row_norms().tolist()
    [4.0, 1.0]
    """

    sparse = True

    def __init__(self, X: Any) -> None:
        self.array = X
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = working_dtype(X.dtype)
        check_structure(X)
        self.rows_in_place = (
            X.dtype == self.dtype
            and X.dtype.isnative
            and X.indices.dtype == X.indptr.dtype
            and X.indices.dtype in (np.int32, np.int64)
        )

    @property
    def row_elements(self) -> float:
        """Mean number of stored values in a row."""
        return float(self.array.indptr[-1]) / max(1, self.shape[0])

    def parts(self) -> list[slice]:
        """Return the rows of each block, in order."""
        return _parts(self.shape[0], (self.row_elements + 1) * (self.dtype.itemsize + 8))

    def read(self, rows: slice) -> Any:
        """Return neighbouring rows as a float CSR matrix."""
        block = self._rows(rows.start, rows.stop)
        return block if block.dtype == self.dtype else block.astype(self.dtype)

    def compiled_rows(self, rows: slice) -> tuple[Any, ...]:
        """Return neighbouring rows as compiled loops take them, where they lie if they can."""
        if not self.rows_in_place:
            return super().compiled_rows(rows)
        X = self.array
        return X.data, X.indices, X.indptr[rows.start : rows.stop + 1], self.shape[1]

    def _rows(self, begin: int, end: int) -> Any:
        """Return neighbouring rows without copying their values."""
        if begin == 0 and end == self.shape[0]:
            return self.array
        indptr = self.array.indptr[begin : end + 1]
        stored = slice(indptr[0], indptr[-1])
        # Given the parts, SciPy's constructor would copy values that are less than half of their array.
        block = type(self.array)((end - begin, self.shape[1]), dtype=self.array.dtype)
        block.data, block.indices = self.array.data[stored], self.array.indices[stored]
        block.indptr = indptr - indptr[0]
        return block

    def take(self, rows: Array) -> Any:
        """Return the given rows as one float CSR matrix."""
        block = self.array[rows]
        block = block if block.dtype == self.dtype else block.astype(self.dtype)
        if block.indices.dtype != block.indptr.dtype:
            block.indices = block.indices.astype(np.int64, copy=False)
            block.indptr = block.indptr.astype(np.int64, copy=False)
        return block


class ConstantColumn(DataView):
    """A view with one more feature, the same for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> ConstantColumn(DenseView(np.ones((1, 2))), 5.0).read(slice(0, 1)).tolist()
    [[1.0, 1.0, 5.0]]
    """

    def __init__(self, view: DataView, value: float) -> None:
        self.view, self.value = view, value
        self.shape, self.dtype, self.sparse = (view.shape[0], view.shape[1] + 1), view.dtype, view.sparse

    def _extended(self, block: Any) -> Any:
        column = np.full((block.shape[0], 1), self.value, dtype=block.dtype)
        if not self.sparse:
            return np.hstack([block, column])
        return sparse.hstack([block, sparse.csr_array(column)], format="csr")

    @property
    def row_elements(self) -> float:
        """Mean number of stored values in a row."""
        return self.view.row_elements + 1

    def parts(self) -> list[slice]:
        """Return the rows of each block, in order."""
        return self.view.parts()

    def read(self, rows: slice) -> Any:
        """Return neighbouring rows as a float array or CSR matrix."""
        return self._extended(self.view.read(rows))

    def take(self, rows: Array) -> Any:
        """Return the given rows as one float block."""
        return self._extended(self.view.take(rows))


def view_of(X: Any) -> DenseView | CsrView:
    """Return the view that fits ``X``, a two-dimensional array or CSR matrix."""
    return CsrView(X) if sparse.issparse(X) else DenseView(X)


class ChosenRows(DataView):
    """Some rows of another view, gathered block by block: for few passes no copy of them all is worth it.

    Examples
    --------
    >>> import numpy as np
    >>> ChosenRows(DenseView(np.arange(8.0).reshape(4, 2)), np.array([0, 3])).column_sums().tolist()
    [6.0, 8.0]
    """

    def __init__(self, view: DataView, rows: Array) -> None:
        self.view, self.rows = view, rows
        self.shape = (rows.shape[0], view.shape[1])
        self.dtype, self.sparse = view.dtype, view.sparse

    @property
    def row_elements(self) -> float:
        """Mean number of stored values in a row, of all rows."""
        return self.view.row_elements

    def parts(self) -> list[slice]:
        """Return the rows of each block, in order."""
        return _parts(self.shape[0], self.row_elements * (self.dtype.itemsize + 8 * self.sparse))

    def read(self, rows: slice) -> Any:
        """Return neighbours among the chosen rows as one float block."""
        return self.view.take(self.rows[rows])

    def take(self, rows: Array) -> Any:
        """Return the given ones of the chosen rows as one float block."""
        return self.view.take(self.rows[rows])


class _KeptBlocks(DataView):
    """Sparse rows in memory whose blocks are made once: SciPy takes longer to make one than to check it."""

    sparse = True

    def __init__(self, view: CsrView) -> None:
        self.view, self.shape, self.dtype = view, view.shape, view.dtype
        self.made = {rows.start: view.read(rows) for rows in view.parts()}

    @property
    def row_elements(self) -> float:
        """Mean number of stored values in a row."""
        return self.view.row_elements

    def parts(self) -> list[slice]:
        """Return the rows of each block, in order."""
        return self.view.parts()

    def read(self, rows: slice) -> Any:
        """Return neighbouring rows as a CSR matrix."""
        block = self.made.get(rows.start)
        known = block is not None and block.shape[0] == rows.stop - rows.start
        return block if known else self.view.read(rows)

    def take(self, rows: Array) -> Any:
        """Return the given rows as one CSR matrix."""
        return self.view.take(rows)


#: Stored values times columns up to which waking a second thread costs more than it gains.
_ALONE = 1 << 19


class _OneBlock(CsrView):
    """Sparse rows in memory that are read at once, by one thread."""

    def __init__(self, view: CsrView) -> None:
        self.array, self.shape, self.dtype = view.array, view.shape, view.dtype
        self.rows_in_place = view.rows_in_place

    def parts(self) -> list[slice]:
        """Return all rows as one block."""
        return [slice(0, self.shape[0])]


def with_kept_blocks(view: DataView, columns: int) -> DataView:
    """Return a view for many passes over sparse rows in memory, with products of so many columns of weights.

    Their blocks are made once; few values are one block.
    """
    if isinstance(view, CsrView) and view.rows_in_place and len(view.parts()) > 1:
        few = view.array.indptr[-1] * columns <= _ALONE
        return _OneBlock(view) if few else _KeptBlocks(view)
    return view
