"""Parquet, Arrow (Feather) and JSON lines, batch by batch."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from separatrix.data.files._columns import Plan
from separatrix.data.files._origin import DataFileError, Origin, Reading, open_errors
from separatrix.data.files._tabular import TabularSource

_BATCH_ROWS = 1 << 16
_BLOCK_BYTES = 4 << 20
# How Arrow says that a column of JSON lines has values of several kinds (its row is not the file's).
_CHANGED_KIND = re.compile(r"Column\(/(.*)\) changed from (\w+) to (\w+)")


class ArrowSource(TabularSource):
    """A file that Arrow reads with types of its own."""

    def __init__(self, origin: Origin, reading: Reading) -> None:
        self.origin, self.reading, self.name = origin, reading, origin.name
        with open_errors(self.name):
            self.schema = self._guarded(self._schema)
            self.names = list(self.schema.names)
        if len(set(self.names)) < len(self.names):
            raise DataFileError(f"{self.name}: two columns have the same name; give every column its own")

    def kinds(self) -> dict[str, str]:
        """Tell what each column holds, from the file's schema."""
        return {field.name: _kind(field.type) for field in self.schema}

    def batches(self, plan: Plan) -> Iterator[Any]:
        """Yield record batches with the types of the plan."""
        import pyarrow as pa

        names = [*plan.names, *([] if plan.target is None else [plan.target])]
        wanted = [self._type(name, plan) for name in names]
        with open_errors(self.name):
            reader = self._guarded(lambda: self._batches(names))
            while (batch := self._guarded(lambda: next(reader, None))) is not None:
                # Offsets that point outside of the file must not be followed, and texts must be UTF-8.
                self._guarded(lambda batch=batch: batch.validate(full=True))
                columns = [
                    self._guarded(lambda column=batch[name], kind=kind: column.cast(kind))
                    for name, kind in zip(names, wanted, strict=True)
                ]
                yield pa.record_batch(columns, names=names)

    def _type(self, name: str, plan: Plan) -> Any:
        import pyarrow as pa

        if name in plan.texts:
            return pa.string()
        if name != plan.target:
            return pa.float64()
        kind = self.schema.field(name).type
        return pa.string() if _kind(kind) == "text" else kind

    def _guarded(self, call: Any) -> Any:
        import pyarrow as pa

        try:
            return call()
        except (pa.ArrowException, ValueError, KeyError) as error:
            if isinstance(error, DataFileError | UnicodeDecodeError):
                raise
            reason = " ".join(str(error).split())
            changed = _CHANGED_KIND.search(reason)
            if changed is not None:
                column, before, now = changed.groups()
                raise DataFileError(
                    f"{self.name}: column {column!r} holds values of kind {before} and of kind {now}; write "
                    "all values of a column alike"
                ) from None
            raise DataFileError(f"{self.name}: damaged, or not what it seems: {reason}") from None

    @abstractmethod
    def _schema(self) -> Any:
        """Return the file's schema."""

    @abstractmethod
    def _batches(self, names: list[str]) -> Iterator[Any]:
        """Return the file's batches with these columns."""


class ParquetSource(ArrowSource):
    """A Parquet file."""

    def _schema(self) -> Any:
        import pyarrow.parquet as pq

        return pq.read_schema(self.origin.path)

    def rows_expected(self) -> int | None:
        """Return the number of rows, which the file tells."""
        import pyarrow.parquet as pq

        with open_errors(self.name):
            return int(self._guarded(lambda: pq.read_metadata(self.origin.path).num_rows))

    def _batches(self, names: list[str]) -> Iterator[Any]:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self.origin.path)
        batches: Iterator[Any] = file.iter_batches(_BATCH_ROWS, columns=names)
        return batches


class IpcSource(ArrowSource):
    """An Arrow file, also called Feather."""

    def _open(self) -> Any:
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(self.origin.path))

    def _schema(self) -> Any:
        return self._open().schema

    def _batches(self, names: list[str]) -> Iterator[Any]:
        reader = self._open()
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number).select(names)
            batch.validate(full=True)  # before it is sliced
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield batch.slice(start, _BATCH_ROWS)


class JsonSource(ArrowSource):
    """JSON lines: one object per line."""

    def _open(self, schema: Any = None) -> Any:
        from pyarrow import json

        parse = json.ParseOptions(newlines_in_values=False)
        if schema is not None:
            parse = json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
            )
        return json.open_json(
            self.origin.stream(), read_options=json.ReadOptions(block_size=_BLOCK_BYTES), parse_options=parse
        )

    def _schema(self) -> Any:
        with self.origin.open() as file:
            head = file.read(4096).lstrip()
        if not head:
            raise DataFileError(f"{self.name}: the file is empty; one JSON object per line is needed")
        if head.startswith(b"["):
            raise DataFileError(
                f"{self.name}: a JSON array; write one object per line instead, for example with: jq -c '.[]'"
            )
        return self._open().schema

    def _batches(self, names: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        fields = []
        for name in names:
            kind = self.schema.field(name).type
            whole = pa.types.is_integer(kind) or pa.types.is_null(kind)
            # A number that is whole in the first lines may have a fraction later.
            fields.append(pa.field(name, pa.float64() if whole and name in self._features else kind))
        return iter(self._open(pa.schema(fields)))

    def batches(self, plan: Plan) -> Iterator[Any]:
        """Yield record batches with the types of the plan."""
        self._features = set(plan.names) - plan.texts
        return super().batches(plan)


def _kind(type_: Any) -> str:
    import pyarrow as pa

    types = pa.types
    if types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_) or types.is_null(type_):
        return "number"
    if types.is_decimal(type_):
        return "number"
    if types.is_dictionary(type_):
        return _kind(type_.value_type)
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return "text"
    return str(type_)
