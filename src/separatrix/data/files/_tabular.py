"""Tables with named columns, whatever the format: features as one matrix, or as a table if some are text."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.data.files._columns import (
    MISSING_CATEGORY,
    NUMBER,
    Labels,
    Plan,
    choose_columns,
    decoded,
    encoded,
    labels_of,
)
from separatrix.data.files._delimited import Numbers
from separatrix.data.files._origin import DataFileError, Origin, Reading

# A text column with more categories than this, and nearly as many as rows, names the rows.
_MANY_CATEGORIES = 50
# How numbers begin: with none of the other letters and marks (a blank may be one of any alphabet).
_NUMBER_BEGINS = r"^(?:[^!-~]|[-+.,0-9iInN])"
_LARGE_BYTES = 32 << 20
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
    rows: NDArray[np.int64]


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
        for block in self._blocks(plan):
            yield block._replace(X=decoded(block.X)) if plan.texts else block

    def _blocks(self, plan: Plan) -> Iterator[Block]:
        """Yield the rows in order, each different text once."""
        start = 0
        for batch in self.batches(plan):
            yield self._block(batch, plan, start)
            start += batch.num_rows
        if start == 0:
            self.explain(plan, "no data rows")

    def _block(self, batch: Any, plan: Plan, start: int) -> Block:
        policy = self.reading.missing
        rows = np.arange(start, start + batch.num_rows)
        columns, values, y = {}, None, None
        if isinstance(batch, Numbers):
            values, y = batch
            numbers = [values]
        else:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            y = None if plan.target is None else Labels.of(columns.pop(plan.target))
        gone = np.zeros(batch.num_rows, dtype=bool)
        if plan.texts:
            names = [name for name in plan.names if name not in plan.texts]
            numbers = [columns[name].to_numpy(zero_copy_only=False) for name in names]
        elif values is None:
            values = batch.select(plan.names).to_tensor(null_to_nan=True).to_numpy()
            numbers = [values]
        for array in numbers:
            if not np.isfinite(array).all():
                if np.isinf(array).any() or policy == "refuse":
                    self.explain(plan, "a value is missing or infinite")
                gone |= np.isnan(array.reshape(len(rows), -1)).any(axis=1)
        for name in plan.texts:
            if columns[name].null_count:
                if policy == "refuse":
                    self.explain(plan, "a value is missing")
                gone |= columns[name].is_null().to_numpy(zero_copy_only=False)
        keep = None if policy == "keep" or not gone.any() else ~gone
        if y is not None:
            empty = _empty_labels(y)
            if empty is not None:
                if policy == "keep":
                    place = self.place_of(start + int(empty.argmax()) + 1)
                    raise DataFileError(
                        f"{self.name}: {place}, target column {plan.target!r}: the value is missing, and is "
                        "not filled in; leave such rows out (--missing drop), or give it"
                    )
                if policy != "drop":
                    self.explain(plan, "a target value is missing; --missing drop leaves such rows out")
                keep = ~empty if keep is None else keep & ~empty
        if values is not None and keep is None:
            return Block(values, y, rows)
        import pyarrow as pa

        if keep is not None:
            rows = rows[keep]
            y = y if y is None else y.filter(keep if isinstance(y, Labels) else pa.array(keep))
        if values is not None:
            return Block(values[keep], y, rows)
        filled = [
            encoded(columns[name]) if name in plan.texts else _filled(columns[name]) for name in plan.names
        ]
        table = pa.table(filled, names=list(plan.names))
        return Block(table if keep is None else table.filter(pa.array(keep)), y, rows)

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
        rows: list[NDArray[np.int64]] = []
        X, end = np.empty((0 if plan.texts else self._rows_at_first(len(plan.names)), len(plan.names))), 0
        for block in self._blocks(plan):
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

            table = pa.concat_tables(tables).unify_dictionaries()
            self._check_categories(table, rows, plan)
            return Table(decoded(table), list(plan.names), y)
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

    def _check_categories(self, table: Any, rows: Sequence[NDArray[np.int64]], plan: Plan) -> None:
        """Refuse text columns that are numbers with a few slips, or names of the rows."""
        import pyarrow.compute as pc

        for name in plan.names:
            if name not in plan.texts or name in self.reading.categorical:
                continue
            chunks = table[name].chunks
            texts = chunks[0].dictionary  # the same for all
            numbers = pc.match_substring_regex(texts, _NUMBER_BEGINS).to_numpy(zero_copy_only=False)
            if not numbers.any() and len(texts) <= _MANY_CATEGORIES:
                continue
            codes = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
            counts = np.bincount(codes, minlength=len(texts))
            if (missing := texts.index(MISSING_CATEGORY).as_py()) >= 0:
                counts[missing] = 0
            used = np.flatnonzero(counts)
            if 2 * counts[numbers].sum() > counts.sum():
                strange = [k for k in used.tolist() if not _is_number(texts[k].as_py().strip(), self.decimal)]
                if strange and 2 * counts[strange].sum() < counts.sum():
                    where = int(np.isin(codes, strange).argmax())
                    place = self.place_of(int(np.concatenate(rows)[where]) + 1)
                    check_number(self.name, place, name, texts[int(codes[where])].as_py(), self.decimal)
            if len(used) > _MANY_CATEGORIES and 2 * len(used) > table.num_rows:
                example = _shortened(texts[int(used[0])].as_py())
                raise DataFileError(
                    f"{self.name}: column {name!r} holds {len(used):,} different texts in "
                    f"{table.num_rows:,} rows, such as {example!r}; leave it out "
                    f"(--ignore {name!r}), or make each a feature (--categorical {name!r}); to learn from "
                    "what they say, use a string kernel in Python: SVC(kernel=separatrix.kernels.Spectrum(3))"
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
                        check_number(self.name, place, name, str(values[np.isinf(values).argmax()]))
                gone |= empty
            rows, rows_missing = rows + batch.num_rows, rows_missing + int(gone.sum())
        missing += Counter()  # drops the columns where nothing is missing
        if rows == 0:
            raise DataFileError(f"{self.name}: the file has no data rows")
        if missing:
            message = missing_message(missing, rows_missing, rows, first, plan.target)
            raise DataFileError(f"{self.name}: {message}")
        raise DataFileError(f"{self.name}: {reason}")


def _empty_labels(y: Any) -> NDArray[np.bool_] | None:
    """Tell which rows have no label; None if all have one."""
    if isinstance(y, Labels):
        return y.empty()
    mask: NDArray[np.bool_] = y.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return mask if mask.any() else None


def _filled(column: Any) -> Any:
    """Return a column of numbers without nulls: NaN instead."""
    return column.fill_null(float("nan")) if column.null_count else column


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


def check_number(name: str, place: str, column: str, value: str, decimal: str = ".") -> None:
    """Refuse a value that is not a finite number."""
    if not _is_number(value, decimal):
        if decimal != "." and NUMBER.fullmatch(value):
            raise DataFileError(
                f"{name}: {place}, column {column!r}: {value!r} has a decimal point, and the first rows have "
                "decimal commas; write all numbers alike"
            )
        comma = " (a decimal comma is written as a point)" if "," in value else ""
        raise DataFileError(
            f"{name}: {place}, column {column!r}: {value!r} is not a number; correct the value{comma}, "
            "take the "
            f"column as text (--categorical {column!r}), or leave it out (--ignore {column!r})"
        )
    if not np.isfinite(float(value.replace(decimal, "."))):
        raise DataFileError(
            f"{name}: {place}, column {column!r}: {value!r} is not a finite number; "
            "correct the value or remove the row"
        )


def missing_message(
    missing: Counter[str], rows_missing: int, rows: int, first: str, target: str | None
) -> str:
    """Return what is said about missing values: counts, the first place, the remedies."""
    total = missing.total()
    plural = "s" if total > 1 else ""
    listed = ", ".join(f"{column} {count:,}" for column, count in missing.most_common(5))
    more = f" and {len(missing) - 5} more columns" if len(missing) > 5 else ""
    fill = "fill values in (--missing mean), or leave out a column that has many (--ignore)"
    if target in missing:  # what is to be learnt cannot be made up
        fill = "or give them; a target is never filled in"
    return (
        f"{total:,} missing value{plural}, in {rows_missing:,} of {rows:,} rows ({listed}{more}), the "
        f"first in {first}; leave such rows out (--missing drop), {fill}"
    )
