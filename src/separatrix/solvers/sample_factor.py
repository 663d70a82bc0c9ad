r"""A factor of the Gram matrix of sparse samples in single precision, half of it stored.

    D (A Aᵀ + α I) D ≈ L Lᵀ,     A = √s (x − μ),     D = diag(A Aᵀ + α I)^{−1/2}

It does not solve a system, it preconditions one (:mod:`separatrix.solvers.sparse_dual`): half the memory and
half the time of double precision. LAPACK's rectangular full packed format (Gustavson et al., 2010) stores
half of the symmetric matrix and is factorised at full speed: with ``k = ⌈n/2⌉``, its row ``c`` holds sample
``k + c``'s products with samples ``k … k + c``, then sample ``c``'s products with samples ``c … n − 1``.
(With an odd ``n`` the first half is shifted by one row.)

Products of sparse samples cost a look-up for each pair of samples that share a feature, and nearly all of
these pairs share one of the few frequent features: these are multiplied as dense columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import lapack

from separatrix import _hot
from separatrix.data.threads import in_threads, single_threaded
from separatrix.data.view import Array

#: Rows that are multiplied at a time.
_ROWS = 64
#: Share of the samples from which a feature counts as frequent: dense products of all samples, which are
#: some hundred times as fast as look-ups, then take no longer.
_FREQUENT = 0.1
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
    mean : ndarray of shape (d,)
        ``μ``.
    alpha : float
        Penalty, above 0.
    expired : callable
        Whether to give up.

    Attributes
    ----------
    sound : bool
        Whether it can be used.
    """

    def __init__(self, X: Any, root: Array, mean: Array, alpha: float, expired: Callable[[], bool]) -> None:
        n = X.shape[0]
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2.0 * _along(X, mean)
        diagonal = np.square(root) * squares + alpha
        self.sound = bool(np.all(diagonal > 0) and np.all(np.isfinite(diagonal)))
        if not self.sound:
            return
        self._scale = 1.0 / np.sqrt(diagonal)
        products = _Products(X, root * self._scale, mean)
        packed = np.empty(((n + 1) // 2, n + 1 - n % 2), dtype=np.float32)
        for ridge in _RIDGES:
            with single_threaded(float(n) ** 2):
                for _ in in_threads(partial(products.fill, packed), -(-len(packed) // _ROWS)):
                    if expired():
                        self.sound = False
                        return
            _set_diagonal(packed, n % 2, 1.0 + ridge)
            self._factor, failed = lapack.spftrf(n, packed.reshape(-1), uplo="L", overwrite_a=1)
            self.sound = not failed
            if self.sound:
                break

    def solve(self, R: Array) -> Array:
        """Return what is about ``(A Aᵀ + α I)⁻¹ R``."""
        scaled = R * self._scale[:, None]
        size = np.maximum(np.abs(scaled).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
        B = np.asfortranarray(scaled / size, dtype=np.float32)
        solved = lapack.spftrs(R.shape[0], self._factor, B, uplo="L", overwrite_b=1)[0]
        return np.asarray(solved * self._scale[:, None] * size)


class _Products:
    """``r (x − μ)`` times each other, packed: frequent features as dense columns, the others added."""

    def __init__(self, X: Any, r: Array, mean: Array) -> None:
        n = X.shape[0]
        frequent = np.bincount(X.indices, minlength=X.shape[1]) > _FREQUENT * n
        rare = X[:, ~frequent]
        # r (x − μ) of rare features = r x − r μ, multiplied out: sparse rows are not centred one by one.
        along = r * _along(rare, mean[~frequent])
        dense = X[:, frequent].toarray() - mean[frequent]
        dense *= r[:, None]
        self._left, self._right = np.column_stack([dense, -along, -r]), np.column_stack([dense, r, along])
        index = np.int32 if max(X.nnz, *X.shape) < 2**31 else np.int64
        rare.data = rare.data * np.repeat(r, np.diff(rare.indptr))
        self._rows, self._columns = (
            (A.data, A.indices.astype(index, copy=False), A.indptr.astype(index, copy=False))
            for A in (rare, rare.T.tocsr())
        )

    def fill(self, packed: Array, number: int) -> None:
        """Write some rows of the packed matrix, but for the diagonal."""
        n, half = len(self._left), len(packed)
        odd = n % 2
        begin, end = number * _ROWS, min((number + 1) * _ROWS, half)
        # What is left of the diagonal is written over afterwards.
        packed[begin:end, begin + 1 - odd :] = self._products(slice(begin, end), slice(begin, n))
        begin = max(begin, odd)
        low = slice(half + begin - odd, half + end - odd)
        products = self._products(low, slice(half, low.stop))
        packed[begin:end, : begin - odd] = products[:, : begin - odd]
        for c in range(begin, end):
            packed[c, begin - odd : c + 1 - odd] = products[c - begin, begin - odd : c + 1 - odd]

    def _products(self, rows: slice, others: slice) -> Array:
        """Return the products of some rows with others."""
        out = np.asarray(self._left[rows] @ self._right[others].T)
        data, indices, starts = self._rows
        part = data, indices, starts[rows.start : rows.stop + 1]
        _hot.add_gram_rows(*part, *self._columns, others.start, out)
        return out


def _set_diagonal(packed: Array, odd: int, value: float) -> None:
    every = np.arange(len(packed))
    packed[every, every + 1 - odd] = value
    packed[every[odd:], every[odd:] - odd] = value


def _along(X: Any, mean: Array) -> Array:
    """Return ``x·μ − μ·μ/2`` of each sample: what centring takes from its products."""
    return np.asarray(X @ mean - 0.5 * float(mean @ mean))
