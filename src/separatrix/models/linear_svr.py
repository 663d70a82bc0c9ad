"""Linear support vector regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.losses import LOSSES
from separatrix.models._base import LinearModel
from separatrix.models._bounded import bounded
from separatrix.models._linear_svm import SHARED_CONSTRAINTS, LinearSVM
from separatrix.models._validation import as_numbers, check_samples, score_samples
from separatrix.models._weights import checked_weights
from separatrix.problem import Problem


class LinearSVR(RegressorMixin, LinearModel, LinearSVM):  # type: ignore[misc]
    r"""Linear support vector regression.

    Minimises

    .. math:: \tfrac12 \|w\|^2 + \frac{b^2}{2\gamma^2} + C \sum_i s_i\, \ell(w \cdot x_i + b - y_i)

    with the ε-insensitive loss :math:`\ell(r) = \max(0, |r| - \varepsilon)` or its square, :math:`\gamma` =
    ``intercept_scaling``: residuals within ε cost nothing.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube.
    tol : float, default=0.0001
        The fit ends when the objective is proven to be within this part of its minimum.
    C : float, default=1.0
        Factor of the loss.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Loss of the residual.
    fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter, penalize_intercept, warm_start, \
    n_jobs, max_time, max_memory
        As in :class:`LinearSVC`.
    solver : {"auto", "newton", "dual"}, default="auto"
        As in :class:`LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    intercept_ : ndarray of shape (1,)
        Intercept.
    n_iter_, certificate_, history_, n_features_in_, feature_names_in_
        As in :class:`LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import LinearSVR
    >>> X = np.linspace(-1, 1, 21)[:, None]
    >>> model = LinearSVR(C=100.0, epsilon=0.1, penalize_intercept=False).fit(X, 2 * X[:, 0] + 1)
    >>> model.predict([[0.0], [1.0]]).round(2).tolist()
    [1.0, 2.9]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SHARED_CONSTRAINTS,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "solver": [StrOptions({"auto", "newton", "dual"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        solver: str = "auto",
        penalize_intercept: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        max_memory: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.max_memory = max_memory

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @bounded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : array-like of shape (n,)
            Numbers to predict.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples; 2 counts as the sample twice, 0 as its absence.

        Returns
        -------
        LinearSVR
            The fitted estimator.
        """
        self._check_dual("l2")
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if _plain_numbers(X, y):
            X, _ = check_samples(self, X, reset=True, squares=True)
        else:
            X, y = check_samples(self, X, y, reset=True, squares=True)
        targets = as_numbers(self, y)
        problem = Problem(
            view_of(X),
            np.zeros(X.shape[0], dtype=np.int32),
            np.ones((1, 1), dtype=np.int8),
            loss=LOSSES[self.loss].with_epsilon(float(self.epsilon)),
            weights=checked_weights(X, sample_weight),
            fit_intercept=self.fit_intercept,
            targets=targets,
        )
        start = np.zeros((1, X.shape[1])), np.zeros(1)
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (X.shape[1],):
            start = np.array(self.coef_[None], dtype=np.float64), np.array(self.intercept_, dtype=np.float64)
        result = self._optimise(problem, start, X, y, sample_weight)
        self.coef_, self.intercept_ = (
            np.ascontiguousarray(result.coef[0]),
            np.ascontiguousarray(result.intercept),
        )
        self._keep_record(result)
        self._warn()
        return self

    def predict(self, X: Any) -> Array:
        """Return ``f(x) = w·x + b`` of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Predicted numbers.
        """
        check_is_fitted(self)
        return np.asarray(score_samples(self, X, self._score_columns)[:, 0])


def _plain_numbers(X: Any, y: Any) -> bool:
    """Return whether ``y`` is an array of as many finite numbers as the array ``X`` has rows.

    scikit-learn's general check of it costs as much as a small fit.
    """
    if type(X) is not np.ndarray or type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind != "f":
        return False
    return X.ndim == 2 and X.shape[0] == y.shape[0] and bool(np.isfinite(y).all())
