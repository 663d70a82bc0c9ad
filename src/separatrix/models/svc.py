"""Support vector classification: ``SVC`` and ``NuSVC``."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from separatrix.data.view import Array
from separatrix.models._svm_classifier import KernelClassifier
from separatrix.models.kernel_svm import Solver
from separatrix.solvers.hard_margin import HardMargins
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import DualProblem
from separatrix.solvers.svm import Machine, classification, nu_classification


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

    def _solver(self, matrix: KernelMatrix, problems: Sequence[DualProblem]) -> Solver:
        if np.isfinite(self.C):
            return super()._solver(matrix, problems)
        return HardMargins(matrix, problems, tol=float(self.tol))


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
        return machine.rho if machine.rho > 0 and not machine.vanishes else 1.0

    def _without_margin(self, solver: Solver) -> str:
        if not any(machine.vanishes for machine in solver.machines):
            return ""
        return (
            f"nu={self.nu:g} leaves no margin: with so few margin errors allowed, the best weights are 0. Choose a "
            "larger nu, or a kernel that separates the classes better"
        )
