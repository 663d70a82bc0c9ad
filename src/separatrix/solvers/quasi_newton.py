r"""Preconditioned quasi-Newton descent for logistic and softmax regression.

    min_{W,b}  Σ_i s_i ℓ(W x_i + b, c_i) + (λ/2) ‖W‖²

Limited-memory BFGS (Nocedal & Wright, algorithm 7.4) whose initial matrix is a model of the Hessian
(:mod:`separatrix.solvers.curvature`). With the exact Hessian formed anew at each step and no
memory it is Newton's method. Every evaluation is one sweep over the data.

Certificate. With ``λ > 0`` the residuals at (W, b), b optimal for W, are a feasible dual point, and
Fenchel's equality makes the duality gap ``‖∇_W F‖² / 2λ``. Without a penalty there is no such
bound; then half the squared Newton decrement, ``½ gᵀH⁻¹g``, estimates how far the value is from its
minimum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from separatrix.certificate import Certificate
from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers.curvature import Blocks, Coupled, Curvature, Diagonal, Shared, Whole, moments
from separatrix.solvers.smooth import Point, SmoothObjective

if TYPE_CHECKING:
    from separatrix.certificate import Separation
    from separatrix.solvers.separation import Watch

#: Bytes that the pairs of limited-memory BFGS may take.
_MEMORY_BYTES = 128 << 20
#: d³ against this many times the entries times columns: some thirty sweeps cost as much as one factor.
_SWEEPS_SAVED = 1000.0
#: Most features of a Gram matrix.
_MOST_FEATURES = 4096
#: Relative size of rounding errors in single precision sweeps: nearer than that, work in double.
_SINGLE = 3e-6
#: Fewer entries than this are worked on in double precision from the start.
_SMALL = 1 << 18
#: An estimate of the distance from the minimum counts this many times.
_CAUTION = 10.0
#: Sweeps that an early model of the Hessian may cost.
_WORTH = 12.0
#: Features from which products are dear, and the share of the rows that blocks are formed from there.
_DEAR, _CHOSEN = 256, 0.4
#: Sum of the residuals of a column, as a share of all weights, that counts as 0.
_FEASIBLE = 1e-11


class _Flat:
    """Flat vectors in (w, b'), where b' belongs to centred features."""

    def __init__(self, mean: Array, columns: int) -> None:
        self.mean, self.columns = mean, columns

    def gradient(self, point: Point) -> Array:
        centred = point.gradient - np.outer(point.gradient_intercept, self.mean)
        return np.concatenate([centred.ravel(), point.gradient_intercept])

    def split(self, flat: Array) -> tuple[Array, Array]:
        weights = flat[: -self.columns].reshape(self.columns, -1)
        return weights, flat[-self.columns :]

    def step(self, flat: Array) -> tuple[Array, Array]:
        """Return the step in (w, b) that a flat step in (w, b') means."""
        weights, slopes = self.split(flat)
        return weights, slopes - weights @ self.mean


class QuasiNewton:
    """Solver for smooth problems; see the module's description.

    Parameters
    ----------
    problem : Problem
        Samples, labels, weights; logistic loss.
    l2 : float
        λ.
    coef, intercept : ndarray
        Where to start.
    tol : float
        Relative distance from the minimum at which to stop.
    method : {"auto", "newton", "quasi-newton"}
        Newton's method, with the exact Hessian at each step, or a cheaper model of it; by default
        what fits the shape.
    seed : int
        Draws the samples of rows.
    watch : Watch or None
        Looks for separation on the way, which plain maximum likelihood needs.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        l2: float,
        coef: Array,
        intercept: Array,
        tol: float,
        method: str = "auto",
        seed: int = 0,
        watch: Watch | None = None,
    ) -> None:
        self.problem, self.tol = problem, tol
        self.objective = SmoothObjective(problem, l2)
        # Objectives are reported as ½‖W‖² + C Σ s ℓ, without penalty as Σ s ℓ.
        self.unit = 1.0 / l2 if l2 > 0 else 1.0
        self.whole = moments(self.objective)
        self.flat = _Flat(self.whole.mean, problem.columns)
        self.watch = watch
        self.separation: Separation | None = None
        self.method = self._choose(method)
        self.rng = np.random.default_rng(seed)
        self.sweeps = 0.0
        size = problem.columns * (self.objective.features + 1)
        self.memory = 0 if self.method == "newton" else int(np.clip(_MEMORY_BYTES // (16 * size), 4, 20))
        self.start = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)

    def _choose(self, method: str) -> str:
        """Return the model of the Hessian: newton (whole and exact), blocks or diagonal."""
        if method == "newton":
            return method
        n, d = self.objective.view.shape
        P, coupled = self.objective.columns, self.objective.codes is None
        elements = self.objective.view.row_elements
        size = P * (d + 1) if coupled else d + 1
        exact = n * elements**2 * (P * (P + 1) / 2 if coupled else P)
        if method == "auto" and size <= 1500 and exact + size**3 / 3 <= max(2e7, 24.0 * n * elements * P):
            return "newton"
        # Factors of a matrix must cost no more than the sweeps that they may save.
        return "diagonal" if d > _MOST_FEATURES or d**3 > _SWEEPS_SAVED * n * elements * P else "blocks"

    def _stages(self) -> list[SmoothObjective]:
        """Return the objective on growing samples of the rows, at last on all of them.

        Far from the solution a sample shows the way as well as all rows do.
        """
        n, d = self.objective.view.shape
        stages = [self.objective]
        if self.method != "blocks":
            return stages
        rows, order = n, self.rng.permutation(n)
        least = max(8 * d * self.objective.columns, 4000)
        while rows >= 4 * least:
            rows = max(rows // 8, least)
            stages.insert(0, self.objective.sample(np.sort(order[:rows])))
        return stages

    @property
    def point(self) -> Point:
        """Where the descent stands."""
        return self.last.point

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration."""
        coef, intercept = self.start
        rows: SmoothObjective | None = None
        for number, objective in enumerate(self._stages()):
            if objective is not self.objective:
                rows = objective
            elif rows is None:
                rows = self._model_rows()
            self.last = _Descent(self, objective, rows, coef, intercept, later=number > 0)
            yield from self.last.steps(control)
            if control.reason() is not None:
                return
            coef, intercept = self.point.coef, self.point.intercept

    def _model_rows(self) -> SmoothObjective:
        """Return the rows for models of the Hessian."""
        n, d = self.objective.view.shape
        count = max(16 * d, 4000)
        if self.method != "blocks" or count >= n / 2:
            return self.objective
        return self.objective.sample(np.sort(self.rng.permutation(n)[:count]))

    def curvature(
        self, target: SmoothObjective, rows: SmoothObjective, iteration: int, left: float, near: bool
    ) -> Curvature | None:
        """Return the best model of the Hessian that is worth its cost after so many iterations, if any.

        Far from the solution the whole Hessian misleads where some probabilities have come to 0 or 1.

        Parameters
        ----------
        target : SmoothObjective
            The objective whose Hessian is meant.
        rows : SmoothObjective
            The rows to form it from.
        iteration : int
            Iterations done on this objective; at 0 there is always a model.
        left : float
            Iterations that may be left.
        near : bool
            Whether the solution is not far.
        """
        objective, d = self.objective, self.objective.features
        P, coupled = objective.columns, objective.codes is None and objective.columns > 1
        if self.method == "diagonal":
            return Diagonal(self.whole)
        if self.method == "newton":
            return (Coupled if coupled else Blocks)(self.whole, rows, target)
        if P > 1 and iteration == 0 and not near:
            # All probabilities are alike at zero weights: there this model is exact.
            return Shared(self.whole, rows, target)
        # The work of one Gram matrix, in sweeps.
        gram = rows.view.shape[0] * d / (4.0 * target.view.shape[0] * P)
        worth = max(_WORTH, 3.0 * iteration)
        if coupled and P * d <= 600 and gram * P * (P + 1) / 2 <= worth and near:
            return Coupled(self.whole, rows, target)
        if d < _DEAR:
            return (Blocks if gram * P <= worth else Shared)(self.whole, rows, target)
        # Where products are dear, choosing the rows that matter pays, and waiting until it is clear that
        # many iterations are left; another shared matrix would not make them fewer.
        cost = gram * P * _CHOSEN
        if cost <= worth and (iteration == 0 or cost <= 0.5 * left):
            return Blocks(self.whole, rows, target, share=0.97)
        return Shared(self.whole, rows, target) if iteration == 0 else None

    def separated(self) -> bool:
        """Return whether the classes have turned out to be separable, so that there is no minimum."""
        if self.watch is not None and self.last.final:
            self.separation = self.watch.update(self.point.coef, self.point.intercept)
        return self.separation is not None

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters, rounded to the data's precision, and what they prove."""
        if not hasattr(self, "last"):  # no step was asked for
            self.last = _Descent(self, self.objective, self.objective, *self.start, later=False)
        dtype = self.problem.view.dtype
        coef, intercept = self.point.coef.astype(dtype), self.point.intercept.astype(dtype)
        returned = self.point
        rounded = not (np.array_equal(coef, returned.coef) and np.array_equal(intercept, returned.intercept))
        if rounded or self.last.single or not self.last.final:
            returned = self.objective.at(coef.astype(np.float64), intercept.astype(np.float64))
        distance, size = self.last.distance(), abs(returned.value)
        promising = self.last.gap() <= 1.5 * max(self.tol * size, _CAUTION * distance)
        dual = _dual(self.whole, returned) if promising else None
        if self.watch is not None and outcome.status in ("converged", "max_iter"):
            self.separation = self.separation or self.watch.settle()
            outcome.status = "separable" if self.separation is not None else outcome.status
        certificate = certify(self, returned, outcome, distance, dual)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)


def certify(
    solver: QuasiNewton, point: Point, outcome: Outcome, distance: float, dual: float | None
) -> Certificate:
    """Return the certificate of a smooth fit."""
    objective, value, unit, tol = solver.objective, point.value, solver.unit, solver.tol
    largest = max(float(np.abs(point.gradient).max()), float(np.abs(point.gradient_intercept).max()))
    size = max(abs(value), 1e-300)
    if dual is not None and (value - dual <= tol * size or value - dual <= _CAUTION * distance):
        gap = max(0.0, value - dual)
        found = f"within {gap / size:.1e} of the minimum (duality gap)"
    else:
        gap, dual = distance, None
        found = f"within an estimated {gap / size:.1e} of the minimum (Newton decrement)"
    message = {
        "converged": found,
        "separable": "the classes are separable, so the likelihood has no maximum",
        "max_iter": f"max_iter iterations done, {found}; raise it or scale the features",
        "max_time": f"max_time is over, {found}; raise it for more iterations",
        "interrupted": f"interrupted, {found}; fit again with warm_start=True to go on",
    }[outcome.status]
    return Certificate(
        status=outcome.status,
        message=message,
        iterations=outcome.iterations,
        seconds=outcome.seconds,
        primal=value * unit,
        dual=None if dual is None else dual * unit,
        gap=gap * unit,
        relative_gap=gap / size,
        kkt_violation=largest * unit,
        samples=int(objective.view.shape[0] if objective.weights is None else np.sum(objective.weights > 0)),
    )


def _dual(whole: Whole, point: Point) -> float | None:
    """Return the value of a feasible dual point, or None where there is none to tell.

    The residuals at (W, b) are dual variables. They are feasible if they sum to 0 in each column,
    that is, if b is optimal for W: Newton's steps on b alone, which need only the scores, see to it.
    """
    objective = whole.objective
    if objective.l2 == 0:
        return None
    if np.abs(point.gradient_intercept).max() <= _FEASIBLE * whole.total:
        loss, pull = point.loss, point.gradient - objective.l2 * point.coef
    else:
        scores = objective.view.scores(point.coef).astype(np.float64, copy=False)
        loss, residuals = _best_intercepts(objective, scores, point.intercept, _FEASIBLE * whole.total)
        pull = objective.view.transposed(residuals).T
    return float(loss - np.vdot(point.coef, pull) - np.vdot(pull, pull) / (2 * objective.l2))


def _best_intercepts(
    objective: SmoothObjective, scores: Array, intercept: Array, small: float
) -> tuple[float, Array]:
    """Return the loss and its residuals at the best intercepts for these scores ``W x``."""
    residuals = np.empty(scores.shape)
    alone = SmoothObjective(replace(objective.problem, view=view_of(scores)), 0.0)
    same = np.eye(objective.columns)
    for _ in range(6):
        at = alone.at(same, intercept, residuals=residuals)
        if not np.abs(at.gradient_intercept).max() > small:
            break
        intercept = intercept - _intercept_step(objective, residuals, at.gradient_intercept)
    return at.loss, residuals


def _intercept_step(objective: SmoothObjective, residuals: Array, slopes: Array) -> Array:
    """Return Newton's step for the intercepts, the weights being fixed."""
    s = np.ones(residuals.shape[0]) if objective.weights is None else objective.weights
    active = s > 0
    shares = residuals[active] / s[active, None]
    if objective.codes is None:
        p = shares + (objective.classes[active, None] == np.arange(objective.columns))
        H = np.diag(s[active] @ p) - (s[active, None] * p).T @ p
        return np.asarray(np.linalg.lstsq(H, slopes, rcond=1e-12)[0])
    bend = s[active] @ (np.abs(shares) * (1.0 - np.abs(shares)))
    return np.asarray(slopes / np.maximum(bend, 1e-300))


class _Descent:
    """The descent on one sample of the rows, or on all."""

    def __init__(
        self,
        solver: QuasiNewton,
        objective: SmoothObjective,
        rows: SmoothObjective,
        coef: Array,
        intercept: Array,
        later: bool,
    ) -> None:
        self.solver, self.objective, self.rows, self.later = solver, objective, rows, later
        self.final = objective is solver.objective
        self.flat, self.exact = solver.flat, solver.memory == 0
        self.tol = solver.tol if self.final else max(solver.tol, 1e-3)
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=max(solver.memory, 1))
        n, d = objective.view.shape
        self.single = n * d > _SMALL
        self.point = self._at(coef, intercept)
        self.gains = [np.inf] * 4
        # The model's inverse times the latest change of the gradient, and the step from here, once known.
        self.smoothed: Array | None = None
        self.ahead: Array | None = None

    def _at(self, coef: Array, intercept: Array) -> Point:
        self.solver.sweeps += self.objective.view.shape[0] / self.solver.objective.view.shape[0]
        return self.objective.at(coef, intercept, single=self.single)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration; on a sample, until it has shown the way."""
        iteration = refresh = 0
        while True:
            if (self.exact or iteration >= refresh) and self._refresh(iteration):
                refresh = max(4, (3 if self.solver.objective.features < _DEAR else 6) * iteration)
            moved = self._search(self._direction(), control)
            if moved is None:
                if self.single:
                    self._go_double()
                    continue
                if self.final:
                    yield Step(self._record(0.0), 0.0, control.reason() or "converged")
                return
            self._remember(moved)
            self.gains.append(self.point.value - moved.value)
            self.point, self.ahead = moved, None
            iteration += 1
            measure = self._measure()
            if self.single and self.final and measure <= max(self.tol, _SINGLE):
                self._go_double()
                measure = self._measure()
            if self.solver.separated():
                yield Step(self._record(measure), measure, "separable")
                return
            yield Step(self._record(measure), measure if self.final else np.inf)
            if not self.final and measure <= self.tol:
                return

    def _refresh(self, iteration: int) -> bool:
        """Form a new model of the Hessian, if one is worth it; return whether."""
        near = self.later or iteration > 4
        model = self.solver.curvature(self.objective, self.rows, iteration, self._left(), near)
        if model is None:
            return False
        self.model, self.ahead = model, None
        self.model.refresh(self.point)
        self.smoothed = self._solve(self.pairs[-1][1]) if self.pairs else None
        return True

    def _left(self) -> float:
        """Return how many iterations are left at the present rate."""
        before, _, _, last = self.gains[-4:]
        if not (0 < before < np.inf and last > 0):
            return 0.0
        rate = float(np.clip((last / before) ** (1 / 3), 0.1, 0.98))
        goal = self.tol * max(abs(self.point.value), 1e-300) / _CAUTION
        return float(np.log(max(last * rate / (1 - rate) / goal, 1.0)) / -np.log(rate))

    def _go_double(self) -> None:
        """Work in double precision from here on; parameters are rounded to what would be returned now."""
        self.single = False
        dtype = self.solver.problem.view.dtype
        coef, intercept = self.point.coef.astype(dtype), self.point.intercept.astype(dtype)
        self.point, self.ahead = self._at(coef.astype(np.float64), intercept.astype(np.float64)), None

    def _direction(self) -> Array:
        """Return the quasi-Newton step, by the two-loop recursion around the model of the Hessian."""
        if self.ahead is not None:
            return self.ahead
        q = -self.flat.gradient(self.point)
        factors = []
        for s, y, rho in reversed(self.pairs):
            a = rho * float(s @ q)
            q -= a * y
            factors.append(a)
        r = self._solve(q)
        if self.pairs and self.smoothed is not None:
            _, y, rho = self.pairs[-1]
            r *= 1.0 / (rho * float(y @ self.smoothed))
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
            weights, slopes = weights - weights.mean(axis=0), slopes - slopes.mean()
        return np.concatenate([weights.ravel(), slopes])

    def _search(self, direction: Array, control: Control) -> Point | None:
        """Return a point with enough descent (Armijo's rule) along the direction; None if there is none."""
        here = self.point
        slope = float(self.flat.gradient(here) @ direction)
        if not slope < 0:
            return None
        weights, intercepts = self.flat.step(direction)
        noise = (1e-6 if self.single else 1e-13) * abs(here.value)
        t = 1.0
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

    def _remember(self, moved: Point) -> None:
        if self.exact:
            return
        step = moved.coef - self.point.coef
        shift = moved.intercept - self.point.intercept + step @ self.flat.mean
        s = np.concatenate([step.ravel(), shift])
        y = self.flat.gradient(moved) - self.flat.gradient(self.point)
        product = float(s @ y)
        if product > 1e-10 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.pairs.append((s, y, 1.0 / product))
            self.smoothed = self._solve(y)

    def gap(self) -> float:
        """Return the duality gap ``‖∇_W F‖² / 2λ``, as it will be when the intercept is optimal."""
        if self.objective.l2 == 0:
            return np.inf
        g, h = self.flat.split(self.flat.gradient(self.point))
        return float(np.vdot(g, g)) / (2 * self.objective.l2) + float(h @ h) / (0.5 * self.solver.whole.total)

    def distance(self) -> float:
        """Return an estimate of ``F − min F``: the Newton decrement, or what slow progress leaves to gain."""
        if not hasattr(self, "model"):
            return np.inf
        decrement = -0.5 * float(self.flat.gradient(self.point) @ self._direction())
        before, _, last = self.gains[-3:]
        rate = min(float(np.sqrt(max(last, 0.0) / before)), 0.98) if 0 < before < np.inf else 0.5
        return max(decrement, 0.0 if self.exact else last * rate / (1 - rate))

    def _measure(self) -> float:
        value = max(abs(self.point.value), 1e-300)
        return min(self.gap(), _CAUTION * self.distance()) / value

    def _record(self, measure: float) -> dict[str, float]:
        return {
            "objective": self.solver.unit * self.point.value,
            "relative_gap": measure,
            "samples": float(self.objective.view.shape[0]),
            "sweeps": self.solver.sweeps,
        }
