"""Scores of new samples: ``K(X, support) @ coef`` without keeping the kernel block."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.memory import view_of, working_dtype
from separatrix.data.threads import in_threads
from separatrix.data.view import Array
from separatrix.kernels import Kernel
from separatrix.solvers.kernel_matrix import Native, Precision, native_of, pack, packing_of

#: Kernel entries held at a time where the compiled loops do not know the kernel.
_PIECE = 1 << 21
#: Bytes of packed samples that are worked on at a time, and that support vectors may take.
_BLOCK_BYTES, _SUPPORT_BYTES = 1 << 22, 1 << 31
#: Rounding error of a score up to which float32 data are worked on in float32.
_ERROR = 1e-4


def kernel_scores(kernel: Kernel, support: Any, coef: Array, X: Any) -> Array:
    """Return ``Σ_j k(x_t, support_j) coef[j, :]`` for every sample of ``X``, in float64.

    Parameters
    ----------
    kernel : Kernel
        The formula. With ``precomputed = True`` the rows of ``X`` hold the kernel values and ``support`` is
        the array of the columns to use.
    support : array, CSR matrix or list
        The support vectors. Coefficients that are zero for many neighbouring ones cost nothing.
    coef : ndarray of shape (support, P)
        Their coefficients.
    X : array, CSR matrix or list
        New samples.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import RBF
    >>> kernel_scores(RBF(1.0), np.zeros((1, 2)), np.array([[2.0]]), np.zeros((3, 2))).ravel().tolist()
    [2.0, 2.0, 2.0]
    """
    m = X.shape[0] if hasattr(X, "shape") else len(X)
    out = np.zeros((m, coef.shape[1]))
    if m == 0 or coef.shape[0] == 0:
        return out
    native = native_of(kernel)
    if native is not None and _is_matrix(X) and _is_matrix(support):
        if support.shape[0] * support.shape[1] * 8 <= _SUPPORT_BYTES:
            _native_scores(native, support, np.ascontiguousarray(coef, dtype=np.float64), X, out)
            return out
    step = max(1, _PIECE // coef.shape[0])
    for begin in range(0, m, step):
        block = X[begin : begin + step]
        if getattr(kernel, "precomputed", False):
            values = np.asarray(block)[:, np.asarray(support)]
        else:
            values = kernel(block, support)
        out[begin : begin + step] = values @ coef
    return out


def _is_matrix(samples: Any) -> bool:
    if sparse.issparse(samples):
        return bool(samples.format == "csr" and samples.dtype.kind in "fiub" and samples.shape[1])
    if not isinstance(samples, np.ndarray) or samples.ndim != 2:
        return False
    return samples.dtype.kind in "fiub" and samples.shape[1] > 0


def _native_scores(native: Native, support: Any, coef: Array, X: Any, out: Array) -> None:
    """Pack the new samples block by block, each in a thread, and sum over all support vectors."""
    vectors, samples = view_of(support), view_of(X)
    packing = packing_of(native, vectors)
    precision: Precision = "float64"
    if working_dtype(X.dtype) == np.float32 == working_dtype(support.dtype):
        precision = "float32"
    left = pack(native, vectors, packing, precision)
    if precision == "float32" and _error(native, left, coef, vectors) > _ERROR:
        precision = "float64"
        left = pack(native, vectors, packing, precision)
    rows = np.arange(coef.shape[0], dtype=np.int64)
    m, d = samples.shape
    width = 48
    step = max(width, _BLOCK_BYTES // (8 * d) // width * width)
    # Enough blocks for the threads; their number depends on the sizes alone.
    step = min(step, max(width, -(-m // 8 // width) * width))

    def work(number: int) -> None:
        block = X[number * step : (number + 1) * step]
        count = block.shape[0]
        panels = pack(native, view_of(block), packing, precision)
        into = out[number * step : number * step + count]
        panels.product(left, rows, coef, 0, -(-count // panels.width), into)

    blocks = -(-m // step)
    if m * rows.size * d < 1 << 18:
        for number in range(blocks):
            work(number)
        return
    for _ in in_threads(work, blocks):
        pass


def _error(native: Native, left: Any, coef: Array, vectors: Any) -> float:
    """Return about how far scores are from exact ones if kernel values are computed in float32."""
    largest = 1.0
    if native.formula != 2:
        largest = float(np.sqrt(vectors.row_norms().max())) * native.scale
        largest = (largest * largest + abs(native.coef0)) ** max(1, native.degree)
    scale = 1.0 + (left.mean_half if native.formula == 2 else native.degree)
    return 6e-8 * scale * largest * float(np.sqrt(np.square(coef).sum(axis=0).max()))
