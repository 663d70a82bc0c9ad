"""What stands before a model, as ONNX graphs: scaled numbers, filled gaps, one-hot encoded columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.persistence._container import ModelFileError
from separatrix.persistence._onnx_graph import Graph

Array = NDArray[Any]


@dataclass(frozen=True)
class Columns:
    """Named columns as inputs of their own, since ONNX has no matrix of numbers and texts."""

    names: tuple[str, ...]
    texts: frozenset[str]
    values: tuple[str, ...] = ()

    def cast(self, graph: Graph) -> Columns:
        """Add the columns, numbers in double precision."""
        values = [name if name in self.texts else graph.add("Cast", name, to=11) for name in self.names]
        return Columns(self.names, self.texts, tuple(values))

    def select(self, graph: Graph, columns: Sequence[Any]) -> str:
        """Add some columns side by side."""
        chosen = [self.values[c if isinstance(c, int) else self.names.index(str(c))] for c in columns]
        return chosen[0] if len(chosen) == 1 else graph.add("Concat", *chosen, axis=1)

    def feeds(self, table: Any, dtype: str) -> dict[str, Array]:
        """Return a table as onnxruntime takes it."""
        kinds = {name: object if name in self.texts else np.dtype(dtype) for name in self.names}
        return {name: np.asarray(table[name]).astype(kinds[name])[:, None] for name in self.names}

    def samples(self, transformer: Any, rows: int) -> Any:
        """Draw rows around what the steps know of their data, now and then with an unknown category."""
        import pyarrow as pa

        random = np.random.default_rng(0)
        columns: dict[str, Array] = {name: random.normal(size=rows) for name in self.names}
        for _, step, chosen in _parts(transformer):
            for part in [inner for _, inner in step.steps] if hasattr(step, "steps") else [step]:
                for position, name in enumerate(_named(self.names, chosen)):
                    if hasattr(part, "categories_"):
                        known = np.append(part.categories_[position], "a category that no data had")
                        columns[name] = known[random.integers(len(known), size=rows)].astype(object)
                    elif getattr(part, "scale_", None) is not None:
                        spread = columns[name] * part.scale_[position]
                        columns[name] = spread if part.mean_ is None else spread + part.mean_[position]
        return pa.table({name: pa.array(values) for name, values in columns.items()})


def columns_read(first: Any) -> Columns | None:
    """Return the columns of a pipeline that begins with texts, or None if it reads a matrix of numbers."""
    if not hasattr(first, "transformers_"):
        return None
    names = tuple(str(name) for name in getattr(first, "feature_names_in_", ()))
    texts: set[str] = set()
    for _, step, columns in _parts(first):
        for name, values in zip(columns, getattr(step, "categories_", ()), strict=False):
            if np.asarray(values).dtype.kind in "OU":
                texts.add(name if isinstance(name, str) else names[name] if names else "")
    if not texts:
        return None
    if not names:
        raise ModelFileError("text columns need names in an ONNX file: fit the pipeline on a named table")
    return Columns(names, frozenset(texts))


def add_step(graph: Graph, step: Any, value: Any) -> str:
    """Add one step before the model."""
    name = type(step).__name__
    if name == "Pipeline":
        for _, inner in step.steps:
            value = add_step(graph, inner, value)
        return str(value)
    if name == "ColumnTransformer":
        return _columns(graph, step, value)
    if name == "OneHotEncoder":
        return _one_hot(graph, step, value)
    if name == "SimpleImputer" and step.statistics_.dtype.kind == "f" and not step.add_indicator:
        if not np.isnan(step.statistics_).any():
            return graph.add("Where", graph.add("IsNaN", value), step.statistics_, value)
    if name != "StandardScaler":
        raise ModelFileError(
            "export to ONNX knows StandardScaler, SimpleImputer of numbers, OneHotEncoder and "
            f"ColumnTransformer before a model, not {name}: transform the data first and export the rest of "
            "the pipeline"
        )
    if step.mean_ is not None and step.with_mean:
        value = graph.add("Sub", value, step.mean_)
    return graph.add("Div", value, step.scale_) if step.scale_ is not None else str(value)


def _parts(transformer: Any) -> list[tuple[str, Any, Any]]:
    parts = []
    for name, step, columns in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        if isinstance(columns, slice) or (len(columns) and isinstance(columns[0], bool | np.bool_)):
            raise ModelFileError(f"ColumnTransformer's part {name!r}: give its columns as a list of names")
        if len(columns):
            parts.append((name, step, list(columns)))
    return parts


def _named(names: Sequence[str], columns: Sequence[Any]) -> list[str]:
    return [column if isinstance(column, str) else names[column] for column in columns]


def _columns(graph: Graph, step: Any, value: Any) -> str:
    """Add the parts of a ColumnTransformer side by side."""
    results = []
    for _, part, columns in _parts(step):
        if isinstance(value, Columns):
            chosen = value.select(graph, columns)
        else:
            known = list(getattr(step, "feature_names_in_", ()))
            places = [known.index(column) if isinstance(column, str) else column for column in columns]
            chosen = graph.add("Gather", value, np.array(places), axis=1)
        plain = isinstance(part, str) or (type(part).__name__ == "FunctionTransformer" and part.func is None)
        results.append(chosen if plain else add_step(graph, part, chosen))
    return results[0] if len(results) == 1 else graph.add("Concat", *results, axis=1)


def _one_hot(graph: Graph, step: Any, value: str) -> str:
    """Add a column for each category; one that is not known has zeros in all."""
    if step.handle_unknown == "error" or step.drop is not None or getattr(step, "_infrequent_enabled", False):
        raise ModelFileError(
            "export to ONNX knows OneHotEncoder(handle_unknown='ignore') without drop and rare categories; "
            f"not {step!r}"
        )
    results = []
    for position, categories in enumerate(step.categories_):
        column = graph.add("Gather", value, np.array([position]), axis=1)
        if np.asarray(categories).dtype.kind in "OU":
            known = [str(category) for category in categories]
            one = graph.add("OneHotEncoder", column, domain="ai.onnx.ml", cats_strings=known, zeros=1)
            one = graph.add("Squeeze", one, np.array([1]))
        else:
            one = graph.add("Equal", column, np.asarray(categories, dtype=np.float64))
        results.append(graph.add("Cast", one, to=11))
    return results[0] if len(results) == 1 else graph.add("Concat", *results, axis=1)
