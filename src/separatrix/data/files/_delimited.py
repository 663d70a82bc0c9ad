"""The quick reader of delimited text: rows of numbers, or columns of numbers and texts, parsed by the core.

Arrow reads every form of such files. Most files are plain, and of those the core makes at once what a model
wants. What is not plain (a row of another
length, an infinite value, a number in a quoted text) it leaves, part by part, to Arrow and to the reader that
explains.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.data.files._columns import MISSING_CATEGORY, MISSING_MARKS, Labels, Plan
from separatrix.data.threads import in_threads, thread_count

_SKIPPED, _LABEL, _TEXT = -1, -2, -3
_TASK_BYTES = 1 << 18  # less text than this is not worth another thread
_LONGEST = np.iinfo(np.int32).max  # where a text begins, Arrow counts in 32 bits
_LINE_END = re.compile(rb"[\r\n]")


class Rows(NamedTuple):
    """Neighbouring rows: a matrix with NaN where a number is missing, or a table if there are texts."""

    X: Any
    y: Labels | None
    incomplete: NDArray[np.bool_] | None  # of each row in the file: is a value missing? None: in no row
    num_rows: int  # in the file


class Layout(NamedTuple):
    """What the core is told about the columns of a text, and the columns of each kind."""

    marks: tuple[int, int]
    slots: NDArray[np.int32]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    plan: Plan
    drop: bool

    @classmethod
    def of(
        cls, names: list[str], plan: Plan, delimiter: str, quote: str | None, drop: bool = False
    ) -> Layout | None:
        """Return the layout of a plan; None if separator or mark is not one byte, or a column comes twice."""
        marks = _marks(delimiter, quote)
        if marks is None or len(set(plan.names)) < len(plan.names):
            return None
        where = {name: position for position, name in enumerate(names)}
        numbers = tuple(name for name in plan.names if name not in plan.texts)
        texts = tuple(name for name in plan.names if name in plan.texts)
        slots = np.full(len(names), _SKIPPED, dtype=np.int32)
        slots[[where[name] for name in numbers]] = np.arange(len(numbers))
        slots[[where[name] for name in texts]] = _TEXT - np.arange(len(texts))
        if plan.target is not None:
            slots[where[plan.target]] = _LABEL
        return cls(marks, slots, numbers, texts, plan, drop)


def _marks(delimiter: str, quote: str | None) -> tuple[int, int] | None:
    """Return separator and quotation mark as the core is told them; None if that is for Arrow to read.

    So it is where one of them is not one byte, or where the separator may be part of a number.
    """
    if not delimiter.isascii() or not (quote or "").isascii() or delimiter.isalnum() or delimiter in "+-.":
        return None
    return ord(delimiter), ord(quote) if quote else 0


def parse_rows(text: bytes | memoryview, layout: Layout) -> list[Rows] | None:
    """Return what whole lines hold, a part for each thread; None: look again."""
    if len(text) > _LONGEST:
        return None
    pieces = _pieces(text)
    found = list(in_threads(lambda k: _parse(pieces[k], layout), len(pieces)))
    parts = [part for part in found if part is not None]
    return [part for part in parts if part.num_rows] if len(parts) == len(found) else None


def _parse(text: NDArray[np.int8], layout: Layout) -> Rows | None:
    lines = _most_rows(text, len(layout.slots))
    values = np.empty((lines, len(layout.numbers)), order="F" if layout.texts else "C")
    ends = np.empty((len(layout.texts), lines + 1), dtype=np.int32)
    codes = np.empty(lines, dtype=np.int32)
    incomplete, odd = np.empty(lines, dtype=bool), np.zeros(len(layout.slots), dtype=np.uint8)
    (rows, seen, gaps), plain, ascii_only, labels, contents = _hot.parse_delimited(
        text, layout.marks, _MARKS, MISSING_CATEGORY, layout.drop, layout.slots, values, ends.T, codes,
        incomplete.view(np.uint8), odd,
    )  # fmt: skip
    if not plain or odd.any():
        return None
    try:
        y = None if layout.plan.target is None else _labels(codes[:rows], *labels)
        X = values[:rows]
        if layout.texts:
            X = _batch(X, ends[:, : rows + 1], contents, layout, ascii_only)
    except ValueError:  # not UTF-8
        return None
    return Rows(X, y, incomplete[:seen] if gaps else None, seen)


def _most_rows(text: NDArray[np.int8], columns: int) -> int:
    """Return how many rows there can be: no more than lines, and a whole row has a byte for each column."""
    return min(_hot.count_lines(text), len(text) // columns + 1)


def _labels(codes: NDArray[np.int32], ends: bytes, content: bytes) -> Labels:
    bounds = np.frombuffer(ends, dtype=np.int32).tolist()
    if content.isascii():
        text = content.decode()
        return Labels(codes, [text[a:b] for a, b in itertools.pairwise(bounds)])
    return Labels(codes, [content[a:b].decode() for a, b in itertools.pairwise(bounds)])


def _batch(
    values: NDArray[np.float64],
    ends: NDArray[np.int32],
    contents: list[NDArray[np.int8]],
    layout: Layout,
    ascii_only: bool,
) -> Any:
    """Return rows as a table, nothing copied."""
    import pyarrow as pa

    columns = {name: pa.array(values[:, k]) for k, name in enumerate(layout.numbers)}
    for name, places, content in zip(layout.texts, ends, contents, strict=True):
        texts = pa.StringArray.from_buffers(len(values), pa.py_buffer(places), pa.py_buffer(content))
        if not ascii_only:
            texts.validate(full=True)
        columns[name] = texts
    names = list(layout.plan.names)
    return pa.table([columns[name] for name in names], names=names)


def text_columns(text: bytes, width: int, delimiter: str, quote: str | None) -> list[bool] | None:
    """Tell of each column whether a value in these whole lines is no number; None: look more closely."""
    marks = _marks(delimiter, quote)
    if marks is None:
        return None
    raw, odd = np.frombuffer(text, dtype=np.int8), np.zeros(width, dtype=np.uint8)
    lines = _most_rows(raw, width)
    slots = np.arange(width, dtype=np.int32)
    values, codes = np.empty((lines, width)), np.empty(0, dtype=np.int32)
    ends, incomplete = np.empty((lines + 1, 0), dtype=np.int32), np.empty(lines, dtype=np.uint8)
    _, plain, *_ = _hot.parse_delimited(
        raw, marks, _MARKS, "", False, slots, values, ends, codes, incomplete, odd
    )
    return odd.astype(bool).tolist() if plain else None


def whole_lines(text: memoryview, mark: bytes, delimiter: bytes) -> bool:
    """Tell whether quoted values certainly begin and end within their lines."""
    if len(mark) > 1 or len(delimiter) > 1 or not text:
        return False
    pieces = _pieces(text)
    return all(in_threads(lambda k: _hot.quotes_within_lines(pieces[k], mark[0], delimiter[0]), len(pieces)))


def _pieces(text: bytes | memoryview) -> list[NDArray[np.int8]]:
    """Cut a text at line ends, for each thread its part."""
    raw = np.frombuffer(text, dtype=np.int8)
    count = len(text) // _TASK_BYTES
    if count > 1:
        count = min(count, thread_count(None))
    ends: list[int] = []
    for k in range(1, count):
        found = _LINE_END.search(text, k * len(text) // count)
        if found and (not ends or found.end() > ends[-1]):
            ends.append(found.end())
    return [raw[a:b] for a, b in zip([0, *ends], [*ends, len(raw)], strict=True)]


_MARKS = list(MISSING_MARKS)
