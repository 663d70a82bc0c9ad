"""What linear and quadratic discriminant analysis share: covariances by scikit-learn's parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from separatrix.certificate import Certificate
from separatrix.data.view import Array
from separatrix.models._generative import GenerativeClassifier, Training
from separatrix.solvers.covariance import fourth_moments, shrunk, standardised_ledoit_wolf
from separatrix.solvers.moments import Moments


class DiscriminantAnalysis(GenerativeClassifier):
    """Covariances with scikit-learn's parameters ``shrinkage`` and ``covariance_estimator``."""

    solver: str
    shrinkage: Any
    covariance_estimator: Any
    store_covariance: bool
    #: What else than solver="eigen" helps who wants to shrink.
    _instead: str

    def _check_combination(self) -> None:
        if self.solver == "svd" and self.shrinkage is not None:
            # scikit-learn's exception: the decomposition of the samples never forms a covariance to shrink.
            raise NotImplementedError(
                f"shrinkage not supported with 'svd' solver. Choose solver='eigen'{self._instead}."
            )
        if self.covariance_estimator is not None and self.shrinkage not in (None, 0):
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )

    def _refuse_stream(self) -> None:
        self._check_combination()
        for name in ("shrinkage", "covariance_estimator"):
            value = getattr(self, name)
            if isinstance(value, str) or hasattr(value, "fit"):
                raise ValueError(
                    f"{name}={value!r} needs all samples at once and does not go with partial_fit: give "
                    "shrinkage a number, or call fit."
                )

    def _class_covariances(self, moments: Moments, training: Training | None) -> Any:
        """Yield the covariance of each class; (0) for a class without samples."""
        if self.covariance_estimator is not None:
            assert training is not None
            for k in range(moments.weight.shape[0]):
                yield self._estimated(training, np.flatnonzero(training.classes == k))
            return
        scales, fourth = np.empty(0), np.empty(0)
        if self.shrinkage == "auto":
            assert training is not None
            variances = np.einsum("kjj->kj", moments.scatter) / moments.weight[:, None]
            scales = np.where(variances > 0, np.sqrt(variances), 1.0)
            fourth = fourth_moments(training.view, training.classes, training.weights, moments.mean, scales)
        for k, n in enumerate(moments.weight):
            cov = moments.scatter[k] / max(n, np.finfo(np.float64).tiny)
            if self.shrinkage == "auto":
                cov = standardised_ledoit_wolf(cov, scales[k], n, fourth[k])
            elif self.shrinkage:
                cov = shrunk(cov, self.shrinkage)
            yield cov

    def _estimated(self, training: Training, rows: Array) -> Array:
        """Return what the user's estimator says about some rows."""
        if training.weights is not None:
            s = training.weights[rows]
            rows = rows[s > 0]
            if np.ptp(training.weights[rows]) > 0:
                raise ValueError(
                    "covariance_estimator does not take sample weights: leave out one of the two, or use "
                    "shrinkage."
                )
        X = training.view.take(rows)
        estimator = clone(self.covariance_estimator, safe=False)
        estimator.fit(X.toarray() if hasattr(X, "toarray") else X)
        if not hasattr(estimator, "covariance_"):
            raise ValueError(f"{type(estimator).__name__} does not have a covariance_ attribute")
        return np.atleast_2d(np.asarray(estimator.covariance_, dtype=np.float64))

    def _certificate(self, moments: Moments, counts: Array, likelihood: float) -> Certificate:
        return Certificate(
            status="converged",
            message=f"closed form from {counts.sum():,} samples of {np.count_nonzero(counts)} classes",
            primal=-likelihood / moments.total_weight,
        )
