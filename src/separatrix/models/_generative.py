"""What the Gaussian models share: moments in, densities and posteriors out."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import check_is_fitted

from separatrix.certificate import Certificate
from separatrix.data.memory import view_of
from separatrix.data.products import NotFiniteError
from separatrix.data.room import demand
from separatrix.data.view import Array, DataView
from separatrix.models._base import IterativeClassifier
from separatrix.models._bounded import bounded
from separatrix.models._labels import encode_labels, number_labels, shown
from separatrix.models._validation import check_finite, check_samples, refuse_sums, view_samples
from separatrix.models._weights import drawn_only, refuse_empty_classes, sample_weights
from separatrix.solvers._room import gaussian_bytes
from separatrix.solvers.gaussian import log_posterior, log_sum_exp, posterior
from separatrix.solvers.moments import Moments, class_moments

#: All that a fit of any Gaussian model may leave behind, besides the classes and the features.
_LEARNT = (
    *("certificate_", "coef_", "covariance_", "explained_variance_ratio_", "history_", "intercept_"),
    *("log_det_", "means_", "priors_", "rotations_", "scalings_", "shrinkage_", "whitening_", "xbar_"),
    *("_state", "_unready"),
)


@dataclass(frozen=True, eq=False)
class Training:
    """The samples of a fit, for what moments alone do not tell."""

    view: DataView
    classes: Array
    weights: Array | None


class GenerativeClassifier(IterativeClassifier, ABC):
    """``p(x | k) = N(μ_k, Σ_k)``, ``p(k) = π_k``: closed form, from the moments of each class."""

    #: More than two classes: one score per class, and the largest wins.
    multiclass_ = "joint"
    means_: Array
    priors_: Array
    max_memory: float | None
    _state: dict[str, Array]

    # What a model says about itself ----------------------------------------------------------

    @abstractmethod
    def _kind(self) -> str:
        """Return which moments the model needs."""

    def _kind_of_fit(self, shape: tuple[int, int]) -> str:
        """Return which moments a fit on samples of this shape needs."""
        return self._kind()

    def _refuse_stream(self) -> None:
        """Raise an error if the parameters need all samples at once."""

    @abstractmethod
    def _solve(self, moments: Moments, counts: Array, training: Training | None, dtype: Any) -> Certificate:
        """Set the fitted attributes; ``training`` is None in a stream."""

    @abstractmethod
    def _log_densities(self, view: DataView) -> Array:
        """Return ``log N(x; μ_k, Σ_k)`` for each class."""

    @abstractmethod
    def _roots(self) -> list[Array]:
        """Return matrices ``A_k`` with ``A_k A_kᵀ = Σ_k``."""

    # Fitting ---------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @bounded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model in closed form.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples: weight 2 is the sample twice, weight 0 its absence.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        begin = time.perf_counter()
        X, y = check_samples(self, X, y, reset=True, finite=False)
        # Sums of products tell by themselves whether dense samples are finite.
        kind = self._kind_of_fit(X.shape)
        if kind not in ("shared", "full") or sparse.issparse(X):
            check_finite(self, X)
        classes, numbers = encode_labels(self, y)
        weights = sample_weights(X, y, numbers, classes, sample_weight, None)
        drawn = refuse_empty_classes(classes, numbers, weights, sample_weight)
        if drawn is not None:
            classes, numbers = drawn_only(drawn, classes, numbers)
        counts = np.bincount(numbers if weights is None else numbers[weights > 0], minlength=len(classes))
        self._forget()
        self.classes_ = classes
        # Without callbacks no context is opened: it costs more than a small fit.
        context = None
        if getattr(self, "_skl_callbacks", None):
            context, _ = self._observe(1, X, y, {"sample_weight": sample_weight}, dict)
        view = view_of(X)
        self._demand_room(view, kind)
        try:
            moments = class_moments(view, numbers, len(classes), weights, kind=kind, single=True)
        except NotFiniteError:
            refuse_sums(self, X)
        self._finish(moments, counts, Training(view, numbers, weights), view.dtype, begin)
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @bounded
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Take a batch into account; all batches together give the model that one fit gives.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples of the batch.
        y : array-like of shape (n,)
            Their labels.
        classes : array-like or None
            All classes that will ever come; needed in the first call.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples.

        Returns
        -------
        estimator
            The estimator itself. As long as the samples do not suffice (a class without samples, a
            singular covariance), it goes on learning but does not predict, and says why.
        """
        begin = time.perf_counter()
        self._refuse_stream()
        X, y = check_samples(self, X, y, reset=not hasattr(self, "classes_"), squares=True)
        _check_partial_fit_first_call(self, classes)
        if len(self.classes_) < 2:
            raise ValueError("The number of classes has to be greater than one; got 1 class.")
        numbers = number_labels(self.classes_, y)
        weights = sample_weights(X, y, numbers, self.classes_, sample_weight, None)
        view = view_of(X)
        kind, n_classes = self._kind(), len(self.classes_)
        self._demand_room(view, kind)
        counts = np.bincount(numbers if weights is None else numbers[weights > 0], minlength=n_classes)
        moments = class_moments(view, numbers, n_classes, weights, kind=kind)
        dtype = view.dtype
        if (state := getattr(self, "_state", None)) is not None:
            moments = self._moments_so_far(state, kind) + moments
            counts = state["counts"] + counts
            dtype = np.result_type(dtype, getattr(self, "means_", np.empty(0, dtype)).dtype)
        self._forget()
        try:
            self._finish(moments, counts, None, dtype, begin)
        except ValueError as error:  # LinAlgError is one
            self._forget()
            self._keep(moments, counts)
            self._unready = str(error)
        return self

    def _demand_room(self, view: DataView, kind: str) -> None:
        """Refuse a fit that would take more memory than is allowed."""
        needed = gaussian_bytes(view, len(self.classes_), kind)
        other = "" if kind == "diagonal" else "choose GaussianClassifier(covariance='diagonal')"
        demand(needed, f"{type(self).__name__} of {view.shape[1]:,} features", other)

    def _moments_so_far(self, state: dict[str, Array], kind: str) -> Moments:
        parts = {name: part for name, part in state.items() if name != "counts"}
        if (rows := parts.pop("rows", None)) is not None:
            parts["scatter"] = rows.T @ rows
        return Moments(**parts, kind=kind)

    def _finish(
        self, moments: Moments, counts: Array, training: Training | None, dtype: Any, begin: float
    ) -> None:
        with np.errstate(over="ignore"):
            certificate = self._solve(moments, counts, training, dtype)
        self._refuse_overflow(dtype)
        self._keep(moments, counts)
        self.history_ = []
        self.certificate_ = replace(
            certificate, seconds=time.perf_counter() - begin, iterations=1, samples=int(counts.sum())
        )

    def _refuse_overflow(self, dtype: Any) -> None:
        """Refuse parameters that the type of the data cannot hold: the features are in extreme units."""
        for name in ("coef_", "whitening_", "means_"):  # an intercept of −∞ is that of a class with prior 0
            values = getattr(self, name, None)
            if values is not None and not isfinite(np.add.reduce(values, axis=None, dtype=np.float64)):
                wider = " or pass X as float64" if dtype == np.float32 else ""
                raise ValueError(
                    f"{name} overflows {np.dtype(dtype).name}: the features are too large or too small. "
                    f"Scale them, for example with sklearn.preprocessing.StandardScaler{wider}."
                )

    def _keep(self, moments: Moments, counts: Array) -> None:
        self._state = {
            "weight": moments.weight,
            "mean": moments.mean,
            "rows" if moments.kind == "rows" else "scatter": moments.scatter,
            "rest": moments.rest,
            "counts": counts,
        }

    def _forget(self) -> None:
        """Drop what an earlier fit with other parameters may have left; what a subclass has set stays."""
        for name in _LEARNT:
            self.__dict__.pop(name, None)

    def _check_priors(self, moments: Moments, *, renormalise: bool) -> Array:
        """Return the class probabilities, given or as frequent as the classes."""
        given = getattr(self, "priors", None)
        if given is None:
            return np.asarray(moments.weight / moments.weight.sum())
        priors = np.array(given, dtype=np.float64)
        if priors.shape != (len(self.classes_),):
            raise ValueError(
                f"priors must hold one probability per class, {len(self.classes_)} here "
                f"({', '.join(shown(label) for label in self.classes_[:20])}); got an array of shape "
                f"{priors.shape}."
            )
        if not np.all(priors >= 0) or not np.isfinite(priors).all() or not priors.any():
            raise ValueError(f"priors must be non-negative and not all 0; got {priors.tolist()}.")
        missing = np.flatnonzero((moments.weight == 0) & (priors > 0))
        if missing.size:
            raise ValueError(
                f"class {shown(self.classes_[missing[0]])} has a prior but no samples: its mean is unknown."
            )
        if abs(priors.sum() - 1.0) > 1e-5:
            if not renormalise:
                raise ValueError(
                    f"priors must sum to 1; they sum to {priors.sum():g}. Divide them by their sum."
                )
            warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=5)
            priors /= priors.sum()
        return priors

    # Using the fitted model --------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "means_")

    def _check_ready(self) -> None:
        if (reason := getattr(self, "_unready", None)) is not None:
            raise NotFittedError(f"{type(self).__name__} needs more samples before it can predict: {reason}")
        check_is_fitted(self)

    def _log_joint(self, view: DataView) -> Array:
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.priors_.astype(np.float64))
        return np.asarray(self._log_densities(view) + log_priors)

    def _score_columns(self, view: DataView) -> Array:
        if hasattr(self, "coef_"):
            return np.asarray(super()._score_columns(view))
        joint = self._log_joint(view)
        return joint[:, 1:] - joint[:, :1] if joint.shape[1] == 2 else joint

    def decision_function(self, X: Any) -> Array:
        """Return the scores: logarithms of the posteriors up to a common part.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            Two classes: ``log p(1|x) − log p(0|x)``. More: one column per class; the largest decides.
        """
        self._check_ready()
        return super().decision_function(X)

    def predict_log_proba(self, X: Any) -> Array:
        """Return ``log p(k | x)``, exact also where ``p`` itself underflows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Columns in the order of ``classes_``.
        """
        f = self.decision_function(X)
        if f.ndim == 1:
            zero = f.dtype.type(0)
            return np.column_stack([-np.logaddexp(zero, f), -np.logaddexp(zero, -f)])
        return log_posterior(f)

    def predict_proba(self, X: Any) -> Array:
        """Return ``p(k | x)``: the logistic function of the score of two classes, else the softmax.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Rows that sum to 1; columns in the order of ``classes_``.
        """
        f = self.decision_function(X)
        if f.ndim == 1:
            return np.column_stack([expit(-f), expit(f)])
        return posterior(f)

    def class_log_density(self, X: Any) -> Array:
        """Return ``log p(x | k)`` of each sample and class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Logarithms of the densities; on the subspace of the data where a covariance is singular.
        """
        self._check_ready()
        return self._log_densities(view_samples(self, X))

    def log_density(self, X: Any) -> Array:
        """Return ``log p(x) = log Σ_k π_k p(x | k)``; low values mark samples unlike all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Logarithms of the density.
        """
        self._check_ready()
        return log_sum_exp(self._log_joint(view_samples(self, X)))

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw labelled samples from the model: a class by ``π``, then ``x`` from its Gaussian.

        Parameters
        ----------
        n : int
            How many.
        random_state : int, RandomState instance or None
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (n, n_features)
            Samples.
        y : ndarray of shape (n,)
            Their labels.
        """
        self._check_ready()
        if int(n) != n or n < 0:
            raise ValueError(f"n must be a whole number of samples, not negative; got {n!r}.")
        random = check_random_state(random_state)
        priors = self.priors_.astype(np.float64)
        numbers = random.choice(len(self.classes_), size=int(n), p=priors / priors.sum())
        X = np.empty((int(n), self.n_features_in_), dtype=self.means_.dtype)
        roots = self._roots()
        for k in range(len(self.classes_)):
            own = np.flatnonzero(numbers == k)
            A = roots[k if len(roots) > 1 else 0]
            X[own] = self.means_[k] + random.standard_normal((own.size, A.shape[1])) @ A.T
        return X, self.classes_[numbers]
