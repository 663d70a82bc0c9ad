"""What a metric's name means, and distances between all rows of two blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.view import Array
from separatrix.kernels import RBF, CallableKernel, Kernel, Linear

#: Names with another name for the same, and the name of SciPy's distance.
_ALIASES = {
    "l2": "euclidean",
    "l1": "manhattan",
    "cityblock": "manhattan",
    "infinity": "chebyshev",
    "p": "minkowski",
}
#: Metrics that read the rows as truth values.
_BOOLEAN = frozenset({"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"})
#: Minkowski's p that is computed by products.
_WHOLE_POWERS = (3, 4, 5, 6)
#: Parameters that a metric takes beside the rows.
_PARAMETERS = {"minkowski": {"p", "w"}, "seuclidean": {"V"}, "mahalanobis": {"V", "VI"}}
_NAMED = frozenset(
    {"braycurtis", "canberra", "chebyshev", "correlation", "cosine", "euclidean", "hamming", "haversine"}
    | {"mahalanobis", "manhattan", "minkowski", "nan_euclidean", "seuclidean", "sqeuclidean"}
    | {"precomputed"}
)
METRICS = tuple(sorted(_NAMED | _BOOLEAN | set(_ALIASES)))
"""Names that ``metric=`` takes."""


def _same(distances: Array) -> Array:
    return distances


@dataclass(frozen=True)
class Metric:
    """A metric, resolved.

    Attributes
    ----------
    name : str
        "euclidean" and "cosine" have loops of their own, "precomputed" are distances already; "blocks" has a
        function.
    blocks : callable or None
        Distances between all rows of two blocks in double precision, dense or CSR.
    finish : callable
        What turns the distances that were compared into those that are reported.
    power : float or None
        ``p`` where the metric is a Minkowski metric that a k-d tree can search.
    serial : bool
        Whether a user's function is called, which may not stand threads.
    """

    name: str
    blocks: Callable[[Any, Any], Array] | None = None
    finish: Callable[[Array], Array] = field(default=_same)
    power: float | None = None
    serial: bool = False


def resolve_metric(metric: Any, params: dict[str, Any]) -> Metric:
    """Return the metric that ``metric=`` and its parameters stand for."""
    if isinstance(metric, Kernel):
        return _kernel_metric(metric)
    if hasattr(metric, "pairwise"):
        return _object_metric(metric)
    if callable(metric):
        return Metric("blocks", lambda A, B: _pair_by_pair(metric, params, A, B), serial=True)
    if metric not in METRICS:
        raise ValueError(
            f"Metric {metric!r} is not known: choose one of {', '.join(METRICS)}, a kernel object of "
            "separatrix.kernels, or a function of two rows."
        )
    name = _ALIASES.get(metric, metric)
    if unknown := set(params) - _PARAMETERS.get(name, set()):
        allowed = ", ".join(sorted(_PARAMETERS.get(name, ()))) or "none"
        raise ValueError(
            f"metric_params holds {', '.join(map(repr, sorted(unknown)))}, which metric={metric!r} does "
            f"not know (it takes: {allowed})."
        )
    if name == "minkowski":
        return _minkowski(params)
    if name == "euclidean":
        return Metric(name, finish=np.sqrt, power=2.0)
    if name == "sqeuclidean":
        return Metric("euclidean")
    if name in ("cosine", "precomputed"):
        return Metric(name)
    if name in ("manhattan", "chebyshev"):
        return _minkowski({"p": 1.0 if name == "manhattan" else np.inf})
    if name == "haversine":
        return Metric("blocks", _haversine)
    if name == "nan_euclidean":
        return Metric("blocks", _nan_euclidean)
    if name == "seuclidean" and "V" not in params:
        raise ValueError(
            "metric='seuclidean' needs the features' variances: metric_params={'V': X.var(axis=0)}."
        )
    if name == "mahalanobis":
        params = {"VI": _inverse(params)}
    return Metric("blocks", _cdist(name, params))


def _kernel_metric(kernel: Kernel) -> Metric:
    """Return ``√(k(x, x) − 2k(x, z) + k(z, z))``; Gaussian kernels order rows as Euclid does."""
    if type(kernel) is Linear:
        return Metric("euclidean", finish=np.sqrt)
    if type(kernel) is RBF:
        return Metric("euclidean", finish=lambda squared: np.sqrt(-2 * np.expm1(-kernel.gamma * squared)))

    def blocks(A: Any, B: Any) -> Array:
        A, B = A.astype(np.float64), B.astype(np.float64)
        squared = kernel.diag(A)[:, None] - 2 * kernel(A, B) + kernel.diag(B)
        return np.asarray(np.sqrt(np.maximum(squared, 0.0)))

    return Metric("blocks", blocks, serial=isinstance(kernel, CallableKernel))


def named_metric(metric: Any) -> Any:
    """Return the name of a ``sklearn.metrics.DistanceMetric`` where it says all of it, else the object."""
    name = type(metric).__name__.partition("Distance")[0].lower()
    return name if name in ("euclidean", "manhattan", "chebyshev") else metric


def _object_metric(metric: Any) -> Metric:
    """Return the metric of a ``sklearn.metrics.DistanceMetric``."""
    if isinstance(name := named_metric(metric), str):
        return resolve_metric(name, {})
    dtype = np.float32 if type(metric).__name__.endswith("32") else np.float64

    def blocks(A: Any, B: Any) -> Array:
        A, B = (np.ascontiguousarray(_dense(block), dtype=dtype) for block in (A, B))
        return np.asarray(metric.pairwise(A, B), dtype=np.float64)

    return Metric("blocks", blocks)


def _minkowski(params: dict[str, Any]) -> Metric:
    p, w = params.get("p", 2), params.get("w")
    if p is None or not p > 0:
        raise ValueError(
            f"p must be a positive number for metric='minkowski', not {p!r}; p=2 is Euclid's distance."
        )
    if w is not None:
        return Metric("blocks", _cdist("minkowski", {"p": p, "w": np.asarray(w, dtype=np.float64)}))
    if p == 2:
        return resolve_metric("euclidean", {})
    power = float(p) if p >= 1 else None
    if p == 1:
        return Metric("blocks", _cdist("cityblock", {}), power=power)
    if p == np.inf:
        return Metric("blocks", _cdist("chebyshev", {}), power=power)
    if p in _WHOLE_POWERS:
        return Metric("blocks", _minkowski_products(int(p)), power=power)
    return Metric("blocks", _cdist("minkowski", {"p": float(p)}), power=power)


def _minkowski_products(p: int) -> Callable[[Any, Any], Array]:
    """Return Minkowski's distance for a whole p, feature by feature: products cost far less than powers."""

    def blocks(A: Any, B: Any) -> Array:
        left = np.ascontiguousarray(_dense(A).T, dtype=np.float64)
        right = np.ascontiguousarray(_dense(B).T, dtype=np.float64)
        sums = np.zeros((left.shape[1], right.shape[1]))
        size, power = np.empty_like(sums), np.empty_like(sums)
        for a, b in zip(left, right, strict=True):
            np.abs(np.subtract(a[:, None], b, out=size), out=size)
            np.multiply(size, size, out=power)
            for _ in range(p - 2):
                power *= size
            sums += power
        return np.power(sums, 1.0 / p, out=sums)

    return blocks


def _inverse(params: dict[str, Any]) -> Array:
    if "VI" in params:
        return np.asarray(params["VI"], dtype=np.float64)
    if "V" in params:
        return np.linalg.inv(np.asarray(params["V"], dtype=np.float64))
    raise ValueError(
        "metric='mahalanobis' needs a covariance or its inverse: "
        "metric_params={'V': np.cov(X, rowvar=False)} or {'VI': ...}."
    )


def _cdist(name: str, params: dict[str, Any]) -> Callable[[Any, Any], Array]:
    kind = np.bool_ if name in _BOOLEAN else np.float64

    def blocks(A: Any, B: Any) -> Array:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(_dense(A).astype(kind), _dense(B).astype(kind), name, **params))

    return blocks


def _dense(block: Any) -> Array:
    return np.asarray(block.toarray() if sparse.issparse(block) else block)


def _haversine(A: Any, B: Any) -> Array:
    A, B = _dense(A).astype(np.float64), _dense(B).astype(np.float64)
    if A.shape[1] != 2:
        raise ValueError(
            "Haversine distance only valid in 2 dimensions, latitude and longitude in radians; X has "
            f"{A.shape[1]}."
        )
    half = np.sin((A[:, None, :] - B[None, :, :]) / 2) ** 2
    chord = half[..., 0] + np.cos(A[:, :1]) * np.cos(B[:, 0]) * half[..., 1]
    return np.asarray(2 * np.arcsin(np.sqrt(np.minimum(chord, 1.0))))


def _nan_euclidean(A: Any, B: Any) -> Array:
    """Return Euclid's distances over the features that both rows have, scaled up to all of them."""
    A, B = _dense(A).astype(np.float64), _dense(B).astype(np.float64)
    squared = np.empty((len(A), len(B)))
    for a, line in zip(A, squared, strict=True):
        difference = B - a
        absent = np.isnan(difference)
        difference[absent] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            line[:] = (difference**2).sum(axis=1) * (A.shape[1] / (A.shape[1] - absent.sum(axis=1)))
    # Rows with no feature in common are at no distance: they come last.
    return np.sqrt(np.where(np.isnan(squared), np.inf, squared))


def _pair_by_pair(metric: Callable[..., Any], params: dict[str, Any], A: Any, B: Any) -> Array:
    """Call a user's function on each pair of rows; sparse rows are given as CSR matrices of one row."""
    # Each row is cut out once: slicing a sparse matrix costs more than most metrics.
    if sparse.issparse(A):
        first, second = ([M[[i], :] for i in range(M.shape[0])] for M in (A, B))
    else:
        first, second = list(A), list(B)
    distances = np.array([[metric(a, b, **params) for b in second] for a in first], dtype=np.float64)
    if np.isnan(distances).any():
        i, j = np.argwhere(np.isnan(distances))[0]
        raise ValueError(
            f"the metric {getattr(metric, '__qualname__', metric)} returned NaN for row {i} and row {j} "
            "of two blocks; a distance must be a number."
        )
    return distances.reshape(len(first), len(second))
