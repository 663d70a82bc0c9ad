"""The perceptron, primal form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import _check_partial_fit_first_call

from separatrix.data.memory import view_of
from separatrix.data.threads import thread_count
from separatrix.data.view import Array
from separatrix.models._base import LinearClassifier
from separatrix.models._hold_out import hold_out
from separatrix.models._labels import encode_labels, number_labels
from separatrix.models._start import Start, seed_of
from separatrix.models._validation import N_JOBS, check_samples
from separatrix.models._weights import check_presentations, sample_weights
from separatrix.multiclass import NAMES, Coding
from separatrix.problem import Penalty, Problem, Result
from separatrix.solvers._loop import NoImprovement, run
from separatrix.solvers.perceptron import PerceptronSolver


class Perceptron(LinearClassifier):
    r"""Perceptron with margin, pocket or averaging, for two or more classes.

    Two classes: visit the samples; where ``y f(x) ≤ 0`` or ``y f(x) < b``, do ``w += η y x̃``
    (``x̃ = (1, x)``, margin ``b``, rate ``η``). This is stochastic gradient descent on
    ``J(w) = Σ max(0, b − y f(x))``. More classes: one such problem per class (one-vs-rest) or per
    pair (one-vs-one), or all classes jointly: every rival ``k`` of the true class ``c`` with
    ``a_k·x̃ + b > a_c·x̃`` gets ``a_k −= η x̃``, and if there was one, ``a_c += η x̃``. A whole pass
    without an update ends the fit: the boundary then separates the classes, and the certificate
    says so.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"} or None, default=None
        Penalty on the weights, applied after each sample.
    alpha : float, default=0.0001
        Factor of the penalty.
    l1_ratio : float, default=0.15
        Share of L1 in the elastic net.
    fit_intercept : bool, default=True
        Whether the scores have a constant term. Where fewer than a tenth of 64 or more features differ from 0
        (words of texts), it takes steps of ``0.01 η``, as scikit-learn's does on sparse rows, and would run
        ahead of the weights otherwise; not in a joint fit.
    max_iter : int, default=1000
        Most passes over the data.
    tol : float or None, default=1e-3
        Stop when the mean criterion of a pass failed to fall by ``tol`` below its best for
        ``n_iter_no_change`` passes. None: only an error-free pass or ``max_iter`` ends the fit.
    shuffle : bool, default=True
        Whether each pass visits the samples in a new random order.
    verbose : int, default=0
        1 prints progress at most twice a second, 2 every pass.
    eta0 : float, default=1
        Learning rate ``η``.
    n_jobs : int or None, default=None
        Threads: None and -1 use the processors there are, 1 only one. All columns learn in one
        thread, since every step needs the one before; a second one judges the passes for the pocket on
        large dense data. More than two gain nothing. The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Source of the orders and of a random start.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of the samples and watch their accuracy instead of the
        criterion.
    validation_fraction : float, default=0.1
        Share held out if ``early_stopping``.
    n_iter_no_change : int, default=5
        Passes without improvement to wait.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes; they multiply the sample weights.
    warm_start : bool, default=False
        Whether a fit starts from the weights of the last one.
    margin : float or None, default=None
        Margin ``b ≥ 0`` that each sample must keep. With weights that start at zero only ``b/η``
        matters; larger values centre the boundary. None is 0, except for a joint fit without
        ``coef_init``: the strict joint rule never leaves zero weights with 0, so it is ``eta0``.
    multiclass : {"ovr", "ovo", "joint"}, default="ovr"
        One-vs-rest, one-vs-one (votes), or all classes jointly.
    keep : {"best", "last", "average"}, default="best"
        Weights to return: those of the pass with the fewest margin errors on the training set (the
        pocket; of equals the later), the last, or the mean over all presentations.
    max_time : float or None, default=None
        Most seconds; the model is valid however the fit ends.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_columns, n_features)
        Weights: one row for two classes, else one per class, or per pair for one-vs-one.
    intercept_ : ndarray of shape (n_columns,)
        Constant terms.
    class_coef_, class_intercept_ : ndarray
        For a joint fit the vector of each class, also for two classes, where ``coef_`` is their
        difference.
    classes_ : ndarray
        The labels, sorted.
    certificate_ : Certificate
        Criterion, margin, training errors, why the fit stopped, whether the classes are separable.
    history_ : list of dict
        Per pass: mistakes and margin errors met on the way, criterion, norm of all weights with
        their intercepts, and the margin errors of the pass's end (``training_errors``, if judged).
    training_margin_ : float or None
        Smallest signed distance of a training sample to the boundary.
    n_iter_ : int
        Passes done.
    t_ : int
        Samples visited, plus one.
    multiclass_ : str
        The coding in use.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A sample of weight 2 is presented twice in a row, one of weight 0 never; a fractional rest makes
    a fractional step. Dense and CSR data give the same bits on every processor if ``shuffle=False`` or
    they are small (2 MiB); larger shuffled data are visited in an order that fits their layout.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> X = [[0.0, 0.0], [1.0, 0.5], [3.0, 3.0], [4.0, 2.5]]
    >>> model = Perceptron(shuffle=False).fit(X, ["low", "low", "high", "high"])
    >>> model.certificate_.separable
    True
    >>> list(model.predict([[0.5, 0.5], [5.0, 5.0]]))
    [np.str_('low'), np.str_('high')]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "verbose": ["verbose"],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "margin": [Interval(Real, 0, None, closed="left"), None],
        "multiclass": [StrOptions(set(NAMES))],
        "keep": [StrOptions({"best", "last", "average"})],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
    }

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        margin: float | None = None,
        multiclass: str = "ovr",
        keep: str = "best",
        max_time: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.margin = margin
        self.multiclass = multiclass
        self.keep = keep
        self.max_time = max_time

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, coef_init: Any = None, intercept_init: Any = None, sample_weight: Any = None
    ) -> Perceptron:
        """Fit the perceptron.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : array-like of shape (n,)
            Labels of any kind.
        coef_init : ndarray of shape (n_columns, n_features), "random" or None
            Initial weights; "random" draws small ones from ``random_state``.
        intercept_init : ndarray of shape (n_columns,) or None
            Initial constant terms.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples.

        Returns
        -------
        Perceptron
            The fitted estimator.
        """
        self._check_combination()
        X, y = check_samples(self, X, y, reset=True)
        classes, numbers = encode_labels(self, y)
        coding = Coding.of(self.multiclass, len(classes))
        previous = self._learnt() if self.warm_start and hasattr(self, "coef_") else None
        start = Start.given(coef_init, intercept_init, previous, coding, X, self.random_state)
        weights = sample_weights(X, y, numbers, classes, sample_weight, self.class_weight)
        weights, validate = self._hold_out(X, numbers, coding, weights)
        self.classes_, self.multiclass_ = classes, self.multiclass
        problem = self._problem(X, numbers, coding, weights)
        solver = self._solver(problem, start, self.keep, validate)
        context, observer = self._observe(
            self.max_iter,
            X,
            y,
            {"sample_weight": sample_weight},
            lambda: self._attributes(coding, solver.coef.copy(), solver.intercept.copy()),
        )
        outcome = run(
            solver,
            NoImprovement(self.tol, self.n_iter_no_change),
            max_iter=self.max_iter,
            max_time=self.max_time,
            verbose=int(self.verbose),
            name=type(self).__name__,
            observer=observer,
        )
        result = solver.finish(outcome)
        self._store(coding, result, solver)
        self._keep_record(result)
        self.t_ = 1 + self.n_iter_ * X.shape[0]
        self._warn_if_unfinished(self.tol)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Perceptron:
        """Go on learning with one pass over a batch.

        The errors on earlier batches are not known any more, so ``keep="best"`` keeps the last
        weights here; ``keep="average"`` goes on with the average over all batches.

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
        Perceptron
            The estimator itself.
        """
        self._check_combination()
        if self.early_stopping:
            raise ValueError(
                "early_stopping should be False with partial_fit: a batch has no passes to stop."
            )
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight 'balanced' is not supported for partial_fit, which does not know the "
                "frequencies beforehand. Pass a dict, for example from "
                "sklearn.utils.class_weight.compute_class_weight."
            )
        first = not hasattr(self, "classes_")
        X, y = check_samples(self, X, y, reset=first)
        _check_partial_fit_first_call(self, classes)
        if len(self.classes_) < 2:
            raise ValueError("The number of classes has to be greater than one; got 1 class.")
        if not hasattr(self, "coef_"):
            self.multiclass_, self.t_, self.history_ = self.multiclass, 1, []
        coding = Coding.of(self.multiclass_, len(self.classes_))
        numbers = number_labels(self.classes_, y)
        weights = sample_weights(X, y, numbers, self.classes_, sample_weight, self.class_weight)
        previous = self._learnt() if hasattr(self, "coef_") else None
        state = getattr(self, "_average_state", None)
        if state is not None and self.keep == "average":
            previous = state["coef"], state["intercept"]
        start = Start.given(None, None, previous, coding, X, self.random_state)
        problem = self._problem(X, numbers, coding, weights)
        keep = "average" if self.keep == "average" else "last"
        solver = self._solver(problem, start, keep, None, state)
        outcome = run(solver, NoImprovement(None, 1), max_iter=1, max_time=self.max_time, name="partial_fit")
        result = solver.finish(outcome)
        # A batch proves nothing about the batches before it.
        errors = result.certificate.training_errors
        message = f"one pass over a batch of {X.shape[0]:,} samples; {errors:g} errors on it"
        status = outcome.status if outcome.status in ("max_time", "interrupted") else "max_iter"
        self.certificate_ = replace(result.certificate, separable=None, status=status, message=message)
        self._store(coding, result, solver)
        self.history_ += result.history
        self.n_iter_, self.t_ = 1, self.t_ + X.shape[0]
        return self

    def _check_combination(self) -> None:
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be set when penalty is 'elasticnet'.")
        if self.keep == "average" and self.penalty is not None:
            raise ValueError(
                f"keep='average' averages unpenalised weights and does not go with penalty={self.penalty!r}: "
                "choose penalty=None, or keep='best' or 'last'."
            )

    def _problem(self, X: Any, numbers: Array, coding: Coding, weights: Array | None) -> Problem:
        ratios = {"l1": 1.0, "l2": 0.0, "elasticnet": self.l1_ratio}
        penalty = Penalty(self.alpha, ratios[self.penalty]) if self.penalty is not None else Penalty()
        check_presentations(weights, self.max_time, dear=bool(penalty))
        return Problem(
            view_of(X),
            numbers,
            coding.codes,
            joint=coding.joint,
            penalty=penalty,
            weights=weights,
            fit_intercept=self.fit_intercept,
        )

    def _solver(
        self,
        problem: Problem,
        start: Start,
        keep: str,
        validate: Callable[[Array, Array], float] | None,
        average_state: dict[str, Array] | None = None,
    ) -> PerceptronSolver:
        margin = self.margin
        if margin is None:
            margin = self.eta0 if problem.joint and not start.given_nonzero else 0.0
        return PerceptronSolver(
            problem,
            start.coef,
            start.intercept,
            eta=float(self.eta0),
            margin=float(margin),
            keep=keep,
            shuffle=self.shuffle,
            seed=seed_of(self.random_state),
            judge_start=start.nonzero,
            validate=validate,
            average_state=average_state,
            threads=thread_count(self.n_jobs),
        )

    def _hold_out(
        self, X: Any, numbers: Array, coding: Coding, weights: Array | None
    ) -> tuple[Array | None, Callable[[Array, Array], float] | None]:
        """Take the validation samples of early stopping out of the training set."""
        if not self.early_stopping:
            return weights, None
        remaining, held = hold_out(X, numbers, weights, self.validation_fraction, self.random_state)

        def validate(coef: Array, intercept: Array) -> float:
            right = coding.decide(held.view.scores(coef, intercept)) == numbers[held.rows]
            return float(np.average(right, weights=held.weights))

        return remaining, validate

    def _attributes(self, coding: Coding, coef: Array, intercept: Array) -> dict[str, Any]:
        if coding.joint and coding.n_classes == 2:
            return {"coef_": coef[1:] - coef[:1], "intercept_": intercept[1:] - intercept[:1]}
        return {"coef_": coef, "intercept_": intercept}

    def _store(self, coding: Coding, result: Result, solver: PerceptronSolver) -> None:
        coef, intercept = np.ascontiguousarray(result.coef), np.ascontiguousarray(result.intercept)
        self.training_margin_ = result.certificate.margin
        if coding.joint and solver.margin == 0.0 and not np.any(coef) and not np.any(intercept):
            warnings.warn(
                "With margin=0 the joint rule never leaves zero weights, so nothing was learnt: give a "
                "margin > 0 or coef_init.",
                ConvergenceWarning,
                stacklevel=4,
            )
        for name, value in self._attributes(coding, coef, intercept).items():
            setattr(self, name, value)
        for name in ("class_coef_", "class_intercept_", "_average_state"):
            self.__dict__.pop(name, None)
        if coding.joint:
            self.class_coef_, self.class_intercept_ = coef, intercept
        if solver.averaging:
            self._average_state = solver.average_state()

    def _learnt(self) -> tuple[Array, Array]:
        """Return the weights of each column, from which a later fit may start."""
        if hasattr(self, "class_coef_"):
            return self.class_coef_, self.class_intercept_
        return self._dense_coef(), self.intercept_
