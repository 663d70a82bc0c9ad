r"""Linear support vector machines by Newton's method: for data with many rows and not too many features.

The problem and its dual are those of :mod:`separatrix.solvers._box_dual`. A squared loss has a continuous,
piecewise linear slope: Newton's method with the Hessian of the piece at hand (semismooth Newton),

    (I + Σ_{i in J} σ_i x_i x_iᵀ) p = −∇P,        J = the samples whose dual variable is free to move,

and an exact line search ends at the solution after a few steps. The other losses have kinks. There the
method of multipliers (proximal points in the dual) solves a sequence of such problems, each loss replaced by

    max_v [v (t − f) − ε|v| − (v − v⁰)²/(2σ)],    v = clip(soft(v⁰ − σ(f − t), σε)),    σ = ρ U,

its envelope around the last dual variables v⁰: a Huberised loss with a shift for every sample. J are the
samples inside the kink, which become as few as the free support vectors, so that the steps get cheap. As
``v`` is always in the box and ``w → Σ v x``, every iterate proves its gap.

References: Mangasarian (2002), Keerthi and DeCoste (2005) for squared losses; Rockafellar (1976), Yan and Li
(2020) for the multipliers.

All columns go in step, so that they share the readings of the data. They begin on a sample of the rows, which
shows the way as well as all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.data.threads import in_threads
from separatrix.data.view import Array, DataView, csr_parts
from separatrix.problem import Problem, Result
from separatrix.solvers._box_dual import BoxDual, Evaluation
from separatrix.solvers._cholesky import solver_of
from separatrix.solvers._loop import Control, Outcome, Step

#: Samples times columns from which on columns share the threads.
_CHUNK = 1 << 16
#: Multiply-adds of all columns' Hessians up to which compiled steps take all columns at once.
_SMALL = 1 << 20
#: Bytes of the scores of the columns that go in step.
_STEP_BYTES = 64 << 20
#: First ρ (1/ρ is the width of the smoothed kink), what multiplies it at most and at least, and its limit.
_RHO, _GROWTH, _LEAST_GROWTH, _STEEPEST = 0.5, 10.0, 1.5, 1e9
#: What multiplies ρ at first where dual variables are given.
_GIVEN_GROWTH = 3.0
#: How short a step shows that the kink is too narrow.
_SHORT = 0.02
#: Rows of a sample, at least, and per feature; how many times more rows the next stage has at most.
_SAMPLE_ROWS, _SAMPLE_PER_FEATURE, _STAGE = 2000, 8, 8
#: Tolerances from here on are reached with single precision products of single precision data.
_SINGLE_TOL = 1e-5
#: Free samples that are gathered for one product, at least; how many sums of such products run side by side.
_GATHERED, _GROUPS = 4096, 4
#: Free samples per feature below which their inner products are used instead of the Hessian.
_WIDE = 0.7
#: Bytes of the Hessians that are kept from one step to the next, at most.
_KEPT_BYTES = 256 << 20
#: Newton steps without progress after which a Hessian in single precision is given up.
_COARSE_PATIENCE = 6
#: Free samples up to which a matrix of their products is formed; else so many conjugate gradient steps at most.
_MOST_FREE, _MOST_CONJUGATE = 8000, 200
#: Newton steps without progress after which rounding is blamed.
_PATIENCE = 32


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
    ) -> None:
        self.problem, self.tol = problem, float(tol)
        self.dual = BoxDual(problem, C, scaling)
        self.coef, self.intercept = np.array(coef, dtype=np.float64), np.array(intercept, dtype=np.float64)
        self.seed = seed
        K = problem.columns
        self.given, self.V = V is not None, np.zeros((K, problem.view.shape[0])) if V is None else V
        chosen = np.arange(K) if columns is None else columns
        room = max(1, _STEP_BYTES // (8 * max(1, *problem.view.shape)))
        self.batches = [chosen[k : k + room] for k in range(0, chosen.shape[0], room)]
        self.primal, self.gap = np.zeros(K), np.zeros(K)
        self.gap[chosen] = np.inf
        self.single = problem.view.dtype == np.float32 and tol >= _SINGLE_TOL
        self._evaluation: Evaluation | None = None

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each Newton step of the columns at hand."""
        if self._small():
            yield from self._small_steps()
            return
        primal, gap = self.primal, self.gap
        for own in self.batches:
            columns: _Columns | None = None
            for view, rows in self._stages(own):
                last = rows is None
                columns = _Columns(self, view, own, rows, 1.0 if last else max(1e-2, self.tol), columns)
                while True:
                    active = columns.measure()
                    if last:
                        columns.write(self.coef, self.intercept, self.V)
                        primal[own], gap[own] = columns.primal, np.maximum(columns.gap, 0.0)
                        done = float(gap.sum()) / max(float(primal.sum()), 1e-300)
                        finished = None
                        if not active.any() and columns.stuck:
                            finished = "max_iter"
                        measure = done if np.isfinite(done) else np.inf
                        record = {"objective": float(primal.sum()), "relative_gap": measure}
                        yield Step(record, measure, finished)
                    if not active.any():
                        break
                    columns.step(active)
                    if control.expired():
                        return

    def _small(self) -> bool:
        """Return whether calls would cost more than what they compute."""
        view, K = self.problem.view, self.problem.columns
        work = K * view.shape[0] * (view.shape[1] + 1) ** 2
        return not (view.sparse or self.given or work > _SMALL) and len(self.batches) == 1

    def _small_steps(self) -> Iterator[Step]:
        """Yield a step after each compiled Newton step of all columns."""
        dual, view, K = self.dual, self.problem.view, self.problem.columns
        x = np.ascontiguousarray(view.read(slice(0, view.shape[0])), dtype=np.float64)
        start = 2.0 if dual.squared else _RHO * (_GROWTH if self.coef.any() else 1.0)
        # The compiled state points into the arrays: they live as long.
        codes, F = dual.codes(np.arange(K)), np.ascontiguousarray(self.coef @ x.T + self.intercept[:, None])
        state = _hot.SmallNewton(
            x=x,
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
            rho=start,
            tol=self.tol,
            steepest=2.0 if dual.squared else _STEEPEST,
            growth=_GROWTH,
            least_growth=_LEAST_GROWTH,
            shortest=_SHORT,
            patience=_PATIENCE,
        )
        while True:
            primal, gap, active, stuck = state.measure()
            measure = gap / max(primal, 1e-300)
            record = {"objective": primal, "relative_gap": measure}
            yield Step(record, measure, "max_iter" if stuck and not active else None)
            if not active:
                return
            state.step()

    def _stages(self, own: Array) -> Iterator[tuple[DataView, Array | None]]:
        """Yield growing samples of the rows and at last all of them."""
        view = self.problem.view
        n, d = view.shape
        least = max(_SAMPLE_ROWS, int(_SAMPLE_PER_FEATURE * d))
        sizes: list[int] = []
        if not self.coef[own].any() and n > d:
            size = n
            while size > 2 * _STAGE * least or (not sizes and size > 4 * least):
                size = max(size // _STAGE, least)
                sizes.append(size)
        order = np.random.default_rng(self.seed).permutation(n) if sizes else None
        for size in reversed(sizes):
            assert order is not None
            rows = np.sort(order[:size])
            yield view_of(view.take(rows)), rows
        yield view, None

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters in the data's precision and what they prove."""
        dtype = self.problem.view.dtype
        coef, intercept = self.coef.astype(dtype), self.intercept.astype(dtype)
        found = self.dual.evaluate(coef, intercept, self.V)
        samples = int(np.count_nonzero(self.dual.upper > 0))
        certificate = found.certificate(outcome, self.tol, samples)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)


class _Columns:
    """Some columns on some rows, in step."""

    def __init__(
        self,
        solver: SemismoothNewton,
        view: DataView,
        own: Array,
        rows: Array | None,
        share: float,
        before: _Columns | None,
    ) -> None:
        dual = solver.dual
        self.dual, self.view, self.own = dual, view, own
        self.tol = solver.tol if rows is None else max(solver.tol, 1e-2)
        self.dtype = np.dtype(np.float32 if solver.single else np.float64)
        K, (n, d) = own.shape[0], view.shape
        codes = dual.codes(own)
        numbers, upper = dual.numbers, dual.upper
        if rows is not None:
            codes = None if codes is None else np.ascontiguousarray(codes[:, rows])
            numbers = None if numbers is None else numbers[rows]
            part = float(upper[rows].sum())
            upper = upper[rows] * (float(upper.sum()) / part if part > 0 else 1.0)
        self.codes, self.numbers, self.upper = codes, numbers, np.ascontiguousarray(upper)
        self.even = float(upper[0]) if n and np.all(upper == upper[0]) else None
        self.W: Array = solver.coef[own] if before is None else before.W
        self.b: Array = solver.intercept[own] if before is None else before.b
        self.F = np.empty((K, n))
        self.scores(self.W, self.b, self.F)
        self.Q = np.empty((K, n))
        self.V, self.inside = np.empty((K, n)), np.empty((K, n), dtype=np.uint8)
        self.V0: Array | None = None
        # A squared loss is its own envelope for ρ = 2; smaller values only help on the way.
        self.steepest = 2.0 if dual.squared else _STEEPEST
        self.rho = np.full(K, 2.0 if dual.squared else _RHO)
        if not dual.squared:
            if before is not None:
                self.rho = before.rho.copy()
            elif self.W.any():
                self.rho *= _GROWTH
            if solver.given and rows is None:
                self.V0 = solver.V[own]
        self.growth, self.inner = np.full(K, _GIVEN_GROWTH if solver.given else _GROWTH), np.zeros(K, dtype=int)
        self.primal = self.gap = np.full(K, np.inf)
        self.least, self.idle = np.full(K, np.inf), np.zeros(K, dtype=int)
        self.intercepts = dual.free or dual.square > 0
        self.curve = 0.0 if dual.free or not self.intercepts else 1.0 / dual.square
        self.products, self.sums = np.zeros_like(self.W), np.zeros(K)
        self.losses, self.linear, self.squares = np.zeros(K), np.zeros(K), np.zeros(K)
        self.fresh = np.ones(K, dtype=bool)
        self.stuck = False
        # A Hessian in single precision shows the way as well; where it does not, double takes its place.
        self.coarse = np.full(K, solver.tol >= _SINGLE_TOL)
        #: Free samples of each column's last Hessian and the sums of their products.
        self.kept: dict[int, tuple[Array, Array]] = {}
        self.keep = K * d * d * 8 <= _KEPT_BYTES
        if solver.given and rows is None:
            self._leap(solver.V[own])

    def _leap(self, V: Array) -> None:
        """Begin at the optimum of the samples that are free in ``V``, were all others to stay as they are.

        Coordinate descent knows them long before its weights are good.
        """
        W, b, F, every = self.W, self.b, self.F, np.arange(self.W.shape[0])
        self._judge(every)
        before = self.primal
        self.W, self.b, self.F = np.zeros_like(W), np.zeros_like(b), np.zeros_like(F)
        self.inside[:] = V != 0
        target = self.numbers if self.codes is None else self.codes
        free = self.rho[:, None] * self.upper * (target - self.dual.epsilon * np.sign(V))
        if not self.dual.squared:
            self.inside &= np.abs(V) < self.upper * (1.0 - 1e-6)
            free += V
        free = np.where(self.inside, free, 0.0 if self.dual.squared else V)
        self.gradient, self.slope = -self.transposed(free), -free.sum(axis=1)
        self.W, self.b = self._steps(every)
        self.scores(self.W, self.b, self.F)
        self._judge(every)
        worse = self.primal > before
        self.W[worse], self.b[worse], self.F[worse] = W[worse], b[worse], F[worse]

    # Readings of the data.

    def scores(self, W: Array, b: Array, out: Array) -> None:
        """Write the scores of these weights into ``out``, of shape (columns, n)."""
        A = W.astype(self.dtype)

        def write(rows: slice, block: Any) -> int:
            out[:, rows] = (block @ A.T).T if self.view.sparse else A @ block.T
            return 0

        self._read(write, self.view.shape[0] * A.size)
        out += b[:, None]

    def transposed(self, V: Array) -> Array:
        """Return ``Σ_i v_i x_i`` of each column."""

        def part(rows: slice, block: Any) -> Array:
            R = V[:, rows].astype(self.dtype)
            return np.asarray((block.T @ R.T).T if self.view.sparse else R @ block, dtype=np.float64)

        return np.asarray(self._read(part, V.size * self.view.shape[1]))

    def _read(self, function: Callable[[slice, Any], Any], work: float) -> Any:
        # Whole small data at once: blocks and threads would cost more than they gain.
        if work < 1 << 21:
            rows = slice(0, self.view.shape[0])
            return function(rows, self.view.read(rows))
        return self.view.map_sum(function, 8 * self.W.size)

    def gram(self, k: int) -> Array:
        """Return the upper triangle of column ``k``'s Hessian in (w, b): its free samples' and the penalty."""
        d = self.view.shape[1]
        total = self._free_products(k)
        D = d + 1 if self.intercepts else d
        dtype = np.dtype(np.float32 if self.coarse[k] else np.float64)
        H = np.empty((D, D), dtype=dtype)
        rho = self.rho[k] * (1.0 if self.even is None else self.even)
        np.multiply(total[: d * d].reshape(d, d), total.dtype.type(rho), out=H[:d, :d], casting="same_kind")
        every = np.arange(d)
        if self.view.sparse:
            H[every, every] *= 2.0
        H[every, every] += 1.0
        if self.intercepts:
            H[:d, d] = rho * total[d * d : -1]
            H[d, :d] = 0.0
            # Where no sample is free, a free intercept has no curvature: the line search finds its length.
            H[d, d] = (rho * total[-1] + self.curve) or 1e-3 * self.rho[k] * float(self.upper.sum())
        return H

    def _free_products(self, k: int) -> Array:
        """Return ``Σ U x xᵀ``, ``Σ U x`` and ``Σ U`` of the free samples of column ``k`` (``U = 1`` if even).

        From one step to the next few samples change sides: then only these are added or taken away.
        """
        now, double = self.inside[k], self.view.sparse or not self.coarse[k]
        kept = self.kept.pop(k, None)
        if kept is not None and double == (kept[1].dtype == np.float64):
            before, total = kept
            change = now.view(np.int8) - before.view(np.int8)
            if np.count_nonzero(change) < np.count_nonzero(now):
                for sign in (1, -1):
                    rows = np.flatnonzero(change == sign)
                    if rows.shape[0]:
                        total += sign * self._products(rows, total.dtype)
            else:
                kept = None
        else:
            kept = None
        if kept is None:
            total = self._products(np.flatnonzero(now), np.dtype(np.float64 if double else np.float32))
        if self.keep:
            self.kept[k] = now.copy(), total
        return total

    def _products(self, chosen: Array, dtype: np.dtype[Any]) -> Array:
        d = self.view.shape[1]
        size, step = d * d + d + 1, max(_GATHERED, 2 * d)
        starts = range(0, chosen.shape[0], step)
        groups = max(1, min(_GROUPS, len(starts)))

        def group(number: int) -> Array:
            total = np.zeros(size, dtype=dtype)
            H, sums = total[: d * d].reshape(d, d), total[d * d : -1]
            for start in starts[number * len(starts) // groups : (number + 1) * len(starts) // groups]:
                rows = chosen[start : start + step]
                A, s = self.view.take(rows), np.ones(rows.shape[0]) if self.even is not None else self.upper[rows]
                total[-1] += s.sum()
                if self.view.sparse:
                    _hot.gram_csr(*csr_parts(A), s, H)
                    sums += A.T @ s
                    continue
                A = A.astype(dtype, copy=False)
                root = np.sqrt(s).astype(dtype)
                if self.even is None:
                    A *= root[:, None]
                H += A.T @ A
                sums += root @ A
            return total

        parts = in_threads(group, groups)
        total = next(parts)
        for part in parts:
            total += part
        return total

    # Sums over the samples of a column.

    def _loss(self, k: int) -> tuple[Any, ...]:
        """Return what defines the smoothed loss of column ``k``, as the compiled loops take it."""
        codes = None if self.codes is None else self.codes[k]
        v0 = None if self.V0 is None else self.V0[k]
        return codes, self.numbers, self.upper, v0, self.rho[k], self.dual.epsilon, not self.dual.squared

    def _each(self, function: Callable[[int], Any], columns: Array) -> list[Any]:
        if self.view.shape[0] * columns.shape[0] < _CHUNK:
            return [function(int(k)) for k in columns]
        return list(in_threads(lambda i: function(int(columns[i])), columns.shape[0]))

    # The method.

    def measure(self) -> Array:
        """Compute objective, bound and gradient of the columns that have moved; return which are not done."""
        moved = np.flatnonzero(self.fresh)
        if moved.shape[0]:
            self._judge(moved)
            self.fresh[:] = False
        waiting = self.gap > self.tol * self.primal
        # Inside the smoothed problem as well as it pays: the multipliers move, and the kink narrows.
        ready = waiting & (self.rest <= 0.1 * self.gap) & (self.rho < self.steepest)
        if ready.any():
            chosen = np.flatnonzero(ready)
            if not self.dual.squared:
                if self.V0 is None:
                    self.V0 = np.zeros_like(self.V)
                self.V0[chosen] = self.V[chosen]
            # The easier the last smoothed problem was, the more the kink narrows in the next.
            taken = self.inner[chosen]
            change = np.where(taken <= 1, 2.0, np.where(taken <= 3, 1.0, 0.5))
            self.growth[chosen] = np.clip(self.growth[chosen] * change, _LEAST_GROWTH, _GROWTH)
            self.rho[chosen] = np.minimum(self.rho[chosen] * self.growth[chosen], self.steepest)
            self.inner[chosen] = 0
            self._judge(chosen)
            waiting = self.gap > self.tol * self.primal
        better = self.gap < 0.9 * self.least
        self.least = np.minimum(self.least, self.gap)
        self.idle = np.where(better, 0, self.idle + 1)
        self.coarse &= self.idle < _COARSE_PATIENCE
        tired = waiting & (self.idle > _PATIENCE)
        self.stuck = bool(tired.any())
        return np.asarray(waiting & ~tired)

    def _judge(self, columns: Array) -> None:
        def one(k: int) -> tuple[float, ...]:
            return _hot.respond(self.F[k], None, 0.0, *self._loss(k), self.V[k], self.inside[k])

        found = np.array(self._each(one, columns))
        self.losses[columns], self.linear[columns], self.squares[columns] = found[:, 2:].T
        self.products[columns] = self.transposed(self.V[columns])
        self.sums[columns] = self.V[columns].sum(axis=1)
        dual = self.dual
        norms = np.einsum("kj,kj->k", self.W, self.W)
        self.primal = dual.primal(norms, self.b, self.losses)
        squares = np.einsum("kj,kj->k", self.products, self.products)
        bound = dual.bound(self.linear, self.squares, squares, self.sums)
        self.gap = np.maximum(self.primal - bound, 0.0)
        self.gradient = self.W - self.products
        self.slope = (self.curve * self.b - self.sums) if self.intercepts else np.zeros_like(self.b)
        # The part of the gap that Newton's method inside the smoothed problem can still take away.
        self.rest = 0.5 * np.einsum("kj,kj->k", self.gradient, self.gradient)
        if dual.square > 0:
            self.rest += 0.5 * dual.square * np.square(self.slope)
        elif dual.free:
            # What it will cost to make the dual variables sum to 0.
            unbalanced = np.abs(self.slope) * (1.0 + np.abs(self.b))
            self.rest, self.gap = self.rest + unbalanced, self.gap + unbalanced

    def step(self, active: Array) -> None:
        """Take a Newton step in the active columns."""
        columns = np.flatnonzero(active)
        Q = self.Q[: columns.shape[0]]
        P, p = self._steps(columns)
        self.scores(P, p, Q)

        def search(i: int) -> float:
            k = int(columns[i])
            return self._search(k, P[i], float(p[i]), Q[i])

        t = np.array(self._each(search, np.arange(columns.shape[0])))
        self.inner[columns] += 1
        # A step that gets nowhere: so few samples lie inside the kink that their piece tells little.
        short = columns[t < (0.01 * _SHORT if self.dual.squared else _SHORT)]
        self.rho[short] /= np.maximum(self.growth[short], 4.0)
        self.growth[short] = _LEAST_GROWTH
        self.W[columns] += t[:, None] * P
        self.b[columns] += t * p
        Q *= t[:, None]
        self.F[columns] += Q
        self.fresh[columns] = True

    def _steps(self, columns: Array) -> tuple[Array, Array]:
        """Return the Newton steps of these columns."""
        P, p = np.zeros((columns.shape[0], self.W.shape[1])), np.zeros(columns.shape[0])

        n, d = self.view.shape

        def newton(i: int) -> None:
            k = columns[i]
            free = np.flatnonzero(self.inside[k])
            if free.shape[0] < _WIDE * d:
                P[i], p[i] = self._among_samples(k, free)
            else:
                P[i : i + 1], p[i : i + 1] = self._among_features(columns[i : i + 1])

        # Columns in which all samples are free, as without weights, have the same Hessian.
        alike = self.inside[columns].all(axis=1) & (self.rho[columns] == self.rho[columns[0]])
        if np.count_nonzero(alike) > 1 and n >= _WIDE * d:
            P[alike], p[alike] = self._among_features(columns[alike])
        else:
            alike[:] = False
        self._each(newton, np.flatnonzero(~alike))
        return P, p

    def _among_features(self, alike: Array) -> tuple[Array, Array]:
        """Return the Newton steps of columns with the same Hessian."""
        right = -self.gradient[alike]
        if self.intercepts:
            right = np.column_stack([right, -self.slope[alike]])
        moves = solver_of(partial(self.gram, alike[0]))(right.T).T
        return moves[:, : right.shape[1] - self.intercepts], moves[:, -1] if self.intercepts else np.zeros(len(alike))

    def _among_samples(self, k: int, free: Array) -> tuple[Array, float]:
        r"""Return the same step from the inner products of the free samples, where these are few.

        With ``λ = S (A p + q)``, ``A`` the free samples and ``S`` their σ, the step (p, q) solves
        ``p = −∇_w − Aᵀλ`` and ``(S⁻¹ + A Aᵀ) λ = q − A ∇_w``, ``Σ λ + q/γ² = −∇_b``.
        """
        g, slope = self.gradient[k], self.slope[k]
        if not free.shape[0]:
            # Nothing bends a free intercept: the line search finds how far it goes.
            curve = self.curve or 1e-3 * self.rho[k] * float(self.upper.sum())
            return -g, -slope / curve if self.intercepts else 0.0
        A = self.view.take(free)
        A = A.astype(self.dtype) if A.dtype != self.dtype else A
        diagonal = 1.0 / (self.rho[k] * self.upper[free])

        def products() -> Array:
            if self.view.sparse:
                M = np.zeros((free.shape[0], free.shape[0]))
                _hot.gram_csr(*csr_parts(A.T.tocsr()), None, M)
                M[np.diag_indices_from(M)] *= 2.0
            else:
                M = np.asarray(A @ A.T, dtype=np.float32 if self.coarse[k] else np.float64)
            M[np.diag_indices_from(M)] += diagonal
            return M

        solve = solver_of(products) if free.shape[0] <= _MOST_FREE else _conjugate(A, diagonal)
        right = solve(np.asarray(A @ g, dtype=np.float64))
        q = 0.0
        if self.intercepts:
            ones = solve(np.ones(free.shape[0]))
            q = float((right.sum() - slope) / (ones.sum() + self.curve))
            right = right - q * ones
        return np.asarray(A.T @ right, dtype=np.float64) - g, q

    def _search(self, k: int, p: Array, q: float, change: Array) -> float:
        """Return how far to go: where the objective's slope along the step, which rises, is about 0."""
        start = float(self.gradient[k] @ p + self.slope[k] * q)
        if not start < 0:
            return 0.0
        first = float(self.W[k] @ p) + self.curve * self.b[k] * q
        curve = float(p @ p) + self.curve * q * q
        return _hot.search(self.F[k], change, *self._loss(k), first, curve, start)

    def write(self, coef: Array, intercept: Array, V: Array) -> None:
        """Put parameters and dual variables where the solver keeps them."""
        coef[self.own], intercept[self.own], V[self.own] = self.W, self.b, self.V


def _conjugate(A: Any, diagonal: Array) -> Callable[[Array], Array]:
    """Return what solves ``(diagonal + A Aᵀ) λ = right`` to two digits, where the matrix would be too large."""
    squares = A.multiply(A).sum(axis=1) if sparse.issparse(A) else np.einsum("ij,ij->i", A, A)
    scale = 1.0 / (diagonal + np.asarray(squares, dtype=np.float64).ravel())

    def multiply(right: Array) -> Array:
        solution, r = np.zeros_like(right), right.copy()
        z = scale * r
        p, energy = z, float(r @ z)
        enough = 1e-4 * energy
        for _ in range(_MOST_CONJUGATE):
            if not energy > enough:
                break
            q = diagonal * p + np.asarray(A @ (A.T @ p), dtype=np.float64)
            step = energy / float(p @ q)
            solution += step * p
            r -= step * q
            z = scale * r
            before, energy = energy, float(r @ z)
            p = z + (energy / before) * p
        return solution

    return multiply
