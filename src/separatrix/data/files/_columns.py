"""Which columns of a table are read, and as what: numbers, texts, and the target."""

from __future__ import annotations

import difflib
import itertools
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.data.files._origin import DataFileError, quoted
from separatrix.data.threads import in_threads

# Unquoted spellings of "no value here"; a class that is really called NA is kept by writing it in quotes.
MISSING_MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL")
#: The category of missing texts, where they are accepted.
MISSING_CATEGORY = "?"
# Arrow's grammar of a number. Python's float() also takes "1_000", which Arrow does not.
NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)
# Columns that are the target if nothing else is said, before the last one is.
_TARGET_NAMES = ("target", "class", "label", "y")
_LARGEST_TEXT_ARRAY = 256 << 20
_IN_NUMBERS = frozenset("+-.0123456789eE" + string.whitespace)


@dataclass(frozen=True)
class Plan:
    """The columns to read. `texts` are those of `names` that hold text; the others hold numbers.

    A `fixed` plan is that of a fitted model: no column can be left out or be taken for another kind.
    """

    names: tuple[str, ...]
    texts: frozenset[str] = frozenset()
    target: str | None = None
    fixed: bool = False


def choose_target(names: Sequence[str]) -> str:
    """Return the column that is meant when none is named."""
    folded = {name.casefold(): name for name in reversed(names)}
    return next((folded[name] for name in _TARGET_NAMES if name in folded), names[-1])


def choose_columns(
    file: str,
    names: Sequence[str],
    target: str | None,
    features: Sequence[str] | None,
    ignore: Sequence[str],
) -> tuple[str, ...]:
    """Return the feature columns, or say which column a file lacks."""
    if target is not None:
        _require(file, names, [target], "target column")
    _require(file, names, ignore, "column to ignore")
    if features is not None:
        _require(file, names, features, "feature column")
        return tuple(column for column in features if column != target)
    left_out = {*ignore, target}
    chosen = [column for column in names if column not in left_out]
    if "" in chosen:
        raise DataFileError(
            f"{file}: column {list(names).index('') + 1} has no name in the header (a row index written by "
            "another program?); name it, remove it, or leave it out (ignore=[''], --ignore '')"
        )
    if not chosen:
        advice = "; is another mark between the values? --delimiter names it" if len(names) == 1 else ""
        raise DataFileError(f"{file}: no feature column is left; the columns are {quoted(names)}{advice}")
    return tuple(chosen)


def _require(file: str, names: Sequence[str], wanted: Sequence[str], role: str) -> None:
    there = set(names)
    absent = [column for column in wanted if column not in there]
    if not absent:
        return
    advice = f"the columns are {quoted(names)}"
    # Where many are absent the file is another one, and no name in it is a slip of the pen.
    near = difflib.get_close_matches(absent[0], names, n=1, cutoff=0.6) if len(absent) <= 2 else []
    folded = [column for column in names if column.casefold() == absent[0].casefold()]
    if near or folded:
        advice += f"; did you mean {(folded or near)[0]!r}?"
    if may_be_data(names):
        advice += (
            "; the first line looks like data: put a line with the column names above it, or read the file "
            "with --no-header (header=False), which calls the columns 1, 2, …"
        )
    plural = "s" if len(absent) > 1 else ""
    raise DataFileError(f"{file}: no {role}{plural} {quoted(absent)}; {advice}")


def may_be_data(names: Sequence[str]) -> bool:
    """Tell whether all names are numbers, but for one that may be a class: then they are hardly names."""
    numbers = sum(NUMBER.fullmatch(column) is not None for column in names)
    return 0 < numbers >= len(names) - 1


class Labels(NamedTuple):
    """A target of texts: the different ones, and of each row the number of its text (−1: it has none)."""

    codes: NDArray[np.int32]
    texts: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def filter(self, mask: NDArray[np.bool_]) -> Labels:
        """Return the rows where the mask is true."""
        return Labels(self.codes[mask], self.texts)

    def empty(self) -> NDArray[np.bool_] | None:
        """Tell which rows have no label: none at all, or blanks; None if all have one."""
        none_blank = all(self.texts) and not any(map(str.isspace, self.texts))
        if none_blank and (not len(self.codes) or self.codes.min() >= 0):
            return None
        blank = np.array([*(not text.strip() for text in self.texts), True])
        empty: NDArray[np.bool_] = blank[self.codes]
        return empty if empty.any() else None

    @classmethod
    def of(cls, column: Any) -> Labels | Any:
        """Return an array of Arrow with its texts encoded; one that holds no text as it is."""
        import pyarrow as pa

        if pa.types.is_dictionary(column.type) and not pa.types.is_string(column.type.value_type):
            column = column.dictionary_decode()
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.string())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.dictionary_encode()
        if not pa.types.is_dictionary(column.type):
            return column
        return cls(column.indices.fill_null(-1).to_numpy(), column.dictionary.to_pylist())


def labels_of(parts: Sequence[Labels | Any]) -> NDArray[Any]:
    """Return a target as integers if all values are, else as floats if all are numbers, else as text.

    Whole numbers that no machine number holds exactly are text: as floats, different ones would be one class.
    """
    if not all(isinstance(part, Labels) for part in parts):
        import pyarrow as pa

        numbers: NDArray[Any] = pa.chunked_array(parts).to_numpy()
        return numbers
    each_once = dict.fromkeys(itertools.chain.from_iterable(part.texts for part in parts))
    numbers_of = {text: number for number, text in enumerate(each_once)}
    places = [
        np.fromiter(map(numbers_of.__getitem__, part.texts), dtype=np.intp, count=len(part.texts))
        for part in parts
    ]
    used = np.zeros(len(numbers_of), dtype=bool)  # others were in rows that are left out
    for part, place in zip(parts, places, strict=True):
        seen = np.zeros(len(place), dtype=bool)
        seen[part.codes] = True
        used[place[seen]] = True
    ends = np.cumsum([0, *map(len, parts)])
    values = [text for text, is_used in zip(numbers_of, used.tolist(), strict=True) if is_used]
    unique = _typed(values, int(ends[-1]))
    chosen = np.empty(ends[-1], dtype=unique.dtype)

    def fill(k: int) -> None:
        if len(parts[k]):
            of_part = unique.take((np.cumsum(used) - 1)[places[k]], mode="clip")
            of_part.take(parts[k].codes, out=chosen[ends[k] : ends[k + 1]], mode="clip")

    for _ in in_threads(fill, len(parts)):
        pass
    return chosen


def _typed(values: list[str], rows: int) -> NDArray[Any]:
    """Return texts as integers if all are, else as floats if all are numbers, else as they are."""
    characters = set("".join(values))
    try:
        # float() would also take 1_000 and the digits of other scripts
        if characters <= _IN_NUMBERS and np.isfinite(numbers := [float(value) for value in values]).all():
            whole = characters.isdisjoint(".eE")
            return np.array([int(value) for value in values], dtype=np.int64) if whole else np.array(numbers)
    except (ValueError, OverflowError):  # no number; no number of 64 bits
        pass
    # NumPy pads texts to the longest: a column of long texts taken for a target must not fill the memory.
    padded = 4 * rows * max((len(value) for value in values), default=0)
    return np.array(values, dtype=object if padded > _LARGEST_TEXT_ARRAY else None)
