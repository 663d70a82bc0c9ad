"""Files that hold a matrix without names: LIBSVM text and NumPy's formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from separatrix.data.files._numpy import read_numpy
from separatrix.data.files._origin import DataFileError, Origin, Reading
from separatrix.data.files._svmlight import as_rows, base_of, read_svmlight, svmlight_blocks, warn_about
from separatrix.data.files._tabular import Block, Table

_BLOCK_ROWS = 1 << 14


class MatrixSource:
    """A file with a matrix; the target is the label of each line, or an array of its own."""

    names = None

    def __init__(self, origin: Origin, reading: Reading, part: str = "train") -> None:
        self.origin, self.reading, self.name, self.part = origin, reading, origin.name, part

    def read(
        self, target: str | None = None, features: Sequence[str] | None = None, ignore: Sequence[str] = ()
    ) -> Table:
        """Read all rows."""
        if features is not None or ignore:
            raise DataFileError(
                f"{self.name}: the columns of a matrix have no names to choose or ignore them by"
            )
        if self.origin.format == "svmlight":
            self._refuse_target(target)
            X, labels = read_svmlight(self.origin, self.reading.index_base)
            whole = bool(np.all(labels == np.floor(labels))) and bool(np.all(np.abs(labels) < 2**53))
            return Table(X, None, labels.astype(np.int64) if whole else labels)
        X, y = read_numpy(self.origin, target, self.part)
        return Table(X, None, y)

    def matrix_blocks(self, columns: int, target: str | None = None) -> Iterator[Block]:
        """Yield neighbouring rows, `columns` features wide."""
        if self.origin.format == "svmlight":
            self._refuse_target(target)
            yield from self._svmlight_blocks(columns)
            return
        X, _, y = self.read(target)
        if X.shape[1] != columns:
            raise DataFileError(
                f"{self.name}: {X.shape[1]:,} features, and the model was fitted on {columns:,}; give the "
                "columns that it was fitted on, in their order"
            )
        for start in range(0, X.shape[0], _BLOCK_ROWS):
            rows = np.arange(start, min(start + _BLOCK_ROWS, X.shape[0]))
            here = slice(start, start + len(rows))
            yield Block(X[here], None if y is None else y[here], rows)

    def _refuse_target(self, target: str | None) -> None:
        if target is not None:
            raise DataFileError(
                f"{self.name}: LIBSVM text begins each line with its label and names no columns, so "
                f"{target!r} cannot be chosen; leave out --target (target=)"
            )

    def _svmlight_blocks(self, columns: int) -> Iterator[Block]:
        base, start = self.reading.index_base, 0
        for lines in svmlight_blocks(self.origin):
            if not len(lines.labels):
                continue
            if base is None:
                # The first block decides: a later index 0 contradicts it.
                base = base_of([lines], None, self.name)
                if lines.largest - base >= columns and lines.largest == columns:
                    base = 1
                warn_about([lines])
            base_of([lines], base, self.name)
            rows = np.arange(start, start + len(lines.labels))
            start += len(rows)
            yield Block(as_rows(lines, base, columns), lines.labels, rows)
        if start == 0:
            raise DataFileError(f"{self.name}: the file has no samples")
