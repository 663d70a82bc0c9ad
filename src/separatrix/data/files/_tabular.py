"""Tables with named columns, whatever the format: features as one matrix, or as a table if some are text."""

from __future__ import annotations

import functools
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.data.files._columns import (
    MISSING_CATEGORY,
    NUMBER,
    Labels,
    Plan,
    choose_columns,
    labels_of,
)
from separatrix.data.files._delimited import Rows
from separatrix.data.files._origin import DataFileError, Origin, Reading
from separatrix.data.threads import in_threads

# A text column with more categories than this, and nearly as many as rows, names the rows.
_MANY_CATEGORIES = 50
# More different texts than half of the rows are too many: so many, counted at a glance, are counted exactly.
_DOUBTFUL_SHARE = 0.45
# Texts of digits and of the marks that people write into numbers, or between the parts of a date.
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[T ].*)?")
_MARKED_NUMBER = re.compile(r"[+-]?[$€£¥]?\s?[+-]?\d[\d.,'’\s]*[$€£¥%]?")
_LARGE_BYTES = 32 << 20
_MANY_TEXTS = 1 << 16  # fewer are not worth another thread
Item = TypeVar("Item")


class Table(NamedTuple):
    """What a file holds: features, the names of their columns, and the target.

    ``X`` is an array of float64; an Arrow table if some columns hold text; a CSR matrix or an array of the
    file's own type where the file holds a matrix (then ``feature_names`` is None).
    """

    X: Any
    feature_names: list[str] | None
    y: NDArray[Any] | None


class Block(NamedTuple):
    """Neighbouring rows: features, the target as the file has it, and which rows of the file these are."""

    X: Any
    y: Any
    rows: range | NDArray[np.int64]

    def row_numbers(self) -> NDArray[np.int64]:
        """Return which rows these are."""
        return _numbers_of(self.rows)


class TabularSource(ABC):
    """A file with named columns."""

    origin: Origin
    reading: Reading
    name: str
    names: list[str]
    decimal = "."

    @abstractmethod
    def kinds(self) -> dict[str, str]:
        """Tell what each column holds: "number", "text", or the name of a type that is neither."""

    @abstractmethod
    def batches(self, plan: Plan) -> Iterator[Any]:
        """Yield record batches: the features, numbers as float64, texts encoded or not, then the target."""

    def look_again(self) -> bool:
        """Tell whether `kinds` may say another thing now, having looked at too little before."""
        return False

    def rows_expected(self) -> int | None:
        """Return about how many rows the file has, from its size or what it says of itself; None: unknown."""
        return None

    def place_of(self, row: int) -> str:
        """Return how messages name a data row, counted from 1."""
        return f"data row {row:,}"

    def plan(self, target: str | None, features: Sequence[str] | None, ignore: Sequence[str]) -> Plan:
        """Choose the columns and tell numbers from texts."""
        names = choose_columns(self.name, self.names, target, features, ignore)
        kinds = self.kinds()
        declared = self.reading.categorical
        choose_columns(self.name, self.names, None, declared, ())  # are they all there?
        for name in names:
            if kinds[name] not in ("number", "text") and name not in declared:
                raise DataFileError(
                    f"{self.name}: column {name!r} holds {kinds[name]} values, neither numbers nor text; "
                    "convert "
                    f"it, or leave it out (--ignore {name!r})"
                )
        return Plan(names, frozenset(n for n in names if kinds[n] != "number" or n in declared), target)

    def blocks(self, plan: Plan) -> Iterator[Block]:
        """Yield the rows in order; missing values are refused, dropped with their rows, or kept."""
        start = 0
        for batch in self.batches(plan):
            yield self._block(batch, plan, start)
            start += batch.num_rows
        if start == 0:
            self.explain(plan, "no data rows")

    def _block(self, batch: Any, plan: Plan, start: int) -> Block:
        policy = self.reading.missing
        rows: range | NDArray[np.int64] = range(start, start + batch.num_rows)
        if isinstance(batch, Rows):
            X, y, gone = batch.X, batch.y, batch.incomplete
            if gone is not None and policy == "drop":  # they are left out already
                rows, gone = np.flatnonzero(~gone) + start, None
        else:
            X, y, gone = self._parts(batch, plan)
        if gone is not None and policy == "refuse":
            self.explain(plan, "a value is missing")
        gone = None if policy == "keep" else gone
        empty = None if y is None else _empty_labels(y)
        if empty is not None:
            if policy == "keep":
                place = self.place_of(start + int(empty.argmax()) + 1)
                raise DataFileError(
                    f"{self.name}: {place}, target column {plan.target!r}: the value is missing, and is "
                    "not filled in; leave such rows out (--missing drop), or give it"
                )
            if policy != "drop":
                self.explain(plan, "a target value is missing; --missing drop leaves such rows out")
            gone = empty if gone is None else gone | empty
        if gone is None:
            return Block(X, y, rows)
        import pyarrow as pa

        keep = pa.array(~gone)
        X = X.filter(keep) if plan.texts else X[~gone]
        if y is not None:
            y = y.filter(~gone if isinstance(y, Labels) else keep)
        return Block(X, y, _numbers_of(rows)[~gone])

    def _parts(self, batch: Any, plan: Plan) -> tuple[Any, Any, NDArray[np.bool_] | None]:
        """Return features and target of a record batch, and which rows have missing values, if any."""
        import pyarrow as pa

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        y = None if plan.target is None else Labels.of(columns.pop(plan.target))
        if plan.texts:
            fillings = {name: MISSING_CATEGORY if name in plan.texts else float("nan") for name in plan.names}
            filled = [
                columns[name].fill_null(filling) if columns[name].null_count else columns[name]
                for name, filling in fillings.items()
            ]
            X = pa.table(filled, names=list(plan.names))
            numbers = [columns[name].to_numpy(zero_copy_only=False) for name in set(fillings) - plan.texts]
        else:
            X = batch.select(plan.names).to_tensor(null_to_nan=True).to_numpy()
            numbers = [X]
        gone = np.zeros(batch.num_rows, dtype=bool)
        for array in numbers:
            if not np.isfinite(array).all():
                if np.isinf(array).any():
                    self.explain(plan, "a value is infinite")
                gone |= np.isnan(array.reshape(len(gone), -1)).any(axis=1)
        for name in plan.texts:
            if columns[name].null_count:
                gone |= columns[name].is_null().to_numpy(zero_copy_only=False)
        return X, y, gone if gone.any() else None

    def read(self, target: str | None, features: Sequence[str] | None, ignore: Sequence[str]) -> Table:
        """Read all rows."""
        plan = self.plan(target, features, ignore)
        try:
            return self._read(plan)
        except DataFileError:
            if not self.look_again() or (other := self.plan(target, features, ignore)) == plan:
                raise
        return self._read(other)

    def _read(self, plan: Plan) -> Table:
        tables: list[Any] = []
        labels: list[Any] = []
        rows: list[range | NDArray[np.int64]] = []
        X, end = np.empty((0 if plan.texts else self._rows_at_first(len(plan.names)), len(plan.names))), 0
        for block in self.blocks(plan):
            start, end = end, end + len(block.rows)
            labels.append(block.y)
            if plan.texts:
                tables.append(block.X)
                rows.append(block.rows)
            else:
                if end > len(X):  # memory that grows in place: the rows are never there twice
                    X.resize((end + end // 16, len(plan.names)), refcheck=False)
                X[start:end] = block.X
        y = None
        if plan.target is not None:
            y = labels_of(labels)
        if not end:
            raise DataFileError(f"{self.name}: every row has a missing value; --missing mean fills them in")
        if plan.texts:
            import pyarrow as pa

            table = pa.concat_tables(tables)
            self._check_categories(table, rows, plan)
            return Table(table, list(plan.names), y)
        X.resize((end, len(plan.names)), refcheck=False)
        if X.nbytes > _LARGE_BYTES:
            import pyarrow as pa

            pa.default_memory_pool().release_unused()  # what parsing needed; a fit needs other memory
        return Table(X, list(plan.names), y)

    def _rows_at_first(self, width: int) -> int:
        """Return for how many rows memory is asked for, given what is expected and the size of the file.

        Memory that is never written costs nothing, memory that grows is written twice; and a file may lie.
        """
        expected = self.rows_expected() or 0
        return min(expected + expected // 32, os.path.getsize(self.origin.path) // max(2 * width, 1))

    def _check_categories(self, table: Any, rows: Sequence[range | NDArray[np.int64]], plan: Plan) -> None:
        """Refuse text columns that are numbers with a few slips, or names of the rows."""
        names = [name for name in plan.names if name in plan.texts and name not in self.reading.categorical]
        judge = functools.partial(_doubts, decimal=self.decimal)
        columns = [table[name] for name in names]
        doubts: Iterator[tuple[bool, bool]] = map(judge, columns)
        if len(table) * len(columns) > _MANY_TEXTS:
            doubts = in_threads(lambda k: judge(columns[k]), len(columns))
        for name, column, (numbers, many) in zip(names, columns, doubts, strict=True):
            if numbers or many:
                self._check_texts(name, column, rows, numbers)
            some = np.linspace(0, len(column) - 1, min(len(column), 100)).astype(np.int64)
            if not plan.fixed and (told := _as_numbers(column.take(some).to_pylist())):
                warnings.warn(f"{self.name}: column {name!r} is taken as text: {told}", stacklevel=2)

    def _check_texts(
        self, name: str, column: Any, rows: Sequence[range | NDArray[np.int64]], may_be_numbers: bool
    ) -> None:
        """Refuse a text column that is numbers with a few slips, or names of the rows, having counted all."""
        chunks = column.dictionary_encode().unify_dictionaries().chunks
        texts = chunks[0].dictionary  # the same for all
        codes = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
        counts = np.bincount(codes, minlength=len(texts))
        if (missing := texts.index(MISSING_CATEGORY).as_py()) >= 0:
            counts[missing] = 0
        used = np.flatnonzero(counts)
        if may_be_numbers:
            strange = [k for k in used.tolist() if not _is_number(texts[k].as_py().strip(), self.decimal)]
            if strange and 2 * counts[strange].sum() < counts.sum():
                where = int(np.isin(codes, strange).argmax())
                place = self.place_of(int(np.concatenate([*map(_numbers_of, rows)])[where]) + 1)
                check_number(self.name, place, name, texts[int(codes[where])].as_py(), decimal=self.decimal)
        if len(used) > _MANY_CATEGORIES and 2 * len(used) > len(codes):
            example = _shortened(texts[int(used[0])].as_py())
            learn = (
                "to learn from what they say, use a string kernel in Python: "
                "SVC(kernel=separatrix.kernels.Spectrum(3))"
            )
            raise DataFileError(
                f"{self.name}: column {name!r} holds {len(used):,} different texts in "
                f"{len(codes):,} rows, such as {example!r}; leave it out "
                f"(--ignore {name!r}), or make each a feature (--categorical {name!r}); "
                f"{_as_numbers(texts.take(used[:100]).to_pylist()) or learn}"
            )

    def explain(self, plan: Plan, reason: str) -> NoReturn:
        """Count what is missing in the whole file and raise it with the first place; else raise `reason`."""
        missing: Counter[str] = Counter()
        rows, rows_missing, first = 0, 0, ""
        for batch in self.batches(plan):
            gone = np.zeros(batch.num_rows, dtype=bool)
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                empty = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
                missing[name] += int(empty.sum())
                if empty.any() and not first:
                    first = f"{self.place_of(rows + int(empty.argmax()) + 1)}, column {name!r}"
                if name not in plan.texts and name != plan.target:
                    values = column.to_numpy(zero_copy_only=False)
                    if np.isinf(values).any():
                        place = self.place_of(rows + int(np.isinf(values).argmax()) + 1)
                        check_number(self.name, place, name, str(values[np.isinf(values).argmax()]), plan)
                gone |= empty
            rows, rows_missing = rows + batch.num_rows, rows_missing + int(gone.sum())
        missing += Counter()  # drops the columns where nothing is missing
        if rows == 0:
            raise DataFileError(f"{self.name}: the file has no data rows")
        if missing:
            message = missing_message(missing, rows_missing, rows, first, plan)
            raise DataFileError(f"{self.name}: {message}")
        raise DataFileError(f"{self.name}: {reason}")


def _numbers_of(rows: range | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows


def _empty_labels(y: Any) -> NDArray[np.bool_] | None:
    """Tell which rows have no label; None if all have one."""
    if isinstance(y, Labels):
        return y.empty()
    mask: NDArray[np.bool_] = y.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return mask if mask.any() else None


def _doubts(column: Any, decimal: str) -> tuple[bool, bool]:
    """Tell whether most texts of a column may be numbers, and whether more than half may be different."""
    chunks = []
    for chunk in column.chunks:
        if len(chunk):
            _, ends, content = chunk.buffers()
            places = np.frombuffer(ends, dtype=np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
            chunks.append((places, np.frombuffer(content or b"", dtype=np.int8)))
    numbers, many = _hot.text_doubts(chunks, MISSING_CATEGORY, _DOUBTFUL_SHARE)
    return numbers or decimal != ".", many and len(column) > _MANY_CATEGORIES


def _as_numbers(texts: list[str]) -> str:
    """Return how dates, or numbers with marks in them, become numbers that are read; "" for other texts."""
    given = [text.strip() for text in texts if text != MISSING_CATEGORY]
    if given and all(map(_DATE.fullmatch, given)):
        return f"values such as {given[0]!r} look like dates; write numbers for them, such as days or months"
    if all(map(_MARKED_NUMBER.fullmatch, given)) and not all(map(NUMBER.fullmatch, given)):
        plain = "write them plainly, such as 1234.5, to have numbers"
        return f"values such as {given[0]!r} look like numbers with marks in them; {plain}"
    return ""


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items, the next one being made while the last one is used."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item


def _shortened(text: str, length: int = 60) -> str:
    """Return the beginning of a text that is too long for a message."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _is_number(value: str, decimal: str) -> bool:
    return (decimal == "." or "." not in value) and bool(NUMBER.fullmatch(value.replace(decimal, ".")))


def check_number(
    name: str, place: str, column: str, value: str, plan: Plan | None = None, decimal: str = "."
) -> None:
    """Refuse a value that is not a finite number."""
    if not _is_number(value, decimal):
        if decimal != "." and NUMBER.fullmatch(value):
            raise DataFileError(
                f"{name}: {place}, column {column!r}: {value!r} has a decimal point, and the first rows have "
                "decimal commas; write all numbers alike"
            )
        comma = " (a decimal comma is written as a point)" if "," in value else ""
        remedy = f", take the column as text (--categorical {column!r})"
        remedy += f", or leave it out (--ignore {column!r})"
        if plan is not None and plan.fixed:
            remedy = ", or remove the row; the model was fitted on numbers here"
        raise DataFileError(
            f"{name}: {place}, column {column!r}: {value!r} is not a number; correct the value{comma}{remedy}"
        )
    if not np.isfinite(float(value.replace(decimal, "."))):
        raise DataFileError(
            f"{name}: {place}, column {column!r}: {value!r} is not a finite number; "
            "correct the value or remove the row"
        )


def missing_message(missing: Counter[str], rows_missing: int, rows: int, first: str, plan: Plan) -> str:
    """Return what is said about missing values: counts, the first place, the remedies."""
    total = missing.total()
    plural = "s" if total > 1 else ""
    listed = ", ".join(f"{column} {count:,}" for column, count in missing.most_common(5))
    more = f" and {len(missing) - 5} more columns" if len(missing) > 5 else ""
    fill = "fill values in (--missing mean), or leave out a column that has many (--ignore)"
    if plan.fixed:
        fill = "or give them; only a model that was fitted with --missing mean fills values in"
    if plan.target in missing:  # what is to be learnt cannot be made up
        fill = "or give them; a target is never filled in"
    return (
        f"{total:,} missing value{plural}, in {rows_missing:,} of {rows:,} rows ({listed}{more}), the "
        f"first in {first}; leave such rows out (--missing drop), {fill}"
    )
