"""The one-class support vector machine."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples

from separatrix.data.view import Array
from separatrix.models._base import whole
from separatrix.models._svm_samples import checked_weights
from separatrix.models.kernel_svm import KernelSVM, Solver
from separatrix.solvers._loop import guarded
from separatrix.solvers.machines import Machine, raised
from separatrix.solvers.svm import SupportMachines, one_class

#: Rounding of scores, in units of their last digit, that a boundary allows for.
_DIGITS = 64


class OneClassSVM(OutlierMixin, KernelSVM):  # type: ignore[misc]
    r"""One-class support vector machine: ``min ½‖w‖² − ν n ρ + Σ_i s_i max(0, ρ − w·φ(x_i))``.

    ``f(x) = w·φ(x) − ρ = Σ_i α_i k(x_i, x) − ρ`` is not negative for what looks like the training samples:
    at most the fraction ``ν`` of them have ``f < 0`` (outliers), and at least that fraction are support
    vectors.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        ``ν``.
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter, max_time
        As in :class:`SVC`.

    Attributes
    ----------
    dual_coef_ : ndarray or sparse matrix of shape (1, n_support)
        ``α`` of the support vectors.
    intercept_, offset_ : ndarray of shape (1,)
        ``−ρ`` and ``ρ``.
    support_, support_vectors_, n_support_, coef_, kernel_, fit_status_, shape_fit_, n_iter_
        As in :class:`SVR`.
    certificate_, history_, n_features_in_, feature_names_in_
        As in :class:`SVC`.

    Examples
    --------
    >>> from separatrix.models.one_class import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> model = OneClassSVM(gamma="auto").fit(X)
    >>> model.predict(X).tolist()
    [-1, 1, 1, 1, -1]
    >>> model.score_samples(X).round(2).tolist()
    [1.78, 2.05, 2.06, 2.06, 1.73]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelSVM._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    n_iter_: int

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
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
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time

    @whole
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @guarded
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or (n, n), or list of str
            Samples; for ``kernel="precomputed"`` the square kernel matrix, for string kernels texts.
        y : Ignored
            Present as in scikit-learn.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples; 2 counts as the sample twice, 0 (and, as in scikit-learn, less) as its
            absence.

        Returns
        -------
        OneClassSVM
            The fitted estimator.
        """
        X, samples, _ = self._take_samples(X, None)
        weights = checked_weights(X, sample_weight)
        self._find_kernel(X, weights)
        rows = np.arange(_num_samples(X)) if weights is None else np.flatnonzero(weights > 0)
        upper = np.ones(rows.size) if weights is None else weights[rows]

        def found(solver: Solver) -> Machine:
            machine = solver.machines[0]
            # A sample on the boundary counts as an inlier, whatever the last digits of its score.
            single = getattr(samples, "dtype", None) == np.float32
            digits = _DIGITS * float(np.finfo(np.float32 if single else np.float64).eps)
            assert isinstance(solver, SupportMachines)
            largest = float(np.max(solver.matrix.diag))
            total = float(machine.coef.sum())
            by = digits * largest * total
            if not machine.vanishes:  # it costs by * total at most: within the gap asked for
                by = min(by, 0.5 * solver.gap * abs(machine.dual) / total)
            return raised(machine, upper, by, float(solver.solutions.doubt[0]))

        def keep(model: OneClassSVM, solver: Solver) -> None:
            machine = found(solver)
            used = np.flatnonzero(machine.coef)
            model._n_support = np.array([used.size], dtype=np.int32)
            intercept = np.array([machine.intercept])
            model._keep_support(samples, rows[used], machine.coef[None, used], intercept)
            model.offset_ = -model.intercept_
            model.n_iter_ = int(solver.solutions[0].steps)

        problem = one_class(rows, upper, float(self.nu))
        _, solver, outcome = self._solve(samples, [problem], keep, (X, None, sample_weight))
        keep(self, solver)
        self._record(solver, outcome, samples, rows.size, machines=[found(solver)])
        return self

    def score_samples(self, X: Any) -> Array:
        """Return ``w·φ(x)``, large for what looks like the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Scores without the offset.
        """
        X = self._check_new(X)
        return np.asarray(self._support_sums()(X)[:, 0])

    def decision_function(self, X: Any) -> Array:
        """Return ``f(x) = w·φ(x) − ρ``: not negative for inliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples.

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> Array:
        """Return +1 for inliers and −1 for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples.

        Returns
        -------
        ndarray of intp of shape (n,)
            The decisions.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
