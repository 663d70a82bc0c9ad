r"""Linear support vector machines by dual coordinate descent: for sparse or wide data.

The problem and its dual are those of :mod:`separatrix.solvers._box_dual`; a step solves for one sample's dual
variables exactly (``_hot/box_dual.hpp``). An epoch visits the samples in random order, those that add next
to nothing to the duality gap less often: the gap is a sum over samples, and a visit sees its part of it.
(Hsieh et al., 2008, algorithm 3, go by the gradient's sign.) Every few epochs the way they went is
extrapolated (:mod:`separatrix.solvers._extrapolation`). Columns are independent problems; a few cache lines
of them share the visits, and such groups run in threads, so that the result does not depend on their number.

A free intercept is the multiplier of ``Σ v = 0``: the augmented Lagrangian adds σ to all inner products, with
which the intercept follows every step, and after each epoch the multiplier moves by ``σ Σ v``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._box_dual import BoxDual
from separatrix.solvers._coordinate_rows import row_arguments, visit
from separatrix.solvers._extrapolation import Extrapolation
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._rows import in_memory

if TYPE_CHECKING:
    from separatrix.solvers.semismooth_newton import SemismoothNewton

#: Least curvature of a dual variable, whose steps go from one end to the other.
_FLAT = 1e-25
#: Bytes of the weights of one feature in a group of columns, at most; columns of a register.
_MOST_BYTES, _LANES = 256, 8
#: Tolerances from here on are reached in single precision, unless steps are too stiff for it.
_SINGLE_TOL, _SINGLE_STIFFNESS = 1e-5, 1e6
#: A sample may rest if the gap is less than this part of tol, were all samples to add as much to it.
_NEGLIGIBLE = 1.0
#: The bits of a sample's state that count how many epochs it still rests.
_REST = np.uint8(15)
#: The loop's own gap is rounded: it must be below this part of the tolerance.
_SAFE = 0.95
#: Epochs after which, and so many more to come, coordinate descent counts as slow.
_EPOCHS, _SLOW = 30, 150
#: Epochs before the first extrapolation, and between two; stored values visited per number it looks at.
_CREEPING, _EVERY, _WORTH = 10, 3, 3.0
#: Epochs after which it is asked again whether Newton's method would be quicker.
_REFLECT = 8
#: Nanoseconds per number in the cube of Newton's matrices, for all steps; of a visit per stored value, for
#: one column, and for as many more as a register holds; of an epoch besides.
_NEWTON_NS, _VISIT_NS, _EPOCH_NS = 0.6, 1.5, 1e5
#: The same per number of the samples whose inner products they are; how long Newton's method may take where
#: no step gains any more.
_PRODUCT_NS, _RESCUE_NS = 2.0, 3e10
#: Epochs that Newton's method costs where conjugate gradients take the place of matrices.
_ITERATED = 400.0
#: How steeply a sample's dual variable is guessed to rise with its margin's shortfall from given weights.
_SLOPE = 5.0
#: Part of tol that rounded scores may cost: beyond, double precision takes over.
_ROUNDED = 0.1
#: Checks without a better gap after which all samples wake.
_PATIENCE = 3


class BoxCoordinate:
    """Solver; see the module's description.

    Parameters
    ----------
    problem : Problem
        Samples, codes or targets, weights; a loss of :data:`separatrix.solvers._box_dual.LOSS_NAMES`. Its
        view must be in memory.
    C : float
        Factor of the loss.
    scaling : float or None
        The constant feature whose penalised weight is the intercept; None for a free intercept.
    coef, intercept : ndarray of shape (columns, features) and (columns,)
        Where to start.
    tol : float
        Relative duality gap to reach.
    seed : int
        Where the random orders start.
    newton : bool
        Whether Newton's method may finish what is slow.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.losses import LOSSES
    >>> from separatrix.solvers._loop import Below, run
    >>> problem = Problem(view_of(np.array([[-2.0], [-1.0], [1.0], [2.0]])), np.array([0, 0, 1, 1]),
    ...                   np.array([[-1], [1]], dtype=np.int8), loss=LOSSES["hinge"], fit_intercept=False)
    >>> solver = BoxCoordinate(problem, C=10.0, scaling=None, coef=np.zeros((1, 1)),
    ...                        intercept=np.zeros(1), tol=1e-9, seed=0)
    >>> result = solver.finish(run(solver, Below(1e-9), max_iter=100))
    >>> result.certificate.status, result.coef.round(6).tolist()
    ('converged', [[1.0]])
    """

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        scaling: float | None,
        coef: Array,
        intercept: Array,
        tol: float,
        seed: int,
        newton: bool = False,
    ) -> None:
        self.newton = newton
        self.view = in_memory(problem.view, "dual coordinate descent")
        self.problem, self.tol = problem, float(tol)
        self.dual = BoxDual(problem, C, scaling)
        self.coef = np.asarray(coef, dtype=np.float64)
        self.intercept = np.asarray(intercept, dtype=np.float64)
        present = problem.weights
        self.visits = Visits(self.view, problem.classes, present, shuffle=True, seed=seed, merge=False)
        self.seed = seed
        norms = self.view.row_norms()
        median = float(np.median(norms[self.visits.order])) if self.visits.order.size else 1.0
        self.constant = self._sigma(median) if self.dual.free else self.dual.square
        # A sample of zeros without an intercept has no curvature: its variable goes to the end at once.
        self.norms = np.maximum(norms + self.constant, _FLAT)
        stiffness = float((self.dual.upper * self.norms).max(initial=0.0))
        self.single = tol >= _SINGLE_TOL and (self.dual.squared or stiffness < _SINGLE_STIFFNESS)
        self.primal, self.gap = np.zeros(problem.columns), np.full(problem.columns, np.inf)
        self.newton_solver: SemismoothNewton | None = None
        self.groups = self._grouped()
        if self.coef.any():
            self._start()

    def _sigma(self, norm: float) -> float:
        """Return σ of the augmented Lagrangian: as a sample's norm, but no less than moves the intercept.

        At a small C all dual variables are at their bounds, ``Σ v`` is at most ``Σ U``, and by σ times that
        the intercept moves in an epoch: it should cross the scores that are asked for.
        """
        total = float(self.dual.upper.sum())
        spread = 1.0 if self.dual.numbers is None else float(np.std(self.dual.numbers))
        return max(norm, spread / total if total > 0 else 0.0, 1e-30)

    def _start(self) -> None:
        """Take over given weights as far as the dual can express them."""
        dual, every = self.dual, np.arange(self.problem.columns)
        F = self.view.scores(self.coef, self.intercept).T.astype(np.float64)
        codes = dual.codes(every)
        short: Array = (dual.numbers if codes is None else codes) - F  # type: ignore[operator]
        short = np.sign(short) * np.maximum(np.abs(short) - dual.epsilon, 0.0)
        V = 2.0 * short if dual.squared else np.clip(_SLOPE * short, -1.0, 1.0)
        if codes is not None:
            V = np.where(codes * V > 0, V, 0.0)
        V *= dual.upper
        # v is right at an optimum, and C'/C times as large at that of another C'.
        G = self.view.transposed(V.T.astype(self.view.dtype)).T
        wanted, square = np.einsum("kj,kj->k", self.coef, G), np.einsum("kj,kj->k", G, G)
        theta = np.clip(np.divide(wanted, square, out=np.zeros_like(wanted), where=square > 0), 0.0, 1.0)
        for group in self.groups:
            group.take_over(theta[group.own, None] * V[group.own])

    def _grouped(self) -> list[_Group]:
        dtype = np.dtype(np.float32 if self.single else np.float64)
        K = self.problem.columns
        # Two groups at least, for two threads, where they fill cache lines.
        count = max(2 if K > _LANES else 1, -(-K * dtype.itemsize // _MOST_BYTES))
        width = -(-K // (count * _LANES)) * _LANES
        starts = range(0, K, width)
        return [_Group(self, np.arange(k, min(k + width, K)), dtype, self.seed + k) for k in starts]

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each epoch; its measure is the last computed relative gap."""
        epoch, measure, objective = 0, np.inf, 0.0
        while True:
            awake = [group for group in self.groups if not group.done]
            for _ in in_threads(lambda i: awake[i].epoch(control), len(awake)):  # noqa: B023
                pass
            epoch += 1
            # Few epochs end with a look at the gap, and many are so short that all else is felt.
            looked = [group for group in awake if group.checked == group.count]
            for group in looked:
                self.primal[group.own], self.gap[group.own] = group.primal, group.gap
            if looked:
                measure, objective = self._measure(), float(self.primal.sum())
                if _SAFE * self.tol < measure <= self.tol:
                    measure = float(np.nextafter(self.tol, np.inf))
            done = all(group.done for group in self.groups)
            stuck = done and any(group.stuck for group in self.groups)
            if done and not stuck:
                measure = min(measure, self.tol)
            known = measure < np.inf
            record = {
                "epoch": epoch,
                "gain": sum(float(group.tally[0]) for group in awake),
                "objective": objective if known else None,
                "relative_gap": measure if known else None,
            }
            # What no step improves any more in double precision is left to Newton's method, or as it is.
            halted = stuck and not self.single and measure > self.tol
            lost = [group for group in self.groups if group.stuck] if halted and self.newton else []
            rescued = bool(lost) and self._newton_cost(lost) <= _RESCUE_NS
            yield Step(record, measure, "max_iter" if halted and not rescued else None)
            if control.reason() is not None:
                return
            if rescued:
                yield from self._finish_with_newton(control, lost)
                return
            if self.single and (stuck or any(group.rounded for group in self.groups)):
                self._promote()
                self.gap[:], measure = np.inf, np.inf
            if not looked and epoch % _REFLECT:
                continue
            slow = [group for group in self.groups if group.slow and not group.done]
            all_slow = slow and len(slow) == sum(not group.done for group in self.groups)
            if self.newton and all_slow and self._newton_fits(slow):
                yield from self._finish_with_newton(control, slow)
                return

    def _measure(self) -> float:
        total, gap = float(self.primal.sum()), float(self.gap.sum())
        return gap / total if np.isfinite(gap) and total > 0 else np.inf

    def _newton_cost(self, groups: list[_Group]) -> float:
        """Return about how many nanoseconds Newton's method takes, by matrices of samples or of features."""
        from separatrix.solvers._newton_columns import MOST_FREE

        most = np.inf if self.dual.squared else self.dual.upper[:, None] * (1.0 - 1e-6)
        free = max(int(np.count_nonzero((g.v != 0) & (np.abs(g.v) < most), axis=0).max()) for g in groups)
        size = min(free, self.view.shape[1])
        numbers = _NEWTON_NS * float(size) ** 3 if size <= MOST_FREE else np.inf
        if free < self.view.shape[1]:
            numbers += _PRODUCT_NS * float(free) ** 2 * self.view.row_elements
        if self.view.sparse:
            numbers = min(numbers, _ITERATED * self._visit_ns)
        return float(numbers * sum(g.own.shape[0] for g in groups))

    @property
    def _visit_ns(self) -> float:
        """Nanoseconds in which all samples are visited for one column."""
        return _VISIT_NS * float(self.visits.order.shape[0]) * (self.view.row_elements + 1.0)

    def _newton_fits(self, slow: list[_Group]) -> bool:
        """Return whether Newton's method costs no more than the epochs that it saves: a guess at first."""
        # Epochs cost what they visit: samples at rest, in the end most, cost nothing.
        epochs = [g.ahead if g.count > _SLOW else min(g.ahead, 2.0 * g.count) for g in slow]
        each = [_EPOCH_NS + self._visit_ns * g.share * (1.0 + g.padded // _LANES) for g in slow]
        return bool(self._newton_cost(slow) < np.dot(epochs, each))

    def _finish_with_newton(self, control: Control, slow: list[_Group]) -> Iterator[Step]:
        """Solve the columns that coordinate descent approaches slowly by Newton's method."""
        from separatrix.solvers.semismooth_newton import SemismoothNewton

        self.coef, self.intercept = np.empty_like(self.coef), np.empty_like(self.intercept)
        for group in self.groups:
            self.coef[group.own], self.intercept[group.own] = group.parameters()
        own = np.concatenate([group.own for group in slow])
        settings = self.dual.C, self.dual.scaling
        self.newton_solver = SemismoothNewton(
            self.problem,
            C=settings[0],
            scaling=settings[1],
            coef=self.coef,
            intercept=self.intercept,
            tol=self.tol,
            columns=own[self.gap[own] > _SAFE * self.tol * self.primal[own]],
            V=self._dual_variables(self.groups),
        )
        found = self.newton_solver
        for step in found.steps(control):
            chosen = np.concatenate(found.batches)
            known = np.isfinite(found.gap[chosen])
            self.primal[chosen[known]], self.gap[chosen[known]] = (
                found.primal[chosen[known]],
                found.gap[chosen[known]],
            )
            step.measure = self._measure()
            step.record.update(objective=float(self.primal.sum()), relative_gap=step.measure)
            yield step

    def _promote(self) -> None:
        """Go on in double precision."""
        old, self.single = self.groups, False
        V = self._dual_variables(old)
        self.groups = self._grouped()
        for group in self.groups:
            group.take_over(V[group.own])
            group.follow(next(before for before in old if group.own[0] in before.own))

    def _dual_variables(self, groups: list[_Group]) -> Array:
        V = np.zeros((self.problem.columns, self.view.shape[0]))
        for group in groups:
            V[group.own] = group.v[:, : group.own.shape[0]].T
        return V

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters in the data's precision and what they prove."""
        coef = np.empty((self.problem.columns, self.view.shape[1]), dtype=self.view.dtype)
        intercept = np.empty(self.problem.columns, dtype=self.view.dtype)
        if self.newton_solver is not None:
            coef[:], intercept[:] = self.newton_solver.coef, self.newton_solver.intercept
            V = self.newton_solver.V
        else:
            for group in self.groups:
                coef[group.own], intercept[group.own] = group.parameters()
            V = self._dual_variables(self.groups)
        found = self.dual.evaluate(coef, intercept, V)
        samples = int(np.count_nonzero(self.dual.upper > 0))
        certificate = found.certificate(outcome, self.tol, samples)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)


class _Group:
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

    def follow(self, before: _Group) -> None:
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

    def _scores(self) -> Array:
        """Return the scores without intercept, (columns, n), in double precision."""
        view = self.solver.view
        out = np.empty((view.shape[0], self.padded), dtype=self.dtype)
        for part in view.parts():
            _hot.padded_scores(*row_arguments(view.read(part)), self.weights, out[part])
        return np.ascontiguousarray(out[:, : self.own.shape[0]].T, dtype=np.float64)

    def _check(self) -> None:
        dual, m = self.dual, self.own.shape[0]
        F = self._scores()
        norms = np.einsum("jk,jk->k", self.weights, self.weights, dtype=np.float64)[:m]
        V = np.ascontiguousarray(self.v[:, :m].T, dtype=np.float64)
        b = self._intercept(F)
        F += b[:, None]
        problem, sums = self.solver.problem, V.sum(axis=1)
        if dual.numbers is not None:
            losses = problem.loss.value(F - dual.numbers) @ dual.upper
        else:
            y = problem.codes[:, self.own].T[:, problem.classes]
            losses = np.where(y != 0, problem.loss.value(y * F), 0.0) @ dual.upper
        self.primal = dual.primal(norms, b, losses)
        bound = dual.bound(*dual.sums(V), norms, sums)
        self.gap = np.maximum(self.primal - bound, 0.0)
        if dual.free:
            self.gap += np.abs(sums) * (1.0 + np.abs(b))
        relative = float(self.gap.sum()) / max(float(self.primal.sum()), 1e-300)
        self.level = float(self.primal.sum())
        if self.dtype == np.float32 and not dual.squared:
            # A loss with kinks charges every score on a kink for its rounding.
            scores = float(np.finfo(np.float32).eps) * float((np.abs(F) @ dual.upper).sum())
            self.rounded = scores > _ROUNDED * self.solver.tol * self.level
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
            self.slow = self.count >= _EPOCHS and self.ahead > _SLOW
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
        self.done = relative <= _SAFE * self.solver.tol or self.stuck

    def _intercept(self, F: Array) -> Array:
        if self.dual.free:
            return self.dual.best_intercept(F, self.own)
        return np.asarray(self.offsets[: self.own.shape[0]], dtype=np.float64)

    def parameters(self) -> tuple[Array, Array]:
        """Return weights and intercepts."""
        weights = self.weights[:, : self.own.shape[0]].T
        return weights, self._intercept(self._scores() if self.dual.free else weights)
