"""Data of the benchmarks: drawn from a seed, or real ones from a folder."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class Dataset:
    """Samples and classes, with a line that says what they are."""

    X: Any
    y: np.ndarray
    about: str
    queries: Any = None  # rows to predict; None means the training rows


def describe(X: Any, classes: int, kind: str) -> str:
    rows, features = X.shape
    density = f", {X.nnz / (rows * features):.2%} filled" if sparse.issparse(X) else ""
    return f"{kind} {rows:,} × {features:,}{density}, {X.dtype}, {classes} classes"


def dense(rows: int, features: int, classes: int, dtype: str, noise: float = 0.3) -> Dataset:
    """Gaussian samples, labelled by the largest of `classes` random linear scores plus noise."""
    rng = np.random.default_rng(0)
    teacher = rng.normal(size=(features, classes)) / np.sqrt(features)
    X, y = np.empty((rows, features), dtype=dtype), np.empty(rows, dtype=np.int64)
    for start in range(0, rows, _ROWS_AT_ONCE):  # by blocks: no float64 copy of the whole on the way
        block = rng.normal(size=(min(_ROWS_AT_ONCE, rows - start), features))
        X[start:start + len(block)] = block
        scores = block @ teacher
        y[start:start + len(block)] = (scores + noise * rng.normal(size=scores.shape)).argmax(axis=1)
    return Dataset(X, y, describe(X, classes, "Gaussian"))


def text_like(rows: int, features: int, classes: int, columns: str, entries: int = 50) -> Dataset:
    """CSR rows of unit length with about `entries` words, drawn evenly or with Zipf's law (p ~ 1 / rank)."""
    rng = np.random.default_rng(0)
    if columns == "uniform":
        drawn = rng.integers(features, size=(rows, entries), dtype=np.int32)
    else:  # frequent words are drawn repeatedly and merge, so more draws give the same number of entries
        drawn = np.exp(rng.random((rows, entries * 7 // 5)) * np.log(features)).astype(np.int32)
        drawn = rng.permutation(features).astype(np.int32)[np.minimum(drawn, features - 1)]
    per_row = drawn.shape[1]
    X = sparse.csr_matrix((np.ones(drawn.size), drawn.ravel(), np.arange(rows + 1) * per_row),
                          shape=(rows, features))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    scores = X @ rng.normal(size=(features, classes))
    y = (scores + 0.5 * rng.normal(size=scores.shape)).argmax(axis=1)
    return Dataset(X, y, describe(X, classes, f"text-like ({columns})"))


def real(folder: Path | None, name: str, prepare: Callable[[Any], Any] | None = None,
         every: int = 1, most: int | None = None) -> Dataset | None:
    """Rows of a stored data set, each or one in `every`; None where the folder does not have it.

    Of more than `most` rows so many are drawn. Where the set comes with test rows, they are the queries.
    """
    path = folder / f"{name}.npz" if folder is not None else None
    if path is None or not path.exists():
        return None
    queries = None
    with np.load(path) as stored:
        if "X" in stored:
            X, y = stored["X"], stored["y"]
        else:
            X, y, queries = _rows(stored, "Xtr"), stored["ytr"], _rows(stored, "Xte")
    if prepare is not None:
        X, queries = prepare(X), None if queries is None else prepare(queries)
    if most is not None and X.shape[0] > most:
        chosen = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:most])
        X, y = X[chosen], y[chosen]
    X, y = (X, y) if every == 1 else (X[::every].copy(), y[::every].copy())
    return Dataset(X, y, describe(X, len(np.unique(y)), name), queries)


def _rows(stored: Any, name: str) -> Any:
    """An array of a file, dense or put together from the parts of its sparse rows."""
    if name in stored:
        return stored[name]
    parts = tuple(stored[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=tuple(stored[f"{name}_shape"]))


def one_against_rest(data: Callable[[], Dataset | None], label: Any) -> Dataset | None:
    """The same samples with two classes: `label`, and all others."""
    found = data()
    return None if found is None else replace(found, y=(found.y == label).astype(np.int64))


def last_feature(data: Callable[[], Dataset | None]) -> Dataset | None:
    """A regression problem: the last feature, standardised, from the others."""
    found = data()
    if found is None:
        return None
    others, target = np.ascontiguousarray(found.X[:, :-1]), found.X[:, -1].astype(np.float64)
    return Dataset(others, (target - target.mean()) / target.std(), found.about)


def bundled(name: str) -> Dataset:
    """One of scikit-learn's small data sets."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Dataset(X, y, describe(X, len(np.unique(y)), name))


def bytes_to_unit(X: np.ndarray) -> np.ndarray:
    """Grey values 0..255 as 0..1, in single precision."""
    return X.astype(np.float32, copy=False) / np.float32(255)


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1, in the precision of `X`."""
    spread = X.std(axis=0, dtype=np.float64)
    return ((X - X.mean(axis=0, dtype=np.float64)) / np.where(spread > 0, spread, 1.0)).astype(X.dtype)
