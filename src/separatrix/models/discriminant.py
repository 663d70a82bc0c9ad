"""Linear and quadratic discriminant analysis, as scikit-learn names them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from separatrix.certificate import Certificate
from separatrix.data.view import Array, DataView
from separatrix.models._base import LinearClassifier
from separatrix.models._bounded import MAX_MEMORY
from separatrix.models._discriminant import DiscriminantAnalysis
from separatrix.models._generative import Training
from separatrix.models._validation import view_samples
from separatrix.solvers.covariance import (
    Factor,
    factor_of_spectrum,
    factorise,
    factorise_rows,
    fourth_moments,
    shrunk,
    spectrum,
    standardised_ledoit_wolf,
    trace_product,
)
from separatrix.solvers.discriminant import directions_of_covariance, directions_of_means
from separatrix.solvers.gaussian import (
    LOG_2PI,
    full_log_densities,
    linear_rule,
    log_likelihood,
    shared_log_densities,
    weighted_mean,
)
from separatrix.solvers.moments import LARGEST_SCATTER, Moments


class LinearDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    DiscriminantAnalysis,
    LinearClassifier,
):
    r"""Linear discriminant analysis: Gaussian classes with one covariance, and the directions between them.

    Scores ``s_k = log π_k − ½ (x − μ_k)ᵀ Σ⁻¹ (x − μ_k)`` up to a common part: linear in ``x``.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        All of them make one pass for the class means and the scatter within classes. "svd": ``Σ`` is the
        pooled maximum likelihood covariance; directions from the whitened class means. "lsqr":
        ``Σ = Σ_k π_k Σ_k``, possibly shrunk; no directions. "eigen": the same ``Σ``; directions from the
        generalised eigenvectors of the covariance between classes.
    shrinkage : "auto", float in [0, 1] or None, default=None
        ``(1 − a) Σ_k + a (tr Σ_k/d) 1`` for each class; "auto" chooses ``a`` by Ledoit and Wolf on
        standardised features. Not with "svd".
    priors : array-like of shape (n_classes,) or None, default=None
        Class probabilities; None takes the frequencies.
    n_components : int or None, default=None
        Number of directions that :meth:`transform` uses, at most ``min(n_classes − 1, n_features)``.
    store_covariance : bool, default=False
        Whether "svd" too sets ``covariance_``.
    tol : float, default=1e-4
        "svd" leaves out directions in which the standardised features have a standard deviation up to
        ``tol`` within classes. Values below about 1e-7 are rounding error and left out in any case.
    covariance_estimator : estimator or None, default=None
        What estimates the covariance of each class instead, for "lsqr" and "eigen".
    max_memory : float or None, default=None
        Most megabytes (2²⁰ bytes) that the fit may take besides its input. Where the covariance takes more, a
        MemoryError says before the fit how many it needs.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constant terms.
    covariance_ : ndarray of shape (n_features, n_features)
        ``Σ_k π_k Σ_k``.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of the variance between classes along each direction ("svd", "eigen").
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities.
    scalings_ : ndarray of shape (n_features, directions)
        The directions as columns ("svd", "eigen").
    xbar_ : ndarray of shape (n_features,)
        Overall mean ("svd").
    whitening_, log_det_ : ndarray
        ``W`` with ``W Wᵀ = Σ⁻¹`` and ``log det Σ``, for densities and samples.
    classes_ : ndarray
        The labels, sorted.
    certificate_ : Certificate
        ``primal`` is the mean negative log-likelihood of the samples and their labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Sparse input, ``sample_weight`` and :meth:`partial_fit` go beyond scikit-learn. Collinear and constant
    features go through the pseudo-inverse with every solver.

    Examples
    --------
    >>> from separatrix import LinearDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> model = LinearDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1]]).tolist()
    [1]
    >>> model.transform(X).shape
    (6, 1)
    """

    whitening_: Array
    log_det_: Any
    scalings_: Array
    _instead = " or 'lsqr'"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "priors": ["array-like", None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "max_memory": MAX_MEMORY,
    }

    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        max_memory: float | None = None,
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.max_memory = max_memory

    def _check_combination(self) -> None:
        super()._check_combination()
        if self.solver == "svd" and self.covariance_estimator is not None:
            raise ValueError("covariance estimator is not supported with svd solver. Try another solver")

    @property
    def _max_components(self) -> int:
        return self.n_components or min(len(self.classes_) - 1, self.n_features_in_)

    @property
    def _n_features_out(self) -> int:
        return self._max_components

    def _kind(self) -> str:
        self._check_combination()
        # Only a sum over classes with other weights than the samples' needs a matrix for each.
        weighted = self.solver != "svd" or self.store_covariance
        own = self.priors is not None or self.shrinkage == "auto"
        return "full" if weighted and own else "shared"

    def _kind_of_fit(self, shape: tuple[int, int]) -> str:
        # Of few samples of many features the covariance is not formed where nobody asks for it.
        kind, (n, d) = self._kind(), shape
        alone = self.solver == "svd" and not self.store_covariance and kind == "shared"
        return "rows" if alone and 2 * n < d and 16 * n * d <= LARGEST_SCATTER else kind

    def _solve(self, moments: Moments, counts: Array, training: Training | None, dtype: Any) -> Certificate:
        n_classes, d = moments.mean.shape
        if counts.sum() == n_classes:
            raise ValueError("The number of samples must be more than the number of classes.")
        if self._max_components > min(n_classes - 1, d):
            raise ValueError("n_components cannot be larger than min(n_features, n_classes - 1).")
        priors = self._check_priors(moments, renormalise=True)
        with np.errstate(divide="ignore"):
            log_priors = np.log(priors)
        n, means = moments.total_weight, moments.mean
        size = np.abs(means).max(axis=0)
        xbar = weighted_mean(means, priors)
        if self.solver == "svd":
            if moments.kind == "rows":
                factor = factorise_rows(moments.scatter / np.sqrt(n), size, tol=self.tol * self.tol)
            else:
                factor = factorise(moments.within() / n, size, tol=self.tol * self.tol)
            shares = n * priors / (n_classes - 1)
            directions, ratios = directions_of_means(means, xbar, shares, factor, self.tol)
            coef, intercept = linear_rule(means, directions, log_priors, xbar)
            self.xbar_ = xbar.astype(dtype)
            trace = n * factor.rank
            if self.store_covariance:
                self.covariance_ = self._pooled(moments, priors, training).astype(dtype)
        else:
            cov = self._pooled(moments, priors, training)
            factor = factorise(cov, size, own_units=True)
            coef, intercept = linear_rule(means, factor.whitening, log_priors, np.zeros(d))
            self.covariance_ = cov.astype(dtype)
            trace = trace_product(factor, moments.within())
        if self.solver == "eigen":
            total = self._total(moments, training)
            directions, ratios = directions_of_covariance(total - cov, factor)
        if self.solver != "lsqr":
            self.scalings_ = directions.astype(dtype)
            self.explained_variance_ratio_ = ratios[: self._max_components].astype(dtype)
        self.coef_, self.intercept_ = coef.astype(dtype), intercept.astype(dtype)
        self.whitening_, self.log_det_ = factor.whitening.astype(dtype), np.float64(factor.log_det)
        self.priors_, self.means_ = priors.astype(dtype), means.astype(dtype)
        likelihood = log_likelihood(moments, log_priors, factor.log_det, factor.rank, trace)
        return self._certificate(moments, counts, likelihood)

    def _pooled(self, moments: Moments, priors: Array, training: Training | None) -> Array:
        """Return ``Σ_k π_k Σ_k``."""
        if moments.kind == "shared" and self.covariance_estimator is None:
            return shrunk(moments.scatter / moments.total_weight, self.shrinkage or 0.0)
        covariances = self._class_covariances(moments, training)
        return np.asarray(sum(prior * cov for prior, cov in zip(priors, covariances, strict=True)))

    def _total(self, moments: Moments, training: Training | None) -> Array:
        """Return the covariance of all samples, estimated as those of the classes."""
        if self.covariance_estimator is not None:
            assert training is not None
            return self._estimated(training, np.arange(training.view.shape[0]))
        cov = moments.total_scatter() / moments.total_weight
        if self.shrinkage != "auto":
            return shrunk(cov, self.shrinkage or 0.0)
        assert training is not None
        scale = np.where(np.diag(cov) > 0, np.sqrt(np.diag(cov)), 1.0)
        one = np.zeros_like(training.classes)
        mean = moments.total_mean[None]
        fourth = fourth_moments(training.view, one, training.weights, mean, scale[None])
        return standardised_ledoit_wolf(cov, scale, moments.total_weight, fourth[0])

    def transform(self, X: Any) -> Array:
        """Project onto the directions that separate the classes most.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_components)
            Coordinates; about the overall mean for "svd".
        """
        if self.solver == "lsqr":
            # scikit-learn's exception: this solver finds scores, no directions to project on.
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        self._check_ready()
        view = view_samples(self, X)
        directions = self.scalings_[:, : self._max_components]
        origin = -(self.xbar_ @ directions) if self.solver == "svd" else 0.0
        return view.scores(np.ascontiguousarray(directions.T), origin)

    def _log_densities(self, view: DataView) -> Array:
        return shared_log_densities(view, self.means_, Factor(self.whitening_, float(self.log_det_)))

    def _roots(self) -> list[Array]:
        if hasattr(self, "covariance_") and self.solver != "svd":
            return [self.covariance_ @ self.whitening_]
        n = self._state["weight"].sum()
        if (rows := self._state.get("rows")) is not None:
            return [rows.T @ (rows @ self.whitening_) / n]
        scatter = self._state["scatter"]
        return [(scatter if scatter.ndim == 2 else scatter.sum(axis=0)) / n @ self.whitening_]


class QuadraticDiscriminantAnalysis(DiscriminantAnalysis):
    r"""Quadratic discriminant analysis: Gaussian classes, each with its own covariance.

    Scores ``s_k = log π_k − ½ log det Σ_k − ½ (x − μ_k)ᵀ Σ_k⁻¹ (x − μ_k)``: quadratic boundaries.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Both make one pass for the class means and scatters, and decompose each covariance. "svd" knows
        ``reg_param``; "eigen" knows ``shrinkage`` and ``covariance_estimator``.
    shrinkage : "auto", float in [0, 1] or None, default=None
        ``(1 − a) Σ_k + a (tr Σ_k/d) 1``; "auto" chooses ``a`` by Ledoit and Wolf on standardised features.
    priors : array-like of shape (n_classes,) or None, default=None
        Class probabilities; None takes the frequencies.
    reg_param : float in [0, 1], default=0
        ``(1 − r) Σ_k + r 1``, for "svd".
    store_covariance : bool, default=False
        Whether to set ``covariance_``.
    tol : float, default=1e-4
        A covariance with an eigenvalue up to ``tol`` counts as singular and is refused.
    covariance_estimator : estimator or None, default=None
        What estimates the covariance of each class instead, for "eigen".
    max_memory : float or None, default=None
        Most megabytes (2²⁰ bytes) that the fit may take besides its input. Where the covariances take more, a
        MemoryError says before the fit how many it needs.

    Attributes
    ----------
    covariance_ : list of ndarray of shape (n_features, n_features)
        ``Σ_k``, if asked for.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities.
    rotations_ : list of ndarray of shape (n_features, n_features)
        Eigenvectors of each covariance, as columns.
    scalings_ : list of ndarray of shape (n_features,)
        Eigenvalues, largest first.
    whitening_, log_det_ : ndarray of shape (n_classes, n_features, n_features) and (n_classes,)
        ``W_k`` with ``W_k W_kᵀ = Σ_k⁻¹`` and ``log det Σ_k``, for scores and densities.
    classes_ : ndarray
        The labels, sorted.
    certificate_ : Certificate
        ``primal`` is the mean negative log-likelihood of the samples and their labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from separatrix import QuadraticDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> model = QuadraticDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1]]).tolist()
    [1]
    """

    _instead = ", or set reg_param"
    scalings_: list[Array]
    rotations_: list[Array]
    whitening_: Array
    log_det_: Array
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions({"svd", "eigen"})],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "max_memory": MAX_MEMORY,
    }

    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
        max_memory: float | None = None,
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.max_memory = max_memory

    def _check_combination(self) -> None:
        super()._check_combination()
        if self.solver == "svd" and self.covariance_estimator is not None:
            raise ValueError(
                "covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead."
            )

    def _kind(self) -> str:
        self._check_combination()
        return "full"

    def _solve(self, moments: Moments, counts: Array, training: Training | None, dtype: Any) -> Certificate:
        priors = self._check_priors(moments, renormalise=True)
        lonely = np.flatnonzero(counts == 1)
        if lonely.size:
            raise ValueError(
                f"y has only 1 sample in class {self.classes_[lonely[0]]}, covariance is ill defined. Give "
                "more samples of it, leave it out, or choose LinearDiscriminantAnalysis, which pools the "
                "classes."
            )
        n_classes, d = moments.mean.shape
        whitenings, log_dets = np.empty((n_classes, d, d)), np.zeros(n_classes)
        scalings, rotations, covariances, trace = [], [], [], 0.0
        for k, cov in enumerate(self._class_covariances(moments, training)):
            if counts[k] == 0:  # a class that a stream has not met: its prior is 0
                values = np.ones(d)
                cov = vectors = whitenings[k] = np.eye(d)
            else:
                self._check_rank(k, d, int(counts[k]), d)  # too few samples: no need to decompose
                values, vectors = spectrum(cov)
                if self.reg_param and self.solver == "svd":
                    values = (1.0 - self.reg_param) * values + self.reg_param
                    cov = (1.0 - self.reg_param) * cov + self.reg_param * np.eye(d)
                self._check_rank(k, int(np.count_nonzero(values > self.tol)), int(counts[k]), d)
                factor = factor_of_spectrum(cov, values, vectors, moments.mean[k])
                self._check_rank(k, factor.rank, int(counts[k]), d)
                whitenings[k], log_dets[k] = factor.whitening, factor.log_det
                plain = not (self.reg_param or self.shrinkage or self.covariance_estimator)
                trace += moments.weight[k] * d if plain else trace_product(factor, moments.scatter[k])
            scalings.append(values.astype(dtype))
            rotations.append(vectors.astype(dtype))
            if self.store_covariance:
                covariances.append(cov.astype(dtype))
        if self.store_covariance:
            self.covariance_ = covariances
        self.scalings_, self.rotations_ = scalings, rotations
        self.whitening_, self.log_det_ = whitenings.astype(dtype), log_dets
        self.priors_, self.means_ = priors.astype(dtype), moments.mean.astype(dtype)
        with np.errstate(divide="ignore"):
            likelihood = log_likelihood(moments, np.log(priors), log_dets, d, trace)
        return self._certificate(moments, counts, likelihood)

    def _check_rank(self, k: int, rank: int, count: int, d: int) -> None:
        # scikit-learn's "svd" knows as many singular values as there are samples, whatever reg_param adds.
        rank = min(rank, count) if self.solver == "svd" else rank
        if rank == d:
            return
        label = self.classes_[k]
        if self.solver == "svd" and count <= d:
            raise np.linalg.LinAlgError(
                f"The covariance matrix of class {label} is not full rank. When using `solver='svd'` the "
                f"number of samples in each class should be more than the number of features, but class "
                f"{label} has {count} samples and {d} features. Try using `solver='eigen'` and setting the "
                "parameter `shrinkage` for regularization."
            )
        remedy = "shrinkage" if self.solver == "eigen" else "reg_param"
        raise np.linalg.LinAlgError(
            f"The covariance matrix of class {label} is not full rank. Increase the value of `{remedy}` to "
            f"reduce the collinearity. ({d - rank} of its {d} eigenvalues are not above tol={self.tol:g}; "
            "where that is due to small units, scale the features.)"
        )

    def _score_columns(self, view: DataView) -> Array:
        scores = super()._score_columns(view)
        # As in scikit-learn, the scores of several classes leave out the constant of the densities.
        return scores + (0.5 * self.n_features_in_ * LOG_2PI if scores.shape[1] > 1 else 0.0)

    def _log_densities(self, view: DataView) -> Array:
        return full_log_densities(view, self.means_, self.whitening_, self.log_det_)

    def _roots(self) -> list[Array]:
        return [R * np.sqrt(S) for R, S in zip(self.rotations_, self.scalings_, strict=True)]
