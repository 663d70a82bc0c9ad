"""The quick reader of delimited text: numbers as they are and texts as codes, parsed by the compiled core.

Arrow reads every form of such files; a model wants rows of numbers, or columns of texts of which each is kept
once. Most files are plain, and of those the core makes these at once. What is not plain (a row of another
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
from separatrix.data.files._columns import MISSING_MARKS, Labels, Plan, coded_texts
from separatrix.data.threads import in_threads, thread_count

_SKIPPED, _TEXT = -1, -2
_TASK_BYTES = 1 << 18  # less text than this is not worth another thread
_LONGEST = np.iinfo(np.int32).max  # where a text begins, Arrow counts in 32 bits
_LINE_END = re.compile(rb"[\r\n]")


class Numbers(NamedTuple):
    """Neighbouring rows: their numbers, NaN where one is missing, and their labels."""

    values: NDArray[np.float64]
    y: Labels | None

    @property
    def num_rows(self) -> int:
        return len(self.values)


class Layout(NamedTuple):
    """What the core is told about the columns of a text, and the columns of each kind."""

    marks: tuple[int, int]
    slots: NDArray[np.int32]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    plan: Plan

    @classmethod
    def of(cls, names: list[str], plan: Plan, delimiter: str, quote: str | None) -> Layout | None:
        """Return the layout of a plan; None if separator or mark is not one byte, or a column comes twice."""
        if not delimiter.isascii() or not (quote or "").isascii() or len(set(plan.names)) < len(plan.names):
            return None
        where = {name: position for position, name in enumerate(names)}
        numbers = tuple(name for name in plan.names if name not in plan.texts)
        texts = tuple(name for name in plan.names if name in plan.texts)
        texts += () if plan.target is None else (plan.target,)
        slots = np.full(len(names), _SKIPPED, dtype=np.int32)
        slots[[where[name] for name in numbers]] = np.arange(len(numbers))
        slots[[where[name] for name in texts]] = _TEXT - np.arange(len(texts))
        marks = ord(delimiter), ord(quote) if quote else 0
        return cls(marks, slots, numbers, texts, plan)


class _Piece(NamedTuple):
    """Rows as the core gives them; of each column of texts the different ones, as bytes in Arrow's form."""

    values: NDArray[np.float64]
    codes: NDArray[np.int32]
    different: list[tuple[bytes, bytes]]


def parse_rows(text: bytes | memoryview, layout: Layout) -> list[Any] | None:
    """Return what whole lines hold: numbers, or record batches if there are texts; None: look again."""
    if len(text) > _LONGEST:
        return None
    pieces = _pieces(text)
    together, bounds = None, np.empty(0)
    if not layout.plan.texts:  # one matrix
        bounds = np.cumsum([0, *in_threads(lambda k: _hot.count_lines(pieces[k]), len(pieces))])
        together = np.empty((bounds[-1], len(layout.numbers)))

    def parse(k: int) -> Any:
        if together is None:  # columns of a table
            values = np.empty((len(layout.numbers), _hot.count_lines(pieces[k]))).T
        else:
            values = together[bounds[k] : bounds[k + 1]]
        codes = np.empty((len(layout.texts), len(values)), dtype=np.int32).T
        odd = np.zeros(len(layout.slots), dtype=np.uint8)
        rows, plain, different = _hot.parse_delimited(
            pieces[k], layout.marks, _MARKS, layout.slots, values, codes, odd
        )
        if not plain or odd.any():
            return None
        try:
            made = _Piece(values[:rows], codes[:rows], different)
            return _batch(made, layout) if together is None else Numbers(made.values, _labels(made, layout))
        except ValueError:  # not UTF-8
            return None

    found = list(in_threads(parse, len(pieces)))
    if any(part is None for part in found):
        return None
    filled = [part for part in found if part.num_rows]
    if together is None or not filled:
        return filled
    if sum(part.num_rows for part in filled) < len(together):  # blank lines leave gaps
        together = np.concatenate([part.values for part in filled])
    return [Numbers(together, None if not layout.texts else Labels.joined([part.y for part in filled]))]


def _labels(piece: _Piece, layout: Layout) -> Labels | None:
    if not layout.texts:
        return None
    (ends, content), places = piece.different[0], piece.codes[:, 0]
    bounds = np.frombuffer(ends, dtype=np.int32).tolist()
    return Labels(places, [content[a:b].decode() for a, b in itertools.pairwise(bounds)])


def _batch(piece: _Piece, layout: Layout) -> Any:
    """Return rows as a record batch, nothing copied."""
    import pyarrow as pa

    columns = {name: pa.array(piece.values[:, k]) for k, name in enumerate(layout.numbers)}
    for k, name in enumerate(layout.texts):
        columns[name] = coded_texts(piece.codes[:, k], *piece.different[k])
    names = [*layout.plan.names, *([] if layout.plan.target is None else [layout.plan.target])]
    return pa.record_batch([columns[name] for name in names], names=names)


def text_columns(text: bytes, names: list[str], delimiter: str) -> list[bool] | None:
    """Tell of each column whether a value in these whole lines is no number; None: look more closely."""
    layout = Layout.of(names, Plan(()), delimiter, None)
    if layout is None:
        return None
    raw, texts = np.frombuffer(text, dtype=np.int8), np.zeros(len(names), dtype=np.uint8)
    lines = _hot.count_lines(raw)
    slots = np.arange(len(names), dtype=np.int32)
    values, codes = np.empty((lines, len(names))), np.empty((lines, 0), dtype=np.int32)
    _, plain, _ = _hot.parse_delimited(raw, layout.marks, _MARKS, slots, values, codes, texts)
    return [bool(text) for text in texts] if plain else None


def whole_lines(text: memoryview, mark: bytes, delimiter: bytes) -> bool:
    """Tell whether quoted values certainly begin and end within their lines."""
    if len(mark) > 1 or len(delimiter) > 1 or not text:
        return False
    pieces = _pieces(text)
    return all(in_threads(lambda k: _hot.quotes_within_lines(pieces[k], mark[0], delimiter[0]), len(pieces)))


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
