"""What the estimators of stochastic gradient descent share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from separatrix.data.memory import view_of
from separatrix.data.threads import thread_count
from separatrix.data.view import Array
from separatrix.losses import Loss, get_loss
from separatrix.models._base import IterativeEstimator, LinearModel
from separatrix.models._start import Start, seed_of
from separatrix.problem import Penalty, Problem, Result
from separatrix.solvers._loop import NoImprovement, run
from separatrix.solvers.sgd import RATES, SgdSolver, StepRule

#: Losses by scikit-learn's names, those with a width together with its default.
LossFunctions = dict[str, tuple[Loss] | tuple[Loss, float]]
REGRESSION_LOSSES: LossFunctions = {
    "squared_error": (get_loss("squared_error"),),
    "huber": (get_loss("huber"), 0.1),
    "epsilon_insensitive": (get_loss("epsilon_insensitive"), 0.1),
    "squared_epsilon_insensitive": (get_loss("squared_epsilon_insensitive"), 0.1),
}
CLASSIFICATION_LOSSES: LossFunctions = {
    "hinge": (get_loss("hinge"),),
    "squared_hinge": (get_loss("squared_hinge"),),
    "perceptron": (get_loss("perceptron"),),
    "log_loss": (get_loss("logistic"),),
    "modified_huber": (get_loss("modified_huber"),),
}
#: The losses for which a passive-aggressive step is defined.
_AGGRESSIVE = {"classes": "hinge", "numbers": "epsilon_insensitive"}

Validate = Callable[[Array, Array], Array]


class StochasticGradient(LinearModel, IterativeEstimator):
    """What both estimators share: parameters to problem, problem to fitted attributes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "verbose": ["verbose"],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "learning_rate": [StrOptions(set(RATES))],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, None, None, closed="neither")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "average": [Interval(Integral, 0, None, closed="neither"), "boolean"],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
    }
    loss_functions: ClassVar[LossFunctions]
    _kind: ClassVar[str]

    loss: str
    penalty: str | None
    alpha: float
    l1_ratio: float | None
    fit_intercept: bool
    max_iter: int
    tol: float | None
    shuffle: bool
    verbose: int
    epsilon: float
    random_state: Any
    learning_rate: str
    eta0: float
    power_t: float
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    average: Any
    max_time: float | None
    t_: float

    def _check_combination(self) -> None:
        rate = self.learning_rate
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise ValueError("l1_ratio must be set when penalty is 'elasticnet'.")
        if rate in ("optimal", "pegasos") and self.alpha == 0:
            raise ValueError(
                f"alpha must be > 0 since learning_rate is {rate!r}: alpha is used to compute the learning "
                "rate. Give another learning_rate, such as 'invscaling', to fit without a penalty."
            )
        if rate == "pegasos" and self._penalty().l2 == 0:
            raise ValueError(
                f"learning_rate='pegasos' needs the L2 penalty whose strength sets its steps, not "
                f"penalty={self.penalty!r}: choose penalty='l2' or 'elasticnet', or learning_rate='optimal'."
            )
        if rate in ("pa1", "pa2") and self.loss != _AGGRESSIVE[self._kind]:
            raise ValueError(
                f"Learning rate {rate!r} only works with loss {_AGGRESSIVE[self._kind]!r}, not "
                f"{self.loss!r}: choose that loss or another learning_rate."
            )

    def _check_batch(self) -> None:
        self._check_combination()
        if self.early_stopping:
            raise ValueError(
                "early_stopping should be False with partial_fit: a batch has no passes to stop."
            )

    def _penalty(self) -> Penalty:
        ratios = {"l1": 1.0, "l2": 0.0, "elasticnet": self.l1_ratio or 0.0}
        return Penalty(float(self.alpha), ratios[self.penalty]) if self.penalty is not None else Penalty()

    def _problem(self, X: Any, classes: Array, codes: Array, **given: Any) -> Problem:
        loss = self.loss_functions[self.loss][0].with_epsilon(float(self.epsilon))
        return Problem(
            view_of(X),
            classes,
            codes,
            loss=loss,
            penalty=self._penalty(),
            fit_intercept=self.fit_intercept,
            **given,
        )

    def _solver(self, problem: Problem, start: Start, **given: Any) -> SgdSolver:
        return SgdSolver(
            problem,
            start.coef,
            start.intercept,
            rule=StepRule(self.learning_rate, float(self.eta0), float(self.power_t), float(self.alpha)),
            shuffle=self.shuffle,
            seed=self._seed(),
            average_from=int(self.average),
            threads=thread_count(getattr(self, "n_jobs", None)),
            **given,
        )

    def _seed(self) -> int:
        """Return the seed of the order of visit; a classifier knows its classes by now."""
        return seed_of(self.random_state, len(getattr(self, "classes_", ())))

    def _attributes(self, coef: Array, intercept: Array) -> dict[str, Any]:
        return {"coef_": coef, "intercept_": intercept}

    def _fit_problem(
        self,
        problem: Problem,
        start: Start,
        watch: tuple[Validate, Array] | None,
        X: Any,
        y: Any,
        sample_weight: Any,
    ) -> None:
        """Run all passes and set the fitted attributes; ``watch``: a score and the samples it holds out."""
        patience = int(self.n_iter_no_change)
        solver = self._solver(problem, start, tol=self.tol, patience=patience, watch=watch)
        context, observer = self._observe(
            self.max_iter,
            X,
            y,
            {"sample_weight": sample_weight},
            lambda: self._attributes(solver.coef.copy(), solver.intercepts.copy()),
        )
        outcome = run(
            solver,
            NoImprovement(None, 1),  # every column has a rule of its own
            max_iter=self.max_iter,
            max_time=self.max_time,
            verbose=int(self.verbose),
            name=type(self).__name__,
            observer=observer,
        )
        result = solver.finish(outcome)
        self._store(result, solver)
        self._keep_record(result)
        self._warn_if_unfinished(self.tol)
        if self.power_t < 0:
            warnings.warn(
                "Negative values for `power_t` are deprecated in version 1.8 and will raise an error in "
                "1.10. Use values in the range [0.0, inf) instead.",
                FutureWarning,
                stacklevel=3,
            )
        context.call_on_fit_task_end(estimator=self, X=X, y=y)

    def _fit_batch(self, problem: Problem, start: Start) -> None:
        """Run one pass over a batch, going on where the last one ended."""
        before = None
        if self.average and hasattr(self, "_average_coef"):
            before = np.atleast_2d(self._average_coef), self._average_intercept
        solver = self._solver(problem, start, average=before, t=getattr(self, "t_", 1.0))
        outcome = run(solver, NoImprovement(None, 1), max_iter=1, max_time=self.max_time, name="partial_fit")
        result = solver.finish(outcome, bound=False)
        status = outcome.status if outcome.status in ("max_time", "interrupted") else "max_iter"
        # A batch proves nothing about the batches before it.
        message = f"one pass over a batch of {problem.view.shape[0]:,} samples; the objective is that of it"
        self.certificate_ = replace(result.certificate, status=status, message=message)
        self._store(result, solver)
        if not hasattr(self, "history_"):
            self.history_ = []
        self.history_ += result.history
        self.n_iter_ = result.iterations

    def _store(self, result: Result, solver: SgdSolver) -> None:
        for name, value in self._attributes(result.coef, result.intercept).items():
            setattr(self, name, value)
        self.t_ = solver.t
        kept = ("_standard_coef", "_standard_intercept", "_average_coef", "_average_intercept")
        for name in kept:
            self.__dict__.pop(name, None)
        if self.average:
            values = (solver.coef.copy(), solver.intercepts.copy(), *solver.mean())
            self.__dict__.update(zip(kept, values, strict=True))

    def _learnt(self) -> tuple[Array, Array] | None:
        """Return the weights that a later batch goes on from: not their mean."""
        if hasattr(self, "_standard_coef"):
            return self._standard_coef, self._standard_intercept
        return self._returned()

    def _returned(self) -> tuple[Array, Array] | None:
        """Return the weights that a warm start begins with, as scikit-learn does: those that the fit gave."""
        if getattr(self, "coef_", None) is None:
            return None
        return np.atleast_2d(self._dense_coef()), np.atleast_1d(self.intercept_)
