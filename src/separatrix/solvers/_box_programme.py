r"""Quadratic programmes in a box whose matrix is a product of thin ones, by an interior point method.

    min ½‖G'a‖² + p'a   subject to   0 ≤ a ≤ u,  A a = b,        G of shape (m, r)

Each of some 30 steps solves a system in ``Θ + G G'``, ``Θ`` diagonal, by way of a matrix of shape (r, r)
(Ferris and Munson, SIAM J. Optim. 13, 2002; predictor and corrector by Mehrotra, 1992). Near the solution
``θ`` of the variables between their bounds vanishes. They are about as many as the rank, and have a factor
of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from separatrix.data.view import Array
from separatrix.solvers._dual import dot

#: Most iterations, relative gap at which they end, and the way to the boundary that each goes at most.
_ITERATIONS, _GAP, _WAY = 80, 1e-12, 0.995
#: Error, in units of the least so far, at which they end, too, and up to which a point is as good.
_WORSE, _AS_GOOD = 1e3, 4.0
#: Distance to a bound, in units of the box, over its multiplier, below which a variable is put on it.
_NEAR = 1e-3
#: Ratio of ``g_i'g_i / θ_i`` at which one drowns the other in a sum; and variables beyond twice the rank that
#: may have a factor of their own.
_DROWNS, _SPARE = 1e6, 16
#: Multiplications after which a product looks whether time is up.
_PRODUCT = 1e9


class Rows:
    """The rows of G: those of a factor F, each with a sign, once or (regression) once more."""

    def __init__(self, F: Array, signs: Array) -> None:
        self.F, self.signs, self.copies = F, signs, signs.size // len(F)
        self.squares = np.tile(np.einsum("ij,ij->i", F, F), self.copies)

    def some(self, rows: Array) -> Array:
        """Return some rows of G."""
        return np.asarray(self.signs[rows, None] * self.F[rows % len(self.F)])

    def times(self, x: Array) -> Array:
        """Return ``G x``."""
        return np.asarray((self.signs * np.concatenate([self.F @ x] * self.copies).T).T)

    def transposed(self, d: Array) -> Array:
        """Return ``G'd``."""
        signed = (self.signs * d.T).T
        return np.asarray(self.F.T @ signed.reshape(self.copies, len(self.F), *d.shape[1:]).sum(axis=0))

    def gram(self, weights: Array, expired: Callable[[], bool]) -> Array:
        """Return ``I + G' diag(weights) G``, or what there is of it when time is up."""
        roots, r = np.sqrt(weights.reshape(self.copies, -1).sum(axis=0)), self.F.shape[1]
        M, step = np.eye(r), max(1, int(_PRODUCT / max(1, r * r)))
        for begin in range(0, len(self.F), step):
            part = roots[begin : begin + step, None] * self.F[begin : begin + step]
            M += part.T @ part
            if expired():
                break
        return M


@dataclass
class Points:
    """Points of the method: where it ends, and the best of either side, which need not be of one point.

    Attributes
    ----------
    kept : tuple of ndarray
        ``a``, ``u − a`` and their multipliers.
    x, a : ndarray
        The least ``½‖x‖² + Σ u max(0, A'y − G x − p)``, which is no less than the minimum's negative, and the
        largest ``−½‖x‖² − p'a``, which is no more.
    """

    kept: tuple[Array, Array, Array, Array]
    x: Array
    a: Array
    above: float = np.inf
    below: float = -np.inf

    def judge(self, x: Array, a: Array, losses: float, linear: float) -> None:
        """Keep what is better than before."""
        above, below = 0.5 * dot(x, x) + losses, -0.5 * dot(x, x) - linear
        if above < self.above:
            self.above, self.x = above, x
        if below > self.below:
            self.below, self.a = below, a


def box_programme(
    G: Rows,
    p: Array,
    u: Array,
    A: Array,
    b: Array,
    gap: float = np.inf,
    expired: Callable[[], bool] = lambda: False,
) -> Array | None:
    """Return the minimum of ``½‖G'a‖² + p'a`` over ``0 ≤ a ≤ u`` and ``A a = b``; None if time is up.

    Variables near a bound, rather than free, are put on it, once the duality gap is small beside the minimum,
    and no larger than asked.
    """
    found = inner_point(G, p, u, A, b, gap, expired)
    if found is None:
        return None
    a, t, z, v = found.kept
    return np.where(a < u * _sure(z), 0.0, np.where(t < u * _sure(v), u, np.minimum(a, u)))


def inner_point(
    G: Rows,
    p: Array,
    u: Array,
    A: Array,
    b: Array,
    gap: float = np.inf,
    expired: Callable[[], bool] = lambda: False,
) -> Points | None:
    """Return points within the box that the method went through; None if time is up.

    ``x = G'a`` goes along with its steps: where the terms of that sum cancel, its own rounding errors would
    be new ones at each step, and multiplied by ``G``.
    """
    a, t, y = 0.5 * u, 0.5 * u, np.zeros(len(b))
    x = G.transposed(a)
    q = G.times(x) + p
    far = float(np.abs(q).mean()) or 1.0
    z, v = np.maximum(q, 0.0) + far, np.maximum(-q, 0.0) + far
    points, best, asked = Points((a, t, z, v), x, a), np.inf, gap
    for _ in range(_ITERATIONS):
        gap, short, rest = dot(a, z) + dot(t, v), b - A @ a, A.T @ y + z - v - q
        # In the end the systems are so ill-conditioned that steps lead away again.
        error = gap + dot(np.abs(rest), u) + far * float(np.abs(short).sum())
        if error < _AS_GOOD * best:  # of those with the same rounding errors the last
            best, points.kept = min(best, error), (a, t, z, v)
        points.judge(x, a, dot(u, np.maximum(A.T @ y - q, 0.0)), dot(p, a))
        system = _System(G, z / a + v / t, A, expired)
        if expired():
            return None
        enough = gap <= min(asked, _GAP * abs(0.5 * dot(a, q + p)))
        if enough or not error < _WORSE * best or not system.sound:
            break
        d, dy = system.solve(rest - z + v, short)
        dz, dv = -z - z * d / a, -v + v * d / t
        way = way_to_zero((a, d), (t, -d), (z, dz), (v, dv))
        ahead = dot(a + way * d, z + way * dz) + dot(t - way * d, v + way * dv)
        centre = (ahead / gap) ** 3 * gap / (2 * a.size)
        more, less = (centre - d * dz) / a, (centre + d * dv) / t
        d, dy = system.solve(rest - z + v + more - less, short)
        dz, dv = -z + more - z * d / a, -v + less + v * d / t
        way = min(1.0, _WAY * way_to_zero((a, d), (t, -d), (z, dz), (v, dv)))
        a, t, y, z, v = a + way * d, t - way * d, y + way * dy, z + way * dz, v + way * dv
        x = x + way * G.transposed(d)
        q = G.times(x) + p
    return points


def _sure(multiplier: Array) -> Array:
    """Return how near a bound, in units of the box, a variable with a multiplier is on it."""
    return _NEAR * multiplier / (1.0 + multiplier)


def way_to_zero(*pairs: tuple[Array, Array]) -> float:
    """Return how far all may go along their steps and stay positive."""
    way = np.inf
    for value, step in pairs:
        falling = step < 0
        if falling.any():
            way = min(way, float((-value[falling] / step[falling]).min()))
    return way


class _System:
    """``(Θ + G G') d − A'y = r``, ``A d = e``.

    Let F be variables of very small ``θ``, which are far from their bounds, B the others, ``x = G'd``,
    ``M = I + G_B'Θ_B⁻¹G_B`` and ``c = G_B'Θ_B⁻¹r_B``. Then

        (Θ_F + G_F M⁻¹ G_F') d_F = r_F − G_F M⁻¹ c,     M x = c + G_F'd_F,     d_B = Θ_B⁻¹ (r_B − G_B x).

    With F in M as well the first equation would be spared, but ``1 / θ`` would drown what the others tell.
    """

    def __init__(self, G: Rows, theta: Array, A: Array, expired: Callable[[], bool]) -> None:
        self.G, self.theta, self.A, self.sound = G, theta, A, False
        weights = G.squares / theta
        # No more than twice the rank: some of them may depend on each other.
        largest = np.argsort(-weights, kind="stable")[: _SPARE + 2 * G.F.shape[1]]
        self.few = np.sort(largest[weights[largest] > _DROWNS * weights[largest[-1]]])
        self.inverse = 1.0 / theta
        self.inverse[self.few] = 0.0
        M, self.rows = G.gram(self.inverse, expired), G.some(self.few)
        if expired():
            return
        try:
            self.factor = cho_factor(M, lower=True, check_finite=False)
            half = solve_triangular(self.factor[0], self.rows.T, lower=True, check_finite=False)
            S = half.T @ half
            S[np.diag_indices_from(S)] += theta[self.few]
            self.second = cho_factor(S, lower=True, check_finite=False) if self.few.size else None
            self.inner = self._inverse(A.T)
            self.outer = np.linalg.inv(A @ self.inner)  # of one or two sums
        except (LinAlgError, ValueError):
            return
        self.sound = bool(np.isfinite(self.inner).all())

    def _inverse(self, r: Array) -> Array:
        """Return ``(Θ + G G')⁻¹ r``, once refined."""
        theta, inverse = (t if r.ndim == 1 else t[:, None] for t in (self.theta, self.inverse))
        found = np.zeros_like(r)
        for _ in range(2):
            left = r - theta * found - self.G.times(self.G.transposed(found))
            sums = self.G.transposed(inverse * left)
            if self.second is not None:
                drawn = self.rows @ cho_solve(self.factor, sums, check_finite=False)
                few = cho_solve(self.second, left[self.few] - drawn, check_finite=False)
                sums += self.rows.T @ few
            x = cho_solve(self.factor, sums, check_finite=False)
            step = inverse * (left - self.G.times(x))
            if self.second is not None:
                step[self.few] = few
            found = found + step
        return np.asarray(found)

    def solve(self, r: Array, e: Array) -> tuple[Array, Array]:
        """Return d and y."""
        d = self._inverse(r)
        y = self.outer @ (e - self.A @ d)
        return d + self.inner @ y, y
