"""Data of the benchmarks: drawn from a seed, bundled with scikit-learn, or read from files."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_ROWS_AT_ONCE = 10_000
_MOST_VALUES = 1_000  # of a text column that is taken as categories
_HELD_OUT = 10_000  # rows at most that a fit does not see


@dataclass(frozen=True)
class Dataset:
    """Samples and classes, with a line that says what they are."""

    X: Any
    y: np.ndarray
    about: str
    queries: Any = None  # rows to predict; None means the training rows
    test: tuple[Any, np.ndarray] | None = None  # held-out rows and what is right for them


def describe(X: Any, classes: int, kind: str) -> str:
    rows, features = X.shape
    density = f", {X.nnz / (rows * features):.2%} filled" if sparse.issparse(X) else ""
    return f"{kind} {rows:,} × {features:,}{density}, {X.dtype}, {classes} classes"


def dense(rows: int, features: int, classes: int, dtype: str, noise: float = 0.3) -> Dataset:
    """Gaussian samples, labelled by the largest of `classes` random linear scores plus noise."""
    rng = np.random.default_rng(0)
    teacher = rng.normal(size=(features, classes)) / np.sqrt(features)
    held = min(_HELD_OUT, max(rows // 5, 1))
    X, y = np.empty((rows + held, features), dtype=dtype), np.empty(rows + held, dtype=np.int64)
    for start in range(0, rows + held, _ROWS_AT_ONCE):  # by blocks: no float64 copy of the whole on the way
        block = rng.normal(size=(min(_ROWS_AT_ONCE, rows + held - start), features))
        X[start : start + len(block)] = block
        scores = block @ teacher
        y[start : start + len(block)] = (scores + noise * rng.normal(size=scores.shape)).argmax(axis=1)
    return Dataset(X[:rows], y[:rows], describe(X[:rows], classes, "Gaussian"), test=(X[rows:], y[rows:]))


def text_like(rows: int, features: int, classes: int, columns: str, entries: int = 50) -> Dataset:
    """CSR rows of unit length with about `entries` words, drawn evenly or with Zipf's law (p ~ 1 / rank)."""
    rng = np.random.default_rng(0)
    held = min(_HELD_OUT, max(rows // 5, 1))
    shape = (rows + held, entries if columns == "uniform" else entries * 7 // 5)
    if columns == "uniform":
        drawn = rng.integers(features, size=shape, dtype=np.int32)
    else:  # frequent words are drawn repeatedly and merge, so more draws give the same number of entries
        drawn = np.exp(rng.random(shape) * np.log(features)).astype(np.int32)
        drawn = rng.permutation(features).astype(np.int32)[np.minimum(drawn, features - 1)]
    X = sparse.csr_matrix(
        (np.ones(drawn.size), drawn.ravel(), np.arange(shape[0] + 1) * shape[1]), shape=(shape[0], features)
    )
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    scores = X @ rng.normal(size=(features, classes))
    y = (scores + 0.5 * rng.normal(size=scores.shape)).argmax(axis=1)
    return Dataset(
        X[:rows], y[:rows], describe(X[:rows], classes, f"text-like ({columns})"), test=(X[rows:], y[rows:])
    )


Prepare = Callable[[Any, Any], Any]
"""From rows and the rows whose mean and spread count to the rows that models see."""


def real(
    folder: Path | None, name: str, prepare: Prepare | None = None, most: int | None = None
) -> Dataset | None:
    """A stored data set; None where the folder does not have it.

    Of more than `most` rows so many are drawn. Where the set comes with test rows, they are the queries.
    """
    path = folder / f"{name}.npz" if folder is not None else None
    if path is None or not path.exists():
        return None
    with np.load(path) as stored:
        if "X" in stored:
            X, y = stored["X"], stored["y"]
            X = X if prepare is None else prepare(X, X)
            return _parted(X, y, name, most)
        (X, y), (queries, answers) = (
            (_rows(stored, f"X{part}"), stored[f"y{part}"]) for part in ("tr", "te")
        )
    if prepare is not None:
        X, queries = prepare(X, X), prepare(queries, X)
    return _fewer(X, y, name, most, queries, (queries, answers))


def _parted(X: Any, y: np.ndarray, name: str, most: int | None) -> Dataset:
    """A set without test rows: some are held out for the accuracy."""
    order = np.random.default_rng(0).permutation(X.shape[0])
    count = min(_HELD_OUT, len(order) // 5)
    held, kept = np.sort(order[:count]), np.sort(order[count:])
    return _fewer(X[kept], y[kept], name, most, None, (X[held], y[held]))


def _fewer(X: Any, y: np.ndarray, name: str, most: int | None, queries: Any, test: Any) -> Dataset:
    if most is not None and X.shape[0] > most:
        chosen = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:most])
        X, y = X[chosen], y[chosen]
    return Dataset(X, y, describe(X, len(np.unique(y)), name), queries, test)


def _rows(stored: Any, name: str) -> Any:
    """An array of a file, dense or put together from the parts of its sparse rows."""
    if name in stored:
        return stored[name]
    parts = tuple(stored[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=tuple(stored[f"{name}_shape"]))


def file(path: Path, most: int | None) -> Dataset:
    """Any file that the library reads: text columns one-hot, numbers standardised, some rows held out."""
    from separatrix.data.files import Reading, choose_target, open_source

    source = open_source(path, Reading(missing="drop"))
    X, _, y = source.read(None if source.names is None else choose_target(source.names), None, ())
    if y is None:
        raise ValueError(f"{path.name} holds no target")
    if not sparse.issparse(X):
        X = standardised(X, X) if isinstance(X, np.ndarray) else _one_hot(X)
    return _parted(X, np.unique(y, return_inverse=True)[1], path.name, most)


def _one_hot(table: Any) -> Any:
    """An Arrow table as CSR rows: a column for each value of a text column, numbers standardised."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = column.to_numpy().astype(np.float64)[:, None]
            columns.append(sparse.csr_matrix(standardised(values, values)))
        else:
            values, codes = np.unique(np.asarray(column.to_pylist(), dtype=str), return_inverse=True)
            if len(values) > _MOST_VALUES:
                raise ValueError(f"a column holds free text ({len(values):,} different values)")
            columns.append(sparse.csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes))))
    return sparse.hstack(columns, format="csr")


def one_against_rest(data: Callable[[], Dataset | None], label: Any) -> Dataset | None:
    """The same samples with two classes: `label`, and all others."""
    found = data()
    if found is None:
        return None
    test = None if found.test is None else (found.test[0], (found.test[1] == label).astype(np.int64))
    return replace(found, y=(found.y == label).astype(np.int64), test=test)


def last_feature(data: Callable[[], Dataset | None]) -> Dataset | None:
    """A regression problem: the last feature, standardised, from the others."""
    found = data()
    if found is None:
        return None
    target = found.X[:, -1].astype(np.float64)
    mean, spread = target.mean(), target.std()

    def parts(X: Any) -> tuple[Any, np.ndarray]:
        return np.ascontiguousarray(X[:, :-1]), (X[:, -1].astype(np.float64) - mean) / spread

    return Dataset(*parts(found.X), found.about, test=None if found.test is None else parts(found.test[0]))


def bundled(name: str) -> Dataset:
    """One of scikit-learn's small data sets, whole: it is its size that is looked at."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Dataset(X, y, describe(X, len(np.unique(y)), name))


def bundled_parted(name: str) -> Dataset:
    """The same, standardised, a fifth of the rows held out."""
    whole = bundled(name)
    return _parted(standardised(whole.X, whole.X), whole.y, name, None)


def bytes_to_unit(X: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Grey values 0..255 as 0..1, in single precision."""
    return X.astype(np.float32, copy=False) / np.float32(255)


def standardised(X: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Columns with the shift and scale that give `like` mean 0 and standard deviation 1, in its precision."""
    dtype = like.dtype if np.issubdtype(like.dtype, np.floating) else np.float64
    spread = like.std(axis=0, dtype=np.float64)
    return ((X - like.mean(axis=0, dtype=np.float64)) / np.where(spread > 0, spread, 1.0)).astype(dtype)
