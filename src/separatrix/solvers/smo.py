r"""Sequential minimal optimisation of the support vector machines' dual problems.

    min ½ a'Qa + p'a,   Q_ij = s_i s_j k(x_{r_i}, x_{r_j}),   0 ≤ a ≤ u,   s'a = const

``a`` is optimal iff ``m(a) ≤ M(a)`` with ``E = s (Qa + p)``, ``m = max_{up} −E``, ``M = min_{low} −E``, where
``up`` holds the samples whose ``s_i a_i`` may grow and ``low`` those whose it may fall. Each step
changes one pair, chosen by second-order information (Fan, Chen and Lin, JMLR 6, 2005).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from separatrix.data.threads import in_threads, thread_count
from separatrix.data.view import Array
from separatrix.solvers._class_rows import ClassRows
from separatrix.solvers._dual import Work, dot, run_loops
from separatrix.solvers._dual_problem import DualProblem, DualSolution
from separatrix.solvers._dual_state import State
from separatrix.solvers._interior import interior, patient, value
from separatrix.solvers._loop import Control, OutOfTimeError, Step
from separatrix.solvers._newton import newton, newton_cost
from separatrix.solvers.active_set import MUCH, PATIENCE, POLISHES, ActiveSet
from separatrix.solvers.dual_problems import STATUS, DualProblems
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision
from separatrix.solvers.small_problems import SmallProblems

#: Seconds of one step, so that Ctrl-C and time limits act.
_SLICE = 0.05
#: Variables of all problems together below which threads cost more than they gain.
_TINY = 1000
#: Samples up to which kernel rows are kept in double precision: they cost nothing then.
_DOUBLE = 512
#: Largest kernel value in single precision, and the inverse of the least distance.
_LARGEST = 1e30
#: Steps per point after which the free variables take a Newton step together, if steps look at all points.
_QUOTA, _LEAST_QUOTA = 5, 5000
#: Most points of a problem that is solved with all kernel values in double, once such steps have not been
#: enough; the part of the tolerance it is solved to, and the most steps, in units of that number.
_WHOLE, _CLOSE, _WHOLE_QUOTAS = 1500, 1e-4, 20
#: Steps times variables up to which more steps cost less than a Newton step.
_CHEAP = 4e6
#: Rounding unit of kernel rows in single precision.
_SINGLE = float(np.finfo(np.float32).epsneg)
#: How often the gradient is computed anew before kernel rows are.
_REFINEMENTS = 6
#: Share of the tolerance that rounding errors of the gradient may have.
_TRUST = 0.1
#: Share of the gap asked for that they may make.
_TRUST_GAP = 0.1


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
    active : int
        Least number of active points.
    gap : float
        Relative duality gap above which the free variables of a solved problem move on together.
    gradients : sequence of ndarray or None
        ``Qa + p`` at the starts, where it is known.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        problems: Sequence[DualProblem],
        *,
        tol: float,
        max_steps: int = -1,
        direct: int = 6000,
        active: int = 3000,
        gap: float = np.inf,
        gradients: Sequence[Array] | None = None,
    ) -> None:
        self.matrix, self.problems, self.tol, self.max_steps = matrix, list(problems), tol, max_steps
        self.direct, self.active, self.gap = direct, active, gap
        self.precision = choose_precision(matrix)
        self.solutions: list[DualSolution] = []
        self._sums: list[tuple[Any, float, int]] = [((), 0.0, 0)] * len(self.problems)
        for number, problem in enumerate(self.problems):
            alpha = np.array(problem.start, dtype=np.float64)
            gradient = problem.linear if gradients is None else gradients[number]
            self.solutions.append(DualSolution(alpha, np.array(gradient, dtype=np.float64)))
            if alpha.any() and gradients is None:  # it is computed when time is counted
                self.solutions[-1].known = np.empty(0, dtype=np.int64)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each bounded amount of work."""
        self.matrix.expired = control.expired
        try:
            yield from self._steps(control)
        except OutOfTimeError:
            return

    def _steps(self, control: Control) -> Iterator[Step]:
        works = [Work(self.matrix, p, s) for p, s in zip(self.problems, self.solutions, strict=True)]
        for work in works:
            work.expired = control.expired
        small = [work for work in works if self._is_small(work)]
        for work in small:
            if work.known is not None and not work.begin("float64"):
                return
        for _ in self._whole(small):
            yield self._step()
            if control.expired():
                return
        if any(work.solution.status == "running" for work in small):  # there was no time for what they need
            return
        for work in works:
            if self._is_small(work):
                continue
            if work.known is not None:
                work.begin(self.precision, glance=True)
            rounds = ActiveSet(
                work,
                precision=self.precision,
                tol=self.tol,
                gap=self.gap,
                max_steps=self.max_steps,
                least=self.active,
            )
            for _ in rounds.advance(_SLICE):
                yield self._step()
                if control.expired():
                    return
            if work.solution.status == "running":  # there was no time for what it needed
                return
        yield self._step()

    def _is_small(self, work: Work) -> bool:
        size = work.points.size**2 * np.dtype(self.precision).itemsize
        fits = self.matrix.native is not None or size <= self.matrix.cache_bytes / 2
        return work.alpha.size <= self.direct and fits

    def _whole(self, works: list[Work]) -> Iterator[None]:
        """Solve problems with whole kernel rows, one in each thread."""
        shared = ClassRows(self.matrix, works, self.precision)
        for batch in self._batches(works, shared):
            yield from self._converge(batch, self.precision, shared)
            if batch[0].expired():
                return
            # Where kernel rows in single precision do not lead to the tolerance, double ones do.
            rest = [work for work in batch if work.solution.status == "running"]
            for work in rest:
                work.recompute("float64")
            yield from self._converge(rest, "float64")

    def _batches(self, works: list[Work], shared: ClassRows) -> Iterator[list[Work]]:
        """Yield problems whose packed samples or kernel blocks are together small enough to be kept."""
        batch: list[Work] = []
        size = 0.0
        for work in works:
            n, d = work.points.size, work.points.size if self.matrix.native is None else self._features()
            kept = work in shared or (self.matrix.native and work.everything)
            own = 0 if kept else n * d * np.dtype(self.precision).itemsize
            if batch and size + own > self.matrix.cache_bytes / 4:
                yield batch
                batch, size = [], 0.0
            batch.append(work)
            size += own
        if batch:
            yield batch

    def _features(self) -> int:
        return int(self.matrix.samples.shape[1])

    def _converge(
        self, works: list[Work], precision: Precision, shared: ClassRows | None = None
    ) -> Iterator[None]:
        """Solve problems, one in each thread, whose kernel rows have this precision."""
        if not works:
            return
        tiny = sum(work.points.size for work in works) < _TINY
        threads = 1 if tiny else min(len(works), thread_count(None))

        # Of longer variables the gradient is computed anew in double, and steps may go on.
        error = self.matrix.error(precision) if precision == "float32" else 0.0
        longest = _TRUST * self.tol / error if error > 0 else np.inf

        def make(number: int) -> State | None:
            work = works[number]
            if number and work.expired():  # kernel blocks of many problems take long, too
                return None
            state = work.state(
                precision,
                values=None if self.matrix.native else self._block(work, precision),
                classes=shared.of(work) if shared else None,
                tol=self.tol,
                max_steps=-1 if self.max_steps < 0 else max(0, self.max_steps - work.solution.steps),
                row_bytes=self.matrix.cache_bytes / 2 / threads,
            )
            state.before = work.solution.steps
            if self.max_steps < 0:
                state.loop.most_steps = _pause(work, state)
            state.loop.keep_if_open(work.linear, self.gap, longest)
            return state

        parallel = self.matrix.native is not None and not tiny
        if parallel and not (shared and all(work in shared for work in works)):
            self.matrix.prepare(precision)
        # A problem that may go on keeps its rows, as far as they are few.
        self.matrix.memory.spare = self.matrix.cache_bytes / 4
        states = list(in_threads(make, len(works)) if parallel else map(make, range(len(works))))
        running = [(work, state) for work, state in zip(works, states, strict=True) if state is not None]
        while running:
            loops = [state.loop for _, state in running]
            run_loops(loops, _SLICE, threads)
            waiting = []
            for work, state in running:
                slow = self.max_steps < 0 and state.status == "max_iter"
                ended = self._hasten(work, state) if slow else self._read(work, state)
                if not ended or self._inexact(work, state, precision, shared):
                    waiting.append((work, state))
                    continue
                self.matrix.entries += state.loop.entries
            running = [(work, state) for work, state in waiting if state.refinements <= _REFINEMENTS]
            if running:
                yield
        if shared:
            self.matrix.entries += shared.new_entries()

    def _hasten(self, work: Work, state: State) -> bool:
        """Take a step on all free variables after a number of steps of pairs; return whether it was the end.

        Steps are counted, not seconds, so that every run takes the same way.
        """
        patience = state.loop.steps / (PATIENCE * _quota(work))
        if patience >= 1 and work.out_of_reach(self.tol, patience / MUCH):
            self._read(work, state)
            work.finish("rounding")
            return True
        if self._astray(work, state):  # with double ones the problem goes on
            return True
        if self._takes_whole(work, state):
            return self._with_whole(work, state)
        solved = interior(work, state, patient(state))
        moved = solved or newton(work, state)
        state.loop.most_steps = state.loop.steps + _pause(work, state)
        ended = self._read(work, state)
        if moved:
            work.read(work.alpha, work.E, work.scores()[1])
        # What is left to do after the one takes the last digits: double ones.
        return ended or (solved and state.unit == _SINGLE)

    def _astray(self, work: Work, state: State) -> bool:
        """Return whether kernel rows in single precision lead no further: E is not known to its violation.

        E is computed anew. Where steps from an exact one have led up, not down, they are taken back.
        """
        # Near the solution E differs by about p; a violation beyond may itself be due to rounding.
        known = min(state.loop.violation, float(np.abs(work.linear).max(initial=0.0)) or np.inf)
        if state.unit != _SINGLE or work.error("float32") <= known:
            return False
        before, state.refinements = work.exact, state.refinements + 1
        work.recompute("float64")
        state.exact_at, up = state.loop.steps - 1, False  # steps that go on begin with a rounding
        if before is not None and not value(work) < value(work, *before):
            work.alpha[:], up = before[0], True
            work.set_exact(before[1])
        work.read(work.alpha, work.E, work.scores()[1])
        work.solution.steps = state.steps
        return up or state.refinements > _REFINEMENTS

    def _takes_whole(self, work: Work, state: State) -> bool:
        """Return whether all kernel values of a problem are to be had, and have not served it yet."""
        if state.whole is not None:
            return state.whole is not False
        # Where only sums of samples are fixed, all weights may vanish, and no step ends at a solution.
        if work.worst_curvature < 0 or not work.problem.linear.any() or not np.isfinite(work.upper).all():
            return False
        n = work.points.size
        return n <= _WHOLE and bool(8 * n * n <= self.matrix.cache_bytes / 4)

    def _with_whole(self, work: Work, state: State) -> bool:
        """Go on with all kernel values in double, for a bounded time; return whether that was the end."""
        if state.whole is None:
            work.read(work.alpha, work.E, state.loop.violation)
            work.solution.steps = state.steps
            problems = DualProblems.of([replace(work.problem, start=work.solution.alpha)])
            most = _WHOLE_QUOTAS * _quota(work)
            state.whole = SmallProblems(self.matrix, problems, tol=_CLOSE * state.loop.tol, max_steps=most)
        if not state.whole.advance():
            return False
        found, state.whole = state.whole.solutions, False
        work.take(found.alpha, found.gradient)
        state.exact_at = state.loop.steps
        state.loop.most_steps = state.loop.steps + _pause(work, state)
        work.worst_curvature = float(found.worst_curvature[0])
        # What all the steps have added to the rounding of the gradient is in no number that is told.
        work.recompute("float64")
        violation = work.scores()[1]
        work.read(work.alpha, work.E, violation)
        state.before += int(found.steps[0])
        work.solution.steps = state.steps
        solved = STATUS[int(found.status[0])] == "converged" and violation <= self.tol
        if not solved or work.out_of_reach(self.tol, 0.0):
            return False
        work.finish("converged")
        return True

    def _read(self, work: Work, state: State) -> bool:
        """Bring a solution up to date with its loop; return whether the loop has ended."""
        ended = state.status != "running"
        if state.loop.steps == 0 and not ended:
            return False
        work.read(work.alpha, work.E, state.loop.violation)
        work.solution.steps, work.worst_curvature = state.steps, state.loop.worst_curvature
        if ended:
            work.finish(state.status)
        elif work.hopeless():
            work.finish("unbounded")
        return work.solution.status != "running"

    def _inexact(self, work: Work, state: State, precision: Precision, shared: ClassRows | None) -> bool:
        """Return whether a solution needs more steps once its gradient is exact enough, and its gap small."""
        if work.solution.status not in ("converged", "nonconvex"):
            return False
        doubt = work.error(precision) + state.drift() if precision == "float32" else 0.0
        if doubt > _TRUST * self.tol:
            if self._exceeds(work, state, shared):
                return True
            doubt = 0.0
        gap, error = work.gap_within(doubt)
        if self._polish(work, state, gap):
            return True
        if error <= _TRUST_GAP * self.gap:
            return False
        return self._exceeds(work, state, shared) or self._polish(work, state, work.relative_gap())

    def _exceeds(self, work: Work, state: State, shared: ClassRows | None) -> bool:
        """Compute the gradient anew in double; return whether it tells of a violation to be cured."""
        error = work.error("float32")
        far = error > _TRUST * self.tol or work.gap_within(error)[1] > _TRUST_GAP * self.gap
        if work.exact is not None and not far:
            work.retrace(state)
        elif not (shared.recompute(work) if shared is not None else work.recompute("float64")):
            work.solution.status = "running"  # as far as is known
            return True
        state.exact_at = state.loop.steps
        _, violation = work.scores()
        work.read(work.alpha, work.E, violation)
        if violation <= self.tol:
            return False
        work.solution.status = "running"
        state.loop.tol = self.tol
        state.refinements += 1
        return True

    def _polish(self, work: Work, state: State, gap: float) -> bool:
        """Bring the free variables closer to the optimum if the gap is wide; return if steps are needed."""
        if state.polished >= POLISHES or self.max_steps >= 0 or work.worst_curvature < 0 or gap <= self.gap:
            return False
        if work.vanishes():
            return False
        state.polished += 1
        factor = min(0.5, max(0.01, 0.5 * self.gap / gap))
        # Few steps on few points take less time than one on all free variables.
        cheap = state.steps_for(factor) * state.width <= max(_CHEAP, newton_cost(work, state))
        if cheap or not newton(work, state, whatever_it_costs=True) or state.polished > 1:
            # What such a step leaves of the gap is due to others than the free variables.
            state.loop.tol *= factor
        else:
            state.loop.tol = self.tol
        work.read(work.alpha, work.E, work.scores()[1])
        work.solution.status = "running"
        return True

    def _block(self, work: Work, precision: Precision) -> Array:
        self.matrix.check_time()
        return np.ascontiguousarray(self.matrix.block(work.points, work.points), dtype=precision)

    def _status(self) -> str:
        found = {s.status for s in self.solutions}
        for status in ("unbounded", "max_iter", "rounding", "nonconvex"):
            if status in found:
                return "max_iter" if status == "rounding" else status
        return "converged"

    def _step(self) -> Step:
        done = all(s.status != "running" for s in self.solutions)
        violation = max((s.violation for s in self.solutions), default=0.0)
        for number, (p, s) in enumerate(zip(self.problems, self.solutions, strict=True)):
            # Of many problems most have not changed since the last step.
            known = (s.steps, s.status, s.violation, s.known is None)
            if self._sums[number][0] != known:
                value = -0.5 * dot(s.alpha, s.gradient + p.linear) if s.known is None else np.nan
                self._sums[number] = (known, value, int(np.count_nonzero(s.alpha)))
        dual = sum(value for _, value, _ in self._sums)
        record = {
            "violation": violation,
            "dual": None if isnan(dual) else dual,
            "support_vectors": sum(count for _, _, count in self._sums),
            "kernel_entries": self.matrix.entries,
        }
        # While something is left to do, a small violation alone does not end the run.
        if not done:
            return Step(record, max(violation, 2 * self.tol))
        return Step(record, violation, self._status())


def _quota(work: Work) -> int:
    """Return how many steps a problem of this size takes, if it is no harder than others."""
    return max(_LEAST_QUOTA, _QUOTA * work.points.size)


def _pause(work: Work, state: State) -> int:
    """Return after how many steps the free variables may take one together: more of those that cost less."""
    return _quota(work) * max(1, state.alpha.size // state.width)


def choose_precision(matrix: KernelMatrix) -> Precision:
    """Return the precision of the kernel rows that steps use.

    Single precision is enough where the distances between samples are large against its rounding; the
    gradient is kept in double, and computed anew where the tolerance asks for it.
    """
    if matrix.precision is not None:
        return matrix.precision
    n = matrix.shape[0]
    if n <= _DOUBLE:
        return "float64"
    some = np.arange(0, n, max(1, n // 64))
    diag = matrix.diag[some]
    squares = diag[:, None] + diag[None, :] - 2 * np.asarray(matrix.block(some, some), dtype=np.float64)
    typical = float(np.quantile(squares[np.triu_indices(some.size, 1)], 0.1))
    inside = float(np.abs(matrix.diag).max()) <= _LARGEST and typical >= 1 / _LARGEST
    return "float32" if inside and matrix.error("float32") <= 1e-4 * typical else "float64"
