r"""Class means and total scatter of the samples, as quick as matrix products go.

    w_k = Σ s_i,    μ_k = Σ s_i x_i / w_k,    S = Σ_i s_i (x_i − μ)(x_i − μ)ᵀ

Least squares corrects its solution with residuals of the data, so the sums may lose a few digits:
samples are shifted by one approximate mean only where their means are large, ``S`` is one symmetric
product over all classes, and float32 data may be multiplied in float32 (in stretches of a few
thousand rows, which are added in double precision). Sparse data are multiplied as they are.
Where sparse data have means that dwarf their spread, :mod:`separatrix.solvers.moments` does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.view import Array
from separatrix.solvers.moments import class_moments
from separatrix.solvers.regression import Regression

#: Mean of a feature, in units of its spread, from which the samples are shifted before a product.
_LARGE = 8.0
#: The same for sparse data, which are not shifted.
_HUGE = 1e4
#: Rows that tell whether a shift is needed.
_SAMPLE = 1000
#: Bytes of the rows that are multiplied at a time, and rows that are summed in single precision.
_PIECE_BYTES = 4 << 20
_STRETCH = 4096


class _Sums:
    """Sums of weighted products and of samples by class."""

    def __init__(self, d: int, n_classes: int) -> None:
        self.product = np.zeros((d, d))
        self.by_class = np.zeros((n_classes, d))

    def __iadd__(self, other: _Sums) -> _Sums:
        self.product += other.product
        self.by_class += other.by_class
        return self


def _shift(problem: Regression) -> Array | None:
    """Return an approximate mean of the samples, if it is large enough to matter."""
    head = problem.view.read(slice(0, min(_SAMPLE, problem.view.shape[0])))
    head = np.asarray(head, dtype=np.float64)
    mean = head.mean(axis=0)
    return mean if np.any(np.abs(mean) > _LARGE * head.std(axis=0)) else None


def _members(numbers: Array, weights: Array | None, n_classes: int, dtype: Any) -> Any:
    """Return the (weighted) indicator matrix of the classes, of shape (n_classes, rows)."""
    m = numbers.shape[0]
    s = np.ones(m, dtype=dtype) if weights is None else weights.astype(dtype)
    if n_classes == 1:
        return s[None]
    if n_classes <= 4:
        return np.where(numbers == np.arange(n_classes)[:, None], s, s.dtype.type(0))
    return sparse.csc_array((s, numbers, np.arange(m + 1)), shape=(n_classes, m))


def statistics(problem: Regression, single: bool) -> tuple[Array, Array, Array, Array]:
    """Return class weights, class means less the total mean, the total mean, and the scatter.

    Without an intercept nothing is centred, and the total mean is 0. Where there are far more classes
    than targets (sets of labels), all samples count as one class.

    Parameters
    ----------
    problem : Regression
        Samples, classes and weights.
    single : bool
        Whether products may be made in single precision.
    """
    p = problem
    n, d = p.view.shape
    grouped = p.targets.shape[0] <= p.columns + 1
    classes = p.classes if grouped else np.zeros(n, dtype=np.int8)
    weight = p.class_weight if grouped else np.array([p.total])
    K = weight.shape[0]
    if hasattr(p.view.read(slice(0, min(1, n))), "tocsr"):
        return _sparse_statistics(p, classes, weight)
    work = np.dtype(np.float32 if single else np.float64)
    shift = _shift(p)
    origin = np.zeros(d) if shift is None else shift.astype(work).astype(np.float64)

    def add(total: _Sums, rows: slice, block: Any) -> _Sums:
        numbers, s = classes[rows], None if p.weights is None else p.weights[rows]
        step = max(256, _PIECE_BYTES // (work.itemsize * max(1, d)))
        product, summed = (np.zeros((d, d), np.float32) if single else total.product), 0
        for begin in range(0, block.shape[0], step):
            piece = slice(begin, begin + step)
            Z = block[piece]
            Z = np.subtract(Z, origin, dtype=work, casting="same_kind") if shift is not None else Z
            Z = np.ascontiguousarray(Z, dtype=work)
            total.by_class += _members(numbers[piece], None if s is None else s[piece], K, work) @ Z
            if s is not None:
                Z = Z * np.sqrt(s[piece])[:, None].astype(work)
            # NumPy sees a matrix times itself and does half the work, and lets other threads run.
            product += Z.T @ Z
            summed += Z.shape[0]
            if single and summed >= _STRETCH:
                total.product += product
                product[:], summed = 0.0, 0
        if single:
            total.product += product
        return total

    sums = p.view.fold(lambda: _Sums(d, K), add, 8 * d * d)
    S = sums.product
    means = np.divide(sums.by_class, weight[:, None], out=np.zeros((K, d)), where=weight[:, None] > 0)
    if not p.fit_intercept:
        if shift is not None:
            total_mean = weight @ means / p.total
            moved = total_mean + 0.5 * origin
            S += p.total * (np.outer(origin, moved) + np.outer(moved, origin))
        return weight, means + origin, np.zeros(d), np.ascontiguousarray(S)
    centre = weight @ means / p.total
    S -= p.total * np.outer(centre, centre)
    return weight, means - centre, origin + centre, S


def _sparse_statistics(p: Regression, classes: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
    d, K = p.view.shape[1], weight.shape[0]

    def part(rows: slice, block: Any) -> Array:
        members = _members(classes[rows], None if p.weights is None else p.weights[rows], K, np.float64)
        return np.asarray((block.T @ (members.T.toarray() if sparse.issparse(members) else members.T)).T)

    sums = np.asarray(p.view.map_sum(part, 8 * K * d), dtype=np.float64)
    means = np.divide(sums, weight[:, None], out=np.zeros((K, d)), where=weight[:, None] > 0)
    S = p.view.gram(p.weights)
    if not p.fit_intercept:
        return weight, means, np.zeros(d), S
    centre = weight @ means / p.total
    raw = np.einsum("ii->i", S).copy()
    left = raw - p.total * np.square(centre)
    if np.any((left < raw / _HUGE**2) & (raw > 0)):
        moments = class_moments(p.view, classes, K, p.weights)
        centre = moments.total_mean
        means = (moments.mean - centre) + moments.rest
        means[weight == 0] = 0.0
        means -= weight @ means / p.total
        rows = np.sqrt(weight)[:, None] * means
        return weight, means, centre, moments.scatter + rows.T @ rows
    S -= p.total * np.outer(centre, centre)
    return weight, means - centre, centre, S
