"""Limited-memory BFGS around a model of the Hessian, on some rows; :mod:`.quasi_newton` tells the method."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.solvers._iterated import Iterated
from separatrix.solvers._loop import Control, Step
from separatrix.solvers._score_space import AlongScores
from separatrix.solvers._smooth_certificate import dual_value
from separatrix.solvers.curvature import DEAR, Curvature, Diagonal, Shared
from separatrix.solvers.small_logit import is_small
from separatrix.solvers.smooth import Point, SmoothObjective

if TYPE_CHECKING:
    from separatrix.solvers.quasi_newton import QuasiNewton

#: Relative size of rounding errors in single precision sweeps: nearer than that, work in double.
_SINGLE = 3e-6
#: Tolerance from which on steps to rounded parameters may end a fit.
_COARSE = 1e-5
#: Fewer entries than this are worked on in double precision from the start, and with Newton's own steps.
_SMALL = 1 << 18
#: An estimate of the distance from the minimum counts this many times.
CAUTION = 10.0
#: The Newton decrement with a bound of what it lacks, this many times: only the Hessian's change is unknown.
SURE = 2.0
#: Where gains have risen so often, a small one says nothing of the next, but so many together do.
_ROUGH, _RECENT = 5, 6
#: Factor within which the gain of a step shows that a model is true.
_TRUE = 1.25
#: Share of the gain before that a true model leaves at most.
_QUICK = 0.25
#: Times the goal from which on the duality gap may soon be within it, and the share of what an exact Hessian
#: costs that is spent on waiting for it.
_WITHIN, _WAIT = 1e3, 0.25
#: Estimates in a row that must call for a dear model.
_PATIENCE = 3
#: There a new model is formed after so many times the steps before the last one.
_OFTEN = 1.5
#: Relative distance from the minimum from which on a Hessian is used for several of Newton's steps.
_NEAR = 0.03
#: Steps after which the first model that knows more than a diagonal is formed anew.
_SOON = 4
#: Most looks along the first step for its best length.
_LENGTHS = 6
#: Length of a step after which the Hessian is another one.
_FAR = 1.5
#: Share of the distance between a sample's minimum and that of all rows that needs no steps on the sample.
_LITTLE = 0.3
#: Steps after which a shared model of dear products learns what the scores are like.
_EARLY = 1, 3


class Flat:
    """Flat vectors in (w, b'), where b' belongs to centred features."""

    def __init__(self, mean: Array, columns: int) -> None:
        self.mean, self.columns = mean, columns

    def gradient(self, point: Point) -> Array:
        """Return the gradient at a point; not to be changed."""
        if point.flat is None:
            centred = point.gradient - point.gradient_intercept[:, None] * self.mean
            point.flat = np.concatenate([centred.ravel(), point.gradient_intercept])
        return point.flat

    def split(self, flat: Array) -> tuple[Array, Array]:
        """Return the parts of weights, one row per column, and of intercepts; of one vector or several."""
        weights = flat[..., : -self.columns]
        return weights.reshape(*flat.shape[:-1], self.columns, -1), flat[..., -self.columns :]

    def step(self, flat: Array) -> tuple[Array, Array]:
        """Return the step in (w, b) that a flat step in (w, b') means."""
        weights, slopes = self.split(flat)
        return weights, slopes - weights @ self.mean


class Descent:
    """The descent on one sample of the rows, or on all."""

    def __init__(
        self,
        solver: QuasiNewton,
        objective: SmoothObjective,
        rows: SmoothObjective,
        coef: Array,
        intercept: Array,
        later: bool,
        model: Curvature | None = None,
    ) -> None:
        # The model of a sample, for the first step; it can end nothing.
        self.lent = model
        self.solver, self.objective, self.rows, self.later = solver, objective, rows, later
        self.final = objective is solver.objective
        self.flat, self.exact = solver.flat, solver.method == "newton"
        self.keeps = self.exact or (rows is objective and objective.columns == 1)
        # A sample's minimum is as far from that of all rows as chance makes it: about half for each weight.
        self.chance = 0.5 * coef.size * (solver.objective.view.shape[0] / objective.view.shape[0])
        self.tol = solver.tol if self.final else max(solver.tol, 1e-3)
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=solver.memory)
        n, d = objective.view.shape
        # After samples have shown the way few steps are left: what single precision saves on one column of
        # doubles, which are read all the same, is less than the evaluation in double at the end.
        few = later and self.final and objective.columns == 1 and objective.view.dtype == np.float64
        self.small = n * objective.view.row_elements * objective.columns <= _SMALL
        # Whether a step costs next to nothing.
        self.tiny = is_small(solver.problem)
        # Sparse rows are always worked on in double precision.
        self.single = n * d > _SMALL and not few and not objective.view.sparse
        # Whether parameters are rounded to what would be returned now before an evaluation: the last step
        # then needs no further evaluation. How often that may yet be tried in double precision.
        self.rounding = False
        self.trials = 3 if solver.problem.view.dtype == np.float32 and self.tol >= _COARSE else 0
        self.point = self._at(coef, intercept)
        self.gains, self.rises = [np.inf] * 4, 0
        self.lefts: deque[float] = deque(maxlen=_PATIENCE)
        # Whether the last step was Newton's.
        self.fresh = False
        # The step from here, once known.
        self.ahead: Array | None = None
        # Whether a long step has left behind what the model knows.
        self.far = False
        # A point with its dual value, once that was asked for.
        self.proof: tuple[Point, float | None] | None = None
        # Steps for which the duality gap was waited for.
        self.waited = 0
        # What the model expected of the last step.
        self.foreseen = np.inf
        # What the model is multiplied by: what the latest step has shown of it.
        self.scale = 1.0

    def _at(self, coef: Array, intercept: Array) -> Point:
        self.solver.sweeps += self.objective.view.shape[0] / self.solver.objective.view.shape[0]
        # Newton's method needs all residuals for the next Hessian; one column's are kept for little.
        kept = np.empty((self.objective.view.shape[0], self.objective.columns)) if self.keeps else None
        if self.rounding:
            dtype = self.solver.problem.view.dtype
            coef, intercept = (values.astype(dtype).astype(np.float64) for values in (coef, intercept))
        return self.objective.at(coef, intercept, single=self.single, residuals=kept)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration; on a sample, until it has shown the way."""
        iteration = refresh = 0
        if self.final and self.later and self._measure() <= self.tol:
            if self.single:
                self._go_double()
            yield Step(self._record(self._measure()), self._measure())
        before, measure = np.inf, np.inf
        while not control.expired():  # else there is no time for a first step
            # Near the solution an exact Hessian of large data serves for several steps while these are quick.
            second = self.lent is not None and iteration == 1
            exact = self.exact and (self.small or second or measure > _NEAR or measure > 0.25 * before)
            if exact:
                self.pairs.clear()
            if self.lent is not None and iteration == 0:
                self.model, self.ahead = self.lent, None
            elif (exact or (not self.exact and iteration >= refresh)) and self._refresh(iteration):
                seldom = 3.0 if self.solver.objective.features < DEAR else 6.0
                seldom = _OFTEN if self.rises >= _ROUGH else seldom
                refresh = max(8 if iteration == 1 else 4, int(seldom * iteration))
            if iteration in _EARLY and self.solver.objective.features >= DEAR:
                self._look_along()
            if self.final and (self._nearly() if self.single else self._worth_rounding()):
                self.single, self.rounding = False, True
            moved = self._search(self._direction(), control)
            if moved is None:
                if control.expired():  # it was not looked for long enough
                    return
                if self.lent is not None and iteration == 0:
                    self.lent = None
                    continue
                if self.single or self.rounding:
                    self.trials = 0
                    self._go_double()
                    continue
                if self.final and self._settle():
                    continue
                if self.final:
                    # Where there is no way down the rest is rounding, unless the model itself has failed.
                    end = "converged" if np.all(np.isfinite(self._direction())) else "max_iter"
                    yield Step(self._record(0.0), 0.0, control.reason() or end)
                return
            self.rounding = False
            if control.expired():
                # Models of large data take long to tell more than that no loss is below 0.
                self.gains.append(self.point.value - moved.value)
                self.point, self.ahead, self.fresh = moved, None, False
                measure = min(self.gap() / max(abs(moved.value), 1e-300), 1.0)
                yield Step(self._record(measure), measure)
                return
            self.fresh = self.fresh and not self.pairs
            self._remember(moved)
            self.gains.append(self.point.value - moved.value)
            self.foreseen = self._decrement()
            self.rises += self.gains[-1] > self.gains[-2]
            self.point, self.ahead = moved, None
            iteration += 1
            if self.far:
                refresh, self.far = iteration, False
                self.pairs.clear()
            if isinstance(self.model, Iterated):
                self._newton(self.model)
            before, measure = measure, self._measure()
            if self.single and self.final and measure <= max(self.tol, _SINGLE):
                self._go_double()
                measure = self._measure()
            more = not self.final or (self.lent is not None and iteration == 1)
            if not more and measure <= self.tol:
                more = self._waits()
                again = 0 if more else self._settle()
                if again:
                    refresh, measure = iteration + again, self._measure()
                    more = self.tiny  # one step more is better than proof that it is not needed
            if self.solver.separated():
                yield Step(self._record(measure), measure, "separable")
                return
            yield Step(self._record(measure), np.inf if more else measure)
            if not self.final and (measure <= self.tol or self._shown()):
                return

    def _refresh(self, iteration: int) -> bool:
        """Form a new model of the Hessian, if one is worth it; return whether."""
        near = self.later or iteration > 4
        rough = self.rises >= _ROUGH and iteration >= self.solver.exact_cost()
        model = self.solver.exact_curvature(self.objective) if rough else None
        if model is None:
            # A single estimate says little: a small gain may be followed by larger ones.
            self.lefts.append(self._left())
            left = min(self.lefts) if len(self.lefts) == _PATIENCE else 0.0
            model = self.solver.curvature(self.objective, self.rows, iteration, left, near)
        if model is None:
            return False
        if isinstance(getattr(self, "model", None), Diagonal) and not isinstance(model, Diagonal):
            self.rises = 0  # what was rough with the one need not be so with the other
        if isinstance(model, Iterated):
            self._newton(model)
            return True
        self.model, self.ahead = model, None
        self.model.refresh(self.point)
        self.fresh = self.exact
        return True

    def _look_along(self) -> None:
        """Tell a shared model what has become of the scores, where it is to serve for long."""
        shared = self.model.shared if isinstance(self.model, AlongScores) else self.model
        if isinstance(shared, Shared) and AlongScores.fits(shared):
            self.model, self.ahead = AlongScores(shared), None
            self.model.refresh(self.point)

    def _settle(self) -> int:
        """Form a better model where the present one does not know what it estimates.

        That is an exact Hessian where the way was too rough for an estimate to be trusted, or where a step
        with it costs next to nothing. A diagonal knows nothing of directions that hardly bend the objective:
        there another model has to agree. Return after how many steps to form one anew, 0 if there is none.
        """
        again, model = sys.maxsize, None
        rough = self.rises >= _ROUGH or self.tiny
        doubtful = isinstance(self.model, Diagonal) or (not self.fresh and rough)
        if not doubtful or (not self.tiny and self._within_gap()):
            return 0
        if isinstance(self.model, Diagonal):
            again = _SOON
            model = self.solver.curvature(self.objective, self.rows, sys.maxsize, np.inf, near=True)
            self.rises = 0
        else:
            model = self.solver.exact_curvature(self.objective)
        if model is None:
            return 0
        self._newton(model)
        return again

    def _waits(self) -> bool:
        """Return whether the duality gap may close before a Hessian that could be trusted would be formed."""
        doubtful = not (self.fresh or self.tiny or self.rises < _ROUGH or isinstance(self.model, Diagonal))
        if not (doubtful and self.solver.may_be_exact()):
            return False
        self.waited += 1
        close = self.gap() <= _WITHIN * self.tol * abs(self.point.value)
        return close and self.waited <= _WAIT * self.solver.exact_cost() and not self._within_gap()

    def _newton(self, model: Curvature) -> None:
        """Go on with this model, formed at the present point, alone."""
        self.model, self.ahead, self.fresh = model, None, True
        self.pairs.clear()
        self.model.refresh(self.point)

    def _left(self) -> float:
        """Return how many iterations are left at the present rate."""
        before, _, _, last = self.gains[-4:]
        if not (0 < before < np.inf and last > 0):
            return 0.0
        rate = float(np.clip((last / before) ** (1 / 3), 0.1, 0.98))
        goal = max(self.tol * abs(self.point.value) / CAUTION, 1e-300)
        return float(np.log(max(last * rate / (1 - rate) / goal, 1.0)) / -np.log(rate))

    def _nearly(self) -> bool:
        """Return whether the next step is likely the last: it can be judged in double precision at once."""
        decrement, last = self._decrement(), self.gains[-1]
        if self.rises >= _ROUGH or not 0 < decrement < last < np.inf:
            return False
        rate = float(np.sqrt(decrement / last))
        return CAUTION * decrement * rate / (1 - rate) <= self.tol * abs(self.point.value)

    def _worth_rounding(self) -> bool:
        """Return whether the next step may be the last, unless that was hoped for too often."""
        close = self.trials > 0 and self._decrement() <= self.tol * abs(self.point.value)
        self.trials -= close
        return close

    def _go_double(self) -> None:
        """Work in double precision from here on; parameters are rounded to what would be returned now."""
        self.single, self.rounding = False, True
        self.point, self.ahead = self._at(self.point.coef, self.point.intercept), None
        self.rounding = False

    def _direction(self) -> Array:
        """Return the quasi-Newton step, by the two-loop recursion around the model of the Hessian."""
        if self.ahead is not None:
            return self.ahead
        q = -self.flat.gradient(self.point)
        factors, r = [], q
        for s, y, rho in reversed(self.pairs):
            a = rho * float(s @ q)
            q -= a * y
            factors.append(a)
        if self.pairs:
            # The model is scaled to what it makes of the latest change of the gradient.
            _, y, rho = self.pairs[-1]
            solved = self._solve(np.stack([q, y]))
            r, smoothed = solved[0], solved[1]
            self.scale = 1.0 / (rho * float(y @ smoothed))
            r *= self.scale
        else:
            r, self.scale = self._solve(q), 1.0
        for (s, y, rho), a in zip(self.pairs, reversed(factors), strict=True):
            r += (a - rho * float(y @ r)) * s
        self.ahead = r
        return r

    def _solve(self, flat: Array) -> Array:
        weights, slopes = self.model.solve(*self.flat.split(flat))
        if not self.solver.problem.fit_intercept:
            slopes = np.zeros_like(slopes)
        if self.solver.problem.joint:
            # What all classes have in common changes nothing.
            weights = weights - weights.mean(axis=-2, keepdims=True)
            slopes = slopes - slopes.mean(axis=-1, keepdims=True)
        return np.concatenate([weights.reshape(*flat.shape[:-1], -1), slopes], axis=-1)

    def _search(self, direction: Array, control: Control) -> Point | None:
        """Return a point with enough descent (Armijo's rule) along the direction; None if there is none."""
        here = self.point
        slope = float(self.flat.gradient(here) @ direction)
        if not slope < 0:
            return None
        weights, intercepts = self.flat.step(direction)
        noise = (1e-6 if self.single or self.rounding else 1e-13) * abs(here.value)
        alone = self.solver.at_once and not here.coef.any()
        t = self._length(slope, weights, intercepts) if alone else 1.0
        self.far = t > _FAR
        for _ in range(40):
            there = self._at(here.coef + t * weights, here.intercept + t * intercepts)
            descent = there.value - here.value
            if np.isfinite(there.value):
                ahead = float(self.flat.gradient(there) @ direction)
                # Near the minimum values are rounded more coarsely than slopes: there the slope decides.
                if descent <= 1e-4 * t * slope or (descent <= noise and abs(ahead) <= 0.9 * abs(slope)):
                    return there
                bend = 2 * (descent - t * slope) / (t * t)
                t = float(np.clip(-slope / bend if bend > 0 else 0.5 * t, 0.1 * t, 0.5 * t))
            else:
                t *= 0.1
            if control.expired():
                return None
        return None

    def _length(self, slope: float, weights: Array, intercepts: Array) -> float:
        """Return about the best length of a step from zero weights, at least 1.

        Where all probabilities are alike the Hessian is largest, and a step that believes it is too short.
        Along a line the scores tell the objective: looking further costs half a sweep.
        """
        objective, dtype = self.objective, self.objective.view.dtype
        scores = objective.view.scores(weights.astype(dtype), intercepts.astype(dtype))
        along = SmoothObjective(replace(objective.problem, view=view_of(scores)), 0.0)
        same, square = np.eye(objective.columns), objective.l2 * float(np.vdot(weights, weights))
        before, last, t = 0.0, slope, 1.0
        for _ in range(_LENGTHS):
            here = float(np.trace(along.at(t * same, self.point.intercept).gradient)) + t * square
            if abs(here) <= 0.1 * abs(slope) or not np.isfinite(here):
                break
            secant = t - here * (t - before) / (here - last)
            if here > 0:
                return max(secant, 1.0)
            before, last, t = t, here, min(max(secant, 1.2 * t), 4.0 * t)
        return t

    def _remember(self, moved: Point) -> None:
        step = moved.coef - self.point.coef
        shift = moved.intercept - self.point.intercept + step @ self.flat.mean
        s = np.concatenate([step.ravel(), shift])
        y = self.flat.gradient(moved) - self.flat.gradient(self.point)
        product = float(s @ y)
        if product > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.pairs.append((s, y, 1.0 / product))

    def gap(self) -> float:
        """Return the duality gap ``‖∇_W F‖² / 2λ``, as it will be when the intercept is optimal."""
        if self.objective.l2 == 0:
            return np.inf
        g, h = self.flat.split(self.flat.gradient(self.point))
        if hasattr(self, "model"):
            g = g - h[:, None] * self.model.slant
        return float(np.vdot(g, g)) / (2 * self.objective.l2) + float(h @ h) / (0.5 * self.solver.whole.total)

    def gained(self) -> float:
        """Return what the steps have gained."""
        return sum(gain for gain in self.gains if gain < np.inf)

    def _decrement(self) -> float:
        """Return half the squared Newton decrement, as the model tells it."""
        return -0.5 * float(self.flat.gradient(self.point) @ self._direction())

    def distance(self) -> float:
        """Return an estimate of ``F − min F``: the Newton decrement, or what slow progress leaves to gain."""
        if not hasattr(self, "model"):
            return np.inf
        # A model that was wrong by more than caution allows for may be right where it was not tried.
        decrement = self._decrement() / min(1.0, CAUTION * max(self.scale, 1e-300))
        if isinstance(self.model, Iterated):
            decrement = self.model.most
        before, between, last = self.gains[-3:]
        # Of one ratio only, the root: the next one may be worse.
        before = before if before < np.inf else between
        rate = min(float(np.sqrt(max(last, 0.0) / before)), 0.98) if 0 < before < np.inf else 0.5
        # A model that foresaw the last gain knows what is left, too; but steps of a true model are quick.
        foreseen = self.foreseen / _TRUE <= last <= self.foreseen * _TRUE and last <= _QUICK * between
        left = 0.0 if foreseen else last * rate / (1 - rate)
        recent = self.gains[-_RECENT:]
        if self.rises >= _ROUGH:
            left = max(left, sum(recent))
        return max(decrement, 0.0 if self.fresh else left)

    def caution(self) -> float:
        """Return how many times the distance counts."""
        bounded = isinstance(getattr(self, "model", None), Iterated) and self.objective.l2 > 0
        return SURE if bounded else CAUTION

    def estimates(self) -> bool:
        """Return whether the distance counts: a diagonal, or a sample of the rows, sees too little."""
        return self.final and hasattr(self, "model") and not isinstance(self.model, Diagonal)

    def _measure(self) -> float:
        value = max(abs(self.point.value), 1e-300)
        gap, sure = self.gap(), self.caution() * self.distance()
        if self.final and not self.single and gap <= self.tol * value < sure:
            gap = self._true_gap()
        return min(gap, sure) / value

    def _true_gap(self) -> float:
        """Return the duality gap itself: its estimate knows little of the intercept."""
        dual = self.proven(self.point)
        return np.inf if dual is None else max(self.point.value - dual, 0.0)

    def _within_gap(self) -> bool:
        """Return whether the duality gap proves that the end is reached."""
        goal = self.tol * abs(self.point.value)
        return self.gap() <= goal and self._true_gap() <= goal

    def proven(self, point: Point) -> float | None:
        """Return the value of a dual point at these parameters, if there is one, computed once."""
        if self.proof is None or self.proof[0] is not point:
            self.proof = point, dual_value(self.solver.whole, point)
        return self.proof[1]

    def _shown(self) -> bool:
        """Return whether what is left to gain on a sample is little beside what chance has added to it."""
        return self.caution() * self.distance() <= _LITTLE * self.chance

    def _record(self, measure: float) -> dict[str, float]:
        return {
            "objective": self.solver.unit * self.point.value,
            "relative_gap": measure,
            "samples": float(self.objective.view.shape[0]),
            "sweeps": self.solver.sweeps,
        }
