"""What a kernel is, and what all kernels on vectors share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.data.memory import check_structure

Rows = Any
"""Samples as rows: a two-dimensional floating array or a SciPy CSR matrix."""


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel ``k(x, z)``: the inner product of ``phi(x)`` and ``phi(z)`` for some feature map ``phi``.

    Kernels are values: frozen, hashable, equal when their parameters are. A new kernel is one subclass with
    its formula on blocks of samples, `__call__` and `diag`; kernels on vectors derive from `VectorKernel`,
    which prepares the blocks.

    Sums, products, positive multiples and powers of kernels are kernels again, and are written so:
    ``RBF(0.1) + 0.5 * Polynomial(3)``, ``Linear() * RBF(1.0)``, ``Linear() ** 2``.
    """

    # An array times a kernel would else be an array of kernels.
    __array_ufunc__: ClassVar[None] = None

    @property
    def samples(self) -> str:
        """What it compares: "vectors", "texts", "matrix" (rows of a precomputed matrix) or "any"."""
        return "any"

    @property
    def definite(self) -> bool:
        """Whether it is known to be positive semidefinite on any samples, as an inner product is."""
        return True

    @property
    def precomputed(self) -> bool:
        """Whether samples are rows of the kernel matrix itself."""
        return self.samples == "matrix"

    @abstractmethod
    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""

    @abstractmethod
    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""

    def __add__(self, other: Any) -> "Kernel":
        from separatrix.kernels import _composed

        return _composed.add(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: Any) -> "Kernel":
        # sum(kernels) starts from 0.
        return self if type(other) is int and other == 0 else NotImplemented

    def __mul__(self, other: Any) -> "Kernel":
        from separatrix.kernels import _composed

        if isinstance(other, Kernel):
            return _composed.multiply(self, other)
        return _composed.scale(self, other) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: Any) -> "Kernel":
        return self * other if isinstance(other, Real) else NotImplemented

    def __pow__(self, exponent: Any) -> "Kernel":
        from separatrix.kernels import _composed

        return _composed.raise_to(self, exponent) if isinstance(exponent, Real) else NotImplemented


@dataclass(frozen=True)
class VectorKernel(Kernel):
    """A kernel on numeric vectors, dense or CSR: a subclass gives ``_block`` and ``_diagonal``.

    Both get blocks that are floating and two-dimensional, dense in any order or CSR. The result has the
    precision of the input: float32 stays float32, integers are computed in float64.
    """

    @property
    def samples(self) -> str:
        """What it compares: "vectors"."""
        return "vectors"

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
        check_structure(samples, name)
        rows = samples.tocsr()
    else:
        rows = np.asarray(samples)
        if (text := _text_in(rows)) is not None:
            raise TypeError(
                f"{name} must hold real numbers, not text such as {text!r}: use a string kernel, for example "
                "separatrix.kernels.Spectrum(3), or encode text as numbers first"
            )
        if rows.ndim != 2:
            raise ValueError(
                f"{name} must have two dimensions (samples, features), not {rows.ndim}; for one "
                f"sample use {name}.reshape(1, -1)"
            )
    if rows.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, not {rows.dtype}")
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)


def _text_in(array: NDArray[Any]) -> str | None:
    """Return some text that the array holds, shortened, or None if its first entry is none."""
    if array.dtype.kind not in "OUS" or array.size == 0:
        return None
    entry = array.flat[0]
    return str(entry)[:20] if isinstance(entry, (str, bytes)) else None


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


def check_finite(values: NDArray[Any], name: str, remedy: str) -> NDArray[Any]:
    """Return kernel values, or say where one of them is no finite number and what to do about it."""
    # One sum tells in most cases that all is well, without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return values
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size == 0:
        return values
    row, column = (int(place) for place in wrong[0])
    raise ValueError(
        f"kernel {name} returned {values[row, column]} at row {row}, column {column} of a block of shape "
        f"{values.shape}; its values must be finite: {remedy}"
    )
