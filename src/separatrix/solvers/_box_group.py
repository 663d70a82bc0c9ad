"""Columns of linear support vector machines whose dual coordinate descent shares the visits of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix import _hot
from separatrix.data.view import Array
from separatrix.solvers._coordinate_rows import row_arguments, visit
from separatrix.solvers._extrapolation import Extrapolation
from separatrix.solvers._loop import Control

if TYPE_CHECKING:
    from separatrix.solvers.box_coordinate import BoxCoordinate

#: A sample may rest if the gap is less than this part of tol, were all samples to add as much to it.
_NEGLIGIBLE = 1.0
#: The bits of a sample's state that count how many epochs it still rests.
_REST = np.uint8(15)
#: The loop's own gap is rounded: it must be below this part of the tolerance.
SAFE = 0.95
#: Epochs after which, and so many more to come, coordinate descent counts as slow.
_EPOCHS, SLOW = 30, 150
#: Epochs before the first extrapolation, and between two; stored values visited per number it looks at.
_CREEPING, _EVERY, _WORTH = 10, 3, 3.0
#: Relative gap from which on another multiple of the weights may have a far better objective.
_FAR = 0.5
#: Part of tol that rounded scores may cost: beyond, double precision takes over.
ROUNDED = 0.1
#: Checks without a better gap after which all samples wake.
_PATIENCE = 3


class Group:
    """Columns that share the visits of the rows."""

    def __init__(self, solver: BoxCoordinate, own: Array, dtype: np.dtype[Any], seed: int) -> None:
        self.solver, self.dual, self.own, self.dtype = solver, solver.dual, own, dtype
        problem, view = solver.problem, solver.view
        n, d = view.shape
        self.padded = 1 if own.shape[0] == 1 else -(-own.shape[0] // 8) * 8
        P = self.padded
        #: The samples; those that the last epoch has visited, in its order.
        self.order, self.awake, self.random = solver.visits.order, solver.visits.order, seed
        self.weights, self.v = np.zeros((d, P), dtype=dtype), np.zeros((n, P), dtype=dtype)
        self.offsets, self.tally = np.zeros(P, dtype=dtype), np.zeros(3)
        self.asleep = np.zeros(n, dtype=np.uint8)
        targets, low, high = (np.zeros((problem.codes.shape[0], P), dtype=dtype) for _ in range(3))
        end = 1e30 if self.dual.squared else 1.0
        if self.dual.numbers is None:
            codes = problem.codes[:, own]
            targets[:, : own.shape[0]] = codes
            low[:, : own.shape[0]], high[:, : own.shape[0]] = (
                np.minimum(codes, 0) * end,
                np.maximum(codes, 0) * end,
            )
        else:
            low[:, 0], high[:, 0] = -end, end
        upper = self.dual.upper
        delta = np.zeros(n)
        if self.dual.squared:
            np.divide(0.5, upper, out=delta, where=upper > 0)
        # The arrays must live as long as the compiled state that points into them.
        self._kept = (
            np.ascontiguousarray(problem.classes, dtype=np.int32), upper, delta, solver.norms, targets,
            low, high,
            np.zeros(2 * P, dtype=dtype),
        )  # fmt: skip
        kind = _hot.BoxDualFloat32 if dtype == np.float32 else _hot.BoxDualFloat64
        self.state = kind(
            classes=self._kept[0],
            upper=upper,
            delta=delta,
            norms=solver.norms,
            numbers=self.dual.numbers,
            targets=targets,
            low=low,
            high=high,
            epsilon=self.dual.epsilon,
            constant=solver.constant,
            weights=self.weights,
            v=self.v,
            offsets=self.offsets,
            asleep=self.asleep,
            scratch=self._kept[-1],
            tally=self.tally,
        )
        self.extrapolation = Extrapolation(
            view, self.state, self.v, self.weights, self.offsets, solver.constant
        )
        self.worked = 0.0  # stored values visited since the last extrapolation
        self.primal, self.gap = np.zeros(own.shape[0]), np.full(own.shape[0], np.inf)
        self.multiple: Array = np.ones(own.shape[0])  # of the weights, which is the model
        self.best, self.poor, self.count, self.checked = np.inf, 0, 0, 0
        self.factor = self.strict = 1.0
        self.level = 0.0
        self.done = self.stuck = self.slow = self.rounded = False
        self.ahead = 0.0  # epochs still to come, as far as the last ones tell
        self.visited, self.share = 0.0, 1.0  # visits since the last check, and as a part of all samples
        self.before: tuple[int, float] | None = None

    def take_over(self, V: Array) -> None:
        """Begin with these dual variables, (columns, n)."""
        self.v[:, : self.own.shape[0]] = V.T
        rows, dtype = self.solver.view.read(slice(0, self.solver.view.shape[0])), self.dtype
        _hot.add_padded_transposed(*row_arguments(rows), np.ascontiguousarray(self.v, dtype=dtype), 0,
        self.padded,
                                   self.weights)  # fmt: skip
        self.offsets[: self.own.shape[0]] = self.solver.constant * V.sum(axis=1)

    def follow(self, before: Group) -> None:
        """Go on counting where a group has ended that had these columns in single precision."""
        self.count, self.checked, self.before = before.count, before.checked, before.before

    def epoch(self, control: Control) -> None:
        """Visit the samples that are awake, and look at the gap now and then."""
        view, n = self.solver.view, self.order.shape[0]
        # Not after an epoch: the dual's better point may be the worse model until its samples are visited.
        self._extrapolate()
        # Samples at rest, in the end most, are neither shuffled nor looked at one by one.
        resting = self.asleep & _REST > 0
        self.awake = self.order[~resting[self.order]]
        self.asleep -= resting
        self.random = _hot.shuffle(self.awake, self.random)
        self.tally[:] = 0.0
        self.state.negligible = self.strict * _NEGLIGIBLE * self.solver.tol * self.level / max(1, n)
        if not visit(self.state, view, self.awake, self.padded, control):
            return
        self.count += 1
        self.visited += float(self.tally[1])
        gain = float(self.tally[0])
        self.level = max(self.level + gain if self.best == np.inf else self.level, 0.0)
        if self.dual.free:
            m = self.own.shape[0]
            self.offsets[:m] += (self.solver.constant * self.v[:, :m].sum(axis=0, dtype=np.float64)).astype(
                self.dtype
            )
        # What the visits saw of the gap was before their steps: what part of it is left shows the last check.
        seen = float(self.tally[2])
        promising = self.factor * seen <= self.solver.tol * self.level
        if (
            promising and self.count > self.checked + self.checked // 20
        ) or self.count >= 1.5 * self.checked + 10:
            self._check()
            self.checked = self.count
            if seen > 0:
                self.factor = float(np.clip(self.gap.sum() / seen, 1e-2, 1e4))

    def _extrapolate(self) -> None:
        """Move further the way that the last epochs went, where they creep and cost more than that."""
        self.worked += float(self.tally[1]) * self.solver.view.row_elements
        if self.count < _CREEPING or self.worked < _WORTH * sum(self.solver.view.shape):
            return
        if self.count % _EVERY == 0:
            self.extrapolation.step()
            self.worked = 0.0

    def _scores(self, dtype: np.dtype[Any]) -> Array:
        """Return the scores without intercept, (columns, n), computed in this precision."""
        view = self.solver.view
        out, weights = (
            np.empty((view.shape[0], self.padded), dtype=dtype),
            self.weights.astype(dtype, copy=False),
        )
        for part in view.parts():
            _hot.padded_scores(*row_arguments(view.read(part)), weights, out[part])
        return np.ascontiguousarray(out[:, : self.own.shape[0]].T, dtype=np.float64)

    def _look(self, dtype: np.dtype[Any]) -> tuple[Array, Array, float]:
        """Compute objectives and gaps in this precision; return scores, ``Σ v`` and the relative gap."""
        dual, m = self.dual, self.own.shape[0]
        F = self._scores(dtype)
        norms = np.einsum("jk,jk->k", self.weights, self.weights, dtype=np.float64)[:m]
        V = np.ascontiguousarray(self.v[:, :m].T, dtype=np.float64)
        b, problem, sums = self._intercept(F), self.solver.problem, V.sum(axis=1)
        F += b[:, None]
        if dual.numbers is not None:
            losses = problem.loss.value(F - dual.numbers) @ dual.upper
        else:
            y = problem.codes[:, self.own].T[:, problem.classes]
            losses = np.where(y != 0, problem.loss.value(y * F), 0.0) @ dual.upper
        self.primal = dual.primal(norms, b, losses)
        bound = dual.bound(*dual.sums(V), norms, sums)
        self.multiple = np.ones(m)
        if self.count >= SLOW and bool(((self.primal - bound) > _FAR * self.primal).any()):
            # Weights that are nearly those of the solution may be far from its objective.
            self.multiple, self.primal = dual.best_multiple(F, self.own, norms, b)
        self.gap = np.maximum(self.primal - bound, 0.0)
        if dual.free:
            self.gap += np.abs(sums) * (1.0 + np.abs(b))
        return F, sums, float(self.gap.sum()) / max(float(self.primal.sum()), 1e-300)

    def _check(self) -> None:
        dual = self.dual
        F, sums, relative = self._look(self.dtype)
        if self.solver.delicate and self.dtype == np.float32 and relative <= SAFE * self.solver.tol:
            F, sums, relative = self._look(np.dtype(np.float64))
            self.rounded = relative > SAFE * self.solver.tol
        self.level = float(self.primal.sum())
        if self.dtype == np.float32 and not dual.squared:
            # A loss with kinks charges every score on a kink for its rounding.
            scores = float(np.finfo(np.float32).eps) * float((np.abs(F) @ dual.upper).sum())
            self.rounded = scores > ROUNDED * self.solver.tol * self.level
        self.poor = 0 if relative < 0.9 * self.best else self.poor + 1
        self.best = min(self.best, relative)
        # Rounding may stand in the way, which single precision shows soon.
        if self.before is not None and self.count > self.before[0]:
            epochs, last = self.count - self.before[0], self.before[1]
            rate = np.log(last / max(relative, 1e-300)) / epochs
            self.share = self.visited / (epochs * max(1, self.order.shape[0]))
            # The gap of one point may be worse than that of the one before: a second look tells more.
            if rate > 0 or self.poor > 1:
                self.ahead = np.log(max(relative / self.solver.tol, 1.0)) / rate if rate > 0 else np.inf
            self.slow = self.count >= _EPOCHS and self.ahead > SLOW
        if self.before is None or relative < self.before[1] or self.poor > 1:
            self.before, self.visited = (self.count, relative), 0.0
        if self.poor >= _PATIENCE:
            # Too many rest: small gains that were left out may add up. Where none is left, rounding is in
            # the way.
            rounding = float(np.finfo(self.dtype).eps) * self.level
            everyone = self.tally[1] >= self.order.shape[0]
            # While Σ v is not 0 the intercept moves on, whether or not its last moves let samples gain.
            least = float(np.finfo(self.dtype).eps) * max(1.0, float(np.abs(F).max(initial=0.0)))
            moving = dual.free and float(np.abs(sums).max(initial=0.0)) * self.solver.constant > least
            self.stuck = self.strict == 0.0 and everyone and self.tally[0] <= rounding and not moving
            self.strict, self.poor = 0.1 * self.strict if self.strict > 1e-6 else 0.0, 0
            self.asleep[:] = 0
        self.done = relative <= SAFE * self.solver.tol or self.stuck

    def _intercept(self, F: Array) -> Array:
        if self.dual.free:
            return self.dual.best_intercept(F, self.own)
        return np.asarray(self.offsets[: self.own.shape[0]], dtype=np.float64)

    def parameters(self) -> tuple[Array, Array]:
        """Return weights and intercepts."""
        weights = self.weights[:, : self.own.shape[0]].T
        b = self._intercept(self._scores(self.dtype) if self.dual.free else weights)
        return self.multiple[:, None] * weights, self.multiple * b
