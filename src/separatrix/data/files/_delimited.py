"""The quick reader of delimited text: numbers, but for one column of labels, parsed by the compiled core.

Arrow reads every form of such files, column by column; a model wants rows of numbers. Most files are plain,
and of those the core makes rows at once. What is not plain (a quoted number, a row of another length, a label
that is missing, an infinite value) it leaves, part by part, to Arrow and to the reader that explains.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.data.files._columns import MISSING_MARKS, Labels, Plan
from separatrix.data.threads import in_threads, thread_count

_SKIPPED, _LABEL = -1, -2
_TASK_BYTES = 1 << 18  # less text than this is not worth another thread
_LINE_END = re.compile(rb"[\r\n]")


class Numbers(NamedTuple):
    """Neighbouring rows: their numbers, NaN where one is missing, and their labels."""

    values: NDArray[np.float64]
    y: Labels | None

    @property
    def num_rows(self) -> int:
        return len(self.values)


class Layout(NamedTuple):
    """What the core is told about the columns of a text, and how many of them are numbers."""

    marks: tuple[int, int]
    slots: NDArray[np.int32]
    width: int
    labelled: bool

    @classmethod
    def of(cls, names: list[str], plan: Plan, delimiter: str, quote: str | None) -> Layout | None:
        """Return the layout of a plan without texts, None where separator or mark is not one byte."""
        if plan.texts or not delimiter.isascii() or not (quote or "").isascii():
            return None
        where = {name: position for position, name in enumerate(names)}
        slots = np.full(len(names), _SKIPPED, dtype=np.int32)
        slots[[where[name] for name in plan.names]] = np.arange(len(plan.names))
        if plan.target is not None:
            slots[where[plan.target]] = _LABEL
        marks = ord(delimiter), ord(quote) if quote else 0
        return cls(marks, slots, len(plan.names), plan.target is not None)


def parse_rows(text: bytes | memoryview, layout: Layout) -> Numbers | None:
    """Return what whole lines hold; None if they need a closer look."""
    pieces = _pieces(text)
    bounds = np.cumsum([0, *in_threads(lambda k: _hot.count_lines(pieces[k]), len(pieces))])
    values, codes = np.empty((bounds[-1], layout.width)), np.empty(bounds[-1], dtype=np.int32)

    def parse(k: int) -> tuple[int, bool, list[str]]:
        here, texts = slice(bounds[k], bounds[k + 1]), np.zeros(len(layout.slots), dtype=np.uint8)
        rows, plain, spans = _hot.parse_delimited(
            pieces[k], layout.marks, _MARKS, layout.slots, values[here], codes[here], texts
        )
        if not plain or texts.any():
            return 0, False, []
        try:
            return rows, True, [pieces[k][a:b].tobytes().decode() for a, b in spans]
        except UnicodeDecodeError:
            return 0, False, []

    found = list(in_threads(parse, len(pieces)))
    if not all(plain for _, plain, _ in found):
        return None
    filled = [slice(start, start + rows) for start, (rows, _, _) in zip(bounds, found, strict=False)]
    if any(here.stop < end for here, end in zip(filled, bounds[1:], strict=True)):  # blank lines leave gaps
        values = np.concatenate([values[here] for here in filled])
    if not layout.labelled:
        return Numbers(values, None)
    labels = [Labels(codes[here], texts) for here, (_, _, texts) in zip(filled, found, strict=True)]
    return Numbers(values, Labels.joined(labels))


def text_columns(text: bytes, names: list[str], delimiter: str) -> list[bool] | None:
    """Tell of each column whether a value in these whole lines is no number; None: look more closely."""
    layout = Layout.of(names, Plan(()), delimiter, None)
    if layout is None:
        return None
    raw, texts = np.frombuffer(text, dtype=np.int8), np.zeros(len(names), dtype=np.uint8)
    lines = _hot.count_lines(raw)
    slots = np.arange(len(names), dtype=np.int32)
    values, codes = np.empty((lines, len(names))), np.empty(lines, dtype=np.int32)
    _, plain, _ = _hot.parse_delimited(raw, layout.marks, _MARKS, slots, values, codes, texts)
    return [bool(text) for text in texts] if plain else None


def whole_lines(text: memoryview, mark: bytes, delimiter: bytes) -> bool:
    """Tell whether quoted values certainly begin and end within their lines."""
    if len(mark) > 1 or len(delimiter) > 1 or not text:
        return False
    pieces = _pieces(text)
    return all(
        in_threads(lambda k: _hot.quotes_within_lines(pieces[k], mark[0], delimiter[0]), len(pieces))
    )


def _pieces(text: bytes | memoryview) -> list[NDArray[np.int8]]:
    """Cut a text at line ends, for each thread its part."""
    raw = np.frombuffer(text, dtype=np.int8)
    count = min(thread_count(None), len(text) // _TASK_BYTES)
    ends: list[int] = []
    for k in range(1, count):
        found = _LINE_END.search(text, k * len(text) // count)
        if found and (not ends or found.end() > ends[-1]):
            ends.append(found.end())
    return [raw[a:b] for a, b in zip([0, *ends], [*ends, len(raw)], strict=True)]


_MARKS = list(MISSING_MARKS)
