"""Support vector classification: ``SVC`` and ``NuSVC``."""

from __future__ import annotations

from itertools import combinations
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._sparse import _align_api_if_sparse
from sklearn.utils.class_weight import compute_class_weight

from separatrix.data.view import Array
from separatrix.models._svm_samples import checked_weights
from separatrix.models._validation import encode_labels, refuse_empty_classes
from separatrix.models.kernel_svm import KernelSVM
from separatrix.multiclass import NAMES, Coding
from separatrix.solvers.smo import DualProblem
from separatrix.solvers.svm import Machine, classification, nu_classification

#: Up to so many classes the scores of all pairs are summed at once; beyond, class by class.
_FEW_CLASSES = 4


class KernelClassifier(ClassifierMixin, KernelSVM):  # type: ignore[misc]
    """A kernel machine that tells classes apart."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelSVM._parameter_constraints,
        "probability": ["boolean", StrOptions({"deprecated"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": ["random_state"],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "multiclass": [StrOptions(set(NAMES))],
    }

    probability: Any
    class_weight: Any
    random_state: Any
    decision_function_shape: str
    break_ties: bool
    multiclass: str

    classes_: Array
    class_weight_: Array
    multiclass_: str
    n_iter_: Any

    def _problem(self, rows: Array, signs: Array, weights: Array | None) -> DualProblem:
        """Return one binary problem; the weights are those of its samples."""
        raise NotImplementedError

    def _scale(self, machine: Machine) -> float:
        """Return what a machine's coefficients are divided by."""
        return 1.0

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or (n, n), or list of str
            Samples; for ``kernel="precomputed"`` the square kernel matrix, for string kernels texts.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples, which multiply ``C``; 2 counts as the sample twice, 0 (and, as in
            scikit-learn, less) as its absence.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        self._check_combination()
        X, samples, y = self._take_samples(X, y)
        classes, numbers = encode_labels(self, y)
        given = checked_weights(X, sample_weight)
        if self.class_weight is None:
            self.class_weight_, weights = np.ones(len(classes)), given
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=classes, y=y)
            weights = self.class_weight_[numbers] * (1.0 if given is None else given)
        self._refuse_missing(classes, numbers, weights)
        self.classes_, self.multiclass_ = classes, self.multiclass
        self._find_kernel(X, given)
        kept = None if weights is None else weights > 0
        members = self._coding.members(numbers, kept)
        problems = [
            self._problem(rows, signs, None if weights is None else weights[rows]) for rows, signs in members
        ]
        _, solver, outcome = self._solve(samples, problems)
        machines = solver.machines
        scales = [self._scale(machine) for machine in machines]
        intercept = np.array([m.intercept / scale for m, scale in zip(machines, scales, strict=True)])
        coef = [m.coef / scale if scale != 1.0 else m.coef for m, scale in zip(machines, scales, strict=True)]
        self._keep_machines(samples, numbers, members, coef, intercept)
        self._norms = np.sqrt([max(m.square, 0.0) for m in machines]) / np.array(scales)
        self.n_iter_ = np.array([solution.steps for solution in solver.solutions], dtype=np.int32)
        count = X.shape[0] if kept is None else int(kept.sum())
        self._count = count
        self._record(solver, outcome, samples, count)
        return self

    def _check_combination(self) -> None:
        if self.decision_function_shape == "ovo" and self.multiclass != "ovo":
            raise ValueError(
                f"decision_function_shape='ovo' shows the scores of pairs of classes, which multiclass="
                f"{self.multiclass!r} does not learn: choose decision_function_shape='ovr' or multiclass='ovo'."
            )

    def _refuse_missing(self, classes: Array, numbers: Array, weights: Array | None) -> None:
        if weights is None or len(classes) > 2:
            refuse_empty_classes(classes, numbers, weights)
            return
        if not all(weights[numbers == k].any() for k in range(2)):
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class: give samples of "
                "both classes a positive weight."
            )

    @property
    def _coding(self) -> Coding:
        return Coding.of(self.multiclass_, len(self.classes_))

    def _keep_machines(
        self, samples: Any, numbers: Array, members: Any, coefs: list[Array], intercept: Array
    ) -> None:
        """Lay the machines' coefficients out as scikit-learn does, support vectors class by class."""
        n, K = numbers.shape[0], len(self.classes_)
        pairs = self.multiclass_ == "ovo" and K > 2
        full = np.zeros((K - 1 if pairs else len(coefs), n))
        if pairs:
            for (i, j), (rows, signs), coef in zip(combinations(range(K), 2), members, coefs, strict=True):
                first = signs > 0
                full[j - 1, rows[first]] = coef[first]
                full[i, rows[~first]] = coef[~first]
        else:
            for row, (rows, _), coef in zip(full, members, coefs, strict=True):
                row[rows] = coef
        support = np.flatnonzero(full.any(axis=0))
        owner = numbers[support]
        support = support[np.argsort(owner, kind="stable")]
        self._n_support = np.bincount(owner, minlength=K).astype(np.int32)
        self._keep_support(samples, support, np.ascontiguousarray(full[:, support]), intercept)

    def _parts(self) -> list[slice]:
        """Return where the support vectors of each class are."""
        ends = np.cumsum(self._n_support)
        return [slice(int(end - count), int(end)) for end, count in zip(ends, self._n_support, strict=True)]

    def _pair_columns(self, dual: Array) -> Array:
        """Return the coefficients as one column per pair of classes."""
        K, parts = len(self.classes_), self._parts()
        columns = np.zeros((dual.shape[1], K * (K - 1) // 2))
        for column, (i, j) in enumerate(combinations(range(K), 2)):
            columns[parts[i], column] = dual[j - 1, parts[i]]
            columns[parts[j], column] = dual[i, parts[j]]
        return columns

    def _score_columns(self, X: Any) -> Array:
        """Return the scores of checked samples, one column per machine."""
        dual, K = self._dual(), len(self.classes_)
        if self.multiclass_ != "ovo" or K == 2:
            return self._sums(X, np.ascontiguousarray(dual.T)) + self.intercept_
        if K <= _FEW_CLASSES:
            return self._sums(X, self._pair_columns(dual)) + self.intercept_
        # A support vector takes part in K − 1 of the K(K − 1)/2 machines only.
        parts = [self._sums(X, np.ascontiguousarray(dual[:, part].T), part) for part in self._parts()]
        scores = np.empty((X.shape[0], self.intercept_.shape[0]))
        for column, (i, j) in enumerate(combinations(range(K), 2)):
            scores[:, column] = parts[i][:, j - 1] + parts[j][:, i]
        scores += self.intercept_
        return scores

    def decision_function(self, X: Any) -> Array:
        """Return the scores ``f(x)``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n,), (n, n_classes) or (n, n_pairs)
            Two classes: one score, not negative for ``classes_[1]``. More: one column per class, the largest
            decides; for one-vs-one these are the votes, equal votes separated by the sum of pairwise scores.
            With ``decision_function_shape="ovo"`` the scores of all pairs, positive for the first of a pair.
        """
        scores = self._score_columns(self._check_new(X))
        if len(self.classes_) > 2 and self.decision_function_shape == "ovo":
            return scores
        return self._coding.decision(scores)

    def predict(self, X: Any) -> Array:
        """Return the class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n,)
            Labels from ``classes_``; equal votes are decided by the sum of the pairwise scores.
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        scores = self._score_columns(self._check_new(X))
        return np.asarray(self.classes_[self._coding.decide(scores)])

    def _linear_coef(self) -> Any:
        if self.multiclass_ != "ovo" or len(self.classes_) == 2:
            return super()._linear_coef()
        columns = self._pair_columns(self._dual()).T
        if not self._sparse:
            return np.asarray(columns @ self.support_vectors_)
        return _align_api_if_sparse(sparse.csr_array(sparse.csr_array(columns) @ self.support_vectors_))


class SVC(KernelClassifier):
    r"""Support vector classification: ``min ½‖w‖² + C Σ_i s_i max(0, 1 − y_i f(x_i))``.

    ``f(x) = w·φ(x) + b = Σ_i α_i y_i k(x_i, x) + b`` with ``0 ≤ α_i ≤ C s_i``, ``Σ α_i y_i = 0``: the boundary with
    the widest margin ``2/‖w‖``, each unit that a sample lacks of it costing ``C``. Samples beyond the margin
    have ``α_i = 0``; the others are the support vectors.

    Examples
    --------
    >>> from separatrix.models.svc import SVC
    >>> X = [[-2.0, -1.0], [-1.0, -1.0], [-1.0, -2.0], [1.0, 1.0], [1.0, 2.0], [2.0, 1.0]]
    >>> model = SVC(kernel="linear").fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.support_.tolist(), model.dual_coef_.tolist()
    ([1, 3], [[-0.25, 0.25]])
    >>> model.predict([[-0.8, -1.0]]).tolist()
    [1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multiclass: str = "ovo",
        max_time: float | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multiclass = multiclass
        self.max_time = max_time

    def _problem(self, rows: Array, signs: Array, weights: Array | None) -> DualProblem:
        upper = np.full(rows.size, float(self.C)) if weights is None else self.C * weights
        return classification(rows, signs, upper)


class NuSVC(KernelClassifier):
    r"""ν-support vector classification: ``min ½‖w‖² − ν n ρ + Σ_i s_i max(0, ρ − y_i f(x_i))``.

    Examples
    --------
    >>> from separatrix.models.svc import NuSVC
    >>> X = [[-2.0, -1.0], [-1.0, -1.0], [-1.0, -2.0], [1.0, 1.0], [1.0, 2.0], [2.0, 1.0]]
    >>> NuSVC(kernel="linear").fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1.0]]).tolist()
    [1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multiclass: str = "ovo",
        max_time: float | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multiclass = multiclass
        self.max_time = max_time

    def _problem(self, rows: Array, signs: Array, weights: Array | None) -> DualProblem:
        upper = np.ones(rows.size) if weights is None else weights
        return nu_classification(rows, signs, upper, float(self.nu))

    def _scale(self, machine: Machine) -> float:
        return machine.rho
