r"""A dual problem whose kernel matrix a factor holds, by an interior point method.

    min ½ a'Qa + p'a   subject to   0 ≤ a ≤ u,  A a = b,        Q ≈ G G',  G of shape (m, r)

Where C is large and the kernel matrix has a low rank (few features and a linear kernel, or a polynomial of
them), most variables are at a bound, and steps of pairs find out which, one after the other, in millions of
steps. So they do where a smooth kernel is to follow noise, whatever the rank. The method sees all at once:
each of some 30 steps solves a system in ``Θ + G G'``, ``Θ`` diagonal, by way of ``I + G'Θ⁻¹G``, which is no
larger (Ferris and Munson, SIAM J. Optim. 13, 2002; predictor and corrector by Mehrotra, 1992). ``G`` is a
pivoted Cholesky factor (Fine and Scheinberg, JMLR 2, 2001). What this leaves, steps of pairs and of the free
variables cure, with the kernel itself.
"""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._dual import NEGATIVE, State, Work, dot

#: What a factor may leave of the diagonal of K, relative to its largest entry.
_LEFT = 1e-13
#: Columns that a factor gains at a time.
_COLUMNS = 16
#: The method takes as long as steps of pairs: so many for each squared column of the factor.
_STEPS_PER_SQUARE = 4
#: Steps of pairs times variables that take as long as the method on the smallest problem.
_LEAST_WORK = 5e6
#: Most iterations, relative gap at which they end, and the way to the boundary that each goes at most.
_ITERATIONS, _GAP, _WAY = 80, 1e-12, 0.995
#: Error, in units of the least so far, at which they end, too.
_WORSE = 1e3
#: Distance to a bound, in units of the box, over its multiplier, below which a variable is put on it.
_NEAR = 1e-3
#: Most steps of the free variables after it, where it has not led to the tolerance, and operations of each,
#: in units of variables times squared columns that are solved for at every bound.
_REFINEMENTS, _OPERATIONS = 4, 1e10


class LowRank:
    """A factor of the kernel matrix of some samples, ``K ≈ F F'``, that grows as far as it may.

    Parameters
    ----------
    work : Work
        The problem whose points are meant.
    """

    def __init__(self, work: Work) -> None:
        self.work, self.rest = work, np.array(work.diag, dtype=np.float64)
        self._floor = _LEFT * float(self.rest.max(initial=0.0))
        self.columns, self.used = np.empty((self.rest.size, 0)), False

    @property
    def complete(self) -> bool:
        """Whether the factor leaves nothing but rounding errors."""
        return bool(self.rest.max(initial=0.0) <= self._floor)

    def use(self) -> None:
        """Forget all but that the factor has been used."""
        self.columns, self.used = self.columns[:, :0], True

    def grow(self, most: int) -> bool:
        """Add columns, up to so many; return whether they suffice."""
        points, matrix = self.work.points, self.work.matrix
        while not self.complete and self.columns.shape[1] < most:
            pivots = np.argsort(-self.rest, kind="stable")[:_COLUMNS]
            rest = np.asarray(matrix.block(points, points[pivots], "float64"), dtype=np.float64)
            rest -= self.columns @ self.columns[pivots].T
            new: list[Array] = []
            for _ in pivots:
                own = rest[pivots, np.arange(pivots.size)]
                j = int(np.argmax(own))
                if not own[j] > self._floor:
                    break
                column = rest[:, j] / np.sqrt(own[j])
                rest -= np.outer(column, column[pivots])
                rest[pivots[j], j] = 0.0
                new.append(column)
            if not new:  # an indefinite kernel
                return False
            self.columns = np.column_stack([self.columns, *new])
            self.rest -= np.square(np.column_stack(new)).sum(axis=1)
        return self.complete


def interior(work: Work, state: State, most: float) -> bool:
    """Solve the problem of a loop that is paused, if its kernel matrix has no more than a rank; return if so.

    It is tried once.
    """
    if not np.isfinite(work.upper).all() or work.worst_curvature < -NEGATIVE:
        return False
    if state.factor is None:
        state.factor = LowRank(work)
    n = work.points.size
    most = min(most, n, work.matrix.cache_bytes / 32 / n)
    with single_threaded(np.inf):
        if state.factor.used or not state.factor.grow(int(most)):
            return False
        after = _solution(work, state.factor.columns)
        state.exact_at, tol = state.loop.steps, state.loop.tol
        work.recompute("float64")
        before, least = (work.alpha.copy(), work.E.copy(), work.exact), value(work)
        work.alpha[:] = after
        work.recompute("float64")
        for _ in range(_REFINEMENTS):
            if work.scores()[1] <= tol or not _settle(work, state.factor.columns, tol):
                break
            work.recompute("float64")
    state.factor.use()
    if value(work) < least:
        return True
    work.alpha[:], work.E[:], work.exact = before
    return False


def patient(state: State) -> float:
    """Return up to which rank the method takes no longer than many steps of pairs so far; else 0."""
    work = float(state.loop.steps) * state.width
    return np.sqrt(work / state.alpha.size / _STEPS_PER_SQUARE) if work >= _LEAST_WORK else 0.0


def rank_bound(work: Work) -> float:
    """Return the rank that the formula of the kernel allows its matrix at most."""
    native, d = work.matrix.native, work.matrix.samples.shape[1]
    if native is None or native.formula > 1:
        return np.inf
    return float(comb(d + native.degree, native.degree)) if native.formula == 1 else float(d)


def value(work: Work, alpha: Array | None = None, E: Array | None = None) -> float:
    """Return the objective that is minimised, at the present point or at another."""
    alpha, E = work.alpha if alpha is None else alpha, work.E if E is None else E
    price = 0.0 if work.price is None else dot(work.price, np.abs(alpha))
    return 0.5 * dot(work.signs * alpha, E + work.linear) + price


def _settle(work: Work, F: Array, tol: float) -> bool:
    """Bring E of the free variables to one level, from bound to bound; return whether they moved.

    Where more are free than the rank can serve, those go first that change E of none: the objective falls
    with them as far as the box reaches. Of the changes that bring the others to one level the shortest is
    taken: samples may depend on each other, or be the same.
    """
    free = np.flatnonzero(work.free(work.alpha, work.upper))
    s = work.signs[free] if work.price is None else np.sign(work.alpha[free])
    E = work.E[free] if work.price is None else work.E[free] + s * work.price[free]
    second = free >= (work.middle if work.separate else work.alpha.size)
    rows, upper = F[free % len(F)], work.upper[free]
    size, inside = np.abs(work.alpha[free]), np.arange(free.size)
    for _ in range(1 + int(_OPERATIONS / max(1.0, free.size * F.shape[1] ** 2.0))):
        if inside.size < 2:
            break
        # With means subtracted, what is found keeps the sums.
        table = np.column_stack([rows[inside], E[inside]])
        for group in (second[inside], ~second[inside]):
            if group.any():
                table[group] -= table[group].mean(axis=0)
        weights = _shortest(table[:, :-1], -table[:, -1])
        left = table[:, -1] + table[:, :-1] @ weights
        beyond = float(np.ptp(left)) > tol
        d = s[inside] * (-left if beyond else _shortest(table[:, :-1].T, weights))
        room = np.where(d > 0, upper[inside] - size[inside], size[inside])
        ways = room / np.maximum(np.abs(d), 1e-300)
        way = float(ways.min()) if beyond else min(1.0, float(ways.min()))
        size[inside] += way * d
        E += rows @ (rows[inside].T @ (s[inside] * way * d))
        met = ways <= way
        size[inside[met]] = np.where(d > 0, upper[inside], 0.0)[met]
        if not met.any():
            break
        inside = inside[~met]
    after = size if work.price is None else s * size
    moved = not np.array_equal(after, work.alpha[free])
    work.alpha[free] = after
    return moved


def _shortest(A: Array, b: Array) -> Array:
    """Return the shortest x of the least ``‖A x − b‖``."""
    return np.asarray(lstsq(A, b, cond=1e-11, lapack_driver="gelsy", check_finite=False)[0])


def _solution(work: Work, F: Array) -> Array:
    """Return the solution with this factor, variables near a bound put on it."""
    a, s, u, linear = work.alpha, work.signs, work.upper, work.linear
    if work.price is not None:  # the two variables of a point again
        a, s = np.concatenate([np.maximum(a, 0.0), np.maximum(-a, 0.0)]), np.repeat([1.0, -1.0], a.size)
        u, linear = np.tile(u, 2), np.concatenate([linear + work.price, linear - work.price])
    sums = np.zeros((len(work.groups()), a.size))
    for row, group in zip(sums, work.groups(), strict=True):
        row[group if work.separate else slice(None)] = 1.0
    sums, unit, used = sums * s, float(u.max()), u > 0
    G = (np.sqrt(unit) * s)[:, None] * np.tile(F, (a.size // len(F), 1))
    found = np.zeros(a.size)
    found[used] = unit * box_programme(
        G[used], (s * linear)[used], u[used] / unit, sums[:, used], sums @ a / unit
    )
    for row in sums:
        # What the bounds have changed of a sum, those make up for that have room.
        missing = dot(row, a) - dot(row, found)
        room = np.abs(row) * np.where(row * missing > 0, u - found, found)
        free = np.where((found > 0) & (found < u), room, 0.0)
        room = free if free.sum() >= abs(missing) else room
        found += row * room * (missing / max(float(room.sum()), 1e-300))
    found = np.clip(found, 0.0, u)
    return found[: a.size // 2] - found[a.size // 2 :] if work.price is not None else found


def box_programme(G: Array, p: Array, u: Array, A: Array, b: Array) -> Array:
    """Return the minimum of ``½‖G'a‖² + p'a`` over ``0 ≤ a ≤ u`` and ``A a = b``.

    Variables near a bound, rather than free, are put on it.
    """
    a, t, y = 0.5 * u, 0.5 * u, np.zeros(len(b))
    q = G @ (G.T @ a) + p
    far = float(np.abs(q).mean()) or 1.0
    z, v = np.maximum(q, 0.0) + far, np.maximum(-q, 0.0) + far
    best, kept = np.inf, (a, t, z, v)
    for _ in range(_ITERATIONS):
        gap, short, rest = dot(a, z) + dot(t, v), b - A @ a, A.T @ y + z - v - q
        # In the end the systems are so ill-conditioned that steps lead away again.
        error = gap + dot(np.abs(rest), u) + far * float(np.abs(short).sum())
        if error < best:
            best, kept = error, (a, t, z, v)
        system = _System(G, z / a + v / t, A)
        if gap <= _GAP * abs(0.5 * dot(a, q + p)) or not error < _WORSE * best or not system.sound:
            break
        d, dy = system.solve(rest - z + v, short)
        dz, dv = -z - z * d / a, -v + v * d / t
        way = _way((a, d), (t, -d), (z, dz), (v, dv))
        ahead = dot(a + way * d, z + way * dz) + dot(t - way * d, v + way * dv)
        centre = (ahead / gap) ** 3 * gap / (2 * a.size)
        more, less = (centre - d * dz) / a, (centre + d * dv) / t
        d, dy = system.solve(rest - z + v + more - less, short)
        dz, dv = -z + more - z * d / a, -v + less + v * d / t
        way = min(1.0, _WAY * _way((a, d), (t, -d), (z, dz), (v, dv)))
        a, t, y, z, v = a + way * d, t - way * d, y + way * dy, z + way * dz, v + way * dv
        q = G @ (G.T @ a) + p
    a, t, z, v = kept
    return np.where(a < u * _sure(z), 0.0, np.where(t < u * _sure(v), u, np.minimum(a, u)))


def _sure(multiplier: Array) -> Array:
    """Return how near a bound, in units of the box, a variable with a multiplier is on it."""
    return _NEAR * multiplier / (1.0 + multiplier)


def _way(*pairs: tuple[Array, Array]) -> float:
    """Return how far all may go along their steps and stay positive."""
    way = np.inf
    for value, step in pairs:
        falling = step < 0
        if falling.any():
            way = min(way, float((-value[falling] / step[falling]).min()))
    return way


class _System:
    """``(Θ + G G') d − A'y = r``, ``A d = e``."""

    def __init__(self, G: Array, theta: Array, A: Array) -> None:
        self.G, self.theta, self.A, self.sound = G, theta, A, False
        scaled = G / np.sqrt(theta)[:, None]
        M = scaled.T @ scaled
        M[np.diag_indices_from(M)] += 1.0
        try:
            self.factor = cho_factor(M, lower=True, check_finite=False)
        except (LinAlgError, ValueError):
            return
        self.inner = self._inverse(A.T)
        self.outer = A @ self.inner
        self.sound = bool(np.isfinite(self.inner).all())

    def _inverse(self, r: Array) -> Array:
        """Return ``(Θ + G G')⁻¹ r``, once refined."""
        theta = self.theta if r.ndim == 1 else self.theta[:, None]
        found = np.zeros_like(r)
        for _ in range(2):
            left = r - theta * found - self.G @ (self.G.T @ found)
            inner = cho_solve(self.factor, self.G.T @ (left / theta), check_finite=False)
            found = found + (left - self.G @ inner) / theta
        return np.asarray(found)

    def solve(self, r: Array, e: Array) -> tuple[Array, Array]:
        """Return d and y."""
        d = self._inverse(r)
        y = np.linalg.solve(self.outer, e - self.A @ d)
        return d + self.inner @ y, y
