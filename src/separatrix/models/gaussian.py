"""The Gaussian generative classifier."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from separatrix.certificate import Certificate
from separatrix.data.view import Array, DataView
from separatrix.models._base import LinearClassifier
from separatrix.models._bounded import MAX_MEMORY
from separatrix.models._generative import GenerativeClassifier, Training
from separatrix.models._labels import shown
from separatrix.solvers.covariance import Factor, fourth_moments
from separatrix.solvers.gaussian import (
    SingularClassError,
    diagonal_log_densities,
    estimate,
    full_log_densities,
    linear_rule,
    log_likelihood,
    shared_log_densities,
    weighted_mean,
)
from separatrix.solvers.moments import Moments


def _linear(model: Any) -> bool:
    return bool(model.covariance == "shared")


class GaussianClassifier(GenerativeClassifier, LinearClassifier):
    r"""Gaussian class densities, by maximum likelihood: linear or quadratic boundaries.

    ``p(x | k) = N(μ_k, Σ_k)``, ``p(k) = π_k``, with ``π_k = n_k/n``, ``μ_k`` the class mean and

    - ``covariance="shared"``: ``Σ = (1/n) Σ_k Σ_{i∈k} (x_i − μ_k)(x_i − μ_k)ᵀ`` for all classes; the scores
      ``s_k = log π_k + log N(x; μ_k, Σ)`` then differ by linear functions, and for two classes
      ``p(1|x) = σ(a·x + b)`` with ``a = Σ⁻¹(μ_1 − μ_0)``;
    - ``"full"``: ``Σ_k`` of each class; quadratic boundaries;
    - ``"diagonal"``: the variances of each class (naive Bayes);
    - ``"spherical"``: one variance per class, ``σ_k² = tr Σ_k/d``.

    Parameters
    ----------
    covariance : {"shared", "full", "diagonal", "spherical"}, default="shared"
        Form of the covariances.
    shrinkage : float in [0, 1], "ledoit-wolf", "oas" or None, default=None
        Amount ``a`` of shrinkage ``(1 − a) Σ + a (tr Σ/d) 1`` of each covariance (of the variances
        towards their mean for "diagonal"), or the rule that chooses it for "shared" and "full".
    priors : array-like of shape (n_classes,) or None, default=None
        Class probabilities, which must sum to 1; None takes the frequencies.
    divisor : {"ml", "unbiased"}, default="ml"
        Divide scatter by the number of samples (maximum likelihood), or by ``n − K`` (shared) and
        ``n_k − 1`` (own).
    max_memory : float or None, default=None
        Most megabytes (2²⁰ bytes) that the fit may take besides its input. Where the covariances take more, a
        MemoryError says before the fit how many it needs.

    Attributes
    ----------
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities.
    covariance_ : ndarray
        (n_features, n_features) for "shared", (n_classes, n_features, n_features) for "full",
        (n_classes, n_features) for "diagonal", (n_classes,) for "spherical".
    shrinkage_ : float or ndarray of shape (n_classes,)
        Amount of shrinkage in use.
    coef_, intercept_ : ndarray
        Weights of the linear scores, for "shared" only: one row for two classes, else one per class.
    whitening_, log_det_ : ndarray
        ``W`` with ``W Wᵀ = Σ⁻¹`` and ``log det Σ``, for "shared" and "full".
    classes_ : ndarray
        The labels, sorted.
    certificate_ : Certificate
        ``primal`` is the mean negative log-likelihood ``−(1/n) Σ log π_k p(x_i | k)`` of the samples.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A singular shared covariance (collinear or constant features) is used on the subspace of the data,
    through its pseudo-inverse. A singular covariance of one class is refused.

    Examples
    --------
    >>> from separatrix import GaussianClassifier
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 2.0], [4.0, 4.0], [5.0, 6.0], [6.0, 4.0]]
    >>> model = GaussianClassifier().fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> model.predict([[1.0, 1.0], [5.0, 5.0]]).tolist()
    ['a', 'b']
    >>> drawn, labels = model.sample(3, random_state=0)
    >>> drawn.shape
    (3, 2)
    """

    covariance_: Array
    shrinkage_: Any
    whitening_: Array
    log_det_: Any
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "covariance": [StrOptions({"shared", "full", "diagonal", "spherical"})],
        "shrinkage": [StrOptions({"ledoit-wolf", "oas"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "divisor": [StrOptions({"ml", "unbiased"})],
        "max_memory": MAX_MEMORY,
    }

    def __init__(
        self,
        covariance: str = "shared",
        *,
        shrinkage: Any = None,
        priors: Any = None,
        divisor: str = "ml",
        max_memory: float | None = None,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.priors = priors
        self.divisor = divisor
        self.max_memory = max_memory

    # Curved boundaries have no weight vector: the geometry of hyperplanes is there for "shared" only.
    boundaries = available_if(_linear)(LinearClassifier.boundaries)
    boundary_offset = available_if(_linear)(LinearClassifier.boundary_offset)
    densify = available_if(_linear)(LinearClassifier.densify)
    geometric_margin = available_if(_linear)(LinearClassifier.geometric_margin)
    project = available_if(_linear)(LinearClassifier.project)
    signed_distance = available_if(_linear)(LinearClassifier.signed_distance)
    sparsify = available_if(_linear)(LinearClassifier.sparsify)

    def _kind(self) -> str:
        if isinstance(self.shrinkage, str) and self.covariance in ("diagonal", "spherical"):
            raise ValueError(
                f"shrinkage={self.shrinkage!r} chooses the amount for a whole matrix, which "
                f"covariance={self.covariance!r} does not have: give a number, or choose covariance='full' "
                "or 'shared'."
            )
        return "diagonal" if self.covariance == "spherical" else self.covariance

    def _refuse_stream(self) -> None:
        if self.shrinkage == "ledoit-wolf":
            raise ValueError(
                "shrinkage='ledoit-wolf' needs all samples a second time and does not go with partial_fit: "
                "choose 'oas' or a number."
            )

    def _solve(self, moments: Moments, counts: Array, training: Training | None, dtype: Any) -> Certificate:
        priors = self._check_priors(moments, renormalise=False)
        with np.errstate(divide="ignore"):
            log_priors = np.log(priors)
        fourth = np.zeros_like(moments.weight)
        if self.shrinkage == "ledoit-wolf" and training is not None:
            ones = np.ones_like(moments.mean)
            fourth = fourth_moments(training.view, training.classes, training.weights, moments.mean, ones)
        try:
            found = estimate(
                moments, self.covariance, self.shrinkage, unbiased=self.divisor == "unbiased", fourth=fourth
            )
        except SingularClassError as error:
            raise np.linalg.LinAlgError(
                f"the covariance of class {shown(self.classes_[error.number])} is singular: the class "
                f"{error.why}. Give more samples of it, drop collinear and constant features, set shrinkage "
                "(for example 0.1; it cannot help a class of one sample), or choose covariance='shared'."
            ) from None
        if self.covariance == "shared":
            assert found.whitening is not None
            centre = weighted_mean(moments.mean, priors)
            coef, intercept = linear_rule(moments.mean, found.whitening, log_priors, centre)
            self.coef_, self.intercept_ = coef.astype(dtype), intercept.astype(dtype)
        if found.whitening is not None:
            self.whitening_, self.log_det_ = found.whitening.astype(dtype), np.float64(found.log_det)
        self.covariance_, self.shrinkage_ = found.covariance.astype(dtype), found.shrinkage
        if found.whitening is None and not np.all(self.covariance_ >= np.finfo(dtype).tiny):
            raise ValueError(
                f"variances of features are too small for {np.dtype(dtype).name}. Scale the features, for "
                "example with sklearn.preprocessing.StandardScaler."
            )
        self.priors_, self.means_ = priors.astype(dtype), moments.mean.astype(dtype)
        likelihood = log_likelihood(moments, log_priors, found.log_det, found.rank, found.trace)
        how = "maximum likelihood" if self.divisor == "ml" and not np.any(found.shrinkage) else "estimates"
        return Certificate(
            status="converged",
            message=f"closed form: {how} from {counts.sum():,} samples of {np.count_nonzero(counts)} classes",
            primal=-likelihood / moments.total_weight,
        )

    def _log_densities(self, view: DataView) -> Array:
        if hasattr(self, "coef_"):
            return shared_log_densities(view, self.means_, Factor(self.whitening_, float(self.log_det_)))
        if hasattr(self, "whitening_"):
            return full_log_densities(view, self.means_, self.whitening_, self.log_det_)
        return diagonal_log_densities(view, self.means_.astype(np.float64), self._variances())

    def _variances(self) -> Array:
        variances = self.covariance_.astype(np.float64)
        return np.broadcast_to(variances[:, None], self.means_.shape) if variances.ndim == 1 else variances

    def _roots(self) -> list[Array]:
        if hasattr(self, "whitening_"):
            roots = self.covariance_ @ self.whitening_
            return list(roots) if roots.ndim == 3 else [roots]
        return [np.diag(np.sqrt(own)) for own in self._variances()]
