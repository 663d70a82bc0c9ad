"""A kernel matrix that the user has computed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.kernels._base import Kernel, Rows, as_rows, check_finite


@dataclass(frozen=True)
class Precomputed(Kernel):
    """``k(x_i, x_j) = K_ij``: the samples are rows of a kernel matrix that is at hand.

    For a fit ``X`` is the square matrix of all pairs of training samples; for a prediction it has one row per
    new sample and one column per training sample. Called with such a matrix and, if wanted, the numbers of
    some of its columns, it returns them.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import Precomputed
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> Precomputed()(K)
    array([[2., 1.],
           [1., 3.]])
    >>> Precomputed()(K, np.array([1])), Precomputed().diag(K)
    (array([[1.],
           [3.]]), array([2., 3.]))
    """

    @property
    def definite(self) -> bool:
        """Not known to be positive semidefinite."""
        return False

    @property
    def samples(self) -> str:
        """What it compares: rows of a "matrix"."""
        return "matrix"

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Return the rows `A` of a kernel matrix; of their columns those with the numbers `B`, or all."""
        rows = _matrix(A)
        if B is None:
            return rows
        columns = np.asarray(B)
        if columns.ndim != 1 or columns.dtype.kind not in "iu":
            raise TypeError(
                "a precomputed kernel knows the samples of its columns by number: B must be a "
                "one-dimensional array of whole numbers, or None for all"
            )
        if columns.size and (columns.min() < 0 or columns.max() >= rows.shape[1]):
            raise ValueError(f"B must hold numbers of columns, from 0 to {rows.shape[1] - 1}")
        return np.ascontiguousarray(rows[:, columns])

    def diag(self, A: Rows) -> NDArray[Any]:
        """Diagonal of the square matrix `A`, shape (n,)."""
        return np.array(np.diagonal(square(_matrix(A))))


def square(K: NDArray[Any]) -> NDArray[Any]:
    """Return a kernel matrix between all pairs of the same samples, or tell that it is none."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"a precomputed kernel matrix of training samples must be square, not of shape {K.shape}: row i, "
            "column j holds the kernel of samples i and j"
        )
    return K


def check_symmetric(K: NDArray[Any], name: str = "the precomputed kernel matrix") -> NDArray[Any]:
    """Return a square matrix that is symmetric up to rounding, or name the entry that is not."""
    square(K)
    allowed = 64 * float(np.finfo(K.dtype).eps) * float(np.abs(K).max(initial=0.0))
    step = max(1, (1 << 20) // max(1, K.shape[0]))
    for begin in range(0, K.shape[0], step):
        # Above the diagonal of this stripe lies what has not been compared.
        difference = np.abs(K[begin : begin + step, begin:] - K[begin:, begin : begin + step].T)
        if difference.size and difference.max() > allowed:
            i, j = (int(place) + begin for place in np.argwhere(difference == difference.max())[0])
            raise ValueError(
                f"{name} is not symmetric: entry ({i}, {j}) is {K[i, j]:.6g}, entry ({j}, {i}) is "
                f"{K[j, i]:.6g}; k(x, z) must equal k(z, x)"
            )
    return K


def _matrix(A: Rows) -> NDArray[Any]:
    rows = as_rows(A, "a precomputed kernel matrix")
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return check_finite(rows, "Precomputed()", "compute the matrix again without NaN and infinity")
