"""What a kernel is, and what all kernels on vectors share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Rows = Any
"""Samples as rows: a two-dimensional floating array or a SciPy CSR matrix."""


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel ``k(x, z)``: the inner product of ``phi(x)`` and ``phi(z)`` for some feature map ``phi``.

    Kernels are values: frozen, hashable, equal when their parameters are. A new kernel is one subclass with
    its formula on blocks of samples, `__call__` and `diag`; kernels on vectors derive from `VectorKernel`,
    which prepares the blocks.
    """

    @abstractmethod
    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""

    @abstractmethod
    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""


@dataclass(frozen=True)
class VectorKernel(Kernel):
    """A kernel on numeric vectors, dense or CSR: a subclass gives ``_block`` and ``_diagonal``.

    Both get blocks that are floating and two-dimensional, dense in any order or CSR. The result has the
    precision of the input: float32 stays float32, integers are computed in float64.
    """

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""
        first = as_rows(A, "A")
        if B is None:
            return self._block(first, None)
        second = as_rows(B, "B")
        if first.shape[1] != second.shape[1]:
            raise ValueError(
                f"{self!r} needs samples with equally many features: A has {first.shape[1]}, "
                f"B has {second.shape[1]}"
            )
        return self._block(first, second)

    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""
        return self._diagonal(as_rows(A, "A"))

    @abstractmethod
    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        """Apply the formula to all pairs of two prepared blocks."""

    @abstractmethod
    def _diagonal(self, A: Rows) -> NDArray[Any]:
        """Apply the formula to each row of a prepared block with itself."""


def as_rows(samples: Rows, name: str) -> Rows:
    """Make samples a floating two-dimensional array or CSR matrix, without a copy where they are one."""
    if sparse.issparse(samples):
        rows = samples.tocsr()
    else:
        rows = np.asarray(samples)
        if rows.ndim != 2:
            raise ValueError(
                f"{name} must have two dimensions (samples, features), not {rows.ndim}; for one "
                f"sample use {name}.reshape(1, -1)"
            )
    if rows.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, not {rows.dtype}")
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)


def inner_products(A: Rows, B: Rows | None) -> NDArray[Any]:
    """All inner products ``x.z`` between rows of two prepared blocks, as a new C-ordered array."""
    other = A if B is None else B
    if sparse.issparse(other) and not sparse.issparse(A):
        products = (other @ A.T).T
    else:
        products = A @ other.T
    if sparse.issparse(products):
        products = products.toarray()
    return np.ascontiguousarray(products)


def squared_norms(A: Rows) -> NDArray[Any]:
    """``||x||^2`` of every row."""
    if sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1)).reshape(-1).astype(A.dtype, copy=False)
    norms: NDArray[Any] = np.einsum("ij,ij->i", A, A)
    return norms


def positive(value: Any, name: str) -> float:
    """`value` as a Python float (NumPy scalars would promote float32 blocks), or a clear error."""
    number = finite(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be positive, not {value!r}")
    return number


def finite(value: Any, name: str) -> float:
    """`value` as a finite Python float, or a clear error."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not isfinite(value):
        raise ValueError(f"{name} must be finite, not {value!r}")
    return float(value)


def whole(value: Any, name: str, least: int) -> int:
    """`value` as a Python integer of at least `least`, or a clear error."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value!r}")
    return int(value)
