r"""LIBLINEAR's model files: its ``train`` writes them, its ``predict`` reads them.

A file holds one line per feature with a weight for each column: one column for two classes, positive for the
*first* label of its line ``label``, else one per class, the largest deciding. Where ``bias`` is not negative,
a last line has the weights of a constant feature of that value. A one-class machine has neither labels nor
bias, but a threshold ``rho``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.certificate import Certificate
from separatrix.models.linear_svm import LinearSVC
from separatrix.models.linear_svr import LinearSVR
from separatrix.models.logistic import LogisticRegression
from separatrix.models.perceptron import Perceptron
from separatrix.models.sgd import SGDClassifier
from separatrix.persistence._container import ModelFileError, text_output
from separatrix.persistence._text import Header, last_step, whole_labels

Array = NDArray[Any]

_LOGISTIC = {"L2R_LR": "l2", "L1R_LR": "l1", "L2R_LR_DUAL": "l2"}
_CLASSIFIERS = {
    "L2R_L2LOSS_SVC_DUAL": ("l2", "squared_hinge"),
    "L2R_L2LOSS_SVC": ("l2", "squared_hinge"),
    "L2R_L1LOSS_SVC_DUAL": ("l2", "hinge"),
    "MCSVM_CS": ("l2", "hinge"),
    "L1R_L2LOSS_SVC": ("l1", "squared_hinge"),
}
_REGRESSORS = {
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
}
_ONE_CLASS = "ONECLASS_SVM"
SOLVERS = (*_LOGISTIC, *_CLASSIFIERS, *_REGRESSORS, _ONE_CLASS)
_FIELDS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")
_MOST_CLASSES, _MOST_FEATURES = 2**24, 2**31 - 1


@dataclass(frozen=True, eq=False)
class LiblinearModel:
    """A LIBLINEAR model as its file has it.

    Attributes
    ----------
    solver : str
        LIBLINEAR's name of the problem, such as "L2R_LR".
    labels : list of int or None
        The classes in the file's order; None for regression and for one class.
    coef : ndarray of shape (columns, n_features)
        Weights.
    constant : ndarray of shape (columns,)
        Weights of the constant feature; 0 if there is none.
    bias : float
        Value of the constant feature; negative if there is none.
    rho : float
        What is subtracted from the scores of a one-class machine.
    """

    solver: str
    labels: list[int] | None
    coef: Array
    constant: Array
    bias: float
    rho: float = 0.0

    @property
    def one_class(self) -> bool:
        """Whether the model tells samples like those of the fit (1) from outliers (−1)."""
        return self.solver == _ONE_CLASS

    @property
    def intercept(self) -> Array:
        """What the constant feature, or the threshold, adds to each score."""
        return self.constant * max(self.bias, 0.0) - self.rho

    @property
    def probabilistic(self) -> bool:
        """Whether the scores are logits."""
        return self.solver in _LOGISTIC

    def scores(self, X: Any) -> Array:
        """Return the score columns; features that the model does not know count nothing."""
        width = min(X.shape[1], self.coef.shape[1])
        return np.asarray(X[:, :width] @ self.coef[:, :width].T + self.intercept)

    def decide(self, scores: Array) -> Array:
        """Return labels or, for regression, the scores themselves."""
        if self.one_class:
            return np.where(scores[:, 0] > 0, 1, -1)
        if self.labels is None:
            return scores[:, 0]
        labels = np.array(self.labels)
        if scores.shape[1] == 1:
            return np.asarray(np.where(scores[:, 0] > 0, labels[0], labels[1]))
        return np.asarray(labels[np.argmax(scores, axis=1)])

    def probabilities(self, scores: Array) -> Array:
        """Return what LIBLINEAR takes for the classes' probabilities, in the order of the labels."""
        p = np.exp(-np.logaddexp(0.0, -scores))
        if scores.shape[1] == 1:
            return np.concatenate([p, np.exp(-np.logaddexp(0.0, scores))], axis=1)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def listed(self, labels: Sequence[int]) -> LiblinearModel:
        """Return the same model with its labels in another order."""
        assert self.labels is not None
        order = [self.labels.index(label) for label in labels]
        coef, constant = self.coef, self.constant
        if len(coef) == 1:  # a positive score is the first label's
            sign = 1.0 if order[0] == 0 else -1.0
            coef, constant = sign * coef + 0.0, sign * constant + 0.0
        else:
            coef, constant = coef[order], constant[order]
        return replace(self, labels=[int(label) for label in labels], coef=coef, constant=constant)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file."""
        lines = [f"solver_type {self.solver}", f"nr_class {2 if self.labels is None else len(self.labels)}"]
        if self.labels is not None:
            lines.append(f"label {' '.join(map(str, self.labels))}")
        lines += [f"nr_feature {self.coef.shape[1]}", f"bias {self.bias!r}"]
        lines += [*([f"rho {self.rho!r}"] if self.one_class else []), "w"]
        with text_output(path) as file:
            file.writelines(f"{line}\n" for line in lines)
            weights = self.coef if self.bias < 0 else np.column_stack([self.coef, self.constant])
            for row in weights.T.astype(np.float64):
                file.write(" ".join(map(repr, row.tolist())) + " \n")


def export_liblinear(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted linear model as a LIBLINEAR model file, which LIBLINEAR's ``predict`` reads.

    A softmax over several classes is written as MCSVM_CS, whose scores decide in the same way and for which
    LIBLINEAR computes no probabilities: its own are those of one-vs-rest.

    Parameters
    ----------
    model : LinearSVC, LogisticRegression, LinearSVR, SGDClassifier or Perceptron
        A fitted model; classes are whole numbers, several of them not learnt one-vs-one.
    path : str or path
        The file, by custom ending in ``.model``.

    Raises
    ------
    ModelFileError
        If the file format cannot express the model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import separatrix as sx
    >>> from separatrix.persistence.interchange import export_liblinear, import_liblinear
    >>> model = sx.LogisticRegression().fit([[-2.0], [-1.0], [1.0], [2.0]], [1, 1, 2, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "linear.model")
    ...     export_liblinear(model, file)
    ...     back = import_liblinear(file)
    >>> back.predict([[-0.5], [0.5]]).tolist(), bool(back.coef_[0, 0] == model.coef_[0, 0])
    ([1, 2], True)
    """
    as_liblinear(model).write(path)


def as_liblinear(model: Any) -> LiblinearModel:
    """Return a fitted linear model in LIBLINEAR's form."""
    model = last_step(model, "LIBLINEAR")
    solver = _solver_of(model)
    coef = np.atleast_2d(model._dense_coef()).astype(np.float64)
    intercept = np.zeros(coef.shape[0]) + np.asarray(model.intercept_, dtype=np.float64)
    bias = 1.0 if getattr(model, "fit_intercept", True) else -1.0
    if type(model) is LinearSVR:
        return LiblinearModel(solver, None, coef, intercept, bias)
    labels = whole_labels(model.classes_, "LIBLINEAR")
    if len(labels) == 2:
        # A positive score is the first label's there, and the second's here.
        coef, intercept = -coef, -intercept
    elif model.multiclass_ == "ovo":
        raise ModelFileError("LIBLINEAR has one column per class, not per pair: fit with multiclass='ovr'")
    return LiblinearModel(solver, labels, coef + 0.0, intercept + 0.0, bias)


def _solver_of(model: Any) -> str:
    if type(model) is LinearSVR:
        return "L2R_L1LOSS_SVR_DUAL" if model.loss == "epsilon_insensitive" else "L2R_L2LOSS_SVR"
    several = hasattr(model, "classes_") and len(model.classes_) > 2
    if type(model) is LinearSVC:
        if several and model.multiclass_ == "joint":
            return "MCSVM_CS"
        pair = (model.penalty, model.loss)
        return next(
            name for name, known in reversed(_CLASSIFIERS.items()) if known == pair and name != "MCSVM_CS"
        )
    if type(model) is LogisticRegression:
        return "MCSVM_CS" if several and model.multiclass_ == "joint" else "L2R_LR"
    if type(model) is SGDClassifier:
        return {"log_loss": "L2R_LR", "hinge": "L2R_L1LOSS_SVC_DUAL"}.get(model.loss, "L2R_L2LOSS_SVC")
    if type(model) is Perceptron:
        return "MCSVM_CS" if several else "L2R_L1LOSS_SVC_DUAL"
    raise ModelFileError(
        "LIBLINEAR model files hold LinearSVC, LogisticRegression, LinearSVR, SGDClassifier and Perceptron; "
        f"not {type(model).__name__}"
    )


def read_liblinear(path: str | os.PathLike[str]) -> LiblinearModel:
    """Read a LIBLINEAR model file as it is."""
    header = Header(path, b"w", _FIELDS, "LIBLINEAR")
    solver = header.word("solver_type", SOLVERS)
    K = header.whole("nr_class", 2, _MOST_CLASSES)
    labels = None
    rho = float(header.numbers("rho", 1)[0]) if solver == _ONE_CLASS else 0.0
    if solver not in _REGRESSORS and solver != _ONE_CLASS:
        labels = header.wholes("label", K)
        if len(set(labels)) < K:
            raise header.error(header.lines, "label names a class twice")
    columns = 1 if K == 2 and solver != "MCSVM_CS" else K
    features, bias = header.whole("nr_feature", 0, _MOST_FEATURES), float(header.numbers("bias", 1)[0])
    rows = features + (bias >= 0)
    lines = header.body.split(b"\n")
    if lines and not lines[-1].strip():
        lines.pop()
    if len(lines) != rows or 2 * rows * columns > len(header.body) + rows:
        raise header.error(
            header.lines + len(lines),
            f"{len(lines):,} lines follow 'w', and nr_feature and bias ask for {rows:,} of {columns:,} "
            "weights",
        )
    W = np.empty((rows, columns))
    for number, line in enumerate(lines):
        words = line.split()
        if len(words) != columns:
            raise header.error(
                header.lines + 1 + number, f"{columns:,} weights are expected here, not {len(words):,}"
            )
        W[number] = header.floats(words, header.lines + 1 + number, "weight")
    constant = W[-1] if bias >= 0 else np.zeros(columns)
    return LiblinearModel(solver, labels, np.ascontiguousarray(W[:features].T), constant, bias, rho)


def import_liblinear(path: str | os.PathLike[str]) -> Any:
    """Read a LIBLINEAR model file as a fitted model.

    The model is a ``LogisticRegression`` (several classes one-vs-rest, as LIBLINEAR learns them),
    ``LinearSVC`` or ``LinearSVR``. What the file does not say (``C``, ``epsilon``) has its default in the
    parameters.

    Parameters
    ----------
    path : str or path
        A file written by LIBLINEAR's ``train``, one of its bindings, or :func:`export_liblinear`.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged or of another kind, or a one-class machine; the message names line and reason.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from separatrix.persistence.interchange import import_liblinear
    >>> text = "solver_type L2R_LR\\nnr_class 2\\nlabel 1 -1\\nnr_feature 2\\nbias -1\\nw\\n0.5\\n-1.25\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "linear.model")
    ...     _ = file.write_text(text)
    ...     model = import_liblinear(file)
    >>> model.coef_.tolist(), model.predict([[2.0, 0.0]]).tolist()
    ([[0.5, -1.25]], [1])
    """
    found = read_liblinear(path)
    if found.coef.shape[1] == 0:
        raise ModelFileError(f"{os.fspath(path)}: the model has no features")
    if found.one_class:
        raise ModelFileError(
            f"{os.fspath(path)}: a one-class model of LIBLINEAR keeps no support vectors, which OneClassSVM "
            "needs; 'separatrix liblinear-predict' reads the file"
        )
    fit_intercept = found.bias >= 0
    given: dict[str, Any] = {"fit_intercept": fit_intercept}
    if found.bias > 0:
        given["intercept_scaling"] = found.bias
    model: Any
    if found.labels is None:
        model = LinearSVR(loss=_REGRESSORS[found.solver], **given)
        model.coef_, model.intercept_ = found.coef[0], found.intercept
    else:
        model = _classifier(found, given)
        _keep_classes(model, found)
    model.n_features_in_, model.history_ = found.coef.shape[1], []
    model.n_iter_ = np.zeros(1, dtype=np.int32) if type(model) is LogisticRegression else 0
    message = "read from a LIBLINEAR model file, which keeps neither objective nor proof"
    model.certificate_ = Certificate(status="imported", message=message)
    return model


def _classifier(found: LiblinearModel, given: dict[str, Any]) -> Any:
    fit_intercept = given["fit_intercept"]
    if found.solver not in _LOGISTIC:
        penalty, loss = _CLASSIFIERS[found.solver]
        joint = found.solver == "MCSVM_CS"
        return LinearSVC(penalty, loss, multi_class="crammer_singer" if joint else "ovr", **given)
    l1 = _LOGISTIC[found.solver] == "l1"
    model = LogisticRegression(fit_intercept=fit_intercept, l1_ratio=float(l1), multiclass="ovr")
    model.separation_ = None
    return model


def _keep_classes(model: Any, found: LiblinearModel) -> None:
    assert found.labels is not None
    order = np.argsort(found.labels)
    coef, intercept = found.coef, found.intercept
    if len(order) == 2:
        if coef.shape[0] == 2:  # the joint problem keeps both columns
            coef, intercept = coef[order[1:]] - coef[order[:1]], intercept[order[1:]] - intercept[order[:1]]
        elif order[0] == 0:
            coef, intercept = -coef, -intercept
    else:
        coef, intercept = coef[order], intercept[order]
    model.coef_, model.intercept_ = np.ascontiguousarray(coef) + 0.0, np.ascontiguousarray(intercept) + 0.0
    model.classes_ = np.array(found.labels)[order]
    model.multiclass_ = "joint" if found.solver == "MCSVM_CS" else "ovr"
