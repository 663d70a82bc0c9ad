"""Inner products of sparse samples with each other.

A look-up for each pair of samples that share a feature is slow, and nearly all such pairs share one of the
few frequent features: these are multiplied as dense columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads, single_threaded
from separatrix.data.view import Array

#: Rows of a block that are computed at a time.
_ROWS = 64
#: Share of the samples from which a feature counts as frequent: dense products of all samples, which are
#: some hundred times as fast as look-ups, then take no longer.
FREQUENT = 0.1


class SparseProducts:
    """``x_i · x_j`` of sparse samples, in double precision.

    Parameters
    ----------
    X : CSR matrix of shape (n, d)
        Samples.
    dense_bytes : float
        Most bytes of frequent features that are kept as dense columns.

    Examples
    --------
    >>> from scipy import sparse
    >>> products = SparseProducts(sparse.csr_matrix([[1.0, 2.0], [0.0, 3.0]]), 1e6)
    >>> products.block(np.array([0, 1]), np.array([1])).tolist()
    [[6.0], [9.0]]
    >>> products.sums(np.array([0, 1]), np.array([[1.0], [10.0]]), None).tolist()
    [[65.0], [96.0]]
    """

    def __init__(self, X: Any, dense_bytes: float) -> None:
        n, d = X.shape
        self.X = type(X)((np.asarray(X.data, dtype=np.float64), X.indices, X.indptr), shape=X.shape)
        counts = np.bincount(X.indices, minlength=d)
        frequent = np.argsort(-counts, kind="stable")[: int(dense_bytes / 8 / max(1, n))]
        frequent = frequent[counts[frequent] > FREQUENT * n]
        rare = np.ones(d, dtype=bool)
        rare[frequent] = False
        self._dense = self.X[:, frequent].toarray()
        self._rare = self.X[:, rare]

    def sums(self, rows: Array, coef: Array, targets: Array | None) -> Array:
        """Return ``Σ_j x_t · x_{rows_j} coef[j, :]`` for the targets; None means all samples."""
        weights = self.X[rows].T @ coef
        return np.asarray((self.X if targets is None else self.X[targets]) @ weights)

    def block(self, rows: Array, columns: Array) -> Array:
        """Return the products of some samples with others; half of them are computed if both are the same."""
        same = rows is columns or np.array_equal(rows, columns)
        out = np.empty((rows.size, columns.size))
        left, right = self._dense[rows], self._dense[columns]
        A = self._rare[rows]
        index = np.int32 if max(A.nnz, *self.X.shape) < 2**31 else np.int64
        B = _parts((A if same else self._rare[columns]).T.tocsr(), index)

        def fill(number: int) -> None:
            part = slice(number * _ROWS, min((number + 1) * _ROWS, rows.size))
            begin = part.start if same else 0
            values = left[part] @ right[begin:].T
            _hot.add_gram_rows(*_parts(A[part], index), *B, begin, values)
            out[part, begin:] = values
            if same:
                out[part.stop :, part] = values[:, part.stop - begin :].T

        with single_threaded(float(out.size) * (1.0 + left.shape[1])):
            for _ in in_threads(fill, -(-rows.size // _ROWS)):
                pass
        return out


def _parts(A: Any, index: Any) -> tuple[Array, Array, Array]:
    """Return values, places and starts of sparse rows with such an index."""
    return A.data, A.indices.astype(index, copy=False), A.indptr.astype(index, copy=False)
