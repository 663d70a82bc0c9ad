"""Kernels that are functions of inner products or distances of vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.kernels._base import (
    Rows,
    VectorKernel,
    finite,
    inner_products,
    positive,
    squared_norms,
    whole,
)

# How many numbers the exact recomputation of nearly equal pairs may hold at a time.
_RECOMPUTE_NUMBERS = 1 << 20


@dataclass(frozen=True)
class Linear(VectorKernel):
    """``k(x, z) = x.z``: the inner product itself.

    Examples
    --------
    >>> from separatrix.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
    array([[11.,  2.]])
    """

    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        return inner_products(A, B)

    def _diagonal(self, A: Rows) -> NDArray[Any]:
        return squared_norms(A)


@dataclass(frozen=True)
class Polynomial(VectorKernel):
    """``k(x, z) = (gamma x.z + coef0)^degree``.

    Parameters
    ----------
    degree : int, default=3
        The power, at least 0.
    gamma : float, default=1.0
        Factor of the inner product, positive.
    coef0 : float, default=0.0
        Constant term. A negative one gives a function that is not positive semidefinite.

    Examples
    --------
    >>> from separatrix.kernels import Polynomial
    >>> Polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole(self.degree, "degree", least=0))
        object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))
        object.__setattr__(self, "coef0", finite(self.coef0, "coef0"))

    @property
    def definite(self) -> bool:
        """Whether no term is negative."""
        return self.coef0 >= 0

    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        return self._of_products(inner_products(A, B))

    def _diagonal(self, A: Rows) -> NDArray[Any]:
        return self._of_products(squared_norms(A))

    def _of_products(self, products: NDArray[Any]) -> NDArray[Any]:
        products *= self.gamma
        products += self.coef0
        products **= self.degree
        return products


@dataclass(frozen=True)
class Sigmoid(VectorKernel):
    """``k(x, z) = tanh(gamma x.z + coef0)``.

    Not positive semidefinite in general (see `separatrix.mercer`): a support vector machine with it ends in a
    local optimum.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor of the inner product, positive.
    coef0 : float, default=0.0
        Constant term.

    Examples
    --------
    >>> from separatrix.kernels import Sigmoid
    >>> Sigmoid(gamma=0.1, coef0=0.5)([[1.0, 2.0]], [[3.0, 1.0]]).round(4)
    array([[0.7616]])
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))
        object.__setattr__(self, "coef0", finite(self.coef0, "coef0"))

    @property
    def definite(self) -> bool:
        """Not known to be positive semidefinite."""
        return False

    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        return self._of_products(inner_products(A, B))

    def _diagonal(self, A: Rows) -> NDArray[Any]:
        return self._of_products(squared_norms(A))

    def _of_products(self, products: NDArray[Any]) -> NDArray[Any]:
        products *= self.gamma
        products += self.coef0
        np.tanh(products, out=products)
        return products


@dataclass(frozen=True)
class RBF(VectorKernel):
    """``k(x, z) = exp(-gamma ||x - z||^2)``: the Gaussian kernel.

    Distances come from ``||x||^2 + ||z||^2 - 2 x.z``, which loses digits where ``x`` and ``z`` are close
    together and far from the origin. Dense data are therefore moved to their mean first, and pairs whose
    distance is within the rounding error are computed again from the difference ``x - z``. Equal rows give
    exactly 1.

    Parameters
    ----------
    gamma : float, default=1.0
        Inverse squared width, positive.

    Examples
    --------
    >>> from separatrix.kernels import RBF
    >>> RBF(gamma=0.5)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))

    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        values = squared_distances(A, B)
        values *= -self.gamma
        np.exp(values, out=values)
        return values

    def _diagonal(self, A: Rows) -> NDArray[Any]:
        return np.ones(A.shape[0], dtype=A.dtype)


def squared_distances(A: Rows, B: Rows | None) -> NDArray[Any]:
    """``||x - z||^2`` between all rows of two prepared blocks, never negative, exactly 0 for equal rows."""
    if not sparse.issparse(A) and not sparse.issparse(B):
        # The mean of B: in prediction B are the fixed rows of a model, A the varying rows of a user.
        shift = _mean(A if B is None else B)
        A = A - shift.astype(A.dtype)
        B = None if B is None else B - shift.astype(B.dtype)
    distances = inner_products(A, B)
    distances *= -2
    own = squared_norms(A)
    other = own if B is None else squared_norms(B)
    sizes = own[:, None] + other[None, :]
    distances += sizes

    # A sum of `terms` products is wrong by at most terms * eps / 2 of its size, whatever the order of
    # summation, so equal rows cannot escape this test. Rows without any entry have nothing to correct.
    terms = _most_entries(A, B) + 4
    suspect = distances <= sizes * (terms * float(np.finfo(distances.dtype).eps))
    suspect &= sizes > 0
    if B is None:
        np.fill_diagonal(suspect, False)
    np.maximum(distances, 0, out=distances)
    _recompute(distances, np.flatnonzero(suspect), A, A if B is None else B)
    if B is None:
        np.fill_diagonal(distances, 0)
    return distances


def _mean(rows: NDArray[Any]) -> NDArray[Any]:
    if rows.shape[0] == 0:
        return np.zeros(rows.shape[1])
    mean: NDArray[Any] = rows.mean(axis=0, dtype=np.float64)
    return mean


def _most_entries(*blocks: Rows) -> int:
    """Largest number of entries in any row that is summed up."""
    most = 0
    for block in blocks:
        if sparse.issparse(block):
            most = max(most, int(np.diff(block.indptr).max(initial=0)))
        elif block is not None:
            most = max(most, block.shape[1])
    return most


def _recompute(distances: NDArray[Any], flat: NDArray[Any], A: Rows, B: Rows) -> None:
    """Replace the entries at the flat positions by sums of squared differences."""
    step = max(1, _RECOMPUTE_NUMBERS // max(1, _most_entries(A, B)))
    for start in range(0, flat.size, step):
        part = flat[start : start + step]
        i, j = np.divmod(part, distances.shape[1])
        if sparse.issparse(A) or sparse.issparse(B):
            difference = sparse.csr_array(A[i]) - sparse.csr_array(B[j])
        else:
            difference = A[i] - B[j]
        distances[i, j] = squared_norms(difference)
