"""Preprocessing as a part of the model: what a table needs before a model can read it.

Numbers are standardised if the model wants it, missing numbers are replaced by the mean of their column, and
texts become one column per category. The steps are scikit-learn's, in a pipeline that is saved as one model,
so that ``predict`` takes rows as they come.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli.screen import counted
from separatrix.data.files import Plan
from separatrix.models._light_start import import_light

_BLOCK_BYTES = 32 << 20
_BLOCK_ROWS = 1 << 15


@dataclass(frozen=True)
class Preparation:
    """The steps before the model: a choice, not yet fitted."""

    names: tuple[str, ...] | None
    texts: tuple[str, ...]
    standardize: bool
    impute: bool
    sparse: bool

    def steps(self) -> list[tuple[str, Any]]:
        """Return the steps before the model, unfitted."""
        import_light("sklearn.preprocessing")
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        numbers = [name for name in self.names or () if name not in self.texts]
        if not self.texts:
            steps: list[tuple[str, Any]] = []
            if self.impute:
                from sklearn.impute import SimpleImputer

                steps.append(("fill", SimpleImputer(keep_empty_features=True)))
            if self.standardize:
                # Subtracting a mean would fill in the zeros of a sparse matrix.
                steps.append(("scale", StandardScaler(with_mean=not self.sparse)))
            return steps
        from sklearn.compose import ColumnTransformer

        parts: list[tuple[str, Any, list[str]]] = []
        if numbers:
            scaler: Any = StandardScaler(with_mean=self.standardize, with_std=self.standardize)
            if self.impute:
                from sklearn.impute import SimpleImputer
                from sklearn.pipeline import Pipeline

                scaler = Pipeline([("fill", SimpleImputer(keep_empty_features=True)), ("scale", scaler)])
            parts.append(("numbers", scaler, numbers))
        parts.append(("texts", OneHotEncoder(handle_unknown="ignore"), list(self.texts)))
        return [("columns", ColumnTransformer(parts, verbose_feature_names_out=False))]

    def sentence(self) -> str:
        """Say what is done, for people."""
        parts = []
        if self.impute:
            parts.append(
                "missing numbers replaced by the column's mean, missing texts a category of their own"
            )
        if self.texts:
            parts.append(f"{counted(len(self.texts), 'text column')} one-hot encoded")
        count = None if self.names is None else len(self.names) - len(self.texts)
        if count is None or count:
            what = "features" if not self.texts else counted(count or 0, "number column")
            if self.standardize:
                scaled = (
                    "scaled to standard deviation 1"
                    if self.sparse
                    else "scaled to mean 0, standard deviation 1"
                )
                parts.append(f"{what} {scaled} (--no-standardize leaves them as they are)")
            else:
                parts.append(f"{what} as they are (--standardize scales them)")
        return "; ".join(parts)


def prepare(
    X: Any, names: Sequence[str] | None, *, standardize: bool | None, scale: bool, impute: bool
) -> Preparation:
    """Choose the steps for a table; `standardize` is the user's word, `scale` what the model wants."""
    sparse = hasattr(X, "indptr")
    texts: tuple[str, ...] = ()
    if hasattr(X, "schema"):
        texts = tuple(field.name for field in X.schema if str(field.type) == "string")
    wanted = (scale and not sparse) if standardize is None else standardize
    return Preparation(None if names is None else tuple(names), texts, wanted, impute, sparse)


def take(X: Any, rows: NDArray[Any]) -> Any:
    """Return rows of an array, a sparse matrix or an Arrow table."""
    return X.take(rows) if hasattr(X, "schema") else X[rows]


def fit_steps(
    steps: Sequence[tuple[str, Any]], estimator: Any, X: Any, y: Any, names: Sequence[str] | None
) -> Any:
    """Fit the steps, then the model, and return them as one; any progress bar is that of the model.

    The rows are the caller's no more: a matrix is scaled where it lies.
    """
    matrix = not hasattr(X, "schema")
    for _, step in steps:
        if type(step).__name__ == "StandardScaler":
            X = _scaled(step, X)
        else:
            X = step.fit_transform(X) if matrix else fit_columns(step, X)
    estimator.fit(X, y)
    if matrix and names is not None:
        # Kept with the model, so that `predict` finds the columns by name wherever they stand.
        first = steps[0][1] if steps else estimator
        first.feature_names_in_ = np.array(names, dtype=object)
    if not steps:
        return estimator
    from sklearn.pipeline import Pipeline

    return Pipeline([*steps, ("model", estimator)])


def _scaled(scaler: Any, X: Any) -> Any:
    """Fit a scaler and scale a matrix where it lies; a large one by blocks, without a copy of all rows."""
    if hasattr(X, "indptr") or X.dtype.kind != "f" or not X.flags.writeable or X.nbytes <= _BLOCK_BYTES:
        return scaler.fit(X).transform(X, copy=False)
    size = max(1, _BLOCK_BYTES * len(X) // X.nbytes)
    blocks = [X[start : start + size] for start in range(0, len(X), size)]
    for block in blocks:
        scaler.partial_fit(block)
    for block in blocks:
        block[...] = scaler.transform(block, copy=False)
    return X


def fit_columns(step: Any, X: Any) -> Any:
    """Fit a ColumnTransformer to a table and transform it; a long one by blocks.

    The encoder of the texts sees each category a few times at most, as it needs no more: a Python object for
    every text of a long table takes many times the memory of the table itself.
    """
    if X.num_rows <= _BLOCK_ROWS:
        return step.fit_transform(X)
    import pyarrow as pa
    from scipy import sparse

    known = {field.name: X[field.name].unique() for field in X.schema if str(field.type) == "string"}
    rows = np.arange(max(len(values) for values in known.values()))
    few = {
        name: known[name].take(rows % len(known[name])) if name in known else rows for name in X.column_names
    }
    step.fit(pa.table(few))
    for _, part, columns in step.transformers_:
        if not known.keys() & set(columns) and not isinstance(part, str):
            part.fit(X.select(columns))
    blocks = [step.transform(X.slice(start, _BLOCK_ROWS)) for start in range(0, X.num_rows, _BLOCK_ROWS)]
    return sparse.vstack(blocks, format="csr") if sparse.issparse(blocks[0]) else np.concatenate(blocks)


@contextmanager
def nameless() -> Iterator[None]:
    """Within, arrays without names do not bring a warning: their columns are in the model's order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def final_step(model: Any) -> Any:
    """Return the estimator at the end of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def parts_of(model: Any) -> list[Any]:
    """Return all steps of a model, those within a ColumnTransformer too."""
    if hasattr(model, "steps"):
        return [part for _, step in model.steps for part in parts_of(step)]
    if hasattr(model, "transformers_"):
        inner = [
            part for _, step, _ in model.transformers_ if not isinstance(step, str) for part in parts_of(step)
        ]
        return [model, *inner]
    return [model]


def plan_of(model: Any) -> Plan | None:
    """Return the columns that a model reads, or None if it knows no names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    texts: set[str] = set()
    for part in parts_of(model):
        if hasattr(part, "transformers_"):
            for _, step, columns in part.transformers_:
                if hasattr(step, "categories_"):
                    texts |= set(columns)
    return Plan(tuple(str(name) for name in names), frozenset(texts))


def fills_missing(model: Any) -> bool:
    """Tell whether a model was fitted to replace missing values."""
    from separatrix.data.files import MISSING_CATEGORY

    return any(
        hasattr(part, "statistics_")
        or any(
            MISSING_CATEGORY in values
            for values in getattr(part, "categories_", ())
            if values.dtype == object
        )
        for part in parts_of(model)
    )
