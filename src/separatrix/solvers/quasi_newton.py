r"""Preconditioned quasi-Newton descent for logistic and softmax regression.

    min_{W,b}  Σ_i s_i ℓ(W x_i + b, c_i) + (λ/2) ‖W‖²

Limited-memory BFGS (Nocedal & Wright, algorithm 7.4) whose initial matrix is a model of the Hessian
(:mod:`separatrix.solvers.curvature`). With the exact Hessian formed anew at each step and no
memory it is Newton's method; near the solution of large data a Hessian serves for several steps. Every
evaluation is one sweep over the data. Dense data of far more features than samples are solved in the
coordinates of the samples first (:mod:`separatrix.solvers._sample_coordinates`). What a diagonal model
estimates near the end is looked after by conjugate gradients (:mod:`separatrix.solvers._iterated`).

Certificate. With ``λ > 0`` the residuals at (W, b), b optimal for W, are a feasible dual point, and
Fenchel's equality makes the duality gap ``‖∇_W F‖² / 2λ``. Without a penalty there is no such
bound; then half the squared Newton decrement, ``½ gᵀH⁻¹g``, estimates how far the value is from its
minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data.memory import view_of
from separatrix.data.room import allowed, demand
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._descent import CAUTION, SURE, Descent, Flat
from separatrix.solvers._iterated import Iterated
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._room import descent_bytes, stored
from separatrix.solvers._sample_coordinates import SampleCoordinates
from separatrix.solvers._smooth_certificate import certify
from separatrix.solvers.curvature import DEAR, Blocks, Coupled, Curvature, Diagonal, Shared, moments
from separatrix.solvers.small_logit import SmallLogit, is_small
from separatrix.solvers.smooth import Point, SmoothObjective

if TYPE_CHECKING:
    from separatrix.certificate import Separation
    from separatrix.solvers.separation import Watch

#: Bytes that the pairs of limited-memory BFGS may take.
_MEMORY_BYTES = 128 << 20
#: Fewest of these pairs.
_FEWEST = 4
#: d³ against this many times the entries times columns: some thirty sweeps cost as much as one factor.
_SWEEPS_SAVED = 1000.0
#: Most features of a Gram matrix.
_MOST_FEATURES = 4096
#: Weights up to which the whole Hessian of several classes is formed.
_EXACT = 600
#: Sweeps that an early model of the Hessian may cost.
_WORTH = 12.0
#: Features per sample and most samples of dense data that are worked on through the products of their
#: samples, and how much closer the way there goes than it must.
_WIDE, _FEW, _CLOSER = 2, 1000, 0.25
#: Tolerance from which on these products may be formed in single precision: steps in the features follow.
_ROUGHLY = 1e-5
#: Steps after which a diagonal is no good model.
_LONG = 100
#: Rows for each feature that suffice for blocks of columns that are coupled.
_ENOUGH = 128
#: Features for each byte of an entry whose products in single precision cost as much as a sweep of one
#: column, and sweeps that are few.
_COLUMN, _CHEAP = 3.4, 5.0
#: Products of an entry with others of its row that cost as much as its copy into a sample.
_COPY = 170.0
#: Entries times columns from which on Newton's method begins on a sample of the rows.
_LARGE = 1 << 18
#: Gain for each weight, in units of the loss, below which what a sample shows may be chance.
_CHANCE = 8.0
#: For single precision: spreads that a feature may be away from 0, and largest ratio of features' sizes.
_FAR_OFF, _SCALES = 1e3, 1e12
#: Share of a common feature's curvature that a penalty of a sample may add.
_HARDLY = 1e-3
#: Share of the rows that blocks are formed from where products are dear.
_CHOSEN = 0.4


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
        self.flat = Flat(self.whole.mean, problem.columns)
        self.watch = watch
        self.separation: Separation | None = None
        size = problem.columns * (self.objective.features + 1)
        self.memory = int(np.clip(_MEMORY_BYTES // (16 * size), _FEWEST, 20))
        self.method = self._affordable(self._choose(method), named=method == "newton")
        self.rng = np.random.default_rng(seed)
        self.sweeps = 0.0
        # Whether no sample shows the way.
        self.at_once = False
        self.start = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)
        if problem.joint:
            # What all classes have in common costs a penalty and changes no probability; no step sees it.
            self.start = tuple(part - part.mean(axis=0) for part in self.start)
        # Where the way stands before the first step in the features.
        self.reached: Callable[[], tuple[Array, Array]] = lambda: self.start

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

    def _affordable(self, method: str, *, named: bool) -> str:
        """Return the method, or one that takes no more memory than is allowed, with as many pairs as fit."""
        if self._bytes(method, _FEWEST) > allowed():
            if named:
                demand(self._bytes(method, _FEWEST), "Newton's method", "choose solver='auto'")
            method = "diagonal"
            other = "choose SGDClassifier(loss='log_loss')"
            demand(self._bytes(method, _FEWEST), "a descent on all weights", other)
        while self.memory > _FEWEST and self._bytes(method, self.memory) > allowed():
            self.memory -= 1
        return method

    def _bytes(self, method: str, pairs: int) -> float:
        coupled = self.objective.codes is None
        return descent_bytes(
            self.objective.view, self.objective.columns, method, coupled=coupled, pairs=pairs
        )

    def _has_room(self, rows: int) -> bool:
        """Return whether a copy of so many rows is allowed besides what the method takes."""
        copied = 1.2 * stored(self.objective.view, rows)
        return self._bytes(self.method, self.memory) + copied <= allowed()

    def _stages(self) -> list[SmoothObjective]:
        """Return the objective on growing samples of the rows, at last on all of them.

        Far from the solution a sample shows the way as well as all rows do.
        """
        n, d = self.objective.view.shape
        stages = [self.objective]
        if self.method == "newton" and self.objective.l2 > 0:
            # One sample at most: Newton's steps on it are few, and so are those that are left then.
            count = n // 8
            large = n * self.objective.view.row_elements * self.objective.columns > _LARGE
            enough = count >= max(8 * (d + 1) * self.objective.columns, 2000)
            if large and enough and self._has_room(count):
                stages.insert(0, self._sample(count))
            return stages
        if self.method != "blocks":
            return stages
        rows, least = n, max(8 * d * self.objective.columns, 4000)
        while rows >= 4 * least:
            rows = max(rows // 8, least)
            if self._has_room(rows):
                stages.insert(0, self._sample(rows))
        return stages

    def _sample(self, count: int, *, often: bool = True) -> SmoothObjective:
        """Return the objective on one row of each of so many equal stretches.

        Of a rare feature few rows are left, and what they say is chance: its weight is held back as by a fit
        of these rows alone, but for a penalty that common features would feel.
        """
        n, l2 = self.objective.view.shape[0], self.objective.l2
        places = (np.arange(count) + self.rng.random(count)) * (n / count)
        common = _HARDLY * float(np.median(self.whole.squares)) / max(2, self.objective.columns)
        l2 = max(l2, min(l2 * n / count, common))
        rows = np.minimum(places.astype(np.int64), n - 1)
        return self.objective.sample(rows, often=often, l2=l2, single=self._plain())

    def _plain(self) -> bool:
        """Return whether single precision shows of each feature what a sample has to show."""
        spread, mean = np.sqrt(self.whole.squares / self.whole.total), np.abs(self.whole.mean)
        varying = spread > 1e-12 * mean
        small, large = spread[varying].min(initial=1.0), max(spread.max(initial=1.0), mean.max(initial=1.0))
        return bool(
            self.tol >= _ROUGHLY
            and np.all(mean[varying] <= _FAR_OFF * spread[varying])
            and large / small <= _SCALES
        )

    @property
    def point(self) -> Point:
        """Where the descent stands."""
        if not hasattr(self, "last"):
            return self.objective.at(*self.reached())
        return self.last.point

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration."""
        coef, intercept = self.start
        rows: SmoothObjective | None = None
        first = rises = 0
        for single in self._precisions() if self._wide() else ():
            coef, intercept = yield from self._through_samples(coef, intercept, control, single)
            first = 1
            self.last = Descent(self, self.objective, self.objective, coef, intercept, later=True)
            if self.last.gap() <= self.tol * abs(self.last.point.value) or not single:
                break
            del self.last
        stages = self._stages()
        self.at_once = first == 0 and len(stages) == 1
        for number, objective in enumerate(stages, first):
            if self.method == "newton" or objective is not self.objective:
                rows = objective
            elif rows is None:
                rows = self._model_rows()
            if not first:
                # For Newton's first step on all rows, which is not the last, the sample's Hessian will do.
                lent = self.last.model if number and self.method == "newton" and coef.any() else None
                self.last = Descent(self, objective, rows, coef, intercept, later=number > 0, model=lent)
            self.last.rises = rises  # a way that was rough on a sample will be
            leads = self.method == "newton" and objective is not self.objective
            for step in self.last.steps(control):
                yield step
                # What a sample shows by chance is no way: as much is expected to be lost on all rows.
                if leads and self.last.gained() < _CHANCE * coef.size:
                    break
            rises = self.last.rises
            if control.reason() is not None:
                return
            if leads and self.last.gained() < _CHANCE * coef.size:
                continue
            coef, intercept = self.point.coef, self.point.intercept

    def _wide(self) -> bool:
        """Return whether the products of all samples cost less than the steps that they make cheap."""
        view = self.objective.view
        n, d = view.shape
        in_memory = not view.sparse and getattr(view, "rows_in_place", False)
        wide = in_memory and self.objective.l2 > 0 and d >= _WIDE * n and n <= _FEW
        return wide and self._has_room(4 * n)  # the products of the samples are no more than they are

    def _precisions(self) -> tuple[bool, ...]:
        """Return whether products of samples are formed in single precision, one answer for each attempt."""
        return (True, False) if _CLOSER * self.tol >= _ROUGHLY else (False,)

    def _through_samples(
        self, coef: Array, intercept: Array, control: Control, single: bool
    ) -> Generator[Step, None, tuple[Array, Array]]:
        """Solve the problem in the coordinates of the samples; return the weights that this means."""
        problem, mean, tol = self.problem, self.whole.mean, _CLOSER * self.tol
        samples = SampleCoordinates(problem.view, mean, single)
        inner: Any
        small = replace(problem, view=view_of(samples.rows))
        start = samples.coordinates(coef) if coef.any() else np.zeros((coef.shape[0], samples.rows.shape[1]))
        common: dict[str, Any] = {"coef": start, "intercept": intercept + coef @ mean, "tol": tol}
        if is_small(small):
            inner = SmallLogit(small, l1=0.0, l2=self.objective.l2, unit=self.unit, **common)
        else:
            method = "newton" if self.method == "newton" else "auto"
            inner = QuasiNewton(small, l2=self.objective.l2, method=method, **common)

        def reached() -> tuple[Array, Array]:
            found = inner.point
            coef = samples.weights(found.coef)
            return coef, found.intercept - coef @ mean

        for step in inner.steps(control):
            self.reached = reached
            yield Step(step.record, np.inf)
            if step.measure <= tol or step.finished is not None or control.expired():
                break
        return reached()

    def _model_rows(self) -> SmoothObjective:
        """Return the rows for models of the Hessian."""
        n, d = self.objective.view.shape
        count = max(16 * d, 4000)
        few = self.objective.columns == 1 and (n - count) * d <= _COPY * count
        if self.method != "blocks" or count >= n / 2 or few:
            return self.objective
        return self._sample(count, often=False)

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
            if iteration < _LONG:
                return Diagonal(self.whole)
            return Iterated(self.whole, target, self.tol / (SURE if target.l2 > 0 else CAUTION))
        if self.method == "newton":
            return (Coupled if coupled else Blocks)(self.whole, rows, target)
        if P == 1 and self.at_once and not rows.view.sparse:
            # Steps of one column do without its Gram matrix until they have cost, or seem to cost, as much:
            # where features hardly depend on each other they get there first.
            dear = rows.view.shape[0] * d / (_COLUMN * target.view.dtype.itemsize * target.view.shape[0])
            if dear <= _CHEAP or max(iteration, left) >= dear:
                return Blocks(self.whole, rows, target, rough=True, share=1.0 if d < DEAR else 0.97)
            return Diagonal(self.whole) if iteration == 0 else None
        if P > 1 and iteration == 0 and not near:
            # All probabilities are alike at zero weights: there this model is exact.
            return Shared(self.whole, rows, target, rough=True)
        # The work of one Gram matrix, in sweeps.
        gram = rows.view.shape[0] * d / (4.0 * target.view.shape[0] * P)
        worth = max(_WORTH, 3.0 * iteration)
        if coupled and P * d <= _EXACT and gram * P * (P + 1) / 2 <= worth and near:
            return Coupled(self.whole, rows, target, rough=True)
        if d < DEAR:
            if gram * P > worth:
                return Shared(self.whole, rows, target, rough=True)
            # What blocks of coupled columns leave out counts more than the errors of so many rows.
            chosen = rows.thinned(_ENOUGH * d) if coupled and rows is not target else rows
            return Blocks(self.whole, chosen, target, rough=True)
        # Where products are dear, choosing the rows that matter pays, and waiting until it is clear that
        # many iterations are left; another shared matrix would not make them fewer.
        cost = gram * P * _CHOSEN
        if cost <= worth and (iteration == 0 or cost <= 0.5 * left):
            return Blocks(self.whole, rows, target, rough=True, share=0.97)
        return Shared(self.whole, rows, target, rough=True) if iteration == 0 else None

    def exact_cost(self) -> float:
        """Return about how many sweeps the whole Hessian of all rows takes."""
        P, d = self.objective.columns, self.objective.features
        return d * (P + 1) / 8.0

    def may_be_exact(self) -> bool:
        """Return whether the whole Hessian is not too large."""
        return self.objective.columns * (self.objective.features + 1) <= _EXACT

    def exact_curvature(self, objective: SmoothObjective) -> Curvature | None:
        """Return the whole Hessian of an objective, if it is not too large."""
        if not self.may_be_exact():
            return None
        coupled = self.objective.codes is None and self.objective.columns > 1
        return (Coupled if coupled else Blocks)(self.whole, objective, objective)

    def separated(self) -> bool:
        """Return whether the classes have turned out to be separable, so that there is no minimum."""
        if self.watch is not None and self.last.final:
            self.separation = self.watch.update(self.point.coef, self.point.intercept)
        return self.separation is not None

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters, rounded to the data's precision, and what they prove."""
        if not hasattr(self, "last"):  # no step was asked for, or none in the features
            self.last = Descent(self, self.objective, self.objective, *self.reached(), later=False)
        dtype = self.problem.view.dtype
        coef, intercept = self.point.coef.astype(dtype), self.point.intercept.astype(dtype)
        returned = self.point
        rounded = not (np.array_equal(coef, returned.coef) and np.array_equal(intercept, returned.intercept))
        if rounded or self.last.single or not self.last.final:
            returned = self.objective.at(coef.astype(np.float64), intercept.astype(np.float64))
        # (Where it does not count, it is not asked for: on many features it takes as long as a step.)
        distance = self.last.distance() if self.last.estimates() else np.inf
        size = abs(returned.value)
        if self.last.final:  # the estimate is that of the parameters before rounding
            distance += max(0.0, returned.value - self.point.value)
        sure = self.last.caution() * distance
        vague = not self.last.estimates() or not sure < size
        promising = self.last.gap() <= max(self.tol * size, sure)
        dual = self.last.proven(returned) if promising or vague else None
        if vague:  # no loss is below 0, whatever else is known
            distance, dual = np.inf, max(dual or 0.0, 0.0)
        if self.watch is not None and outcome.status in ("converged", "max_iter"):
            self.separation = self.separation or self.watch.settle()
            outcome.status = "separable" if self.separation is not None else outcome.status
        certificate = certify(self, returned, outcome, distance, dual)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)
