"""Kernels that compare two samples feature by feature: Laplacian and ANOVA."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from separatrix.data.threads import in_threads
from separatrix.kernels._base import Rows, VectorKernel, positive, whole

# Pairs of rows in a tile of at most this many rows each way, and numbers of a tile's input.
_SIDE = 128
_INPUT_NUMBERS = 1 << 19
# Numbers that the sums over stored entries of sparse rows hold at a time.
_SPARSE_NUMBERS = 1 << 18

Tile = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
Entries = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Laplacian(VectorKernel):
    """``k(x, z) = exp(-gamma ||x - z||_1)``, the sum of absolute differences in the exponent.

    Its boundary follows single features more sharply than that of `RBF`, and outliers pull less. Positive
    semidefinite in any dimension.

    Parameters
    ----------
    gamma : float, default=1.0
        Inverse width, positive.

    Examples
    --------
    >>> from separatrix.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, -1.0], [0.0, 0.0]]).round(4)
    array([[0.3679, 1.    ]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))

    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        if sparse.issparse(A) or sparse.issparse(B):
            sums = _sparse_sums(A, B, lambda x, z: np.abs(x - z))
            return self._of_distances(sums).astype(_precision(A, B), copy=False)
        return _tiles(A, B, lambda a, b: self._of_distances(cdist(a, b, "cityblock")))

    def _of_distances(self, distances: NDArray[Any]) -> NDArray[Any]:
        np.maximum(distances, 0, out=distances)
        distances *= -self.gamma
        np.exp(distances, out=distances)
        return distances

    def _diagonal(self, A: Rows) -> NDArray[Any]:
        return np.ones(A.shape[0], dtype=A.dtype)


@dataclass(frozen=True)
class AnovaRBF(VectorKernel):
    """``k(x, z) = (sum_j exp(-sigma (x_j - z_j)^2))^degree``: a Gaussian kernel for each feature, added up.

    With degree 1 the boundary is a sum of functions of one feature each; with degree 2 of pairs, and so on.
    Positive semidefinite in any dimension. Values grow to ``d^degree`` for ``d`` features.

    Parameters
    ----------
    sigma : float, default=1.0
        Inverse squared width along each feature, positive.
    degree : int, default=1
        The power, at least 1.

    Examples
    --------
    >>> from separatrix.kernels import AnovaRBF
    >>> AnovaRBF(sigma=1.0, degree=2)([[0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]).round(4)
    array([[1.8711, 4.    ]])
    """

    sigma: float = 1.0
    degree: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        object.__setattr__(self, "degree", whole(self.degree, "degree", least=1))

    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        self._check_size(A)
        if sparse.issparse(A) or sparse.issparse(B):
            # Features that neither row stores add 1 each.
            sums = _sparse_sums(A, B, lambda x, z: self._similar(x - z) - 1.0)
            sums += A.shape[1]
            sums **= self.degree
            return sums.astype(_precision(A, B), copy=False)
        return _tiles(A, B, self._tile)

    def _tile(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        total = np.zeros((a.shape[0], b.shape[0]))
        for x, z in zip(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), strict=True):
            total += self._similar(x[:, None] - z)
        total **= self.degree
        return total

    def _similar(self, difference: NDArray[Any]) -> NDArray[Any]:
        values: NDArray[Any] = difference * difference
        values *= -self.sigma
        np.exp(values, out=values)
        return values

    def _diagonal(self, A: Rows) -> NDArray[Any]:
        self._check_size(A)
        return np.full(A.shape[0], float(A.shape[1]) ** self.degree, dtype=A.dtype)

    def _check_size(self, A: Rows) -> None:
        largest = self.degree * np.log2(max(1, A.shape[1]))
        if largest >= np.finfo(A.dtype).maxexp:
            raise ValueError(
                f"{self!r} reaches {A.shape[1]}^{self.degree} on {A.shape[1]} features, too large for "
                f"{A.dtype}: choose a smaller degree"
            )


def _precision(A: Rows, B: Rows | None) -> np.dtype[Any]:
    return np.result_type(A.dtype, A.dtype if B is None else B.dtype)


def _tiles(A: NDArray[Any], B: NDArray[Any] | None, tile: Tile) -> NDArray[Any]:
    """Apply `tile` to all pairs of rows, a few rows each way at a time, in several threads."""
    other = A if B is None else B
    out = np.empty((A.shape[0], other.shape[0]), dtype=_precision(A, B))
    fit = max(1, _INPUT_NUMBERS // max(1, A.shape[1]))
    side = min(_SIDE, fit)
    # Few rows make up for it by more columns. Of a symmetric matrix one half is enough.
    width = side if B is None else min(fit, max(side, _SIDE * _SIDE // max(1, out.shape[0])))
    tiles = [
        (slice(i, i + side), slice(j, j + width))
        for i in range(0, out.shape[0], side)
        for j in range(i if B is None else 0, out.shape[1], width)
    ]

    def write(number: int) -> None:
        rows, columns = tiles[number]
        values = tile(A[rows], other[columns])
        out[rows, columns] = values
        if B is None and rows != columns:
            out[columns, rows] = values.T

    for _ in in_threads(write, len(tiles)):
        pass
    return out


def _sparse_sums(A: Rows, B: Rows | None, entry: Entries) -> NDArray[Any]:
    """``sum_j g(x_j, z_j)`` over all pairs of rows in float64, for a function with ``g(0, 0) = 0``.

    Only features that a row stores count: ``g(x_j, z_j)`` over those of z, and ``g(x_j, 0)`` over those of x
    that z lacks, which is a difference of two sums over the same numbers in the same order where z lacks
    none. Equal rows therefore lose no digit.
    """
    if B is not None and not sparse.issparse(B):
        return np.ascontiguousarray(_sparse_sums(B, A, entry).T)
    rows = A if not sparse.issparse(A) else _canonical(A)
    stored = rows if B is None else _canonical(B)
    indptr = stored.indptr
    out = np.empty((rows.shape[0], stored.shape[0]))
    alone = _alone(rows, entry)
    step = max(1, _SPARSE_NUMBERS // max(1, rows.shape[1]))
    # Neighbouring rows of B with few enough entries together, or one row.
    ends, marks = [0], _SPARSE_NUMBERS // step
    while ends[-1] < stored.shape[0]:
        full = int(np.searchsorted(indptr, indptr[ends[-1]] + marks, side="right")) - 1
        ends.append(min(stored.shape[0], max(ends[-1] + 1, full)))
    tasks = [
        (begin, first, last)
        for begin in range(0, out.shape[0], step)
        for first, last in pairwise(ends)
        if B is not None or last > begin
    ]

    def write(number: int) -> None:
        begin, first, last = tasks[number]
        block = rows[begin : begin + step]
        dense = np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
        entries = slice(indptr[first], indptr[last])
        x, z = dense[:, stored.indices[entries]], stored.data[entries].astype(np.float64)
        starts = indptr[first : last + 1] - indptr[first]
        sums = _row_sums(entry(x, z), starts)
        sums += alone[begin : begin + step, None] - _row_sums(entry(x, np.zeros(1)), starts)
        out[begin : begin + step, first:last] = sums

    for _ in in_threads(write, len(tasks)):
        pass
    if B is None:
        for i in range(out.shape[0] - 1):
            out[i + 1 :, i] = out[i, i + 1 :]
    return out


def _canonical(rows: Rows) -> Rows:
    """CSR rows in which each feature is stored once, in rising order; a copy only if they are not so."""
    rows = sparse.csr_array(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _alone(rows: Rows, entry: Entries) -> NDArray[Any]:
    """``sum_j g(x_j, 0)`` of each row, over the stored features."""
    if sparse.issparse(rows):
        values = entry(rows.data.astype(np.float64)[None, :], np.zeros(1))
        return _row_sums(values, rows.indptr).reshape(-1)
    return np.array([entry(np.asarray(x, dtype=np.float64), np.zeros(1)).sum() for x in rows])


def _row_sums(values: NDArray[Any], starts: NDArray[Any]) -> NDArray[Any]:
    """Add up the segments ``starts[i]:starts[i + 1]`` of each row of `values`."""
    sums = np.zeros((values.shape[0], starts.shape[0] - 1))
    filled = starts[1:] > starts[:-1]
    if filled.any():
        sums[:, filled] = np.add.reduceat(values, starts[:-1][filled], axis=1)
    return sums
