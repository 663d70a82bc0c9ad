"""From neighbours and pairs of classes to decisions: weights, votes of classes, means of targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.view import Array

#: Numbers that are summed at a time.
_NUMBERS = 1 << 20

Weighting = str | Callable[[Array], Any] | None


def neighbor_weights(distance: Array, weights: Weighting) -> Array | None:
    """Return the weight of each neighbour, or None where all count the same.

    Parameters
    ----------
    distance : ndarray of shape (queries, k)
        Distances.
    weights : {"uniform", "distance"}, callable or None
        "distance" is ``1/distance``; neighbours at distance 0, where there are any, then count alone.

    Examples
    --------
    >>> import numpy as np
    >>> neighbor_weights(np.array([[1.0, 2.0], [0.0, 2.0]]), "distance").tolist()
    [[1.0, 0.5], [1.0, 0.0]]
    """
    if weights is None or (isinstance(weights, str) and weights == "uniform"):
        return None
    if callable(weights):
        found = np.asarray(weights(distance))
        if found.shape != distance.shape:
            raise ValueError(
                f"weights returned shape {found.shape} for distances of shape {distance.shape}; it must "
                "return one weight for each distance."
            )
        return found
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1.0 / distance
    infinite = np.isinf(inverse)
    alone = infinite.any(axis=1)
    inverse[alone] = infinite[alone]
    return np.asarray(inverse)


def refuse_empty_votes(weights: Array | None) -> None:
    """Refuse weights that leave a query without any vote."""
    if weights is not None and not np.all(np.any(weights != 0, axis=1)):
        row = int(np.flatnonzero(~np.any(weights != 0, axis=1))[0])
        raise ValueError(
            "All neighbors of some sample is getting zero weights. Please modify 'weights' to avoid this "
            f"case if you are using a user-defined function. The first such sample is row {row}."
        )


def votes(labels: Array, weights: Array | None, n_classes: int) -> Array:
    """Return the sum of the weights of each class among the neighbours, of shape (queries, classes).

    Parameters
    ----------
    labels : ndarray of shape (queries, k)
        The classes' numbers.
    weights : ndarray of shape (queries, k) or None
        Weights of the neighbours.
    n_classes : int
        Number of classes.
    """
    cells = labels + np.arange(len(labels))[:, None] * n_classes
    flat = None if weights is None else np.ravel(weights)
    counts = np.bincount(cells.ravel(), flat, minlength=len(labels) * n_classes)
    return counts.reshape(len(labels), n_classes).astype(np.float64, copy=False)


def elected(labels: Array, weights: Array | None, n_classes: int) -> Array:
    """Return the class with the most votes for each query; of equals the first."""
    winner = np.empty(len(labels), dtype=np.int64)
    step = max(1, _NUMBERS // n_classes)
    for begin in range(0, len(labels), step):
        rows = slice(begin, begin + step)
        part = votes(labels[rows], None if weights is None else weights[rows], n_classes)
        winner[rows] = part.argmax(axis=1)
    return winner


def means(targets: Array, index: Array, weights: Array | None) -> Array:
    """Return the (weighted) mean of the neighbours' targets.

    Parameters
    ----------
    targets : ndarray of shape (n, outputs)
        Targets of the training samples.
    index : ndarray of shape (queries, k)
        Numbers of the neighbours.
    weights : ndarray of shape (queries, k) or None
        Weights of the neighbours.
    """
    parts = []
    step = max(1, _NUMBERS // max(1, index.shape[1] * targets.shape[1]))
    for begin in range(0, max(1, len(index)), step):
        rows = slice(begin, begin + step)
        near = targets[index[rows]]
        if weights is None:
            parts.append(near.mean(axis=1))
        else:
            share = weights[rows, :, None]
            parts.append((near * share).sum(axis=1) / share.sum(axis=1))
    return np.concatenate(parts)


def pair_scores(sums: Array, n_classes: int, intercept: Array) -> Array:
    """Return the scores of all pairs of classes from sums over each class's samples.

    Parameters
    ----------
    sums : ndarray of shape (n, n_classes (n_classes − 1))
        For each class the sums over its own samples in its machines against the other classes, in order.
    n_classes : int
        Number of classes.
    intercept : ndarray of shape (pairs,)
        What each pair's score begins with.

    Examples
    --------
    >>> import numpy as np
    >>> pair_scores(np.array([[1.0, 2.0, 10.0, 20.0, 100.0, 200.0]]), 3, np.zeros(3)).tolist()
    [[11.0, 102.0, 220.0]]
    """
    _check_pairs(intercept.shape[0], n_classes)
    scores = np.empty((sums.shape[0], intercept.shape[0]))
    _hot.pair_scores(sums, n_classes, np.ascontiguousarray(intercept, dtype=np.float64), scores)
    return scores


def pair_votes(scores: Array, n_classes: int) -> Array:
    """Return the votes of each class, equal ones separated by the sum of its scores.

    That is ``v + t/(3 (|t| + 1))`` with a class's votes ``v`` and the sum ``t`` of its scores. A score that
    is not negative is a vote for the first class of its pair.

    Parameters
    ----------
    scores : ndarray of shape (n, pairs)
        Scores of all pairs of classes, positive for the first of a pair.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> pair_votes(np.array([[1.0, 0.0, -2.0]]), 3).round(3).tolist()
    [[2.167, -0.25, 1.222]]
    """
    _check_pairs(scores.shape[1], n_classes)
    scores = np.ascontiguousarray(scores)
    decision = np.empty((scores.shape[0], n_classes), dtype=scores.dtype)
    _hot.pair_votes(scores, n_classes, decision)
    return decision


def _check_pairs(columns: int, n_classes: int) -> None:
    if columns != n_classes * (n_classes - 1) // 2:
        raise ValueError(f"{columns} columns are not pairs of {n_classes} classes: the model was altered.")
