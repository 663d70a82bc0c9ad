"""Tables from CSV files: numbers as one float64 matrix, names, and the target column.

Reading has two speeds. The fast way lets Arrow parse the file block by block with every feature column
declared as float64. If Arrow refuses the file, or a value is missing or infinite, a second and slower walk
over the same file finds the place, so that the message can name row, line, column and value.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = ["DataFileError", "Table", "read_table"]

# Unquoted spellings of "no value here"; a class that is really called NA is kept by writing it in quotes.
MISSING_MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL")
_BLOCK_BYTES = 4 << 20
_LARGEST_TEXT_ARRAY = 256 << 20
# Arrow's grammar of a number. Python's float() also takes "1_000", which Arrow does not.
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)


class DataFileError(ValueError):
    """A data file cannot be used; the message names the file, the place and the remedy."""


class Table(NamedTuple):
    """What a file holds: ``X`` of shape (rows, features), the names of its columns, and the target."""

    X: NDArray[np.float64]
    feature_names: list[str]
    y: NDArray[Any] | None


class _Header(NamedTuple):
    """The names on top of a file, and the number of lines before the data."""

    names: list[str]
    delimiter: str
    lines: int


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
) -> Table:
    """Read a CSV file with a header line into ``(X, feature_names, y)``.

    Feature columns must hold numbers and become float64; the target may hold text or numbers. Values are
    separated by commas, or by semicolons or tabs where the header has no comma. Files ending in ``.gz``,
    ``.bz2`` or ``.zst`` are decompressed on the way.

    Parameters
    ----------
    path : str or path
        The file, UTF-8, first line the column names.
    target : str, optional
        Name of the column to predict; without it ``y`` is None.
    features : sequence of str, optional
        The columns to read, in this order; others are ignored. Default: all but the target.
    ignore : iterable of str
        Columns to leave out, such as identifiers.

    Returns
    -------
    Table
        Named tuple ``X, feature_names, y``.

    Raises
    ------
    DataFileError
        If the file is missing, empty or not a table, a column is absent or named twice, or a value is
        missing or not a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "flowers.csv")
    >>> _ = file.write_text("length,width,kind\\n1.5,2,rose\\n3,4,lily\\n")
    >>> X, names, y = read_table(file, target="kind")
    >>> X
    array([[1.5, 2. ],
           [3. , 4. ]])
    >>> names, y.tolist()
    (['length', 'width'], ['rose', 'lily'])
    >>> folder.cleanup()
    """
    name = os.fspath(path)
    try:
        header = _read_header(name)
        wanted = _choose_columns(name, header, target, features, tuple(ignore))
        return _read_values(name, header, wanted, target)
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{name}: the text is not UTF-8 (byte {error.object[error.start]:#04x}); save the file as UTF-8"
        ) from None
    except OSError as error:
        raise DataFileError(f"{name}: cannot read the file: {error.strerror or error}") from None
    except csv.Error as error:
        raise DataFileError(f"{name}: not a readable CSV file: {error}") from None


def _open_text(name: str) -> IO[str]:
    import pyarrow as pa

    return io.TextIOWrapper(pa.input_stream(name, compression="detect"), encoding="utf-8-sig", newline="")


def _read_header(name: str) -> _Header:
    if not os.path.exists(name):
        raise DataFileError(f"{name}: no such file; check the path (working directory: {os.getcwd()})")
    if os.path.isdir(name):
        raise DataFileError(f"{name}: is a directory; give the path of a CSV file")
    with _open_text(name) as text:
        blank, line = 0, text.readline()
        while line and not line.strip():
            blank, line = blank + 1, text.readline()
        if not line:
            raise DataFileError(f"{name}: the file is empty; a header line and data rows are needed")
        delimiter = "," if "," in line else next((mark for mark in "\t;" if mark in line), ",")
        # A quoted name may contain a line break, so the header can go on beyond its first line.
        reader = csv.reader((part for rest in ([line], text) for part in rest), delimiter=delimiter)
        names = [column.strip() for column in next(reader)]
        lines = blank + reader.line_num
    repeated = sorted({column for column in names if column and names.count(column) > 1})
    if repeated:
        raise DataFileError(
            f"{name}: the header names {_quoted(repeated)} more than once; give every column its own name"
        )
    return _Header(names, delimiter, lines)


def _choose_columns(
    name: str, header: _Header, target: str | None, features: Sequence[str] | None, ignore: tuple[str, ...]
) -> list[str]:
    if target is not None:
        _require(name, header, [target], "target column")
    _require(name, header, ignore, "column to ignore")
    if features is not None:
        _require(name, header, features, "feature column")
        return [column for column in features if column != target]
    chosen = [column for column in header.names if column != target and column not in ignore]
    if "" in chosen:
        raise DataFileError(
            f"{name}: column {header.names.index('') + 1} has no name in the header (a row index written by "
            "another program?); name it, remove it, or leave it out (ignore=[''], --ignore '')"
        )
    if not chosen:
        raise DataFileError(f"{name}: no feature column is left; the columns are {_quoted(header.names)}")
    return chosen


def _require(name: str, header: _Header, wanted: Sequence[str], role: str) -> None:
    absent = [column for column in wanted if column not in header.names]
    if not absent:
        return
    advice = f"the columns are {_quoted(header.names)}"
    near = difflib.get_close_matches(absent[0], header.names, n=1, cutoff=0.5)
    folded = [column for column in header.names if column.casefold() == absent[0].casefold()]
    if near or folded:
        advice += f"; did you mean {(folded or near)[0]!r}?"
    if all(_NUMBER.fullmatch(column) for column in header.names):
        advice += "; the first line looks like data: put a line with the column names above it"
    plural = "s" if len(absent) > 1 else ""
    raise DataFileError(f"{name}: no {role}{plural} {_quoted(absent)}; {advice}")


def _read_values(name: str, header: _Header, wanted: list[str], target: str | None) -> Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    types = {column: pa.float64() for column in wanted}
    if target is not None:
        types[target] = pa.string()
    # Arrow tells columns apart by name, so those without one get one that no file has.
    distinct = [column or f"\0unnamed {position}" for position, column in enumerate(header.names)]
    blocks: deque[NDArray[np.float64]] = deque()
    labels: list[Any] = []
    try:
        reader = arrow_csv.open_csv(
            pa.input_stream(name, compression="detect"),
            read_options=arrow_csv.ReadOptions(
                column_names=distinct, skip_rows=header.lines, block_size=_BLOCK_BYTES
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=list(MISSING_MARKS),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        for batch in reader:
            block = np.empty((batch.num_rows, len(wanted)))
            for position in range(len(wanted)):
                block[:, position] = batch.column(position).to_numpy(zero_copy_only=False)
            if not np.isfinite(block).all():
                _explain(name, header, wanted, target, "a value is missing or infinite")
            blocks.append(block)
            if target is not None:
                labels.append(batch.column(len(wanted)))
    except pa.ArrowInvalid as error:
        _explain(name, header, wanted, target, str(error))
    rows = sum(len(block) for block in blocks)
    if rows == 0:
        _explain(name, header, wanted, target, "no data rows")
    X = np.empty((rows, len(wanted)))
    start = 0
    while blocks:  # releasing each block as it is copied keeps the peak near one copy of the data
        block = blocks.popleft()
        X[start : start + len(block)] = block
        start += len(block)
    if target is None:
        return Table(X, wanted, None)
    column = pa.chunked_array(labels, type=pa.string())
    values = column.unique().to_pylist()
    if not all(value and value.strip() for value in values):
        _explain(name, header, wanted, target, "a target value is missing")
    return Table(X, wanted, _labels(column, values))


def _labels(column: Any, values: list[str]) -> NDArray[Any]:
    """Return the target as integers if all values are, else as floats if all are numbers, else as text."""
    # NumPy pads texts to the longest: a column of long texts taken for a target must not fill the memory.
    padded = 4 * len(column) * max(len(value) for value in values)
    unique: NDArray[Any] = np.array(values, dtype=object if padded > _LARGEST_TEXT_ARRAY else None)
    if all(_NUMBER.fullmatch(value.strip()) and np.isfinite(float(value)) for value in values):
        try:
            unique = np.array([int(value) for value in values], dtype=np.int64)
        except (ValueError, OverflowError):
            unique = np.array([float(value) for value in values])
    # Dictionary order is the order of first appearance, the same as that of `unique()`.
    codes = column.combine_chunks().dictionary_encode().indices.to_numpy()
    chosen: NDArray[Any] = unique[codes]
    return chosen


def _rows(name: str, header: _Header) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (data row, line in the file, values), both counted from 1."""
    with _open_text(name) as text:
        for _ in range(header.lines):
            text.readline()
        reader = csv.reader(text, delimiter=header.delimiter)
        row, line = 0, header.lines + 1
        for values in reader:
            if values:
                row += 1
                yield row, line, values
            line = header.lines + reader.line_num + 1


def _explain(name: str, header: _Header, wanted: list[str], target: str | None, reason: str) -> NoReturn:
    """Find what Arrow stumbled over and raise it with its place; `reason` is used if nothing is found."""
    positions = [(header.names.index(column), column) for column in wanted]
    if target is not None:
        positions.append((header.names.index(target), target))
    row, missing, first = 0, 0, ""
    for row, line, values in _rows(name, header):
        place = f"data row {row:,} (line {line:,} of the file)"
        if len(values) != len(header.names):
            raise DataFileError(
                f"{name}: {place} has {len(values)} values where the header has {len(header.names)} columns; "
                "correct that line (text that contains the separator needs quotes)"
            )
        for position, column in positions:
            value = values[position].strip()
            if value in MISSING_MARKS or (column != target and value.casefold().lstrip("+-") == "nan"):
                missing += 1
                first = first or f"{place}, column {column!r}"
            elif column != target and not _NUMBER.fullmatch(value):
                raise DataFileError(
                    f"{name}: {place}, column {column!r}: {value!r} is not a number; correct the value, "
                    "encode the column as numbers, or leave the column out (ignore=, --ignore)"
                )
            elif column != target and not np.isfinite(float(value)):
                raise DataFileError(
                    f"{name}: {place}, column {column!r}: {value!r} is not a finite number; "
                    "correct the value or remove the row"
                )
    if row == 0:
        raise DataFileError(f"{name}: the file has a header but no data rows; add rows below the header")
    if missing:
        plural = "s" if missing > 1 else ""
        raise DataFileError(
            f"{name}: {missing:,} missing value{plural}, the first in {first}; "
            "fill them in, remove those rows, or leave out a column that has many (ignore=, --ignore)"
        )
    raise DataFileError(f"{name}: {reason}")


def _quoted(names: Iterable[str], limit: int = 12) -> str:
    listed = [repr(column) for column in names]
    rest = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + rest
