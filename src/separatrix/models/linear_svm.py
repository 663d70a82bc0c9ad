"""Linear support vector machines for classes."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from separatrix.data.memory import ConstantColumn, view_of
from separatrix.data.room import demand
from separatrix.data.view import Array, DataView
from separatrix.losses import LOSSES
from separatrix.models._base import LinearClassifier, has_probability, note_folds_cut_short
from separatrix.models._bounded import bounded
from separatrix.models._labels import encode_labels
from separatrix.models._linear_svm import L1_FEATURES, SHARED_CONSTRAINTS, LinearSVM, joined
from separatrix.models._path import PathOverC
from separatrix.models._start import last_solution
from separatrix.models._validation import check_samples
from separatrix.models._weights import checked_weights, class_weights, sample_weights
from separatrix.multiclass import Coding
from separatrix.problem import Problem, Result
from separatrix.solvers._loop import CUT_SHORT, Control, guarded
from separatrix.solvers._room import joint_bytes

#: Folds of the scores from which probabilities are learnt.
_FOLDS = 5


class LinearSVC(PathOverC, LinearClassifier, LinearSVM):
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
    penalty : {"l2", "l1"}, default="l2"
        Norm of the penalty; "l1", which makes weights 0, goes with ``loss="squared_hinge"``.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss of the margin.
    dual : bool or "auto", default="auto"
        LIBLINEAR's choice between a primal and a dual solver. The solution is the same, and here ``solver``
        chooses; pairs of penalty, loss and dual that scikit-learn refuses are refused.
    tol : float, default=0.0001
        The fit ends when the objective is proven (by the duality gap) to be within this part of its minimum.
        Small fits, whose steps cost next to nothing, go for four more digits.
    C : float, default=1.0
        Factor of the loss.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        scikit-learn's name for ``multiclass``: "crammer_singer" is "joint".
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_scaling : float, default=1
        :math:`\gamma`: the larger, the less the intercept is penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; they multiply ``sample_weight``. One against the rest, the weight of a class
        counts where it stands against the rest, not within the rest, as in LIBLINEAR.
    verbose : int, default=0
        1 prints progress, 2 each iteration.
    random_state : int, RandomState instance or None, default=None
        Draws the order of the coordinate descent and samples of rows; None counts as 0.
    max_iter : int, default=1000
        Most iterations: Newton steps, or passes of coordinate descent.
    multiclass : {"ovr", "ovo", "joint"} or None, default=None
        More than two classes: each against the rest, each pair, or all together (Crammer and Singer). None
        follows ``multi_class``.
    solver : {"auto", "newton", "dual", "working-set"}, default="auto"
        How to solve it; the solution is the same. "newton": semismooth Newton steps, for kinks within the
        method of multipliers; "dual": coordinate descent in the dual; "working-set": proximal Newton for L1.
        "auto" takes Newton where features are few and samples are more (or very few), else the dual, and
        Newton, or active sets of sparse samples, to finish what is slow.
    penalize_intercept : bool, default=True
        False leaves the intercept out of the penalty.
    warm_start : bool, default=False
        Whether a fit starts from the last one's solution.
    probability : bool, default=False
        Whether to learn ``predict_proba``, from the scores of samples held out in 5 folds.
    n_jobs : int or None, default=None
        Most threads; the result does not depend on it.
    max_time : float or None, default=None
        Most seconds.
    max_memory : float or None, default=None
        Most megabytes (2²⁰ bytes) that the fit may take besides its input: "auto" then chooses among the
        solvers that keep to it. Where none does, a MemoryError says before the fit how many it needs.

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
        **SHARED_CONSTRAINTS,
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
        max_memory: float | None = None,
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
        self.max_memory = max_memory

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @guarded
    @bounded
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
        X, y = check_samples(self, X, y, reset=True, squares=True)
        classes, numbers = encode_labels(self, y)
        weights = sample_weights(X, y, numbers, classes, sample_weight, self.class_weight, by_weight=True)
        _refuse_single_class(classes, numbers, weights)
        if self.probability:
            _refuse_lonely_samples(numbers)
        coding = Coding.of(name, len(classes))
        problem = self._problem(X, numbers, coding, weights)
        start = self._start(problem, classes, coding)
        self.classes_, self.multiclass_ = classes, coding.name
        if self.class_weight is not None and coding.name == "ovr" and len(classes) > 2:
            result = self._optimise_apart(problem, classes, start, X, y, sample_weight)
        else:
            result = self._optimise(problem, start, X, y, sample_weight, self.penalty)
        self._store(result, problem)
        if self.probability:
            self._calibrate(X, y, numbers, sample_weight)
        self._warn()
        return self

    def _optimise_apart(
        self,
        problem: Problem,
        classes: Array,
        start: tuple[Array, Array],
        X: Any,
        y: Any,
        sample_weight: Any,
    ) -> Result:
        """Solve one class against the rest after another, since each has weights of its own.

        As in LIBLINEAR, the weight of a class multiplies its samples where it stands against the rest, and
        not where it is a part of the rest.
        """
        given = checked_weights(X, sample_weight)
        each = class_weights(y, problem.classes, classes, given, self.class_weight)

        def one(k: int) -> Problem:
            own = problem.classes == k
            weights = np.where(own, each[k], 1.0) * (1.0 if given is None else given)
            return self._problem(X, own.astype(np.int32), Coding.of("ovr", 2), weights)

        parts = [(partial(one, k), (start[0][[k]], start[1][[k]])) for k in range(len(classes))]
        return joined(self._optimise_all(parts, X, y, sample_weight, self.penalty), problem)

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
        constant = constant and view.shape[1] > L1_FEATURES
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
        if problem.columns == 2:
            from separatrix.solvers.joint_pair import JointPair, one_hinge

            difference = start[0][:1], start[1][:1]
            return JointPair(self._l2_solver(one_hinge(problem), method, goal, difference, 2.0))
        from separatrix.solvers.crammer_singer import LinearCrammerSinger

        demand(joint_bytes(problem.view, problem.columns), "multiclass='joint'", "set multiclass='ovr'")
        seed = self._seed()
        scaling = float(self.intercept_scaling)
        return LinearCrammerSinger(
            problem,
            C=float(self.C),
            tol=goal,
            intercept_scaling=scaling,
            seed=seed,
            enough=float(self.tol),
        )

    def _start(self, problem: Problem, classes: Array, coding: Coding) -> tuple[Array, Array]:
        """Return the last solution (``warm_start``), or zeros."""
        P, d = problem.columns, problem.view.shape[1]
        coef, intercept = np.zeros((P, d)), np.zeros(P)
        if self.warm_start and hasattr(self, "coef_") and not coding.joint:
            return last_solution(self, problem, classes)
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

        s = checked_weights(X, sample_weight)
        scores, counts = np.zeros((X.shape[0], self.coef_.shape[0])), np.zeros(X.shape[0])
        folds = min(_FOLDS, int(np.bincount(numbers).min()))
        status, clock = "converged", Control(None)
        for done, (train, held) in enumerate(StratifiedKFold(folds).split(counts, numbers)):
            fold = clone(self).set_params(probability=False, warm_start=True)
            if self.max_time is not None:  # a share of what the fit has left
                left = self.max_time - self.certificate_.seconds - clock.seconds()
                fold.max_time = max(left, 1e-9) / (folds - done)
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
            counts[held] = 1.0 if s is None else s[held]
            ended = fold.certificate_.status
            status = ended if ended in CUT_SHORT else status
            if ended == "interrupted":  # the samples of the other folds have no scores, and do not count
                break
        codes = self._coding.codes[numbers]
        pairs = []
        for k in range(scores.shape[1]):
            part = codes[:, k] != 0
            pairs.append(fit_sigmoid(scores[part, k], codes[part, k] > 0, counts[part]))
        self.probA_, self.probB_ = np.array(pairs).T
        note_folds_cut_short(self, status)

    @available_if(has_probability)  # type: ignore[untyped-decorator]
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

    @available_if(has_probability)  # type: ignore[untyped-decorator]
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


def _refuse_single_class(classes: Array, numbers: Array, weights: Array | None) -> None:
    if weights is None:
        return
    present = np.bincount(numbers, weights=weights, minlength=len(classes)) > 0
    if np.count_nonzero(present) < 2:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class: give samples of at "
            "least two classes a positive weight."
        )


def _refuse_lonely_samples(numbers: Array) -> None:
    if int(np.bincount(numbers).min()) < 2:
        raise ValueError(
            "probability=True learns from samples that are held out, and a class has only one sample: "
            "give each class two at least, or set probability=False."
        )
