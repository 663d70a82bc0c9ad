"""From neighbours to decisions: weights of neighbours, votes of classes, means of targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
