r"""Working sets and proximal Newton steps for L1 and elastic-net penalised losses.

    min_{W,b}  P(W, b) = Σ_i s_i ℓ(W x_i + b, c_i) + λ₁ ‖W‖₁ + (λ₂/2) ‖W‖²      (intercept b free)

with ``ℓ`` the softmax cross-entropy of all columns (joint), or the logistic or squared hinge loss of each
column for itself. Optimal are weights with ``G_kj + λ₂ W_kj ∈ −λ₁ ∂|W_kj|`` for the loss's gradient ``G``,
and an
intercept with gradient 0. Every dual point ``θ`` with ``Σ_i θ_i = 0`` gives a lower bound,

    D(θ) = −Σ_i s_i ℓ*(−θ_i/s_i) − Σ_kj r*((Xᵀθ)_jk),   r*(v) = max(|v| − λ₁, 0)² / (2 λ₂),

which for λ₂ = 0 needs ``‖Xᵀθ‖_∞ ≤ λ₁``: the residuals ``−∂ℓ/∂f`` are made feasible by scaling.

One step: the exact intercept; one pass for ``Xᵀθ``, which gives bound, gap and violations; the features
that have a weight, and the worst violators, as working set; a Newton model of the loss on them,
minimised with the penalty by coordinate descent; a line search on the scores. A very small penalty is
approached by larger ones, each solved roughly. The model has its Hessian
formed (:mod:`._model_gram`) where that is cheap, else it stays behind the columns
(:mod:`._model_columns`). Where such steps crawl, as with a squared hinge loss and a large C, interior points
(:mod:`._l1_interior`) take over.

References: Yuan, Ho, Lin, "An improved GLMNET for L1-regularized logistic regression" (JMLR 13, 2012);
Massias, Gramfort, Salmon, "Celer" (ICML 2018) for working sets and dual points.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np

from separatrix.certificate import Certificate, gap_in_words
from separatrix.data.room import demand
from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._l1_part import Part, parts_of
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._room import working_set_bytes


class WorkingSet:
    """Solver of the problem above.

    Parameters
    ----------
    problem : Problem
        Samples, codes and weights; its loss must be logistic or the squared hinge.
    l1, l2 : float
        The factors λ₁ > 0 and λ₂ ≥ 0 of the penalty beside the *sum* of the losses.
    coef, intercept : ndarray of shape (columns, n_features), (columns,)
        Where to start.
    tol : float
        Relative duality gap at which a column needs no more work.
    unit : float
        Factor of the objective where it is reported.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.losses import LOSSES
    >>> from separatrix.solvers._loop import Below, run
    >>> X = np.array([[-2.0, 1.0], [-1.0, -1.0], [0.5, 0.0], [-0.5, 1.0], [1.0, -1.0], [2.0, 1.0]])
    >>> problem = Problem(view_of(X), np.array([0, 0, 0, 1, 1, 1]), np.array([[-1], [1]]),
    ...                   loss=LOSSES["logistic"])
    >>> solver = WorkingSet(problem, l1=1.0, l2=0.0, coef=np.zeros((1, 2)), intercept=np.zeros(1), tol=1e-8)
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
    ) -> None:
        if problem.loss.name not in ("logistic", "squared_hinge") or problem.kernel is not None:
            raise ValueError("The working-set solver needs the logistic or squared hinge loss and no kernel.")
        if problem.joint and problem.loss.name != "logistic":
            raise ValueError("Only the logistic loss has a joint form in the working-set solver.")
        if not (0 <= l1 < np.inf and 0 <= l2 < np.inf and l1 + l2 > 0):
            raise ValueError(f"l1 and l2 must be finite, at least 0, and not both 0; got {l1!r}, {l2!r}.")
        demand(
            working_set_bytes(problem.view, problem.columns, joint=problem.joint),
            "an L1 penalty",
            "choose SGDClassifier, which has one, too",
        )
        self.problem, self.l1, self.l2, self.tol = problem, float(l1), float(l2), float(tol)
        self.unit = unit
        self.coef = np.array(coef, dtype=np.float64)
        self.intercept = np.array(intercept, dtype=np.float64)
        self.parts = parts_of(problem, self.l1, self.l2, self.coef, self.intercept)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration."""
        work = float(self.problem.view.shape[0]) * self.coef.size
        for part in self.parts:
            with single_threaded(work):
                part.start()
                if part.W.any() or not control.expired():
                    part.begin()
                else:
                    part.glance()
        while True:
            gap = self._relative_gap()
            finished = None
            waiting = [part for part in self.parts if part.on_the_way() or part.relative_gap() > self.tol]
            if gap > self.tol and all(part.hopeless() for part in waiting):
                finished = "max_iter"
            yield Step(self._record(), gap, finished)
            for part in waiting:
                if not control.expired() and (part.idle or not part.hopeless()):
                    with single_threaded(work):
                        part.step(control)
                        part.evaluate()
            if control.expired():
                # The parameters moved after the last record: report them, then stop.
                yield Step(self._record(), self._relative_gap(), control.reason())
                return

    def _record(self) -> dict[str, Any]:
        return {
            "objective": self.unit * sum(part.reached()[0] for part in self.parts),
            "relative_gap": self._relative_gap(),
            "nonzeros": sum(int(np.count_nonzero(part.W)) for part in self.parts),
            "working_set": max(part.working for part in self.parts),
        }

    def _relative_gap(self) -> float:
        reached = [part.reached() for part in self.parts]
        scale = sum(scale for _, _, scale in reached)
        gap = sum(max(primal - bound, 0.0) for primal, bound, _ in reached)
        return gap / scale if scale > 0 else 0.0

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters in the data's precision, judged as they are returned."""
        dtype = self.problem.view.dtype
        for part in self.parts:
            part.settle(dtype)
            part.write(self.coef, self.intercept)
        primal = self.unit * sum(p.primal for p in self.parts)
        dual = self.unit * sum(p.bound for p in self.parts)
        relative = self._relative_gap()
        worst = max(part.relative_gap() for part in self.parts) if len(self.parts) > 1 else None
        violation = float(np.max([part.violation for part in self.parts]))
        certificate = Certificate(
            status=outcome.status,
            message=_explain(outcome.status, gap_in_words(relative, worst), self.tol, self.parts),
            iterations=outcome.iterations,
            seconds=outcome.seconds,
            primal=primal,
            dual=dual,
            gap=max(primal - dual, 0.0),
            relative_gap=relative,
            worst_relative_gap=worst,
            kkt_violation=None if isnan(violation) else self.unit * violation,
            samples=_samples(self.problem),
        )
        coef, intercept = self.coef.astype(dtype), self.intercept.astype(dtype)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)


def _samples(problem: Problem) -> int:
    return int(problem.view.shape[0] if problem.weights is None else np.count_nonzero(problem.weights > 0))


def _explain(status: str, reached: str, tol: float, parts: list[Part]) -> str:
    nonzeros = sum(int(np.count_nonzero(part.W)) for part in parts)
    weights = f"{nonzeros:,} of {sum(part.W.size for part in parts):,} weights are not 0"
    if status == "converged":
        return f"{reached}; {weights}"
    remedy = {
        "max_iter": "steps crawl: lower C, or scale the features (StandardScaler)"
        if any(part.crawling() for part in parts)
        else "raise max_iter, or tol if the precision of the data allows no less",
        "max_time": "raise max_time, scale the features (StandardScaler), or lower C",
        "interrupted": "fit again to go on",
    }[status]
    return f"{reached}, above tol={tol:g}: {remedy}; {weights}"
