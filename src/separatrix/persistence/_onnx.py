"""Export to ONNX: models as graphs of plain operators in double precision, checked against onnxruntime."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.persistence._container import ModelFileError, atomic_write
from separatrix.persistence._onnx_graph import Graph, kernel_values

Array = NDArray[Any]

#: Operators and file layout of ONNX 1.12 and later, which every runtime of the last years reads.
_OPSET, _IR = 17, 8
#: Samples of the comparison, and how far scores may differ relative to their size: double, single precision.
_ROWS, _EXACT, _SINGLE = 128, 1e-9, 1e-4
#: Part of a calibrated probability that breaks ties in favour of the decision.
_TIE = 1e-6
_REGRESSORS = ("LinearSVR", "NuSVR", "SGDRegressor", "SVR")
_LOGITS = (
    "GaussianClassifier",
    "LinearDiscriminantAnalysis",
    "LogisticRegression",
    "QuadraticDiscriminantAnalysis",
)


def export_onnx(model: Any, path: str | os.PathLike[str], *, X: Any = None, dtype: str = "float64") -> None:
    """Write a fitted model as an ONNX file, after comparing it with onnxruntime.

    The input is called "X". The outputs of a classifier are "label", "scores" (as ``decision_function``) and,
    for logistic, Gaussian and two-class calibrated models, "probabilities"; those of ``OneClassSVM`` "label"
    and "scores"; that of a regressor "prediction".

    Parameters
    ----------
    model : estimator
        A linear, Gaussian or kernel model (kernels on vectors, but for Bessel functions and callables), or a
        ``Pipeline`` of ``SimpleImputer``, ``StandardScaler`` and one of these.
    path : str or path
        The file, by custom ending in ``.onnx``.
    X : array-like of shape (n, n_features), optional
        Samples for the comparison; by default drawn around what the model knows of its data.
    dtype : {"float64", "float32"}
        Type of the input. Everything is computed in double precision.

    Raises
    ------
    ModelFileError
        If ONNX cannot express the model, or if onnxruntime does not give its predictions; then nothing is
        written.
    ImportError
        If the extra ``onnx`` is not installed.
    """
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f"export to ONNX needs {error.name}, which is not installed: pip install 'separatrix[onnx]'"
        ) from None
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', not {dtype!r}")
    from sklearn.utils.validation import check_is_fitted

    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    final = steps[-1]
    check_is_fitted(final)
    graph = Graph()
    value = graph.add("Cast", "X", to=onnx.TensorProto.DOUBLE)
    for step in steps[:-1]:
        value = _scaled(graph, step, value)
    outputs = _model(graph, final, value)
    columns = int(model.n_features_in_)
    kind = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
    built = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            type(final).__name__,
            [onnx.helper.make_tensor_value_info("X", kind, ["samples", columns])],
            [onnx.helper.make_tensor_value_info(name, *_described(final, name)) for name in outputs],
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        producer_name="separatrix",
    )
    onnx.checker.check_model(built)
    content = built.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    samples = _samples(steps) if X is None else np.asarray(X)
    samples = np.ascontiguousarray(samples.astype(dtype))
    found = dict(zip(outputs, session.run(outputs, {"X": samples}), strict=True))
    with warnings.catch_warnings():
        # A model that knows names of features takes nameless samples in their order.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        _compare(model, final, samples.astype(np.float64), found)
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        file.write(content)


def _scaled(graph: Graph, step: Any, value: str) -> str:
    name = type(step).__name__
    if name == "SimpleImputer" and step.statistics_.dtype.kind == "f" and not step.add_indicator:
        if not np.isnan(step.statistics_).any():
            return graph.add("Where", graph.add("IsNaN", value), step.statistics_, value)
    if name != "StandardScaler":
        raise ModelFileError(
            f"export to ONNX knows StandardScaler and SimpleImputer of numbers before a model, not {name}: "
            "transform the data first and export the rest of the pipeline"
        )
    if step.mean_ is not None and step.with_mean:
        value = graph.add("Sub", value, step.mean_)
    return graph.add("Div", value, step.scale_) if step.scale_ is not None else value


def _model(graph: Graph, model: Any, X: str) -> list[str]:
    """Add the model itself; return the names of its outputs."""
    name = type(model).__name__
    if name in _REGRESSORS:
        graph.add("Squeeze", _columns(graph, model, X), np.array([1]), output="prediction")
        return ["prediction"]
    if name == "OneClassSVM":
        graph.add("Squeeze", _columns(graph, model, X), np.array([1]), output="scores")
        inside = graph.add("Cast", graph.add("GreaterOrEqual", "scores", 0.0), to=7)
        graph.add("Gather", np.array([-1, 1]), inside, output="label")
        return ["label", "scores"]
    if not hasattr(model, "classes_") or getattr(model, "multilabel_", False):
        raise ModelFileError(
            f"export to ONNX does not know {name}" + " with several labels" * hasattr(model, "classes_")
        )
    columns = _columns(graph, model, X)
    coding = model._coding
    two = coding.n_classes == 2
    if two:
        if coding.joint:
            columns = graph.product(columns, np.array([[-1.0], [1.0]]))
        graph.add("Squeeze", columns, np.array([1]), output="scores")
        number = graph.add("Cast", graph.add("GreaterOrEqual", "scores", 0.0), to=7)
    else:
        if coding.name == "ovo":
            _votes(graph, coding, columns)
        else:
            graph.add("Identity", columns, output="scores")
        number = graph.add("ArgMax", "scores", axis=1, keepdims=0)
    classes = np.asarray(model.classes_)
    graph.add("Gather", classes.astype(str) if classes.dtype.kind == "O" else classes, number, output="label")
    logits = name in _LOGITS or (name == "SGDClassifier" and model.loss == "log_loss")
    if not logits:
        if not two or np.size(getattr(model, "probA_", ())) == 0:
            return ["label", "scores"]
        _calibrated(graph, model, columns)
        return ["label", "scores", "probabilities"]
    _probabilities(graph, two, name != "SGDClassifier" and coding.joint, columns)
    return ["label", "scores", "probabilities"]


def _columns(graph: Graph, model: Any, X: str) -> str:
    """Add the score columns."""
    if hasattr(model, "dual_coef_"):
        dual = (
            model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else np.asarray(model.dual_coef_)
        )
        weights = model._pair_columns(dual) if getattr(model, "_by_pairs", False) else dual.T
        precomputed = getattr(model.kernel_, "precomputed", False)
        vectors = model.support_ if precomputed else model.support_vectors_
        values = kernel_values(graph, model.kernel_, X, vectors)
        return graph.add("Add", graph.product(values, weights), np.asarray(model.intercept_))
    if hasattr(model, "coef_"):
        coef = model.coef_.toarray() if sparse.issparse(model.coef_) else np.asarray(model.coef_)
        intercept = np.zeros(np.atleast_2d(coef).shape[0]) + np.asarray(model.intercept_, dtype=np.float64)
        return graph.add("Add", graph.product(X, np.atleast_2d(coef).T.astype(np.float64)), intercept)
    if np.ndim(getattr(model, "whitening_", 0)) == 3:
        return _quadratic(graph, model, X)
    raise ModelFileError(f"export to ONNX does not know {type(model).__name__} with these parameters")


def _quadratic(graph: Graph, model: Any, X: str) -> str:
    """Add logarithms of the joint densities of Gaussian classes, each with its own covariance."""
    parts = []
    for mean, whitening in zip(model.means_, model.whitening_, strict=True):
        Z = graph.product(graph.add("Sub", X, mean), np.asarray(whitening))
        parts.append(graph.sum(graph.add("Mul", Z, Z), 1, keep=True))
    square = graph.add("Concat", *parts, axis=1)
    # The scores of QuadraticDiscriminantAnalysis are scikit-learn's, without what all classes share.
    shared = type(model).__name__ != "QuadraticDiscriminantAnalysis"
    shift = model.means_.shape[1] * np.log(2 * np.pi) if shared else 0.0
    constant = np.log(model.priors_.astype(np.float64)) - 0.5 * (np.asarray(model.log_det_) + shift)
    joint = graph.add("Add", graph.add("Mul", square, -0.5), constant)
    return graph.product(joint, np.array([[-1.0], [1.0]])) if len(parts) == 2 else joint


def _votes(graph: Graph, coding: Any, columns: str) -> None:
    """Add the votes of pairs of classes, equal ones separated by the bounded sum of their scores."""
    codes = coding.codes.T.astype(np.float64)
    given = graph.add("Cast", graph.add("GreaterOrEqual", columns, 0.0), to=11)
    votes = graph.add("Add", graph.product(given, codes), (codes < 0).sum(axis=0).astype(np.float64))
    total = graph.product(columns, codes)
    bound = graph.add("Mul", graph.add("Add", graph.add("Abs", total), 1.0), 3.0)
    graph.add("Add", votes, graph.add("Div", total, bound), output="scores")


def _probabilities(graph: Graph, two: bool, joint: bool, columns: str) -> None:
    if two:
        both = graph.product(columns, np.array([[-1.0, 1.0]]))
        graph.add("Sigmoid", both, output="probabilities")
    elif joint:
        graph.add("Softmax", columns, axis=1, output="probabilities")
    else:
        each = graph.add("Sigmoid", columns)
        graph.add("Div", each, graph.sum(each, 1, keep=True), output="probabilities")


def _calibrated(graph: Graph, model: Any, columns: str) -> None:
    """Add the sigmoid of a machine of two classes, moved until the decision has the larger probability."""
    A, B = float(model.probA_[0]), float(model.probB_[0])
    if hasattr(model, "dual_coef_"):  # scikit-learn's sigmoid of a kernel machine is that of the first class
        B = -B
    p = graph.add("Sigmoid", graph.add("Add", graph.add("Mul", columns, -A), -B))
    chosen = graph.add("GreaterOrEqual", columns, 0.0)
    nearest = graph.add("Where", chosen, graph.add("Max", p, 0.5), graph.add("Min", p, 0.5))
    own = graph.add("Add", p, graph.add("Cast", chosen, to=11))
    tie = graph.add("Mul", own, 0.5 * _TIE)
    second = graph.add("Add", graph.add("Mul", nearest, 1.0 - _TIE), tie)
    graph.add("Concat", graph.add("Sub", 1.0, second), second, axis=1, output="probabilities")


def _described(model: Any, output: str) -> tuple[int, list[Any]]:
    """Return ONNX's type and the shape of an output."""
    from onnx import TensorProto

    if output == "label":
        kind = np.asarray(getattr(model, "classes_", np.array([0]))).dtype.kind
        types = {
            "i": TensorProto.INT64,
            "u": TensorProto.INT64,
            "f": TensorProto.DOUBLE,
            "b": TensorProto.BOOL,
        }
        return types.get(kind, TensorProto.STRING), ["samples"]
    several = len(getattr(model, "classes_", ()))
    wide = output == "probabilities" or (output == "scores" and several > 2)
    return TensorProto.DOUBLE, ["samples", several] if wide else ["samples"]


def _samples(steps: list[Any]) -> Array:
    """Draw samples around what the model knows of its data."""
    random = np.random.default_rng(0)
    final = steps[-1]
    d = int(getattr(steps[0], "n_features_in_", 0) or final.n_features_in_)
    samples = random.normal(size=(_ROWS, d))
    for name in ("support_vectors_", "means_"):
        known = getattr(final, name, None)
        if known is not None and known.shape[0] and known.shape[1] == d:
            rows = known[random.integers(known.shape[0], size=_ROWS)]
            rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
            samples = rows + 0.3 * rows.std(axis=0) * samples
            break
    for step in reversed(steps[:-1]):
        if hasattr(step, "scale_"):
            samples = step.inverse_transform(samples)
    return np.asarray(samples)


def _compare(model: Any, final: Any, samples: Array, found: dict[str, Array]) -> None:
    """Refuse a graph that does not predict as the model does."""
    arrays = [np.asarray(value) for value in vars(final).values() if isinstance(value, np.ndarray)]
    single = any(array.dtype == np.float32 for array in arrays)
    allowed = _SINGLE if single else _EXACT
    wanted = {"scores": "decision_function", "probabilities": "predict_proba", "prediction": "predict"}
    margin = np.full(len(samples), np.inf)
    for output, method in wanted.items():
        if output not in found:
            continue
        ours, theirs = np.asarray(getattr(model, method)(samples), dtype=np.float64), found[output]
        bound = allowed * (1.0 + float(np.abs(ours).max(initial=0.0)))
        off = np.abs(ours - theirs).max(initial=0.0)
        if ours.shape != theirs.shape or not off <= bound:
            raise ModelFileError(
                f"{type(final).__name__}: onnxruntime's {output} differ by {off:.3g} from the model's, and "
                f"{bound:.3g} is allowed; nothing was written. Scale the data, or report this model"
            )
        if output == "scores":
            ranked = np.sort(ours, axis=1) if ours.ndim == 2 else np.stack([-ours, ours], axis=1) / 2
            margin = np.abs(ranked[:, -1] - ranked[:, -2])
            margin[margin <= 2 * bound] = 0.0  # either label is right there
    if "label" in found:
        wrong = np.flatnonzero(
            (np.asarray(model.predict(samples)).astype(str) != found["label"].astype(str)) & (margin > 0)
        )
        if wrong.size:
            raise ModelFileError(
                f"{type(final).__name__}: onnxruntime labels {wrong.size} of {len(samples)} samples "
                f"differently, the first {found['label'][wrong[0]]!r}; nothing was written. Report this model"
            )
