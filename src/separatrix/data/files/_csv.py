"""Delimited text: CSV, TSV and their kin.

Reading has three speeds. The file is read in parts of whole lines, the next one while all threads parse the
last. Plain parts are parsed by the core (`_delimited`); others by Arrow, with a declared type for every
column, and so is all that follows a quotation mark that may hide a line end. If Arrow refuses the file, or a
value is missing or infinite, another and slower walk over the same file finds the place, so that the message
can name row, line, column and value.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import os
import re
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, NamedTuple, NoReturn

from separatrix.data.files._columns import MISSING_MARKS, NUMBER, Plan, may_be_data
from separatrix.data.files._delimited import Layout, Rows, parse_rows, text_columns, whole_lines
from separatrix.data.files._origin import DataFileError, Origin, Reading, open_errors, quoted
from separatrix.data.files._tabular import TabularSource, ahead, check_number, missing_message

# Of the stream, of the first look at the columns' types and of another where that was too short, and of the
# parts that all threads parse.
_BLOCK_BYTES = 4 << 20
_GLANCE_BYTES = 1 << 15
_LOOK_BYTES = 1 << 20
_TASK_BYTES = 1 << 20
_PART_BYTES = min(8 * (os.cpu_count() or 1), 16) * _TASK_BYTES  # a few tasks for each thread; two are held
_LONGEST_LINE = 1 << 28
_DELIMITERS = ",\t;|"
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_LOOK_ROWS, _LOOK_VALUES = 200, 100_000


class _Header(NamedTuple):
    """The names on top of a file, the lines and bytes before the data, and the mark of decimals."""

    names: list[str]
    delimiter: str
    lines: int
    size: int
    decimal: str


class CsvSource(TabularSource):
    """A file of delimited text."""

    def __init__(self, origin: Origin, reading: Reading) -> None:
        self.origin, self.reading, self.name = origin, reading, origin.name
        with open_errors(self.name):
            self.header = _read_header(origin, reading)
        self.names, self.decimal = self.header.names, self.header.decimal
        # Is there something to work ahead on?
        self._long = origin.compression is not None or os.path.getsize(origin.path) > _PART_BYTES
        self._look = _GLANCE_BYTES
        self._quoted = self._hinted = False  # has a quotation mark appeared, and was it pointed out?

    def kinds(self) -> dict[str, str]:
        """Tell from the first block what each column holds: number or text."""
        with open_errors(self.name):
            texts = self._texts_at_first()
        if texts is not None:
            return {name: "text" if text else "number" for name, text in zip(self.names, texts, strict=True)}
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        with open_errors(self.name):
            try:
                with self.origin.open() as file:
                    file.read(self.header.size)
                    options = self._options({}, list(range(len(self.names))), self._look)
                    parts = iter(lambda: file.read(_GLANCE_BYTES), b"")
                    schema = arrow_csv.open_csv(_Rest(parts), **options).schema
            except pa.ArrowInvalid as error:
                if self.look_again():
                    return self.kinds()
                if _straddles(error) and self._look < _LONGEST_LINE:
                    self._look *= 8
                    return self.kinds()
                self.explain(Plan(()), str(error))
        of_text = (pa.types.is_string, pa.types.is_temporal)
        return {
            name: "text" if any(is_kind(field.type) for is_kind in of_text) else "number"
            for name, field in zip(self.names, schema, strict=True)
        }

    def _texts_at_first(self) -> list[bool] | None:
        """Tell which columns hold texts in the first lines; None where that is for Arrow to find out."""
        size = self._look
        while self.header.decimal == ".":
            with self.origin.open() as file:
                file.read(self.header.size)
                head = file.read(size + 1)
            end = len(head) if len(head) <= size else max(head.rfind(b"\n"), head.rfind(b"\r")) + 1
            if end:
                return text_columns(head[:end], len(self.names), self.header.delimiter, self.reading.quote)
            if size >= _LONGEST_LINE:
                break
            size *= 8
        return None

    def look_again(self) -> bool:
        """Look at more of the file when the types of its columns are asked for again."""
        longer = self._look < _LOOK_BYTES
        self._look = max(self._look, _LOOK_BYTES)
        return longer

    def rows_expected(self) -> int | None:
        """Return the file's size by that of its first lines."""
        if self.origin.compression is not None:
            return None
        with open_errors(self.name), self.origin.open() as file:
            file.seek(self.header.size)
            head = file.read(_LOOK_BYTES)
        lines = head.count(b"\n") or head.count(b"\r")
        return (os.path.getsize(self.origin.path) - self.header.size) * lines // max(len(head), 1)

    def batches(self, plan: Plan) -> Iterator[Any]:
        """Yield rows as the core reads them, record batches where that is for Arrow."""
        with open_errors(self.name):
            row, parsed = 0, self._parsed(plan)
            for batch in ahead(parsed) if self._long else parsed:
                if self._quoted and not isinstance(batch, Rows):
                    self._hint(batch, row)
                row += batch.num_rows
                yield batch

    def explain(self, plan: Plan, reason: str) -> NoReturn:
        """Raise what is wrong with the file, with its place."""
        with open_errors(self.name):
            _explain(self, plan, reason)

    def place_of(self, row: int) -> str:
        """Return how messages name a data row."""
        with open_errors(self.name):
            line = next((line for number, line, _ in _rows(self) if number == row), None)
        return f"data row {row:,}" + ("" if line is None else f" (line {line:,} of the file)")

    def _parsed(self, plan: Plan) -> Iterator[Any]:
        """Yield the rows, part by part, the next part being read while one is parsed."""
        layout = None
        if self.decimal == ".":
            drop = self.reading.missing == "drop"
            layout = Layout.of(self.names, plan, self.header.delimiter, self.reading.quote, drop)
        with self.origin.open() as file:
            file.read(self.header.size)
            lines = self._lines(file)
            parts: Any = ahead(lines) if self._long else lines
            with contextlib.closing(parts):
                for text in parts:
                    parsed = None if layout is None else parse_rows(text, layout)
                    if parsed is not None:
                        yield from parsed
                    elif self._hides_line_ends(text):
                        self._quoted = True
                        with contextlib.closing(_Rest(itertools.chain([text], parts))) as rest:
                            yield from self._by_arrow(rest, plan)
                    elif bytes(text[:4096]).strip() or bytes(text).strip():
                        yield from self._by_arrow(text, plan)

    def _hides_line_ends(self, text: memoryview) -> bool:
        """Tell whether a quoted value may begin here and end in another line."""
        if self.reading.quote is None:
            return False
        mark, delimiter = self.reading.quote.encode(), self.header.delimiter.encode()
        return mark in bytes(text) and not whole_lines(text, mark, delimiter)

    def _lines(self, file: IO[bytes]) -> Iterator[memoryview]:
        """Yield the rest of a file in parts that end with a line; each stays until the next but one."""
        # Two buffers for all parts, one being read while the other is used: fresh memory costs as much as the
        # reading. What is kept is copied.
        whole_file = None if self.origin.compression else os.path.getsize(self.origin.path) + 1
        buffer, held = bytearray(min(_PART_BYTES, whole_file or _PART_BYTES)), 0
        other = bytearray()
        while size := file.readinto(memoryview(buffer)[held:]):  # type: ignore[attr-defined]
            held += size
            at = buffer.rfind(b"\n", 0, held) + 1
            at = max(at, buffer.rfind(b"\r", at, held) + 1)
            if at:
                yield memoryview(buffer)[:at]
                room = len(buffer) if self._long else held - at + 1  # a short file is at its end here
                if len(other) < room:
                    other = bytearray(room)
                other[: held - at] = memoryview(buffer)[at:held]
                buffer, other, held = other, buffer, held - at
            elif held > _LONGEST_LINE:
                raise _too_long(self.name)
            elif held == len(buffer):
                buffer = buffer + bytes(len(buffer))
        if held:
            yield memoryview(buffer)[:held]

    def _by_arrow(self, text: memoryview | _Rest, plan: Plan) -> Iterator[Any]:
        """Yield what Arrow finds in whole lines, by all threads, or in a stream."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        types = {name: pa.string() if name in plan.texts else pa.float64() for name in plan.names}
        if plan.target is not None:
            types[plan.target] = pa.string()
        where = {name: position for position, name in enumerate(self.names)}
        positions = [where[name] for name in types]
        try:
            if isinstance(text, _Rest):
                batches = iter(arrow_csv.open_csv(text, **self._options(types, positions, _BLOCK_BYTES)))
            else:
                batches = self._lines_by_arrow(text, self._options(types, positions, _TASK_BYTES))
            yield from (batch.rename_columns(list(types)) for batch in batches)
        except pa.ArrowInvalid as error:
            self.explain(plan, str(error))

    def _lines_by_arrow(self, text: memoryview, options: dict[str, Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        options["parse_options"].newlines_in_values = False
        # Memory of Arrow's own: of ours, its threads would ask Python for leave to let go, even while a
        # failed program ends, and abort it.
        content = pa.allocate_buffer(len(text))
        memoryview(content).cast("B")[:] = text
        try:
            table = arrow_csv.read_csv(pa.BufferReader(content), **options)
        except pa.ArrowInvalid as error:
            if not _straddles(error):
                raise
            options["read_options"].block_size = len(text)
            table = arrow_csv.read_csv(pa.BufferReader(content), **options)
        return iter(table.to_batches())

    def _options(self, types: dict[str, Any], positions: list[int], block_size: int) -> dict[str, Any]:
        """Return how Arrow reads what follows the header."""
        from pyarrow import csv as arrow_csv

        # Arrow tells columns apart by name, so those without one get one that no file has.
        distinct = [column or f"\0unnamed {position}" for position, column in enumerate(self.names)]
        chosen = [distinct[position] for position in positions]
        quote = self.reading.quote
        return {
            "read_options": arrow_csv.ReadOptions(column_names=distinct, block_size=block_size),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.header.delimiter,
                quote_char=quote or False,
                newlines_in_values=quote is not None,
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict(zip(chosen, types.values(), strict=False)),  # none: to be found out
                include_columns=chosen,
                decimal_point=self.header.decimal,
                null_values=list(MISSING_MARKS),
                true_values=[],
                false_values=[],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        }

    def _hint(self, batch: Any, row: int) -> None:
        """Point out texts that hold whole lines: a quotation mark that is never closed swallows them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._hinted:
            return
        pattern = f"\\n[^\\n]*{re.escape(self.header.delimiter)}"
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not pa.types.is_string(column.type):
                continue
            found = pc.match_substring_regex(column, pattern).fill_null(False).to_numpy(zero_copy_only=False)
            if found.any():
                self._hinted = True
                warnings.warn(
                    f"{self.name}: {self.place_of(row + int(found.argmax()) + 1)}, column {name!r}: a quoted "
                    "text goes on over line ends and separators; if its quotation mark is just a character, "
                    "use --quote none (quote=None)",
                    stacklevel=2,
                )
                return


def _too_long(name: str) -> DataFileError:
    return DataFileError(f"{name}: a line has more than {_LONGEST_LINE:,} bytes; not a table?")


def _straddles(error: Exception) -> bool:
    """Tell whether a line was longer than the block that Arrow read."""
    return "straddl" in str(error)


class _Rest(io.RawIOBase):
    """What is left of a file, part by part. Another thread may be reading when it is closed."""

    def __init__(self, parts: Iterator[memoryview | bytes]) -> None:
        self.parts, self.part, self.lock = parts, memoryview(b""), threading.Lock()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view, filled = memoryview(buffer).cast("B"), 0
        with self.lock:
            while filled < len(view):  # as much as asked for: Arrow takes what comes at a time for a block
                if not self.part:
                    if (part := next(self.parts, None)) is None:
                        break
                    self.part = memoryview(part)
                taken = self.part[: len(view) - filled]
                view[filled : filled + len(taken)] = taken
                self.part, filled = self.part[len(taken) :], filled + len(taken)
        return filled

    def close(self) -> None:
        """Read no more."""
        with self.lock:
            self.parts, self.part = iter(()), memoryview(b"")


def _open_text(origin: Origin) -> IO[str]:
    return io.TextIOWrapper(origin.open(), encoding="utf-8-sig", newline="")


def _read_header(origin: Origin, reading: Reading) -> _Header:
    name = origin.name
    size = 3 if origin.head.startswith(codecs.BOM_UTF8) else 0
    with _open_text(origin) as text:
        lines = _Lines(text, name)
        line = next((line for line in lines if line.strip()), None)
        if line is None:
            raise DataFileError(f"{name}: the file is empty; a header line and data rows are needed")
        blank, before = lines.count - 1, lines.size - len(line.encode())
        delimiter = reading.delimiter or _delimiter(line, reading.quote)
        # A quoted name may contain a line break, so the header can go on beyond its first line.
        reader = csv.reader(itertools.chain([line], lines), **_dialect(delimiter, reading))
        names = [column.strip() for column in next(reader)]
        count, end = lines.count, lines.size
        decimal = _decimal(name, reader, delimiter)
    if not reading.header:
        numbered = [str(number) for number in range(1, len(names) + 1)]
        return _Header(numbered, delimiter, blank, size + before, decimal)
    repeated = sorted(column for column, count in Counter(names).items() if column and count > 1)
    if repeated:
        advice = ""
        if may_be_data(names):
            advice = " (if the first line is data already: --no-header, header=False)"
        raise DataFileError(
            f"{name}: the header names {quoted(repeated)} more than once; give every column its own "
            f"name{advice}"
        )
    _hint_at_data(name, names)
    return _Header(names, delimiter, count, size + end, decimal)


def _decimal(file: str, rows: Iterator[list[str]], delimiter: str) -> str:
    """Return the mark before decimals: a comma if the first rows have such numbers and none with a point."""
    if delimiter == ",":
        return "."
    with contextlib.suppress(csv.Error):  # the reader that follows tells what is wrong, and where
        values: list[str] = []
        for row in itertools.islice(rows, _LOOK_ROWS):
            values += map(str.strip, row)
            if len(values) > _LOOK_VALUES:
                break
        comma = next((value for value in values if _DECIMAL_COMMA.fullmatch(value)), None)
        if comma is not None and not any("." in value and NUMBER.fullmatch(value) for value in values):
            warnings.warn(f"{file}: numbers are read with a decimal comma, such as {comma}", stacklevel=2)
            return ","
    return "."


def _hint_at_data(file: str, names: list[str]) -> None:
    """Point out a first line that looks like a row: numbers, but none that count the columns or ascend."""
    numbers = [column for column in names if NUMBER.fullmatch(column)]
    if len(numbers) < len(names) - 1 or numbers in ([], *([str(first)] for first in (0, 1))):
        return
    ascend = all(float(before) < float(after) for before, after in itertools.pairwise(numbers))
    if not ascend or len(numbers) == 1:
        warnings.warn(
            f"{file}: the first line is taken for the names of the columns, and looks like data "
            f"({quoted(names, 3)}); if it is a row, use --no-header (header=False)",
            stacklevel=2,
        )


class _Lines:
    """Lines of a text, and how many lines and bytes were taken."""

    def __init__(self, text: IO[str], name: str) -> None:
        self.text, self.name, self.count, self.size = text, name, 0, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.text.readline(_LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        if len(line) > _LONGEST_LINE:
            raise _too_long(self.name)
        self.count, self.size = self.count + 1, self.size + len(line.encode())
        return line


def _dialect(delimiter: str, reading: Reading) -> dict[str, Any]:
    """Return how Python's reader is told about separator and quotation mark."""
    if reading.quote is None:
        return {"delimiter": delimiter, "quoting": csv.QUOTE_NONE}
    return {"delimiter": delimiter, "quotechar": reading.quote}


def _delimiter(line: str, quote: str | None) -> str:
    """Return the mark that separates most values, in doubt the earliest of comma, tab, semicolon, bar."""
    mark = re.escape(quote or "")
    bare = re.sub(f"{mark}(?:[^{mark}]|{mark}{mark})*{mark}", "", line) if quote else line
    return max(_DELIMITERS.replace(quote or "", ""), key=bare.count)


def _rows(source: CsvSource) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (data row, line in the file, values), both counted from 1."""
    header = source.header
    with _open_text(source.origin) as text:
        for _ in range(header.lines):
            text.readline()
        reader = csv.reader(text, **_dialect(header.delimiter, source.reading))
        row, line = 0, header.lines + 1
        for values in reader:
            if values:
                row += 1
                yield row, line, values
            line = header.lines + reader.line_num + 1


def _swallowed(values: list[str]) -> str:
    """Return what to say about a row that a quotation mark has made longer than its line."""
    if not any("\n" in value for value in values):
        return ""
    return "; here a quotation mark swallows line ends: --quote none, quote=None, takes it as text"


def _explain(source: CsvSource, plan: Plan, reason: str) -> NoReturn:
    """Find what the fast way stumbled over and raise it with its place; else raise `reason`."""
    name, header, target = source.name, source.header, plan.target
    columns = [*plan.names, *([] if target is None else [target])]
    where = {column: position for position, column in enumerate(header.names)}
    positions = [(where[column], column) for column in columns]
    row, rows_missing, first = 0, 0, ""
    missing: Counter[str] = Counter()
    for row, line, values in _rows(source):
        place = f"data row {row:,} (line {line:,} of the file)"
        if len(values) != len(header.names):
            raise DataFileError(
                f"{name}: {place} has {len(values)} values where the header has {len(header.names)} columns; "
                f"correct that line (text that contains the separator needs quotes{_swallowed(values)})"
            )
        before = missing.total()
        for position, column in positions:
            value = values[position].strip()
            number = column != target and column not in plan.texts
            if value in MISSING_MARKS or (number and value.casefold().lstrip("+-") == "nan"):
                missing[column] += 1
                first = first or f"{place}, column {column!r}"
            elif number:
                check_number(name, place, column, value, plan, header.decimal)
        rows_missing += missing.total() > before
    if row == 0:
        raise DataFileError(f"{name}: the file has a header but no data rows; add rows below the header")
    if missing:
        raise DataFileError(f"{name}: {missing_message(missing, rows_missing, row, first, plan)}")
    raise DataFileError(f"{name}: {reason}")
