"""Samples as kernels compare them: vectors, rows of a kernel matrix, texts, or anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.kernels import Kernel, check_symmetric
from separatrix.models._validation import check_samples


class Items:
    """Samples that are not vectors, in a list.

    Examples
    --------
    >>> import numpy as np
    >>> Items(["a", "b", "c"]).take(np.array([2, 0])).tolist()
    ['c', 'a']
    """

    sparse = False

    def __init__(self, items: Any) -> None:
        self.items = np.empty(len(items), dtype=object)
        for number, item in enumerate(items):
            self.items[number] = item
        self.shape = (len(items),)

    def take(self, rows: Array) -> Array:
        """Return the samples of these numbers."""
        return np.asarray(self.items[rows])


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
    if kind == "texts" or (kind == "any" and not _numeric(X)):
        if y is not None:
            check_consistent_length(X, y)
        if kind == "texts":
            _check_texts(X, kernel)
        items = Items(_listed(X))
        for name in ("n_features_in_", "feature_names_in_"):
            model.__dict__.pop(name, None)
        return items.items, items, None if y is None else np.asarray(y)
    if kind == "matrix":
        if sparse.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
        X, y = check_samples(model, X, y, reset=True)
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix: for "
                "fit pass the kernel values of all pairs of training samples."
            )
        check_symmetric(X if X.dtype.kind == "f" else X.astype(np.float64))
    else:
        X, y = check_samples(model, X, y, reset=True)
    return X, view_of(X), y


def new_samples(model: Any, kernel: Any, X: Any) -> Any:
    """Return new samples, checked against those of the fit."""
    kind = kind_of(kernel)
    if kind == "texts" or (kind == "any" and not hasattr(model, "n_features_in_")):
        if kind == "texts":
            _check_texts(X, kernel)
        return Items(_listed(X)).items
    if kind == "matrix" and sparse.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
    if kind == "matrix" and getattr(X, "ndim", 0) == 2 and X.shape[1] != model.shape_fit_[0]:
        raise ValueError(
            f"X.shape[1] = {X.shape[1]} should be equal to {model.shape_fit_[0]}, the number of samples at "
            "training time: a precomputed matrix has one column for each training sample."
        )
    checked, _ = check_samples(model, X, reset=False)
    return checked


def checked_weights(X: Any, sample_weight: Any) -> Array | None:
    """Return the sample weights, negative ones (as in scikit-learn) taken for 0, or None where all are one."""
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
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    if isinstance(first, str | bytes):
        return False
    try:
        array = np.asarray(X)
    except ValueError:  # ragged
        return False
    return array.ndim == 2 and array.dtype.kind in "fiub"


def _listed(X: Any) -> Any:
    return X.tolist() if hasattr(X, "tolist") else list(X)


def _check_texts(X: Any, kernel: Any) -> None:
    shape = getattr(X, "shape", None)
    if sparse.issparse(X) or (shape is not None and len(shape) != 1):
        raise TypeError(
            f"{kernel!r} compares texts, but X is a matrix of shape {shape}: pass a list of str, or choose a "
            "kernel on vectors, for example kernel='rbf'."
        )
    for number, item in enumerate(X):
        if not isinstance(item, str):
            raise TypeError(
                f"{kernel!r} compares texts, but sample {number} is {item!r}: pass a list of str, or choose a "
                "kernel on vectors, for example kernel='rbf'."
            )
