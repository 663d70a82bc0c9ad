"""What the kernel support vector machines share: samples, kernel, solver, support vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._sparse import _align_api_if_sparse
from sklearn.utils.validation import check_is_fitted

from separatrix.data.memory import check_structure
from separatrix.data.view import Array
from separatrix.kernels import KERNEL_NAMES, Kernel, Linear, check_symmetric, resolve_kernel
from separatrix.models._base import IterativeEstimator
from separatrix.models._svm_samples import fit_samples, kind_of, new_samples
from separatrix.solvers._loop import Below, Outcome, run
from separatrix.solvers.hard_margin import HardMargins
from separatrix.solvers.joint_machine import JointMachine
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.kernel_scores import SupportSums
from separatrix.solvers.machines import Machine
from separatrix.solvers.smo import DualProblem
from separatrix.solvers.svm import SupportMachines
from separatrix.solvers.svm_certificate import bound_advice, certify, scale_advice

Solver = SupportMachines | HardMargins | JointMachine

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values and need "
    "to be preprocessed, for example with sklearn.preprocessing.StandardScaler."
)
#: Up to so many samples kernel values are kept in double and a fit goes on to 1e-12: it costs next to
#: nothing there, and makes dense and sparse data, weights and repeated samples agree.
FEW = 500
#: Packed support vectors of models that have predicted, and the arrays they come from.
_KEPT: WeakKeyDictionary[Any, tuple[tuple[Any, ...], SupportSums]] = WeakKeyDictionary()
#: From here on tol bounds the relative gap too; a larger one leaves it ten times as large at most.
_TIGHT = 1e-5


class KernelSVM(IterativeEstimator):
    """A machine with scores ``f(x) = Σ_i c_i k(x_i, x) + b``, learnt by a dual problem."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({*KERNEL_NAMES, "precomputed"}), Kernel, callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
    }

    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    tol: float
    shrinking: bool
    cache_size: float
    verbose: int
    max_iter: int
    max_time: float | None

    kernel_: Kernel
    support_: Array
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Array
    shape_fit_: tuple[int, ...]
    fit_status_: int

    def _take_samples(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        """Check the training samples; return them, a source of their rows, and ``y``."""
        X, samples, y = fit_samples(self, self.kernel, X, y)
        self.shape_fit_ = X.shape
        return X, samples, y

    def _find_kernel(self, X: Any, weights: Array | None) -> None:
        if kind_of(self.kernel) == "matrix":
            check_symmetric(X if X.dtype.kind == "f" else X.astype(np.float64))
        self.kernel_ = resolve_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, X=X, weights=weights
        )
        self._gamma = float(getattr(self.kernel_, "gamma", 0.0))

    def _solver(self, matrix: KernelMatrix, problems: Sequence[DualProblem]) -> Solver:
        """Return what solves the problems."""
        tol = float(self.tol)
        few = matrix.shape[0] <= FEW
        return SupportMachines(
            matrix,
            problems,
            tol=tol,
            gap=tol if few or tol <= _TIGHT else 10 * tol,
            aim=max(1e-9 * tol, min(tol, 1e-12)) if few else tol,
            max_steps=int(self.max_iter),
        )

    def _solve(
        self,
        samples: Any,
        problems: Sequence[DualProblem],
        keep: Callable[[Any, Solver], None],
        given: tuple[Any, Any, Any],
        make: Callable[[KernelMatrix], Solver] | None = None,
    ) -> tuple[KernelMatrix, Solver, Outcome]:
        """Solve the problems to the tolerance that was asked for.

        ``keep(model, solver)`` makes fitted attributes of where the solver stands; ``given`` are the samples,
        targets and weights of the fit, for callbacks. ``make`` returns another solver than the problems'.
        """
        few = samples.shape[0] <= FEW
        with np.errstate(over="ignore", invalid="ignore"):
            matrix = KernelMatrix(
                self.kernel_,
                samples,
                cache_bytes=self.cache_size * 1e6,
                precision="float64" if few else None,
            )
        if self.verbose:
            print(_forecast(type(self).__name__, matrix, problems, self.cache_size))
        solver = self._solver(matrix, problems) if make is None else make(matrix)
        context = observer = None
        if getattr(self, "_skl_callbacks", None):
            X, y, weights = given

            def attributes() -> dict[str, Any]:
                twin = copy(self)
                keep(twin, solver)
                return {name: value for name, value in vars(twin).items() if name not in self.get_params()}

            context, observer = self._observe(None, X, y, {"sample_weight": weights}, attributes)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the certificate tells
            outcome = run(
                solver,
                Below(-1.0),
                max_iter=np.inf,
                max_time=self.max_time,
                verbose=int(self.verbose),
                name=type(self).__name__,
                observer=observer,
            )
        if outcome.status in ("max_time", "interrupted") and isinstance(solver, SupportMachines):
            solver.look_again()
        if outcome.status == "inseparable" and np.isfinite(problems[0].upper[0]):
            raise ValueError(NOT_FINITE)  # only rounding errors make a bounded problem unbounded
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=given[0], y=given[1])
        return matrix, solver, outcome

    def _record(
        self,
        solver: Solver,
        outcome: Outcome,
        samples: Any,
        count: int,
        separable: bool | None = None,
        verdict: str = "",
        machines: Sequence[Machine] | None = None,
    ) -> None:
        """Keep certificate and history; warn where the fit did not end as asked.

        ``machines`` are those of the model, where they are not the solver's own.
        """
        if verdict:
            outcome = replace(outcome, status="inseparable")
        unfinished = outcome.status in ("max_iter", "max_time", "interrupted")
        features = hasattr(samples, "read") and kind_of(self.kernel) not in ("matrix", "texts")
        advice = scale_advice(samples) if unfinished and features else ""
        if unfinished and not advice and hasattr(self, "C") and isinstance(solver, SupportMachines):
            advice = bound_advice(solver)
        self.certificate_ = certify(
            solver.machines if machines is None else machines,
            outcome,
            tol=float(self.tol),
            samples=count,
            iterations=int(solver.iterations.sum()),
            advice=advice,
            separable=separable,
            verdict=verdict,
            out_of_reach=unfinished and getattr(solver, "out_of_reach", False),
            definite=solver.matrix.definite,
        )
        self.history_ = outcome.history
        self.fit_status_ = 0 if outcome.status in ("converged", "nonconvex") else 1
        if not self.fit_status_:
            return
        message = f"{type(self).__name__} stopped before convergence: {self.certificate_.message}."
        if outcome.status == "max_iter" and self.max_iter >= 0:
            message = (
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data "
                f"with StandardScaler or MinMaxScaler. {self.certificate_.message}."
            )
        if outcome.status == "inseparable":
            message = f"{type(self).__name__} has no solution: {self.certificate_.message}."
        warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _keep_support(self, samples: Any, support: Array, coef: Array, intercept: Array) -> None:
        """Keep the support vectors and their coefficients, of shape (rows, n_support)."""
        if not isfinite(np.abs(coef).sum() + intercept.sum()):
            raise ValueError(NOT_FINITE)
        self.support_ = support.astype(np.int32)
        if kind_of(self.kernel) == "matrix":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = samples.take(support)
        self.dual_coef_, self.intercept_ = coef, intercept
        self._sparse = bool(samples.sparse)
        if self._sparse:
            self.support_vectors_ = _align_api_if_sparse(self.support_vectors_)
            self.dual_coef_ = _align_api_if_sparse(sparse.csr_array(coef))

    @property
    def _libsvm_sign(self) -> float:
        """LIBSVM's scores of two classes are positive for the first of them."""
        return -1.0 if len(getattr(self, "classes_", ())) == 2 else 1.0

    @property
    def _dual_coef_(self) -> Any:
        """Coefficients with LIBSVM's sign: programs that convert scikit-learn's machines look for them."""
        return self._libsvm_sign * self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, coef: Any) -> None:
        self.dual_coef_ = self._libsvm_sign * coef

    @property
    def _intercept_(self) -> Array:
        """Intercepts with LIBSVM's sign."""
        return self._libsvm_sign * self.intercept_

    @_intercept_.setter
    def _intercept_(self, intercept: Array) -> None:
        self.intercept_ = self._libsvm_sign * intercept

    def _dual(self) -> Array:
        """Return the coefficients as a dense array."""
        return np.asarray(self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_)

    def _check_new(self, X: Any) -> Any:
        """Return checked new samples."""
        if "support_" not in self.__dict__:
            check_is_fitted(self)
        self._check_whole()
        return new_samples(self, self.kernel, X)

    def _check_whole(self) -> None:
        """Refuse a model whose parts do not fit each other."""
        if not self._whole():
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: its support vectors, "
                "coefficients, intercepts and classes do not belong together. Fit it anew."
            )

    def _check_structure(self) -> None:
        """Refuse sparse parts that point beyond themselves: SciPy follows them unseen."""
        for array in (self.support_vectors_, self.dual_coef_):
            if sparse.issparse(array):
                check_structure(array, "a part of the model")

    def _layout(self) -> tuple[int, int, int]:
        """Return the number of groups of support vectors, of rows of coefficients and of intercepts."""
        return 1, 1, 1

    def _whole(self) -> bool:
        """Return whether the parts of the model fit each other: compiled loops follow them unseen."""
        count, (groups, rows, columns) = self.support_.shape[0], self._layout()
        vectors = self.support_vectors_
        matrix = getattr(vectors, "ndim", 1) == 2
        width = self.n_features_in_ if matrix and hasattr(self, "n_features_in_") else None
        return (
            np.shape(self._n_support) == (groups,)
            and min(counts := self._n_support.tolist()) >= 0
            and sum(counts) == count
            and np.shape(self.dual_coef_) == (rows, count)
            and np.shape(self.intercept_) == (columns,)
            and (
                kind_of(self.kernel) == "matrix"
                or (vectors.shape if matrix else (len(vectors), None)) == (count, width)
            )
        )

    def _support_sums(self) -> SupportSums:
        """Return the support vectors as they are kept packed between predictions of the same model.

        They are no part of the model's state: they are not copied or stored with it, and are made anew where
        one of the arrays they come from has been replaced. These become read-only, since a change within
        them would go unnoticed.
        """
        precomputed = kind_of(self.kernel) == "matrix"
        vectors = self.support_ if precomputed else self.support_vectors_
        sources = (self.kernel_, vectors, self.dual_coef_, self._n_support)
        kept = _KEPT.get(self)
        if kept is not None and all(old is new for old, new in zip(kept[0], sources, strict=True)):
            return kept[1]
        self._check_structure()
        sums = SupportSums(self.kernel_, vectors, np.ascontiguousarray(self._dual().T), self._groups())
        for array in (vectors, self.dual_coef_):
            part = array.data if sparse.issparse(array) else array
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        _KEPT[self] = (sources, sums)
        return sums

    def _groups(self) -> Array | None:
        """Return how many support vectors are summed apart; None sums over all of them."""
        return None

    @property
    def coef_(self) -> Any:
        """Weights of the features for a linear kernel: one row per score column, read-only."""
        if not isinstance(getattr(self, "kernel_", self.kernel), Linear) and self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        self._check_structure()
        coef = self._linear_coef()
        (coef.data if sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    def _linear_coef(self) -> Any:
        coef = self.dual_coef_ @ self.support_vectors_
        return _align_api_if_sparse(coef.tocsr()) if sparse.issparse(coef) else np.asarray(coef)

    @property
    def n_support_(self) -> Array:
        """Number of support vectors (of each class)."""
        try:
            return np.asarray(self._n_support)
        except AttributeError:
            raise AttributeError("n_support_ exists only after fit") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kind = kind_of(self.kernel)
        tags.input_tags.pairwise = kind == "matrix"
        tags.input_tags.sparse = kind != "matrix"
        if kind == "texts":
            tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.sparse = True, False, False
        return tags


def _forecast(name: str, matrix: KernelMatrix, problems: Sequence[DualProblem], cache_size: float) -> str:
    """Say what a fit will need before it begins."""
    n, variables = matrix.shape[0], sum(problem.rows.size for problem in problems)
    whole, own = 8e-6 * n * n, 6 * 8e-6 * variables
    kept = min(whole, cache_size)
    return (
        f"{name}: {n:,} samples, {len(problems):,} problem{'s' if len(problems) > 1 else ''}, {variables:,} "
        f"variables; needs up to {kept:,.0f} MB for kernel values (cache_size={cache_size:g}; the whole "
        f"matrix has {whole:,.0f} MB) and {own:,.1f} MB beside"
    )
