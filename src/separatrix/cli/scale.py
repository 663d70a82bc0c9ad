"""``separatrix svm-scale``: features to a range, with LIBSVM's flags, range files and output."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli import samples as io
from separatrix.cli.flags import number, parse_flags
from separatrix.cli.screen import CommandError
from separatrix.persistence import text_output

Array = NDArray[Any]
_BLOCK_NUMBERS = 1 << 20


def run(words: list[str]) -> None:
    """Scale one file and print it."""
    words, limits = _take_targets(list(words))
    kinds: dict[str, Any] = {"l": number, "u": number, "y": number, "s": str, "r": str}
    flags = parse_flags("svm-scale", words, kinds, (1, 1))
    given = flags.values
    lower, upper = given.get("l", -1.0), given.get("u", 1.0)
    if not upper > lower or (limits and not limits[1] > limits[0]):
        raise CommandError("svm-scale: the upper end of a range must be above the lower one")
    if "s" in given and "r" in given:
        raise CommandError("svm-scale: cannot use -r and -s simultaneously")
    if "s" in given:
        io.output_place(given["s"])
    X, y = io.read_samples(flags.files[0])
    targets = (limits, (float(y.min()), float(y.max()))) if limits else None
    if "r" in given:
        (lower, upper), least, most, targets = _restore(given["r"], X.shape[1])
        unseen = np.setdiff1d(X.indices, np.flatnonzero(~np.isnan(least)))
        if unseen.size:
            print(
                f"WARNING: {unseen.size} features (the first has index {int(unseen[0]) + 1}) were not seen "
                f"in {given['r']} and are left out",
                file=sys.stderr,
            )
        X = io.widened(X, len(least))
    else:
        least = np.asarray(X.min(axis=0).toarray()).ravel()
        most = np.asarray(X.max(axis=0).toarray()).ravel()
    if "s" in given:
        _save(given["s"], (lower, upper), least, most, targets)
    printed = _print(X, y, (lower, upper), least, most, targets)
    if printed > X.nnz:
        print(
            f"WARNING: {X.nnz} values that are not 0 became {printed}\n"
            "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1",
            file=sys.stderr,
        )


def _take_targets(words: list[str]) -> tuple[list[str], tuple[float, float] | None]:
    """Take ``-y lower upper`` out: the only flag with two values."""
    if "-y" not in words:
        return words, None
    place = words.index("-y")
    try:
        limits = number(words[place + 1]), number(words[place + 2])
    except (IndexError, ValueError):
        raise CommandError("svm-scale: -y needs two numbers") from None
    return words[:place] + words[place + 3 :], limits


def _save(path: str, limits: tuple[float, float], least: Array, most: Array, targets: Any) -> None:
    lines = []
    if targets:
        lines += ["y", *(f"{low:.17g} {high:.17g}" for low, high in targets)]
    lines += ["x", f"{limits[0]:.17g} {limits[1]:.17g}"]
    rows = enumerate(zip(least.tolist(), most.tolist(), strict=True), 1)
    lines += [f"{index} {low:.17g} {high:.17g}" for index, (low, high) in rows if low != high]
    with text_output(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _restore(path: str, columns: int) -> tuple[tuple[float, float], Array, Array, Any]:
    """Read a range file; features that it does not name get NaN, and are left out."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.split() for line in file]
    place, targets = 0, None

    def pair(at: int, skip: int = 0) -> tuple[float, float]:
        try:
            words = lines[at][skip:]
            low, high = (number(word) for word in words)
            return low, high
        except (IndexError, ValueError):
            raise CommandError(f"{path}: line {at + 1}: not a range file of svm-scale, or damaged") from None

    if lines[:1] == [["y"]]:
        targets, place = (pair(1), pair(2)), 3
    if lines[place : place + 1] != [["x"]]:
        raise CommandError(f"{path}: line {place + 1}: 'x' is expected here: not a range file of svm-scale")
    limits = pair(place + 1)
    found: dict[int, tuple[float, float]] = {}
    for at in range(place + 2, len(lines)):
        if not lines[at]:
            continue
        low, high = pair(at, 1)
        if not lines[at][0].isdigit() or not 0 < int(lines[at][0]) < 2**31:
            raise CommandError(f"{path}: line {at + 1}: {lines[at][0]!r} is not the index of a feature")
        found[int(lines[at][0]) - 1] = (low, high)
    # An index beyond the data costs nothing as long as there is a line for nearly each one before it.
    width = max([columns, *(index + 1 for index in found if index < columns + 2 * len(found))])
    least, most = np.full(width, np.nan), np.full(width, np.nan)
    for index, (low, high) in found.items():
        if index < width:
            least[index], most[index] = low, high
    return limits, least, most, targets


def _print(X: Any, y: Array, limits: tuple[float, float], least: Array, most: Array, targets: Any) -> int:
    """Print the scaled samples; return how many values they store."""
    (lower, upper), printed = limits, 0
    if targets:
        (low, high), (small, large) = targets
        if large > small:
            y = np.where(
                y == small,
                low,
                np.where(y == large, high, low + (high - low) * (y - small) / (large - small)),
            )
    columns = np.flatnonzero(most > least)  # others say nothing, or were not seen
    small, span = least[columns], most[columns] - least[columns]
    step = max(1, _BLOCK_NUMBERS // max(1, X.shape[1]))
    for begin in range(0, X.shape[0], step):
        dense = X[begin : begin + step].toarray()[:, columns]
        scaled = lower + (upper - lower) * (dense - small) / span
        scaled[dense == small] = lower
        scaled[dense == most[columns]] = upper
        for label, row in zip(y[begin : begin + step].tolist(), scaled, strict=True):
            used = np.flatnonzero(row)
            printed += len(used)
            pairs = zip((columns[used] + 1).tolist(), row[used].tolist(), strict=True)
            print(f"{label:.17g}", "".join(f"{index}:{value:g} " for index, value in pairs))
    return printed
