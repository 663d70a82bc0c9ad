r"""Crammer and Singer's problem of two classes, which is that of one hinge.

    min ½‖w₁‖² + ½‖w₂‖² + C Σ_i s_i max(0, 1 − y_i (w₂ − w₁)·x_i)

Of all pairs with the same difference ``w`` the least is ``w₂ = −w₁ = w/2``, so that the objective is half of
``½‖w‖² + 2C Σ_i s_i max(0, 1 − y_i w·x_i)``: whatever solves that solves this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.data.view import Array
from separatrix.losses import LOSSES
from separatrix.problem import Problem, Result
from separatrix.solvers._loop import Control, Outcome, Step


def one_hinge(problem: Problem) -> Problem:
    """Return the problem of the difference of the two classes' weights."""
    return replace(problem, codes=np.array([[-1], [1]], dtype=np.int8), joint=False, loss=LOSSES["hinge"])


class JointPair:
    """Solves the joint problem of two classes by a solver of :func:`one_hinge` with twice the C."""

    def __init__(self, solver: Any) -> None:
        self.solver = solver

    @property
    def coef(self) -> Array:
        """Return the weights of both classes."""
        return _halves(self.solver.coef)

    @property
    def intercept(self) -> Array:
        """Return the intercepts of both classes."""
        return _halves(self.solver.intercept)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield the solver's steps, their objective in units of the joint problem."""
        for step in self.solver.steps(control):
            if step.record.get("objective") is not None:
                step.record["objective"] *= 0.5
            yield step

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters of both classes and what they prove."""
        result: Result = self.solver.finish(outcome)
        found = result.certificate
        primal, dual, gap = (
            None if value is None else 0.5 * value for value in (found.primal, found.dual, found.gap)
        )
        return replace(
            result,
            coef=_halves(result.coef),
            intercept=_halves(result.intercept),
            certificate=replace(found, primal=primal, dual=dual, gap=gap),
        )


def _halves(difference: Array) -> Array:
    return np.asarray(np.concatenate([-difference, difference]) * difference.dtype.type(0.5))
