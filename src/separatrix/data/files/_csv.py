"""Delimited text: CSV, TSV and their kin.

Reading has two speeds. The fast way lets Arrow parse the file block by block with a declared type for every
column. If Arrow refuses the file, or a value is missing or infinite, a second and slower walk over the same
file finds the place, so that the message can name row, line, column and value.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, NamedTuple, NoReturn

from separatrix.data.files._columns import MISSING_MARKS, NUMBER, Plan
from separatrix.data.files._origin import DataFileError, Origin, Reading, open_errors, quoted
from separatrix.data.files._tabular import TabularSource, check_number, missing_message

_BLOCK_BYTES = 4 << 20
_LOOK_BYTES = 1 << 20
_DELIMITERS = ",\t;|"
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class _Header(NamedTuple):
    """The names on top of a file, and the number of lines before the data."""

    names: list[str]
    delimiter: str
    lines: int


class CsvSource(TabularSource):
    """A file of delimited text."""

    def __init__(self, origin: Origin, reading: Reading) -> None:
        self.origin, self.reading, self.name = origin, reading, origin.name
        with open_errors(self.name):
            self.header = _read_header(origin, reading)
        self.names = self.header.names

    def kinds(self) -> dict[str, str]:
        """Tell from the first block what each column holds: number or text."""
        import pyarrow as pa

        with open_errors(self.name):
            try:
                schema = self._open({}, list(range(len(self.names))), _LOOK_BYTES).schema
            except pa.ArrowInvalid as error:
                self.explain(Plan(()), str(error))
        texts = (pa.types.is_string, pa.types.is_temporal)
        return {
            name: "text" if any(is_kind(field.type) for is_kind in texts) else "number"
            for name, field in zip(self.names, schema, strict=True)
        }

    def batches(self, plan: Plan) -> Iterator[Any]:
        """Yield record batches: the features of the plan, numbers as float64, then the target as text."""
        import pyarrow as pa

        types = {name: pa.string() if name in plan.texts else pa.float64() for name in plan.names}
        if plan.target is not None:
            types[plan.target] = pa.string()
        with open_errors(self.name):
            try:
                positions = [self.names.index(name) for name in types]
                reader = self._open(types, positions, _BLOCK_BYTES)
                for batch in reader:
                    yield batch.rename_columns(list(types))
            except pa.ArrowInvalid as error:
                self.explain(plan, str(error))

    def explain(self, plan: Plan, reason: str) -> NoReturn:
        """Raise what is wrong with the file, with its place."""
        with open_errors(self.name):
            _explain(self, plan, reason)

    def place_of(self, row: int) -> str:
        """Return how messages name a data row."""
        with open_errors(self.name):
            line = next((line for number, line, _ in _rows(self) if number == row), None)
        return f"data row {row:,}" + ("" if line is None else f" (line {line:,} of the file)")

    def _open(self, types: dict[str, Any], positions: list[int], block_size: int) -> Any:
        from pyarrow import csv as arrow_csv

        # Arrow tells columns apart by name, so those without one get one that no file has.
        distinct = [column or f"\0unnamed {position}" for position, column in enumerate(self.names)]
        return arrow_csv.open_csv(
            self.origin.stream(),
            read_options=arrow_csv.ReadOptions(
                column_names=distinct, skip_rows=self.header.lines, block_size=block_size
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.header.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={distinct[self.names.index(name)]: kind for name, kind in types.items()},
                include_columns=[distinct[position] for position in positions],
                null_values=list(MISSING_MARKS),
                true_values=[],
                false_values=[],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def _open_text(origin: Origin) -> IO[str]:
    return io.TextIOWrapper(origin.open(), encoding="utf-8-sig", newline="")


def _read_header(origin: Origin, reading: Reading) -> _Header:
    name = origin.name
    with _open_text(origin) as text:
        blank, line = 0, text.readline()
        while line and not line.strip():
            blank, line = blank + 1, text.readline()
        if not line:
            raise DataFileError(f"{name}: the file is empty; a header line and data rows are needed")
        delimiter = reading.delimiter or _delimiter(line)
        # A quoted name may contain a line break, so the header can go on beyond its first line.
        reader = csv.reader((part for rest in ([line], text) for part in rest), delimiter=delimiter)
        names = [column.strip() for column in next(reader)]
        lines = blank + reader.line_num
    if not reading.header:
        return _Header([str(number) for number in range(1, len(names) + 1)], delimiter, blank)
    repeated = sorted({column for column in names if column and names.count(column) > 1})
    if repeated:
        advice = ""
        if all(NUMBER.fullmatch(column) for column in names):
            advice = " (if the first line is data already: --no-header, header=False)"
        raise DataFileError(
            f"{name}: the header names {quoted(repeated)} more than once; give every column its own "
            f"name{advice}"
        )
    return _Header(names, delimiter, lines)


def _delimiter(line: str) -> str:
    """Return the mark that separates most values, in doubt the earliest of comma, tab, semicolon, bar."""
    bare = _QUOTED.sub("", line)
    return max(_DELIMITERS, key=bare.count)


def _rows(source: CsvSource) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (data row, line in the file, values), both counted from 1."""
    header = source.header
    with _open_text(source.origin) as text:
        for _ in range(header.lines):
            text.readline()
        reader = csv.reader(text, delimiter=header.delimiter)
        row, line = 0, header.lines + 1
        for values in reader:
            if values:
                row += 1
                yield row, line, values
            line = header.lines + reader.line_num + 1


def _explain(source: CsvSource, plan: Plan, reason: str) -> NoReturn:
    """Find what the fast way stumbled over and raise it with its place; else raise `reason`."""
    name, header, target = source.name, source.header, plan.target
    columns = [*plan.names, *([] if target is None else [target])]
    positions = [(header.names.index(column), column) for column in columns]
    row, rows_missing, first = 0, 0, ""
    missing: Counter[str] = Counter()
    for row, line, values in _rows(source):
        place = f"data row {row:,} (line {line:,} of the file)"
        if len(values) != len(header.names):
            raise DataFileError(
                f"{name}: {place} has {len(values)} values where the header has {len(header.names)} columns; "
                "correct that line (text that contains the separator needs quotes)"
            )
        before = missing.total()
        for position, column in positions:
            value = values[position].strip()
            number = column != target and column not in plan.texts
            if value in MISSING_MARKS or (number and value.casefold().lstrip("+-") == "nan"):
                missing[column] += 1
                first = first or f"{place}, column {column!r}"
            elif number:
                check_number(name, place, column, value)
        rows_missing += missing.total() > before
    if row == 0:
        raise DataFileError(f"{name}: the file has a header but no data rows; add rows below the header")
    if missing:
        raise DataFileError(f"{name}: {missing_message(missing, rows_missing, row, first)}")
    raise DataFileError(f"{name}: {reason}")
