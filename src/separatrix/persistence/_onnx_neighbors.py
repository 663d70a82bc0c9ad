"""Nearest neighbours as ONNX graphs: distances to all samples, the least of them, votes or means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.kernels import RBF, Kernel, Linear
from separatrix.persistence._container import ModelFileError
from separatrix.persistence._onnx_graph import Graph, kernel_diagonal, kernel_values

Array = NDArray[Any]

_POWERS = {
    "euclidean": 2.0, "l2": 2.0, "sqeuclidean": 2.0, "manhattan": 1.0, "cityblock": 1.0, "l1": 1.0,
    "chebyshev": np.inf, "infinity": np.inf,
}  # fmt: skip


def neighbors(graph: Graph, model: Any, X: str) -> list[str]:
    """Add a model of nearest neighbours; return the names of its outputs."""
    name = type(model).__name__
    if model._y.ndim > 1:
        raise ModelFileError(f"export to ONNX does not know {name} with several outputs; export one for each")
    if callable(model.weights):
        raise ModelFileError(
            f"ONNX cannot express {name}(weights=function); weights='uniform' and 'distance' it can"
        )
    compared, finish = _distances(graph, model, X)
    least, rows = graph.least(compared, int(model.n_neighbors))
    weights = None
    if model.weights == "distance":
        inverse = graph.add("Div", 1.0, finish(least))
        infinite = graph.add("Cast", graph.add("IsInf", inverse), to=11)
        alone = graph.add("Greater", graph.sum(infinite, 1, keep=True), 0.0)
        weights = graph.add("Where", alone, infinite, inverse)
    near = graph.add("Gather", np.asarray(model._y), rows)
    if not hasattr(model, "classes_"):
        near = graph.add("Cast", near, to=11)
        if weights is None:
            graph.add("Div", graph.sum(near, 1), float(model.n_neighbors), output="prediction")
        else:
            total = graph.sum(graph.add("Mul", near, weights), 1)
            graph.add("Div", total, graph.sum(weights, 1), output="prediction")
        return ["prediction"]
    voices = graph.add(
        "Equal", graph.add("Unsqueeze", near, np.array([2])), np.arange(len(model.classes_))[None, None]
    )
    voices = graph.add("Cast", voices, to=11)
    if weights is not None:
        voices = graph.add("Mul", voices, graph.add("Unsqueeze", weights, np.array([2])))
    votes = graph.sum(voices, 1)
    graph.labels(model.classes_, graph.add("ArgMax", votes, axis=1, keepdims=0))
    graph.add("Div", votes, graph.sum(votes, 1, keep=True), output="probabilities")
    return ["label", "probabilities"]


def _distances(graph: Graph, model: Any, X: str) -> tuple[str, Any]:
    """Add what orders the samples by their distance, and give what makes distances of it."""
    metric, params = model.effective_metric_, model.effective_metric_params_
    if metric == "precomputed":
        return X, lambda value: value
    kept = model._fit_X
    Z = np.asarray(kept.toarray() if sparse.issparse(kept) else kept, dtype=np.float64)
    if isinstance(metric, Kernel):
        return _kernel_distances(graph, metric, X, Z)
    if metric == "cosine":
        moved = _unit(graph, X)
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
        fixed = Z / np.where(norms > 0, norms, 1.0)
        inner = _summed(graph, moved, fixed, lambda g, x, z: g.add("Mul", x, z))
        return graph.add("Sub", 1.0, inner), lambda value: value
    powers = _POWERS | {"minkowski": params.get("p")}
    power = powers.get(metric) if isinstance(metric, str) else None
    if power is None:
        raise ModelFileError(
            f"export to ONNX does not know the metric {metric!r}; it knows Minkowski's (euclidean, "
            "manhattan, chebyshev), cosine, precomputed, and those of kernels"
        )
    total = _minkowski(graph, X, Z, float(power), params.get("w"))
    if metric == "sqeuclidean" or power in (1.0, np.inf):
        return total, lambda value: value
    if power == 2.0:
        return total, lambda value: graph.add("Sqrt", value)
    return total, lambda value: graph.add("Pow", value, 1.0 / power)


def _minkowski(graph: Graph, X: str, Z: Array, power: float, w: Any) -> str:
    """Add ``Σ_j w_j |x_j − z_j|^p``, or the largest difference, without taking the rows apart by products."""

    def part(inner: Graph, x: str, z: str) -> str:
        difference = inner.add("Sub", x, z)
        if power == 2.0:
            return inner.add("Mul", difference, difference)
        size = inner.add("Abs", difference)
        return size if power in (1.0, np.inf) else inner.add("Pow", size, power)

    return _summed(graph, X, Z, part, w=w, largest=power == np.inf)


def _summed(graph: Graph, X: str, Z: Array, part: Any, w: Any = None, largest: bool = False) -> str:
    """Add a sum (or the maximum) over the features, one after the other: no array beyond the distances."""

    def body(inner: Graph, total: str, items: list[str]) -> str:
        x = inner.add("Unsqueeze", items[0], np.array([1]))
        value = part(inner, x, items[1])
        if w is not None:
            value = inner.add("Mul", value, items[2])
        return inner.add("Max" if largest else "Add", total, value)

    lists = [graph.add("Transpose", X, perm=[1, 0]), np.ascontiguousarray(Z.T)]
    if w is not None:
        lists.append(np.asarray(w, dtype=np.float64))
    return graph.fold(graph.zeros(X, Z.shape[0]), lists, body)


def _unit(graph: Graph, X: str) -> str:
    norm = graph.add("Sqrt", graph.sum(graph.add("Mul", X, X), 1, keep=True))
    return graph.add("Div", X, graph.add("Where", graph.add("Greater", norm, 0.0), norm, 1.0))


def _kernel_distances(graph: Graph, kernel: Kernel, X: str, Z: Array) -> tuple[str, Any]:
    """Add ``k(x, x) − 2k(x, z) + k(z, z)``; Gaussian kernels order rows as Euclid does."""
    if type(kernel) is Linear:
        return _minkowski(graph, X, Z, 2.0, None), lambda value: graph.add("Sqrt", value)
    if type(kernel) is RBF:
        gamma = kernel.gamma

        def finish(value: str) -> str:
            # 2 (1 − exp(−u)) = 4t/(1 + t) with t = tanh(u/2), which keeps the digits of a small u.
            t = graph.add("Tanh", graph.add("Mul", value, 0.5 * gamma))
            return graph.add("Sqrt", graph.add("Div", graph.add("Mul", t, 4.0), graph.add("Add", t, 1.0)))

        return _minkowski(graph, X, Z, 2.0, None), finish
    cross = graph.add("Mul", kernel_values(graph, kernel, X, Z), np.full(len(Z), -2.0))
    own = np.asarray(kernel.diag(Z), dtype=np.float64)
    squared = graph.add("Add", graph.add("Add", cross, own), kernel_diagonal(graph, kernel, X))
    return graph.add("Sqrt", graph.add("Max", squared, 0.0)), lambda value: value
