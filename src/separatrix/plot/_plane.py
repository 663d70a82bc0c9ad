"""The plane a decision boundary is drawn on, and how points of any dimension reach it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Up to this many features the covariance matrix is small enough to be decomposed outright.
_SMALL = 1000
# Numbers in one block of grid points given to the model.
_BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True)
class Plane:
    """The points ``origin + u directions[0] + v directions[1]``, with labels for the axes u and v."""

    origin: NDArray[np.float64]
    directions: NDArray[np.float64]
    labels: tuple[str, str]
    exact: bool
    """Whether the plane is the whole space, so that no point is projected."""
    remark: str = ""
    """What a reader should know about it."""

    def coordinates(self, rows: Any) -> NDArray[np.float64]:
        """(u, v) of the orthogonal projection of each row."""
        flat: NDArray[np.float64] = np.asarray(rows @ self.directions.T) - self.origin @ self.directions.T
        return flat

    def points(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points in feature space with the given (u, v)."""
        return self.origin + coordinates @ self.directions


@dataclass(frozen=True)
class Samples:
    """Samples as numbers, with the way back to the container that the model was trained on."""

    rows: Any
    names: Sequence[str] | None
    wrap: Callable[[NDArray[np.float64]], Any]


def read_samples(X: Any) -> Samples:
    """Take numbers and column names out of an array, a sparse matrix or a table."""
    if hasattr(X, "tocsr"):
        csr = X.tocsr()
        return Samples(
            csr,
            None,
            lambda points: points.astype(csr.dtype, copy=False) if csr.dtype.kind == "f" else points,
        )
    columns = getattr(X, "columns", None)
    if columns is not None and hasattr(X, "column_names"):  # an Arrow table: its columns are the data
        names = [str(name) for name in X.column_names]
        rows = np.column_stack([np.asarray(column) for column in X.columns])
        return Samples(
            _numeric(rows),
            names,
            lambda points: type(X).from_pydict(dict(zip(X.column_names, points.T, strict=True))),
        )
    if columns is not None:
        names = [str(name) for name in columns]
        rows = _numeric(np.asarray(X))
        if type(X).__module__.startswith("polars"):
            return Samples(rows, names, lambda points: type(X)(points, schema=list(columns)))
        return Samples(rows, names, lambda points: type(X)(points, columns=columns))
    rows = _numeric(np.asarray(X))
    return Samples(
        rows, None, lambda points: points.astype(rows.dtype, copy=False) if rows.dtype.kind == "f" else points
    )


def _numeric(rows: NDArray[Any]) -> NDArray[Any]:
    if rows.ndim != 2:
        raise ValueError(f"X must have two dimensions (samples, features), not {rows.ndim}")
    if rows.dtype.kind == "O":
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError("X must hold numbers only; leave out or encode columns of text") from None
    if rows.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, not {rows.dtype}")
    return rows


def find_plane(samples: Samples, names: Sequence[str] | None, model: Any, directions: Any = None) -> Plane:
    """Choose the two features themselves; across and along a flat boundary; or two principal directions.

    `directions` chooses instead: "principal", two features by number or name, or two vectors.
    """
    count, features = samples.rows.shape
    if features < 2:
        raise ValueError("a boundary in the plane needs at least two features; X has one")
    if count == 0:
        raise ValueError("X has no samples to draw")
    if names is None:
        names = samples.names
    elif len(names) != features:
        raise ValueError(f"names must name each of the {features} features; it has {len(names)} entries")
    if directions is not None and not isinstance(directions, str):
        return _chosen_plane(samples, names, directions)
    if directions not in (None, "principal"):
        raise ValueError(f"directions must be 'principal', two features, or two vectors; not {directions!r}")
    if features == 2:
        labels = (str(names[0]), str(names[1])) if names is not None else ("feature 0", "feature 1")
        return Plane(np.zeros(2), np.eye(2), labels, exact=True)
    mean = mean_of(samples)
    gradient = score_gradient(model, samples, mean) if directions is None else None
    if gradient is not None:
        normal = gradient / np.linalg.norm(gradient)
        scatter = _scatter(samples.rows, mean)
        # What is left of the scatter without the normal has its main direction within the boundary.
        keep = np.eye(features) - np.outer(normal, normal)
        values, vectors = np.linalg.eigh(keep @ scatter @ keep)
        along = keep @ vectors[:, -1]
        along *= np.sign(along[np.abs(along).argmax()]) / np.linalg.norm(along)
        share = max(float(values[-1]), 0.0) / (float(np.trace(scatter)) or 1.0)
        return Plane(
            mean,
            np.stack([normal, along]),
            ("across the boundary", f"main direction along the boundary\n({share:.1%} of variance)"),
            exact=False,
        )
    axes, shares = _principal_directions(samples.rows, mean)
    labels = (
        f"principal direction 1 ({shares[0]:.1%} of variance)",
        f"principal direction 2 ({shares[1]:.1%} of variance)",
    )
    return Plane(mean, axes, labels, exact=False)


def mean_of(samples: Samples) -> NDArray[np.float64]:
    """Return the mean of the rows."""
    return np.asarray(samples.rows.mean(axis=0, dtype=np.float64), dtype=np.float64).reshape(-1)


def _chosen_plane(samples: Samples, names: Sequence[str] | None, directions: Any) -> Plane:
    """Return the plane through the mean along two features, or along two vectors, made orthonormal."""
    features = samples.rows.shape[1]
    named = [f"feature {j}" for j in range(features)] if names is None else [str(name) for name in names]
    chosen = list(directions)
    if len(chosen) != 2:
        raise ValueError(f"directions must be two features or two vectors; got {len(chosen)}")
    mean = mean_of(samples)
    if np.ndim(chosen[0]) == 0:
        numbers = [_feature_number(feature, named) for feature in chosen]
        if numbers[0] == numbers[1]:
            raise ValueError(f"directions must be two different features, not {named[numbers[0]]} twice")
        axes = np.eye(features)[numbers]
        remark = "" if features == 2 else "regions: the other features at their mean"
        # Along two features the coordinates are the features themselves, not distances from the mean.
        origin = np.where(axes.any(axis=0), 0.0, mean)
        return Plane(origin, axes, (named[numbers[0]], named[numbers[1]]), features == 2, remark)
    vectors = np.asarray(chosen, dtype=np.float64)
    if vectors.shape != (2, features) or not np.isfinite(vectors).all():
        raise ValueError(
            f"directions must be two finite vectors of {features} numbers; "
            f"got an array of shape {vectors.shape}"
        )
    first = vectors[0] / (np.linalg.norm(vectors[0]) or 1.0)
    second = vectors[1] - (vectors[1] @ first) * first
    if not first.any() or np.linalg.norm(second) <= 1e-10 * np.linalg.norm(vectors[1]):
        raise ValueError("directions must be two vectors that do not point along one line")
    axes = np.stack([first, second / np.linalg.norm(second)])
    return Plane(mean, axes, ("along direction 1", "along direction 2"), features == 2)


def _feature_number(feature: Any, named: list[str]) -> int:
    if isinstance(feature, str):
        if feature not in named:
            raise ValueError(f"directions: there is no feature {feature!r}; there are {', '.join(named)}")
        return named.index(feature)
    number = int(feature)
    if not -len(named) <= number < len(named):
        raise ValueError(f"directions: there is no feature {number}; X has {len(named)}, numbered from 0")
    return number % len(named)


def score_gradient(model: Any, samples: Samples, mean: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the gradient of the score if there is one, linear in the features; else None.

    Projected along the boundary, every point keeps its distance to it: such a picture shows each sample
    on the side that the model puts it on. The score is probed, so that pipelines are understood as well.
    """
    count, features = samples.rows.shape
    if features > _SMALL or not hasattr(model, "decision_function"):
        return None

    def score(points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(model.decision_function(samples.wrap(points)), dtype=np.float64)

    some = samples.rows[np.linspace(0, count - 1, min(count, 64)).astype(int)]
    some = np.asarray(some.toarray() if hasattr(some, "toarray") else some, dtype=np.float64)
    spread = some.std(axis=0)
    spread[spread == 0] = 1.0
    probes = score(np.vstack([mean, mean + np.diag(spread)]))
    if probes.ndim != 1:
        return None
    gradient = (probes[1:] - probes[0]) / spread
    scores = score(some)
    length = float(np.linalg.norm(gradient))
    largest = float(np.abs(scores).max())
    if length == 0 or not np.allclose(probes[0] + (some - mean) @ gradient, scores, atol=1e-3 * largest):
        return None
    return np.asarray(gradient)


def _principal_directions(rows: Any, mean: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the two directions of largest variance, and their shares of all variance."""
    count, features = rows.shape
    if hasattr(rows, "multiply"):
        squares = float(rows.multiply(rows).sum(dtype=np.float64))
    else:
        squares = float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))
    total = max(squares - count * float(mean @ mean), 0.0)
    if features <= _SMALL or count <= 3:
        scatter = _scatter(rows, mean)
        values, vectors = np.linalg.eigh(scatter)
        values, directions = values[:-3:-1], vectors[:, :-3:-1].T
        total = float(np.trace(scatter))
    else:
        from scipy.sparse.linalg import LinearOperator, svds

        ones = np.ones(count)
        centred = LinearOperator(
            rows.shape,
            dtype=np.float64,
            matvec=lambda v: rows @ v.reshape(-1) - float(mean @ v.reshape(-1)),
            rmatvec=lambda u: rows.T @ u.reshape(-1) - mean * float(ones @ u.reshape(-1)),
        )
        _, singular, vectors = svds(centred, k=2, v0=np.ones(min(rows.shape)))
        order = np.argsort(singular)[::-1]
        values, directions = singular[order] ** 2, vectors[order]
    # Eigenvectors have no sign of their own: the largest entry is made positive, so pictures repeat.
    signs = np.sign(directions[[0, 1], np.abs(directions).argmax(axis=1)])
    return directions * signs[:, None], np.maximum(values, 0.0) / (total if total > 0 else 1.0)


def _scatter(rows: Any, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """``sum (x - mean)(x - mean)^T``, block by block in float64."""
    features = mean.shape[0]
    scatter = np.zeros((features, features))
    step = max(1, _BLOCK_NUMBERS // features)
    for start in range(0, rows.shape[0], step):
        block = rows[start : start + step]
        centred = (block.toarray() if hasattr(block, "toarray") else block) - mean
        scatter += centred.T @ centred
    return scatter


def on_grid(
    function: Callable[[Any], Any], plane: Plane, samples: Samples, coordinates: NDArray[np.float64]
) -> NDArray[Any]:
    """Apply a method of the model to points of the plane, in blocks that fit into memory."""
    step = max(1, _BLOCK_NUMBERS // plane.origin.shape[0])
    parts = [
        np.asarray(function(samples.wrap(plane.points(coordinates[start : start + step]))))
        for start in range(0, len(coordinates), step)
    ]
    return np.concatenate(parts)
