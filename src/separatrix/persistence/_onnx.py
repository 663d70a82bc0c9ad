"""Export to ONNX: models as graphs of plain operators in double precision, checked against onnxruntime."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.persistence._container import ModelFileError, atomic_write
from separatrix.persistence._onnx_graph import Graph
from separatrix.persistence._onnx_models import add_model
from separatrix.persistence._onnx_steps import Columns, add_step, columns_read

Array = NDArray[Any]

#: Operators and file layout of ONNX 1.12 and later, which every runtime of the last years reads.
_OPSET, _IR = 17, 8
#: Samples of the comparison, and how far scores may differ relative to their size: double, single precision.
_ROWS, _EXACT, _SINGLE = 128, 1e-9, 1e-4


def export_onnx(model: Any, path: str | os.PathLike[str], *, X: Any = None, dtype: str = "float64") -> None:
    """Write a fitted model as an ONNX file, after comparing it with onnxruntime.

    The input is called "X". A pipeline with text columns has one input of shape (n, 1) for each column, by
    its name. The outputs of a classifier are "label", "scores" (as ``decision_function``, where the model has
    one) and, where it gives them, "probabilities"; those of ``OneClassSVM`` "label" and "scores"; that of a
    regressor "prediction".

    Parameters
    ----------
    model : estimator
        A linear, Gaussian, kernel or neighbours model (any kernel on vectors but callables), or a
        ``Pipeline`` of ``SimpleImputer``, ``StandardScaler``, ``OneHotEncoder``, ``ColumnTransformer`` of
        these, and a model.
    path : str or path
        The file, by custom ending in ``.onnx``.
    X : array-like or table of shape (n, n_features), optional
        Samples for the comparison; by default drawn around what the model knows of its data.
    dtype : {"float64", "float32"}
        Type of the numbers in the input. Everything is computed in double precision.

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
    number = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
    graph = Graph()
    read = columns_read(steps[0])
    if read is None:
        shape = ["samples", getattr(model, "n_features_in_", None)]
        inputs = [onnx.helper.make_tensor_value_info("X", number, shape)]
        value: str | Columns = graph.add("Cast", "X", to=onnx.TensorProto.DOUBLE)
    else:
        kinds = {name: onnx.TensorProto.STRING if name in read.texts else number for name in read.names}
        inputs = [onnx.helper.make_tensor_value_info(name, kinds[name], ["samples", 1]) for name in kinds]
        value = read.cast(graph)
    for step in steps[:-1]:
        value = add_step(graph, step, value)
    outputs = add_model(graph, final, str(value))
    built = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            type(final).__name__,
            inputs,
            [onnx.helper.make_tensor_value_info(name, *_described(final, name)) for name in outputs],
            graph.constants,
        ),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid("ai.onnx.ml", 1)],
        ir_version=_IR,
        producer_name="separatrix",
    )
    onnx.checker.check_model(built)
    content = built.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    if read is None:
        samples: Any = np.ascontiguousarray((_samples(steps) if X is None else _dense(X)).astype(dtype))
        found = session.run(outputs, {"X": samples})
        samples = samples.astype(np.float64)
    else:
        samples = read.samples(steps[0], _ROWS) if X is None else X
        found = session.run(outputs, read.feeds(samples, dtype))
    with warnings.catch_warnings():
        # A model that knows names of features takes nameless samples in their order; a category that was not
        # there at the fit is encoded as zeros by both.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message="Found unknown categories")
        _compare(model, final, samples, dict(zip(outputs, found, strict=True)))
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        file.write(content)


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


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def _samples(steps: list[Any]) -> Array:
    """Draw samples around what the model knows of its data."""
    random = np.random.default_rng(0)
    final = steps[-1]
    d = int(getattr(steps[0], "n_features_in_", 0) or final.n_features_in_)
    samples = random.normal(size=(_ROWS, d))
    for name in ("support_vectors_", "means_", "_fit_X"):
        known = getattr(final, name, None)
        if known is not None and known.shape[0] and known.shape[1] == d:
            rows = known[random.integers(known.shape[0], size=_ROWS)]
            rows = _dense(rows).astype(np.float64)
            samples = rows + 0.3 * rows.std(axis=0) * samples
            if getattr(final, "metric", None) == "precomputed":
                samples = np.abs(samples)
            break
    for step in reversed(steps[:-1]):
        if hasattr(step, "scale_"):
            samples = step.inverse_transform(samples)
    return np.asarray(samples)


def _compare(model: Any, final: Any, samples: Any, found: dict[str, Array]) -> None:
    """Refuse a graph that does not predict as the model does."""
    arrays = [np.asarray(value) for value in vars(final).values() if isinstance(value, np.ndarray)]
    single = any(array.dtype == np.float32 for array in arrays)
    allowed = _SINGLE if single else _EXACT
    wanted = {"scores": "decision_function", "probabilities": "predict_proba", "prediction": "predict"}
    clear = _clear(model, final, samples)
    margin = np.full(len(clear), np.inf)
    for output, method in wanted.items():
        if output not in found:
            continue
        ours, theirs = np.asarray(getattr(model, method)(samples), dtype=np.float64), found[output]
        bound = allowed * (1.0 + float(np.abs(ours).max(initial=0.0)))
        off = np.abs(ours - theirs)[clear].max(initial=0.0) if ours.shape == theirs.shape else np.inf
        if not off <= bound:
            raise ModelFileError(
                f"{type(final).__name__}: onnxruntime's {output} differ by {off:.3g} from the model's, and "
                f"{bound:.3g} is allowed; nothing was written. Scale the data, or report this model"
            )
        if output == "scores" or (output == "probabilities" and "scores" not in found):
            ranked = np.sort(ours, axis=1) if ours.ndim == 2 else np.stack([-ours, ours], axis=1) / 2
            margin = np.abs(ranked[:, -1] - ranked[:, -2])
            margin[margin <= 2 * bound] = 0.0  # either label is right there
    if "label" in found:
        labels = np.asarray(model.predict(samples)).astype(str)
        wrong = np.flatnonzero((labels != found["label"].astype(str)) & (margin > 0) & clear)
        if wrong.size:
            raise ModelFileError(
                f"{type(final).__name__}: onnxruntime labels {wrong.size} of {len(labels)} samples "
                f"differently, the first {found['label'][wrong[0]]!r}; nothing was written. Report this model"
            )


def _clear(model: Any, final: Any, samples: Any) -> NDArray[np.bool_]:
    """Tell which samples have neighbours that are nearer than all others by more than rounding."""
    rows = samples.shape[0]
    if not hasattr(final, "_fit_X") or final.n_neighbors >= final.n_samples_fit_:
        return np.ones(rows, dtype=bool)
    ready = model[:-1].transform(samples) if hasattr(model, "steps") and len(model.steps) > 1 else samples
    distances, _ = final.kneighbors(ready, final.n_neighbors + 1)
    last, next_one = distances[:, -2], distances[:, -1]
    return np.asarray(next_one - last > _EXACT * (1.0 + next_one))
