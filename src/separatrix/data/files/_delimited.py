"""Lines of numbers with a label, what most delimited files are: parsed by the compiled core in threads.

Texts among the features, quotation marks, missing values and anything odd are left to Arrow (`_csv.py`),
which reads the same lines in the same way, only slower.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.data.files._columns import MISSING_MARKS
from separatrix.data.threads import in_threads

_TASK_BYTES = 1 << 19
_SKIP, _LABEL = -1, -2
_LINE_END = ord("\n")
_DELIMITERS = ",;\t|: "


class NumberRows(NamedTuple):
    """Finite numbers, and the labels beside them (None: there are none)."""

    X: NDArray[np.float64]
    y: Any

    @property
    def num_rows(self) -> int:
        """How many rows there are, as Arrow's batches say it."""
        return len(self.X)


class NumberLines:
    """A parser of lines whose wanted columns are numbers, but for a target.

    Parameters
    ----------
    names : list of str
        All columns of the file.
    features : sequence of str
        Those that are numbers.
    target : str or None
        The one that holds labels.
    delimiter : str
        What stands between two values.
    """

    def __init__(self, names: list[str], features: Any, target: str | None, delimiter: str) -> None:
        self.places: NDArray[np.int32] = np.full(len(names), _SKIP, dtype=np.int32)
        for place, name in enumerate(features):
            self.places[names.index(name)] = place
        if target is not None:
            self.places[names.index(target)] = _LABEL
        self.features, self.labelled, self.delimiter = len(features), target is not None, delimiter
        #: Whether it is worth a try: lines that once were not as they should be hardly are later on.
        self.usable = delimiter in _DELIMITERS

    def parse(self, text: memoryview) -> list[NumberRows] | None:
        """Return the rows of whole lines, or None: then they are something else."""
        raw = np.frombuffer(text, dtype=np.int8)
        cuts = _cuts(raw)
        tasks = in_threads(lambda k: self._rows(raw[cuts[k] : cuts[k + 1]]), len(cuts) - 1)
        found = [rows for rows in tasks if rows is not None]
        self.usable = len(found) == len(cuts) - 1
        return found if self.usable else None

    def _rows(self, raw: NDArray[np.int8]) -> NumberRows | None:
        rows = int(np.count_nonzero(raw == _LINE_END)) + int(raw[-1] != _LINE_END)
        values, ends = np.empty((rows, self.features)), np.zeros(rows + 1, dtype=np.int32)
        labels = np.empty(len(raw) if self.labelled else 0, dtype=np.int8)
        if not _hot.parse_delimited(raw, self.delimiter, self.places, values, labels, ends[1:]):
            return None
        encoded = _encoded(ends, labels[: ends[-1]]) if self.labelled else None
        return None if self.labelled and encoded is None else NumberRows(values, encoded)


def _cuts(raw: NDArray[np.int8]) -> list[int]:
    """Return where tasks begin and end: behind the first line end after each so many bytes."""
    cuts = [0]
    while cuts[-1] < len(raw):
        at = cuts[-1] + _TASK_BYTES
        found = np.flatnonzero(raw[at : at + _TASK_BYTES] == _LINE_END)
        cuts.append(at + int(found[0]) + 1 if found.size else len(raw))
    return cuts


def _encoded(ends: NDArray[np.int32], labels: NDArray[np.int8]) -> Any:
    """Return labels as a dictionary array; None if one of them means a missing value, or is no text."""
    import pyarrow as pa

    texts = pa.StringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(labels))
    encoded = texts.dictionary_encode()
    try:
        encoded.dictionary.validate(full=True)
    except pa.ArrowInvalid:
        return None
    missing = any(value.strip() in MISSING_MARKS for value in encoded.dictionary.to_pylist())
    return None if missing else encoded
