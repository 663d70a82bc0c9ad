r"""Hard margins: ``min ½‖w‖²`` subject to ``y_i (w·φ(x_i) + b) ≥ 1``, or the proof that no such ``w`` exists.

The nearest points of the two classes' convex hulls (`hulls.py`) are this problem's dual: with weights ``a``
of either hull and ``w = Σ y_i a_i φ(x_i)``, the multipliers are ``α = 2 a/‖w‖²``. Where the points coincide
there is no hyperplane, and ``a`` is the witness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from separatrix.data.memory import CsrView, DenseView
from separatrix.data.view import Array
from separatrix.kernels import Linear
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.hulls import LinearRows, NearestPoints, Similarities
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import Machines, kkt_violation, machine
from separatrix.solvers.smo import DualProblem, DualSolution


class HardMargins:
    """Solves binary problems with ``C = ∞`` one after the other, driven by the loop.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix that all problems share.
    problems : sequence of DualProblem
        Classification problems with infinite upper bounds.
    tol : float
        Relative gap between the margin found and the widest possible.

    Attributes
    ----------
    solutions : list of DualSolution
        ``α`` and its gradient; status "unbounded" where the classes are not separable: the weights of the
        coinciding points then stand in for ``α``.
    machines : Machines
        What the solutions mean.
    distances : list of float
        Distance of the hulls found, 0 up to rounding where they meet.
    """

    def __init__(self, matrix: KernelMatrix, problems: Sequence[DualProblem], *, tol: float) -> None:
        self.matrix, self.problems, self.tol = matrix, list(problems), tol
        rows: Similarities = matrix
        if isinstance(matrix.kernel, Linear) and isinstance(matrix.samples, DenseView | CsrView):
            rows = LinearRows(matrix.samples)  # explicit vectors keep twice the digits
        self.searches = [
            NearestPoints(rows, p.rows[p.signs > 0], p.rows[p.signs < 0], tol=tol) for p in self.problems
        ]
        self.done = 0
        self.rounds = [0] * len(self.problems)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each round of a search."""
        while True:
            search, finished = self.searches[self.done], None
            for step in search.steps(control):
                self.rounds[self.done] += 1
                finished, step.finished = step.finished, None
                if finished is None and step.measure <= self.tol:
                    finished = "converged"
                if finished is not None:
                    break
                yield step
            if finished is None:  # told to stop
                return
            self.done += 1
            last = self.done == len(self.searches)
            step.finished = self._status() if last else None
            yield step
            if last:
                return

    def _status(self) -> str:
        return "inseparable" if any(search.meets for search in self.searches) else "converged"

    @property
    def solutions(self) -> list[DualSolution]:
        """Return the multipliers of all problems."""
        found = []
        for problem, search, rounds in zip(self.problems, self.searches, self.rounds, strict=True):
            # The widest margin is 2/‖w‖ of the scaled weights; coinciding points cannot be scaled.
            scale = 1.0 if search.meets else 2.0 / search.square
            alpha, gradient = np.empty(problem.rows.size), np.empty(problem.rows.size)
            order = np.concatenate([np.flatnonzero(problem.signs > 0), np.flatnonzero(problem.signs < 0)])
            alpha[order], gradient[order] = scale * search.a, scale * search.gradient - 1.0
            gap = max(0.0, 1.0 - search.lower / search.upper) if search.upper > 0 else 0.0
            status = "unbounded" if search.meets else "converged" if gap <= self.tol else "running"
            violation = kkt_violation(problem, alpha, gradient)
            found.append(DualSolution(alpha, gradient, violation=violation, steps=rounds, status=status))
        return found

    @property
    def machines(self) -> Machines:
        """Return what the present solutions mean."""
        pairs = zip(self.problems, self.solutions, strict=True)
        return Machines.of([machine(p, solution, self.matrix) for p, solution in pairs])

    @property
    def iterations(self) -> Array:
        """Return the rounds of each search."""
        return np.array(self.rounds)

    @property
    def distances(self) -> list[float]:
        """Return the distance of the two hulls of each problem."""
        return [search.upper for search in self.searches]
