"""What ``SVC`` and ``NuSVC`` share: classes, machines, decisions, probabilities, reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import combinations
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils._sparse import _align_api_if_sparse
from sklearn.utils.metaestimators import available_if

from separatrix.data.view import Array
from separatrix.models._base import has_probability, note_folds_cut_short, whole
from separatrix.models._labels import encode_labels, number_labels
from separatrix.models._svm_report import MarginReport, Witness
from separatrix.models._svm_samples import checked_weights
from separatrix.models._weights import class_weights, drawn_only, refuse_empty_classes
from separatrix.models.kernel_svm import FEW, KernelSVM, Solver
from separatrix.multiclass import NAMES, Coding, Members
from separatrix.solvers._judge import own_and_rival
from separatrix.solvers._loop import guarded
from separatrix.solvers.dual_problems import DualProblems
from separatrix.solvers.hard_margin import HardMargins
from separatrix.solvers.joint_machine import JointMachine, joint_fold_scores
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision
from separatrix.solvers.kernel_scores import SupportSums
from separatrix.solvers.machines import Machines
from separatrix.solvers.out_of_fold import Folds, deal
from separatrix.solvers.platt import agree, couple, fit_sigmoids, normalised, sigmoids
from separatrix.solvers.votes import pair_scores

#: Folds of the out-of-fold scores, and the KKT violation to which they are solved.
_FOLDS, _FOLD_TOL = 5, 1e-2
#: One sample in so many that integers leave open goes to double precision at once.
_FEW_OPEN = 16


class KernelClassifier(ClassifierMixin, KernelSVM, ABC):  # type: ignore[misc]
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
    margin_width_: Array
    loo_bound_: float

    @abstractmethod
    def _problems(self, members: Members, weights: Array | None) -> DualProblems:
        """Return the binary problems; the weights are those of all samples."""

    def _scales(self, machines: Machines) -> Array | None:
        """Return what the machines' coefficients are divided by; None is 1."""
        return None

    @whole
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @guarded
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
            self.class_weight_ = class_weights(y, numbers, classes, None, self.class_weight)
            weights = self.class_weight_[numbers] * (1.0 if given is None else given)
        drawn = self._refuse_missing(classes, numbers, weights, sample_weight)
        if drawn is not None:
            classes, numbers = drawn_only(drawn, classes, numbers)
            self.class_weight_ = self.class_weight_[drawn]
        self.classes_, self.multiclass_ = classes, self.multiclass
        self._find_kernel(X, given)
        kept = None if weights is None else weights > 0
        self._count = X.shape[0] if kept is None else int(kept.sum())
        members = self._coding.members(numbers, kept)
        problems = self._problems(members, weights)

        def keep(model: KernelClassifier, solver: Solver) -> None:
            if isinstance(solver, JointMachine):
                model._keep_joint(samples, numbers, solver)
            else:
                model._keep_machines(samples, numbers, members, solver)

        make = self._joint(numbers, weights) if self.multiclass == "joint" else None
        matrix, solver, outcome = self._solve(samples, problems, keep, (X, y, sample_weight), make)
        keep(self, solver)
        separable, verdict = self._judge(solver, members)
        self._record(solver, outcome, samples, self._count, separable, verdict)
        self._calibrate(matrix, problems, solver, numbers, given)
        return self

    def _check_combination(self) -> None:
        if self.decision_function_shape == "ovo" and self.multiclass != "ovo":
            raise ValueError(
                f"decision_function_shape='ovo' shows the scores of pairs of classes, which multiclass="
                f"{self.multiclass!r} does not learn: choose decision_function_shape='ovr' or "
                "multiclass='ovo'."
            )

    @abstractmethod
    def _joint(self, numbers: Array, weights: Array | None) -> Callable[[KernelMatrix], Solver]:
        """Return what makes the solver of all classes jointly, or refuse."""

    def _refuse_missing(
        self, classes: Array, numbers: Array, weights: Array | None, given: Any
    ) -> Array | None:
        """Refuse weights that leave a class without samples, but for classes that counts leave out."""
        if weights is None:
            return None
        if len(classes) > 2 and np.unique(numbers[weights > 0]).size > 1:
            return refuse_empty_classes(classes, numbers, weights, given, self.class_weight)
        if not all(weights[numbers == k].any() for k in range(2)):
            lead = "specified nu is infeasible. " if hasattr(self, "nu") else ""
            raise ValueError(
                f"{lead}Invalid input - all samples with positive weights belong to the same class: give "
                "samples of at least two classes a positive weight."
            )
        return None

    @property
    def _coding(self) -> Coding:
        # Of two joint discriminants only the difference decides, as in any binary model.
        name = "ovr" if len(self.classes_) == 2 else self.multiclass_
        return Coding.of(name, len(self.classes_))

    @property
    def _by_pairs(self) -> bool:
        """Whether there is one machine for each of several pairs of classes."""
        return self.multiclass_ == "ovo" and len(self.classes_) > 2

    def _keep_machines(self, samples: Any, numbers: Array, members: Members, solver: Solver) -> None:
        """Lay the machines' coefficients out as scikit-learn does, support vectors class by class."""
        machines = Machines.of(solver.machines)
        scales, count = self._scales(machines), len(machines)
        coef, intercept = machines.coef, machines.intercept.copy()
        norms = np.sqrt(np.maximum(machines.square, 0.0))
        if scales is not None:
            coef = coef / np.repeat(scales, np.diff(members.offsets))
            intercept, norms = intercept / scales, norms / scales
        # Samples of the first class of a pair stand in the second's row, and the reverse; else each machine
        # has a row.
        takers = members.sizes.size
        rows = self._coding.pair_rows if self._by_pairs else np.arange(takers) // (takers // count)
        width = members.order.size
        full = np.zeros((len(self.classes_) - 1 if self._by_pairs else count, width))
        full.ravel()[(rows * width).repeat(members.sizes) + members.places] = coef
        self._keep_rows(samples, numbers, members.order, full, intercept)
        self.margin_width_ = np.full(count, np.inf)
        # A length that there was no time for leaves no number here either.
        np.divide(2.0, norms, out=self.margin_width_, where=~(norms <= 0))
        self.n_iter_ = solver.iterations.astype(np.int32)

    def _keep_joint(self, samples: Any, numbers: Array, solver: JointMachine) -> None:
        """Keep one row of coefficients per class (for two classes their difference), and no intercepts."""
        coef, gram = solver.coef, solver.gram
        full = coef[1:] - coef[:1] if len(coef) == 2 else coef
        order = np.argsort(numbers, kind="stable")
        self._keep_rows(samples, numbers, order, full[:, order], np.zeros(len(full)))
        first, second = np.triu_indices(len(coef), 1)
        squares = gram[first, first] + gram[second, second] - 2 * gram[first, second]
        self.margin_width_ = np.array([2.0 / sqrt(square) if square > 0 else np.inf for square in squares])
        self.n_iter_ = np.array([solver.rounds], dtype=np.int32)

    def _keep_rows(self, samples: Any, numbers: Array, order: Array, full: Array, intercept: Array) -> None:
        """Keep the columns of support vectors; ``order`` are the samples of all columns, class by class."""
        found = np.flatnonzero(full.any(axis=0))
        support = order[found]
        counts = np.bincount(numbers[support], minlength=len(self.classes_))
        self._n_support = counts.astype(np.int32)
        self._keep_support(samples, support, full.take(found, axis=1), intercept)
        self.loo_bound_ = support.size / self._count

    def _judge(self, solver: Solver, members: Any) -> tuple[bool | None, str]:
        """Return whether a hard margin separates the classes, and the words if it does not."""
        self._witness: list[Witness] = []
        if not isinstance(solver, HardMargins):
            return None, self._without_margin(solver)
        found = []
        for column, (rows, signs) in enumerate(members):
            if not solver.searches[column].meets:
                continue
            a, first = solver.solutions[column].alpha, signs > 0
            side = [np.flatnonzero(part & (a > 0)) for part in (first, ~first)]
            codes = self._coding.codes[:, column]
            names = [np.flatnonzero(codes == sign) for sign in (1, -1)]
            found.append(
                Witness(
                    (self.classes_[names[0][0]], self.classes_[names[1][0]] if len(names[1]) == 1 else None),
                    rows[side[0]],
                    rows[side[1]],
                    a[side[0]],
                    a[side[1]],
                    solver.distances[column],
                )
            )
        if not found:
            return (True if all(s.status == "converged" for s in solver.solutions) else None), ""
        self._witness = found
        more = f"; and {len(found) - 1} more pairs" if len(found) > 1 else ""
        return False, f"no hyperplane separates {found[0]}{more}. Choose a finite C for a soft margin"

    @property
    def witness_(self) -> list[Witness]:
        """Proofs that a hard margin does not exist: coinciding convex combinations of two classes."""
        if not self.__dict__.get("_witness"):
            raise AttributeError("witness_ exists only where a hard margin (C=inf) was found not to exist")
        return self._witness

    def _without_margin(self, solver: Solver) -> str:
        """Return the words for a solution that is 0."""
        return ""

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

    def _layout(self) -> tuple[int, int, int]:
        groups, columns = len(self.classes_), self._coding.columns
        return groups, groups - 1 if self._by_pairs else columns, columns

    def _groups(self) -> Array | None:
        # A support vector takes part in K − 1 of the K(K − 1)/2 machines only.
        return self._n_support if self._by_pairs else None

    def _score_columns(self, X: Any, precision: Precision | None = None) -> Array:
        """Return the scores of checked samples, one column per machine."""
        sums = self._support_sums()(X, precision)
        if not self._by_pairs:
            sums += self.intercept_
            return sums
        return pair_scores(sums, len(self.classes_), self.intercept_)

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
            decides; for one-vs-one these are the votes, and less than ½ from the sum of pairwise scores.
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
            Labels from ``classes_``; of equal votes the first class has it, or with ``break_ties`` the larger
            sum of pairwise scores.
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        X = self._check_new(X)
        return np.asarray(self.classes_[self._decide(X)])

    def _decide(self, X: Any) -> Array:
        """Return the number of each sample's class.

        Samples rounded to 16-bit integers decide where that cannot matter.
        """
        sums = self._support_sums()
        pairs = self._by_pairs or len(self.classes_) == 2
        chosen = sums.clear_winners(X, self.intercept_) if pairs else None
        if chosen is None:
            return self._decide_singly(sums, X)
        open_ = np.flatnonzero(chosen < 0)
        if open_.size * _FEW_OPEN > chosen.size:
            chosen[open_] = self._decide_singly(sums, X[open_])
        elif open_.size:
            chosen[open_] = self._chosen(self._score_columns(X[open_]))
        return chosen

    def _decide_singly(self, sums: SupportSums, X: Any) -> Array:
        """Return the number of each sample's class.

        Single precision decides where its error cannot matter; other samples' scores are computed again.
        """
        error = sums.quick_error(X)
        single: Precision | None = None if error is None else "float32"
        chosen = sums.winners(X, self.intercept_, error, single) if self._by_pairs else None
        if chosen is not None:
            open_ = np.flatnonzero(chosen < 0)
        elif error is None:
            return self._chosen(self._score_columns(X))
        else:
            scores = self._score_columns(X, single)
            chosen = self._chosen(scores)
            open_ = np.flatnonzero(~self._coding.clear(scores, chosen, error))
        if open_.size:
            chosen[open_] = self._chosen(self._score_columns(X[open_]))
        return chosen

    def _chosen(self, scores: Array) -> Array:
        """Return the number of the class that the machines' scores choose."""
        decision = self._coding.decision(scores)
        if self._by_pairs and not self.break_ties:
            decision = np.rint(decision)  # the votes alone
        return self._coding.choose(decision)

    def _linear_coef(self) -> Any:
        if not self._by_pairs:
            return super()._linear_coef()
        columns = self._pair_columns(self._dual()).T
        if not self._sparse:
            return np.asarray(columns @ self.support_vectors_)
        return _align_api_if_sparse(sparse.csr_array(sparse.csr_array(columns) @ self.support_vectors_))

    def _calibrate(
        self, matrix: KernelMatrix, problems: Any, solver: Solver, numbers: Array, weights: Array | None
    ) -> None:
        """Fit the sigmoids of the machines to out-of-fold scores, if probabilities are wanted."""
        self._probA = self._probB = np.empty(0)
        if self.probability == "deprecated" or not self.probability:
            return
        random = check_random_state(0 if self.random_state is None else self.random_state)
        left = None if self.max_time is None else max(1e-3, self.max_time - self.certificate_.seconds)
        fold_of = deal(numbers, _FOLDS, random)
        scored: Array | None = None
        tol = max(float(self.tol), _FOLD_TOL) if numbers.size > FEW else min(float(self.tol), 1e-7)
        if isinstance(solver, JointMachine):
            upper = solver.solver.cost
            columns, status, done = joint_fold_scores(matrix, numbers, upper, fold_of, tol=tol, max_time=left)
            columns = columns[:, 1:] - columns[:, :1] if columns.shape[1] == 2 else columns
            scores = columns[problems.rows, problems.owner]
        else:
            folds = Folds(
                matrix,
                fold_of,
                tol=tol,
                max_steps=int(self.max_iter),
                max_time=left,
                nu=getattr(self, "nu", None),
            )
            scores = folds.scores(problems, solver.solutions)
            status, done, scored = folds.status, folds.folds, folds.scored
        counts = None if weights is None else weights[problems.rows]
        if scored is not None:
            counts = scored * (1.0 if counts is None else counts)
        if done <= fold_of.max(initial=-1):  # samples of folds that were never begun have no scores
            counts = (fold_of[problems.rows] < done) * (1.0 if counts is None else counts)
        A, B = fit_sigmoids(scores, problems.signs > 0, problems.offsets, counts)
        # scikit-learn's sigmoid of two classes is that of the first.
        self._probA, self._probB = A, -B if len(self.classes_) == 2 else B
        note_folds_cut_short(self, status)

    @property
    def probA_(self) -> Array:  # noqa: N802
        """Slopes ``A`` of the machines' sigmoids ``1/(1 + exp(A f + B))``; empty without probabilities."""
        return self._probA

    @property
    def probB_(self) -> Array:  # noqa: N802
        """Offsets ``B`` of the machines' sigmoids (of two classes: of the first class's)."""
        return self._probB

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class; the largest is always that of the predicted class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        X = self._check_new(X)
        if self._probA.size == 0:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        scores = self._score_columns(X)
        return agree(self._calibrated(scores), self._chosen(scores))

    def _calibrated(self, scores: Array) -> Array:
        """Return the probabilities that scores stand for; near 1/2 they may contradict the decision."""
        K = len(self.classes_)
        if K == 2:
            positive = sigmoids(scores, self._probA, -self._probB)
            return np.concatenate([1 - positive, positive], axis=1)
        p = sigmoids(scores, self._probA, self._probB)
        return couple(p, K) if self._by_pairs else normalised(p)

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Log-probabilities, in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def margin_report(self, X: Any, y: Any, within: float | None = None) -> MarginReport:
        """Return slacks of labelled samples and where they lie relative to the margin.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples, for example those of the fit.
        y : array-like of shape (n,)
            Their labels.
        within : float or None
            How far from 1 the margin ``y f(x)`` of a sample on the margin may be; None takes ``tol``.

        Returns
        -------
        MarginReport
            Widths, slacks, and masks ``outside``, ``on``, ``inside``, ``misclassified``.
        """
        scores = self._score_columns(self._check_new(X))
        numbers = number_labels(self.classes_, np.asarray(y))
        if numbers.shape[0] != scores.shape[0]:
            raise ValueError(f"X has {scores.shape[0]} samples but y has {numbers.shape[0]} labels.")
        within = self.tol if within is None else within
        if self._coding.joint:
            own, rival, _ = own_and_rival(scores, numbers)
            width = self.margin_width_.min(keepdims=True)
            return MarginReport.of((own - rival)[:, None], np.ones((len(own), 1)), width, within)
        codes = self._coding.codes[numbers].astype(np.float64)
        return MarginReport.of(scores, codes, self.margin_width_, within)
