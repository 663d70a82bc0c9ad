"""What all estimators share: decisions, geometry, and the way from a loop to fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from numbers import Real
from typing import Any, Self, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from separatrix.certificate import Certificate
from separatrix.data.view import Array, DataView
from separatrix.models._labels import number_labels
from separatrix.models._records import Records
from separatrix.models._validation import check_samples, score_samples, view_samples
from separatrix.multiclass import Coding
from separatrix.problem import Problem, Result
from separatrix.solvers._judge import judge_linear
from separatrix.solvers._loop import CUT_SHORT, Observer

#: Sets of parameters that were found valid, and how many are kept.
_CHECKED: set[tuple[Any, ...]] = set()
_MOST_CHECKED = 1024
_MAX_ITER = (
    "Maximum number of iteration reached before convergence. Consider increasing max_iter to improve the "
    "fit. "
)


Fit = TypeVar("Fit", bound=Callable[..., Any])


def whole(fit: Fit) -> Fit:
    """Return a fit that leaves the estimator as it was where it raises: no new kernel beside old samples.

    It is the outermost decorator: scikit-learn's keeps in the estimator which callbacks it has to close.
    """

    @wraps(fit)
    def inside(self: Any, *given: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *given, **named)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Fit, inside)


def has_probability(model: Any) -> bool:
    """Tell that a machine was asked for probabilities, or say how to ask."""
    if model.probability == "deprecated" or not model.probability:
        raise AttributeError(
            "predict_proba is not available when probability=False: set probability=True before fit, or wrap "
            "the model in sklearn.calibration.CalibratedClassifierCV"
        )
    return True


def note_folds_cut_short(model: Any, status: str) -> None:
    """Say that the folds behind the probabilities had to stop early, though the machine may be solved."""
    if status not in CUT_SHORT:
        return
    found = model.certificate_
    note = f"the folds behind the probabilities ended early ({status})"
    model.certificate_ = replace(found, message=f"{found.message}; {note}")
    if found.status not in CUT_SHORT:
        remedy = "raise max_time" if status == "max_time" else "fit again"
        warnings.warn(
            f"{type(model).__name__}: {note}, so predict_proba is less exact than it could be: {remedy}.",
            ConvergenceWarning,
            stacklevel=4,
        )


class CheckedOnce(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters are checked, as scikit-learn does it, when they are new."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return list(super()._get_param_names())

    def _validate_params(self) -> None:
        """Check the parameters, the same ones once: for a small fit checks cost as much as the fit."""
        values = [getattr(self, name) for name in self._get_param_names()]
        key = (type(self), *map(type, values), *values)
        try:
            known = key in _CHECKED
        except TypeError:  # a dict, for example, cannot be looked up
            super()._validate_params()
            return
        if not known:
            super()._validate_params()
            # What is kept must not keep a user's data alive, as a function might.
            plain = all(isinstance(v, str | Real | None) or _is_ours(v) for v in values)
            if plain and len(_CHECKED) < _MOST_CHECKED:
                _CHECKED.add(key)


def _is_ours(value: Any) -> bool:
    return type(value).__module__.startswith("separatrix.kernels.")


class _Passes:
    """Tells scikit-learn's callbacks of each iteration, as a task of its own within the fit's."""

    def __init__(self, fit: Any, told: dict[str, Any], attributes: Callable[[], dict[str, Any]]) -> None:
        self.fit, self.told, self.attributes = fit, told, attributes
        self.task: Any = None

    def begin(self) -> None:
        learnt = None if self.task is None else self.attributes  # nothing is learnt before the first
        self.task = self.fit.subcontext(task_name="pass")
        self.task.call_on_fit_task_begin(**self.told, reconstruction_attributes=learnt)

    def end(self) -> bool:
        return bool(self.task.call_on_fit_task_end(**self.told, reconstruction_attributes=self.attributes))


class IterativeEstimator(CallbackSupportMixin, CheckedOnce):  # type: ignore[misc]
    """An estimator fitted by the one loop."""

    certificate_: Certificate
    history_ = Records()
    n_iter_: int

    def _observe(
        self,
        max_iter: int | None,
        X: Any,
        y: Any,
        metadata: dict[str, Any],
        attributes: Callable[[], dict[str, Any]],
    ) -> tuple[Any, Observer | None]:
        """Open the callbacks' context of this fit; return it and what the loop tells of iterations."""
        context = self._init_callback_context(max_subtasks=max_iter)
        told = {"estimator": self, "X": X, "y": y, "metadata": metadata}
        context.call_on_fit_task_begin(**told)
        if not getattr(self, "_skl_callbacks", None):
            return context, None

        return context, _Passes(context, told, attributes)

    def _keep_record(self, result: Result) -> None:
        """Keep what the fit has proven; refuse one that ended beyond the largest numbers."""
        if not np.isfinite(result.coef.sum() + result.intercept.sum()):
            raise ValueError(
                f"Floating-point under-/overflow occurred at epoch #{result.iterations}. Scaling input data "
                f"with StandardScaler or MinMaxScaler might help: {type(self).__name__}'s weights do not fit "
                f"in {result.coef.dtype}."
            )
        self.certificate_, self.history_ = result.certificate, result.history
        self.n_iter_ = result.iterations

    def _warn_if_unfinished(self, tol: float | None) -> None:
        status = self.certificate_.status
        if status in ("max_time", "interrupted") or (status == "max_iter" and tol is not None):
            # First what scikit-learn says: filters of warnings compare how a message begins.
            first = _MAX_ITER if status == "max_iter" else ""
            warnings.warn(
                f"{first}{type(self).__name__} stopped before convergence: {self.certificate_.message}.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class IterativeClassifier(ClassifierMixin, IterativeEstimator):  # type: ignore[misc]
    """A classifier fitted by the one loop."""

    classes_: Array
    multiclass_: str

    @property
    def _coding(self) -> Coding:
        # Of two joint discriminants only the difference decides, as in any binary model.
        name = "ovr" if len(self.classes_) == 2 else getattr(self, "multiclass_", None)
        return Coding.of(name or self._coding_name(), len(self.classes_))

    def _coding_name(self) -> str:
        """Return the coding that the parameters ask for: that of weights set by hand, without a fit."""
        return str(getattr(self, "multiclass", "ovr"))

    def _score_columns(self, view: DataView) -> Array:
        raise TypeError(f"{type(self).__name__} has no scores.")

    def _new_scores(self, X: Any) -> Array:
        """Return the score columns of new samples."""
        return self._score_columns(view_samples(self, X))

    def decision_function(self, X: Any) -> Array:
        """Return the scores ``f(x)`` that decide.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            Two classes: one score, not negative for ``classes_[1]``. More: the largest decides;
            for one-vs-one these are the votes, equal votes separated by the sum of pairwise scores.
        """
        check_is_fitted(self)
        return self._coding.decision(self._new_scores(X))

    def predict(self, X: Any) -> Array:
        """Return the class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Labels from ``classes_``.
        """
        decision = self.decision_function(X)
        return np.asarray(self.classes_[self._coding.choose(decision)])


class LinearModel:
    """Weights ``w`` and constant terms ``b``, dense or sparse."""

    coef_: Any
    intercept_: Array

    def _dense_coef(self) -> Array:
        return np.asarray(self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_)

    def _score_columns(self, view: DataView) -> Array:
        return view.scores(np.atleast_2d(self._dense_coef()), self.intercept_)

    def densify(self) -> Self:
        """Convert ``coef_`` to a dense array, its form after a fit; return the estimator."""
        check_is_fitted(self)
        self.coef_ = self._dense_coef()
        return self

    def sparsify(self) -> Self:
        """Convert ``coef_`` to a CSR matrix, smaller where most weights are 0; return the estimator."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self


class LinearClassifier(LinearModel, IterativeClassifier):
    """A classifier with scores ``f(x) = w·x + b``, and its geometry."""

    def _new_scores(self, X: Any) -> Array:
        return score_samples(self, X, self._score_columns)

    def _boundaries(self) -> tuple[Array, Array, Array]:
        check_is_fitted(self)
        coef, intercept, sides = self._coding.boundaries(self._dense_coef(), self.intercept_)
        return coef.astype(np.float64), intercept.astype(np.float64), sides

    def boundaries(self) -> list[tuple[Any, Any]]:
        """Return what each boundary separates: pairs (positive class, negative class).

        The negative side is None where it is "all other classes" (one-vs-rest). A joint model has
        one boundary per pair of classes.
        """
        pairs = []
        for sides in self._boundaries()[2].T:
            positive, negative = np.flatnonzero(sides > 0), np.flatnonzero(sides < 0)
            rest = None if len(negative) > 1 else self.classes_[negative[0]]
            pairs.append((self.classes_[positive[0]], rest))
        return pairs

    def signed_distance(self, X: Any) -> Array:
        r"""Return the signed distance ``f(x)/‖w‖`` of each sample to each boundary.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,) or (n, n_boundaries)
            Positive on the side of the boundary's positive class (see :meth:`boundaries`); NaN for
            a boundary whose weights are all 0, which is nowhere.
        """
        coef, intercept, _ = self._boundaries()
        norms = np.linalg.norm(coef, axis=1)
        scores = view_samples(self, X).scores(coef, intercept)
        distances: Array = np.full(scores.shape, np.nan)
        np.divide(scores, norms, out=distances, where=norms > 0)
        return np.asarray(distances[:, 0] if scores.shape[1] == 1 else distances)

    def boundary_offset(self) -> Array:
        r"""Return the signed offset ``−b/‖w‖`` of each boundary from the origin, along ``w``."""
        coef, intercept, _ = self._boundaries()
        norms = np.linalg.norm(coef, axis=1)
        offsets = np.full(norms.shape, np.nan)
        np.divide(-intercept, norms, out=offsets, where=norms > 0)
        return offsets

    def project(self, X: Any, boundary: int | None = None) -> Array:
        r"""Return each sample's projection ``x − f(x) w/‖w‖²`` onto a boundary.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        boundary : int or None
            Number of the boundary in :meth:`boundaries`; may be left out where there is one only.

        Returns
        -------
        ndarray of shape (n, n_features)
            Points with ``f = 0``.
        """
        coef, intercept, _ = self._boundaries()
        count = coef.shape[0]
        if boundary is None and count > 1:
            raise ValueError(
                f"there are {count} boundaries; choose one with boundary=0 … {count - 1} "
                "(boundaries() lists them)."
            )
        number = 0 if boundary is None else boundary
        if not -count <= number < count:
            raise ValueError(f"boundary={boundary} does not exist; there are {count}, numbered from 0.")
        w, b = coef[number], intercept[number]
        square = float(w @ w)
        if square == 0.0:
            raise ValueError(f"boundary {number} has only zero weights, so there is nothing to project onto.")
        X, _ = check_samples(self, X, reset=False)
        dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        return dense - np.outer((dense @ w + b) / square, w)

    def geometric_margin(self, X: Any, y: Any) -> float:
        r"""Return the smallest distance of a labelled sample to the boundaries that concern it.

        ``min_i y_i f(x_i)/‖w‖`` for two classes; with more, over the boundaries between a sample's
        class and each other class. Negative if a sample is on the wrong side.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,)
            Their labels.

        Returns
        -------
        float
            The margin of this labelled set.
        """
        check_is_fitted(self)
        view = view_samples(self, X)
        numbers = number_labels(self.classes_, np.asarray(y))
        if numbers.shape[0] != view.shape[0]:
            raise ValueError(f"X has {view.shape[0]} rows but y has {numbers.shape[0]} labels.")
        coding = self._coding
        problem = Problem(view, numbers, coding.codes, joint=coding.joint)
        return judge_linear(problem, self._dense_coef(), self.intercept_, 0.0).distance
