"""From what users pass as ``kernel=`` to a kernel object."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.kernels._base import Kernel, Rows, as_rows, check_finite, positive
from separatrix.kernels._precomputed import Precomputed
from separatrix.kernels._vectors import RBF, Linear, Polynomial, Sigmoid

# Rows per call when only the diagonal of a callable kernel is wanted, and numbers per block of a variance.
_DIAGONAL_ROWS = 32
_BLOCK_NUMBERS = 1 << 17

KERNEL_NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian", "bessel", "anova")
"""Names of kernels on vectors that estimators accept for ``kernel=``, and "precomputed" beside them."""


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """``k(A, B) = function(A, B)``: a user's function on two blocks of samples, its results checked.

    Parameters
    ----------
    function : callable
        Gets blocks of n and m samples and returns an array of shape (n, m) of finite real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import CallableKernel
    >>> overlap = CallableKernel(lambda A, B: np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2))
    >>> overlap(np.array([[1.0, 2.0]]), np.array([[2.0, 1.0], [0.0, 0.5]]))
    array([[2. , 0.5]])
    """

    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable as function(A, B), not {self.function!r}")

    @property
    def definite(self) -> bool:
        """Not known to be positive semidefinite."""
        return False

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""
        other = A if B is None else B
        result = self.function(A, other)
        values = np.asarray(result.toarray() if sparse.issparse(result) else result)
        expected = (_count(A), _count(other))
        if values.shape != expected:
            raise ValueError(
                f"kernel {self._name} returned shape {values.shape} for blocks of {expected[0]} "
                f"and {expected[1]} samples; it must return shape {expected}"
            )
        if values.dtype.kind not in "fiub":
            raise TypeError(
                f"kernel {self._name} returned {values.dtype} values for blocks of shapes "
                f"{np.shape(A)} and {np.shape(other)}; it must return real numbers"
            )
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        return check_finite(values, self._name, "look for a division by 0 or an overflow in it")

    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""
        # Small square blocks: a function on blocks need not be quick for one pair at a time.
        starts = range(0, _count(A), _DIAGONAL_ROWS)
        parts = [self._own_diagonal(A[start : start + _DIAGONAL_ROWS]) for start in starts]
        return np.concatenate(parts) if parts else np.empty(0)

    def _own_diagonal(self, A: Rows) -> NDArray[Any]:
        """Return the diagonal of samples with themselves; refuse a function that is no kernel.

        One that is not symmetric, or returns other values with each call, has no best machine: steps towards
        it go on for ever. What rounding makes of a distance or a long sum is far less than what is refused.
        """
        values = self(A)
        difference = np.abs(values - values.T)
        i, j = (int(place) for place in np.unravel_index(np.argmax(difference), difference.shape))
        if difference[i, j] > np.sqrt(np.finfo(values.dtype).eps) * np.abs(values).max():
            raise ValueError(
                f"kernel {self._name} is not symmetric: of {_count(A)} samples and themselves it returned "
                f"{values[i, j]:.6g} at row {i}, column {j}, and {values[j, i]:.6g} at row {j}, column {i}; "
                "k(x, z) must equal k(z, x), with each call. Make it symmetric, for example by "
                "0.5 * (k(A, B) + k(B, A).T), and leave out what is random."
            )
        return np.diagonal(values)

    @property
    def _name(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))


def resolve_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: Any = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    X: Rows,
    weights: NDArray[Any] | None = None,
) -> Kernel:
    """Find the kernel object that a ``kernel=`` argument stands for.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "bessel", "anova", "precomputed"}, Kernel, \
            or callable
        A name uses `gamma`, `degree` and `coef0` as far as its formula has them. ``"anova"`` takes `gamma`
        as its sigma; ``"bessel"`` takes ``sqrt(gamma)``, so that `gamma` has the unit it has in ``"rbf"``,
        and the least order, at least 1, with which it is positive semidefinite on `X`. A `Kernel` carries
        its own parameters. A callable ``(A, B) -> array`` is wrapped in `CallableKernel`.
    gamma : {"scale", "auto"} or positive float, default="scale"
        ``"scale"`` is ``1 / (d Var(X))`` over all entries of `X` (1 where they are all equal), ``"auto"``
        is ``1 / d``.
    degree : int, default=3
        Power of ``"poly"``, ``"bessel"`` and ``"anova"``.
    coef0 : float, default=0.0
        Constant term of ``"poly"`` and ``"sigmoid"``.
    X : array or CSR matrix
        The training data, read only for ``gamma="scale"`` and ``"auto"``.
    weights : array or None
        Weights of the rows in the variance of ``gamma="scale"``.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import resolve_kernel
    >>> resolve_kernel("rbf", gamma="scale", X=np.array([[1.0, -1.0], [1.0, -1.0]]))
    RBF(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(
            f"kernel must be an object, not the class {kernel.__name__}; write kernel={kernel.__name__}(...)"
        )
    if isinstance(kernel, str):
        return _named(kernel, gamma, degree, coef0, X, weights)
    if callable(kernel):
        return CallableKernel(kernel)
    raise TypeError(
        f"kernel must be one of {', '.join(KERNEL_NAMES)}, a kernel object of "
        f"separatrix.kernels, or a function (A, B) -> array, not {kernel!r}"
    )


def _named(name: str, gamma: Any, degree: int, coef0: float, X: Rows, weights: NDArray[Any] | None) -> Kernel:
    if name == "linear":
        return Linear()
    if name == "precomputed":
        return Precomputed()
    if name not in KERNEL_NAMES:
        raise ValueError(
            f"unknown kernel {name!r}; choose one of {', '.join(KERNEL_NAMES)}, precomputed, "
            "a kernel object of separatrix.kernels, for texts Spectrum(3), or a function (A, B) -> array"
        )
    width = resolve_gamma(gamma, X, weights)
    if name == "poly":
        return Polynomial(degree=degree, gamma=width, coef0=coef0)
    if name == "rbf":
        return RBF(gamma=width)
    if name == "sigmoid":
        return Sigmoid(gamma=width, coef0=coef0)
    if name == "bessel":
        from separatrix.kernels._bessel import Bessel

        return Bessel(sigma=width**0.5, order=max(1.0, int(np.shape(X)[1]) / 2 - 1), degree=degree)
    from separatrix.kernels._features import AnovaRBF, Laplacian

    return Laplacian(gamma=width) if name == "laplacian" else AnovaRBF(sigma=width, degree=degree)


def resolve_gamma(gamma: Any, X: Rows, weights: NDArray[Any] | None = None) -> float:
    """Find the number behind ``gamma="scale"``, ``"auto"`` or a positive number."""
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"unknown gamma {gamma!r}; choose 'scale', 'auto' or a positive number")
        rows = as_rows(X, "X") if not hasattr(X, "shape") else X
        if gamma == "auto":
            return 1.0 / int(rows.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            spread = int(rows.shape[1]) * _variance(rows, weights)
        if 0 < spread < 1.0 / float_info.max:
            raise ValueError(
                f"gamma='scale' is 1/(n_features * Var(X)), which overflows: Var(X) is "
                f"{spread / int(rows.shape[1]):.3g}. Scale the features, for example with "
                "sklearn.preprocessing.StandardScaler, or give gamma as a number."
            )
        if not isfinite(spread):
            raise ValueError(
                "The dual coefficients or intercepts are not finite: gamma='scale' is "
                "1/(n_features * Var(X)), and Var(X) overflows. The input data may contain large values and "
                "need to be preprocessed, for example with sklearn.preprocessing.StandardScaler."
            )
        return 1.0 / spread if spread > 0 else 1.0
    if not isinstance(gamma, Real):
        raise TypeError(f"gamma must be 'scale', 'auto' or a positive number, not {gamma!r}")
    return positive(gamma, "gamma")


def _variance(X: Rows, weights: NDArray[Any] | None) -> float:
    """Variance over all entries in float64, in two passes (no cancellation) and without a copy of `X`.

    A row of weight 2 counts as that row twice.
    """
    if weights is None and X.shape[0] * X.shape[1] <= _BLOCK_NUMBERS:
        if sparse.issparse(X):  # the same bits as of dense rows
            X = X.toarray()
        if not X.size:
            return 0.0
        # numpy.var takes four times as long for few numbers.
        centred = np.subtract(X, np.add.reduce(X, axis=None, dtype=np.float64) / X.size, dtype=np.float64)
        return float(np.add.reduce(np.multiply(centred, centred, out=centred), axis=None) / X.size)
    s = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    count, absent = float(s.sum()) * X.shape[1], 0.0
    if sparse.issparse(X):
        rows = X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        stored = np.diff(rows.indptr)
        absent = float(s @ (X.shape[1] - stored))
        entries = [(rows.data[:, None], np.repeat(s, stored))]
    else:
        step = max(1, _BLOCK_NUMBERS // max(1, X.shape[1]))
        entries = [(X[start : start + step], s[start : start + step]) for start in range(0, X.shape[0], step)]
    if count == 0:
        return 0.0
    mean = sum(float(w @ block.sum(axis=1, dtype=np.float64)) for block, w in entries) / count
    deviations = absent * mean * mean
    for block, w in entries:
        centred = np.subtract(block, mean, dtype=np.float64)
        deviations += float(w @ np.einsum("ij,ij->i", centred, centred))
    return float(deviations / count)


def _count(samples: Rows) -> int:
    return int(samples.shape[0]) if hasattr(samples, "shape") else len(samples)
