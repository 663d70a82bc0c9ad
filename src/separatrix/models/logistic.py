"""Logistic and softmax regression."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from separatrix.data.memory import ConstantColumn, view_of
from separatrix.data.products import NotFiniteError
from separatrix.data.room import basis, demand
from separatrix.data.threads import at_most, in_blocks, single_threaded, work_of_fit
from separatrix.data.view import Array, DataView
from separatrix.losses import LOSSES, softmax
from separatrix.models._base import LinearClassifier
from separatrix.models._bounded import MAX_MEMORY, bounded
from separatrix.models._drawn import fit_drawn
from separatrix.models._labels import encode_labels
from separatrix.models._logistic_method import OWN, SOLVERS, method_of
from separatrix.models._logistic_penalty import strength_of
from separatrix.models._path import PathOverC
from separatrix.models._start import goal_of, judged, last_solution
from separatrix.models._validation import N_JOBS, check_finite, check_samples, refuse_sums
from separatrix.models._weights import refuse_empty_classes, sample_weights
from separatrix.multiclass import Coding
from separatrix.problem import Problem, Result
from separatrix.solvers._loop import Below, run

if TYPE_CHECKING:
    from separatrix.solvers.dual_coordinate import SoftmaxDual
    from separatrix.solvers.quasi_newton import QuasiNewton
    from separatrix.solvers.separation import Watch
    from separatrix.solvers.small_logit import SmallLogit
    from separatrix.solvers.working_set import WorkingSet

#: Entries of dense samples from which on nobody looks for NaN and infinity before the first sums are taken.
_MANY = 1 << 22
#: Entries times columns up to which any method's steps cost next to nothing.
_TINY = 1 << 14
#: How scikit-learn's solvers say that max_iter was not enough: programs filter warnings by these words.
_WORDS = {
    "liblinear": "Liblinear failed to converge, increase the number of iterations.",
    "newton-cholesky": "Newton solver did not converge after {n} iterations.",
    "sag": "The max_iter was reached which means the coef_ did not converge",
    "saga": "The max_iter was reached which means the coef_ did not converge",
}


class LogisticRegression(PathOverC, LinearClassifier):
    r"""Logistic regression for two classes, softmax regression for more.

    Minimises

    .. math:: C \sum_i s_i \ell(f(x_i), c_i) + r \|W\|_1 + \frac{1 - r}{2} \|W\|^2, \qquad f(x) = W x + b

    over the weights :math:`W` and the free intercept :math:`b`, with :math:`r` = ``l1_ratio`` and
    :math:`\ell = \ln(1 + e^{-y f})` for two classes, :math:`\ell = \ln \sum_k e^{f_k} - f_c` for more.
    ``C=inf`` is plain maximum likelihood; where that has no solution because the classes are
    separable, the fit says so and names the separating direction (``separation_``).

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}, default="deprecated"
        scikit-learn's old way to say ``l1_ratio`` and ``C``; leave it out.
    C : float, default=1.0
        Factor of the loss: the smaller, the stronger the penalty. ``inf`` for none.
    l1_ratio : float, default=0.0
        Part of the L1 norm in the penalty: 0 is L2, 1 is L1, between them the elastic net.
    dual : bool, default=False
        True solves the dual problem by coordinate descent (L2 only), as ``solver="dual-coordinate"``.
    tol : float, default=0.0001
        The fit ends when the objective is proven (duality gap), or where no such proof is at hand
        estimated with a margin of 10 (Newton decrement), to be within this part of its minimum. Few data,
        on which steps cost next to nothing, are fitted to four more digits.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_scaling : float, default=1.0
        Only with ``solver="liblinear"``: the intercept is then, as in scikit-learn, the penalised
        weight of a constant feature of this value.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; they multiply ``sample_weight``.
    random_state : int, RandomState instance or None, default=None
        Draws the samples of rows that show the way at the beginning, and the dual's order.
    solver : str, default="auto"
        How to solve it; the solution is the same. "auto" chooses by shape: "newton" (exact Hessian)
        where it is cheap, "quasi-newton" (L-BFGS around a model of the Hessian) otherwise,
        "dual-coordinate" for sparse, wide data of several classes, "working-set" (proximal Newton
        on the features that matter) wherever L1 takes part. scikit-learn's names select: "lbfgs",
        "newton-cg": "quasi-newton"; "newton-cholesky": "newton"; "sag", "saga": "auto"; "liblinear":
        "auto" with a penalised intercept, two classes only. Few data are fitted by compiled Newton
        steps, unless one of our own names asks for its method.
    max_iter : int, default=1000
        Most iterations.
    verbose : int, default=0
        1 prints progress, 2 each iteration.
    warm_start : bool, default=False
        Whether a fit starts from the last one's solution.
    n_jobs : int or None, default=None
        Most threads; the result does not depend on it.
    multiclass : {"joint", "ovr"}, default="joint"
        More than two classes: softmax, or one binary problem for each class against the rest.
    max_time : float or None, default=None
        Most seconds.
    max_memory : float or None, default=None
        Most megabytes (2²⁰ bytes) that the fit may take besides its input: "auto" then chooses among the
        methods that keep to it, and these do with less. Where none does, a MemoryError says before the fit
        how many it needs.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    n_iter_ : ndarray of shape (1,)
        Iterations.
    certificate_ : Certificate
        Objective, lower bound, gap, and why the fit ended.
    history_ : list of dict
        Objective and gap after each iteration.
    separation_ : Separation or None
        The direction along which the likelihood grows for ever, if there is one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, if the samples had names.

    Examples
    --------
    >>> import numpy as np
    >>> import separatrix as sx
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> model = sx.LogisticRegression(C=10.0).fit(X, [0, 0, 1, 0, 1, 1])
    >>> model.predict([[0.5], [4.5]]).tolist()
    [0, 1]
    >>> model.predict_proba([[2.5]]).round(3).tolist()
    [[0.5, 0.5]]
    >>> model.certificate_.status
    'converged'
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "penalty": [StrOptions({"l1", "l2", "elasticnet"}), None, Hidden(StrOptions({"deprecated"}))],
        "C": [Interval(Real, 0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "dual": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "solver": [StrOptions(set(SOLVERS))],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "n_jobs": N_JOBS,
        "multiclass": [StrOptions({"joint", "ovr"})],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
        "max_memory": MAX_MEMORY,
    }

    def __init__(
        self,
        penalty: str | None = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "auto",
        max_iter: int = 1000,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        multiclass: str = "joint",
        max_time: float | None = None,
        max_memory: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.multiclass = multiclass
        self.max_time = max_time
        self.max_memory = max_memory

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @bounded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples; 2 counts as the sample twice, 0 as its absence.

        Returns
        -------
        LogisticRegression
            The fitted estimator.
        """
        C, ratio = strength_of(self)
        X, y = check_samples(self, X, y, reset=True, finite=False)
        if self.solver == "liblinear":  # which knows doubles only: those who name it expect them back
            X = X.astype(np.float64, copy=False)
        # The first sums of descents over many dense samples tell by themselves whether these are finite.
        descent = ratio == 0 and np.isfinite(C) and not self.dual and self.solver != "dual-coordinate"
        if not (descent and isinstance(X, np.ndarray) and X.size >= _MANY):
            check_finite(self, X)
        classes, numbers = encode_labels(self, y)
        method = method_of(self, X, len(classes), C, ratio) if self.max_iter > 0 else "quasi-newton"
        weights = sample_weights(X, y, numbers, classes, sample_weight, self.class_weight, by_weight=True)
        drawn = refuse_empty_classes(classes, numbers, weights, sample_weight, self.class_weight)
        if drawn is not None and weights is not None:
            fit_drawn(self, X, y, classes, drawn, np.flatnonzero(weights), sample_weight)
            return self
        coding = Coding.of("ovr" if len(classes) == 2 else self.multiclass, len(classes))
        problem = self._problem(X, numbers, coding, weights)
        start = self._start(problem, classes)
        if self.max_iter == 0 and not self.warm_start:
            start = np.zeros_like(start[0]), np.zeros_like(start[1])
        self.classes_, self.multiclass_ = classes, coding.name
        with at_most(self.n_jobs), single_threaded(work_of_fit(X.shape, problem.columns)):
            try:
                solver = self._solver(problem, method, C, ratio, *start)
            except NotFiniteError:
                refuse_sums(self, X)
            attributes = partial(self._attributes, solver)
            context, observer = self._observe(
                self.max_iter, X, y, {"sample_weight": sample_weight}, attributes
            )
            try:
                outcome = run(
                    solver,
                    Below(solver.tol),
                    max_iter=self.max_iter,
                    max_time=self.max_time,
                    verbose=int(self.verbose),
                    name=type(self).__name__,
                    observer=observer,
                )
            except NotFiniteError:  # of a solver that goes on where compiled steps end
                refuse_sums(self, X)
            self._store(solver.finish(outcome), getattr(solver, "separation", None))
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _problem(self, X: Any, numbers: Array, coding: Coding, weights: Array | None) -> Problem:
        penalised = self.solver == "liblinear" and self.fit_intercept
        view: DataView = view_of(X)
        if penalised:
            view = ConstantColumn(view, float(self.intercept_scaling))
            if self.dual:  # it visits rows one by one, in memory
                view = view_of(view.read(slice(0, view.shape[0])))
        return Problem(
            view,
            numbers,
            coding.codes,
            joint=coding.joint,
            loss=LOSSES["logistic"],
            weights=weights,
            fit_intercept=self.fit_intercept and not penalised,
        )

    def _start(self, problem: Problem, classes: Array) -> tuple[Array, Array]:
        """Return the last solution (``warm_start``), or zero weights with the classes' frequencies."""
        P, d = problem.columns, problem.view.shape[1]
        coef, intercept = np.zeros((P, d)), np.zeros(P)
        if self.warm_start and hasattr(self, "coef_"):
            return last_solution(self, problem, classes)
        if problem.fit_intercept:
            totals = np.bincount(problem.classes, weights=problem.weights, minlength=len(classes))
            if problem.joint:
                intercept = np.log(totals) - np.log(totals).mean()
            else:
                positive, negative = (totals @ (problem.codes == sign) for sign in (1, -1))
                intercept = np.log(positive) - np.log(negative)
        return coef, intercept

    def _solver(
        self, problem: Problem, method: str, C: float, ratio: float, coef: Array, intercept: Array
    ) -> QuasiNewton | SoftmaxDual | WorkingSet | SmallLogit:
        # Each fit loads the one solver that it needs.
        if self.solver not in OWN and method != "dual-coordinate" and self.max_iter > 0:
            from separatrix.solvers.small_logit import SmallLogit, densely, is_small

            if is_small(problem):
                demand(basis(problem.view.shape[0]), "the smallest fit")

                def otherwise(coef: Array, intercept: Array) -> QuasiNewton | SoftmaxDual | WorkingSet:
                    return self._large_solver(problem, method, C, ratio, coef, intercept)

                few = densely(problem)
                return SmallLogit(
                    few,
                    l1=ratio / C,
                    l2=(1.0 - ratio) / C,
                    coef=coef,
                    intercept=intercept,
                    tol=goal_of(self.tol, problem),
                    unit=C if np.isfinite(C) else 1.0,
                    watch=self._watch(few, C),
                    otherwise=otherwise,
                )
        return self._large_solver(problem, method, C, ratio, coef, intercept)

    def _large_solver(
        self, problem: Problem, method: str, C: float, ratio: float, coef: Array, intercept: Array
    ) -> QuasiNewton | SoftmaxDual | WorkingSet:
        seed = int(check_random_state(self.random_state or 0).randint(np.iinfo(np.int32).max))
        tiny = problem.view.shape[0] * problem.view.shape[1] * problem.columns <= _TINY
        tol = goal_of(self.tol, problem) if tiny else float(self.tol)
        common: dict[str, Any] = {"coef": coef, "intercept": intercept, "tol": tol}
        if method == "working-set":
            from separatrix.solvers.working_set import WorkingSet

            return WorkingSet(problem, l1=ratio / C, l2=(1.0 - ratio) / C, unit=C, **common)
        if method == "dual-coordinate":
            from separatrix.solvers.dual_coordinate import SoftmaxDual

            return SoftmaxDual(problem, C=C, seed=seed, threads=1, **common)
        from separatrix.solvers.quasi_newton import QuasiNewton

        watch = self._watch(problem, C)
        return QuasiNewton(problem, l2=1.0 / C, method=method, seed=seed, watch=watch, **common)

    def _watch(self, problem: Problem, C: float) -> Watch | None:
        """Return what looks for separation where there is no penalty."""
        if np.isfinite(C):
            return None
        from separatrix.solvers.separation import Watch

        return Watch(problem)

    def _attributes(self, solver: Any) -> dict[str, Any]:
        point = getattr(solver, "point", solver)
        return {"coef_": np.array(point.coef), "intercept_": np.array(point.intercept)}

    def _store(self, result: Result, separation: Any) -> None:
        coef, intercept = np.ascontiguousarray(result.coef), np.ascontiguousarray(result.intercept)
        if self.solver == "liblinear" and self.fit_intercept:
            intercept = coef[:, -1] * coef.dtype.type(self.intercept_scaling)
            coef = np.ascontiguousarray(coef[:, :-1])
        if not np.isfinite(coef.sum() + intercept.sum()):
            raise ValueError(
                f"the weights overflow {coef.dtype}: the features are too small. Scale them, for example "
                "with sklearn.preprocessing.StandardScaler."
            )
        self.coef_, self.intercept_ = coef, intercept
        self._keep_record(result)
        self.certificate_ = judged(self.certificate_, self.tol, coef.dtype, self.max_iter)
        if self.certificate_.status == "max_iter" and (self.dual or self.solver == "dual-coordinate"):
            words = self.certificate_.message.replace(
                "raise it", "choose solver='auto' and dual=False, or raise it"
            )
            self.certificate_ = replace(self.certificate_, message=words)
        self.n_iter_ = np.array([result.iterations], dtype=np.int32)  # type: ignore[assignment]
        self.separation_ = separation
        if separation is not None:
            names = getattr(self, "feature_names_in_", None)
            message = separation.message(self.classes_, names)
            complete = separation.kind == "complete"
            self.certificate_ = replace(
                self.certificate_,
                message=message,
                separable=True if complete else None,
                margin=separation.margin,
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        if self.certificate_.status == "max_iter":
            known = _WORDS.get(self.solver, "{solver} failed to converge after {n} iteration(s)")
            warnings.warn(
                f"{known.format(solver=self.solver, n=result.iterations)} ({self.certificate_.message}). "
                "Increase the number of iterations (max_iter) or scale the data, for example with "
                "sklearn.preprocessing.StandardScaler.",
                ConvergenceWarning,
                stacklevel=3,
            )
        else:
            self._warn_if_unfinished(self.tol)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class: softmax of the scores, σ for two classes.

        With ``multiclass="ovr"`` the classes' own probabilities, divided by their sum.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Rows sum to 1.
        """
        check_is_fitted(self)
        if self._coding.joint:
            return np.asarray(in_blocks(softmax, self.decision_function(X)))
        return self._predict_proba_lr(X)

    def _predict_proba_lr(self, X: Any) -> Array:
        """Return the classes' own probabilities, divided by their sum, under scikit-learn's name for them."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            both = np.empty((scores.shape[0], 2), dtype=scores.dtype)
            expit(scores, out=both[:, 1])
            np.negative(scores, out=scores)
            expit(scores, out=both[:, 0])
            return both
        each = expit(scores)
        totals = each.sum(axis=1, keepdims=True)
        even = np.full_like(each, 1.0 / each.shape[1])
        return np.asarray(np.divide(each, totals, out=even, where=totals > 0))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of the probabilities, exact where they are too small to be told from 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Logarithms.
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        if self._coding.joint:
            return np.asarray(log_softmax(scores, axis=1))
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
