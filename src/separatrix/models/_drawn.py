"""Classes not drawn by a resample, or of weight 0, in a logistic model that must score them all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from separatrix.certificate import Certificate
from separatrix.data.view import Array

#: What is taken over from the model of the classes that were drawn.
_RECORD = ("coef_", "intercept_", "certificate_", "history_", "n_iter_", "separation_")


def fit_drawn(
    model: Any, X: Any, y: Array, classes: Array, drawn: Array, rows: Array, sample_weight: Any
) -> None:
    """Fit ``model`` to the samples that were drawn (``rows``), and let it score all ``classes``.

    The intercept of a class without samples would fall for ever. Its score is the mean of the others' less
    ``ln(n/tol)``: never the largest, whatever the sample, and of probability ``tol/n`` at most.
    """
    if drawn.sum() > 1:
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        part = clone(model).set_params(warm_start=False).fit(X[rows], y[rows], weights)
        for name in _RECORD:
            setattr(model, name, getattr(part, name))
    else:
        dtype = X.dtype if X.dtype.kind == "f" else np.float64
        model.coef_, model.intercept_ = np.zeros((1, X.shape[1]), dtype), np.zeros(1, dtype)
        model.certificate_ = Certificate(
            status="converged", message=f"only class {classes[drawn][0]} was drawn, and it is always chosen"
        )
        model.history_, model.separation_, model.n_iter_ = [], None, np.zeros(1, dtype=np.int32)
    coef, intercept = model.coef_, model.intercept_
    depth = np.log(rows.size / max(float(model.tol), float(np.finfo(coef.dtype).eps)))
    model.classes_, model.multiclass_ = classes, "ovr" if len(classes) == 2 else model.multiclass
    if len(classes) == 2:
        model.intercept_ = np.where(drawn[1:], depth, -depth).astype(coef.dtype)
        return
    if drawn.sum() == 2:  # one row stands for the difference of two
        half = 0.5 if model.multiclass == "joint" else 1.0
        coef = np.concatenate([-half * coef, half * coef])
        intercept = np.concatenate([-half * intercept, half * intercept])
    model.coef_ = np.repeat(coef.mean(axis=0, keepdims=True), len(classes), axis=0)
    model.intercept_ = np.full(len(classes), intercept.mean() - depth, dtype=coef.dtype)
    model.coef_[drawn], model.intercept_[drawn] = coef, intercept
