"""All problems of a fit at once, where they are small: one kernel matrix, and one call for all of them.

The steps are those of :mod:`separatrix.solvers.smo`, followed by steps on all free variables at once, within
a compiled loop over the problems (`_hot/small_smo.hpp`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads, thread_count
from separatrix.solvers._dual import NEGATIVE, Work, dot
from separatrix.solvers._loop import Control, OutOfTimeError, Step
from separatrix.solvers.dual_problems import STATUS, DualProblems, DualSolutions
from separatrix.solvers.kernel_matrix import KernelMatrix

#: Most samples of which one kernel matrix is made for several problems, and of a problem.
_SHARED, _LARGEST = 3000, 500
#: Seconds of one step, so that Ctrl-C and time limits act.
_SLICE = 0.05
#: Variables of all problems together below which threads cost more than they gain.
_TINY = 5000
#: Violation, in units of p, from which on the free variables move together.
_COARSE = 1e-2


class SmallProblems:
    """Solves many small dual problems on one kernel matrix, driven by the loop.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix that all problems share.
    problems : DualProblems
        The problems.
    tol : float
        Violation at which a problem is solved.
    max_steps : int
        Most pairs changed per problem.
    """

    def __init__(self, matrix: KernelMatrix, problems: DualProblems, *, tol: float, max_steps: int) -> None:
        self.matrix, self.problems, self.tol = matrix, problems, tol
        self.solutions = DualSolutions(problems)
        self._max_steps = max_steps
        self._loop: Any = None

    @staticmethod
    def suits(matrix: KernelMatrix, problems: DualProblems) -> bool:
        """Return whether problems are small enough to be solved in this way."""
        n = matrix.shape[0]
        return (
            n <= (_LARGEST if len(problems) == 1 else _SHARED)
            and problems.longest // problems.copies <= _LARGEST
            and 8 * n * n <= max(matrix.cache_bytes / 2, 1 << 21)
            and bool(problems.upper.max() < np.inf)
        )

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each bounded amount of work."""
        p, found = self.problems, self.solutions
        threads = 1 if p.rows.size < _TINY else min(len(p), thread_count(None))
        self.matrix.expired = control.expired
        while True:
            try:
                if self.advance(threads):
                    break
            except OutOfTimeError:
                return
            yield Step(self._record(), np.inf)
            if control.expired():
                return
        if found.worst_curvature.min() < -NEGATIVE:
            indefinite = (found.status == 1) & (found.worst_curvature < -NEGATIVE)
            found.status[indefinite] = STATUS.index("nonconvex")
        yield Step(self._record(), float(found.violation.max()), "converged")

    def advance(self, threads: int = 1) -> bool:
        """Do a bounded amount of work; return whether all problems have ended."""
        if self._loop is None:
            self._loop = self._make()
        loop = self._loop
        loop.rewind()
        if threads == 1:
            loop.run(_SLICE)
        else:
            for _ in in_threads(lambda _: loop.run(_SLICE), threads):
                pass
        return bool(self.solutions.status.min() > 0)

    def _make(self) -> Any:
        """Return the compiled loop."""
        p, found = self.problems, self.solutions
        # The kernel values of a problem lie side by side: samples of a class follow each other.
        samples, places = p.order
        self.matrix.check_time()
        values = np.ascontiguousarray(self.matrix.block(samples, samples, "float64"), dtype=np.float64)
        starts, rows = (np.ascontiguousarray(part, dtype=np.int64) for part in (p.offsets, places))
        signs, upper = (np.ascontiguousarray(part, dtype=np.float64) for part in (p.signs, p.upper))
        # The loop points into these as long as it works.
        self._arrays = values, starts, rows, signs, upper
        return _hot.SmallSmo(
            values=values,
            starts=starts,
            rows=rows,
            signs=signs,
            upper=upper,
            alpha=found.alpha,
            gradient=found.gradient,
            copies=p.copies,
            separate=p.separate,
            largest=p.longest,
            tol=self.tol,
            coarse=_COARSE * (float(np.add.reduce(np.abs(p.linear))) / p.rows.size or 1.0),
            most_steps=self._max_steps,
            steps=found.steps,
            violation=found.violation,
            worst_curvature=found.worst_curvature,
            status=found.status,
        )

    def settle(self) -> None:
        """Give problems that time was not enough for a gradient that belongs to their start."""
        found = self.solutions
        if found.status.min() >= 0:
            return
        for k in np.flatnonzero(found.status < 0).tolist():
            if found.alpha[self.problems.part(k)].any():
                solution = found[k]
                work = Work(self.matrix, self.problems[k], solution)
                solution.known = np.empty(0, dtype=np.int64)
                work.begin("float64", glance=self.matrix.native is None and self.matrix.expired())
                found.put(k, solution)
            found.status[k] = 0

    def _record(self) -> dict[str, float]:
        found, p = self.solutions, self.problems
        return {
            "violation": float(found.violation.max()),
            "dual": -0.5 * dot(found.alpha, found.gradient + p.linear),
            "support_vectors": int(np.count_nonzero(found.alpha)),
            "kernel_entries": self.matrix.entries,
        }
