"""Cholesky factors of models of a Hessian, scaled to unit diagonal."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from separatrix.data.view import Array

#: Smallest eigenvalue, relative to the largest, that a scaled Hessian is given.
_RIDGE = 1e-11
#: Smallest square on the diagonal of a factor in single precision that tells more than rounding.
_CLEAR = 1e-3


class Factor:
    """Factor of a symmetric matrix, positive definite but for rounding.

    Parameters
    ----------
    H : ndarray of float64 of shape (m, m)
        The matrix.
    single : bool
        Whether to factor in single precision, where features hardly depend on each other.

    Attributes
    ----------
    single : bool
        Whether single precision was enough.

    Examples
    --------
    >>> Factor(np.array([[4.0, 2.0], [2.0, 10.0]])).solve(np.array([[8.0], [22.0]])).round(6).ravel().tolist()
    [1.0, 2.0]
    """

    def __init__(self, H: Array, single: bool = False) -> None:
        diagonal = np.diagonal(H)
        # A feature that never varies, without a penalty: no step in its direction.
        scale = np.zeros(diagonal.shape[0])
        np.divide(1.0, np.sqrt(np.abs(diagonal)), out=scale, where=diagonal > 1e-290)
        self.scale = scale[:, None]
        self.single = single and self._factored_in_single(H)
        if not self.single:
            self._factor(H)

    def _scaled(self, H: Array, dtype: type[np.floating], ridge: float) -> Array:
        scaled = np.empty(H.shape, dtype=dtype)
        np.multiply(H, self.scale, out=scaled, casting="same_kind")
        scaled *= self.scale[:, 0].astype(dtype)
        np.fill_diagonal(scaled, 1.0 + ridge)
        return scaled.T  # LAPACK reads columns, which are the rows of a symmetric matrix

    def _factored_in_single(self, H: Array) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = self._scaled(H, np.float32, 0.0)
        self.factor, failed = lapack.spotrf(scaled, lower=1, clean=0, overwrite_a=1)
        return not failed and bool(np.square(np.diagonal(self.factor)).min() > _CLEAR)

    def _factor(self, H: Array) -> None:
        ridge, failed = _RIDGE, 1
        while failed:
            scaled = self._scaled(H, np.float64, ridge)
            self.factor, failed = lapack.dpotrf(scaled, lower=1, clean=0, overwrite_a=1)
            ridge *= 100.0

    def solve(self, right: Array) -> Array:
        """Return the inverse times each column."""
        if self.single:
            solved = lapack.spotrs(self.factor, (self.scale * right).astype(np.float32), lower=1)[0]
        else:
            solved = lapack.dpotrs(self.factor, self.scale * right, lower=1)[0]
        return np.asarray(self.scale * solved)

    def times(self, right: Array) -> Array:
        """Return the matrix times each column; 0 for features without a step."""
        inverse = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)
        multiply = blas.strmm if self.single else blas.dtrmm
        scaled = np.asarray(inverse * right, dtype=self.factor.dtype)
        half = multiply(1.0, self.factor, scaled, lower=1, trans_a=1)
        return np.asarray(inverse * multiply(1.0, self.factor, half, lower=1))
