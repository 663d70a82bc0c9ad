"""A graph of ONNX operators under construction, and the kernels written in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from separatrix import kernels
from separatrix.data.memory import check_structure
from separatrix.kernels import Kernel
from separatrix.persistence._container import ModelFileError

Array = NDArray[Any]
Body = Callable[["Graph", str, list[str]], str]

#: Largest argument of a Bessel function that is summed as waves; beyond, its expansion for large ones counts.
_FAR = 200.0
#: Largest order for which that expansion is exact to rounding beyond it, and its terms.
_ORDER, _TERMS = 12.0, 16


class Graph:
    """Nodes and constants, added one after the other; every value is known by its name."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
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
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants.append(
            onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        )
        return name

    def add(self, operator: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add a node, its inputs names or constants, and return the name of its output."""
        import onnx

        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        name = output or f"{self.prefix}v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def least(self, value: str, count: int) -> tuple[str, str]:
        """Add the smallest entries of each row, in order, and their columns; of equals the first."""
        import onnx

        names = [f"{self.prefix}v{len(self.nodes)}{end}" for end in ("", "i")]
        inputs = [value, self.constant(np.array([count]))]
        self.nodes.append(onnx.helper.make_node("TopK", inputs, names, axis=1, largest=0, sorted=1))
        return names[0], names[1]

    def fold(self, start: str, lists: list[Any], body: Body) -> str:
        """Add a loop: ``start`` is replaced by ``body(graph, start, items)`` for the items of each list."""
        import onnx

        inner = Graph(f"{self.prefix}v{len(self.nodes)}_")
        inputs = [f"{inner.prefix}in{number}" for number in range(len(lists) + 1)]
        result = inner.add("Identity", body(inner, inputs[0], inputs[1:]))
        double = onnx.TensorProto.DOUBLE
        described = [onnx.helper.make_tensor_value_info(name, double, None) for name in [*inputs, result]]
        graph = onnx.helper.make_graph(inner.nodes, "body", described[:-1], described[-1:], inner.constants)
        return self.add("Scan", start, *lists, body=graph, num_scan_inputs=len(lists))

    def zeros(self, rows: str, columns: int) -> str:
        """Add zeros, as many rows as another value has."""
        import onnx

        shape = self.add("Concat", self.add("Shape", rows, start=0, end=1), np.array([columns]), axis=0)
        zero = onnx.helper.make_tensor("zero", onnx.TensorProto.DOUBLE, [1], [0.0])
        return self.add("ConstantOfShape", shape, value=zero)

    def product(self, value: str, matrix: Array) -> str:
        """Add the product with a constant matrix."""
        # One row is no sum, and onnxruntime would fuse a factor before it, rounded to single precision.
        return self.add("Mul" if matrix.shape[0] == 1 else "MatMul", value, matrix)

    def labels(self, classes: Any, number: str) -> None:
        """Add the classes with these numbers as output "label"."""
        known = np.asarray(classes)
        self.add("Gather", known.astype(str) if known.dtype.kind == "O" else known, number, output="label")

    def sum(self, value: str, axis: int, keep: bool = False) -> str:
        """Add a sum over one axis."""
        return self.add("ReduceSum", value, np.array([axis]), keepdims=int(keep))


def kernel_values(graph: Graph, kernel: Kernel, X: str, vectors: Any) -> str:
    """Add ``k(x_i, z_j)`` of samples and fixed vectors (their numbers if the kernel is precomputed)."""
    if isinstance(kernel, kernels.Precomputed):
        return graph.add("Gather", X, np.asarray(vectors), axis=1)
    if kernel.samples != "vectors":
        raise _unknown(kernel)
    if sparse.issparse(vectors):
        check_structure(vectors, "a part of the model")
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
    if name == "Bessel":
        t = graph.add("Mul", graph.add("Sqrt", _squared_distances(graph, X, Z)), parameters.sigma)
        return graph.add("Pow", _spherical_wave(graph, kernel, t), float(parameters.degree))
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


def kernel_diagonal(graph: Graph, kernel: Kernel, X: str) -> str:
    """Add ``k(x_i, x_i)`` as a column."""
    name = type(kernel).__name__
    parameters: Any = kernel
    if name in ("Linear", "Polynomial", "Sigmoid"):
        square = graph.sum(graph.add("Mul", X, X), 1, keep=True)
        if name == "Linear":
            return square
        shifted = graph.add("Add", graph.add("Mul", square, parameters.gamma), parameters.coef0)
        return (
            graph.add("Tanh", shifted)
            if name == "Sigmoid"
            else graph.add("Pow", shifted, float(parameters.degree))
        )
    if name in ("Sum", "Product"):
        parts = parameters.terms if name == "Sum" else parameters.factors
        found = kernel_diagonal(graph, parts[0], X)
        for part in parts[1:]:
            found = graph.add("Add" if name == "Sum" else "Mul", found, kernel_diagonal(graph, part, X))
        return found
    if name == "Scaled":
        return graph.add("Mul", kernel_diagonal(graph, parameters.kernel, X), float(parameters.factor))
    if name == "Power":
        return graph.add("Pow", kernel_diagonal(graph, parameters.kernel, X), float(parameters.exponent))
    one = graph.add("Add", graph.zeros(X, 1), 1.0)
    if name == "AnovaRBF":  # as many ones as there are features
        count = graph.sum(graph.add("Add", graph.add("Mul", X, 0.0), 1.0), 1, keep=True)
        return graph.add("Pow", count, float(parameters.degree))
    return one


def _unknown(kernel: Kernel) -> ModelFileError:
    if kernel.samples != "vectors":
        return ModelFileError(
            f"ONNX cannot express {kernel!r}: it has no operators that compare texts. Keep such a model as "
            ".sx file, or export one with a kernel on vectors"
        )
    return ModelFileError(
        f"ONNX has no operators for the kernel {kernel!r}; it has for Linear, Polynomial, RBF, Sigmoid, "
        "Laplacian, AnovaRBF, Bessel, Precomputed, and their sums and products"
    )


def _spherical_wave(graph: Graph, kernel: Any, t: str) -> str:
    """Add ``Γ(ν + 1) 2^ν J_ν(t) / t^ν``.

    It is the mean of ``cos(t u)`` under the density proportional to ``(1 − u²)^(ν − 1/2)`` (Poisson), and
    Gauss's rule for that density gives it to the last digits as long as ``t`` is well below twice the number
    of nodes. Beyond, it is Hankel's expansion, which has a few terms there.
    """
    order = float(kernel.order)
    if order > _ORDER:
        raise ModelFileError(f"export to ONNX knows Bessel kernels up to order {_ORDER:g}, not {order:g}")
    nodes, weights = special.roots_gegenbauer(int(_FAR) // 2 + 40, order)
    half = nodes > 0  # the rule is symmetric, and so is the cosine
    shares = (2.0 * weights / weights.sum())[half]

    def add(inner: Graph, total: str, items: list[str]) -> str:
        wave = inner.add("Cos", inner.add("Mul", near, items[0]))
        return inner.add("Add", total, inner.add("Mul", wave, items[1]))

    near = graph.add("Min", t, _FAR)
    waves = graph.fold(graph.add("Mul", near, 0.0), [nodes[half], shares], add)
    far = graph.add("Max", t, _FAR)
    angle = graph.add("Sub", far, (0.5 * order + 0.25) * np.pi)
    # J_ν(t) = √(2/(πt)) (P cos χ − Q sin χ): powers of 1/t with the coefficients a_k(ν), signs ++−−.
    k = np.arange(1, _TERMS)
    a = np.concatenate([[1.0], np.cumprod((4 * order**2 - (2 * k - 1.0) ** 2) / (8.0 * k))])
    inverse = graph.add("Div", 1.0, far)
    turn = np.arange(_TERMS) % 4
    P = _polynomial(graph, inverse, a * np.choose(turn, [1, 0, -1, 0]))
    Q = _polynomial(graph, inverse, a * np.choose(turn, [0, 1, 0, -1]))
    turned = graph.add(
        "Sub", graph.add("Mul", P, graph.add("Cos", angle)), graph.add("Mul", Q, graph.add("Sin", angle))
    )
    size = np.sqrt(2 / np.pi) * np.exp(special.gammaln(order + 1) + order * np.log(2.0))
    envelope = graph.add("Mul", graph.add("Pow", inverse, order + 0.5), size)
    return graph.add("Where", graph.add("Less", t, _FAR), waves, graph.add("Mul", turned, envelope))


def _polynomial(graph: Graph, x: str, coefficients: Array) -> str:
    value = graph.add("Mul", x, 0.0)
    for coefficient in coefficients[::-1]:
        value = graph.add("Add", graph.add("Mul", value, x), float(coefficient))
    return value


def _squared_distances(graph: Graph, X: str, Z: Array) -> str:
    """Add ``‖x − z‖²`` by inner products; both are moved to the mean of the vectors, where digits are."""
    centre = Z.mean(axis=0)
    moved, fixed = graph.add("Sub", X, centre), Z - centre
    norms = graph.sum(graph.add("Mul", moved, moved), 1, keep=True)
    inner = graph.product(moved, -2.0 * fixed.T)
    total = graph.add("Add", graph.add("Add", inner, norms), np.einsum("ij,ij->i", fixed, fixed))
    return graph.add("Max", total, 0.0)
