r"""Sequential minimal optimisation of the support vector machines' dual problems.

    min ½ a'Qa + p'a,   Q_ij = s_i s_j k(x_{r_i}, x_{r_j}),   0 ≤ a ≤ u,   s'a = const

``a`` is optimal iff ``m(a) ≤ M(a)`` with ``E = s (Qa + p)``, ``m = max_{up} −E``, ``M = min_{low} −E``, where
``up`` holds the samples whose ``s_i a_i`` may grow and ``low`` those whose it may fall. Each step
changes one pair, chosen by second-order information (Fan, Chen and Lin, JMLR 6, 2005).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads, thread_count
from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision

#: Seconds of one step, so that Ctrl-C and time limits act.
_SLICE = 0.05
#: Variables of all problems together below which threads cost more than they gain.
_TINY = 1000
#: Curvature of a pair, relative to its kernel values, that only an indefinite kernel has.
_NEGATIVE = 1e-5
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


class SequentialMinimal:
    """Solves several dual problems on one kernel matrix, driven by the loop.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix all problems share.
    problems : sequence of DualProblem
        The problems.
    tol : float
        Violation at which a problem is solved.
    max_steps : int
        Most pairs changed per problem; −1: no limit.
    direct : int
        Most variables of a problem that is solved as a whole; larger ones are solved by active sets.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        problems: Sequence[DualProblem],
        *,
        tol: float,
        max_steps: int = -1,
        direct: int = 6000,
    ) -> None:
        self.matrix, self.problems, self.tol, self.max_steps = matrix, list(problems), tol, max_steps
        self.precision = choose_precision(matrix, self.problems, tol)
        self.solutions: list[DualSolution] = []
        for problem in self.problems:
            alpha = np.array(problem.start, dtype=np.float64)
            gradient = np.array(problem.linear, dtype=np.float64)
            if alpha.any():
                gradient += exact_product(matrix, problem, alpha, self.precision)
            self.solutions.append(DualSolution(alpha, gradient))

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each bounded amount of work."""
        pieces = [
            Piece(self.matrix, p, s, tol=self.tol, max_steps=self.max_steps, precision=self.precision)
            for p, s in zip(self.problems, self.solutions, strict=True)
        ]
        run_smo, states = _hot.run_smo, [piece.state for piece in pieces]
        threads = min(len(pieces), thread_count(None))
        work = sum(p.rows.size for p in self.problems)
        while True:
            if work < _TINY:
                run_smo(states, _SLICE)
            else:
                for _ in in_threads(lambda _: run_smo(states, _SLICE), threads):
                    pass
            for piece in pieces:
                piece.read()
            done = all(s.status != "running" for s in self.solutions)
            yield self._step(self._status() if done else None)
            if control.expired():
                return

    def _status(self) -> str:
        found = {s.status for s in self.solutions}
        for status in ("unbounded", "max_iter", "nonconvex"):
            if status in found:
                return status
        return "converged"

    def _step(self, finished: str | None) -> Step:
        violation = max((s.violation for s in self.solutions), default=0.0)
        dual = sum(
            -0.5 * float(s.alpha @ (s.gradient + p.linear))
            for p, s in zip(self.problems, self.solutions, strict=True)
        )
        record = {
            "violation": violation,
            "dual": dual,
            "support_vectors": sum(int(np.count_nonzero(s.alpha)) for s in self.solutions),
            "kernel_entries": self.matrix.entries,
        }
        return Step(record, violation, finished)


def choose_precision(matrix: KernelMatrix, problems: Sequence[DualProblem], tol: float) -> Precision:
    """Return the precision of the kernel rows that steps use."""
    return matrix.precision or "float32"


def exact_product(matrix: KernelMatrix, problem: DualProblem, alpha: Array, precision: Precision) -> Array:
    """Return ``Qa`` for a problem."""
    used = np.flatnonzero(alpha)
    weights = (problem.signs[used] * alpha[used])[:, None]
    product = matrix.product(problem.rows[used], weights, problem.rows, precision)
    return np.asarray(problem.signs * product[:, 0])


class Piece:
    """A problem as the compiled loop works on it.

    The loop keeps ``E = s (Qa + p)``. Variables of the same samples share kernel rows (regression), and where
    the sums over either sign are kept, the positive variables come first.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        problem: DualProblem,
        solution: DualSolution,
        *,
        tol: float,
        max_steps: int,
        precision: Precision,
    ) -> None:
        self.matrix, self.problem, self.solution = matrix, problem, solution
        rows, m = np.asarray(problem.rows, dtype=np.int64), problem.rows.size
        half = m // 2
        copies = 2 if m % 2 == 0 and m and np.array_equal(rows[:half], rows[half:]) else 1
        middle, self.order = (half if copies == 2 else m), None
        if problem.separate and copies == 1:
            self.order = np.argsort(-problem.signs, kind="stable")
            middle = int(np.count_nonzero(problem.signs > 0))
            rows = rows[self.order]
        points = rows[: m // copies]
        self.signs = self._sorted(problem.signs)
        self.upper = self._sorted(problem.upper)
        self.alpha = self._sorted(solution.alpha)
        self.E = self.signs * self._sorted(solution.gradient)
        self.diag = matrix.diag[points]
        everything = points.size == matrix.shape[0] and np.array_equal(points, np.arange(points.size))
        panels = values = None
        if matrix.native is not None:
            panels = matrix.panels(precision)
            panels = panels if everything else panels.take(points)
        else:
            values = np.ascontiguousarray(matrix.block(points, points), dtype=precision)
        self.kept = (panels, values)
        make = _hot.SmoFloat32 if precision == "float32" else _hot.SmoFloat64
        self.state = make(
            panels=panels,
            matrix=values,
            copies=copies,
            middle=middle,
            separate=problem.separate,
            signs=self.signs,
            upper=self.upper,
            diag=self.diag,
            alpha=self.alpha,
            E=self.E,
            tol=tol,
            most_steps=max_steps,
            row_bytes=matrix.cache_bytes,
        )
        self.entries = 0

    def _sorted(self, values: Array) -> Array:
        if self.order is not None:
            values = values[self.order]
        return np.ascontiguousarray(values, dtype=np.float64)

    def read(self) -> None:
        """Bring the solution up to date."""
        solution, state = self.solution, self.state
        if self.order is None:
            solution.alpha, solution.gradient = self.alpha, self.signs * self.E
        else:
            solution.alpha[self.order] = self.alpha
            solution.gradient[self.order] = self.signs * self.E
        solution.violation, solution.steps = state.violation, state.steps
        solution.status = _STATUS[state.status]
        if solution.status == "converged" and state.worst_curvature < -_NEGATIVE:
            solution.status = "nonconvex"
        self.matrix.entries += state.entries - self.entries
        self.entries = state.entries
