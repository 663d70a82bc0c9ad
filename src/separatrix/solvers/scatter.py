r"""Class means and total scatter of the samples, as quick as matrix products go.

    w_k = Σ s_i,    μ_k = Σ s_i x_i / w_k,    S = Σ_i s_i (x_i − μ)(x_i − μ)ᵀ

Least squares corrects its solution with residuals of the data, so the sums may lose a few digits:
samples are shifted by one approximate mean only where their means are large, ``S`` is one symmetric
product over all classes, and float32 data may be multiplied in float32 (in stretches of a few
hundred rows, which are added in double precision), or any dense data with four digits. Whole numbers of
some fraction have exact products. Sparse data are multiplied as they are.
Where sparse data have means that dwarf their spread, :mod:`separatrix.solvers.moments` does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.products import Precision
from separatrix.data.view import Array, padding
from separatrix.solvers._coordinate_rows import row_arguments
from separatrix.solvers.moments import class_moments
from separatrix.solvers.regression import PIECE_BYTES, Regression, row_pieces

#: Mean of a feature, in units of its spread, from which the samples are shifted before a product.
_LARGE = 8.0
#: The same for sparse data, which are not shifted.
_HUGE = 1e4
#: Rows that tell whether a shift is needed.
_SAMPLE = 1000


def _shift(problem: Regression) -> Array | None:
    """Return an approximate mean of the samples, if it is large enough to matter."""
    head = problem.view.read(slice(0, min(_SAMPLE, problem.view.shape[0])))
    with np.errstate(over="ignore", invalid="ignore"):  # the sums will tell
        mean = head.mean(axis=0, dtype=np.float64)
        large = np.abs(mean) > _LARGE * head.std(axis=0, dtype=np.float64)
    return mean if np.any(large) else None


def statistics(
    problem: Regression, precision: Precision = "double", steps: int = 1
) -> tuple[Array, Array, Array, Array]:
    """Return class weights, class means less the total mean, the total mean, and the scatter.

    Without an intercept nothing is centred, and the total mean is 0. Where there are far more classes
    than targets (sets of labels), all samples count as one class. Dense samples that are not finite, or
    whose squares are not, raise NotFiniteError.

    Parameters
    ----------
    problem : Regression
        Samples, classes and weights.
    precision : {"double", "single", "coarse", "whole"}
        How products of dense samples are made (:func:`separatrix.data.products.add_products`).
    steps : int
        Where they are "whole": multiples of ``1/steps``.
    """
    p = problem
    n, d = p.view.shape
    grouped = p.targets.shape[0] <= p.columns + 1
    classes = p.classes if grouped else np.zeros(n, dtype=np.int8)
    weight = p.class_weight if grouped else np.array([p.total])
    K = weight.shape[0]
    if hasattr(p.view.read(slice(0, min(1, n))), "tocsr"):
        return _sparse_statistics(p, classes, weight)
    shift = _shift(p)
    # Rounded as the samples are from which it is subtracted.
    rounded = np.float64 if precision == "double" else np.float32 if precision == "single" else p.view.dtype
    origin = np.zeros(d) if shift is None else shift.astype(rounded)
    origin = origin.astype(np.float64, copy=False)
    if precision == "whole":
        origin = np.rint(steps * origin)

    far = None if shift is None else origin
    S, sums = p.view.class_products(classes, K, p.weights, far, precision=precision, steps=steps)
    if steps != 1:
        S /= steps**2
        sums /= steps
        origin /= steps
    means = np.divide(sums, weight[:, None], out=np.zeros((K, d)), where=weight[:, None] > 0)
    if not p.fit_intercept:
        if shift is not None:
            total_mean = weight @ means / p.total
            moved = total_mean + 0.5 * origin
            S += p.total * (np.outer(origin, moved) + np.outer(moved, origin))
        return weight, means + origin, np.zeros(d), S
    centre = weight @ means / p.total
    for rows in row_pieces(S, PIECE_BYTES):
        S[rows] -= p.total * np.outer(centre[rows], centre)
    return weight, means - centre, origin + centre, S


def _sparse_statistics(p: Regression, classes: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
    d, K = p.view.shape[1], weight.shape[0]

    def add(total: Array, rows: slice, block: Any) -> Array:
        members = np.zeros((block.shape[0], padding(K)))
        members[np.arange(block.shape[0]), classes[rows]] = 1.0 if p.weights is None else p.weights[rows]
        _hot.add_padded_transposed(*row_arguments(block), members, 0, members.shape[1], total)
        return total

    total = p.view.fold(lambda: np.zeros((d, padding(K))), add, 8 * padding(K) * d)
    sums = np.ascontiguousarray(total[:, :K].T)
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
