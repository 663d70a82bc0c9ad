r"""Wide data in as many coordinates as there are samples.

With an L2 penalty the best weights lie in the span of the samples, ``W = Σ_i a_i (x_i − x̄)ᵀ``. A factor
``Z Zᵀ`` of the Gram matrix of the centred samples gives every sample a row ``z_i`` of at most n features
with the same inner products: the problem on Z with weights V has the same values, the same norms and the
same gaps as the one on X, and its steps cost n² instead of n d. ``Z`` is Cholesky's factor with pivots, so
that samples which depend on others add no coordinate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from separatrix.data.view import Array, DataView

#: Features whose products are summed in the precision of the products.
_STRETCH = 1024
#: A sample adds a coordinate if what is left of it beside the others is this many times √n rounding errors.
_LEFT = 16.0


class SampleCoordinates:
    """Coordinates of few samples of many features.

    Parameters
    ----------
    view : DataView
        Dense samples in memory.
    mean : ndarray of shape (n_features,)
        ``x̄``.
    single : bool
        Whether products may be formed in single precision.

    Attributes
    ----------
    rows : ndarray of shape (n, rank)
        The samples' coordinates, in double precision.

    Examples
    --------
    >>> from separatrix.data.memory import view_of
    >>> X = np.array([[1.0, 2.0, 0.0, 2.0], [0.0, 3.0, 4.0, 0.0], [2.0, 4.0, 0.0, 4.0]])
    >>> samples = SampleCoordinates(view_of(X), np.zeros(4))
    >>> samples.rows.shape, np.round(samples.rows @ samples.rows.T, 9).tolist() == (X @ X.T).tolist()
    ((3, 2), True)
    """

    def __init__(self, view: DataView, mean: Array, single: bool = False) -> None:
        self.view, self.mean = view, mean
        # Steps in the features judge what comes of single precision.
        self.dtype: Any = np.float32 if single else np.float64
        gram = self._gram()
        n = gram.shape[0]
        # Products are rounded in proportion to the lengths of both samples: at length 1 all err alike.
        lengths = np.sqrt(np.diag(gram))
        inverse = np.divide(1.0, lengths, out=np.zeros(n), where=lengths > 0)
        gram *= inverse * inverse[:, None]
        least = _LEFT * np.sqrt(n) * float(np.finfo(self.dtype).eps)
        factor, pivots, rank, _ = linalg.lapack.dpstrf(gram, lower=1, tol=least, overwrite_a=1)
        rank = rank if lengths.any() else 0
        self.pivots = pivots[:rank] - 1
        self.rows = np.zeros((n, rank))
        self.rows[pivots - 1] = np.tril(factor)[:, :rank]
        self.rows *= lengths[:, None]

    def _gram(self) -> Array:
        """Return the Gram matrix of the centred samples."""
        n, d = self.view.shape
        X = self.view.read(slice(0, n))
        near = self.mean.astype(X.dtype)
        total = np.zeros((n, n))
        centred = np.empty((n, min(d, _STRETCH)), dtype=self.dtype)
        for begin in range(0, d, _STRETCH):
            features = slice(begin, min(begin + _STRETCH, d))
            piece = centred[:, : features.stop - begin]
            np.subtract(X[:, features], near[features], out=piece, casting="same_kind")
            total += piece @ piece.T
        return total

    def weights(self, coef: Array) -> Array:
        """Return ``W``, of shape (columns, features), that scores the samples as these weights ``V`` do."""
        A = np.zeros((self.view.shape[0], coef.shape[0]))
        A[self.pivots] = linalg.solve_triangular(self.rows[self.pivots], coef.T, trans="T", lower=True)
        products = self.view.transposed(A.astype(self.dtype, copy=False))
        return np.asarray(products.T - np.outer(A.sum(axis=0), self.mean))

    def coordinates(self, coef: Array) -> Array:
        """Return ``V`` that scores the samples as these weights ``W`` do."""
        scores = (self.view.scores(coef) - coef @ self.mean)[self.pivots]
        return np.asarray(linalg.solve_triangular(self.rows[self.pivots], scores, lower=True).T)
