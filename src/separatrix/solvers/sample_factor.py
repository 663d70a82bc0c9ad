r"""A factor of the Gram matrix of sparse samples in single precision, half of it stored.

    D (A Aᵀ + α I) D ≈ L Lᵀ,     A = √s (x − μ),     D = diag(A Aᵀ + α I)^{−1/2}

It does not solve a system, it preconditions one (:mod:`separatrix.solvers.sparse_dual`): half the memory and
half the time of double precision. LAPACK's rectangular full packed format (Gustavson et al., 2010) stores
half of the symmetric matrix and is factorised at full speed: with ``k = ⌈n/2⌉``, its row ``c`` holds sample
``k + c``'s products with samples ``k … k + c``, then sample ``c``'s products with samples ``c … n − 1``.
(With an odd ``n`` the first half is shifted by one row.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import lapack

from separatrix import _hot
from separatrix.data.threads import in_threads
from separatrix.data.view import Array, csr_parts

#: Rows that are multiplied at a time.
_ROWS = 32
#: What is added to the diagonal, 1, of a matrix that is singular in single precision, until it is not.
_RIDGES = (0.0, 1e-5, 1e-3)


class SampleFactor:
    """``L`` for ``A Aᵀ + α I``.

    Parameters
    ----------
    X : CSR matrix of float64 of shape (n, d)
        Samples.
    root : ndarray of shape (n,)
        ``√s``.
    along : ndarray of shape (n,)
        ``x·μ − μ·μ/2``.
    alpha : float
        Penalty, above 0.
    expired : callable
        Whether to give up.

    Attributes
    ----------
    sound : bool
        Whether it can be used.
    """

    def __init__(
        self, X: Any, root: Array, along: Array, alpha: float, expired: Callable[[], bool]
    ) -> None:
        n = X.shape[0]
        self._X = X
        self._index = np.int32 if max(X.nnz, *X.shape) < 2**31 else np.int64
        self._columns = self._parts(X.T.tocsr())
        self._root, self._along, self._odd = root, along, n % 2
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2.0 * along
        diagonal = np.square(root) * squares + alpha
        self.sound = bool(np.all(diagonal > 0) and np.all(np.isfinite(diagonal)))
        if not self.sound:
            return
        self._scale = 1.0 / np.sqrt(diagonal)
        packed = np.empty(((n + 1) // 2, n + 1 - self._odd), dtype=np.float32)
        for ridge in _RIDGES:
            fill = partial(self._fill, packed, 1.0 + ridge)
            for _ in in_threads(fill, -(-len(packed) // _ROWS)):
                if expired():
                    self.sound = False
                    return
            self._factor, failed = lapack.spftrf(n, packed.reshape(-1), uplo="L", overwrite_a=1)
            self.sound = not failed
            if self.sound:
                break
        del self._X, self._columns

    def _parts(self, block: Any) -> tuple[Array, ...]:
        data, indices, indptr = csr_parts(block)
        return data, indices.astype(self._index, copy=False), indptr.astype(self._index, copy=False)

    def _fill(self, packed: Array, diagonal: float, number: int) -> None:
        """Write some rows of the packed matrix."""
        n, half, odd = self._X.shape[0], len(packed), self._odd
        begin, end = number * _ROWS, min((number + 1) * _ROWS, half)
        products = self._products(slice(begin, end), slice(begin, n), diagonal)
        for c in range(begin, end):
            packed[c, c + 1 - odd :] = products[c - begin, c - begin :]
        begin = max(begin, odd)
        low = slice(half + begin - odd, half + end - odd)
        products = self._products(low, slice(half, low.stop), diagonal)
        for c in range(begin, end):
            packed[c, : c + 1 - odd] = products[c - begin, : c + 1 - odd]

    def _products(self, rows: slice, others: slice, diagonal: float) -> Array:
        """Return the scaled products of some rows with others."""
        root, scale, along = self._root, self._scale, self._along
        out = np.empty((rows.stop - rows.start, others.stop - others.start))
        if not out.size:
            return out
        _hot.gram_rows(*self._parts(self._X[rows]), *self._columns, others.start, out)
        # √s(x − μ) = √s x − √s μ, multiplied out: sparse rows are not centred one by one.
        out -= along[rows][:, None]
        out -= along[others]
        out *= (scale * root)[rows][:, None]
        out *= (scale * root)[others]
        every = np.arange(rows.start, rows.stop)
        out[every - rows.start, every - others.start] = diagonal
        return out

    def solve(self, R: Array) -> Array:
        """Return what is about ``(A Aᵀ + α I)⁻¹ R``."""
        scaled = R * self._scale[:, None]
        size = np.maximum(np.abs(scaled).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
        B = np.asfortranarray(scaled / size, dtype=np.float32)
        solved = lapack.spftrs(R.shape[0], self._factor, B, uplo="L", overwrite_b=1)[0]
        return np.asarray(solved * self._scale[:, None] * size)
