r"""Active sets: a dual problem too large for whole kernel rows, solved on a changing part of its variables.

Each round takes the free variables, the worst violators and their nearest neighbours in order of violation,
solves the problem in these with all others fixed, and corrects ``E = s (Qa + p)`` of all variables
by the kernel columns of those that changed. Nothing of the kernel matrix is kept between rounds but the
block of the active points.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads
from separatrix.data.view import Array
from separatrix.solvers._dual import DualProblem, DualSolution, Work
from separatrix.solvers.kernel_matrix import Precision

#: Active points: at least so many, and so many more than free ones.
_LEAST, _MORE = 2000, 1000
#: An active part is solved to this share of the violation that it came from.
_SHARE = 0.1
#: Width of the margin within which a start lies between its bounds.
_RAMP = 0.01


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
    max_steps : int
        Most pairs changed; −1: no limit.
    least : int
        Least number of active points.
    """

    def __init__(
        self, work: Work, *, precision: Precision, tol: float, max_steps: int, least: int = _LEAST, sample: int = 3000
    ) -> None:
        self.work, self.precision, self.tol, self.max_steps, self.least = work, precision, tol, max_steps, least
        self.sample = sample
        self.random = np.random.default_rng(0)
        self.scale = float(np.abs(work.problem.linear).mean()) or np.inf
        self.values: Array | None = None

    def advance(self, seconds: float) -> Iterator[None]:
        """Take rounds until the problem is solved; yield after each bounded amount of work."""
        work, solution = self.work, self.work.solution
        if np.isfinite(work.upper).all() and work.points.size >= 2 * self.sample and self.max_steps < 0:
            yield from self._start(seconds)
        while True:
            score, violation = self._scores()
            work.read(work.alpha, work.E, violation)
            if violation <= self.tol:
                return work.finish("converged")
            if 0 <= self.max_steps <= solution.steps:
                return work.finish("max_iter")
            if work.hopeless():
                return work.finish("unbounded")
            points = self._choose(score)
            budget = work.matrix.cache_bytes / 2
            values = self._block(points) if points.size**2 * np.dtype(self.precision).itemsize <= budget else None
            left = self.max_steps - solution.steps if self.max_steps >= 0 else -1
            state = work.state(
                self.precision,
                points=points,
                values=values,
                tol=max(self.tol * 0.5, min(violation, self.scale) * _SHARE),
                max_steps=left,
                row_bytes=budget,
            )
            steps = solution.steps
            while state.status == "running":
                _hot.run_smo([state.loop], seconds)
                solution.steps = steps + state.loop.steps
                if state.status == "running":
                    yield
            if values is None:
                work.matrix.entries += state.loop.entries
            work.worst_curvature = min(work.worst_curvature, state.loop.worst_curvature)
            self._correct(points, state.variables, state.alpha)
            yield

    def _start(self, seconds: float) -> Iterator[None]:
        """Start where a sample of the points, each standing for several, says that the solution is.

        The sample is solved with upper bounds larger by the factor that it is smaller. Its scores then tell for
        every variable on which side of the margin it is, and so whether its best value is 0 or u.
        """
        work = self.work
        if np.count_nonzero(work.alpha) > self.sample:
            return
        n, linear = work.points.size, work.signs * work._sorted(work.problem.linear)
        points = self._sample(self.sample)
        factor = n / points.size
        variables = points if work.copies == 1 else np.concatenate([points, points + n])
        part = DualProblem(
            rows=work.points[points] if work.copies == 1 else np.tile(work.points[points], 2),
            signs=work.signs[variables],
            linear=work.signs[variables] * linear[variables],
            upper=work.upper[variables] * factor,
            start=self._spread(variables, factor),
            separate=work.separate,
        )
        # whole problem of the sample
        a = part.start
        rows = np.arange(points.size) if work.copies == 1 else np.tile(np.arange(points.size), 2)
        values = self._block(points)
        E = part.signs * part.linear
        if a.any():
            E = E + (values.astype(np.float64) @ np.bincount(rows, part.signs * a, points.size))[rows]
        small = Work(work.matrix, part, DualSolution(a, part.signs * E))
        state = small.state(self.precision, values=values, tol=max(self.tol, 0.05), max_steps=-1, row_bytes=0.0)
        while state.status == "running":
            _hot.run_smo([state.loop], seconds)
            if state.status == "running":
                yield
        weights = np.bincount(rows, small.signs * small.alpha, points.size)
        used = np.flatnonzero(weights)
        targets = None if work.everything else work.points
        score = linear + np.tile(
            work.matrix.product(work.points[points[used]], weights[used, None], targets, self.precision)[:, 0], work.copies
        )
        alpha = work.alpha.copy()
        for group in self._groups():
            alpha[group] = _at_bounds(work.signs[group], score[group], work.upper[group], float(work.signs[group] @ work.alpha[group]))
        used = np.flatnonzero(alpha)
        change = np.bincount(used % n, work.signs[used] * alpha[used], n)
        used = np.flatnonzero(change)
        product = work.matrix.product(work.points[used], change[used, None], targets, self.precision)[:, 0]
        work.alpha[:], work.E[:] = alpha, linear + np.tile(product, work.copies)
        yield

    def _spread(self, variables: Array, factor: float) -> Array:
        """Return a feasible start of the sample: the sums of all variables, spread evenly."""
        work, start = self.work, np.zeros(variables.size)
        for sign in (1, -1):
            mine = work.signs[variables] == sign
            total = float(work.alpha[work.signs == sign].sum())
            room = work.upper[variables][mine] * factor
            if total > 0:
                start[mine] = room * (total / room.sum())
        return start

    def _scores(self) -> tuple[Array, float]:
        """Return by how much each point violates optimality (both its variables), and the violation."""
        work = self.work
        growing = np.where(work.signs > 0, work.alpha < work.upper, work.alpha > 0)
        falling = np.where(work.signs > 0, work.alpha > 0, work.alpha < work.upper)
        score = np.full(work.E.shape, -np.inf)
        worst = 0.0
        for group in self._groups():
            E, up, low = work.E[group], growing[group], falling[group]
            if not up.any() or not low.any():
                continue
            least, most = E[up].min(), E[low].max()
            worst = max(worst, float(most - least))
            middle = 0.5 * (least + most)
            score[group] = np.maximum(np.where(up, middle - E, -np.inf), np.where(low, E - middle, -np.inf))
            free = up & low
            score[group][free] = np.inf
        n = work.points.size
        return (np.maximum(score[:n], score[n:]) if work.copies == 2 else score), worst

    def _groups(self) -> list[slice]:
        if self.work.separate:
            return [slice(0, self.work.middle), slice(self.work.middle, None)]
        return [slice(None)]

    def _choose(self, score: Array) -> Array:
        """Return the points to work on, in order."""
        free = int(np.count_nonzero(np.isposinf(score)))
        count = min(score.size, max(self.least, free + _MORE))
        if not self.work.alpha.any():
            return self._sample(count)
        worst = np.argpartition(-score, count - 1)[:count] if count < score.size else np.arange(score.size)
        others = np.flatnonzero(score > 0)
        if others.size > count:
            # The worst are often neighbours, and one of them cures all: let others take part.
            worst = worst[np.argsort(-score[worst], kind="stable")]
            kept = max(free, count // 4)
            taken = self.random.choice(others.size, others.size, replace=False)
            rest = np.setdiff1d(others[taken], worst[:kept], assume_unique=True)
            rest = others[taken][~np.isin(others[taken], worst[:kept])][: count - kept]
            worst = np.concatenate([worst[:kept], rest])
        return np.sort(worst)

    def _sample(self, count: int) -> Array:
        """Return evenly spread points of both signs."""
        work, n = self.work, self.work.points.size
        if work.copies == 2:
            return np.unique(np.linspace(0, n - 1, count).astype(np.int64))
        parts = []
        for sign in (1, -1):
            of_sign = np.flatnonzero((work.signs == sign) & (work.upper > 0))
            share = -(-count * of_sign.size // n)
            parts.append(of_sign[np.unique(np.linspace(0, of_sign.size - 1, share).astype(np.int64))] if share else of_sign)
        return np.sort(np.concatenate(parts))

    def _block(self, points: Array) -> Array:
        """Return the kernel values between the points, in memory that the rounds share."""
        work, count = self.work, points.size
        if work.matrix.native is None:
            rows = work.points[points]
            return np.ascontiguousarray(work.matrix.block(rows, rows), dtype=self.precision)
        if self.values is None or self.values.size < count * count:
            self.values = np.empty(count * count, dtype=self.precision)
        values = self.values[: count * count].reshape(count, count)
        panels = work.panels(self.precision, points)
        numbers = np.arange(count)

        def fill(part: int) -> None:
            rows = slice(part * count // 8, (part + 1) * count // 8)
            panels.block(panels, numbers[rows], values[rows])

        for _ in in_threads(fill, 8):
            pass
        work.matrix.entries += count * count
        return values

    def _correct(self, points: Array, variables: Array, alpha: Array) -> None:
        """Take over the active variables and bring E up to date for all."""
        work = self.work
        change = work.signs[variables] * (alpha - work.alpha[variables])
        work.alpha[variables] = alpha
        if work.copies == 2:
            change = change[: points.size] + change[points.size :]
        moved = np.flatnonzero(change)
        targets = None if work.everything else work.points
        product = work.matrix.product(
            work.points[points[moved]], change[moved, None], targets, self.precision
        )[:, 0]
        for copy in range(work.copies):
            work.E[copy * work.points.size : (copy + 1) * work.points.size] += product


def _at_bounds(signs: Array, score: Array, upper: Array, total: float) -> Array:
    """Return the variables that scores E ask for, with ``s'a = total``: ``u`` where ``s (E − b) < 0``, else 0."""
    low, high = float(score.min()) - 1.0, float(score.max()) + 1.0

    def at(b: float) -> Array:
        return np.asarray(upper * np.clip(0.5 - signs * (score - b) / _RAMP, 0.0, 1.0))

    for _ in range(60):
        b = 0.5 * (low + high)
        low, high = (b, high) if float(signs @ at(b)) < total else (low, b)
    alpha = at(high)
    rest = total - float(signs @ alpha)
    room = np.where(signs * rest > 0, upper - alpha, alpha)
    j = int(np.argmax(room))
    alpha[j] += signs[j] * rest
    return alpha
