r"""Least squares by conjugate gradients, for many samples and many features.

Solves ``H_c w_c = r_c`` with ``H_c = S + α_c I`` (see :mod:`separatrix.solvers.regression`) without
forming ``S``, unless the features are few: each iteration needs ``S P = Xᵀ s (X P − 1 μᵀP)`` for all
columns at once, one pass over the data, which stay as sparse as they are. Every column has its own step
lengths (:mod:`._directions`). With a penalty the diagonal of ``H`` preconditions. Without one it
must not: started from zero, plain conjugate gradients stay in the row space of the data and end at the
shortest solution.

Dense float32 data are multiplied in float32. Where the residual of an iteration, which is updated rather
than computed, says that all is done, the true one is computed in double precision; if it disagrees the
iteration starts again from there, now in double precision.

How many iterations it takes is known only on the way. Where a closed form is affordable, too, it takes over
once the iterations, those done and those to come, would cost more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf, log
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import asking, single_threaded
from separatrix.data.view import Array
from separatrix.solvers._coordinate_rows import row_arguments
from separatrix.solvers._directions import Directions, JointDirections, dots
from separatrix.solvers._loop import Control, OutOfTimeError, Step
from separatrix.solvers._products import sparse_normal
from separatrix.solvers.moments import class_moments
from separatrix.solvers.regression import SPARSE_COLUMNS, LeastSquaresSolver, Regression

#: A residual this much smaller (squared) than the stop rule's share of the first one is small enough,
#: though a bound that divides by a tiny penalty may not show it.
_RESIDUAL = 1e4
#: Features up to which ``S`` of dense data is formed: it costs no more than a few iterations without it.
FORMED = 512
_TINY = float(np.finfo(np.float64).tiny)
#: Iterations after which columns of sparse data share their directions: that halves what is left of many, but
#: costs half as much as the products.
_HARD = 16
#: Iterations after which their number can be foretold, roughly: how many times too many they must seem.
_EARLY, _UNSURE = 8, 2.0
#: Least part of a sum of squares that is left of it where the samples are centred.
_LOST = 1e-14
#: Part of a (squared) residual down to which its updates can be trusted.
_REACH = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-20}


class ConjugateGradient(LeastSquaresSolver):
    """The iterative route."""

    description = "conjugate gradients"
    route = "cg"

    def __init__(
        self,
        problem: Regression,
        tol: float,
        most: float = inf,
        otherwise: Callable[[Regression], LeastSquaresSolver] | None = None,
    ) -> None:
        """Solve the problem in ``most`` iterations, or ``otherwise``."""
        self.most, self.otherwise = most, otherwise
        self._scatter: Array | None = None
        #: Weights and steps of an iteration that nobody has asked for yet.
        self._pending: tuple[Array, list[Directions | JointDirections]] | None = None
        super().__init__(problem)
        self.tol = tol

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield after each iteration on all columns."""
        p = self.problem
        d = p.view.shape[1]
        formed = d <= FORMED and not p.view.sparse
        try:
            with asking(control.ask):
                square = self._sparse_squares() if p.view.sparse else self._dense_squares(formed)
        except OutOfTimeError:
            return
        inverse = np.ones((d, p.columns))
        penalised = p.alpha > 0
        inverse[:, penalised] = 1.0 / (square[:, None] + p.alpha[penalised])
        dtype, last = np.dtype(np.float64) if formed or p.view.sparse else p.view.dtype, np.inf
        judged = self._judge()
        self._first = np.square(judged.gradient).sum(axis=0)
        measures = [self._measure(judged.gradient, slice(None))]
        parts = [slice(k, k + SPARSE_COLUMNS) for k in range(0, p.columns, SPARSE_COLUMNS)]
        # (Of few features, each column has soon seen all: a new beginning would not pay.)
        share = p.view.sparse and d > _HARD**2 and penalised.all() and bool(np.all(p.alpha == p.alpha[0]))

        def begin(part: slice) -> Directions:
            return Directions(judged.gradient[:, part].copy(), partial(np.multiply, inverse[:, part]))

        probe = begin(parts[-1])
        if self.otherwise is not None and len(parts) > 1 and self._seems_long(probe, parts[-1], control):
            yield from self._hand_over(self.otherwise(p), control)
            return
        while True:
            groups: list[Directions | JointDirections] = [begin(part) for part in parts[:-1]]
            groups.append(probe if last == np.inf else begin(parts[-1]))
            base = self.W
            floor = _REACH[dtype]
            whole = [self._measure(judged.gradient[:, part], part) for part in parts]
            enough = np.maximum(self.tol, floor * np.array(whole))
            measure = np.array([self._measure(g.R, part) for g, part in zip(groups, parts, strict=True)])
            while True:
                for k, (group, part) in enumerate(zip(groups, parts, strict=True)):
                    if measure[k] > enough[k]:
                        group.advance(self._curve(group, p.alpha[part], dtype))
                        group.turn()
                        measure[k] = self._measure(group.R, part)
                    if control.expired():
                        break
                self._pending, self.judged = (base, groups), None
                worst = float(measure.max())
                if np.all(measure <= enough):
                    break
                yield Step({"residual": self._residual(groups), "measure": worst}, worst)
                measures.append(worst)
                if share and len(measures) >= _HARD:
                    groups[:] = [JointDirections.after(g) if isinstance(g, Directions) else g for g in groups]
                if self.otherwise is not None and self._too_long(measures):
                    yield from self._hand_over(self.otherwise(p), control)
                    return
            judged = self._judge()
            self._bound(judged)
            worst = self._measure(judged.gradient, slice(None))
            record = {"residual": float(np.sqrt(np.square(judged.gradient).sum())), "measure": worst}
            stuck = dtype == np.float64 and worst > 0.25 * last
            if stuck and worst > self.tol:
                self.description += ", as far as the precision reaches"
            yield Step(record, worst, "converged" if stuck else None)
            last, dtype = worst, np.dtype(np.float64)

    def _dense_squares(self, formed: bool) -> Array:
        """Set the mean, and ``S`` if it is formed; return its diagonal."""
        p = self.problem
        kind = "shared" if formed else "diagonal"
        moments = class_moments(p.view, np.zeros(p.view.shape[0], dtype=np.int8), 1, p.weights, kind=kind)
        self._scatter = moments.scatter if formed else None
        square: Array = np.einsum("ii->i", moments.scatter).copy() if formed else moments.scatter[0]
        if p.fit_intercept:
            self.mean = moments.mean[0]
        else:
            square += p.total * np.square(moments.mean[0])
            if self._scatter is not None:
                self._scatter += p.total * np.outer(moments.mean[0], moments.mean[0])
        length = np.sqrt(p.total) * np.abs(self.mean)
        self.shift = bool(np.any(length > 100 * np.sqrt(square)))
        return square

    def _sparse_squares(self) -> Array:
        """Set the mean; return the diagonal of ``S``, roughly: it only preconditions."""
        p = self.problem
        d = p.view.shape[1]

        def add(total: Array, rows: slice, block: Any) -> Array:
            s = np.ones(block.shape[0]) if p.weights is None else p.weights[rows]
            data, *places = row_arguments(block)
            for sums, values in zip(total, (data, np.square(data, dtype=np.float64)), strict=True):
                _hot.add_padded_transposed(values, *places, s[:, None], 0, 1, sums[:, None])
            return total

        sums, squares = p.view.fold(lambda: np.zeros((2, d)), add, 16 * d)
        if p.fit_intercept:
            self.mean = sums / p.total
        return np.asarray(np.maximum(squares - p.total * np.square(self.mean), _LOST * squares))

    def _seems_long(self, group: Directions, part: slice, control: Control) -> bool:
        """Return whether the first iterations of a few columns already foretell too many."""
        measures = [self._measure(group.R, part)]
        while len(measures) < _HARD and measures[-1] > self.tol and not control.expired():
            group.advance(self._curve(group, self.problem.alpha[part], np.dtype(np.float64)))
            group.turn()
            measures.append(self._measure(group.R, part))
            if measures[-1] > self.tol and self._too_long(measures):
                return True
        return False

    def _too_long(self, measures: list[float]) -> bool:
        """Return whether all iterations, as far as the later half of them tells, are more than ``most``."""
        iterations = len(measures) - 1
        if iterations >= self.most or iterations < _EARLY:
            return iterations >= self.most
        # (The first ones, along what the data have most of, gain more than those to come.)
        half, last = measures[iterations // 2], measures[-1]
        if not (last < half and self.tol > 0):
            return True
        ahead = log(last / self.tol) / log(half / last) * (iterations - iterations // 2)
        return iterations + ahead > _UNSURE * self.most

    def _round(self, out: Array | None = None) -> float:
        if self._pending is not None:
            base, groups = self._pending
            self.W = base + np.concatenate([group.step for group in groups], axis=1)
            self._pending = None
        return super()._round(out)

    def _curve(self, group: Directions | JointDirections, alpha: Array, dtype: Any) -> Array:
        """Return ``H P``."""
        p = self.problem
        if self._scatter is not None:
            return np.asarray(self._scatter @ group.P + alpha * group.P)
        along = self.mean @ group.P
        if p.view.sparse:
            HP, slack = sparse_normal(p.view, group.P, along, p.weights)
        else:
            HP, slack = self._dense_product(group.P, along, dtype)
        HP -= np.outer(self.mean, slack, out=group.room)
        HP += np.multiply(group.P, alpha[0] if isinstance(group, JointDirections) else alpha, out=group.room)
        return HP

    def _dense_product(self, P: Array, along: Array, dtype: Any) -> tuple[Array, Array]:
        p = self.problem
        P, along = np.ascontiguousarray(P, dtype=dtype), along.astype(dtype)

        def part(rows: slice, block: Any) -> Array:
            Q = np.asarray(block.astype(dtype, copy=False) @ P)
            if p.fit_intercept:
                Q -= along
            if p.weights is not None:
                Q *= p.weights[rows][:, None]
            out = np.asarray(block.T @ Q)
            # Exactly centred, the sum of Q would be 0; in single precision it is not.
            return np.vstack([out, Q.sum(axis=0, dtype=np.float64)])

        with single_threaded(p.view.shape[0] * P.size):
            sums = p.view.map_sum(part, 8 * P.size)
        return sums[:-1].astype(np.float64), sums[-1]

    def _residual(self, groups: list[Directions | JointDirections]) -> float:
        return float(np.sqrt(sum(dots(group.R, group.R).sum() for group in groups)))

    def _measure(self, R: Array, columns: slice) -> float:
        """Return the gap that the residuals prove, or their size, as a share of what there was."""
        p = self.problem
        squares = dots(R, R)
        first = max(float(self._first[columns].sum()), _TINY)
        small = float(squares.sum()) / first
        alpha = p.alpha[columns]
        if not alpha.min() > 0:
            return small
        null = max(float(p.null[columns].sum()), _TINY)
        return min(float((squares / alpha).sum()) / null, small * _RESIDUAL)

    def _bound(self, judged: Any) -> None:
        alpha = self.problem.alpha
        if np.all(alpha > 0):
            self.gap = float((np.square(judged.gradient) / alpha).sum()) + self._slack_gap(judged)

    def finish(self, outcome: Any) -> Any:
        """Return parameters, certificate and history."""
        if self.successor is None and self.judged is None:
            self._bound(self._judge())
        return super().finish(outcome)
