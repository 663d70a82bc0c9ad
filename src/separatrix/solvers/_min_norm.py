r"""The shortest vector of a polytope, by an active set: exact, and finite.

For atoms ``v_1 … v_m``, each of one group,

    min over a:  ½‖Σ_i a_i v_i‖²   subject to  a ≥ 0,  Σ_{i in g} a_i = 1  for each group g.

One group is Wolfe's problem (*Finding the nearest point in a polytope*, 1976); two groups with the atoms
``+x`` of one class and ``−x`` of another give the nearest points of two convex hulls. With ``w = Σ a_i v_i``
the point is optimal exactly if ``v_i·w ≥ λ_g`` for all atoms of a group, ``λ_g`` being the value of those in
use, and ``Σ_g min_{i in g} v_i·w`` bounds ``w*·w`` from below in any case.

The atoms in use are kept such that no combination of them with sums 0 in each group vanishes. Then the
minimum over their affine hulls is one linear system, and an atom that violates optimality can always be added
(adding several at once, those that depend on others are left out). Weights that would turn negative end at 0
and leave. The objective falls with every set, so none returns.

Systems are solved with a triangular factor of the atoms in use and refined with products of the atoms
themselves: explicit vectors (`Vectors`) are thus accurate to the rounding error of the vectors, inner
products (`Products`) to its square root.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import lapack, solve_triangular

from separatrix.data.view import Array
from separatrix.solvers._loop import Control

_EPS = float(np.finfo(np.float64).eps)


class Atoms(Protocol):
    """What the active set needs of the atoms."""

    size: int

    def gradient(self, used: Array, a: Array, *, among_used: bool = False) -> Array:
        """Return ``v_i·w`` of all atoms, or of the used ones, for ``w = Σ a_j v_j`` over the used ones."""

    def square(self, used: Array, a: Array) -> float:
        """Return ``‖w‖²``."""

    def factor(self, used: Array, E: Array) -> tuple[Array, Array]:
        """Return ``R`` and which atoms it holds: ``RᵀR = V Vᵀ + σ E Eᵀ``, dependent ones left out."""


class Vectors:
    """Atoms as the rows of a matrix."""

    def __init__(self, V: Array) -> None:
        self.V = V
        self.size = V.shape[0]
        norms = np.einsum("ij,ij->i", V, V)
        self.sigma = float(norms.max(initial=0.0)) or 1.0

    def gradient(self, used: Array, a: Array, *, among_used: bool = False) -> Array:
        """Return ``v_i·w`` of all atoms, or of the used ones."""
        part = self.V[used]
        return np.asarray((part if among_used else self.V) @ (a @ part))

    def square(self, used: Array, a: Array) -> float:
        """Return ``‖w‖²``."""
        w = a @ self.V[used]
        return float(w @ w)

    def factor(self, used: Array, E: Array) -> tuple[Array, Array]:
        """Return the triangular factor of the used atoms, dependent ones left out."""
        A = np.vstack([self.V[used].T, np.sqrt(self.sigma) * E[used].T])
        kept = np.arange(len(used))
        while True:
            R: Array = np.asarray(np.linalg.qr(A[:, kept], mode="r"))
            pivots = np.abs(np.diagonal(R))
            good = np.zeros(len(kept), dtype=bool)
            good[: len(pivots)] = pivots > 1e-14 * np.sqrt(self.sigma)
            if good.all():
                return R, kept
            kept = kept[good]


class Products:
    """Atoms known by their inner products only."""

    def __init__(self, H: Array) -> None:
        self.H = H
        self.size = H.shape[0]
        self.sigma = float(np.abs(np.diagonal(H)).max(initial=0.0)) or 1.0

    def gradient(self, used: Array, a: Array, *, among_used: bool = False) -> Array:
        """Return ``v_i·w`` of all atoms, or of the used ones."""
        return np.asarray((self.H[np.ix_(used, used)] if among_used else self.H[:, used]) @ a)

    def square(self, used: Array, a: Array) -> float:
        """Return ``‖w‖²``, not negative whatever the rounding."""
        return max(0.0, float(a @ (self.H[np.ix_(used, used)] @ a)))

    def factor(self, used: Array, E: Array) -> tuple[Array, Array]:
        """Return the triangular factor of the used atoms, dependent ones left out."""
        M = self.H[np.ix_(used, used)] + self.sigma * (E[used] @ E[used].T)
        kept = np.arange(len(used))
        least = 1e-13 * self.sigma
        attempt = 0
        while True:
            attempt += 1
            R, info = lapack.dpotrf(M[np.ix_(kept, kept)], lower=0, clean=1)
            low = np.flatnonzero(np.square(np.diagonal(R)) <= least)
            sound = min(len(kept) if info == 0 else info - 1, int(low[0]) if low.size else len(kept))
            if sound == len(kept):
                return R, kept
            if attempt > 3:
                kept = np.delete(kept, sound)
                continue
            # Of the others those that pivoting finds independent of these and of each other.
            first, rest = kept[:sound], kept[sound:]
            B = solve_triangular(R[:sound, :sound], M[np.ix_(first, rest)], trans="T", check_finite=False)
            _, order, rank, _ = lapack.dpstrf(M[np.ix_(rest, rest)] - B.T @ B, tol=4 * least, lower=0)
            kept = np.concatenate([first, rest[np.sort(order[:rank] - 1)]])
            least *= 0.25  # what pivoting has accepted shall not fail for the order


class MinNorm:
    """The active set on atoms that are all at hand.

    Parameters
    ----------
    atoms : Atoms
        The vectors, or their inner products.
    groups : ndarray of int of shape (m,)
        Group of each atom; every group from 0 on has some.
    tol : float
        Relative gap at which to end.
    zero : float
        Length of ``w`` at which to end: it then counts as 0.
    """

    def __init__(self, atoms: Atoms, groups: Array, *, tol: float, zero: float) -> None:
        self.atoms, self.groups, self.tol, self.zero = atoms, groups, tol, zero
        self.E = np.eye(int(groups.max()) + 1)[groups]

    def solve(self, used: Array, a: Array, control: Control) -> tuple[Array, Array]:
        """Return the atoms in use and their weights at the minimum.

        Parameters
        ----------
        used : ndarray of int
            Atoms to start from, of each group one at least.
        a : ndarray
            Their weights, feasible.
        control : Control
            Asked after each set whether to stop; the weights are feasible even then.
        """
        used, a = self._affine_start(used, a, control)
        best = self.atoms.square(used, a)
        many = True
        while not control.expired():
            g = self.atoms.gradient(used, a)
            if best <= self.zero**2:
                break
            found = self._violators(g, used, a, best, many)
            if not len(found):
                break
            more, b = np.concatenate([used, found]), np.concatenate([a, np.zeros(len(found))])
            more, b = self._descend(more, b, control)
            square = self.atoms.square(more, b)
            if not square < best * (1.0 - 4 * _EPS):
                if not many:
                    break
                many = False  # Several at once need not help; the worst one does, but for rounding.
                continue
            used, a, best, many = more, b, square, True
        return used, a

    def _affine_start(self, used: Array, a: Array, control: Control) -> tuple[Array, Array]:
        """Return the minimum over the given atoms, or over one of each group if they depend on each other."""
        _, kept = self.atoms.factor(used, self.E)
        if len(kept) < len(used):
            of = self.groups[used]
            first = [int(np.argmax(np.where(of == g, a, -1.0))) for g in range(self.E.shape[1])]
            used, a = used[first], np.ones(len(first))
        return self._descend(used, a, control)

    def _violators(self, g: Array, used: Array, a: Array, square: float, many: bool) -> Array:
        level = np.bincount(self.groups[used], a * g[used], self.E.shape[1])
        excess = level[self.groups] - g
        if float(sum(excess[self.groups == k].max() for k in range(len(level)))) <= self.tol * square:
            return used[:0]
        excess[used] = 0.0
        found = []
        limit = max(1, len(used) // 3) if many else 1
        for k in range(len(level)):
            members = np.flatnonzero((excess > 0) & (self.groups == k))
            if len(members) > limit:
                part = np.argpartition(-excess[members], limit - 1)[:limit]
                members = members[part]
            found.append(members[np.argsort(-excess[members], kind="stable")])
        chosen = np.concatenate(found)
        return chosen if many or len(chosen) < 2 else chosen[[int(np.argmax(excess[chosen]))]]

    def _affine(self, used: Array) -> tuple[Array, Array]:
        """Return the used atoms that are independent, and their weights at the minimum over affine hulls."""
        R, kept = self.atoms.factor(used, self.E)
        used = used[kept]
        E = self.E[used]

        def solved(r: Array) -> Array:
            return np.asarray(lapack.dpotrs(R, r, lower=0)[0])

        U = solved(E)
        S = np.linalg.inv(E.T @ U)
        z = U @ S.sum(axis=1)
        if (z > 0).all():
            counts = E.sum(axis=0)
            for _ in range(2):
                g = self.atoms.gradient(used, z, among_used=True)
                d = solved(E @ ((E.T @ g) / counts) - g)
                z = z + d + U @ (S @ (1.0 - E.T @ (z + d)))
        return used, z

    def _descend(self, used: Array, a: Array, control: Control) -> tuple[Array, Array]:
        """Return the minimum over a subset of the used atoms, no worse than ``a``; or how far time led."""
        groups, before = self.E.shape[1], self.atoms.square(used, a)
        rest, z = self._affine(used)
        first = (rest, z)
        # All that would be negative leave at once: mostly that is right, and quick.
        for _ in range(20):
            if control.expired():
                return used, a
            if (z > 0).all():
                if self.atoms.square(rest, z) < before or len(used) == groups:
                    return rest, z
                break
            rest = rest[z > 0]
            if len(np.unique(self.groups[rest])) < groups:
                break
            rest, z = self._affine(rest)
        # One after the other, along the line to the minimum: that cannot fail.
        rest, z = first
        while True:
            weights = dict(zip(used.tolist(), a.tolist(), strict=True))
            a = np.array([weights[i] for i in rest.tolist()])
            a = a / np.maximum(self.E[rest].T @ a, 1e-300)[self.groups[rest]]
            if (z > 0).all():
                return rest, z
            if control.expired():
                return rest, a
            falling = np.flatnonzero(z <= 0)
            ratios = a[falling] / np.maximum(a[falling] - z[falling], 1e-300)
            t = float(ratios.min())
            a = a + t * (z - a)
            stays = np.ones(len(rest), dtype=bool)
            stays[falling[ratios <= t]] = False
            used, a = rest[stays], np.maximum(a[stays], 0.0)
            rest, z = self._affine(used)
