r"""Linear support vector machines by Newton's method: for data with many rows and not too many features.

The problem and its dual are those of :mod:`separatrix.solvers._box_dual`. A squared loss has a continuous,
piecewise linear slope: Newton's method with the Hessian of the piece at hand (semismooth Newton),

    (I + Σ_{i in J} σ_i x_i x_iᵀ) p = −∇P,        J = the samples whose dual variable is free to move,

and an exact line search ends at the solution after a few steps. The other losses have kinks. There the
method of multipliers (proximal points in the dual) solves a sequence of such problems, each loss replaced by

    max_v [v (t − f) − ε|v| − (v − v⁰)²/(2σ)],    v = clip(soft(v⁰ − σ(f − t), σε)),    σ = ρ U,

its envelope around the last dual variables v⁰: a Huberised loss with a shift for every sample. J are the
samples inside the kink, which become as few as the free support vectors, so that the steps get cheap. As
``v`` is always in the box and ``w → Σ v x``, every iterate proves its gap. A squared loss takes the same way
where its own pieces make steps short, as with C so large that many samples are fitted exactly.

An L1 penalty goes with a squared loss: the step then minimises the piece together with the penalty (proximal
Newton; ``_hot/l1_model.hpp``).

References: Mangasarian (2002), Keerthi and DeCoste (2005) for squared losses; Rockafellar (1976), Yan and Li
(2020) for the multipliers.

All columns go in step, so that they share the readings of the data. They begin on a sample of the rows, which
shows the way as well as all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.data.view import Array, DataView
from separatrix.problem import Problem, Result
from separatrix.solvers._box_dual import BoxDual
from separatrix.solvers._hinge_interior import affordable, kinked_programme
from separatrix.solvers._l1_columns import L1Columns
from separatrix.solvers._l1_interior import affordable as l1_affordable
from separatrix.solvers._l1_interior import chosen_rows, l1_programme
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._newton_columns import (
    GROWTH,
    LEAST_GROWTH,
    PATIENCE,
    RHO,
    SHORT,
    SINGLE_TOL,
    STEEPEST,
    Columns,
)
from separatrix.solvers._room import sample_bytes, stored

#: Multiply-adds of all columns' Hessians up to which compiled steps take all columns at once.
_SMALL, _TINY = 1 << 27, 1 << 20
#: Stored values up to which they do so: they are copied unless they are double precision.
_COPIED = 1 << 22
#: How much longer an L1 penalty may show no progress, its bound being poor until the last; the relative gap
#: below which it is not.
_L1_PATIENCE, _CLOSE = 3, 1e-2
#: Relative gap that interior points of losses with kinks may not better.
_CLOSEST = 1e-6
#: Curvature of the loss of a sample, that of the penalty being 1, from which single precision leads nowhere.
_STIFF = 1e8
#: Bytes of the scores of the columns that go in step.
_STEP_BYTES = 64 << 20
#: Rows of a sample, at least, and per feature; how many times more rows the next stage has at most.
_SAMPLE_ROWS, _SAMPLE_PER_FEATURE, _STAGE = 2000, 8, 8


class SemismoothNewton:
    """Solver; see the module's description.

    Parameters
    ----------
    problem : Problem
        Samples, codes or targets, weights; a loss of :data:`separatrix.solvers._box_dual.LOSS_NAMES`.
    C : float
        Factor of the loss.
    scaling : float or None
        The constant feature whose penalised weight is the intercept; None for a free intercept.
    coef, intercept : ndarray of shape (columns, features) and (columns,)
        Where to start.
    tol : float
        Relative duality gap to reach.
    seed : int
        Draws the samples of rows.
    columns : ndarray of int or None
        The columns to solve; None means all.
    V : ndarray of shape (columns of the problem, n) or None
        Dual variables to start from.
    l1 : bool
        Whether the penalty is the sum of absolute values; with a squared loss only.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.losses import LOSSES
    >>> from separatrix.solvers._loop import Below, run
    >>> problem = Problem(view_of(np.array([[-2.0], [-1.0], [1.0], [2.0]])), np.array([0, 0, 1, 1]),
    ...                   np.array([[-1], [1]], dtype=np.int8), loss=LOSSES["hinge"])
    >>> solver = SemismoothNewton(problem, C=10.0, scaling=None, coef=np.zeros((1, 1)),
    ...                           intercept=np.zeros(1), tol=1e-9)
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
        seed: int = 0,
        columns: Array | None = None,
        V: Array | None = None,
        l1: bool = False,
    ) -> None:
        self.problem, self.tol = problem, float(tol)
        self.dual = BoxDual(problem, C, scaling, l1)
        if l1 and not self.dual.squared:
            raise ValueError("An L1 penalty goes with a squared loss.")
        self.coef, self.intercept = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)
        self.seed = seed
        K = problem.columns
        self.given, self.V = V is not None, np.zeros((K, problem.view.shape[0])) if V is None else V
        chosen = np.arange(K) if columns is None else columns
        self.batches = self._batches(chosen)
        self.primal, self.gap = np.zeros(K), np.zeros(K)
        self.gap[chosen] = np.inf
        self.single = problem.view.dtype == np.float32 and tol >= SINGLE_TOL and not self._stiff()
        #: Whether columns begin with mild problems, as where they got nowhere without.
        self.mild = False
        self._before: tuple[Array, Array, Array] | None = None

    def _stiff(self) -> bool:
        """Return whether features of large numbers, or a large C, leave single precision no digits."""

        def squares(rows: slice, block: Any) -> float:
            values = block.data if self.problem.view.sparse else np.ravel(block, order="K")
            return float(np.vdot(values, values))

        upper, n = self.dual.upper, max(1, self.problem.view.shape[0])
        mean = float(self.problem.view.map_sum(squares)) / n
        return not mean * float(upper.sum()) < _STIFF * max(1, int(np.count_nonzero(upper)))

    def _batches(self, columns: Array) -> list[Array]:
        """Return the columns in groups that go in step."""
        room = max(1, _STEP_BYTES // (8 * max(1, *self.problem.view.shape)))
        return [columns[k : k + room] for k in range(0, columns.shape[0], room)]

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each Newton step of the columns at hand."""
        if self._small():
            stuck = yield from self._small_steps()
            if not stuck:
                return
            if self.dual.l1:
                yield from self._by_interior_points(control)
                return
            self._begin_again(mild=True)
            if not self.batches:
                # Rounding had hidden that all is done.
                yield self._step()
                return
        while True:
            for own in self.batches:
                yield from self._columns(own, control)
                if control.expired():
                    return
            if not (self.single and self._unfinished().any()):
                break
            self._begin_again(mild=False)
        if self._programmes():
            yield from self._by_interior_points(control)

    def _columns(self, own: Array, control: Control) -> Iterator[Step]:
        """Solve some columns; yield a step after each step of theirs on all rows."""
        columns: Columns | None = None
        kind = L1Columns if self.dual.l1 else Columns
        for view, rows in self._stages(own):
            columns = kind(self, view, own, rows, columns)
            while True:
                active = columns.measure()
                if rows is None:
                    columns.write(self.coef, self.intercept, self.V)
                    self.primal[own], self.gap[own] = columns.primal, np.maximum(columns.gap, 0.0)
                    yield self._step()
                if not active.any():
                    break
                columns.step(active)
                if control.expired():
                    return

    def _step(self, finished: str | None = None) -> Step:
        objective = float(self.primal.sum())
        measure = float(self.gap.sum()) / max(objective, 1e-300)
        measure = measure if np.isfinite(measure) else np.inf
        return Step({"objective": objective, "relative_gap": measure}, measure, finished)

    def _evaluate(self) -> None:
        """Compute objectives and gaps of all columns from what they are now, in double precision."""
        found = self.dual.evaluate(self.coef, self.intercept, self.V)
        self.primal, self.gap = found.primal, np.maximum(found.primal - found.dual, 0.0)

    def _unfinished(self) -> Array:
        """Return which columns have not reached `tol`."""
        return np.asarray(~(self.gap <= self.tol * self.primal))

    def _by_interior_points(self, control: Control) -> Iterator[Step]:
        """Solve the columns that got nowhere; yield one step for all."""
        self._keep_better()
        dual = self.dual
        self._evaluate()
        self._before = self.coef.copy(), self.intercept.copy(), self.V.copy()
        least = self.tol if dual.l1 else max(self.tol, _CLOSEST)
        for k in np.flatnonzero(~(self.gap <= least * self.primal)):
            solved = self._l1_solution(int(k), control) if dual.l1 else self._l2_solution(int(k), control)
            if solved is not None:
                rows, self.coef[k], self.intercept[k], v = solved
                self.V[k] = 0.0
                self.V[k, rows] = v
        self._keep_better()
        self._evaluate()
        yield self._step("max_iter")

    def _programmes(self) -> bool:
        """Return whether interior points may end what Newton's method leaves."""
        (n, d), left = self.problem.view.shape, int(np.count_nonzero(self._unfinished()))
        return self.dual.l1 or (left > 0 and not self.dual.squared and affordable(n, d + 1, left))

    def _l1_solution(self, k: int, control: Control) -> tuple[Array, Array, float, Array] | None:
        dual, view = self.dual, self.problem.view
        d, intercept = view.shape[1], dual.square > 0
        rows, y = dual.counted(k)
        assert y is not None
        if not l1_affordable(rows.shape[0], d):
            return None
        X = chosen_rows(view, rows, np.arange(d))
        if intercept:
            X = np.column_stack([X, np.ones(rows.shape[0])])
        factors = dual.factors(d)[: X.shape[1]]
        solved = l1_programme(
            X, y, dual.upper[rows], factors, 0.0, dual.free, 0.1 * self.tol, control.expired
        )
        if solved is None:
            return None
        w, b, u = solved
        return rows, w[:d], w[d] if intercept else b, y * u

    def _l2_solution(self, k: int, control: Control) -> tuple[Array, Array, float, Array] | None:
        dual, view = self.dual, self.problem.view
        rows, y = dual.counted(k)
        X = chosen_rows(view, rows, np.arange(view.shape[1]))
        numbers = None if dual.numbers is None else dual.numbers[rows]
        solved = kinked_programme(
            X, y, numbers, dual.upper[rows], dual.epsilon, dual.square, dual.free, control.expired
        )
        if solved is None:
            return None
        (w, v), b = solved, 0.0
        if dual.square > 0:
            w, b = w[:-1], float(w[-1]) * dual.square**0.5
        elif dual.free:
            b = float(dual.best_intercept(view.scores(w[None]).T, np.array([k]))[0])
        return rows, w, b, v

    def _small(self) -> bool:
        """Return whether calls would cost more than what they compute."""
        view, K = self.problem.view, self.problem.columns
        n, d = view.shape
        work = K * n * (view.row_elements + 1) ** 2 + K * d**3
        # (Where samples are fewer than features, their inner products give the step, unless all is tiny.)
        most = _SMALL if d <= n else _TINY
        copied = n * view.row_elements  # in double precision
        return not (self.given or work > most or copied > _COPIED) and len(self.batches) == 1

    def _small_steps(self) -> Generator[Step, None, bool]:
        """Yield a step after each compiled Newton step of all columns; return whether some got nowhere."""
        dual, view, K = self.dual, self.problem.view, self.problem.columns
        rows = view.read(slice(0, view.shape[0]))
        x, features, starts = _stored(rows) if view.sparse else (_doubles(rows), None, None)
        start = 2.0 if dual.squared else RHO * (GROWTH if self.coef.any() else 1.0)
        # The compiled state points into the arrays: they live as long.
        codes = dual.codes(np.arange(K))
        F = np.ascontiguousarray((rows @ self.coef.T).T + self.intercept[:, None])
        penalty = dual.factors(view.shape[1]) if dual.l1 else None
        state = _hot.SmallNewton(
            x=x,
            features=features,
            starts=starts,
            codes=codes,
            numbers=dual.numbers,
            upper=dual.upper,
            epsilon=dual.epsilon,
            bounded=not dual.squared,
            intercept=self.problem.fit_intercept,
            square=dual.square,
            W=self.coef,
            b=self.intercept,
            F=F,
            V=self.V,
            lambda_=penalty,
            rho=start,
            tol=self.tol,
            steepest=2.0 if dual.squared else STEEPEST,
            growth=GROWTH,
            least_growth=LEAST_GROWTH,
            shortest=SHORT,
            patience=PATIENCE * (_L1_PATIENCE if dual.l1 else 1),
        )
        least, idle = np.inf, 0
        while True:
            primal, gap, active, stuck = state.measure()
            measure = gap / max(primal, 1e-300)
            idle = 0 if measure < 0.9 * least else idle + 1
            least = min(least, measure)
            if dual.l1 and measure < _CLOSE and idle > PATIENCE:  # a small gap that stays is rounding
                active, stuck = False, True
            record = {"objective": primal, "relative_gap": measure}
            yield Step(record, measure)
            if not active:
                return bool(stuck)
            state.step()

    def _begin_again(self, *, mild: bool) -> None:
        """Let the columns that got nowhere begin anew in double precision, with mild problems if asked.

        Features of large numbers and a large C: on the way the loss of a few samples is all there is, and the
        slopes that single precision rounds away are those that lead on.
        """
        self._keep_better()
        self._evaluate()
        own = np.flatnonzero(self._unfinished())
        self.batches, self.mild = self._batches(own), mild
        self.single = self.given = False
        self._before = self.coef.copy(), self.intercept.copy(), self.V.copy()
        self.coef[own], self.intercept[own] = 0.0, 0.0

    def _keep_better(self) -> None:
        """Take back the weights, and the dual variables, that were better before columns began anew."""
        if self._before is None:
            return
        coef, intercept, V = self._before
        now = self.dual.evaluate(self.coef, self.intercept, self.V)
        then = self.dual.evaluate(coef, intercept, V)
        worse, lower = ~(now.primal <= then.primal), ~(now.dual >= then.dual)
        self.coef[worse], self.intercept[worse], self.V[lower] = coef[worse], intercept[worse], V[lower]

    def _stages(self, own: Array) -> Iterator[tuple[DataView, Array | None]]:
        """Yield growing samples of the rows and at last all of them."""
        view = self.problem.view
        n, d = view.shape
        least = max(_SAMPLE_ROWS, int(_SAMPLE_PER_FEATURE * d))
        sizes: list[int] = []
        if not self.coef[own].any() and n > d:
            size = n
            while size > 2 * _STAGE * least or (size == n and size > 4 * least):
                size = max(size // _STAGE, least)
                if stored(view, size) <= sample_bytes():
                    sizes.append(size)
        order = np.random.default_rng(self.seed).permutation(n) if sizes else None
        for size in reversed(sizes):
            assert order is not None
            rows = np.sort(order[:size])
            yield view_of(view.take(rows)), rows
        yield view, None

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters in the data's precision and what they prove."""
        self._keep_better()
        coef, intercept, found = self.dual.rounded(self.coef, self.intercept, self.V, self.tol)
        samples = int(np.count_nonzero(self.dual.upper > 0))
        certificate = found.certificate(outcome, self.tol, samples)
        if self.dual.l1:
            nonzeros = f"{np.count_nonzero(coef):,} of {coef.size:,} weights are not 0"
            certificate = replace(certificate, message=f"{certificate.message}; {nonzeros}")
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)


def _doubles(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _stored(rows: Any) -> tuple[Array, Array, Array]:
    """Return values, features and starts of sparse rows, features in order and none twice."""
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return _doubles(rows.data), rows.indices.astype(np.int32, copy=False), rows.indptr.astype(np.int64)
