r"""Ridge regression with weights that may not be negative, solved exactly.

    min over w ≥ 0, b of   Σ_i s_i (t_i − w·x_i − b)² + α ‖w‖²

The triangle ``R`` of the centred data (:mod:`separatrix.solvers.orthogonal`) with the penalty's rows
below it turns each column into a small problem ``min ‖R w − z‖, w ≥ 0``, which the active-set method
of Lawson and Hanson (1974) ends in finitely many steps: at the solution every positive weight has
gradient 0, and no weight that is 0 has a gradient that would raise it.

Certificate for ``α > 0``: the residuals ``e`` are a dual point. With ``h = Σ s_i (x_i − μ) e_i`` the gap is

    Σ_j  (h_j − α w_j)²/α  where h_j ≥ 0,     α w_j² − 2 h_j w_j  where h_j < 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.orthogonal import Orthogonal

#: Most features: the method keeps a square matrix of them.
LARGEST = 4096


class Nonnegative(Orthogonal):
    """The active-set route."""

    description = "the active-set method for weights ≥ 0"
    route = "positive"

    def steps(self, control: Control) -> Iterator[Step]:
        """Solve all columns, then judge."""
        from scipy.optimize import nnls  # its package takes longer to load than a small fit to run

        p = self.problem
        if not self._in_time(control, self._prepare):
            return
        Z = self._targets
        for column in range(p.columns):
            R, z = self._triangle, Z[:, column]
            alpha = float(p.alpha[column])
            if alpha > 0:
                R = np.concatenate([R, np.diag(np.sqrt(alpha) / self.scale)])
                z = np.concatenate([z, np.zeros(self.scale.shape[0])])
            w = nnls(R, z, maxiter=100 * max(10, R.shape[1]))[0]
            self.W[:, column] = np.where(self.constant, 0.0, w / self.scale)
            if control.expired():
                break
        judged = self._judge()
        measure = self._bound(judged.gradient) if np.all(p.alpha > 0) else None
        self.gap = None if measure is None else measure + self._slack_gap(judged)
        yield Step({"objective": self.objective}, 0.0, control.reason() or "converged")

    def _prepare(self) -> None:
        self._targets = self._reduce()

    def _bound(self, gradient: Array) -> float:
        alpha = self.problem.alpha
        h = gradient + alpha * self.W
        return float(
            np.where(h >= 0, np.square(gradient) / alpha, alpha * np.square(self.W) - 2 * h * self.W).sum()
        )
