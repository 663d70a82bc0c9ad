r"""A dual problem whose kernel matrix a factor holds, by an interior point method.

    min ½ a'Qa + p'a   subject to   0 ≤ a ≤ u,  A a = b,        Q ≈ G G',  G of shape (m, r)

Where C is large and the kernel matrix has a low rank (few features and a linear kernel, or a polynomial of
them), most variables are at a bound, and steps of pairs find out which, one after the other, in millions of
steps. So they do where a smooth kernel is to follow noise, whatever the rank. The method sees all at once:
``G`` is a pivoted Cholesky factor (Fine and Scheinberg, JMLR 2, 2001); the programme is solved in
:mod:`separatrix.solvers._box_programme`. What this leaves, steps of pairs and of the free variables cure,
with the kernel itself.
"""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.linalg import lstsq

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._box_programme import Rows, box_programme
from separatrix.solvers._dual import NEGATIVE, Work, dot
from separatrix.solvers._dual_state import State

#: What a factor may leave of the diagonal of K, relative to its largest entry; and the part of the tolerance
#: that E may be wrong by for it, whatever the variables.
_LEFT, _PART = 1e-13, 0.1
#: And that E may be wrong by since variables are put on their bounds.
_LOST = 0.01
#: Columns that a factor gains at a time, at most, and their least pivot in units of the largest.
_COLUMNS, _PIVOT = 16, 0.01
#: The method takes as long as steps of pairs: so many for each squared column of the factor.
_STEPS_PER_SQUARE = 0.5
#: Steps of pairs times variables that take as long as the method on the smallest problem.
_LEAST_WORK = 5e6
#: Most steps of the free variables after it, where it has not led to the tolerance, and operations of each,
#: in units of variables times squared columns that are solved for at every bound.
_REFINEMENTS, _OPERATIONS = 4, 1e10


class LowRank:
    """A factor of the kernel matrix of some samples, ``K ≈ F F'``, that grows as far as it may.

    Parameters
    ----------
    work : Work
        The problem whose points are meant.
    tol : float
        Violation at which it is solved.
    """

    def __init__(self, work: Work, tol: float) -> None:
        self.work, self.rest = work, np.array(work.diag, dtype=np.float64)
        length = float(np.sqrt(dot(work.upper, work.upper))) or 1.0
        self._floor = max(_LEFT * float(self.rest.max(initial=0.0)), _PART * tol / length)
        self.columns, self.used = np.empty((self.rest.size, 0)), False

    @property
    def complete(self) -> bool:
        """Whether the factor leaves no more than it may."""
        return bool(self.rest.max(initial=0.0) <= self._floor)

    def use(self) -> None:
        """Forget all but that the factor has been used."""
        self.columns, self.used = self.columns[:, :0], True

    def grow(self, most: int) -> bool:
        """Add columns, up to so many; return whether they suffice."""
        points, matrix = self.work.points, self.work.matrix
        while not self.complete and self.columns.shape[1] < most and not self.work.expired():
            pivots = np.argsort(-self.rest, kind="stable")[:_COLUMNS]
            rest = np.asarray(matrix.block(points, points[pivots], "float64"), dtype=np.float64)
            rest -= self.columns @ self.columns[pivots].T
            new: list[Array] = []
            # A pivot that is small beside what others leave would spread its rounding error among them.
            least = max(self._floor, _PIVOT * float(self.rest[pivots[0]]))
            for _ in pivots:
                own = rest[pivots, np.arange(pivots.size)]
                j = int(np.argmax(own))
                if not own[j] > least:
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

    It is tried once, and given up with the point as it was when time is up.
    """
    if not np.isfinite(work.upper).all() or work.worst_curvature < -NEGATIVE:
        return False
    if work.factor is None:
        work.factor = LowRank(work, state.loop.tol)
    n = work.points.size
    most = min(most, n, work.matrix.cache_bytes / 32 / n)
    with single_threaded(np.inf):
        if work.factor.used or not work.factor.grow(int(most)):
            return False
        after = _solution(work, work.factor.columns, state.loop.tol)
        if after is None:
            return False
        state.exact_at, tol = state.loop.steps, state.loop.tol
        if not work.recompute("float64"):
            return False
        before, least = (work.alpha.copy(), work.E.copy(), work.exact), value(work)
        work.alpha[:] = after
        known = work.recompute("float64")
        for _ in range(_REFINEMENTS):
            if not known or work.scores()[1] <= tol or work.expired():
                break
            if not _settle(work, work.factor.columns, tol):
                break
            known = work.recompute("float64")
    work.factor.use()
    if known and value(work) < least:
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
        if inside.size < 2 or work.expired():
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


def _solution(work: Work, F: Array, tol: float) -> Array | None:
    """Return the solution with this factor, variables near a bound put on it; None if time is up."""
    a, s, u, linear = work.alpha, work.signs, work.upper, work.linear
    if work.price is not None:  # the two variables of a point again
        a, s = np.concatenate([np.maximum(a, 0.0), np.maximum(-a, 0.0)]), np.repeat([1.0, -1.0], a.size)
        u, linear = np.tile(u, 2), np.concatenate([linear + work.price, linear - work.price])
    sums = np.zeros((len(work.groups()), a.size))
    for row, group in zip(sums, work.groups(), strict=True):
        row[group if work.separate else slice(None)] = 1.0
    sums, unit, copies = sums * s, float(u.max()), a.size // len(F)
    points = u[: len(F)] > 0
    found, used = np.zeros(a.size), np.tile(points, copies)
    inner = box_programme(
        Rows(np.sqrt(unit) * F[points], s[used]),
        (s * linear)[used],
        u[used] / unit,
        sums[:, used],
        sums @ a / unit,
        # What variables lose that are put on their bounds, E of all is wrong by.
        _LOST * tol / (unit * float(np.abs(work.diag).max())),
        work.expired,
    )
    if inner is None:
        return None
    found[used] = unit * inner
    for row in sums:
        # What the bounds have changed of a sum, those make up for that have room.
        missing = dot(row, a) - dot(row, found)
        room = np.abs(row) * np.where(row * missing > 0, u - found, found)
        free = np.where((found > 0) & (found < u), room, 0.0)
        room = free if free.sum() >= abs(missing) else room
        found += row * room * (missing / max(float(room.sum()), 1e-300))
    found = np.clip(found, 0.0, u)
    return found[: a.size // 2] - found[a.size // 2 :] if work.price is not None else found
