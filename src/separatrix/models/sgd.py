"""Linear classifiers by stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import check_is_fitted

from separatrix.data.view import Array
from separatrix.models._base import LinearClassifier
from separatrix.models._hold_out import hold_out
from separatrix.models._labels import encode_labels, number_labels
from separatrix.models._start import Start
from separatrix.models._stochastic import (
    CLASSIFICATION_LOSSES,
    REGRESSION_LOSSES,
    LossFunctions,
    StochasticGradient,
)
from separatrix.models._validation import N_JOBS, check_samples
from separatrix.models._weights import checked_weights, class_weights
from separatrix.multiclass import Coding
from separatrix.problem import Problem


class SGDClassifier(StochasticGradient, LinearClassifier):
    r"""Linear classifier by stochastic gradient descent.

    Minimises ``alpha R(w) + (1/n) Σ_i s_i l(y_i f(x_i))``, ``f(x) = w·x + b``, one sample at a time:
    ``w ← (1 − η alpha) w − η s l'(f) x``, ``b ← b − η s l'(f)`` for ``R = ½‖w‖²``. With more than two classes
    one such problem per class (one-vs-rest), all learnt on one reading of the data. The losses give linear
    support vector machines (``hinge``, ``squared_hinge``), logistic regression (``log_loss``), the
    perceptron, and others; all come from ``separatrix.losses``. Parameters, their defaults, the order of
    operations and the attributes are scikit-learn's; so are the weights after the same passes with
    ``shuffle=False``, and with the same ``random_state`` for two classes and data up to 2 MB.

    Parameters
    ----------
    loss : str, default="hinge"
        "hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron", or a loss of regression on
        codes −1 and +1: "squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive".
    penalty : {"l2", "l1", "elasticnet"} or None, default="l2"
        ``R``: ``½‖w‖²``, ``‖w‖₁``, or ``l1_ratio ‖w‖₁ + (1 − l1_ratio) ½‖w‖²``.
    alpha : float, default=0.0001
        Factor of the penalty; also sets the steps of "optimal" and "pegasos".
    l1_ratio : float, default=0.15
        Share of L1 in the elastic net.
    fit_intercept : bool, default=True
        Whether the scores have a constant term. On sparse data its steps are 100 times shorter, as in
        scikit-learn.
    max_iter : int, default=1000
        Most passes over the data.
    tol : float or None, default=1e-3
        A column stops when its objective (mean loss met in the pass, plus penalty) failed to fall by
        ``tol`` below its best for ``n_iter_no_change`` passes. None: ``max_iter`` passes.
    shuffle : bool, default=True
        Whether each pass visits the samples in another random order: scikit-learn's where data take up to
        2 MB or neighbouring rows are alike, else blocks of neighbours, which are read in half the time.
    verbose : int, default=0
        1 prints progress at most twice a second, 2 every pass.
    epsilon : float, default=0.1
        Width of "huber", "epsilon_insensitive" and "squared_epsilon_insensitive".
    n_jobs : int or None, default=None
        Most threads, among which large data of eight classes or more share the classes out; the result does
        not depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the orders and of the held-out samples.
    learning_rate : str, default="optimal"
        Step ``η_t`` of visit ``t``. "constant": ``eta0``. "optimal": ``1/(alpha (t₀ + t − 1))``, where the
        first step is ``alpha^(−1/4)``. "invscaling": ``eta0 / t^power_t``. "adaptive": ``eta0``, divided by
        5 each time the column would have stopped, until 1e-6. "pegasos": ``1/(alpha t)``, without the
        projection, which the method does not need. "pa1", "pa2": passive-aggressive, hinge loss only.
    eta0 : float, default=0.01
        Step of "constant", "invscaling" and "adaptive"; aggressiveness of "pa1" and "pa2".
    power_t : float, default=0.5
        Exponent of "invscaling".
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of the samples and watch each column's accuracy on them instead
        of the objective.
    validation_fraction : float, default=0.1
        Share held out if ``early_stopping``.
    n_iter_no_change : int, default=5
        Passes without improvement to wait.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes; in one-vs-rest a class's weight counts in its own column, as in scikit-learn.
    warm_start : bool, default=False
        Whether a fit starts from the weights of the last one.
    average : bool or int, default=False
        Return the mean of the weights over all visits, or over those from the given one on.
    max_time : float or None, default=None
        Most seconds; the model is valid however the fit ends.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constant terms.
    classes_ : ndarray
        The labels, sorted.
    n_iter_ : int
        Passes done (by the column that took most).
    t_ : float
        Visits done, plus one.
    certificate_ : Certificate
        Objective of the returned weights and, if there is a penalty, a proven lower bound of it, both
        summed over the columns; training errors; why the fit stopped.
    history_ : list of dict
        Per pass: objective (mean loss met on the way plus the penalty at its end, summed over the
        columns), norm of all weights, columns that still learn, validation score if watched.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A sample weight multiplies the loss of its sample, ``n`` stays the number of samples: as in
    scikit-learn, weight 2 is therefore not the same as the sample twice, which also counts twice in ``n``.
    A sample of weight 0 is left out.

    Examples
    --------
    >>> from separatrix import SGDClassifier
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> model = SGDClassifier(random_state=0, alpha=0.01, average=True).fit(X, ["a", "a", "b", "b"])
    >>> list(model.predict([[-0.8, -1.0], [3.0, 2.0]]))
    [np.str_('a'), np.str_('b')]
    >>> model.certificate_.primal >= model.certificate_.dual >= 0
    True
    """

    loss_functions: ClassVar[LossFunctions] = {**CLASSIFICATION_LOSSES, **REGRESSION_LOSSES}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StochasticGradient._parameter_constraints,
        "loss": [StrOptions(set(loss_functions))],
        "n_jobs": N_JOBS,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }
    _kind = "classes"

    def __init__(
        self,
        loss: str = "hinge",
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
        n_jobs: int | None = None,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average
        self.max_time = max_time

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> SGDClassifier:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : array-like of shape (n,)
            Labels of any kind.
        coef_init : ndarray of shape (n_columns, n_features) or None
            Initial weights.
        intercept_init : ndarray of shape (n_columns,) or None
            Initial constant terms.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples; each multiplies the loss of its sample.

        Returns
        -------
        SGDClassifier
            The fitted estimator.
        """
        self._check_combination()
        X, y = check_samples(self, X, y, reset=True)
        classes, numbers = encode_labels(self, y)
        coding = Coding.of("ovr", len(classes))
        previous = self._returned() if self.warm_start else None
        start = Start.given(coef_init, intercept_init, previous, coding, X, self.random_state)
        weights, watch = checked_weights(X, sample_weight, may_all_be_zero=self.early_stopping), None
        if self.early_stopping:
            weights, held = hold_out(X, numbers, weights, self.validation_fraction, self.random_state)
            codes = coding.codes[numbers[held.rows]]

            def validate(coef: Array, intercept: Array) -> Array:
                right = (held.view.scores(coef, intercept) >= 0) == (codes > 0)
                return np.asarray(np.average(right, axis=0, weights=held.weights))

            watch = validate, held.rows
        self.classes_, self.multiclass_ = classes, "ovr"
        problem = self._coded(X, y, numbers, coding, weights)
        self._fit_problem(problem, start, watch, X, y, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SGDClassifier:
        """Go on learning with one pass over a batch.

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
        SGDClassifier
            The estimator itself.
        """
        self._check_batch()
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' "
                "weights, use compute_class_weight('balanced', classes=classes, y=y). In place of y you can "
                "use a large enough sample of the full training set target to properly estimate the class "
                "frequency distributions. Pass the resulting weights as the class_weight parameter."
            )
        first = not hasattr(self, "classes_")
        X, y = check_samples(self, X, y, reset=first)
        _check_partial_fit_first_call(self, classes)
        if len(self.classes_) < 2:
            raise ValueError("The number of classes has to be greater than one; got 1 class.")
        self.multiclass_ = "ovr"
        coding = Coding.of("ovr", len(self.classes_))
        numbers = number_labels(self.classes_, y)
        start = Start.given(None, None, self._learnt(), coding, X, self.random_state)
        problem = self._coded(X, y, numbers, coding, checked_weights(X, sample_weight))
        self._fit_batch(problem, start)
        return self

    def _coded(self, X: Any, y: Any, numbers: Array, coding: Coding, weights: Array | None) -> Problem:
        factors = None
        if self.class_weight is not None:
            # Of a class's weight only its own column knows, except that two classes share one.
            each = class_weights(y, numbers, self.classes_, None, self.class_weight)
            own = (coding.codes > 0) | (coding.n_classes == 2)
            factors = np.where(own, each[:, None], 1.0)
        return self._problem(X, numbers, coding.codes, weights=weights, factors=factors)

    def _check_proba(self) -> bool:
        if self.loss not in ("log_loss", "modified_huber"):
            raise AttributeError(
                f"probability estimates are not available for loss={self.loss!r}: use 'log_loss' or "
                "'modified_huber', or sklearn.calibration.CalibratedClassifierCV."
            )
        return True

    @available_if(_check_proba)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        r"""Return the probabilities of the classes, for ``log_loss`` and ``modified_huber``.

        ``p = σ(f)`` for the former and ``p = (clip(f, −1, 1) + 1)/2`` for the latter (Zhang, 2004). With
        more than two classes these numbers, one per column, are divided by their sum (Zadrozny and
        Elkan, 2002); where all are 0 the classes are equally probable.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self)
        f = self.decision_function(X)
        p = expit(f) if self.loss == "log_loss" else (np.clip(f, -1, 1) + 1) / 2
        if p.ndim == 1:
            return np.stack([1 - p, p], axis=1)
        nowhere = p.sum(axis=1, keepdims=True) == 0
        p = np.where(nowhere, p.dtype.type(1), p)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    @available_if(_check_proba)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of :meth:`predict_proba`; −inf for a probability of 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Log-probabilities.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))
