r"""Active sets: a dual problem too large for whole kernel rows, solved on a changing part of its variables.

Each round takes the free variables, the worst violators and their nearest neighbours in order of violation,
solves the problem in these with all others fixed, and corrects ``E = s (Qa + p)`` of all variables
by the kernel columns of those that changed. Nothing of the kernel matrix is kept between rounds but the
block of the active points.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from separatrix.data.threads import in_threads
from separatrix.data.view import Array
from separatrix.solvers._dual import Work, dot, run_loops
from separatrix.solvers._dual_state import State
from separatrix.solvers._interior import interior, rank_bound, value
from separatrix.solvers._newton import newton
from separatrix.solvers.kernel_matrix import Precision

#: Shares of the violation that it came from to which an active part is solved: without a price, and with one.
_SHARE, _PRICED_SHARE = 0.1, 0.2
#: Violation, in units of p, from which on a round leads to the tolerance.
_NEARBY = 0.5
#: Violation to which the sample is solved that gives the start, and the width of the margin within which
#: the start lies between its bounds, in units of p.
_START, _RAMP = 0.05, 0.01
#: Size of a variable, in units of p over k, at which the rounds look whether the problem has a solution.
_HUGE = 1e8
#: Part of the active points from which on fewer of them are worth a new block.
_FEWER = 0.7
#: Steps per point after which the free variables take a Newton step together.
_QUOTA = 5
#: So many times as many are taken where rounding errors put the tolerance out of reach.
PATIENCE = 20
#: And so many times as many if they merely may.
MUCH = 5
#: How often a solution within the tolerance is polished.
POLISHES = 4
#: One in so many points is active in each round, as far as their kernel values can be kept.
_POINTS_PER_ACTIVE = 6
#: Share of the tolerance, and of the gap, that rounding errors of E may have near the margin, and elsewhere.
_TRUST, _FAIR = 0.1, 0.25
#: What the two worst of many such errors add to the violation, in units of their usual size.
_EXTREMES = 5.0
#: How often E is computed in double near the margin alone, and what is near, in units of its rounding error.
_SHARPENINGS, _FAR = 4, 10.0
#: What the violation, or the relative value, must fall by within so many rounds.
_FALLEN, _GAINED, _IDLE = 0.9, 1e-13, 12
#: Most points of that sample.
_SAMPLE = 5000
#: Points that may come to matter near the solution: within so many times the violation.
_NEAR = 2.0
#: Features from which a kernel value is dear.
_DEAR = 100
#: Rank of the kernel matrix up to which a problem is solved through it.
_RANK = 64
#: Parts of a block that threads compute, and bytes of a cache line.
_PARTS, _LINE = 8, 64


class ActiveSet:
    """Rounds of active sets on one problem.

    Parameters
    ----------
    work : Work
        The problem.
    precision : {"float32", "float64"}
        Of kernel entries.
    tol : float
        Violation at which it is solved.
    gap : float
        Relative duality gap above which free variables move on together.
    max_steps : int
        Most pairs changed; −1: no limit.
    least : int
        Least number of active points, and the size of the sample that gives the start.
    """

    def __init__(
        self, work: Work, *, precision: Precision, tol: float, gap: float, max_steps: int, least: int
    ) -> None:
        self.work, self.precision, self.outer = work, precision, precision
        self.tol, self.gap, self.max_steps, self.least = tol, gap, max_steps, least
        self.random = np.random.default_rng(0)
        seen = work.E if work.known is None else work.E[work.known]
        #: What E is measured in.
        self.scale = float(np.abs(work.problem.linear).mean()) or float(np.abs(seen).mean()) or 1.0
        #: What variables without an upper bound are measured in.
        self.bound = self.scale / (float(np.abs(work.diag).mean()) or 1.0)
        #: About how far steps have led E from what it stands for.
        self.drift = 0.0
        self.polished = self.sharpened = 0
        #: Least violation and value so far, and rounds since one of them fell.
        self.best, self.idle = (np.inf, np.inf), 0
        self.values: Array | None = None
        self.state: State | None = None

    def advance(self, seconds: float) -> Iterator[None]:
        """Take rounds until the problem is solved; yield after each bounded amount of work."""
        work, solution = self.work, self.work.solution
        if not self._by_rank() and self._wants_start():
            yield from self._start(seconds)
        if work.known is not None and not work.begin("float64"):
            return
        started = False
        while True:
            score, violation = work.scores()
            work.read(work.alpha, work.E, violation)
            if violation <= max(self.tol, 0.5 * self._doubt()) and self._doubts(violation):
                if not self._refine():
                    return
                continue
            if violation <= self.tol:
                if self._polish():
                    continue
                work.read(work.alpha, work.E, violation + _EXTREMES * self._doubt())
                return work.finish("converged")
            if 0 <= self.max_steps <= solution.steps:
                return work.finish("max_iter")
            if work.hopeless():
                return work.finish("unbounded")
            if self._out_of_reach(solution.steps):
                return work.finish("rounding")
            if started:
                yield
            started = True
            if not self._stays(score, violation):
                self._renew(self._choose(score, violation), score)
            elif work.price is not None and self.state is not None:
                # Steps on a block that fits the caches are faster than those on one that does not.
                points = self._choose(score, violation)
                if points.size < _FEWER * self.state.alpha.size:
                    self._renew(points, score)
            yield from self._solve(violation, seconds)
            if self._stalls(violation):
                if self.precision == "float64":
                    return work.finish("rounding")
                # Steps work on E in the precision of the rows: what violates may be less than its rounding.
                self.precision, self.state, self.values, self.idle = "float64", None, None, 0

    def _stalls(self, violation: float) -> bool:
        """Return whether many rounds have led nowhere, neither in violation nor in value."""
        now, (least, lowest) = value(self.work), self.best
        gained = violation < _FALLEN * least or now < lowest - _GAINED * abs(lowest)
        self.best, self.idle = (min(violation, least), min(now, lowest)), 0 if gained else self.idle + 1
        return self.idle > _IDLE

    def _by_rank(self) -> bool:
        """Solve the problem at once if the rank of the kernel matrix is low; return whether that was done."""
        work = self.work
        if self.max_steps >= 0 or self._is_warm() or rank_bound(work) > _RANK:
            return False
        return interior(work, work.state(self.precision, tol=self.tol, max_steps=0, row_bytes=0.0), _RANK)

    def _polish(self) -> bool:
        """Bring the free variables closer to the optimum if the gap is too large; return if that was done."""
        work = self.work
        if self.polished >= POLISHES or self.max_steps >= 0 or not work.has_wide_gap(self.gap):
            return False
        self.polished += 1
        state = work.state(self.precision, tol=self.tol, max_steps=0, row_bytes=0.0)
        return newton(work, state, whatever_it_costs=True, exact=True)

    def _out_of_reach(self, steps: int) -> bool:
        """Return whether many steps have not led to a tolerance that is less than rounding errors."""
        patience = steps / (PATIENCE * _QUOTA * self.work.points.size)
        return self.max_steps < 0 and patience >= 1 and self.work.out_of_reach(self.tol, patience / MUCH)

    def _doubt(self) -> float:
        """Return the rounding error of E if it could still be made smaller, else 0."""
        if self.outer != "float32":
            return 0.0
        return self.work.error("float32") + self.drift

    def _doubts(self, violation: float) -> bool:
        """Return whether the rounding error of E might hide a violation."""
        return self._doubt() > min(_TRUST * self.tol, (self.tol - violation) / _EXTREMES)

    def _refine(self) -> bool:
        """Compute E in double; return whether time was enough for that.

        Where its error is no more than what the other points may have: near the margin. Else everywhere, and
        from then on.
        """
        work, doubt = self.work, self._doubt()
        fair = doubt <= _FAIR * self.tol and work.value_within(doubt) <= _TRUST * self.gap
        if fair and self.sharpened < _SHARPENINGS:
            if not work.sharpen(_FAR * doubt):
                return False
            self.sharpened, self.drift = self.sharpened + 1, 0.0
            return True
        if not work.recompute("float64"):
            return False
        self.outer = "float64"
        return True

    def _stays(self, score: Array, violation: float) -> bool:
        """Go on with the same points if none of the others is among the worst; return whether that is so."""
        state = self.state
        if state is None or violation > self.scale:
            return False
        bar = max(0.5 * self.tol, 0.5 * _SHARE * violation)
        if np.count_nonzero(score > bar) > np.count_nonzero(score[state.points] > bar):
            return False
        state.E[:] = self.work.E[state.variables]
        return True

    def _renew(self, points: Array, score: Array) -> None:
        """Make other points active."""
        work, before, self.state = self.work, self.state, None
        budget = work.matrix.cache_bytes / 2
        fits = np.dtype(self.precision).itemsize * points.size**2 <= budget
        given = None
        if work.matrix.native is not None and (not fits or work.matrix.features_per_entry < _DEAR):
            # Rows of free variables are needed for certain, and threads compute them faster than the loop.
            most = int(budget / 2 / (np.dtype(self.precision).itemsize * points.size))
            given = np.flatnonzero(np.isposinf(score[points]))[:most]
        panels = None if work.matrix.native is None else work.panels(self.precision, points)
        self.state = work.state(
            self.precision,
            points=points,
            panels=panels,
            values=self._block(points, panels, given),
            given=given,
            tol=self.tol,
            max_steps=-1,
            row_bytes=budget,
        )
        self.state.loop.keeps = True
        if before is not None:
            self.state.newton_at = before.newton_at - before.loop.steps

    def _solve(self, violation: float, seconds: float) -> Iterator[None]:
        """Solve the problem in the active points, and take the solution over."""
        work, solution, state = self.work, self.work.solution, self.state
        assert state is not None
        assert state.points is not None
        points, before, entries = state.points, state.loop.steps, state.loop.entries
        share = _SHARE
        if work.price is not None:
            share = _PRICED_SHARE  # many others are as near the tube, and the next round looks at them
        elif violation <= _NEARBY * self.scale:
            share = 0.0  # the active points are the right ones: what they need is done in one round
        state.loop.tol = max(self.tol * 0.5, violation * share)
        steps, limit = solution.steps, self.max_steps - solution.steps if self.max_steps >= 0 else np.inf
        quota = _QUOTA * points.size
        state.loop.most_steps = int(before + min(limit, quota))
        while state.status == "running":
            run_loops([state.loop], seconds)
            solution.steps = steps + state.loop.steps - before
            if not work.problem.solvable and float(np.abs(state.alpha).max()) > _HUGE * self.bound:
                break  # whether there is a solution is asked with all points
            if state.status == "max_iter" and state.loop.steps - before < limit:
                if violation > self.scale:
                    newton(work, state)
                    break  # far from the solution other points matter more than the last digits of these
                if self._out_of_reach(solution.steps):
                    break
                quota = quota if newton(work, state) else 2 * quota
                state.loop.most_steps = int(min(before + limit, state.loop.steps + quota))
            if state.status == "running":
                yield
        work.matrix.entries += state.loop.entries - entries
        work.worst_curvature = min(work.worst_curvature, state.loop.worst_curvature)
        if work.price is not None and points.size == work.points.size and self.outer == "float32":
            # All points were active: their E is known, but for what steps have added to its rounding.
            work.alpha[:], work.E[:] = state.alpha, state.E
            self.drift = max(self.drift, state.drift())
            return
        change = work.weights(state.alpha, state.variables) - work.weights(
            work.alpha[state.variables], state.variables
        )
        moved = yield from self._product(points, change, self.outer)
        work.alpha[state.variables] = state.alpha
        work.E += moved

    def _product(self, points: Array, change: Array, precision: Precision) -> Generator[None, None, Array]:
        """Return what a change of ``s a`` of some points adds to E; yield after each bounded part of it."""
        work, moved, n = self.work, np.flatnonzero(change), self.work.points.size
        step = work.matrix.targets_at_once(moved.size)
        if step >= n:
            return work.product(points, change, precision)
        rows, coef, sums = work.points[points[moved]], change[moved, None], np.empty(n)
        for begin in range(0, n, step):
            part = slice(begin, begin + step)
            sums[part] = work.matrix.product(rows, coef, work.points[part], precision)[:, 0]
            if begin + step < n:
                yield
        return np.tile(sums, work.copies)

    def _choose(self, score: Array, violation: float) -> Array:
        """Return the points to work on, in order."""
        free = int(np.count_nonzero(np.isposinf(score)))
        # Of a large problem too small a part takes many rounds to cure.
        share = min(score.size // _POINTS_PER_ACTIVE, self._most())
        count = min(score.size, max(self.least, free + self.least // 2, share))
        if violation <= self.scale:
            # Near the solution others than those close to the margin hardly matter, and each takes time.
            near = int(np.count_nonzero(score > -_NEAR * violation))
            count = min(count, max(near, free + self.least // 8))
        if not self.work.alpha.any():
            return self._sample(count)
        if self.work.price is not None and self._keeps_all():
            # Where most points are free, or most of a first part, the others will be.
            if 2 * count > score.size or (self.state is not None and 2 * free > self.state.alpha.size):
                return np.arange(score.size)
        if np.count_nonzero(score > 0) <= count:
            return _greatest(score, count)
        # The worst are often neighbours, of which one cures all: let others take part.
        worst = _greatest(score, free + (count - free) // 4)
        is_other = score > 0
        is_other[worst] = False
        others = self.random.permutation(np.flatnonzero(is_other))[: count - worst.size]
        return np.sort(np.concatenate([worst, others]))

    def _sample(self, count: int) -> Array:
        """Return evenly spread points of both signs."""
        work, n = self.work, self.work.points.size
        parts = []
        for sign in (1, -1) if work.copies == 1 else (1,):
            of_sign = np.flatnonzero(work.signs[:n] == sign) if work.copies == 1 else np.arange(n)
            share = min(of_sign.size, -(-count * of_sign.size // n))
            parts.append(of_sign[np.linspace(0, of_sign.size - 1, share).astype(np.int64)])
        return np.sort(np.concatenate(parts))

    def _block(self, points: Array, panels: Any, given: Array | None = None) -> Array:
        """Return the kernel values between the points, or some rows, in memory that the rounds share."""
        work, count = self.work, points.size
        if panels is None:
            rows = work.points[points]
            return np.ascontiguousarray(work.matrix.block(rows, rows), dtype=self.precision)
        numbers = np.arange(count) if given is None else given
        # Rows begin with cache lines: else every other register that steps load would lie on two of them.
        line = _LINE // np.dtype(self.precision).itemsize
        width = -(-count // line) * line
        size = numbers.size * width
        if self.values is None or self.values.size < size + line:
            self.values = np.empty(size + line, dtype=self.precision)
        begin = -(self.values.ctypes.data // self.values.itemsize) % line
        values = self.values[begin : begin + size].reshape(numbers.size, width)[:, :count]

        def fill(part: int) -> None:
            rows = slice(part * numbers.size // _PARTS, (part + 1) * numbers.size // _PARTS)
            panels.block(panels, numbers[rows], values[rows])

        for _ in in_threads(fill, _PARTS):
            pass
        work.matrix.entries += values.size
        return values

    def _most(self) -> int:
        """Return how many points a block may have."""
        size = np.dtype(self.precision).itemsize
        return int(min(_SAMPLE, np.sqrt(self.work.matrix.cache_bytes / 2 / size)))

    def _keeps_all(self) -> bool:
        """Return whether kernel values between all points may be kept."""
        matrix, size = self.work.matrix, np.dtype(self.precision).itemsize
        return matrix.native is not None and bool(self.work.points.size**2 * size <= matrix.cache_bytes / 2)

    def _wants_start(self) -> bool:
        work = self.work
        return (
            self.max_steps < 0
            and work.price is None  # residuals are near the tube either way: no sample tells the side of most
            and not self._is_warm()
            and work.points.size >= 2 * self.least
            and self._most() >= self.least
            and bool(np.isfinite(work.upper).all())
            and work.matrix.native is not None
        )

    def _is_warm(self) -> bool:
        """Return whether the problem came with a start that means something: not just a feasible one."""
        work = self.work
        return bool(work.alpha.any() and work.problem.linear.any() and not work.separate)

    def _start(self, seconds: float) -> Iterator[None]:
        """Start where a sample of the points, each standing for several, says that the solution is.

        The sample is solved with upper bounds larger by the factor that it is smaller. Its scores then tell
        for every variable on which side of the margin it is, and so whether its best value is 0 or u.
        """
        work, n = self.work, self.work.points.size
        points = self._sample(max(self.least, min(n // 8, self._most())))
        variables = points if work.copies == 1 else np.concatenate([points, points + n])
        linear, factor = work.linear, n / points.size
        start = self._spread(variables, factor)
        if start is None:
            return
        local = np.tile(np.arange(points.size), work.copies)
        panels = work.panels(self.precision, points)
        signs, values = work.signs[variables], self._block(points, panels)
        weights = np.bincount(local, signs * start, points.size)
        E, from_zero = linear[variables], not start.any()
        if not from_zero:
            E = E + (values @ weights.astype(values.dtype))[local]
        state = work.state(
            self.precision,
            points=points,
            panels=panels,
            values=values,
            start=(start, E, work.upper[variables] * factor),
            tol=max(self.tol, _START * self.scale),
            max_steps=-1,
            row_bytes=0.0,
        )
        while state.status == "running":
            run_loops([state.loop], seconds)
            if state.status == "running":
                yield
        weights = np.bincount(local, signs * state.alpha, points.size)
        score = yield from self._product(points, weights, self.precision)
        if from_zero:
            # Feasible for all samples already, should time be up while the better start is made.
            work.alpha[variables] = np.minimum(state.alpha / factor, work.upper[variables])
            work.E[:] = linear + score / factor
            work.read(work.alpha, work.E, work.scores()[1])
        score += linear
        alpha = np.empty_like(work.alpha)
        for group in work.groups():
            s, total = work.signs[group], dot(work.signs[group], work.alpha[group])
            alpha[group] = at_bounds(s, score[group], work.upper[group], total, _RAMP * self.scale)
        if work.known is not None:  # nothing is known of where it was: what is told from now on is of this
            work.alpha[:] = alpha
            work.begin(self.precision)
            return
        moved = yield from self._product(np.arange(n), work.weights(alpha), self.precision)
        work.alpha[:], work.E[:] = alpha, linear + moved

    def _spread(self, variables: Array, factor: float) -> Array | None:
        """Return a feasible start of the sample, the sums of all variables spread evenly; None if none is."""
        work, start = self.work, np.zeros(variables.size)
        for sign in (1, -1):
            mine = work.signs[variables] == sign
            total = float(work.alpha[work.signs == sign].sum())
            if total > 0:
                room = work.upper[variables][mine] * factor
                if room.sum() < total:
                    return None
                start[mine] = room * (total / room.sum())
        return start


def _greatest(score: Array, count: int) -> Array:
    """Return the numbers of the greatest scores, in order."""
    if count >= score.size:
        return np.arange(score.size)
    return np.sort(np.argpartition(-score, count)[:count])


def at_bounds(signs: Array, score: Array, upper: Array, total: float, ramp: float) -> Array:
    """Return the variables that scores E ask for: ``u`` where ``s (E − b) < 0``, else 0.

    The b is the one with ``s'a = total``; within a ramp around it they lie between, so that there is one.
    """
    low, high = float(score.min()) - ramp, float(score.max()) + ramp

    def at(b: float) -> Array:
        return np.asarray(upper * np.clip(0.5 - signs * (score - b) / ramp, 0.0, 1.0))

    for _ in range(60):
        b = 0.5 * (low + high)
        low, high = (b, high) if dot(signs, at(b)) < total else (low, b)
    alpha = at(high)
    # What rounding has left.
    rest = total - dot(signs, alpha)
    j = int(np.argmax(np.where(signs * rest > 0, upper - alpha, alpha)))
    alpha[j] += signs[j] * rest
    return alpha
