"""scikit-learn's ``ColumnTransformer`` as names, columns and parts, and back.

Everything else that a fitted one holds (positions, slices of its output) follows from these and is computed
again, so that a file cannot contradict itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.persistence._container import ModelFileError

_PLAIN = ("sparse_threshold", "verbose_feature_names_out")


def describe_transformer(transformer: Any, describe: Callable[[Any, str], dict[str, Any]]) -> dict[str, Any]:
    """Describe a fitted ColumnTransformer; `describe` does its parts."""
    if transformer.remainder != "drop" or transformer.transformer_weights is not None:
        raise ModelFileError(
            "a ColumnTransformer with remainder or transformer_weights; name every column instead"
        )
    parts = []
    for name, part, columns in transformer.transformers_:
        if name == "remainder":
            continue
        if not (isinstance(columns, list) and all(isinstance(column, str | int) for column in columns)):
            raise ModelFileError(f"part {name!r} of a ColumnTransformer; give its columns as a list of names")
        if isinstance(part, str):
            raise ModelFileError(f"part {name!r} of a ColumnTransformer is {part!r}; leave it out")
        parts.append([name, describe(part, name), columns])
    names = getattr(transformer, "feature_names_in_", None)
    return {
        "class": "ColumnTransformer",
        "parameters": {name: getattr(transformer, name) for name in _PLAIN},
        "parts": parts,
        "features": None if names is None else [str(name) for name in names],
        "n_features": int(transformer.n_features_in_),
        "sparse_output": bool(transformer.sparse_output_),
    }


def build_transformer(node: dict[str, Any], build: Callable[[dict[str, Any]], Any]) -> Any:
    """Build the ColumnTransformer that a file describes, fitted."""
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer

    count = int(node["n_features"])
    names = None if node["features"] is None else [str(name) for name in node["features"]]
    if names is not None and len(names) != count:
        raise ModelFileError("the names of a ColumnTransformer's features do not fit their number")
    parts: list[tuple[str, Any, list[Any]]] = []
    indices: dict[str, list[int]] = {}
    outputs, start = {}, 0
    for name, part_node, columns in node["parts"]:
        part = build(part_node)
        positions = [_position(column, names, count) for column in columns]
        if name in indices or name == "remainder" or len(positions) != int(part.n_features_in_):
            raise ModelFileError(f"part {name!r} of a ColumnTransformer does not fit its columns")
        width = _width(part)
        parts.append((str(name), part, list(columns)))
        indices[str(name)] = positions
        outputs[str(name)] = slice(start, start + width)
        start += width
    if not 0.0 <= float(node["parameters"]["sparse_threshold"]) <= 1.0:
        raise ModelFileError("sparse_threshold of a ColumnTransformer is out of range")
    transformer = ColumnTransformer(
        [(name, clone(part), columns) for name, part, columns in parts],
        sparse_threshold=float(node["parameters"]["sparse_threshold"]),
        verbose_feature_names_out=bool(node["parameters"]["verbose_feature_names_out"]),
    )
    used = {position for positions in indices.values() for position in positions}
    left = [position for position in range(count) if position not in used] if count < 10**7 else []
    rest = ("remainder", "drop", [names[k] for k in left] if names is not None else left)
    transformer.transformers_ = [*parts, rest] if left else list(parts)
    transformer.n_features_in_ = count
    if names is not None:
        transformer.feature_names_in_ = np.array(names, dtype=object)
    transformer._columns = [columns for _, _, columns in parts]
    transformer._transformer_to_input_indices = {**indices, "remainder": left}
    transformer._remainder = rest
    transformer.sparse_output_ = bool(node["sparse_output"])
    transformer.output_indices_ = {**outputs, "remainder": slice(0, 0)}
    return transformer


def _position(column: Any, names: list[str] | None, count: int) -> int:
    if isinstance(column, str):
        if names is None or column not in names:
            raise ModelFileError(f"a ColumnTransformer takes the unknown column {column!r}")
        return names.index(column)
    position = int(column)
    if not -count <= position < count:
        raise ModelFileError(f"a ColumnTransformer takes column {position} of {count}")
    return position % count


def _width(part: Any) -> int:
    """Return how many columns a fitted part gives out."""
    if hasattr(part, "steps"):
        return _width(part.steps[-1][1])
    if hasattr(part, "categories_"):
        return int(sum(part._n_features_outs))
    return int(part.n_features_in_)
