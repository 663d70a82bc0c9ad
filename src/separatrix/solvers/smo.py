r"""Sequential minimal optimisation of the support vector machines' dual problems.

    min ½ a'Qa + p'a,   Q_ij = s_i s_j k(x_{r_i}, x_{r_j}),   0 ≤ a ≤ u,   s'a = const

``a`` is optimal iff ``m(a) ≤ M(a)`` with ``E = s (Qa + p)``, ``m = max_{up} −E``, ``M = min_{low} −E``, where
``up`` holds the samples whose ``s_i a_i`` may grow and ``low`` those whose it may fall. Each step
changes one pair, chosen by second-order information (Fan, Chen and Lin, JMLR 6, 2005).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads, thread_count
from separatrix.data.view import Array
from separatrix.solvers._dual import DualProblem, DualSolution, Work
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.active_set import ActiveSet
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision

#: Seconds of one step, so that Ctrl-C and time limits act.
_SLICE = 0.05
#: Variables of all problems together below which threads cost more than they gain.
_TINY = 1000


__all__ = ["DualProblem", "DualSolution", "SequentialMinimal"]


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
        self.direct = direct
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
        works = [Work(self.matrix, p, s) for p, s in zip(self.problems, self.solutions, strict=True)]
        small = [work for work in works if work.problem.rows.size <= self.direct]
        for _ in self._whole(small):
            yield self._step()
            if control.expired():
                return
        for work in works:
            if work.problem.rows.size <= self.direct:
                continue
            rounds = ActiveSet(work, precision=self.precision, tol=self.tol, max_steps=self.max_steps)
            for _ in rounds.advance(_SLICE):
                yield self._step()
                if control.expired():
                    return
        yield self._step()

    def _whole(self, works: list[Work]) -> Iterator[None]:
        """Solve problems with whole kernel rows, one in each thread."""
        if not works:
            return
        states = [
            work.state(
                self.precision,
                values=None if self.matrix.native else self._block(work),
                tol=self.tol,
                max_steps=self.max_steps,
                row_bytes=self.matrix.cache_bytes / 2,
            )
            for work in works
        ]
        run_smo, loops = _hot.run_smo, [state.loop for state in states]
        threads = 1 if sum(work.points.size for work in works) < _TINY else min(len(works), thread_count(None))
        while True:
            if threads == 1:
                run_smo(loops, _SLICE)
            else:
                for _ in in_threads(lambda _: run_smo(loops, _SLICE), threads):
                    pass
            for work, state in zip(works, states, strict=True):
                work.read(work.alpha, work.E, state.loop.violation)
                work.solution.steps = state.loop.steps
                work.worst_curvature = state.loop.worst_curvature
                if state.status != "running":
                    work.finish(state.status)
                elif work.hopeless():
                    work.finish("unbounded")
            if all(work.solution.status != "running" for work in works):
                self.matrix.entries += sum(loop.entries for loop in loops)
                return
            yield

    def _block(self, work: Work) -> Array:
        return np.ascontiguousarray(self.matrix.block(work.points, work.points), dtype=self.precision)

    def _status(self) -> str:
        found = {s.status for s in self.solutions}
        for status in ("unbounded", "max_iter", "nonconvex"):
            if status in found:
                return status
        return "converged"

    def _step(self) -> Step:
        done = all(s.status != "running" for s in self.solutions)
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
        return Step(record, violation, self._status() if done else None)


def choose_precision(matrix: KernelMatrix, problems: Sequence[DualProblem], tol: float) -> Precision:
    """Return the precision of the kernel rows that steps use."""
    return matrix.precision or "float32"


def exact_product(matrix: KernelMatrix, problem: DualProblem, alpha: Array, precision: Precision) -> Array:
    """Return ``Qa`` for a problem."""
    used = np.flatnonzero(alpha)
    weights = (problem.signs[used] * alpha[used])[:, None]
    product = matrix.product(problem.rows[used], weights, problem.rows, precision)
    return np.asarray(problem.signs * product[:, 0])
