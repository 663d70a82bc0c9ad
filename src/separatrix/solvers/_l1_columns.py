"""Newton's method of columns with an L1 penalty: the steps of :mod:`._newton_columns`, made proximal.

A step goes to the optimum of the piece at hand with the penalty (`_hot/l1_model.hpp`), damped where the last
one was too long; where it is taken whole, weights become 0 exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix import _hot
from separatrix.data.view import Array, DataView
from separatrix.solvers._newton_columns import Columns

if TYPE_CHECKING:
    from separatrix.solvers.semismooth_newton import SemismoothNewton

#: First damping: little, since where fewer samples are free than weights next to nothing bends the model, and
#: much damping would take the rest of the step too.
_DAMPING = 1e-14


class L1Columns(Columns):
    """Some columns with an L1 penalty on some rows, in step."""

    def __init__(
        self,
        solver: SemismoothNewton,
        view: DataView,
        own: Array,
        rows: Array | None,
        before: Columns | None,
    ) -> None:
        super().__init__(solver, view, own, rows, before)
        K, d = self.W.shape
        self.sample, self.before = rows is not None, np.full(K, np.inf)
        self.curve = 0.0
        self.bound, self.damping = np.full(K, -np.inf), np.zeros(K)
        self.ends, self.factors = np.zeros((K, d + 1)), solver.dual.factors(d)
        self.scales = self._scales()

    def _scales(self) -> Array:
        """Return what damps the step of each weight: its curvature were all samples free."""

        def part(rows: slice, block: Any) -> Array:
            s = self.upper[rows]
            if self.view.sparse:
                return np.asarray(block.multiply(block).T @ s)
            return np.asarray(s @ np.square(block), dtype=np.float64)

        return 2.0 * np.asarray(self._read(part, self.view.shape[0] * self.view.shape[1]))

    def _penalty_curve(self, k: int) -> Any:
        return self.damping[k] * self.scales

    def _waiting(self) -> Array:
        waiting = super()._waiting()
        if self.sample:
            # The bound of an L1 penalty is poor until the last: a sample is done when little is gained.
            waiting &= self.primal < (1.0 - self.tol) * self.before
            self.before = self.primal
        return waiting

    def _compare(self, bound: Array) -> None:
        # A bound stays one whatever becomes of v, unless it does not yet sum to 0.
        self.bound = bound if self.dual.free else np.maximum(bound, self.bound)
        self.gap = np.maximum(self.primal - self.bound, 0.0)
        self.gradient, self.slope = -self.products, -self.sums if self.intercepts else np.zeros_like(self.b)
        if self.dual.free:
            self.gap = self.gap + np.abs(self.slope) * (1.0 + np.abs(self.b))
        self.rest = self.primal

    def _move(self, columns: Array, t: Array, P: Array, p: Array) -> None:
        # After a step that was too long the next one is damped.
        now = self.damping[columns]
        shorter, longer = np.maximum(100.0 * now, _DAMPING), np.where(now > _DAMPING, 0.1 * now, 0.0)
        self.damping[columns] = np.where(t < 0.2, shorter, np.where(t > 0.5, longer, now))
        whole = t == 1.0  # then weights become 0 exactly
        moved = self.ends[columns, :-1], self.ends[columns, -1]
        self.W[columns] = np.where(whole[:, None], moved[0], self.W[columns] + t[:, None] * P)
        self.b[columns] = np.where(whole, moved[1], self.b[columns] + t * p)

    def _steps(self, columns: Array) -> tuple[Array, Array]:
        P, p = np.zeros((columns.shape[0], self.W.shape[1])), np.zeros(columns.shape[0])
        self._share(columns)

        def proximal(i: int) -> None:
            P[i], p[i] = self._proximal(int(columns[i]))

        self._each(proximal, np.arange(columns.shape[0]))
        return P, p

    def _share(self, columns: Array) -> None:
        """Give the columns in which all samples are free, as without weights, the same products."""
        alike = [int(k) for k in columns if self.inside[k].all()]
        if alike:
            self.free_products.share(alike, self.inside[alike[0]], single=bool(self.coarse[alike[0]]))

    def _proximal(self, k: int) -> tuple[Array, float]:
        """Return the step to the optimum of the piece at hand with the L1 penalty."""
        H = np.asarray(self.gram(k), dtype=np.float64)
        H = np.triu(H) + np.triu(H, 1).T
        size = H.shape[0]
        start = np.append(self.W[k], self.b[k])
        g = np.append(self.gradient[k], self.slope[k])
        z, slopes = start[:size].copy(), g[:size].copy()
        _hot.l1_model(H, self.factors[:size], z, slopes, 1e-12 if self.idle[k] else 1e-6)
        # A model that next to nothing bends may end anywhere: then stay, and damp the next one.
        self.ends[k, :size] = z if np.isfinite(z).all() else start
        move = self.ends[k] - start
        return move[:-1], float(move[-1])

    def _search(self, k: int, p: Array, q: float, change: Array) -> float:
        w, move = np.append(self.W[k], self.b[k]), np.append(p, q)
        start = float(self.gradient[k] @ p + self.slope[k] * q)
        start += float(self.factors @ np.where(w != 0, np.sign(w) * move, np.abs(move)))
        if not start < 0:
            return 0.0
        codes = None if self.codes is None else self.codes[k]
        return _hot.l1_search(self.F[k], change, codes, self.upper, w, self.ends[k], self.factors, start)
