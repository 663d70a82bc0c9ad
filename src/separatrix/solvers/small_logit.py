r"""Logistic and softmax regression on few data, by compiled proximal Newton steps.

    min_{W,b}  Σ_i s_i ℓ(W x_i + b, c_i) + λ₁ ‖W‖₁ + (λ₂/2) ‖W‖²      (intercept b free)

Where a step in Python takes longer to call than to compute, ``_hot.SmallLogit`` takes it whole: the exact
Hessian; its Cholesky factor, or with λ₁ > 0 coordinate descent on the model and Newton's steps on its
support; Armijo's rule; the exact intercept. With b optimal for W the residuals ``θ = t − p`` are dual
points, and

    D(τθ) = Σ_i s_i H(t_i + τ(p_i − t_i)) − Σ_kj max(|τ(Xᵀθ)_jk| − λ₁, 0)² / (2 λ₂),

``H`` the entropy, bounds the objective from below: for τ = 1, or, where λ₂ = 0, for the largest feasible τ.
Without a penalty there is no such bound; half the squared Newton decrement estimates the distance instead.
Where no step lowers the objective, which rounding may do, the solver for data of any size goes on from there.

References: Lee, Sun, Saunders, "Proximal Newton-type methods" (SIAM J. Optim. 24, 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from separatrix import _hot
from separatrix.certificate import Certificate
from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._loop import Control, Outcome, Step

if TYPE_CHECKING:
    from separatrix.certificate import Separation
    from separatrix.solvers.separation import Watch

#: Multiply-adds of the Hessians, and entries times columns, up to which compiled steps are quicker than
#: products of whole matrices.
_SMALL, _FEW = 1 << 23, 1 << 19
#: Most parameters that are learnt together.
_MOST = 160
#: Steps without progress after which rounding is blamed.
_PATIENCE = 5
#: An estimate of the distance from the minimum counts this many times.
_CAUTION = 10.0


def is_small(problem: Problem) -> bool:
    """Return whether calls would cost more than what they compute.

    Examples
    --------
    >>> from separatrix.data.memory import view_of
    >>> is_small(Problem(view_of(np.ones((200, 6))), np.zeros(200, dtype=np.int32), np.array([[-1], [1]])))
    True
    """
    n, d = problem.view.shape
    P = problem.columns
    together, systems = (P * (d + 1), 1) if problem.joint else (d + 1, P)
    work = systems * n * together
    return together <= _MOST and work * together / 2 <= _SMALL and work <= _FEW


def densely(problem: Problem) -> Problem:
    """Return a small problem with dense samples, of which sparse data have a few megabytes at most."""
    view = problem.view
    if not view.sparse:
        return problem
    return replace(problem, view=view_of(view.read(slice(0, view.shape[0])).toarray()))


class GoesOn(Protocol):
    """The solver that goes on where compiled steps end."""

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration."""

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters and what they prove."""


class SmallLogit:
    """Solver of the problem above.

    Parameters
    ----------
    problem : Problem
        Dense samples, codes and weights of logistic loss; every column has samples on both sides.
    l1, l2 : float
        λ₁ and λ₂; both 0 is plain maximum likelihood.
    coef, intercept : ndarray of shape (columns, n_features), (columns,)
        Where to start.
    tol : float
        Relative distance from the minimum at which to stop.
    unit : float
        Factor of the objective where it is reported.
    watch : Watch or None
        Looks for separation on the way, which plain maximum likelihood needs.
    otherwise : callable or None
        Makes the solver that goes on from ``coef`` and ``intercept`` where no step lowers the objective.

    Examples
    --------
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.solvers._loop import Below, run
    >>> X = np.array([[-2.0, 1.0], [-1.0, -1.0], [0.5, 0.0], [-0.5, 1.0], [1.0, -1.0], [2.0, 1.0]])
    >>> problem = Problem(view_of(X), np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), np.array([[-1], [1]]))
    >>> solver = SmallLogit(problem, l1=1.0, l2=0.0, coef=np.zeros((1, 2)), intercept=np.zeros(1), tol=1e-8)
    >>> result = solver.finish(run(solver, Below(1e-8), max_iter=100))
    >>> result.certificate.status, result.certificate.relative_gap <= 1e-8
    ('converged', True)
    >>> np.round(result.coef, 4) + 0.0
    array([[0.6304, 0.    ]])
    """

    def __init__(
        self,
        problem: Problem,
        *,
        l1: float,
        l2: float,
        coef: Array,
        intercept: Array,
        tol: float,
        unit: float = 1.0,
        watch: Watch | None = None,
        otherwise: Callable[[Array, Array], GoesOn] | None = None,
    ) -> None:
        self.problem, self.l1, self.l2, self.tol, self.unit = problem, l1, l2, tol, unit
        self.watch, self.otherwise = watch, otherwise
        self._separation: Separation | None = None
        self.other: GoesOn | None = None
        view, s, P = problem.view, problem.weights, problem.columns
        x = np.ascontiguousarray(view.read(slice(0, view.shape[0])), dtype=np.float64)
        s = None if s is None else np.ascontiguousarray(s, dtype=np.float64)
        coef, intercept = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)
        self.groups = [slice(0, P)] if problem.joint else [slice(k, k + 1) for k in range(P)]
        self.states = [
            _hot.SmallLogit(
                x=x,
                classes=self._classes(own.start),
                weights=s,
                intercept=problem.fit_intercept,
                l1=l1,
                l2=l2,
                coef=coef[own],
                start=intercept[own],
            )
            for own in self.groups
        ]
        self.samples = view.shape[0] if s is None else int(np.count_nonzero(s))
        total = float(view.shape[0] if s is None else s.sum())
        # What distances are measured against: the objective, but with L1 no less than rounding can see.
        self.least = 1e-8 * total if l1 > 0 else 1e-300

    def _classes(self, column: int) -> Array:
        """Return the samples' classes as one system sees them: numbers, or 1 for a column's own side."""
        numbers = np.ascontiguousarray(self.problem.classes, dtype=np.int32)
        if self.problem.joint:
            return numbers
        return (self.problem.codes[:, column] > 0).astype(np.int32)[numbers]

    @property
    def separation(self) -> Separation | None:
        """The direction along which the likelihood grows for ever, if one was found."""
        return self._separation if self.other is None else getattr(self.other, "separation", None)

    @property
    def point(self) -> Any:
        """Where coef and intercept stand."""
        return self if self.other is None else getattr(self.other, "point", self.other)

    @property
    def coef(self) -> Array:
        """The weights at hand."""
        return self._parameters()[0]

    @property
    def intercept(self) -> Array:
        """The intercepts at hand."""
        return self._parameters()[1]

    def _parameters(self) -> tuple[Array, Array]:
        P = self.problem.columns
        coef, intercept = np.empty((P, self.problem.view.shape[1])), np.empty(P)
        for own, state in zip(self.groups, self.states, strict=True):
            state.parameters(coef[own], intercept[own])
        if self.problem.joint and self.problem.fit_intercept:
            intercept -= intercept.mean()  # what all classes share, softmax does not see
        return coef, intercept

    def _distance(self, primal: float, gap: float, decrement: float) -> float:
        return min(gap, np.inf if self.l1 > 0 else _CAUTION * decrement) / max(abs(primal), self.least)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each Newton step of the systems that need one."""
        found = [state.measure() for state in self.states]
        least, idle, number = [each[:2] for each in found], [0] * len(found), 0
        while True:
            stuck = False
            for k, state in enumerate(self.states):
                if number == 0 or self._distance(*found[k]) > self.tol:
                    moved = state.step(True)
                    found[k] = primal, gap, _ = state.measure()
                    # Near the end rounding hides the objective's fall, not the gap's.
                    progress = primal < least[k][0] - 1e-13 * abs(primal) or gap < 0.9 * least[k][1]
                    idle[k] = 0 if progress else idle[k] + 1
                    least[k] = min(primal, least[k][0]), min(gap, least[k][1])
                    done = self._distance(*found[k]) <= self.tol
                    if done and self.l1 == 0 and state.step(False):
                        # So near, the last Hessian is as good as a new one: more digits for little.
                        found[k] = state.measure()
                    stuck |= not done and (not moved or idle[k] >= _PATIENCE)
            number += 1
            if stuck and self.otherwise is not None:
                self.other = self.otherwise(*self._parameters())
                yield from self.other.steps(control)
                return
            primal = sum(each[0] for each in found)
            size = max(abs(primal), self.least)
            measure = sum(self._distance(*each) * max(abs(each[0]), self.least) for each in found) / size
            finished = "max_iter" if stuck else None
            if self.watch is not None:
                self._separation = self.watch.update(*self._parameters())
                finished = finished if self._separation is None else "separable"
            yield Step(self._record(primal, measure, number), measure, finished)

    def _record(self, primal: float, measure: float, number: int) -> dict[str, float]:
        record = {"objective": self.unit * primal, "relative_gap": measure}
        n, d = self.problem.view.shape
        if self.l1 > 0:
            return {**record, "nonzeros": int(np.count_nonzero(self.coef)), "working_set": d}
        return {**record, "samples": float(n), "sweeps": number + 1.0}

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters, rounded to the data's precision, and what they prove."""
        if self.other is not None:
            return self.other.finish(outcome)
        if self.watch is not None and outcome.status in ("converged", "max_iter"):
            self._separation = self._separation or self.watch.settle()
            outcome.status = "separable" if self._separation is not None else outcome.status
        dtype = self.problem.view.dtype
        coef, intercept = (part.astype(dtype) for part in self._parameters())
        exact, free = coef.astype(np.float64), intercept.astype(np.float64)
        measured = [state.measure() for state in self.states]
        systems = zip(self.groups, self.states, strict=True)
        judged = [state.evaluate(exact[own], free[own]) for own, state in systems]
        primal, dual = sum(each[0] for each in judged), sum(each[1] for each in judged)
        # The decrement is that of the parameters before rounding: what rounding added comes on top.
        estimate = sum(each[2] for each in measured) + max(0.0, primal - sum(each[0] for each in measured))
        size = max(abs(primal), self.least)
        if self.l2 > 0 or self.l1 > 0:
            dual = max(dual, 0.0)  # neither loss nor penalty is below 0
        gap = max(primal - dual, 0.0)
        found = f"within {gap / size:.1e} of the minimum (duality gap)"
        bounded = gap < np.inf
        # Far from the minimum the decrement tells too little: it counts where the fit has ended, and where
        # nothing else is known.
        near = outcome.status == "converged" or not bounded
        if self.l1 == 0 and near and gap > max(self.tol * size, _CAUTION * estimate):
            gap, bounded = estimate, False
            found = f"within an estimated {gap / size:.1e} of the minimum (Newton decrement)"
        if self.l1 > 0:
            found += f"; {np.count_nonzero(coef):,} of {coef.size:,} weights are not 0"
        remedy = {
            "converged": found,
            "separable": "the classes are separable, so the likelihood has no maximum",
            "max_iter": f"max_iter iterations done, {found}; raise it or scale the features",
            "max_time": f"max_time is over, {found}; raise it for more iterations",
            "interrupted": f"interrupted, {found}; fit again with warm_start=True to go on",
        }
        certificate = Certificate(
            status=outcome.status,
            message=remedy[outcome.status],
            iterations=outcome.iterations,
            seconds=outcome.seconds,
            primal=self.unit * primal,
            dual=self.unit * dual if bounded else None,
            gap=self.unit * gap,
            relative_gap=gap / size,
            kkt_violation=self.unit * max(each[2] for each in judged),
            samples=self.samples,
        )
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)
