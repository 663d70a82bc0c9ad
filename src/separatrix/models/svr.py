"""Support vector regression: ``SVR`` and ``NuSVR``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import column_or_1d

from separatrix.data.view import Array
from separatrix.models._base import whole
from separatrix.models._svm_samples import checked_weights
from separatrix.models._validation import as_numbers
from separatrix.models.kernel_svm import KernelSVM, Solver
from separatrix.solvers._loop import guarded
from separatrix.solvers.machines import Machine, moved
from separatrix.solvers.smo import DualProblem
from separatrix.solvers.svm import nu_regression, regression


class KernelRegressor(RegressorMixin, KernelSVM, ABC):  # type: ignore[misc]
    """A kernel machine that predicts a number."""

    C: float
    n_iter_: int

    @abstractmethod
    def _problem(self, rows: Array, targets: Array, upper: Array) -> DualProblem:
        """Return the dual problem."""

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
            Targets.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples, which multiply ``C``; 2 counts as the sample twice, 0 (and, as in
            scikit-learn, less) as its absence.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        X, samples, y = self._take_samples(X, y)
        targets = as_numbers(self, y)
        if targets.ndim != 1:
            targets = column_or_1d(targets, warn=True)
        weights = checked_weights(X, sample_weight)
        self._find_kernel(X, weights)
        rows = np.arange(targets.size) if weights is None else np.flatnonzero(weights > 0)
        upper = np.full(rows.size, float(self.C)) if weights is None else self.C * weights[rows]
        m = rows.size

        def found(solver: Solver) -> Machine:
            return moved(solver.machines[0], upper, middle)

        def keep(model: KernelRegressor, solver: Solver) -> None:
            machine = found(solver)
            beta = machine.coef[:m] + machine.coef[m:]
            used = np.flatnonzero(beta)
            model._n_support = np.array([used.size], dtype=np.int32)
            model._keep_support(samples, rows[used], beta[None, used], np.array([machine.intercept]))
            model._keep_tube(machine)
            model.n_iter_ = int(solver.solutions[0].steps)

        # Weights do not see where the targets lie, the intercept does; rounding errors would, far from 0.
        middle = float(np.sort(targets[rows])[m // 2]) if m else 0.0
        problem = self._problem(rows, targets[rows] - middle, upper)
        _, solver, outcome = self._solve(samples, [problem], keep, (X, y, sample_weight))
        keep(self, solver)
        verdict = self._verdict(outcome.status)
        self._record(solver, outcome, samples, m, verdict=verdict, machines=[found(solver)])
        return self

    def _verdict(self, status: str) -> str:
        if status != "inseparable":
            return ""
        return (
            "with C=inf every target must lie within the tube, and no function of this kernel does that: "
            "choose a finite C or a larger epsilon"
        )

    def _keep_tube(self, machine: Machine) -> None:
        """Keep what the machine has learnt of its tube."""

    def predict(self, X: Any) -> Array:
        """Return ``f(x)`` of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n,)
            Predictions.
        """
        X = self._check_new(X)
        return np.asarray(self._support_sums()(X)[:, 0] + self.intercept_[0])


class SVR(KernelRegressor):
    r"""Support vector regression: ``min ½‖w‖² + C Σ_i s_i max(0, |y_i − f(x_i)| − ε)``.

    ``f(x) = w·φ(x) + b = Σ_i β_i k(x_i, x) + b`` with ``−C s_i ≤ β_i ≤ C s_i``, ``Σ β_i = 0``. Errors within
    the tube ``±ε`` cost nothing; samples strictly within it have ``β_i = 0``, the others are the support
    vectors.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter, max_time
        As in :class:`SVC`.
    C : float, default=1.0
        Price of a unit outside the tube; ``inf`` demands every sample within it.
    epsilon : float, default=0.1
        Half the width of the tube.

    Attributes
    ----------
    support_ : ndarray of int32 of shape (n_support,)
        Numbers of the support vectors.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel. They and ``dual_coef_`` are read-only from the
        first prediction on, which packs them: to change a model, assign a new array.
    n_support_ : ndarray of int32 of shape (1,)
        Their number.
    dual_coef_ : ndarray or sparse matrix of shape (1, n_support)
        ``β``.
    intercept_ : ndarray of shape (1,)
        ``b``.
    coef_ : ndarray or sparse matrix of shape (1, n_features)
        ``w``, for a linear kernel.
    kernel_ : Kernel
        The kernel in use, its parameters resolved.
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    shape_fit_ : tuple of int
        Shape of the training samples.
    n_iter_ : int
        Steps of the solver.
    certificate_, history_, n_features_in_, feature_names_in_
        As in :class:`SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.models.svr import SVR
    >>> x = np.linspace(0, 6, 40)
    >>> model = SVR(C=10.0, epsilon=0.1).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict(x[:, None]) - np.sin(x)).max() < 0.102)
    True
    >>> int(model.n_support_[0]) < 20
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelSVM._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: int = False,
        max_iter: int = -1,
        max_time: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time

    def _problem(self, rows: Array, targets: Array, upper: Array) -> DualProblem:
        return regression(rows, targets, upper, float(self.epsilon))


class NuSVR(KernelRegressor):
    r"""ν-support vector regression: ``min ½‖w‖² + C (ν n ε + Σ_i s_i max(0, |y_i − f(x_i)| − ε))``.

    As :class:`SVR`, but the tube's half-width ``ε`` is learnt: at most the fraction ``ν`` of the samples lie
    outside the tube, and at least that fraction are support vectors.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        ``ν``.
    C : float, default=1.0
        Price of a unit outside the tube.
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter, max_time
        As in :class:`SVC`.

    Attributes
    ----------
    epsilon_ : float
        The learnt half-width of the tube.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, kernel_
        As in :class:`SVR`.
    fit_status_, shape_fit_, n_iter_
        As in :class:`SVR`.
    certificate_, history_, n_features_in_, feature_names_in_
        As in :class:`SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.models.svr import NuSVR
    >>> x = np.linspace(0, 6, 40)
    >>> model = NuSVR(nu=0.2, C=10.0, tol=1e-6).fit(x[:, None], np.sin(x))
    >>> outside = np.abs(model.predict(x[:, None]) - np.sin(x)) > model.epsilon_ + 1e-5
    >>> bool(outside.mean() <= 0.2 <= model.n_support_[0] / 40)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelSVM._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: int = False,
        max_iter: int = -1,
        max_time: float | None = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time

    def _problem(self, rows: Array, targets: Array, upper: Array) -> DualProblem:
        if np.isinf(self.C):
            raise ValueError("C must be finite for NuSVR: nu shares C among the samples. Choose SVR(C=inf).")
        return nu_regression(rows, targets, upper, float(self.nu))

    def _keep_tube(self, machine: Machine) -> None:
        self.epsilon_ = -machine.rho
