"""Samples held out for early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.memory import view_of
from separatrix.data.view import Array, DataView


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The held-out samples: a view of them, their row numbers and their weights."""

    view: DataView
    rows: Array
    weights: Array


def hold_out(
    X: Any, y: Array, weights: Array | None, fraction: float, random_state: Any, *, classes: bool = True
) -> tuple[Array, HeldOut]:
    """Return the weights of all samples, 0 for those held out, and these.

    Of every class the same fraction is held out; ``classes=False`` says that ``y`` are numbers.
    """
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    splitter = StratifiedShuffleSplit if classes else ShuffleSplit
    split = splitter(test_size=fraction, random_state=random_state)
    train, rows = next(split.split(np.zeros((len(y), 1)), y))
    s = np.ones(len(y)) if weights is None else weights
    held_weights = s[rows]
    if not np.any(held_weights > 0) or not np.any(s[train] > 0):
        raise ValueError(
            "The sample weights for validation set are all zero, consider using a different random state."
        )
    remaining = s.copy()
    remaining[rows] = 0.0
    return remaining, HeldOut(view_of(view_of(X).take(rows)), rows, held_weights)
