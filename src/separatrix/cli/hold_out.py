"""Rows to fit on and rows held out, from a table that need not be in memory twice."""

from __future__ import annotations

import math
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
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if counts.min() < 2:
        raise CommandError(
            f"{path}: class {classes[counts.argmin()]!s} has a single row, which cannot be both "
            "fitted and held out; add rows, or use --test-size 0"
        )
    held = math.ceil(share * len(y))
    if min(held, len(y) - held) < len(classes):
        raise CommandError(
            f"{path}: cannot hold out {share:g} of {len(y)} rows with all {len(classes)} classes on both "
            f"sides: {len(y) - held} rows to fit, {held} held out; change --test-size"
        )
    return stratified(codes, counts, held, seed)


def stratified(
    codes: NDArray[Any], counts: NDArray[Any], held: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to fit on and the `held` ones held out, every class in proportion, both in order.

    They are those of scikit-learn's ``train_test_split(..., test_size=, random_state=seed, stratify=)``,
    draw by draw: its module takes longer to import than a small fit takes from end to end.
    """
    random = np.random.RandomState(seed)
    fitted = _shares(counts, len(codes) - held, random)
    tested = _shares(counts - fitted, held, random)
    of_class = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
    mixed = [rows[random.permutation(len(rows))] for rows in of_class]
    train = np.concatenate([rows[:k] for rows, k in zip(mixed, fitted, strict=True)])
    test = np.concatenate([rows[k : k + t] for rows, k, t in zip(mixed, fitted, tested, strict=True)])
    return np.sort(train), np.sort(test)


def _shares(counts: NDArray[Any], total: int, random: np.random.RandomState) -> NDArray[np.int64]:
    """Return how many of `total` rows each class gives: its part, rounded; equal remainders draw lots."""
    parts = counts / counts.sum() * total
    shares = np.floor(parts)
    left, remainders = int(total - shares.sum()), parts - shares
    for value in np.unique(remainders)[::-1]:
        if left <= 0:
            break
        (alike,) = np.where(remainders == value)
        chosen = random.choice(alike, size=min(len(alike), left), replace=False)
        shares[chosen] += 1
        left -= len(chosen)
    whole: NDArray[np.int64] = shares.astype(np.int64)
    return whole
