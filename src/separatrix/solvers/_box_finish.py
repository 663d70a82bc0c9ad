"""What takes over from :mod:`.box_coordinate` where epochs are slow: active sets, or Newton's method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._box_group import SAFE, Group
from separatrix.solvers._loop import Control, Step

if TYPE_CHECKING:
    from separatrix.solvers.box_coordinate import BoxCoordinate

#: Columns that share a register.
LANES = 8
#: Nanoseconds per number in the cube of Newton's matrices, for all steps; of a visit per stored value, for
#: one column, and for as many more as a register holds; of an epoch besides.
_NEWTON_NS, _VISIT_NS, _EPOCH_NS = 0.6, 1.5, 1e5
#: The same per number of the samples whose inner products they are; how long it may take where no step gains
#: any more.
_PRODUCT_NS, _RESCUE_NS = 2.0, 3e10
#: Epochs that Newton's method costs where conjugate gradients take the place of matrices.
_ITERATED = 10_000.0
#: Epochs after which no more are waited for, whatever it costs that may still be borne.
_PATIENT = 600
#: Epochs that active sets cost, nanoseconds per number of products besides, and samples that take part beside
#: the free ones.
_ROUNDS, _ROUNDS_NS, _BESIDE = 60.0, 60.0, 1000.0
#: Relative gap from which on a column that active sets have not solved is left to Newton's method.
_LOST = 0.1


class Finish:
    """Columns in the hands of another solver.

    Parameters
    ----------
    solver : BoxCoordinate
        Where they come from; its `primal` and `gap` are kept up to date.
    groups : list of Group
        The columns.

    Attributes
    ----------
    coef, intercept, V : ndarray
        Parameters and dual variables of all columns.
    """

    def __init__(self, solver: BoxCoordinate, groups: list[Group]) -> None:
        self.solver, self.groups = solver, groups
        self.coef: Array = np.empty(0)
        self.intercept: Array = np.empty(0)
        self.V: Array = np.empty(0)
        most = np.inf if solver.dual.squared else solver.dual.upper[:, None] * (1.0 - 1e-6)
        free = [np.count_nonzero((g.v != 0) & (np.abs(g.v) < most), axis=0).max() for g in groups]
        self.free = int(max(free))

    @property
    def _by_rounds(self) -> bool:
        """Whether active sets take over, not Newton's method."""
        from separatrix.solvers.box_rounds import suitable

        return suitable(self.solver.dual, self.free)

    @property
    def cost(self) -> float:
        """About how many nanoseconds it takes."""
        from separatrix.solvers._newton_columns import MOST_FREE

        view, free = self.solver.view, self.free
        columns = sum(g.own.shape[0] for g in self.groups)
        if self._by_rounds:
            active = min(free + _BESIDE, float(view.shape[0]))
            return float(columns * (_ROUNDS * self._visit_ns + _ROUNDS_NS * active**2))
        size = min(free, view.shape[1])
        numbers = _NEWTON_NS * float(size) ** 3 if size <= MOST_FREE else np.inf
        if free < view.shape[1]:
            numbers += _PRODUCT_NS * float(free) ** 2 * view.row_elements
        if view.sparse:
            numbers = min(numbers, _ITERATED * self._visit_ns)
        return float(numbers * columns)

    @property
    def _visit_ns(self) -> float:
        """Nanoseconds in which all samples are visited for one column."""
        solver = self.solver
        return _VISIT_NS * float(solver.visits.order.shape[0]) * (solver.view.row_elements + 1.0)

    @property
    def bearable(self) -> bool:
        """Whether it may take over where no epoch gains any more."""
        return self.cost <= _RESCUE_NS

    @property
    def pays(self) -> bool:
        """Whether it costs no more than the epochs that it saves.

        How many these are the last ones tell badly: gaps often fall at once, after hundreds of epochs that
        seemed to lead nowhere. So it does not pay before they have cost about as much.
        """
        if all(g.count >= _PATIENT for g in self.groups):
            return self.bearable
        # Epochs cost what they visit: samples at rest, in the end most, cost nothing.
        epochs = [min(g.ahead, 2.0 * g.count) for g in self.groups]
        each = [_EPOCH_NS + self._visit_ns * g.share * (1.0 + g.padded // LANES) for g in self.groups]
        return bool(self.cost < np.dot(epochs, each))

    def steps(self, control: Control) -> Iterator[Step]:
        """Solve the columns; yield a step now and then."""
        solver = self.solver
        self.coef, self.intercept, self.V = solver.parameters()
        # Also columns that count as solved: single precision may have hidden a part of their gap.
        found = solver.dual.evaluate(self.coef, self.intercept, self.V)
        solver.primal, solver.gap = found.primal, np.maximum(found.primal - found.dual, 0.0)
        columns = self._open(np.arange(solver.gap.size))
        yield from (self._rounds if self._by_rounds else self._newton)(control, columns)

    def _open(self, columns: Array) -> Array:
        solver = self.solver
        return columns[solver.gap[columns] > SAFE * solver.tol * solver.primal[columns]]

    def _rounds(self, control: Control, columns: Array) -> Iterator[Step]:
        from separatrix.solvers.box_rounds import BoxRounds

        solver = self.solver
        found = BoxRounds(
            solver.dual,
            tol=SAFE * solver.tol,
            columns=columns,
            coef=self.coef,
            intercept=self.intercept,
            V=self.V,
        )
        for left in found.steps(control):
            step = self._step(found.primal, found.gap, columns)
            if left:  # the sum may be within tol long before each column is
                step.measure = max(step.measure, float(np.nextafter(solver.tol, np.inf)))
            yield step
        lost = columns[solver.gap[columns] > _LOST * solver.primal[columns]]
        if not control.expired() and lost.size:
            yield from self._newton(control, lost)

    def _newton(self, control: Control, columns: Array) -> Iterator[Step]:
        from separatrix.solvers.semismooth_newton import SemismoothNewton

        solver, dual = self.solver, self.solver.dual
        found = SemismoothNewton(
            solver.problem,
            C=dual.C,
            scaling=dual.scaling,
            coef=self.coef,
            intercept=self.intercept,
            tol=solver.tol,
            columns=columns,
            V=self.V,
        )
        for step in found.steps(control):
            self.coef, self.intercept, self.V = found.coef, found.intercept, found.V
            known = self._step(found.primal, found.gap, np.concatenate(found.batches))
            step.measure = known.measure
            step.record.update(known.record)
            yield step

    def _step(self, primal: Array, gap: Array, columns: Array) -> Step:
        """Return a step, after the objectives and gaps of some columns have been taken over."""
        solver = self.solver
        known = columns[np.isfinite(gap[columns])]
        solver.primal[known], solver.gap[known] = primal[known], gap[known]
        measure = solver.measure()
        return Step({"objective": float(solver.primal.sum()), "relative_gap": measure}, measure)
