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

from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.kernel_matrix import KernelMatrix

#: Curvature that a pair with none or a negative one is given.
_TAU = 1e-12


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
    """

    def __init__(
        self, matrix: KernelMatrix, problems: Sequence[DualProblem], *, tol: float, max_steps: int = -1
    ) -> None:
        self.matrix, self.problems, self.tol, self.max_steps = matrix, list(problems), tol, max_steps
        self.solutions: list[DualSolution] = []
        self.entries = 0
        for problem in self.problems:
            alpha = np.array(problem.start, dtype=np.float64)
            used = np.flatnonzero(alpha)
            gradient = np.array(problem.linear, dtype=np.float64)
            if used.size:
                weights = (problem.signs[used] * alpha[used])[:, None]
                product = matrix.product(problem.rows[used], weights, problem.rows)
                gradient += problem.signs * product[:, 0]
            self.solutions.append(DualSolution(alpha, gradient))

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each bounded amount of work."""
        for problem, solution in zip(self.problems, self.solutions, strict=True):
            solver = _Plain(self.matrix, problem, solution, self.tol, self.max_steps)
            while solution.status == "running":
                solver.advance(1000)
                self.entries += solver.entries
                solver.entries = 0
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
            "kernel_entries": self.entries,
        }
        return Step(record, violation, finished)


class _Plain:
    """One problem, pair by pair."""

    def __init__(
        self, matrix: KernelMatrix, problem: DualProblem, solution: DualSolution, tol: float, max_steps: int
    ) -> None:
        self.matrix, self.problem, self.solution = matrix, problem, solution
        self.tol, self.max_steps, self.entries = tol, max_steps, 0
        self.diag = matrix.diag[problem.rows]
        self.kept: dict[int, Array] = {}
        self.used = 0.0
        self.negative = False

    def _row(self, i: int) -> Array:
        row = self.kept.get(i)
        if row is None:
            rows = self.problem.rows
            row = self.matrix.block(rows[i : i + 1], rows)[0].astype(np.float64)
            self.entries += rows.size
            if self.used + row.nbytes > self.matrix.cache_bytes:
                self.kept.clear()
                self.used = 0.0
            self.kept[i] = row
            self.used += row.nbytes
        return row

    def advance(self, count: int) -> None:
        s, u = self.problem.signs, self.problem.upper
        solution, curvature_ij = self.solution, 0.0
        a = solution.alpha
        E = s * solution.gradient
        for _ in range(count):
            up = np.where(s > 0, a < u, a > 0)
            low = np.where(s > 0, a > 0, a < u)
            pairs = []
            worst = -np.inf
            for sign in (1, -1) if self.problem.separate else (0,):
                of_sign = (s == sign) if sign else np.ones(s.shape, dtype=bool)
                candidates = np.flatnonzero(up & of_sign)
                others = low & of_sign
                if not candidates.size or not others.any():
                    continue
                i = int(candidates[np.argmin(E[candidates])])
                worst = max(worst, float(E[others].max() - E[i]))
                pairs.append((i, others))
            solution.violation = max(worst, 0.0)
            if worst <= self.tol:
                solution.status = "nonconvex" if self.negative else "converged"
                break
            if 0 <= self.max_steps <= solution.steps:
                solution.status = "max_iter"
                break
            best, chosen = -np.inf, (0, 0)
            for i, others in pairs:
                b = E - E[i]
                curvature = self.diag[i] + self.diag - 2 * self._row(i)
                gain = np.where(others & (b > 0), b * b / np.where(curvature > 0, curvature, _TAU), -np.inf)
                j = int(np.argmax(gain))
                if gain[j] > best:
                    best, chosen = float(gain[j]), (i, j)
            i, j = chosen
            curvature_ij = float(self.diag[i] + self.diag[j] - 2 * self._row(i)[j])
            self.negative |= curvature_ij < -1e-7 * float(self.diag[i] + self.diag[j])
            delta = (E[j] - E[i]) / (curvature_ij if curvature_ij > 0 else _TAU)
            delta = min(delta, u[i] - a[i] if s[i] > 0 else a[i], a[j] if s[j] > 0 else u[j] - a[j])
            if not np.isfinite(delta):
                solution.status = "unbounded"
                break
            for k, change in ((i, delta), (j, -delta)):
                a[k] = min(max(a[k] + s[k] * change, 0.0), u[k])
            E += delta * (self._row(i) - self._row(j))
            solution.steps += 1
        solution.gradient = s * E
