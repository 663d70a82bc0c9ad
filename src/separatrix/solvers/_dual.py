"""The dual problems of support vector machines, and what a solver holds of one while it works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.view import Array
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision

#: Curvature of a pair, relative to its kernel values, that only an indefinite kernel has.
_NEGATIVE = 1e-5
#: Squared margin, relative to the kernel values, below which classes count as not separable.
_NO_MARGIN = 1e-12
_STATUS = ("running", "converged", "max_iter", "unbounded")


@dataclass(frozen=True, eq=False)
class DualProblem:
    """``min ½ a'Qa + p'a`` over ``0 ≤ a ≤ u``, ``s'a = s'start``; ``Q_ij = s_i s_j k(x_{r_i}, x_{r_j})``.

    Attributes
    ----------
    rows : ndarray of intp, shape (m,)
        Which samples; they may repeat.
    signs : ndarray of shape (m,)
        ``s``: +1 or −1.
    linear : ndarray of shape (m,)
        ``p``.
    upper : ndarray of shape (m,)
        ``u``; infinity is allowed (hard margin).
    start : ndarray of shape (m,)
        A feasible start.
    separate : bool
        Whether ``Σ a`` stays too, that is the sums over either sign: the nu-problems.
    """

    rows: Array
    signs: Array
    linear: Array
    upper: Array
    start: Array
    separate: bool = False


@dataclass
class DualSolution:
    """Where a problem stands.

    Attributes
    ----------
    alpha, gradient : ndarray of shape (m,)
        A feasible point, and ``Qa + p`` there.
    violation : float
        ``m(a) − M(a)``; for separate sums the larger of the two signs'.
    steps : int
        Pairs changed.
    status : str
        "running", "converged", "max_iter", "nonconvex" or "unbounded".
    """

    alpha: Array
    gradient: Array
    violation: float = np.inf
    steps: int = 0
    status: str = "running"


class Work:
    """A problem in the order in which the compiled loop wants it, with ``E = s (Qa + p)`` instead of a gradient.

    Variables of the same samples share kernel rows (regression: the second half repeats the first), and
    where the sums over either sign are kept the positive variables come first.
    """

    def __init__(self, matrix: KernelMatrix, problem: DualProblem, solution: DualSolution) -> None:
        self.matrix, self.problem, self.solution = matrix, problem, solution
        rows, m = np.asarray(problem.rows, dtype=np.int64), problem.rows.size
        half = m // 2
        self.copies = 2 if m % 2 == 0 and m and np.array_equal(rows[:half], rows[half:]) else 1
        self.separate, self.order = problem.separate, None
        self.middle = half if self.copies == 2 else m
        if self.separate and self.copies == 1:
            self.order = np.argsort(-problem.signs, kind="stable")
            self.middle = int(np.count_nonzero(problem.signs > 0))
            rows = rows[self.order]
        self.points = rows[: m // self.copies]
        self.signs, self.upper = self._sorted(problem.signs), self._sorted(problem.upper)
        self.alpha, self.E = self._sorted(solution.alpha), self.signs * self._sorted(solution.gradient)
        self.diag = matrix.diag[self.points]
        n = matrix.shape[0]
        self.everything = self.points.size == n and np.array_equal(self.points, np.arange(n))
        self.worst_curvature = 0.0

    def _sorted(self, values: Array) -> Array:
        if self.order is not None:
            values = values[self.order]
        return np.ascontiguousarray(values, dtype=np.float64)

    def panels(self, precision: Precision, points: Array | None = None) -> Any:
        """Return the packed samples of all points, or of some."""
        panels = self.matrix.panels(precision)
        if points is None:
            return panels if self.everything else panels.take(self.points)
        return panels.take(self.points[points])

    def state(
        self,
        precision: Precision,
        *,
        points: Array | None = None,
        values: Array | None = None,
        tol: float,
        max_steps: int,
        row_bytes: float,
    ) -> State:
        """Return what the compiled loop needs for all points or for some, with their kernel block if given."""
        n = self.points.size
        if points is None:
            variables, middle, count = slice(None), self.middle, n
            alpha, E = self.alpha, self.E
        else:
            variables = points if self.copies == 1 else np.concatenate([points, points + n])
            count = points.size
            middle = count if self.copies == 2 else int(np.searchsorted(points, self.middle))
            alpha, E = self.alpha[variables], self.E[variables]
        return State(
            self, precision, variables, points, values, middle, alpha, E, tol, max_steps, row_bytes
        )

    def read(self, alpha: Array, E: Array, violation: float) -> None:
        """Bring the solution up to date."""
        solution, gradient = self.solution, self.signs * E
        if self.order is None:
            solution.alpha, solution.gradient = alpha, gradient
        else:
            solution.alpha, solution.gradient = np.empty_like(alpha), np.empty_like(alpha)
            solution.alpha[self.order], solution.gradient[self.order] = alpha, gradient
        solution.violation = violation

    def finish(self, status: str) -> None:
        """Say how the problem ended."""
        indefinite = status == "converged" and self.worst_curvature < -_NEGATIVE
        self.solution.status = "nonconvex" if indefinite else status

    def hopeless(self) -> bool:
        """Return whether variables without an upper bound grow for ever: the classes are not separable.

        ``w'w / (Σa)²`` is at least a quarter of the squared distance of the classes' convex hulls.
        """
        solution = self.solution
        if not np.isinf(self.upper).any():
            return False
        total = float(solution.alpha.sum())
        square = float(solution.alpha @ (solution.gradient - self.problem.linear))
        scale = float(np.abs(self.diag).mean())
        return total > 0 and square <= _NO_MARGIN * scale * total * total


class State:
    """Part of a problem in the hands of the compiled loop, with the arrays that it points into."""

    def __init__(
        self,
        work: Work,
        precision: Precision,
        variables: Any,
        points: Array | None,
        values: Array | None,
        middle: int,
        alpha: Array,
        E: Array,
        tol: float,
        max_steps: int,
        row_bytes: float,
    ) -> None:
        self.variables, self.alpha, self.E = variables, alpha, E
        self.before = alpha.copy()
        self.signs, self.upper = work.signs[variables], work.upper[variables]
        self.diag = work.diag if points is None else work.diag[points]
        self.values = values
        self.panels = work.panels(precision, points) if values is None else None
        make = _hot.SmoFloat32 if precision == "float32" else _hot.SmoFloat64
        self.loop = make(
            panels=self.panels,
            matrix=values,
            copies=work.copies,
            middle=middle,
            separate=work.separate,
            signs=self.signs,
            upper=self.upper,
            diag=self.diag,
            alpha=alpha,
            E=E,
            tol=tol,
            most_steps=max_steps,
            row_bytes=row_bytes,
        )

    @property
    def status(self) -> str:
        """Return how the loop ended: "running", "converged", "max_iter" or "unbounded"."""
        return _STATUS[self.loop.status]
