"""Linear regression by stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from separatrix.data.view import Array
from separatrix.models._hold_out import hold_out
from separatrix.models._start import Start
from separatrix.models._stochastic import REGRESSION_LOSSES, StochasticGradient
from separatrix.models._validation import as_numbers, check_samples, score_samples
from separatrix.models._weights import checked_weights
from separatrix.multiclass import Coding
from separatrix.problem import Problem


class SGDRegressor(RegressorMixin, StochasticGradient):  # type: ignore[misc]
    r"""Linear regression by stochastic gradient descent.

    Minimises ``alpha R(w) + (1/n) Σ_i s_i l(f(x_i) − y_i)``, ``f(x) = w·x + b``, one sample at a time, with
    the squared, Huber's, the ε-insensitive (support vector regression) or the squared ε-insensitive loss.
    It is the same descent as :class:`SGDClassifier`'s; parameters that are not listed here mean the same.

    Parameters
    ----------
    loss : str, default="squared_error"
        "squared_error" ``½ r²``, "huber", "epsilon_insensitive" ``max(0, |r| − ε)`` or
        "squared_epsilon_insensitive", ``r = f(x) − y``.
    penalty, alpha, l1_ratio, fit_intercept, max_iter, tol, shuffle, verbose, epsilon, random_state, \
    early_stopping, validation_fraction, n_iter_no_change, warm_start, average, max_time
        As in :class:`SGDClassifier`; early stopping watches ``R²``.
    learning_rate : str, default="invscaling"
        As there; "pa1" and "pa2" go with ``loss="epsilon_insensitive"``.
    eta0 : float, default=0.01
        Step of "constant", "invscaling" and "adaptive"; aggressiveness of "pa1" and "pa2".
    power_t : float, default=0.25
        Exponent of "invscaling".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights.
    intercept_ : ndarray of shape (1,)
        Constant term.
    n_iter_, t_, certificate_, history_, n_features_in_, feature_names_in_
        As in :class:`SGDClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix import SGDRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> model = SGDRegressor(learning_rate="constant", eta0=0.1, random_state=0).fit(X, 3 * X[:, 0] + 1)
    >>> np.round(model.predict([[0.0], [2.0]]), 1).tolist()
    [1.0, 7.0]
    """

    loss_functions = REGRESSION_LOSSES
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StochasticGradient._parameter_constraints,
        "loss": [StrOptions(set(loss_functions))],
    }
    _kind = "numbers"

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        random_state: Any = None,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: Any = False,
        max_time: float | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.average = average
        self.max_time = max_time

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> SGDRegressor:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : array-like of shape (n,)
            Numbers to predict.
        coef_init : ndarray of shape (n_features,) or None
            Initial weights.
        intercept_init : ndarray of shape (1,) or None
            Initial constant term.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples; each multiplies the loss of its sample.

        Returns
        -------
        SGDRegressor
            The fitted estimator.
        """
        self._check_combination()
        X, y = check_samples(self, X, y, reset=True)
        y = self._numbers(y)
        previous = None
        if self.warm_start:
            # With an average, as in scikit-learn: the regressor goes on with the last weights, a classifier
            # with their mean.
            previous = self._learnt() if self.average else self._returned()
        start = Start.given(coef_init, intercept_init, previous, Coding.of("ovr", 2), X, self.random_state)
        weights, watch = checked_weights(X, sample_weight), None
        if self.early_stopping:
            weights, held = hold_out(
                X, y, weights, self.validation_fraction, self.random_state, classes=False
            )

            def validate(coef: Array, intercept: Array) -> Array:
                from sklearn.metrics import r2_score

                predicted = held.view.scores(coef, intercept)[:, 0]
                return np.array([r2_score(y[held.rows], predicted, sample_weight=held.weights)])

            watch = validate, held.rows
        self._fit_problem(self._regression(X, y, weights), start, watch, X, y, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """Go on learning with one pass over a batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples of the batch.
        y : array-like of shape (n,)
            Numbers to predict.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples.

        Returns
        -------
        SGDRegressor
            The estimator itself.
        """
        self._check_batch()
        X, y = check_samples(self, X, y, reset=getattr(self, "coef_", None) is None)
        y = self._numbers(y)
        start = Start.given(None, None, self._learnt(), Coding.of("ovr", 2), X, self.random_state)
        self._fit_batch(self._regression(X, y, checked_weights(X, sample_weight)), start)
        return self

    def _numbers(self, y: Any) -> Array:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        return as_numbers(self, y)

    def _regression(self, X: Any, y: Array, weights: Array | None) -> Problem:
        one_column = np.ones((1, 1), dtype=np.int8)
        return self._problem(X, np.zeros(len(y), dtype=np.int32), one_column, weights=weights, targets=y)

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        return {"coef_": coef[0], "intercept_": intercept}

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
