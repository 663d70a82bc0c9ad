"""Labels of classes: checked, numbered, and told in messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from separatrix.data.view import Array

_LARGEST_LABEL = 1 << 62


def shown(label: Any) -> str:
    """Return a label as messages name it."""
    return repr(label.item() if hasattr(label, "item") else label)


def check_labels(y: Array) -> None:
    """Refuse targets that are no classes, or labels that have no order."""
    try:
        check_classification_targets(y)
    except (TypeError, ValueError) as error:
        objects = y.dtype == object
        if objects and (told := missing_label(y)):
            raise ValueError(f"Input y contains missing labels. {told}") from None
        kinds = sorted({type(label).__name__ for label in y.ravel()}) if objects else []
        if len(kinds) < 2 or not isinstance(error, TypeError):
            raise
        raise TypeError(
            f"y holds labels that cannot be ordered (of types {', '.join(kinds)}): let all be text or all be "
            "numbers, for example with y.astype(str)."
        ) from None


def missing_label(y: Any) -> str | None:
    """Name the first label that is missing (NaN, None, pandas' NA), and what to do about it."""
    labels = np.asarray(y, dtype=object).ravel()
    for row, label in enumerate(labels):
        if label is None or type(label).__name__ in ("NAType", "NaTType") or _is_nan(label):
            return (
                f"The first is {label} in row {row}: leave out samples without a target, for example with "
                "known = pandas.notna(y) and fit(X[known], y[known])."
            )
    return None


def refuse_holes(y: Any) -> None:
    """Refuse a list of texts in which labels are missing: as an array NaN would become the text "nan"."""
    if isinstance(y, (list, tuple)) and any(isinstance(label, str) for label in y):
        if told := missing_label(y):
            raise ValueError(f"Input y contains missing labels. {told}")


def _is_nan(label: Any) -> bool:
    return isinstance(label, (float, np.floating)) and bool(np.isnan(label))


def _close_integers(y: Array) -> tuple[Array, Array] | None:
    """Return the sorted classes of integers that lie close together, by a table instead of a sort."""
    low, high = int(y.min()), int(y.max())
    if high - low > 2 * y.shape[0] or high > _LARGEST_LABEL:
        return None
    numbers = y.astype(np.intp)
    numbers -= low
    counts = np.bincount(numbers)
    present = counts.nonzero()[0]
    if present.size < counts.size:
        numbers = ((counts > 0).cumsum() - 1)[numbers]
    return (present + low).astype(y.dtype), numbers.astype(np.int32)


def encode_labels(estimator: Any, y: Array, *, fewest: int = 2) -> tuple[Array, Array]:
    """Return the sorted classes and the number of each label's class; fewer classes are refused."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    if y.ndim != 1 or y.dtype.kind not in "biuU":  # one column of these is always a classification target
        check_labels(y)
    integers = y.ndim == 1 and y.size > 0 and y.dtype.kind in "iu"
    coded = _close_integers(y) if integers else None
    classes, numbers = np.unique(y, return_inverse=True) if coded is None else coded
    if classes.shape[0] < fewest:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains only one "
            f"class: {shown(classes[0])}. The number of classes has to be greater than one: check y."
        )
    return classes, numbers.astype(np.int32, copy=False)


def number_labels(classes: Array, y: Array) -> Array:
    """Return the number of each label's class among known classes; others are refused by name."""
    if y is None:
        raise ValueError("partial_fit requires y to be passed, but the target y is None.")
    plain = y.ndim == 1 and y.dtype.kind in "biufU"
    if not plain:
        check_labels(y)
    numbers = np.searchsorted(classes, y)
    known = classes[np.minimum(numbers, classes.shape[0] - 1)] == y
    if not np.all(known):
        if plain:  # numbers that are no classes at all are refused as such
            check_labels(y)
        stranger = y[np.flatnonzero(~known)[0]]
        raise ValueError(
            f"y holds the label {shown(stranger)}, which is not among the classes "
            f"{', '.join(map(shown, classes[:20]))}. Name all classes in the first call of partial_fit "
            "(classes=...)."
        )
    return numbers.astype(np.int32)
