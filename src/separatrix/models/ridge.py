"""Ridge regression on targets −1 and +1."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted

from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.models._bounded import MAX_MEMORY, bounded
from separatrix.models._labels import encode_labels
from separatrix.models._validation import check_samples, score_samples
from separatrix.models._weights import refuse_empty_classes, sample_weights
from separatrix.models.least_squares import LeastSquares
from separatrix.multiclass import Coding
from separatrix.problem import Result
from separatrix.solvers.regression import LeastSquaresSolver, Regression

#: scikit-learn's solvers, and the route that each selects.
SOLVERS = {
    "auto": "auto",
    "svd": "svd",
    "cholesky": "direct",
    "lsqr": "cg",
    "sparse_cg": "cg",
    "sag": "cg",
    "saga": "cg",
    "lbfgs": "positive",
}


class RidgeClassifier(LeastSquares):
    r"""Ridge regression on targets −1 and +1, one column per class (one for two classes).

    ``min Σ_i s_i ‖y_i − W x_i − b‖² + α ‖W‖²`` with ``y_ik = +1`` for the sample's class and −1 for the
    others, as in scikit-learn. Two classes: the sign decides. More: the largest score. One class, which a
    fold or a draw may leave: its target is −1, and it is always predicted. Several labels per sample (an
    indicator matrix): one column per label, each decided by its sign.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Penalty, for all columns or for each.
    fit_intercept : bool, default=True
        Whether the scores have a constant term, which is not penalised.
    copy_X : bool, default=True
        Without effect: the data are never changed.
    max_iter : int or None, default=None
        Most iterations of conjugate gradients; None allows 10,000.
    tol : float, default=1e-4
        Precision of conjugate gradients: they end at a relative duality gap of ``tol²/10``. (A residual of
        relative size ``tol`` leaves a gap of the order of its square.) The closed forms need none.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes; they multiply the sample weights.
    solver : {"auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"}, default="auto"
        scikit-learn's names, each with the method that it selects here; all solve the same problem:

        - "auto": by shape and density;
        - "cholesky": normal equations, primal or, with more features than samples, dual (a factor in single
          precision and a few iterations for many sparse samples); where their condition is bad, the next
          one;
        - "svd": orthogonal factorisation of the data;
        - "lsqr", "sparse_cg", "sag", "saga": conjugate gradients on all columns at once;
        - "lbfgs": only with ``positive=True``, an exact active-set method.
    positive : bool, default=False
        Whether weights below 0 are forbidden; needs ``solver`` "auto" or "lbfgs".
    random_state : int, RandomState instance or None, default=None
        Without effect: nothing here is random.
    max_time : float or None, default=None
        Most seconds; the model is valid however the fit ends. Where a closed form seems to take longer,
        "auto" iterates instead. (A closed form, or a column of ``positive=True``, that is ended before its
        solution has no weights.)
    verbose : int, default=0
        1 prints progress at most twice a second, 2 every iteration.
    max_memory : float or None, default=None
        Most megabytes (2²⁰ bytes) that the fit may take besides its input: "auto" then chooses among the
        solvers that keep to it. Where none does, a MemoryError says before the fit how many it needs.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Weights; for two classes one vector, as in scikit-learn 1.9.
    intercept_ : ndarray of shape (n_targets,)
        Constant terms.
    n_iter_ : None or ndarray of shape (n_targets,)
        Iterations of conjugate gradients; None for closed forms.
    classes_ : ndarray
        The labels, sorted; for an indicator matrix the numbers of its columns.
    solver_ : str
        scikit-learn's name of the method in use.
    certificate_ : Certificate
        Objective, lower bound, their relative gap (as a share of the objective without weights).
    history_ : list of dict
        Per iteration: objective and relative gap, or the residual of conjugate gradients.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from separatrix import RidgeClassifier
    >>> model = RidgeClassifier(alpha=0.5).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> model.coef_.round(4).tolist(), model.predict([[1.5], [2.5]]).tolist()
    ([0.5714], [0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "fit_intercept": ["boolean"],
        "copy_X": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [StrOptions(set(SOLVERS))],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
        "max_memory": MAX_MEMORY,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        max_time: float | None = None,
        verbose: int = 0,
        max_memory: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.max_time = max_time
        self.verbose = verbose
        self.max_memory = max_memory

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @bounded
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeClassifier:
        """Fit the scores to the targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; float32 and float64 are not copied.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            Labels of any kind, or an indicator matrix of several labels per sample.
        sample_weight : float, array-like of shape (n,) or None
            Weights of the samples.

        Returns
        -------
        RidgeClassifier
            The fitted estimator.
        """
        self._check_combination()
        self.multilabel_ = sparse.issparse(y) or (
            np.asarray(y).ndim == 2 and type_of_target(y, input_name="y") == "multilabel-indicator"
        )
        if self.multilabel_:
            X, numbers, targets, weights, y = self._labels(X, y, sample_weight)
            self.classes_ = np.arange(targets.shape[1])
        else:
            X, y = check_samples(self, X, y, reset=True, finite=False)
            self.classes_, numbers = encode_labels(self, y, fewest=1)
            weights = sample_weights(X, y, numbers, self.classes_, sample_weight, self.class_weight)
            refuse_empty_classes(self.classes_, numbers, weights, sample_weight, self.class_weight)
            targets = Coding.of("ovr", len(self.classes_)).codes.astype(np.float64)
        view = view_of(X)
        problem = Regression(
            view,
            numbers,
            targets,
            self._penalties(targets.shape[1]),
            weights,
            self.fit_intercept,
            self.positive,
        )
        self.multiclass_ = "ovr"
        route = SOLVERS[self.solver]
        if route == "direct":
            route = "primal" if view.shape[1] <= view.shape[0] else "dual"
        max_iter = 10_000 if self.max_iter is None else self.max_iter
        tol = float(self.tol) * float(self.tol) / 10
        result, solver = self._run(problem, route, tol, max_iter, X, y, sample_weight)
        self._report(result, solver)
        if len(self.classes_) == 1 and not self.multilabel_:  # whatever the scores, its class is predicted
            self.certificate_ = replace(self.certificate_, training_errors=0.0)
        return self

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        return {"coef_": coef[0] if coef.shape[0] == 1 else coef, "intercept_": intercept}

    def _dense_coef(self) -> Array:
        return np.atleast_2d(super()._dense_coef())

    def _check_combination(self) -> None:
        if self.solver == "lbfgs" and not self.positive:
            raise ValueError(
                "'lbfgs' solver can be used only when positive=True. Please use another solver, such as "
                "'auto'."
            )
        if self.positive and self.solver not in ("auto", "lbfgs"):
            raise ValueError(
                f"solver='{self.solver}' does not support positive fitting. Please set the solver to 'auto' "
                "or 'lbfgs', or set `positive=False`."
            )

    def _penalties(self, columns: int) -> Array:
        alpha = np.ravel(np.asarray(self.alpha, dtype=np.float64))
        if alpha.shape[0] not in (1, columns):
            raise ValueError(
                "Number of targets and number of penalties do not correspond: alpha has "
                f"{alpha.shape[0]} values, but there are {columns} targets. Give one number, or one per "
                "target."
            )
        if not np.all(alpha >= 0) or not np.all(np.isfinite(alpha)):
            raise ValueError("alpha must hold finite numbers that are not negative; 0 means no penalty.")
        return np.broadcast_to(alpha, (columns,)).copy()

    def _labels(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array, Array | None, Array]:
        """Return the samples and, as classes, their sets of labels with the targets of each set."""
        X, _ = check_samples(self, X, reset=True, finite=False)
        self._sparse_labels = sparse.issparse(y)
        Y = np.asarray(y.toarray() if self._sparse_labels else check_array(y, dtype=None))
        if Y.shape[0] != X.shape[0]:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, y has "
                f"{Y.shape[0]}."
            )
        if type_of_target(Y) not in ("multilabel-indicator", "binary"):
            raise ValueError("Unknown label type: y must hold only 0 and 1 if it is a matrix of labels.")
        sets, numbers = np.unique((Y > 0).astype(np.int8), axis=0, return_inverse=True)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            weights = compute_sample_weight(self.class_weight, Y) * (1.0 if weights is None else weights)
        return X, numbers.ravel().astype(np.int32), 2.0 * sets - 1.0, weights, Y

    def _report(self, result: Result, solver: LeastSquaresSolver) -> None:
        iterative = solver.route == "cg"
        self.n_iter_ = np.full(len(result.coef), result.iterations, np.int32) if iterative else None
        if self.solver in ("auto", "cholesky"):
            names = {"primal": "cholesky", "dual": "cholesky", "cg": "sparse_cg", "positive": "lbfgs"}
            self.solver_ = names.get(solver.route, solver.route)
        else:
            self.solver_ = self.solver

    @property
    def _has_many_labels(self) -> bool:
        return bool(getattr(self, "multilabel_", False))  # weights set by hand have no fit that knew it

    @property
    def _coding(self) -> Coding:
        if self._has_many_labels:
            count = len(self.classes_)
            return Coding("ovr", (2 * np.eye(count, dtype=np.int8) - 1).astype(np.int8))
        return super()._coding

    def decision_function(self, X: Any) -> Array:
        """Return the scores ``f(x)`` that decide.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,) or (n, n_targets)
            Two classes: one score, not negative for ``classes_[1]``. More: the largest decides; for
            several labels per sample those with a score that is not negative are given.
        """
        check_is_fitted(self)
        if self._has_many_labels:
            return score_samples(self, X, self._score_columns)
        return super().decision_function(X)

    def predict(self, X: Any) -> Any:
        """Return the class of each sample, or its labels as a row of 0 and 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n,), or ndarray or sparse matrix of shape (n, n_labels)
            Labels from ``classes_``, or an indicator matrix of the kind that was given to ``fit``.
        """
        check_is_fitted(self)
        if not self._has_many_labels:
            return super().predict(X)
        given = (self.decision_function(X) >= 0).astype(np.int64)
        return sparse.csr_matrix(given) if self._sparse_labels else given

    def geometric_margin(self, X: Any, y: Any) -> float:
        """Return the smallest distance of a labelled sample to the boundaries that concern it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,)
            Their labels.

        Returns
        -------
        float
            The margin of this labelled set, negative if a sample is on the wrong side.
        """
        check_is_fitted(self)
        if self._has_many_labels:
            raise ValueError(
                "the margin is defined for one label per sample; use signed_distance(X), which has a column "
                "per label."
            )
        return super().geometric_margin(X, y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
