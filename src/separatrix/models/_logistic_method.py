"""Which method fits a logistic regression: by name, and by the shape of sparse data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data.memory import view_of
from separatrix.data.room import allowed
from separatrix.solvers._room import softmax_dual_bytes

if TYPE_CHECKING:
    from separatrix.models.logistic import LogisticRegression

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


def method_of(model: LogisticRegression, X: Any, n_classes: int, C: float, ratio: float) -> str:
    """Return the solver that fits the problem, or the one that was named if it can solve it."""
    method = "dual-coordinate" if model.dual else SOLVERS[model.solver]
    if model.dual and model.solver not in ("auto", "liblinear", "dual-coordinate"):
        raise ValueError(
            f"Solver {model.solver} supports only dual=False, got dual=True: choose solver='auto' for the "
            "dual."
        )
    if model.solver == "liblinear" and not np.isfinite(C):
        raise ValueError(
            "C=np.inf as well as penalty=None is not supported for the liblinear solver: choose "
            "solver='auto'."
        )
    if model.solver == "liblinear" and 0 < ratio < 1:
        raise ValueError(
            "Only 'saga' solver supports elasticnet penalty, got solver=liblinear. Choose solver='auto' "
            "or 'saga'."
        )
    if model.solver == "liblinear" and n_classes > 2:
        raise ValueError(
            "The 'liblinear' solver does not support multiclass classification (n_classes >= 3): choose "
            "solver='auto', or wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
        )
    sparse_penalty = ratio > 0 and np.isfinite(C)
    if sparse_penalty:
        if method in ("newton", "quasi-newton", "dual-coordinate") or model.solver == "sag":
            named = "with dual=True" if model.dual else model.solver
            raise ValueError(
                f"Solver {named} supports only 'l2' or None penalties, got l1_ratio={ratio:g}: choose "
                "solver='auto' or 'working-set' (scikit-learn's name: 'saga') for L1 and the elastic net."
            )
        return "working-set"
    if method == "working-set":
        raise ValueError("solver='working-set' needs an L1 part: set l1_ratio > 0, or choose solver='auto'.")
    apart = n_classes > 2 and model.multiclass == "ovr"
    if method == "dual-coordinate" and (apart or not np.isfinite(C)):
        raise ValueError(
            "the dual coordinate method needs a penalty (C < inf) and multiclass='joint': choose "
            "solver='auto'."
        )
    if method == "auto" and np.isfinite(C) and not apart and model.solver != "liblinear":
        if hasattr(X, "indptr") and _dual_is_quicker(X, n_classes, C) and _dual_has_room(X, n_classes):
            return "dual-coordinate"
    return method


def _dual_is_quicker(X: Any, n_classes: int, C: float) -> bool:
    """Return whether sparse data are better fitted in the dual."""
    n, d = X.shape
    wide = n_classes > 2 and d > _WIDE
    if not wide and (d < _DUAL_FEATURES or X.nnz > _DUAL_DENSITY * n * d):
        return False
    if n <= (d if n_classes > 2 else d / 3):
        return True
    stiff = C * float(np.square(X.data, dtype=np.float64).sum()) > _STIFF * n
    return bool(stiff and (wide or n <= d))


def _dual_has_room(X: Any, n_classes: int) -> bool:
    """Return whether a fit in the dual takes no more memory than is allowed."""
    return softmax_dual_bytes(view_of(X), 1 if n_classes == 2 else n_classes) <= allowed()
