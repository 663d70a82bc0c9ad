"""Part of a dual problem in the hands of the compiled loop."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.view import Array
from separatrix.solvers.kernel_matrix import Precision

#: What a step costs that is taken in rounds, in variables that one outside of them looks at.
_ROUND = 512
_STATUS = ("running", "converged", "max_iter", "unbounded")


class State:
    """Part of a problem in the hands of the compiled loop, with the arrays that it points into."""

    def __init__(
        self,
        points: Array | None,
        variables: Any,
        alpha: Array,
        E: Array,
        precision: Precision,
        **settings: Any,
    ) -> None:
        self.points, self.variables = points, variables
        self.alpha, self.E, self.kept = alpha, E, settings
        self.refinements = self.polished = self.newton_at = self.exact_at = 0
        #: Steps that the problem took before.
        self.before = 0
        #: The solver with all kernel values that has the problem in hand, or has had it.
        self.whole: Any = None
        self.unit = float(np.finfo(precision).epsneg)
        make = _hot.SmoFloat32 if precision == "float32" else _hot.SmoFloat64
        self.loop = make(alpha=alpha, E=E, **settings)
        # The violation is no larger; and steps and violation at the last pause.
        self.first = float(E.max() - E.min()) if E.size else 0.0
        self.paused = 0, self.first

    @property
    def width(self) -> int:
        """Return how many variables a step looks at, or what it costs in that unit."""
        return min(self.alpha.size, _ROUND) if self.loop.in_rounds else self.alpha.size

    @property
    def steps(self) -> int:
        """Return the steps of the problem so far."""
        return self.before + int(self.loop.steps)

    def steps_for(self, factor: float) -> float:
        """Return about how many steps a smaller tolerance takes, if they are worth what all so far were."""
        fallen = self.first / self.loop.tol
        return self.loop.steps * float(-np.log(factor) / np.log(fallen)) if fallen > 1 else np.inf

    def steps_left(self) -> float:
        """Return about how many steps are left if the violation goes on falling as since the last pause."""
        (before, above), now = self.paused, (self.loop.steps, self.loop.violation)
        self.paused, (steps, violation) = now, now
        if not self.loop.tol < violation < above:
            return np.inf
        return (steps - before) * float(np.log(violation / self.loop.tol) / np.log(above / violation))

    def product(self, points: Array, change: Array) -> Array:
        """Return what a change of ``s a`` of some points adds to E, by the loop's own kernel rows."""
        sums = np.zeros(self.kept["diag"].size)
        self.loop.add(points, change, sums)
        return np.tile(sums, self.kept["copies"])

    def drift(self) -> float:
        """Return about how far steps have led E from what it stands for: each rounds it once, either way."""
        steps = 0 if self.loop.in_rounds else self.loop.steps - self.exact_at
        return self.unit * float(self.E.max() - self.E.min()) * sqrt(steps) if steps else 0.0

    @property
    def status(self) -> str:
        """Return how the loop ended: "running", "converged", "max_iter" or "unbounded"."""
        return _STATUS[self.loop.status]
