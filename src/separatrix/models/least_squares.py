"""Least squares on one-hot targets, and what all least-squares classifiers share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from separatrix.data.memory import view_of
from separatrix.data.products import NotFiniteError
from separatrix.data.view import Array
from separatrix.models._base import LinearClassifier
from separatrix.models._bounded import MAX_MEMORY, bounded
from separatrix.models._labels import encode_labels
from separatrix.models._validation import check_finite, check_samples, refuse_sums, view_samples
from separatrix.models._weights import refuse_empty_classes, sample_weights
from separatrix.problem import Result
from separatrix.solvers._loop import run
from separatrix.solvers.least_squares import solver_of, stop_rule
from separatrix.solvers.regression import LeastSquaresSolver, Regression


class LeastSquares(LinearClassifier):
    """From a regression problem to parameters."""

    verbose: int
    max_time: float | None
    n_iter_: Any

    def _run(
        self, problem: Regression, route: str, tol: float, max_iter: int, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Result, LeastSquaresSolver]:
        if problem.view.sparse:
            check_finite(self, X)
        solver = solver_of(problem, route, tol, self.max_time)
        if not solver.notices and not problem.view.sparse:
            check_finite(self, X)
        context, observer = self._observe(
            max_iter,
            X,
            y,
            {"sample_weight": sample_weight},
            lambda: self._attributes(solver.coef, solver.intercept),
        )
        try:
            outcome = run(
                solver,
                stop_rule(tol),
                max_iter=max_iter,
                max_time=self.max_time,
                verbose=int(self.verbose),
                name=type(self).__name__,
                observer=observer,
            )
        except NotFiniteError:
            refuse_sums(self, X)
        result = solver.finish(outcome)
        self._keep_record(result)
        for name, value in self._attributes(result.coef, result.intercept).items():
            setattr(self, name, value)
        self._warn_if_unfinished(tol)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return result, solver

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        return {"coef_": coef, "intercept_": intercept}


class LeastSquaresClassifier(LeastSquares):
    r"""Joint least squares on one-hot targets, with an optional ridge penalty.

    ``Θ = argmin Σ_i s_i ‖t_i − W x_i − b‖² + α ‖W‖²`` where ``t_i`` is the one-hot row of sample ``i``'s
    class; the largest of the ``K`` scores decides. Where the solution is not unique (collinear or
    constant features, more features than samples) it is the one of smallest ``‖W‖``. With an intercept
    the scores of any point sum to 1.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty; the intercept is free.
    fit_intercept : bool, default=True
        Whether the scores have a constant term.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes; they multiply the sample weights.
    tol : float, default=1e-12
        Ends ``solver="cg"``: relative duality gap if ``alpha > 0``, else the squared gradient as a share of
        the one at zero weights. The other solvers are closed forms.
    max_iter : int, default=1000
        Most iterations of ``solver="cg"``.
    max_time : float or None, default=None
        Most seconds; the model is valid however the fit ends. Where a closed form seems to take longer,
        "auto" iterates instead. (A closed form that is ended before its solution has no weights.)
    verbose : int, default=0
        1 prints progress at most twice a second, 2 every iteration.
    solver : {"auto", "primal", "dual", "svd", "cg"}, default="auto"
        - "primal": normal equations in the features, from class means and scatter; features that depend on
          each other are found by eigenvalues, and the dependence is checked on the data;
        - "dual": normal equations in the samples, for more features than samples;
        - "svd": orthogonal factorisation of the data, the most accurate; "primal" and "dual" turn to it by
          themselves where their condition is bad or the rank in doubt;
        - "cg": conjugate gradients, for many samples and many features; sparse data stay sparse.

        "auto" chooses by shape and density; all give the same model.
    max_memory : float or None, default=None
        Most megabytes (2²⁰ bytes) that the fit may take besides its input: "auto" then chooses among the
        solvers that keep to it. Where none does, a MemoryError says before the fit how many it needs.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights; for two classes the difference of the two classes' vectors.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constant terms.
    class_coef_, class_intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        The vector and constant of each class, also for two classes.
    classes_ : ndarray
        The labels, sorted.
    solver_ : str
        The solver that gave the result.
    certificate_ : Certificate
        Objective, lower bound, their relative gap (as a share of the objective without weights), training
        errors.
    history_ : list of dict
        Per iteration: objective and relative gap, or the residual of conjugate gradients.
    n_iter_ : int
        Iterations: conjugate gradients, or the solution and its corrections.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from separatrix import LeastSquaresClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [7.0]]
    >>> model = LeastSquaresClassifier().fit(X, ["a", "a", "b", "b", "c"])
    >>> model.predict([[0.5], [9.0]]).tolist()
    ['a', 'c']
    >>> model.class_scores([[0.5], [9.0]]).sum(axis=1).round(12).tolist()
    [1.0, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
        "max_memory": MAX_MEMORY,
        "verbose": ["verbose"],
        "solver": [StrOptions({"auto", "primal", "dual", "svd", "cg"})],
    }

    def __init__(
        self,
        *,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-12,
        max_iter: int = 1000,
        max_time: float | None = None,
        verbose: int = 0,
        solver: str = "auto",
        max_memory: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose
        self.solver = solver
        self.max_memory = max_memory

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @bounded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LeastSquaresClassifier:
        """Fit the scores to the one-hot targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples.

        Returns
        -------
        LeastSquaresClassifier
            The fitted estimator.
        """
        X, y = check_samples(self, X, y, reset=True, finite=False)
        classes, numbers = encode_labels(self, y)
        weights = sample_weights(X, y, numbers, classes, sample_weight, self.class_weight)
        refuse_empty_classes(classes, numbers, weights, sample_weight, self.class_weight)
        K = len(classes)
        alpha = np.full(K, float(self.alpha))
        problem = Regression(view_of(X), numbers, np.eye(K), alpha, weights, self.fit_intercept)
        self.classes_, self.multiclass_ = classes, "joint"
        _, solver = self._run(problem, self.solver, float(self.tol), self.max_iter, X, y, sample_weight)
        self.solver_ = solver.route
        return self

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        attributes = {"class_coef_": coef, "class_intercept_": intercept}
        if coef.shape[0] == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return {**attributes, "coef_": coef, "intercept_": intercept}

    def class_scores(self, X: Any) -> Array:
        """Return the score of each class, also for two classes; with an intercept they sum to 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Estimates of the one-hot targets. They may be negative or above 1: they are no probabilities.
        """
        check_is_fitted(self)
        return view_samples(self, X).scores(self.class_coef_, self.class_intercept_)
