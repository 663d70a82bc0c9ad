"""Linear programmes that decide whether the margins of a problem can grow for ever.

With one row ``a`` per pair of a sample and a rival (``_pairs``) the question is whether some ``z`` has

    A z ≥ 0,   A z ≠ 0.

``max Σ_i a_i·z`` subject to ``A z ≥ 0`` and ``−1 ≤ z ≤ 1`` is 0 exactly if there is none (Konis 2007); its
dual then gives weights ``λ_i ≥ 1`` with ``Σ λ_i a_i = 0``, which anyone can check. Whether all margins can
grow at once tells ``max t`` subject to ``A z ≥ t``. Both programmes see a few rows at first, and then those
that their solution violates: with fewer rows the optimum is an upper bound, so 0 still proves that there is
no direction, and a solution that violates no row is one for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from separatrix.data.view import Array
from separatrix.solvers._pairs import Direction, Pairs, Scale, Unit
from separatrix.solvers._recession import LARGEST_POLISH, corrected, dense, joined, spread, violated

#: Most entries of the rows that a linear programme may hold.
LARGEST_PROGRAMME = 4_000_000


@dataclass(frozen=True, eq=False)
class Found:
    """What a search has found.

    Attributes
    ----------
    exists : bool or None
        Whether there is a direction of recession; None: not decided.
    direction : tuple of ndarray or None
        The direction.
    weights : ndarray of shape (n, rivals) or None
        If there is none: ``λ ≥ 0``, positive on every pair, in terms of rows whose largest entry is 1.
    residual : float
        ``‖Σ λ_i a_i‖₁``: no direction with entries within −1 … 1 has margins whose sum exceeds it.
    """

    exists: bool | None
    direction: Direction | None = None
    weights: Array | None = None
    residual: float = np.inf


class Search:
    """The two linear programmes, with rows added until their solution violates none.

    Parameters
    ----------
    unit : Unit
        What is asked about.
    scale : Scale
        Its coordinates.
    deadline : float
        When to give up, in terms of ``time.perf_counter``.
    """

    def __init__(self, unit: Unit, scale: Scale, deadline: float) -> None:
        self.unit, self.scale, self.deadline = unit, scale, deadline
        self.entries = LARGEST_PROGRAMME // max(1, self._row_entries())
        self.working = self._first_rows()

    def _row_entries(self) -> int:
        view = self.unit.problem.view
        stored = getattr(view, "row_elements", view.shape[1])
        return int(stored + 1) * (1 if self.unit.blocks == 1 else 2)

    def _first_rows(self) -> Pairs:
        """Return all pairs where they are few, else some of each class."""
        unit = self.unit
        wanted = max(4 * unit.dimension, 400)
        if unit.pairs * self._row_entries() <= 100_000:
            wanted = unit.pairs
        n, K = unit.problem.view.shape[0], unit.problem.codes.shape[0]
        samples, rivals = [], []
        of_class = max(8, 2 * wanted // (unit.blocks * K))
        for c in range(K):
            members = np.flatnonzero(unit.problem.classes == c)
            members = spread(members, n if wanted == unit.pairs else of_class)
            i, k = np.nonzero(unit.counted(members))
            samples.append(members[i])
            rivals.append(k)
        return np.concatenate(samples), np.concatenate(rivals)

    def complete(self) -> Direction | None:
        """Return a direction along which all margins grow, or None if this search finds none."""
        D = self.unit.dimension
        cost = np.zeros(D + 1)
        cost[D] = -1.0
        for _ in range(60):
            A = self._matrix()
            if A is None:
                return None
            solution = self._solve(cost, _with_column(A, -1.0), free=True)
            if solution is None or -solution.fun <= 1e-9:
                return None
            direction = self.scale.outward(self.unit, solution.x[:D])
            if not self._add(direction):
                return direction
        return None

    def some(self) -> Found:
        """Return a direction along which no margin falls and all grow that can, or that there is none."""
        total = self.scale.total(self.unit)
        direction, solution = self._rise(total)
        if direction is None:
            return Found(None) if solution is None else self._witness(total, solution)
        # A vertex of the programme may leave margins at 0 that can grow: the sum with a direction for them.
        for _ in range(10):
            more, _ = self._rise(self.scale.total(self.unit, flat=direction))
            if more is None:
                break
            z, other = (self.scale.inward(self.unit, part) for part in (direction, more))
            both = self.scale.outward(self.unit, z / np.abs(z).max() + other / np.abs(other).max())
            if violated(self.unit, both, 1)[1]:
                break
            direction = both
        return Found(True, direction)

    def _rise(self, total: Array) -> tuple[Direction | None, Any]:
        """Return a direction with ``total·z > 0`` and no negative margin, and the last programme's solution.

        Without a direction, a solution means that the optimum is 0; no solution, that nothing is known.
        """
        for _ in range(60):
            A = self._matrix()
            solution = None if A is None else self._solve(-total, A, free=False)
            if solution is None:
                break
            if -solution.fun <= 1e-7:
                return None, solution
            direction = self.scale.outward(self.unit, solution.x)
            for candidate in (direction, *self._tightened(A, solution.x)):
                if violated(self.unit, candidate, 1)[1] == 0:
                    return candidate, solution
            if not self._add(direction):
                break
        return None, None

    def _matrix(self) -> Any:
        if len(self.working[0]) > self.entries:
            return None
        return self.scale.rows(self.unit, self.working)

    def _solve(self, cost: Array, A: Any, *, free: bool) -> Any:
        left = self.deadline - time.perf_counter()
        if left <= 0:
            return None
        bounds = [(-1.0, 1.0)] * self.unit.dimension + ([(None, 1.0)] if free else [])
        options = {
            "time_limit": min(left, 1e6),
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        }
        zero = np.zeros(A.shape[0])
        solution = linprog(cost, A_ub=-A, b_ub=zero, bounds=bounds, method="highs", options=options)
        return solution if solution.status == 0 else None

    def _add(self, direction: Direction) -> bool:
        """Add pairs that the direction violates; return whether there was any new one."""
        more, count = violated(self.unit, direction, max(200, self.unit.dimension))
        if count == 0:
            return False
        before = len(self.working[0])
        self.working = joined(self.working, more)
        return len(self.working[0]) > before

    def _tightened(self, A: Any, z: Array) -> Iterator[Direction]:
        """Yield corrections of a solution: its active rows exactly 0."""
        if self.unit.dimension > LARGEST_POLISH:
            return
        margins = A @ z
        active = dense(A[np.flatnonzero(margins <= 1e-7)])
        for snap in (1e-9, 0.0):
            start = np.where(np.abs(z) <= snap, 0.0, z)
            yield self.scale.outward(self.unit, corrected(active, start))

    def _witness(self, total: Array, solution: Any) -> Found:
        """Check the dual weights in double precision."""
        extra = np.maximum(-solution.ineqlin.marginals, 0.0)
        residual = float(np.abs(total + self._matrix().T @ extra).sum())
        # Σ λ m = residual·z: beyond this no direction of recession is told from rounding.
        if residual > 1e-7:
            return Found(None)
        weights = np.zeros((self.unit.problem.view.shape[0], self.unit.rivals))
        for rows, _ in self.unit.parts():
            weights[rows] = self.unit.counted(rows)
        np.add.at(weights, self.working, extra)
        return Found(False, None, weights, residual)


def _with_column(A: Any, value: float) -> Any:
    """Return the rows with one more column of this value."""
    column = np.full((A.shape[0], 1), value)
    if hasattr(A, "indptr"):
        return sparse.hstack([A, sparse.csr_array(column)], format="csr")
    return np.hstack([A, column])
