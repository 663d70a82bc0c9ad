"""Weights of samples and of classes: checked, multiplied, and what they leave of the classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from separatrix.data.view import Array
from separatrix.models._labels import shown


def sample_weights(
    X: Any,
    y: Array,
    numbers: Array,
    classes: Array,
    sample_weight: Any,
    class_weight: Any,
    *,
    by_weight: bool = False,
) -> Array | None:
    """Return the product of sample and class weights, or None where all are one.

    ``by_weight`` is that of :func:`class_weights`.
    """
    weights = checked_weights(X, sample_weight)
    if class_weight is not None:
        per_class = class_weights(y, numbers, classes, weights if by_weight else None, class_weight)
        weights = per_class[numbers] * (1.0 if weights is None else weights)
    return None if weights is None or np.all(weights == 1.0) else np.ascontiguousarray(weights)


def check_presentations(weights: Array | None, max_time: float | None, *, dear: bool) -> None:
    """Refuse weights that ask for presentations without end, unless time ends them.

    A perceptron presents a row as often as its weight says, or until it is right; ``dear`` tells that it
    does not end there, or that each time costs a call of Python.
    """
    most = 1e6 if dear else 1e9
    if max_time is None and weights is not None and float(largest := weights.max()) > most:
        raise ValueError(
            f"row {int(weights.argmax())} has the weight {largest:g}, and a perceptron presents a row as "
            f"often as its weight says: at most {most:,.0f} times without max_time. Divide sample_weight or "
            "class_weight by a number that makes the smallest weights about 1."
        )


def class_weights(
    y: Array, numbers: Array, classes: Array, weights: Array | None, class_weight: Any
) -> Array:
    """Return the weight of each class.

    With ``weights``, "balanced" gives the classes equal totals of them; without, equal numbers of samples:
    scikit-learn has the one in some models (logistic regression, LinearSVC), the other in others.
    """
    if weights is None or not isinstance(class_weight, str):
        _refuse_weights_of_no_meaning(class_weight)
        return np.asarray(compute_class_weight(class_weight, classes=classes, y=y))
    totals = np.bincount(numbers, weights=weights, minlength=len(classes))
    return np.asarray(totals.sum() / np.count_nonzero(totals) / np.where(totals > 0, totals, 1.0))


def _refuse_weights_of_no_meaning(class_weight: Any) -> None:
    """Refuse weights of classes that are negative, not finite or no numbers."""
    for label, weight in class_weight.items() if isinstance(class_weight, dict) else ():
        try:
            meant = 0.0 <= float(weight) < np.inf
        except (TypeError, ValueError):
            meant = False
        if not meant:
            raise ValueError(
                f"class_weight gives class {shown(label)} the weight {weight!r}: weights of classes must be "
                "finite numbers, positive, or 0 to leave a class out."
            )


def checked_weights(X: Any, sample_weight: Any, *, may_all_be_zero: bool = False) -> Array | None:
    """Return the given sample weights as numbers that are not negative, or None where all are one."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(
        sample_weight,
        X,
        dtype=np.float64,
        ensure_non_negative=True,
        allow_all_zero_weights=may_all_be_zero,
    )
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not (total == 0.0 or np.finfo(np.float64).tiny <= total < np.inf):
        raise ValueError(
            f"sample_weight sums to {total:g}, outside the range of floating point numbers: multiply all "
            "weights by a number that makes the largest about 1."
        )
    return None if np.all(weights == 1.0) else np.ascontiguousarray(weights)


def refuse_empty_classes(
    classes: Array, numbers: Array, weights: Array | None, given: Any = None, class_weight: Any = None
) -> Array | None:
    """Refuse weights that leave a class without any sample.

    Parameters
    ----------
    classes, numbers : ndarray
        The classes, and the number of each sample's class.
    weights : ndarray or None
        Products of sample and class weights.
    given : array-like or None
        The sample weights as they were given. An array of integers counts how often each sample was drawn,
        as scikit-learn's ``BaggingClassifier`` tells it: a class that was not drawn is no mistake.
    class_weight : dict, str or None
        The class weights as they were given: a class whose weight is 0 there is left out as asked.

    Returns
    -------
    ndarray of bool of shape (n_classes,) or None
        Which classes were drawn, if not all of them were.
    """
    if weights is None:
        return None
    drawn: Array = np.bincount(numbers, weights=weights, minlength=len(classes)) > 0
    if drawn.all():
        return None
    asked = class_weight if isinstance(class_weight, dict) else {}
    missing = ~drawn
    if drawn.any():  # else no class is left
        missing &= np.array([asked.get(label) != 0 for label in classes])
    if not missing.any():
        return drawn
    names = ", ".join(shown(label) for label in classes[missing])
    remedy = "give it a positive weight, or leave its samples out"
    counts = isinstance(given, np.ndarray) and given.dtype.kind in "iu"
    if not counts or given[missing[numbers]].any():
        raise ValueError(
            f"all samples of class {names} have weight 0, so nothing can be learnt of it: {remedy}."
        )
    warnings.warn(
        f"no sample of class {names} was drawn (all its counts in sample_weight are 0): the model is learnt "
        f"without it. If that is not meant, {remedy}.",
        stacklevel=5,
    )
    return drawn


def drawn_only(drawn: Array, classes: Array, numbers: Array) -> tuple[Array, Array]:
    """Return the classes that were drawn, and numbers among them; samples of others, of weight 0, get 0."""
    if np.count_nonzero(drawn) < 2:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class: give samples of at "
            "least two classes a positive weight."
        )
    places = np.where(drawn, np.cumsum(drawn) - 1, 0)
    return classes[drawn], places[numbers].astype(np.int32)
