"""Records of a fit that a file keeps as arrays, and that become rows when someone looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of numbers as one array per name; a name with None in every row has no array.

    A row is a dict of Python's numbers, ten times as large as its bytes in a file.
    """

    arrays: dict[str, NDArray[Any] | None]

    def __len__(self) -> int:
        return next(len(array) for array in self.arrays.values() if array is not None)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows."""
        count = len(self)
        values = [[None] * count if array is None else array.tolist() for array in self.arrays.values()]
        return [dict(zip(self.arrays, row, strict=True)) for row in zip(*values, strict=True)]

    @classmethod
    def of(cls, rows: list[Any]) -> Columns | None:
        """Return rows of numbers as columns, or None for other lists."""
        if not rows or not all(type(row) is dict and row.keys() == rows[0].keys() for row in rows):
            return None
        arrays: dict[str, NDArray[Any] | None] = {}
        for name in rows[0]:
            values = [row[name] for row in rows]
            kinds = {type(value) for value in values}
            kind = kinds.pop()
            if type(name) is not str or kinds or kind not in (*_TYPES, type(None)):
                return None
            if kind is int and not all(-(2**63) <= value < 2**63 for value in values):
                return None
            arrays[name] = None if kind is type(None) else np.array(values, dtype=_TYPES[kind])
        return None if all(array is None for array in arrays.values()) else cls(arrays)


_TYPES = {float: np.float64, int: np.int64, bool: np.bool_}


class Records:
    """An attribute that holds a list of records, or columns that become this list at the first look."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> list[dict[str, Any]]:
        value = None if instance is None else instance.__dict__.get(self.name)
        if value is None:  # the class itself has no records
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        if isinstance(value, Columns):
            value = instance.__dict__[self.name] = value.rows()
        found: list[dict[str, Any]] = value
        return found

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value

    def __delete__(self, instance: Any) -> None:
        del instance.__dict__[self.name]
