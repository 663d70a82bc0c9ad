"""Linear support vector machines for classes and for numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from separatrix.data.memory import ConstantColumn, view_of
from separatrix.data.threads import at_most, single_threaded
from separatrix.data.view import Array, DataView
from separatrix.losses import LOSSES
from separatrix.models._base import IterativeEstimator, LinearClassifier, LinearModel
from separatrix.models._validation import (
    check_samples,
    checked_weights,
    encode_labels,
    sample_weights,
    score_samples,
)
from separatrix.multiclass import Coding
from separatrix.problem import Problem, Result
from separatrix.solvers._loop import Below, run

if TYPE_CHECKING:
    from separatrix.models._path import CPath

#: Entries times columns up to which a fit goes beyond the tolerance.
_SMALL = 1 << 20
#: Features up to which Newton's method forms a Hessian: dense data, sparse data.
_DENSE_FEATURES, _SPARSE_FEATURES = 2500, 1000
#: Samples up to which Newton's method works with their inner products where there are more features.
_FEW_SAMPLES = 1500
#: Folds of the scores from which probabilities are learnt.
_FOLDS = 5

_SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "dual": ["boolean", StrOptions({"auto"})],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "C": [Interval(Real, 0.0, None, closed="neither")],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "max_iter": [Interval(Integral, 0, None, closed="left")],
    "penalize_intercept": ["boolean"],
    "warm_start": ["boolean"],
    "n_jobs": [None, Integral],
    "max_time": [Interval(Real, 0, None, closed="right"), None],
}


class LinearSVM(IterativeEstimator):
    """What both models share: the choice of the solver, and the way from a problem to fitted attributes."""

    loss: str
    dual: bool | str
    tol: float
    C: float
    fit_intercept: bool
    intercept_scaling: float
    verbose: int
    random_state: Any
    max_iter: int
    solver: str
    penalize_intercept: bool
    warm_start: bool
    n_jobs: int | None
    max_time: float | None

    def _goal(self, problem: Problem) -> float:
        """Return the gap to go for: where steps cost next to nothing, four more digits."""
        small = problem.view.shape[0] * problem.view.shape[1] * problem.columns <= _SMALL
        tol = float(self.tol)
        return max(1e-4 * tol, min(tol, 1e-12)) if small else tol

    def _method(self, view: DataView, penalty: str = "l2") -> str:
        """Return the solver that fits the data, or the one that was named if it can solve the problem."""
        if penalty == "l1":
            if self.solver not in ("auto", "working-set"):
                raise ValueError(
                    f"solver={self.solver!r} solves problems with penalty='l2'; choose solver='auto' or "
                    "'working-set' for penalty='l1'."
                )
            return "working-set"
        if self.solver == "working-set":
            raise ValueError("solver='working-set' needs penalty='l1'; choose solver='auto' for 'l2'.")
        if self.solver != "auto":
            return self.solver
        n, d = view.shape
        small = d <= (_SPARSE_FEATURES if view.sparse else _DENSE_FEATURES)
        return "newton" if small or n <= _FEW_SAMPLES else "auto"

    def _optimise(
        self,
        problem: Problem,
        start: tuple[Array, Array],
        X: Any,
        y: Any,
        sample_weight: Any,
        penalty: str = "l2",
    ) -> Result:
        method = self._method(problem.view, penalty)
        goal = self._goal(problem)
        with at_most(self.n_jobs), single_threaded(X.shape[0] * X.shape[1] * problem.columns):
            solver = self._solver(problem, method, goal, start)
            metadata = {"sample_weight": sample_weight}
            context, observer = self._observe(
                self.max_iter, X, y, metadata, partial(self._attributes, solver)
            )
            outcome = run(
                solver,
                Below(goal),
                max_iter=self.max_iter,
                max_time=self.max_time,
                verbose=int(self.verbose),
                name=type(self).__name__,
                observer=observer,
            )
            result: Result = solver.finish(outcome)
        result.certificate = self._judged(result)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return result

    def _judged(self, result: Result) -> Any:
        """Return the certificate; a fit that has reached ``tol`` is converged, whatever it went for."""
        found = result.certificate
        if found.relative_gap is not None and found.relative_gap <= self.tol and found.status == "max_iter":
            return replace(found, status="converged", message=found.message.split(", above")[0])
        return found

    def _solver(self, problem: Problem, method: str, goal: float, start: tuple[Array, Array]) -> Any:
        seed = self._seed()
        common: dict[str, Any] = {"coef": start[0], "intercept": start[1], "tol": goal}
        # Each fit loads the one solver that it needs.
        if method == "working-set":
            from separatrix.solvers.working_set import WorkingSet

            C = float(self.C)
            return WorkingSet(problem, l1=1.0 / C, l2=0.0, unit=C, **common)
        common.update(C=float(self.C), scaling=self._scaling(), seed=seed)
        if method == "newton":
            from separatrix.solvers.semismooth_newton import SemismoothNewton

            return SemismoothNewton(problem, **common)
        from separatrix.solvers.box_coordinate import BoxCoordinate

        return BoxCoordinate(problem, **common, newton=method == "auto")

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _scaling(self) -> float | None:
        return float(self.intercept_scaling) if self.penalize_intercept else None

    def _attributes(self, solver: Any) -> dict[str, Any]:
        return {"coef_": np.array(solver.coef), "intercept_": np.array(solver.intercept)}

    def _warn(self) -> None:
        if self.certificate_.status == "max_iter":
            warnings.warn(
                "Liblinear failed to converge, increase the number of iterations (in scikit-learn's words): "
                f"{type(self).__name__} stopped with {self.certificate_.message}.",
                ConvergenceWarning,
                stacklevel=4,
            )
        else:
            self._warn_if_unfinished(self.tol)

    def _check_dual(self, penalty: str) -> None:
        """Refuse the pairs that scikit-learn refuses, naming those that exist."""
        hinge = self.loss == "hinge"
        if penalty == "l1" and hinge:
            why = "L1 goes with loss='squared_hinge'"
        elif penalty == "l1" and self.dual is True:
            why = "L1 has no dual form: set dual='auto'"
        elif penalty == "l2" and self.loss in ("hinge", "epsilon_insensitive") and self.dual is False:
            why = "this loss is solved with dual='auto' or True"
        else:
            return
        raise ValueError(
            f"Unsupported set of arguments: The combination of penalty='{penalty}' and loss='{self.loss}' "
            f"is not supported when dual={self.dual}, Parameters: penalty='{penalty}', loss='{self.loss}', "
            f"dual={self.dual}. {why}. The pairs that exist: l2 with every loss, l1 with squared_hinge."
        )


class LinearSVC(LinearClassifier, LinearSVM):
    r"""Linear support vector classification.

    Minimises, for every column (one for two classes; else one for each class against the rest, or for each
    pair),

    .. math:: \tfrac12 \|w\|^2 + \frac{b^2}{2\gamma^2} + C \sum_i s_i\, \ell(y_i (w \cdot x_i + b))

    with the hinge loss :math:`\ell(m) = \max(0, 1 - m)` or its square, :math:`\gamma` =
    ``intercept_scaling``.
    As in scikit-learn the intercept is the penalised weight of a constant feature;
    ``penalize_intercept=False``
    leaves it free, which is the textbook's problem. ``penalty="l1"`` has :math:`\|w\|_1 + |b|/\gamma`
    instead.

    Parameters
    ----------
    penalty : {"l2", "l1"}
        Norm of the penalty; "l1", which makes weights 0, goes with ``loss="squared_hinge"``.
    loss : {"squared_hinge", "hinge"}
        Loss of the margin.
    dual : bool or "auto"
        LIBLINEAR's choice between a primal and a dual solver. The solution is the same, and here ``solver``
        chooses; pairs of penalty, loss and dual that scikit-learn refuses are refused.
    tol : float
        The fit ends when the objective is proven (by the duality gap) to be within this part of its minimum.
        Small fits, whose steps cost next to nothing, go for four more digits.
    C : float
        Factor of the loss.
    multi_class : {"ovr", "crammer_singer"}
        scikit-learn's name for ``multiclass``: "crammer_singer" is "joint".
    fit_intercept : bool
        Whether there is an intercept.
    intercept_scaling : float
        :math:`\gamma`: the larger, the less the intercept is penalised.
    class_weight : dict, "balanced" or None
        Weights of the classes; they multiply ``sample_weight``.
    verbose : int
        1 prints progress, 2 each iteration.
    random_state : int, RandomState instance or None
        Draws the order of the coordinate descent and samples of rows; None counts as 0.
    max_iter : int
        Most iterations: Newton steps, or passes of coordinate descent.
    multiclass : {"ovr", "ovo", "joint"} or None
        More than two classes: each against the rest, each pair, or all together (Crammer and Singer). None
        follows ``multi_class``.
    solver : {"auto", "newton", "dual", "working-set"}
        How to solve it; the solution is the same. "newton": semismooth Newton steps, for kinks within the
        method
        of multipliers; "dual": coordinate descent in the dual; "working-set": proximal Newton for L1. "auto"
        takes Newton where features (or samples) are few, else the dual, and Newton to finish what is slow.
    penalize_intercept : bool
        False leaves the intercept out of the penalty.
    warm_start : bool
        Whether a fit starts from the last one's solution.
    probability : bool
        Whether to learn ``predict_proba``, from the scores of samples held out in 5 folds.
    n_jobs : int or None
        Most threads; the result does not depend on it.
    max_time : float or None
        Most seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of shape (1, n_features) or (columns, n_features)
        Weights of each column.
    intercept_ : ndarray of shape (1,) or (columns,)
        Intercepts.
    n_iter_ : int
        Iterations.
    certificate_ : Certificate
        Objective, lower bound, gap, and why the fit ended.
    history_ : list of dict
        Objective and gap on the way.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, if the samples had names.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.models.linear_svm import LinearSVC
    >>> X = np.array([[-2.0, 0.0], [-1.0, 1.0], [1.0, -1.0], [2.0, 0.0]])
    >>> model = LinearSVC(loss="hinge", C=100.0, penalize_intercept=False).fit(X, [0, 0, 1, 1])
    >>> model.coef_.round(4).tolist(), model.certificate_.status
    ([[0.5, -0.5]], 'converged')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED_CONSTRAINTS,
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "multiclass": [StrOptions({"ovr", "ovo", "joint"}), None],
        "solver": [StrOptions({"auto", "newton", "dual", "working-set"})],
        "probability": ["boolean"],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        multiclass: str | None = None,
        solver: str = "auto",
        penalize_intercept: bool = True,
        warm_start: bool = False,
        probability: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.multiclass = multiclass
        self.solver = solver
        self.penalize_intercept = penalize_intercept
        self.warm_start = warm_start
        self.probability = probability
        self.n_jobs = n_jobs
        self.max_time = max_time

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
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
        LinearSVC
            The fitted estimator.
        """
        name = self._coding_name()
        if name == "joint":
            self._check_joint()
        else:
            self._check_dual(self.penalty)
        X, y = check_samples(self, X, y, reset=True)
        classes, numbers = encode_labels(self, y)
        weights = sample_weights(X, y, numbers, classes, sample_weight, self.class_weight)
        _refuse_single_class(classes, numbers, weights)
        coding = Coding.of(name, len(classes))
        problem = self._problem(X, numbers, coding, weights)
        start = self._start(problem, classes, coding)
        self.classes_, self.multiclass_ = classes, coding.name
        result = self._optimise(problem, start, X, y, sample_weight, self.penalty)
        self._store(result, problem)
        if self.probability:
            self._calibrate(X, y, numbers, sample_weight)
        self._warn()
        return self

    def _coding_name(self) -> str:
        if self.multiclass is None:
            return "joint" if self.multi_class == "crammer_singer" else "ovr"
        if self.multi_class == "crammer_singer" and self.multiclass != "joint":
            raise ValueError(
                f"multi_class='crammer_singer' and multiclass={self.multiclass!r} contradict: set one."
            )
        return self.multiclass

    def _check_joint(self) -> None:
        """Refuse what the joint problem of Crammer and Singer does not have (its loss is the hinge)."""
        if self.penalty == "l1":
            raise ValueError(
                "multiclass='joint' has an L2 penalty only: set penalty='l2', or multiclass='ovr'."
            )
        if self.fit_intercept and not self.penalize_intercept:
            raise ValueError(
                "multiclass='joint' has a penalised intercept: set penalize_intercept=True, with a large "
                "intercept_scaling where the penalty should matter little."
            )

    def _problem(self, X: Any, numbers: Array, coding: Coding, weights: Array | None) -> Problem:
        view: DataView = view_of(X)
        constant = self.penalty == "l1" and self.fit_intercept and self.penalize_intercept
        if constant:
            view = ConstantColumn(view, float(self.intercept_scaling))
        return Problem(
            view,
            numbers,
            coding.codes,
            joint=coding.joint,
            loss=LOSSES[self.loss],
            weights=weights,
            fit_intercept=self.fit_intercept and not constant,
        )

    def _solver(self, problem: Problem, method: str, goal: float, start: tuple[Array, Array]) -> Any:
        if not problem.joint:
            return super()._solver(problem, method, goal, start)
        from separatrix.solvers.crammer_singer import LinearCrammerSinger

        seed = self._seed()
        scaling = float(self.intercept_scaling)
        return LinearCrammerSinger(problem, C=float(self.C), tol=goal, intercept_scaling=scaling, seed=seed)

    def _start(self, problem: Problem, classes: Array, coding: Coding) -> tuple[Array, Array]:
        """Return the last solution (``warm_start``), or zeros."""
        P, d = problem.columns, problem.view.shape[1]
        coef, intercept = np.zeros((P, d)), np.zeros(P)
        if self.warm_start and hasattr(self, "coef_") and not coding.joint:
            if self.coef_.shape != (P, self.n_features_in_) or not np.array_equal(self.classes_, classes):
                raise ValueError(
                    f"warm_start=True goes on from coef_ of shape {self.coef_.shape}, but these data need "
                    f"({P}, {self.n_features_in_}): fit a new estimator, or set warm_start=False."
                )
            coef[:, : self.n_features_in_] = self._dense_coef()
            if d > self.n_features_in_:
                coef[:, -1] = self.intercept_ / self.intercept_scaling
            else:
                intercept[:] = self.intercept_
        return coef, intercept

    def _store(self, result: Result, problem: Problem) -> None:
        coef, intercept = result.coef, result.intercept
        if coef.shape[1] > self.n_features_in_:
            intercept = coef[:, -1] * coef.dtype.type(self.intercept_scaling)
            coef = coef[:, :-1]
        if problem.joint and len(self.classes_) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = np.ascontiguousarray(coef), np.ascontiguousarray(intercept)
        self._keep_record(result)

    def _calibrate(self, X: Any, y: Any, numbers: Array, sample_weight: Any) -> None:
        """Learn a sigmoid for each column from the scores of samples held out in turn."""
        from sklearn.model_selection import StratifiedKFold

        from separatrix.solvers.platt import fit_sigmoid

        smallest = int(np.bincount(numbers).min())
        if smallest < 2:
            raise ValueError(
                "probability=True learns from samples that are held out, and a class has only one sample: "
                "give each class two at least, or set probability=False."
            )
        s = checked_weights(X, sample_weight)
        scores = np.empty((X.shape[0], self.coef_.shape[0]))
        for train, held in StratifiedKFold(min(_FOLDS, smallest)).split(np.zeros(X.shape[0]), numbers):
            fold = clone(self).set_params(probability=False, warm_start=True)
            fold.classes_, fold.multiclass_, fold.n_features_in_ = (
                self.classes_,
                self.multiclass_,
                self.n_features_in_,
            )
            fold.coef_, fold.intercept_ = self.coef_, self.intercept_
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fold.fit(X[train], y[train], sample_weight=None if s is None else s[train])
            scores[held] = view_of(X[held]).scores(fold._dense_coef(), fold.intercept_)
        codes = self._coding.codes[numbers]
        pairs = []
        for k in range(scores.shape[1]):
            part = codes[:, k] != 0
            pairs.append(fit_sigmoid(scores[part, k], codes[part, k] > 0, None if s is None else s[part]))
        self.probA_, self.probB_ = np.array(pairs).T

    @available_if(lambda self: self.probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class (with ``probability=True``).

        A sigmoid of each column's score; several columns are brought to sum 1 (pairs by coupling). The
        predicted class always has the largest.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Rows sum to 1.
        """
        from separatrix.solvers.platt import agree, couple, normalised, sigmoids

        check_is_fitted(self, "probA_")
        scores = self._new_scores(X)
        each = sigmoids(scores, self.probA_, self.probB_)
        if len(self.classes_) == 2:
            p = np.column_stack([1.0 - each[:, 0], each[:, 0]])
        else:
            p = couple(each, len(self.classes_)) if self.multiclass_ == "ovo" else normalised(each)
        return agree(p, self._coding.decide(scores))

    @available_if(lambda self: self.probability)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Logarithms.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @classmethod
    def path(
        cls, X: Any, y: Any, Cs: Sequence[float] | int = 20, *, sample_weight: Any = None, **parameters: Any
    ) -> CPath:
        """Fit for growing ``C``, each fit from the last one's solution and each certified.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,)
            Labels.
        Cs : sequence of float or int
            Values of ``C``; a number means so many from 1e-4 to 1e4.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples.
        **parameters
            Other parameters of the estimator.

        Returns
        -------
        CPath
            Weights, margin widths, objectives and certificates; ``separatrix.plot.path`` draws it.

        Examples
        --------
        >>> from separatrix.models.linear_svm import LinearSVC
        >>> path = LinearSVC.path([[-1.0], [0.5], [1.0]], [0, 1, 1], [0.1, 1.0, 10.0], loss="hinge")
        >>> path.coefs.shape, [c.status for c in path.certificates]
        ((3, 1, 1), ['converged', 'converged', 'converged'])
        """
        from separatrix.models._path import c_path

        return c_path(cls, X, y, Cs, sample_weight, parameters)


def _refuse_single_class(classes: Array, numbers: Array, weights: Array | None) -> None:
    if weights is None:
        return
    present = np.bincount(numbers, weights=weights, minlength=len(classes)) > 0
    if np.count_nonzero(present) < 2:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class: give samples of at "
            "least two classes a positive weight."
        )


class LinearSVR(RegressorMixin, LinearModel, LinearSVM):  # type: ignore[misc]
    r"""Linear support vector regression.

    Minimises

    .. math:: \tfrac12 \|w\|^2 + \frac{b^2}{2\gamma^2} + C \sum_i s_i\, \ell(w \cdot x_i + b - y_i)

    with the ε-insensitive loss :math:`\ell(r) = \max(0, |r| - \varepsilon)` or its square, :math:`\gamma` =
    ``intercept_scaling``: residuals within ε cost nothing.

    Parameters
    ----------
    epsilon : float
        Half the width of the tube.
    tol : float
        The fit ends when the objective is proven to be within this part of its minimum.
    C : float
        Factor of the loss.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        Loss of the residual.
    fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter, penalize_intercept, warm_start, \
    n_jobs, max_time
        As in :class:`LinearSVC`.
    solver : {"auto", "newton", "dual"}
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
    >>> from separatrix.models.linear_svm import LinearSVR
    >>> X = np.linspace(-1, 1, 21)[:, None]
    >>> model = LinearSVR(C=100.0, epsilon=0.1, penalize_intercept=False).fit(X, 2 * X[:, 0] + 1)
    >>> model.predict([[0.0], [1.0]]).round(2).tolist()
    [1.0, 2.9]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED_CONSTRAINTS,
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

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
        X, y = check_samples(self, X, y, reset=True)
        targets = np.ascontiguousarray(y, dtype=np.float64)
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
