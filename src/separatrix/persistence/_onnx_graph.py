"""A graph of ONNX operators under construction, and the kernels written in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix import kernels
from separatrix.kernels import Kernel
from separatrix.persistence._container import ModelFileError

Array = NDArray[Any]


class Graph:
    """Nodes and constants, added one after the other; every value is known by its name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """Add a constant: numbers as float64, positions as int64, texts as they are."""
        import onnx

        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind == "U":
            array = array.astype(object)
        name = f"c{len(self.constants)}"
        self.constants.append(
            onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        )
        return name

    def add(self, operator: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add a node, its inputs names or constants, and return the name of its output."""
        import onnx

        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def product(self, value: str, matrix: Array) -> str:
        """Add the product with a constant matrix."""
        # One row is no sum, and onnxruntime would fuse a factor before it, rounded to single precision.
        return self.add("Mul" if matrix.shape[0] == 1 else "MatMul", value, matrix)

    def sum(self, value: str, axis: int, keep: bool = False) -> str:
        """Add a sum over one axis."""
        return self.add("ReduceSum", value, np.array([axis]), keepdims=int(keep))


def kernel_values(graph: Graph, kernel: Kernel, X: str, vectors: Any) -> str:
    """Add ``k(x_i, z_j)`` of samples and fixed vectors (their numbers if the kernel is precomputed)."""
    if isinstance(kernel, kernels.Precomputed):
        return graph.add("Gather", X, np.asarray(vectors), axis=1)
    if kernel.samples != "vectors":
        raise _unknown(kernel)
    Z = np.asarray(vectors.toarray() if sparse.issparse(vectors) else vectors, dtype=np.float64)
    return _values(graph, kernel, X, Z)


def _values(graph: Graph, kernel: Kernel, X: str, Z: Array) -> str:
    name = type(kernel).__name__
    parameters: Any = kernel
    if name == "Linear":
        return graph.product(X, Z.T)
    if name in ("Polynomial", "Sigmoid"):
        # A number multiplied with a product is fused into it by onnxruntime, and rounded to single precision.
        shifted = graph.add("Add", graph.product(X, parameters.gamma * Z.T), parameters.coef0)
        return (
            graph.add("Tanh", shifted)
            if name == "Sigmoid"
            else graph.add("Pow", shifted, float(parameters.degree))
        )
    if name == "RBF":
        return graph.add("Exp", graph.add("Mul", _squared_distances(graph, X, Z), -parameters.gamma))
    if name in ("Laplacian", "AnovaRBF"):
        # Every pair of entries: samples along the first axis, vectors along the second, features last.
        difference = graph.add("Sub", graph.add("Unsqueeze", X, np.array([1])), Z[None])
        if name == "Laplacian":
            return graph.add(
                "Exp", graph.add("Mul", graph.sum(graph.add("Abs", difference), 2), -parameters.gamma)
            )
        square = graph.add("Mul", difference, difference)
        total = graph.sum(graph.add("Exp", graph.add("Mul", square, -parameters.sigma)), 2)
        return graph.add("Pow", total, float(parameters.degree))
    if name in ("Sum", "Product"):
        parts = parameters.terms if name == "Sum" else parameters.factors
        found = _values(graph, parts[0], X, Z)
        for part in parts[1:]:
            found = graph.add("Add" if name == "Sum" else "Mul", found, _values(graph, part, X, Z))
        return found
    if name == "Scaled" and isinstance(parameters.kernel, kernels.Linear):
        return graph.product(X, parameters.factor * Z.T)
    if name == "Scaled":
        return graph.add("Mul", _values(graph, parameters.kernel, X, Z), parameters.factor)
    if name == "Power":
        return graph.add("Pow", _values(graph, parameters.kernel, X, Z), float(parameters.exponent))
    raise _unknown(kernel)


def _unknown(kernel: Kernel) -> ModelFileError:
    return ModelFileError(
        f"ONNX has no operators for the kernel {kernel!r}; it has for Linear, Polynomial, RBF, Sigmoid, "
        "Laplacian, AnovaRBF, Precomputed, and their sums and products"
    )


def _squared_distances(graph: Graph, X: str, Z: Array) -> str:
    """Add ``‖x − z‖²`` by inner products; both are moved to the mean of the vectors, where digits are."""
    centre = Z.mean(axis=0)
    moved, fixed = graph.add("Sub", X, centre), Z - centre
    norms = graph.sum(graph.add("Mul", moved, moved), 1, keep=True)
    inner = graph.product(moved, -2.0 * fixed.T)
    total = graph.add("Add", graph.add("Add", inner, norms), np.einsum("ij,ij->i", fixed, fixed))
    return graph.add("Max", total, 0.0)
