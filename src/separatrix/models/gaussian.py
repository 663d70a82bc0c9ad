"""The Gaussian generative classifier."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from separatrix.certificate import Certificate
from separatrix.data.view import Array, DataView
from separatrix.models._base import LinearClassifier
from separatrix.models._generative import GenerativeClassifier, Training
from separatrix.models._validation import _shown
from separatrix.solvers.gaussian import (
    Factor,
    diagonal_log_densities,
    factorise,
    fourth_moments,
    full_log_densities,
    ledoit_wolf_amount,
    linear_rule,
    log_likelihood,
    oas_amount,
    root,
    shared_log_densities,
    shrunk,
    trace_product,
    weighted_mean,
)
from separatrix.solvers.moments import Moments

_EPS = float(np.finfo(np.float64).eps)


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
    >>> from separatrix.models.gaussian import GaussianClassifier
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
    }

    def __init__(
        self,
        covariance: str = "shared",
        *,
        shrinkage: Any = None,
        priors: Any = None,
        divisor: str = "ml",
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.priors = priors
        self.divisor = divisor

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
        solve = {"shared": self._solve_shared, "full": self._solve_full}.get(
            self.covariance, self._solve_variances
        )
        likelihood = solve(moments, log_priors, priors, training, dtype)
        self.priors_ = priors.astype(dtype)
        self.means_ = moments.mean.astype(dtype)
        total = moments.total_weight
        how = "maximum likelihood" if self.divisor == "ml" and not np.any(self.shrinkage_) else "estimates"
        return Certificate(
            status="converged",
            message=f"closed form: {how} from {counts.sum():,} samples of {np.count_nonzero(counts)} classes",
            primal=-likelihood / total,
        )

    def _divisors(self, weight: Any, lost: int) -> Array:
        """Return what scatter is divided by; where the unbiased divisor is not positive, it is refused."""
        if self.divisor == "ml":
            return np.asarray(weight)
        divisors = np.asarray(weight - lost)
        if np.any((divisors <= 0) & (np.asarray(weight) > 0)):
            raise ValueError(
                f"divisor='unbiased' needs a total weight above {lost}; choose divisor='ml' or give more "
                "samples."
            )
        return divisors

    def _amount(self, cov: Array, n: float, fourth: float) -> float:
        """Return the amount of shrinkage for a maximum likelihood covariance of ``n`` samples."""
        if self.shrinkage == "oas":
            return oas_amount(cov, n)
        if self.shrinkage == "ledoit-wolf":
            return ledoit_wolf_amount(cov, n, fourth)
        return float(self.shrinkage or 0.0)

    def _fourth(self, moments: Moments, training: Training | None) -> Array:
        if self.shrinkage != "ledoit-wolf" or training is None:
            return np.zeros_like(moments.weight)
        ones = np.ones_like(moments.mean)
        return fourth_moments(training.view, training.classes, training.weights, moments.mean, ones)

    def _solve_shared(
        self, moments: Moments, log_priors: Array, priors: Array, training: Training | None, dtype: Any
    ) -> float:
        n, seen = moments.total_weight, int(np.count_nonzero(moments.weight))
        scatter = moments.within()
        divisor = float(self._divisors(np.float64(n), seen))
        self.shrinkage_ = self._amount(scatter / n, n, float(self._fourth(moments, training).sum()))
        cov = scatter / divisor
        if self.shrinkage_:
            cov = shrunk(cov, self.shrinkage_)
        factor = factorise(cov, np.abs(moments.mean).max(axis=0))
        coef, intercept = linear_rule(
            moments.mean, factor.whitening, log_priors, weighted_mean(moments.mean, priors)
        )
        self.covariance_, self.whitening_ = cov.astype(dtype), factor.whitening.astype(dtype)
        self.log_det_ = np.float64(factor.log_det)
        self.coef_, self.intercept_ = coef.astype(dtype), intercept.astype(dtype)
        trace = trace_product(factor, scatter) if self.shrinkage_ else divisor * factor.rank
        return log_likelihood(moments, log_priors, factor.log_det, factor.rank, trace)

    def _solve_full(
        self, moments: Moments, log_priors: Array, priors: Array, training: Training | None, dtype: Any
    ) -> float:
        n_classes, d = moments.mean.shape
        divisors = self._divisors(moments.weight, 1)
        fourth = self._fourth(moments, training)
        covariances, whitenings = np.empty((n_classes, d, d), dtype), np.empty((n_classes, d, d), dtype)
        self.shrinkage_, log_dets, trace = np.zeros(n_classes), np.zeros(n_classes), 0.0
        for k, n in enumerate(moments.weight):
            if n == 0:  # a class that a stream has not met: its prior is 0, its density does not matter
                covariances[k] = whitenings[k] = np.eye(d)
                continue
            scatter = moments.scatter[k]
            self.shrinkage_[k] = self._amount(scatter / n, n, fourth[k])
            cov = shrunk(scatter / divisors[k], self.shrinkage_[k])
            factor = factorise(cov, moments.mean[k])
            if factor.rank < d:
                self._refuse_singular(k, f"has rank {factor.rank} in {d} dimensions")
            covariances[k], whitenings[k], log_dets[k] = cov, factor.whitening, factor.log_det
            trace += trace_product(factor, scatter) if self.shrinkage_[k] else divisors[k] * d
        self.covariance_, self.whitening_, self.log_det_ = covariances, whitenings, log_dets
        return log_likelihood(moments, log_priors, log_dets, d, trace)

    def _solve_variances(
        self, moments: Moments, log_priors: Array, priors: Array, training: Training | None, dtype: Any
    ) -> float:
        d = moments.mean.shape[1]
        divisors = self._divisors(moments.weight, 1)
        self.shrinkage_ = float(self.shrinkage or 0.0)
        variances = np.ones_like(moments.mean)
        for k in map(int, np.flatnonzero(moments.weight)):
            own = moments.scatter[k] / divisors[k]
            own = np.full(d, own.mean()) if self.covariance == "spherical" else shrunk(own, self.shrinkage_)
            constant = np.flatnonzero(own <= np.square(8 * _EPS * moments.mean[k]))
            if constant.size:
                names = getattr(self, "feature_names_in_", None)
                where = int(constant[0]) if names is None else repr(str(names[constant[0]]))
                self._refuse_singular(k, f"does not vary in feature {where}")
            variances[k] = own
        self.covariance_ = (variances[:, 0] if self.covariance == "spherical" else variances).astype(dtype)
        log_dets = np.log(variances).sum(axis=1)
        trace = float((moments.scatter / variances).sum())
        return log_likelihood(moments, log_priors, log_dets, d, trace)

    def _refuse_singular(self, k: int, why: str) -> None:
        raise np.linalg.LinAlgError(
            f"the covariance of class {_shown(self.classes_[k])} is singular: the class {why}. Give more "
            "samples of it, drop collinear and constant features, set shrinkage (for example 0.1; it cannot "
            "help a class of one sample), or choose covariance='shared'."
        )

    def _dense_coef(self) -> Array:
        if not hasattr(self, "coef_"):
            raise TypeError(
                f"covariance={self.covariance!r} gives curved boundaries, which have no weight vector: "
                "choose covariance='shared' for distances and projections."
            )
        return super()._dense_coef()

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
            matrices = self.whitening_[None] if self.whitening_.ndim == 2 else self.whitening_
            return [root(W) for W in matrices]
        return [np.diag(np.sqrt(own)) for own in self._variances()]
