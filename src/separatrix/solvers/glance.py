"""A glance at a few rows of dense data: whether single precision will do for sums over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from separatrix.data.memory import view_of
from separatrix.data.products import NotFiniteError, add_products
from separatrix.data.threads import one_thread_for
from separatrix.data.view import Array, DataView

#: Rows for each feature that tell the condition, and variance below which float32 squares lose digits.
_TELLING, _LOST = 3, 1e-30


@dataclass(frozen=True, eq=False)
class Glance:
    """What a few rows tell.

    Attributes
    ----------
    condition : float
        Reciprocal condition of the correlations within classes, about; 0 where a feature does not vary, or so
        little that its squares are lost in single precision.
    largest_mean : float
        Largest mean of a feature in units of its spread.
    weight, means : ndarray of shape (K,) and (K, d)
        Weight of each class among these rows, and its mean, rounded to float32.
    """

    condition: float
    largest_mean: float
    weight: Array
    means: Array


def glance(view: DataView, classes: Array, n_classes: int, weights: Array | None) -> Glance:
    """Look at a few rows of a dense view.

    From ``m`` rows of ``d`` independent features a condition looks worse than it is, by about
    ``((1 − √(d/m))/(1 + √(d/m)))²`` (Marchenko and Pastur, 1967); that is taken out.
    """
    n, d = view.shape
    m = min(n, _TELLING * d)
    rows = np.arange(m) * n // m
    sample, numbers = view_of(view.take(rows)), classes[rows]
    s = None if weights is None else weights[rows]
    weight = np.bincount(numbers, s, minlength=n_classes).astype(np.float64)
    means = np.zeros((n_classes, d))
    one = None if n_classes == 1 else numbers
    add_products(sample.array, None, means, classes=one, weights=s)
    means /= np.where(weight > 0, weight, 1.0)[:, None]
    means = means.astype(np.float32).astype(np.float64)
    try:
        R, _ = sample.class_products(numbers, n_classes, s, means, precision="single")
    except NotFiniteError:
        return Glance(0.0, np.inf, weight, means)
    diagonal = R.diagonal().copy()
    total = weight.sum()
    if not np.all(diagonal > _LOST * total):
        return Glance(0.0, np.inf, weight, means)
    inverse = 1.0 / np.sqrt(diagonal)
    R *= inverse
    R *= inverse[:, None]
    norm = float(np.abs(R).sum(axis=0).max())
    with one_thread_for(d):
        factor, failed = lapack.dpotrf(R.T, lower=1, overwrite_a=1, clean=0)
        condition = 0.0 if failed else float(lapack.dpocon(factor, norm, uplo="L")[0])
    share = np.sqrt(min(d / m, 0.5))
    condition = min(condition * ((1.0 + share) / (1.0 - share)) ** 2, 1.0)
    return Glance(condition, float(np.abs(means * inverse).max() * np.sqrt(total)), weight, means)
