"""What predictions are worth: plain counts and sums over rows, which can be added up block by block."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.files import Labels

_SMALLEST = float(np.finfo(np.float64).eps)


def confusion(truth: NDArray[Any], predicted: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
    """Count rows by true class (rows of the matrix) and predicted class (columns).

    Classes are numbers from 0; a true class of -1 (none that the model knows) is counted in a last row.
    """
    codes = np.where(truth < 0, n_classes, truth) * n_classes + predicted
    return np.bincount(codes, minlength=(n_classes + 1) * n_classes).reshape(n_classes + 1, n_classes)


def log_losses(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """Return the sum of −log p(true class); a class that the model does not know counts as p = 0."""
    chosen = np.where(truth < 0, 0.0, probabilities[np.arange(len(truth)), np.maximum(truth, 0)])
    return float(-np.sum(np.log(np.maximum(chosen, _SMALLEST))))


def summary(counts: NDArray[np.int64], log_loss: float | None) -> dict[str, Any]:
    """Return rows, accuracy, balanced accuracy and mean log-loss from the counts of `confusion`."""
    rows, known = int(counts.sum()), counts[:-1]
    per_class = known.sum(axis=1)
    recalls = np.diag(known)[per_class > 0] / per_class[per_class > 0]
    return {
        "rows": rows,
        "correct": int(np.trace(known)),
        "accuracy": float(np.trace(known) / rows) if rows else math.nan,
        "balanced_accuracy": float(recalls.mean()) if len(recalls) else math.nan,
        "log_loss": None if log_loss is None or not rows else log_loss / rows,
    }


def per_class(counts: NDArray[np.int64], classes: NDArray[Any]) -> list[dict[str, Any]]:
    """Return rows, predicted rows, precision, recall and F1 of every class."""
    table = []
    for number, label in enumerate(classes):
        found, rows = int(counts[number, number]), int(counts[number].sum())
        named = int(counts[:, number].sum())
        table.append(
            {
                "class": label,
                "rows": rows,
                "predicted": named,
                "correct": found,
                "precision": found / named if named else None,
                "recall": found / rows if rows else None,
                "f1": 2 * found / (rows + named) if rows + named else None,
            }
        )
    return table


def roc_auc(positive: NDArray[np.bool_], scores: NDArray[Any]) -> float | None:
    """Return the share of pairs (positive, negative) that the scores order rightly, ties counted half."""
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if n_positive == 0 or n_negative == 0:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # mean rank of equal scores, from 1
    total = float(ranks[inverse][positive].sum())
    return (total - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def match_labels(values: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of every label among the model's classes, −1 where there is none.

    Labels from a text file are texts; those of a model may be numbers: 1, 1.0 and "1" are then the same.
    """
    unique, inverse = _distinct(values)
    by_text = {str(label): number for number, label in enumerate(classes)}
    by_number = {float(label): n for n, label in enumerate(classes)} if classes.dtype.kind in "iufb" else {}
    found = [by_text.get(str(value), by_number.get(_number(value), -1)) for value in unique]
    return np.array(found, dtype=np.int64)[inverse] if len(found) else np.zeros(0, dtype=np.int64)


def _distinct(values: Any) -> tuple[list[Any], NDArray[Any]]:
    if isinstance(values, np.ndarray):
        unique, inverse = np.unique(values, return_inverse=True)
        return unique.tolist(), inverse
    if isinstance(values, Labels):
        return list(values.texts), values.codes
    encoded = values.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan  # equal to no class
