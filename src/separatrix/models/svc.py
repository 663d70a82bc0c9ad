"""Support vector classification: ``SVC`` and ``NuSVC``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from separatrix.data.view import Array
from separatrix.models._svm_classifier import KernelClassifier
from separatrix.models.kernel_svm import Solver
from separatrix.multiclass import Members
from separatrix.solvers.dual_problems import DualProblems
from separatrix.solvers.hard_margin import HardMargins
from separatrix.solvers.joint_machine import JointMachine
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import Machines
from separatrix.solvers.smo import DualProblem
from separatrix.solvers.svm import classification, nu_classification


class SVC(KernelClassifier):
    r"""Support vector classification: ``min ½‖w‖² + C Σ_i s_i max(0, 1 − y_i f(x_i))``.

    ``f(x) = w·φ(x) + b = Σ_i α_i y_i k(x_i, x) + b`` with ``0 ≤ α_i ≤ C s_i``, ``Σ α_i y_i = 0``: the
    boundary with the widest margin ``2/‖w‖``, each unit that a sample lacks of it costing ``C``. Samples
    beyond the margin have ``α_i = 0``; the others are the support vectors.

    Parameters
    ----------
    C : float, default=1.0
        Price of a unit inside the margin or beyond. ``inf`` is the hard margin: no sample inside; where no
        hyperplane separates the classes, the fit says so and keeps the proof in ``witness_``.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "bessel", "anova", "precomputed"}, Kernel, \
            or callable, default="rbf"
        A name, an object of :mod:`separatrix.kernels` (sums, products and string kernels too), or a function
        ``k(A, B)`` of two blocks of samples that returns the matrix of their kernel values.
    degree : int, default=3
        Degree of "poly" (and "bessel", "anova").
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the named kernels: "scale" is ``1/(n_features · Var(X))``, "auto" ``1/n_features``.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted as in scikit-learn; the solver works on changing active sets in any case.
    probability : bool, default=False
        Whether to learn what :meth:`predict_proba` needs: out-of-fold scores from warm-started folds.
        ("deprecated", scikit-learn's word for False, is accepted.)
    tol : float, default=1e-3
        Largest violation of the optimality conditions, as in LIBSVM. From 1e-5 on it also bounds the
        relative duality gap, else ten times it does. Fits of up to 500 samples go on to about 1e-12 where
        that takes few steps.
    cache_size : float, default=200
        Megabytes for kernel values, whatever the method keeps of them; the rest is computed again.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes; they multiply ``C``.
    verbose : bool or int, default=False
        1 tells what memory the fit needs, then progress at most twice a second; 2 each step.
    max_iter : int, default=-1
        Most steps per binary problem; −1 for ten million, or 100 per sample if that is more.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What :meth:`decision_function` shows of several classes learnt one-vs-one: one column per class, or
        one per pair.
    break_ties : bool, default=False
        Whether equal votes of one-vs-one are decided by the sum of pairwise scores, as
        :meth:`decision_function` shows them, instead of by class order. Not with
        ``decision_function_shape="ovo"``.
    random_state : int, RandomState instance or None, default=None
        Deals the samples out to the folds of the probabilities; None is 0.
    multiclass : {"ovo", "ovr", "joint"}, default="ovo"
        How more than two classes are learnt: a machine for each pair (as in scikit-learn), for each class
        against all others, or all classes jointly (Crammer–Singer, without intercepts).
    max_time : float or None, default=None
        Most seconds; the model is valid however the fit ends.

    Attributes
    ----------
    support_ : ndarray of int32 of shape (n_support,)
        Numbers of the support vectors, class by class.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel. They and ``dual_coef_`` are read-only from the
        first prediction on, which packs them: to change a model, assign a new array.
    n_support_ : ndarray of int32 of shape (n_classes,)
        Their number in each class.
    dual_coef_ : ndarray or sparse matrix
        Coefficients ``α_i y_i``. One row for two classes. One-vs-one: ``n_classes − 1`` rows; a support
        vector of class ``i`` has its coefficient against class ``j`` in row ``j`` if ``j < i``, else
        ``j − 1``. Otherwise one row per class.
    intercept_ : ndarray of shape (n_machines,)
        ``b`` of each machine.
    coef_ : ndarray or sparse matrix of shape (n_machines, n_features)
        ``w`` of each machine, for a linear kernel.
    margin_width_ : ndarray of shape (n_machines,)
        ``2/‖w‖`` of each machine.
    loo_bound_ : float
        Part of the samples that are support vectors: a bound of the leave-one-out error.
    witness_ : list of Witness
        For a hard margin that does not exist: convex combinations of two classes that coincide.
    classes_, class_weight_ : ndarray of shape (n_classes,)
        The labels, sorted, and their weights.
    probA_, probB_ : ndarray of shape (n_machines,)
        Parameters of the sigmoids; empty without ``probability``.
    kernel_ : Kernel
        The kernel in use, its parameters resolved.
    multiclass_ : str
        The coding in use.
    n_iter_ : ndarray of int32 of shape (n_machines,)
        Steps of each machine.
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    shape_fit_ : tuple of int
        Shape of the training samples.
    certificate_ : Certificate
        Primal and dual value, gap, KKT violation (over all machines), why the fit stopped.
    history_ : list of dict
        Violation, dual value, support vectors and kernel entries along the fit.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from separatrix.models.svc import SVC
    >>> X = [[-2.0, -1.0], [-1.0, -1.0], [-1.0, -2.0], [1.0, 1.0], [1.0, 2.0], [2.0, 1.0]]
    >>> model = SVC(kernel="linear").fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.support_.tolist(), model.dual_coef_.round(6).tolist()
    ([1, 3], [[-0.25, 0.25]])
    >>> model.predict([[-0.8, -1.0]]).tolist(), model.certificate_.status
    ([1], 'converged')
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

    def _check_combination(self) -> None:
        super()._check_combination()
        if self.multiclass == "joint" and np.isinf(self.C):
            raise ValueError("multiclass='joint' needs a finite C: choose one, or multiclass='ovo' or 'ovr'.")

    def _joint(self, numbers: Array, weights: Array | None) -> Callable[[KernelMatrix], Solver]:
        upper = np.full(numbers.size, float(self.C)) if weights is None else self.C * weights
        return lambda matrix: JointMachine(matrix, numbers, upper, tol=float(self.tol))

    def _problems(self, members: Members, weights: Array | None) -> DualProblems:
        rows = members.rows
        upper = np.full(rows.size, float(self.C)) if weights is None else self.C * weights[rows]
        return classification(members.offsets, rows, members.signs, upper, (members.order, members.places))

    def _solver(self, matrix: KernelMatrix, problems: Sequence[DualProblem]) -> Solver:
        if np.isfinite(self.C):
            return super()._solver(matrix, problems)
        return HardMargins(matrix, problems, tol=float(self.tol))


class NuSVC(KernelClassifier):
    r"""ν-support vector classification: ``min ½‖w‖² − ν n ρ + Σ_i s_i max(0, ρ − y_i f(x_i))``.

    The margin's half-width ``ρ/‖w‖`` is learnt with ``w``: at most the fraction ``ν`` of the samples are
    margin errors, and at least that fraction are support vectors. ``w`` and ``b`` are returned divided by
    ``ρ``, so that the margin is at ``f = ±1`` as in :class:`SVC`, whose solution with ``C = 1/ρ`` this is.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        ``ν``. With several classes it holds for each machine. Feasible up to ``2 min(n₊, n₋)/n``.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes; they multiply the sample weights. (scikit-learn's NuSVC ignores them.) "balanced"
        makes every ``ν`` feasible.
    multiclass : {"ovo", "ovr"}, default="ovo"
        How more than two classes are learnt.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, verbose, max_iter
        As in :class:`SVC`.
    decision_function_shape, break_ties, random_state, max_time
        As in :class:`SVC`.

    Attributes
    ----------
    certificate_ : Certificate
        Values of the ν-problem itself, that is before the division by ``ρ``.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, kernel_
        As in :class:`SVC`.
    margin_width_, loo_bound_, classes_, class_weight_, probA_, probB_, multiclass_
        As in :class:`SVC`.
    n_iter_, fit_status_, shape_fit_, history_, n_features_in_, feature_names_in_
        As in :class:`SVC`.

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

    def _joint(self, numbers: Array, weights: Array | None) -> Callable[[KernelMatrix], Solver]:
        raise ValueError(
            "multiclass='joint' has no nu: choose SVC(multiclass='joint'), or multiclass='ovo' or 'ovr'."
        )

    def _problems(self, members: Members, weights: Array | None) -> DualProblems:
        rows = members.rows
        upper = np.ones(rows.size) if weights is None else weights[rows]
        order = members.order, members.places
        return nu_classification(members.offsets, rows, members.signs, upper, float(self.nu), order)

    def _scales(self, machines: Machines) -> Array:
        return np.where((machines.rho > 0) & ~machines.vanishes, machines.rho, 1.0)

    def _without_margin(self, solver: Solver) -> str:
        if not Machines.of(solver.machines).vanishes.any():
            return ""
        return (
            f"nu={self.nu:g} leaves no margin: with so few margin errors allowed, the best weights are 0. "
            "Choose a larger nu, or a kernel that separates the classes better"
        )
