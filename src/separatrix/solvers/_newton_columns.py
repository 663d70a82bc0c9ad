"""Newton's method of some columns on some rows, in step; :mod:`.semismooth_newton` tells the method.

The Hessian of a column is formed from the products of its free samples (:mod:`._free_products`). Where these
are fewer than features, their inner products give the same step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.data.threads import in_threads
from separatrix.data.view import Array, DataView, csr_parts
from separatrix.solvers._cholesky import solver_of
from separatrix.solvers._directions import Directions
from separatrix.solvers._free_products import FreeProducts

if TYPE_CHECKING:
    from separatrix.solvers.semismooth_newton import SemismoothNewton

#: Samples times columns from which on columns share the threads.
_CHUNK = 1 << 16
#: First ρ (1/ρ is the width of the smoothed kink), what multiplies it at most and at least, and its limit.
RHO, GROWTH, LEAST_GROWTH, STEEPEST = 0.5, 4.0, 1.5, 1e9
#: What multiplies ρ at first where dual variables are given.
_GIVEN_GROWTH = 3.0
#: How short a step shows that the kink is too narrow.
SHORT = 0.02
#: Steps of a squared loss that are short, and how many of them show that multipliers are the better way; the
#: mean curvature of the data, that of the penalty being 1, from which these set out.
_HALTING, _HALTS, _MILD, _MILD_GROWTH = 0.3, 3, 100.0, 2.0
#: Tolerances from here on are reached with single precision products of single precision data.
SINGLE_TOL = 1e-5
#: Free samples per feature below which their inner products are used instead of the Hessian.
_WIDE = 0.7
#: Entries of Hessians that single precision must not hold.
_LARGE = 1e30
#: Newton steps without progress after which a Hessian in single precision is given up, and after which
#: conjugate gradients are.
_COARSE_PATIENCE, _ROUGH_PATIENCE = 6, 10
#: Free samples up to which a matrix of their products is formed; beyond, most steps of conjugate gradients.
MOST_FREE, _MOST_CONJUGATE = 8000, 200
#: How many of these a step usually takes, and the part of the residual's energy at which it ends; how much
#: faster multiply-adds of a factorisation are than those of sparse products.
_USUAL_CONJUGATE, _ENOUGH, _DENSE_RATE = 40.0, 1e-3, 30.0
#: Newton steps without progress after which rounding is blamed.
PATIENCE = 32


class Columns:
    """Some columns on some rows, in step."""

    def __init__(
        self,
        solver: SemismoothNewton,
        view: DataView,
        own: Array,
        rows: Array | None,
        before: Columns | None,
    ) -> None:
        dual = solver.dual
        self.dual, self.view, self.own = dual, view, own
        self.tol = solver.tol if rows is None else max(solver.tol, 1e-2)
        self.dtype = np.dtype(np.float32 if solver.single else np.float64)
        K, n = own.shape[0], view.shape[0]
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
        self.steepest = 2.0 if dual.squared else STEEPEST
        self.rho = np.full(K, 2.0 if dual.squared else RHO)
        if not dual.squared:
            if before is not None:
                self.rho = before.rho.copy()
            elif self.W.any():
                self.rho *= GROWTH
            if solver.given and rows is None:
                self.V0 = solver.V[own]
        self.growth = np.full(K, _GIVEN_GROWTH if solver.given else GROWTH)
        self.inner = np.zeros(K, dtype=int)
        self.primal = self.gap = np.full(K, np.inf)
        self.least, self.least_rest = np.full(K, np.inf), np.full(K, np.inf)
        self.idle, self.highest = np.zeros(K, dtype=int), self.rho.copy()
        self.intercepts = dual.free or dual.square > 0
        self.curve = 0.0 if dual.free or not self.intercepts else 1.0 / dual.square
        self.products, self.sums = np.zeros_like(self.W), np.zeros(K)
        self.losses, self.linear, self.squares = np.zeros(K), np.zeros(K), np.zeros(K)
        self.fresh = np.ones(K, dtype=bool)
        #: Short steps of each column's squared loss; None where mild problems are of no use.
        self.halts: Array | None = np.full(K, _HALTS if solver.mild else 0) if not dual.l1 else None
        self.stuck = False
        # A Hessian in single precision shows the way as well; where it does not, double takes its place.
        self.coarse = np.full(K, solver.tol >= SINGLE_TOL)
        #: So do steps of two digits, by conjugate gradients.
        self.rough = np.full(K, view.sparse)
        self.free_products = FreeProducts(view, self.upper, self.even, columns=K)
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
        target: Any = self.numbers if self.codes is None else self.codes
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
        """Return the upper triangle of column ``k``'s Hessian in (w, b)."""
        d = self.view.shape[1]
        total = self.free_products.of(k, self.inside[k], single=bool(self.coarse[k]))
        largest = float(total.max(initial=0.0)) * self.rho[k] * float(self.upper.max(initial=0.0))
        if self.coarse[k] and not largest < _LARGE:
            self.coarse[k] = False
            total = self.free_products.of(k, self.inside[k], single=False)
        D = d + 1 if self.intercepts else d
        dtype = np.dtype(np.float32 if self.coarse[k] else np.float64)
        H = np.empty((D, D), dtype=dtype)
        rho = self.rho[k] * (1.0 if self.even is None else self.even)
        np.multiply(total[: d * d].reshape(d, d), total.dtype.type(rho), out=H[:d, :d], casting="same_kind")
        every = np.arange(d)
        if self.view.sparse:
            H[every, every] *= 2.0
        H[every, every] += self._penalty_curve(k)
        if self.intercepts:
            H[:d, d] = rho * total[d * d : -1]
            H[d, :d] = 0.0
            # Where no sample is free, a free intercept has no curvature: the line search finds its length.
            H[d, d] = (rho * total[-1] + self.curve) or 1e-3 * self.rho[k] * float(self.upper.sum())
        return H

    def _penalty_curve(self, k: int) -> Any:
        """Return what the penalty adds to the curvature of column ``k``'s weights."""
        return 1.0

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
        waiting = self._waiting()
        if self.halts is not None and np.any(halting := waiting & (self.halts == _HALTS)):
            self._soften(np.flatnonzero(halting))
        # Inside the smoothed problem as well as it pays: the multipliers move, and the kink narrows. (A gap
        # above the bound itself comes from large weights on few samples, or from a large C: as inexact,
        # multipliers lead away.)
        least = np.minimum(0.01 * self.gap, 0.5 * self.dual.lengths(self.W))
        enough = np.minimum(self.gap, np.maximum(self.primal - self.gap, least))
        ready = waiting & (self.rest <= 0.1 * enough) & (self.rho < self.steepest)
        if ready.any():
            chosen = np.flatnonzero(ready)
            # The easier the last smoothed problem was, the more the kink narrows in the next.
            taken = self.inner[chosen]
            change = np.where(taken <= 1, 2.0, np.where(taken <= 3, 1.0, 0.5))
            self.growth[chosen] = np.clip(self.growth[chosen] * change, LEAST_GROWTH, GROWTH)
            self.rho[chosen] = np.minimum(self.rho[chosen] * self.growth[chosen], self.steepest)
            self.inner[chosen] = 0
            self._take_multipliers(chosen)
            self.least_rest[self.rho > self.highest] = np.inf
            self.highest = np.maximum(self.highest, self.rho)
            self._judge(chosen)
            waiting = ~(self.gap <= self.tol * self.primal)
        # Where features are large, so is the gap until the last: progress is also a smaller rest.
        better = (self.gap < 0.9 * self.least) | (self.rest < 0.9 * self.least_rest)
        self.least, self.least_rest = np.minimum(self.least, self.gap), np.minimum(self.least_rest, self.rest)
        self.idle = np.where(better, 0, self.idle + 1)
        self.coarse &= self.idle < _COARSE_PATIENCE
        self.rough &= self.idle < _ROUGH_PATIENCE
        tired = waiting & (self.idle > PATIENCE)
        if self.halts is not None and np.any(again := tired & (self.halts < _HALTS)):
            self._soften(np.flatnonzero(again))
            self.idle[again] = 0
            tired &= ~again
        self.stuck = bool(tired.any())
        return np.asarray(waiting & ~tired)

    def _take_multipliers(self, columns: Array) -> None:
        """Let the smoothed losses of these columns be those around their dual variables.

        A squared loss bends its dual by itself: of the bend 1/(ρU) of its envelope, 1/(2U) is its own, and
        the rest pulls towards the last dual variables.
        """
        if self.V0 is None:
            self.V0 = np.zeros_like(self.V)
        part = 1.0 - 0.5 * self.rho[columns, None] if self.dual.squared else 1.0
        self.V0[columns] = part * self.V[columns]

    def _soften(self, columns: Array) -> None:
        """Go on by mild problems where the steps of a squared loss are short again and again, or get nowhere.

        Where C is so large that a sample's loss outweighs the penalty, each step changes the side of many
        samples. Multipliers lead to the same solution through problems in which the loss is mild.
        """
        assert self.halts is not None
        self.halts[columns] = _HALTS + 1
        d = self.view.shape[1] + 1
        curve = float(self.upper @ self.view.row_norms()) + self.dual.square * float(self.upper.sum())
        mild = _MILD * d / max(curve, 1e-300)
        if mild >= self.steepest:
            return
        # On the way the dual variables are too large by far.
        spreads = self.dual.spreads(self.products)
        scale, _ = self.dual.multiple(self.linear, self.squares, spreads, self.sums)
        self.V[columns] *= scale[columns, None]
        self.rho[columns] = self.highest[columns] = 1.0 / (1.0 / self.steepest + 1.0 / mild)
        self.growth[columns], self.inner[columns], self.least_rest[columns] = _MILD_GROWTH, 0, np.inf
        self._take_multipliers(columns)
        self._judge(columns)

    def _waiting(self) -> Array:
        return np.asarray(~(self.gap <= self.tol * self.primal))

    def _judge(self, columns: Array) -> None:
        def one(k: int) -> tuple[float, ...]:
            return _hot.respond(self.F[k], None, 0.0, *self._loss(k), self.V[k], self.inside[k])

        found = np.array(self._each(one, columns))
        self.losses[columns], self.linear[columns], self.squares[columns] = found[:, 2:].T
        self.products[columns] = self.transposed(self.V[columns])
        self.sums[columns] = self.V[columns].sum(axis=1)
        dual = self.dual
        self.primal = dual.primal(dual.lengths(self.W), self.b, self.losses)
        bound = dual.bound(self.linear, self.squares, dual.spreads(self.products), self.sums)
        self._compare(bound)

    def _compare(self, bound: Array) -> None:
        """Set gap, gradient and what Newton's method can still take away, from the sums and their bound."""
        dual = self.dual
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
        self.fresh[columns] = True
        Q *= t[:, None]
        self.F[columns] += Q
        self._move(columns, t, P, p)

    def _move(self, columns: Array, t: Array, P: Array, p: Array) -> None:
        """Go ``t`` along the steps."""
        # A step that gets nowhere: so few samples lie inside the kink that their piece tells little.
        short = columns[t < (0.01 * SHORT if self.dual.squared else SHORT)]
        self.rho[short] /= np.maximum(self.growth[short], 4.0)
        self.growth[short] = LEAST_GROWTH
        if self.halts is not None and self.dual.squared:
            halting = columns[(t < _HALTING) & (self.halts[columns] < _HALTS)]
            self.halts[halting] += 1
        self.W[columns] += t[:, None] * P
        self.b[columns] += t * p

    def _steps(self, columns: Array) -> tuple[Array, Array]:
        """Return the Newton steps of these columns."""
        P, p = np.zeros((columns.shape[0], self.W.shape[1])), np.zeros(columns.shape[0])
        n, d = self.view.shape

        def newton(i: int) -> None:
            k = columns[i]
            free = np.flatnonzero(self.inside[k])
            if self.rough[k] and self._large(free.shape[0]):
                P[i], p[i] = self._iterated(k, free)
            elif free.shape[0] < _WIDE * d:
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

    def _large(self, free: int) -> bool:
        """Return whether sparse products are cheaper than a factorisation, of features or of samples."""
        size = min(free, self.view.shape[1])
        dense = size**3 / (3 * _DENSE_RATE)
        return dense > 2 * _USUAL_CONJUGATE * free * self.view.row_elements

    def _iterated(self, k: int, free: Array) -> tuple[Array, float]:
        """Return about the same step by conjugate gradients, without a matrix."""
        d = self.view.shape[1]
        A, s = self.view.take(free).astype(np.float64), self.rho[k] * self.upper[free]
        B = A.T.tocsr()
        diagonal, right = np.ones(d + 1), np.append(-self.gradient[k], -self.slope[k])
        squares = B.copy()
        np.square(squares.data, out=squares.data)
        diagonal[:d] += squares @ s
        diagonal[d] = float(s.sum()) + self.curve if self.intercepts else 1.0

        def multiply(p: Array) -> Array:
            f = A @ p[:d]
            f += p[d]
            f *= s
            q = p.copy()
            q[:d] += B @ f
            q[d] = float(f.sum()) + self.curve * p[d] if self.intercepts else 0.0
            return q

        solution = _conjugate_gradients(multiply, 1.0 / diagonal, right)
        return solution[:d], float(solution[d])

    def _among_features(self, alike: Array) -> tuple[Array, Array]:
        """Return the Newton steps of columns with the same Hessian."""
        right = -self.gradient[alike]
        if self.intercepts:
            right = np.column_stack([right, -self.slope[alike]])
        moves = solver_of(partial(self.gram, alike[0]))(right.T).T
        if self.intercepts:
            return moves[:, :-1], moves[:, -1]
        return moves, np.zeros(alike.shape[0])

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

        solve = solver_of(products) if free.shape[0] <= MOST_FREE else _conjugate(A, diagonal)
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
    """Return what solves ``(diagonal + A Aᵀ) λ = right`` to two digits, without the matrix."""
    squares = A.multiply(A).sum(axis=1) if sparse.issparse(A) else np.einsum("ij,ij->i", A, A)
    scale = 1.0 / (diagonal + np.asarray(squares, dtype=np.float64).ravel())
    return partial(
        _conjugate_gradients, lambda p: diagonal * p + np.asarray(A @ (A.T @ p), dtype=np.float64), scale
    )


def _conjugate_gradients(multiply: Callable[[Array], Array], scale: Array, right: Array) -> Array:
    """Return the solution to two digits; ``scale`` is the inverse of the matrix's diagonal."""
    group = Directions(right.copy(), partial(np.multiply, scale))
    enough = _ENOUGH * group.rz
    for _ in range(_MOST_CONJUGATE):
        if not group.rz > enough:
            break
        group.advance(multiply(group.P))
        group.turn()
    return group.step
