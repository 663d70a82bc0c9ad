"""What linear support vector machines for classes and for numbers share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from separatrix.data.room import allowed, demand
from separatrix.data.threads import at_most, single_threaded, work_of_fit
from separatrix.data.view import Array, DataView
from separatrix.models._base import IterativeEstimator
from separatrix.models._bounded import MAX_MEMORY
from separatrix.models._start import goal_of
from separatrix.models._validation import N_JOBS
from separatrix.problem import Problem, Result
from separatrix.solvers._judge import judge_linear
from separatrix.solvers._loop import Below, run
from separatrix.solvers._room import machine_bytes

#: Features up to which Newton's method forms a Hessian: dense data, sparse data.
_DENSE_FEATURES, _SPARSE_FEATURES = 2500, 1000
#: Samples up to which it works with their inner products where there are more features: of a loss with kinks,
#: of a squared one.
_FEW_SAMPLES = 30, 200
#: Numbers in the cube of a sparse view's features, per stored value, up to which its Hessians pay.
_CUBE = 8000
#: Features per sample up to which sparse data are tall; C times the mean square of a sample's length from
#: which on coordinate descent crawls on these: with a loss with kinks, with a squared one.
_TALL, _STIFF = 0.3, (20.0, 5.0)
#: Samples that tell their length.
_GLANCE = 256
#: Features up to which an L1 penalty needs no working set: all of them take part in Newton's method.
L1_FEATURES = 256

SHARED_CONSTRAINTS: dict[str, list[Any]] = {
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
    "n_jobs": N_JOBS,
    "max_time": [Interval(Real, 0, None, closed="right"), None],
    "max_memory": MAX_MEMORY,
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
    max_memory: float | None

    def _method(self, problem: Problem, penalty: str = "l2") -> str:
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
        view, columns = problem.view, problem.columns
        method = self._quicker(view) if self.solver == "auto" else self.solver
        if problem.joint and columns > 2:  # it has a solver of its own
            return method
        if self.solver == "auto" and machine_bytes(view, columns, method) > allowed():
            method = "dual"  # alone: Newton's method, which may finish what is slow, takes more
        other = "" if self.solver == "auto" else "choose solver='auto'"
        demand(machine_bytes(view, columns, method), f"solver {method!r}", other)
        return method

    def _quicker(self, view: DataView) -> str:
        """Return the solver that suits the shape of the data."""
        n, d = view.shape
        if view.sparse:
            pays = d <= _SPARSE_FEATURES and d**3 <= _CUBE * n * view.row_elements
            if not pays and d <= _TALL * n:
                few = view.take(np.linspace(0, n - 1, _GLANCE).astype(np.int64))
                stiff = float(self.C) * float(few.multiply(few).sum()) / _GLANCE
                pays = stiff >= _STIFF[self.loss.startswith("squared")]
        else:
            few = _FEW_SAMPLES[self.loss.startswith("squared")]
            pays = d <= _DENSE_FEATURES and (d <= n or n <= few)
        return "newton" if pays else "auto"

    def _optimise(
        self,
        problem: Problem,
        start: tuple[Array, Array],
        X: Any,
        y: Any,
        sample_weight: Any,
        penalty: str = "l2",
    ) -> Result:
        return self._optimise_all([(lambda: problem, start)], X, y, sample_weight, penalty)[0]

    def _optimise_all(
        self,
        parts: Sequence[tuple[Callable[[], Problem], tuple[Array, Array]]],
        X: Any,
        y: Any,
        sample_weight: Any,
        penalty: str,
    ) -> list[Result]:
        """Solve problems, each made when its turn comes and from its start, one after the other."""
        results: list[Result] = []
        solver: Any = None

        def attributes() -> dict[str, Any]:
            each = [(r.coef, r.intercept) for r in results] + [(solver.coef, solver.intercept)]
            each += [start for _, start in parts[len(each) :]]
            coef, intercept = zip(*each, strict=True)
            return {"coef_": np.concatenate(coef), "intercept_": np.concatenate(intercept)}

        most, left = self.max_iter * len(parts), self.max_time
        context, observer = self._observe(most, X, y, {"sample_weight": sample_weight}, attributes)
        for make, start in parts:
            problem = make()
            goal = goal_of(self.tol, problem)
            work = work_of_fit(X.shape, problem.columns)
            # Numbers that overflow, as an extreme C makes them, end in the certificate, or are refused.
            quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
            with at_most(self.n_jobs), single_threaded(work), quiet:
                method = self._method(problem, penalty)
                solver = self._solver(problem, method, goal, start)
                outcome = run(
                    solver,
                    Below(goal),
                    max_iter=self.max_iter,
                    max_time=left,
                    verbose=int(self.verbose),
                    name=type(self).__name__,
                    observer=observer,
                )
                result: Result = solver.finish(outcome)
            result.certificate = self._judged(result, problem.view.dtype == np.float32, method)
            results.append(result)
            left = None if left is None else max(left - outcome.seconds, 1e-9)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return results

    def _judged(self, result: Result, single: bool, method: str) -> Any:
        """Return the certificate; a fit that has reached ``tol`` is converged, whatever it went for."""
        found = result.certificate
        if found.relative_gap is None or found.status not in ("max_iter", "max_time"):
            return found
        reached, _, remedy = found.message.partition(", above")
        if found.relative_gap <= self.tol:
            return replace(found, status="converged", message=reached)
        remedy = remedy.partition(": ")[2]
        if self.solver == "dual" and found.status == "max_iter":
            remedy = "choose solver='auto', which lets Newton's method finish what is slow, or lower C"
        elif method == "dual" and found.status == "max_iter":
            remedy = "raise max_memory, so that Newton's method may finish what is slow, or max_iter"
        elif found.status == "max_iter" and result.iterations < self.max_iter:
            remedy = "rounding hides further progress: scale the features (StandardScaler), or lower C"
            if single:
                remedy = "single precision ends here: scale the features, lower C, or give float64"
        return replace(found, message=f"{reached}, above tol={self.tol:g}: {remedy}")

    def _solver(self, problem: Problem, method: str, goal: float, start: tuple[Array, Array]) -> Any:
        # Each fit loads the one solver that it needs.
        if method == "working-set":
            C, seed = float(self.C), self._seed()
            common: dict[str, Any] = {"coef": start[0], "intercept": start[1], "tol": goal}
            if problem.view.shape[1] <= L1_FEATURES:
                needed = machine_bytes(problem.view, problem.columns, "newton")
                demand(needed, "an L1 penalty", "choose SGDClassifier, which has one, too")
                from separatrix.solvers.semismooth_newton import SemismoothNewton

                return SemismoothNewton(problem, C=C, scaling=self._scaling(), seed=seed, l1=True, **common)
            from separatrix.solvers.working_set import WorkingSet

            return WorkingSet(problem, l1=1.0 / C, l2=0.0, unit=C, **common)
        return self._l2_solver(problem, method, goal, start)

    def _l2_solver(
        self, problem: Problem, method: str, goal: float, start: tuple[Array, Array], factor: float = 1.0
    ) -> Any:
        """Return a solver of an L2 penalty, with a multiple of C."""
        common: dict[str, Any] = {"coef": start[0], "intercept": start[1], "tol": goal, "seed": self._seed()}
        common.update(C=factor * float(self.C), scaling=self._scaling())
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

    def _warn(self) -> None:
        if self.certificate_.status == "max_iter":
            warnings.warn(
                "Liblinear failed to converge, increase the number of iterations (in scikit-learn's words): "
                f"{type(self).__name__} stopped with {self.certificate_.message}.",
                ConvergenceWarning,
                stacklevel=5,
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


def joined(results: list[Result], problem: Problem) -> Result:
    """Return the columns of one problem that were solved one by one, with one certificate for all."""
    coef, intercept = (np.concatenate([getattr(r, name) for r in results]) for name in ("coef", "intercept"))
    found = [r.certificate for r in results]
    worst = max(found, key=lambda c: (c.status != "converged", c.relative_gap or 0.0))
    primal, dual = sum(float(c.primal or 0.0) for c in found), sum(float(c.dual or 0.0) for c in found)
    certificate = replace(
        worst,
        message=worst.message.replace("duality gap", "duality gap of the worst column", 1),
        iterations=max(c.iterations for c in found),
        seconds=sum(c.seconds for c in found),
        primal=primal,
        dual=dual,
        gap=primal - dual,
        relative_gap=(primal - dual) / primal if primal > 0 else 0.0,
        worst_relative_gap=max(float(c.relative_gap or 0.0) for c in found),
        kkt_violation=max(float(c.kkt_violation or 0.0) for c in found),
        training_errors=judge_linear(problem, coef, intercept, 0.0).mistakes,
    )
    history = [{"column": k, **record} for k, r in enumerate(results) for record in r.history]
    return Result(coef, intercept, certificate, history, certificate.iterations)
