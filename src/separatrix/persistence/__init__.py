"""Model files: one ``.sx`` file holds a fitted model's arrays and a JSON description of the rest.

The container is safetensors: numbers lie in the file as they lie in memory, and its text metadata carry the
description under the key ``separatrix`` with a SHA-256 of everything. Loading builds only classes that are
listed in ``MODELS`` (or kernels of `separatrix.kernels`) from names and plain values; no code and no pickle
is ever read from a file. A new family of models needs one more row in ``MODELS`` and nothing else.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

import numpy as np

from separatrix.models._light_start import import_light
from separatrix.persistence._container import (
    FORMAT,
    ModelFileError,
    Tensors,
    atomic_write,
    check_text_output,
    check_writable,
    read_container,
    text_output,
    versions,
    write_container,
)
from separatrix.persistence._transformer import build_transformer, describe_transformer
from separatrix.persistence._values import Store, decode, encode

__all__ = [
    "ModelFileError", "atomic_write", "check_text_output", "check_writable", "describe", "load", "save",
    "text_output",
]  # fmt: skip

# Classes that a file may name, and where they live. Steps of a pipeline are looked up here too.
MODELS = {
    "GaussianClassifier": "separatrix",
    "KNeighborsClassifier": "separatrix",
    "KNeighborsRegressor": "separatrix",
    "KernelPerceptron": "separatrix",
    "LeastSquaresClassifier": "separatrix",
    "LinearDiscriminantAnalysis": "separatrix",
    "LinearSVC": "separatrix",
    "LinearSVR": "separatrix",
    "LogisticRegression": "separatrix",
    "MaxAbsScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "Normalizer": "sklearn.preprocessing",
    "NuSVC": "separatrix",
    "NuSVR": "separatrix",
    "OneClassSVM": "separatrix",
    "OneHotEncoder": "sklearn.preprocessing",
    "Perceptron": "separatrix",
    "QuadraticDiscriminantAnalysis": "separatrix",
    "RidgeClassifier": "separatrix",
    "RobustScaler": "sklearn.preprocessing",
    "SGDClassifier": "separatrix",
    "SGDRegressor": "separatrix",
    "SVC": "separatrix",
    "SVR": "separatrix",
    "SimpleImputer": "sklearn.impute",
    "StandardScaler": "sklearn.preprocessing",
}
# What a class keeps under private names and needs to learn on after loading.
_SGD_STATE = ("_standard_coef", "_standard_intercept", "_average_coef", "_average_intercept")
_MACHINE_STATE = ("_n_support", "_sparse", "_gamma")
_CLASSIFIER_STATE = (*_MACHINE_STATE, "_count", "_probA", "_probB")
_HIDDEN_STATE = {
    "GaussianClassifier": ("_state", "_unready"),
    "KNeighborsClassifier": ("_fit_X", "_y"),
    "KNeighborsRegressor": ("_fit_X", "_y"),
    "LinearDiscriminantAnalysis": ("_state", "_unready"),
    "NuSVC": _CLASSIFIER_STATE,
    "NuSVR": _MACHINE_STATE,
    "OneClassSVM": _MACHINE_STATE,
    "OneHotEncoder": (
        "_infrequent_enabled",
        "_infrequent_indices",
        "_default_to_infrequent_mappings",
        "_drop_idx_after_grouping",
        "_n_features_outs",
    ),
    "Perceptron": ("_average_state",),
    "QuadraticDiscriminantAnalysis": ("_state", "_unready"),
    "RidgeClassifier": ("_sparse_labels",),
    "SGDClassifier": _SGD_STATE,
    "SGDRegressor": _SGD_STATE,
    "SVC": _CLASSIFIER_STATE,
    "SVR": _MACHINE_STATE,
    "SimpleImputer": ("_fit_dtype", "_fill_dtype"),
}
# What is left out: it says why a fit failed, and no prediction needs it.
_LEFT_OUT = ("witness_",)
_FITTED_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file, completely or not at all.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a scikit-learn ``Pipeline`` that ends in one and begins with
        ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler``, ``RobustScaler``, ``Normalizer``,
        ``OneHotEncoder``, ``SimpleImputer`` or a ``ColumnTransformer`` of these.
    path : str or path
        The file, by custom ending in ``.sx``. An existing file is replaced only once the new one is whole.

    Raises
    ------
    ModelFileError
        If the model is of another class or holds a value that no file can keep, such as a function.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import separatrix as sx
    >>> model = sx.Perceptron().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "model.sx")
    >>> sx.save(model, file)
    >>> sx.load(file).predict([[-1.0], [5.0]]).tolist()
    ['low', 'high']
    >>> folder.cleanup()
    """
    from sklearn.utils.validation import check_is_fitted

    name = os.fspath(path)
    tensors: Tensors = {}
    try:
        described = _describe_model(model, "model", tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{name}: cannot save the model: {error}") from None
    check_is_fitted(model)
    write_container(name, tensors, {"format": FORMAT, "versions": versions(), "model": described})


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        A fitted model that predicts exactly as the saved one.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is no model file, is damaged, or was written by a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import separatrix as sx
    >>> model = sx.Perceptron().fit([[-2.0], [-1.0], [1.0], [2.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sx.save(model, pathlib.Path(folder, "model.sx"))
    ...     again = sx.load(pathlib.Path(folder, "model.sx"))
    >>> again.predict([[-3.0], [3.0]]).tolist(), again.certificate_.status
    (['low', 'high'], 'separable')
    """
    name = os.fspath(path)
    description, tensors = read_container(name)
    try:
        return _build_model(description["model"], Store(tensors))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, ModelFileError) else f"unexpected content ({error})"
        raise ModelFileError(
            f"{name}: cannot load the model: {reason}; upgrade separatrix if a newer version wrote the file, "
            "otherwise save the model again"
        ) from None


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the format, the library versions and the sizes of a model file, after checking it."""
    name = os.fspath(path)
    description, tensors = read_container(name)
    return {
        "format": description["format"],
        "versions": description.get("versions", {}),
        "file_bytes": os.path.getsize(name),
        "arrays": len(tensors),
        "array_bytes": sum(tensor.nbytes for tensor in tensors.values()),
    }


def _known() -> str:
    ours = "estimators of separatrix"
    others = [name for name, home in MODELS.items() if home != "separatrix"]
    return ", ".join([ours, *others, "ColumnTransformer and Pipeline"])


def _model_class(name: str) -> type[Any]:
    if name not in MODELS:
        raise ModelFileError(f"{name!r} is not a class that model files can hold ({_known()})")
    home = MODELS[name]
    module = importlib.import_module(home) if home == "separatrix" else import_light(home)
    found: type[Any] = getattr(module, name)
    return found


def _describe_model(model: Any, key: str, tensors: Tensors) -> dict[str, Any]:
    from sklearn.utils.validation import check_is_fitted

    name = type(model).__name__
    if name == "Pipeline" and type(model) is import_light("sklearn.pipeline").Pipeline:
        if model.memory is not None or getattr(model, "transform_input", None) is not None:
            raise ModelFileError("a Pipeline with memory or transform_input; set both to None first")
        steps = [
            [step, _describe_model(part, f"{key}.{step}", tensors)]
            for step, part in model.steps
            if part is not None and part != "passthrough"  # which does nothing
        ]
        return {"class": name, "steps": steps}
    if name == "ColumnTransformer":
        from sklearn.compose import ColumnTransformer

        if type(model) is ColumnTransformer:
            check_is_fitted(model)
            return describe_transformer(
                model, lambda part, step: _describe_model(part, f"{key}.{step}", tensors)
            )
    if name not in MODELS:
        if hasattr(model, "best_estimator_"):
            raise ModelFileError(f"model files hold no {name}; save what it has found, its best_estimator_")
        raise ModelFileError(
            f"model files hold no {name}, but {_known()}; transform the data with it before the fit, or keep "
            "the model with pickle, in files that only you load"
        )
    if type(model) is not _model_class(name):
        raise ModelFileError(f"{type(model).__module__}.{name} is another class than {MODELS[name]}.{name}")
    fitted = {attribute: value for attribute, value in vars(model).items() if _is_fitted(name, attribute)}
    parameters = model.get_params(deep=False)
    return {
        "class": name,
        "parameters": _describe_values(parameters, f"parameter {{!r}} of {name}", key, tensors),
        "fitted": _describe_values(fitted, f"attribute {{!r}} of {name}", key, tensors),
    }


def _is_fitted(class_name: str, attribute: str) -> bool:
    if attribute in _HIDDEN_STATE.get(class_name, ()):
        return True
    named = bool(_FITTED_NAME.fullmatch(attribute)) and not attribute.endswith("__")
    return named and attribute not in _LEFT_OUT


def _describe_values(values: dict[str, Any], role: str, key: str, tensors: Tensors) -> dict[str, Any]:
    described = {}
    for name, value in values.items():
        try:
            described[name] = encode(value, f"{key}.{name}", tensors)
        except ModelFileError as error:
            raise ModelFileError(f"{role.format(name)} {error}") from None
    return described


def _build_model(node: dict[str, Any], tensors: Store) -> Any:
    if node["class"] == "Pipeline":
        steps = [(str(step), _build_model(part, tensors)) for step, part in node["steps"]]
        return import_light("sklearn.pipeline").Pipeline(steps)
    if node["class"] == "ColumnTransformer":
        return build_transformer(node, lambda part: _build_model(part, tensors))
    cls = _model_class(node["class"])
    model = cls(**{name: decode(value, tensors) for name, value in node["parameters"].items()})
    for name, value in node["fitted"].items():
        # A fitted attribute is data: nothing that the class defines itself may be replaced by the file.
        if not _is_fitted(node["class"], name) or hasattr(cls, name):
            raise ModelFileError(f"{node['class']} has no fitted attribute {name!r}")
        setattr(model, name, decode(value, tensors))
    _check_shapes(model)
    return model


def _rows(array: Any, name: str) -> int:
    return 1 if name == "coef_" and np.ndim(array) == 1 else int(np.shape(array)[0])


def _check_shapes(model: Any) -> None:
    """Refuse arrays that do not fit together: compiled code trusts their lengths."""
    if hasattr(model, "_n_support"):
        _check_machine(model)
        return
    if hasattr(model, "_fit_X"):
        if not model._fit_X.shape[0] == len(model._y) == model.n_samples_fit_:
            raise ModelFileError("_fit_X and _y differ in length")
        return
    # Texts have no features; string kernels check what they get themselves.
    texts = getattr(getattr(model, "kernel_", None), "samples", "vectors") == "texts"
    features = 0 if texts else int(model.n_features_in_)
    for name in () if texts else ("coef_", "support_vectors_", "class_coef_"):
        # RidgeClassifier keeps the weights of two classes as one row, as scikit-learn does.
        if hasattr(model, name) and np.shape(getattr(model, name))[-1:] != (features,):
            raise ModelFileError(f"{name} does not have {features} columns")
    for name, other in (
        ("intercept_", "coef_"),
        ("class_intercept_", "class_coef_"),
        ("support_", "support_vectors_"),
        ("intercept_", "dual_coef_"),
    ):
        lengths = {_rows(getattr(model, part), part) for part in (name, other) if hasattr(model, part)}
        if len(lengths) > 1:
            raise ModelFileError(f"{name} and {other} differ in length")
    if hasattr(model, "dual_coef_") and np.shape(model.dual_coef_)[1] != model.support_vectors_.shape[0]:
        raise ModelFileError("dual_coef_ and support_vectors_ differ in length")
    if (state := getattr(model, "_average_state", None)) is not None:
        weights = np.shape(getattr(model, "class_coef_", model.coef_))
        wanted = {
            "coef": weights,
            "drift": weights,
            "intercept": weights[:1],
            "drift_intercepts": weights[:1],
        }
        if {name: np.shape(state[name]) for name in wanted} != wanted or np.size(state["clock"]) != 1:
            raise ModelFileError("_average_state does not fit the weights")
    if hasattr(model, "categories_"):
        _check_categories(model, features)
    for name in ("mean_", "scale_", "var_", "statistics_"):
        if getattr(model, name, None) is not None and np.shape(getattr(model, name)) != (features,):
            raise ModelFileError(f"{name} does not have {features} values")


def _check_machine(model: Any) -> None:
    """Refuse a kernel machine whose parts contradict each other."""
    count, samples = int(np.shape(model.support_)[0]), model.kernel_.samples
    if np.shape(model.dual_coef_)[1] != count or int(np.sum(model._n_support)) != count:
        raise ModelFileError("dual_coef_ and support_ differ in length")
    vectors = model.support_vectors_
    if samples == "matrix":
        least, most = (int(pick(model.support_)) if count else 0 for pick in (np.min, np.max))
        if least < 0 or most >= model.shape_fit_[0]:
            raise ModelFileError("support_ names samples that the fit did not have")
    elif np.shape(vectors)[0] != count:
        raise ModelFileError("support_vectors_ and support_ differ in length")
    elif samples != "texts" and np.ndim(vectors) == 2 and np.shape(vectors)[1] != model.n_features_in_:
        raise ModelFileError(f"support_vectors_ does not have {model.n_features_in_} columns")
    rows = int(np.shape(model.dual_coef_)[0])
    pairs = getattr(model, "multiclass_", "") == "ovo" and len(model.classes_) > 2
    if np.shape(model.intercept_) != (rows * (rows + 1) // 2 if pairs else rows,):
        raise ModelFileError("intercept_ and dual_coef_ differ in length")


def _check_categories(encoder: Any, features: int) -> None:
    """Refuse an encoder whose parts contradict each other."""
    categories, widths = encoder.categories_, encoder._n_features_outs
    if not isinstance(categories, list) or len(categories) != features or len(widths) != features:
        raise ModelFileError(f"categories_ does not have {features} entries")
    # Dropped and infrequent categories make the output narrower than the categories are many.
    for values, width in zip(categories, widths, strict=True):
        if not isinstance(values, np.ndarray) or values.ndim != 1 or not 0 <= int(width) <= len(values):
            raise ModelFileError("categories_ does not fit the number of columns it makes")
