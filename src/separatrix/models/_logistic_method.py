"""Which method fits a logistic regression: by name, and by the shape of sparse data."""

from __future__ import annotations

from typing import Any

import numpy as np

#: scikit-learn's names, and the method of ours that each selects.
SOLVERS = {
    "auto": "auto",
    "lbfgs": "quasi-newton",
    "newton-cg": "quasi-newton",
    "newton-cholesky": "newton",
    "liblinear": "auto",
    "sag": "auto",
    "saga": "auto",
    "quasi-newton": "quasi-newton",
    "newton": "newton",
    "dual-coordinate": "dual-coordinate",
    "working-set": "working-set",
}
#: Names of ours, which mean that method whatever the size of the data.
OWN = ("newton", "quasi-newton", "working-set", "dual-coordinate")
#: Fewest features and largest share of stored entries of sparse data that may be fitted in the dual. It
#: crawls where samples outnumber features; where C times the squared length of a row is large, steps on
#: all rows crawl, too, and with so many features and several classes more than the dual.
_DUAL_FEATURES, _DUAL_DENSITY, _STIFF, _WIDE = 400, 0.1, 30.0, 4096


def dual_is_quicker(X: Any, n_classes: int, C: float) -> bool:
    """Return whether sparse data are better fitted in the dual."""
    n, d = X.shape
    wide = n_classes > 2 and d > _WIDE
    if not wide and (d < _DUAL_FEATURES or X.nnz > _DUAL_DENSITY * n * d):
        return False
    if n <= (d if n_classes > 2 else d / 3):
        return True
    stiff = C * float(np.square(X.data, dtype=np.float64).sum()) > _STIFF * n
    return bool(stiff and (wide or n <= d))
