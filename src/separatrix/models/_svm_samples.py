"""Samples as kernels compare them: vectors, rows of a kernel matrix, texts, or anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    check_array,
    check_consistent_length,
)

from separatrix.data.memory import view_of
from separatrix.data.texts import TextView, holds_texts
from separatrix.data.view import Array
from separatrix.kernels import Kernel
from separatrix.models._validation import check_samples, check_texts, refuse_texts


def kind_of(kernel: Any) -> str:
    """Return what a ``kernel=`` argument compares: "vectors", "matrix", "texts" or "any"."""
    if isinstance(kernel, str):
        return "matrix" if kernel == "precomputed" else "vectors"
    return kernel.samples if isinstance(kernel, Kernel) else "any"


def fit_samples(model: Any, kernel: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return checked training samples as an array or list, as a source of rows, and ``y``."""
    if y is None and model.__sklearn_tags__().target_tags.required:
        raise ValueError(f"{type(model).__name__} requires y to be passed, but the target y is None.")
    kind = kind_of(kernel)
    if kind == "texts":
        X, y = check_texts(model, X, y)
        return X, TextView(X), y
    if kind == "any" and not _numeric(X):
        items = _items(X)
        for name in ("n_features_in_", "feature_names_in_"):
            model.__dict__.pop(name, None)
        if y is not None:
            y = np.asarray(y)
            check_consistent_length(items, y)
        return items, TextView(items), y
    if kind == "matrix" and sparse.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
    if kind == "vectors":
        refuse_texts(model, X, kernel)
    X, y = check_samples(model, X, y, reset=True)
    if kind == "matrix":
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix: "
                "for fit pass the kernel values of all pairs of training samples."
            )
    return X, view_of(X), y


def new_samples(model: Any, kernel: Any, X: Any) -> Any:
    """Return new samples, checked against those of the fit."""
    kind = kind_of(kernel)
    if kind == "texts":
        return check_texts(model, X)[0]
    if kind == "any" and "n_features_in_" not in model.__dict__:
        return _items(X)
    if kind == "matrix" and sparse.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
    if kind == "matrix":
        if hasattr(X, "columns"):
            _check_feature_names(model, X, reset=False)  # wrong names are told before values and width
        width, fitted = check_array(X, input_name="X", estimator=model).shape[1], model.shape_fit_[0]
        if width != fitted:
            raise ValueError(
                f"X has {width} features, but {type(model).__name__} is expecting {fitted} features as "
                f"input: X.shape[1] = {width} should be equal to {fitted}, the number of samples at training "
                "time. A precomputed matrix has one column for each training sample."
            )
    if kind == "vectors":
        refuse_texts(model, X, kernel)
    checked, _ = check_samples(model, X, reset=False)
    return checked


def checked_weights(X: Any, sample_weight: Any) -> Array | None:
    """Return the sample weights, negative ones (as in scikit-learn) as 0, or None where all are one."""
    if sample_weight is None:
        return None
    checked = _check_sample_weight(sample_weight, X, dtype=np.float64, allow_all_zero_weights=True)
    weights = np.maximum(checked, 0.0)
    if not weights.any():
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. Give at least one a positive weight."
        )
    return None if np.all(weights == 1.0) else np.asarray(weights)


def _numeric(X: Any) -> bool:
    """Return whether the samples are vectors of numbers."""
    if sparse.issparse(X):
        return True
    if holds_texts(X):
        return False
    try:
        array = np.asarray(X)
    except ValueError:  # ragged
        return False
    return array.ndim == 2 and array.dtype.kind in "fiub"


def _items(X: Any) -> Array:
    """Return samples of any kind as an array of objects."""
    given = X.tolist() if hasattr(X, "tolist") else list(X)
    items = np.empty(len(given), dtype=object)
    for number, item in enumerate(given):
        items[number] = item
    return items
