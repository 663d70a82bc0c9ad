"""Rows to fit on and rows held out, from a table that need not be in memory twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.cli.inputs import Labelled
from separatrix.cli.prepare import take
from separatrix.cli.screen import CommandError

_BLOCK_BYTES = 8 << 20


class Parts(NamedTuple):
    """Features and classes of the rows to fit on, and of those held out."""

    X: Any
    y: NDArray[Any]
    X_held: Any
    y_held: NDArray[Any]


def hold_out(data: Labelled, share: float, seed: int, path: Path) -> Parts:
    """Split a table, every class in both parts; the rows of a matrix change places, and none is copied.

    The rows to fit on stay in the order of the file. `data` must not be used after this.
    """
    if share == 0.0:
        return Parts(data.X, data.y, data.X[:0], data.y[:0])
    train, test = _chosen(data.y, share, seed, path)
    X = data.X
    if not isinstance(X, np.ndarray) or not X.flags.c_contiguous or not X.flags.writeable:
        return Parts(take(X, train), data.y[train], take(X, test), data.y[test])
    fitted = np.zeros(len(X), dtype=bool)
    fitted[train] = True
    order = np.arange(len(X))
    size = max(1, _BLOCK_BYTES // max(1, X.nbytes // len(X)))
    _gather([X, order], fitted, size)
    y = data.y[order]
    return Parts(X[: len(train)], y[: len(train)], X[len(train) :], y[len(train) :])


def _gather(arrays: Sequence[NDArray[Any]], first: NDArray[np.bool_], size: int) -> None:
    """Bring the rows marked by `first` to the front, in their order, by blocks of `size` rows.

    Between the rows in front, which end at `front`, and the block stand only unmarked rows. As many of them
    as there are marked rows in the block leave their places to these.
    """
    front = 0
    for start in range(0, len(first), size):
        mask = first[start : start + size]
        end, marked = start + len(mask), int(mask.sum())
        for array in arrays:
            block = array[start:end]
            moved, stay = block[mask], block[~mask]
            leave = array[front : min(front + marked, start)].copy()
            array[front : front + marked] = moved
            array[end - len(stay) - len(leave) : end - len(stay)] = leave
            array[end - len(stay) : end] = stay
        front += marked


def _chosen(
    y: NDArray[Any], share: float, seed: int, path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from sklearn.model_selection import train_test_split

    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if counts.min() < 2:
        raise CommandError(
            f"{path}: class {classes[counts.argmin()]!s} has a single row, which cannot be both "
            "fitted and held out; add rows, or use --test-size 0"
        )
    try:
        train, test = train_test_split(np.arange(len(y)), test_size=share, random_state=seed, stratify=codes)
    except ValueError as error:
        raise CommandError(
            f"{path}: cannot hold out {share:g} of {len(y)} rows with all "
            f"{len(classes)} classes on both sides ({error}); change --test-size"
        ) from None
    return np.sort(train), np.sort(test)
