"""LIBSVM / SVMlight text: blocks of whole lines, parsed by the compiled core in several threads.

A file is never in memory as text: per thread one block of lines and what it holds as numbers. The order of
the rows, and every bit, is the same for any number of threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.data.files._origin import DataFileError, Origin, open_errors
from separatrix.data.threads import in_threads, thread_count

_BLOCK_BYTES = 2 << 20
_LONGEST_LINE = 1 << 30
_ERRORS = (
    "",
    "{word!r} is not a label: a finite number is expected first in every line",
    "{word!r} names several labels; keep one label per line",
    "{word!r} is not index:value",
    "index {index} does not follow a smaller one; sort the pairs of a line by index, each index once",
    "{word!r} has no colon; features are written index:value",
    "{word!r} does not hold a finite number after the colon",
    "{word!r} has an index beyond 2,147,483,647",
)


class Lines(NamedTuple):
    """What a block of lines holds; indices are as in the file."""

    labels: NDArray[np.float64]
    ends: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]
    lines: int
    queries: int
    smallest: int
    largest: int


def svmlight_blocks(origin: Origin) -> Iterator[Lines]:
    """Yield the parsed blocks of a file in order."""
    with open_errors(origin.name):
        first = 1
        together: list[bytes] = []
        for text in _texts(origin):
            together.append(text)
            if len(together) == thread_count(None):
                for block in _parse_all(origin.name, together, first):
                    first += block.lines
                    yield block
                together = []
        yield from _parse_all(origin.name, together, first)


def read_svmlight(origin: Origin, index_base: int | None = None) -> tuple[Any, NDArray[np.float64]]:
    """Read a whole file as CSR matrix and labels."""
    from scipy import sparse

    blocks = list(svmlight_blocks(origin))
    blocks = [block for block in blocks if len(block.labels)]
    if not blocks:
        raise DataFileError(f"{origin.name}: the file has no samples; lines 'label index:value …' are needed")
    warn_about(blocks)
    base = base_of(blocks, index_base, origin.name)
    columns = max(1, max(block.largest for block in blocks) + 1 - base)
    stored = np.cumsum([0] + [len(block.values) for block in blocks])
    # 32-bit positions as long as they suffice: half the memory traffic for every later pass.
    kind = np.int32 if stored[-1] < 2**31 else np.int64
    indptr = np.zeros(1 + sum(len(block.labels) for block in blocks), dtype=kind)
    data, indices = np.empty(stored[-1]), np.empty(stored[-1], dtype=kind)
    labels, row = np.empty(len(indptr) - 1), 0
    for number, block in enumerate(blocks):
        here, rows = slice(stored[number], stored[number + 1]), slice(row, row + len(block.labels))
        data[here] = block.values
        np.subtract(block.indices, base, out=indices[here], casting="unsafe")
        np.add(block.ends, stored[number], out=indptr[1:][rows], casting="unsafe")
        labels[rows] = block.labels
        row = rows.stop
        blocks[number] = block._replace(values=data[:0], indices=block.indices[:0])  # releases the block
    X = sparse.csr_array((data, indices, indptr), shape=(len(labels), columns))
    X.has_sorted_indices = X.has_canonical_format = True
    return X, labels


def as_rows(block: Lines, base: int, columns: int) -> Any:
    """Return a block as CSR matrix with a given number of columns; features beyond them are left out."""
    from scipy import sparse

    width = max(columns, block.largest + 1 - base)
    indptr = np.concatenate([[0], block.ends])
    X = sparse.csr_array((block.values, block.indices - base, indptr), shape=(len(block.labels), width))
    return X[:, :columns] if width > columns else X


def base_of(blocks: list[Lines], index_base: int | None, name: str) -> int:
    """Return the index of the first feature: 0 if any index is 0, else 1."""
    smallest = min((block.smallest for block in blocks), default=1)
    if index_base is None:
        return 0 if smallest == 0 else 1
    if smallest < index_base:
        raise DataFileError(f"{name}: there is an index 0, and indices are said to begin with 1; use base 0")
    return index_base


def warn_about(blocks: list[Lines]) -> None:
    """Say once what was skipped."""
    queries = sum(block.queries for block in blocks)
    if queries:
        warnings.warn(
            f"{queries:,} query identifiers (qid:) were skipped: they matter for ranking only", stacklevel=3
        )


def _texts(origin: Origin) -> Iterator[bytes]:
    """Yield blocks of whole lines."""
    rest: list[bytes] = []
    with origin.open() as file:
        while part := file.read(_BLOCK_BYTES):
            at = part.rfind(b"\n") + 1
            if at == 0:
                rest.append(part)
                if len(rest) * _BLOCK_BYTES > _LONGEST_LINE:
                    raise DataFileError(
                        f"{origin.name}: a line has more than {_LONGEST_LINE:,} bytes; no text?"
                    )
                continue
            yield b"".join([*rest, part[:at]])
            rest = [part[at:]]
    yield b"".join(rest)


def _parse_all(name: str, texts: list[bytes], first: int) -> Iterator[Lines]:
    for block, error, word in in_threads(lambda k: _parse(texts[k]), len(texts)):
        if error:
            index = word.partition(":")[0]
            line = first + block.lines - 1
            raise DataFileError(
                f"{name}: line {line:,}: {_ERRORS[error].format(word=word, index=index)}; correct that line"
            )
        first += block.lines
        yield block


def _parse(text: bytes) -> tuple[Lines, int, str]:
    raw = np.frombuffer(text, dtype=np.int8)
    rows, stored = _hot.count_svmlight(raw)
    labels, ends = np.empty(rows), np.empty(rows, dtype=np.int64)
    indices, values = np.empty(stored, dtype=np.int32), np.empty(stored)
    rows, stored, *rest, error, place = _hot.parse_svmlight(raw, labels, ends, indices, values)
    word = text[place : place + 60].split()[0].decode("utf-8", "replace") if error else ""
    return Lines(labels[:rows], ends[:rows], indices[:stored], values[:stored], *rest), error, word


def parse_text(name: str, text: bytes, first: int = 1) -> Lines:
    """Parse whole lines that are in memory; `first` is the number of the first one in messages."""
    return next(_parse_all(name, [text], first))
