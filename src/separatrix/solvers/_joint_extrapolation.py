r"""Extrapolation of the joint machine's coordinate descent: :mod:`._extrapolation` in products of simplices.

The dual of all classes is one quadratic function of ``μ``,

    D(μ) = Σ_i C_i (1 − μ_{i c_i}) − ½‖W‖²,      W = Σ_i α_i x̃_iᵀ,   α_i = C_i (t_i − μ_i),

and the last three points span its plane. What the plane's best point has below 0 is cut off, the rest of each
sample's ``μ_i`` made to sum to 1 again; that point is taken where it is better.
"""

from __future__ import annotations

import numpy as np

from separatrix import _hot
from separatrix.data.memory import CsrView, DenseView
from separatrix.data.view import Array
from separatrix.solvers._coordinate_rows import row_arguments
from separatrix.solvers._extrapolation import best_of_plane


class JointExtrapolation:
    """The plane's best point.

    Parameters
    ----------
    view : DenseView or CsrView
        The samples.
    classes, cost : ndarray of shape (n,)
        Their classes and ``C_i``.
    constant : float
        The constant feature, whose weights are the last row; 0 for none.
    """

    def __init__(self, view: DenseView | CsrView, classes: Array, cost: Array, constant: float) -> None:
        self.view, self.classes, self.cost, self.constant = view, classes, cost, constant
        #: How far towards the plane's best point to go: not so far where the border was in the way.
        self.reach = 1.0
        #: The last point, the way there from the one before, and room for the next: of ``μ`` and of weights.
        self._point: tuple[Array, Array] | None = None
        self._way: tuple[Array, Array] | None = None
        self._room: Array = np.empty(0)

    def step(self, mu: Array, weights: Array) -> float:
        """Move ``μ`` and weights to the best point of the plane; return how much the dual gains."""
        if self._point is None:
            self._point = mu.copy(), weights.copy()
            self._room = np.empty_like(weights)
            return 0.0
        point, ways = self._point, (mu - self._point[0], np.subtract(weights, self._point[1], out=self._room))
        if self._way is None:
            gain, self._room = 0.0, np.empty_like(weights)
        else:
            gain, self._room = self._step(mu, weights, ways, self._way), self._way[1]
        self._way = ways
        point[0][...], point[1][...] = mu, weights
        return gain

    def _step(
        self, mu: Array, weights: Array, last: tuple[Array, Array], before: tuple[Array, Array]
    ) -> float:
        """Take the step; the last way then leads to where it ends, and that before is lost."""
        (a, along_a), (b, along_b) = last, before
        rows = np.flatnonzero(np.any((a != 0) | (b != 0), axis=1))
        if not rows.size:
            return 0.0
        every, own, cost = np.arange(rows.size), self.classes[rows], self.cost[rows]
        now, ways = mu[rows].astype(np.float64), [way[rows].astype(np.float64) for way in (a, b)]
        slope = [-float(cost @ way[every, own]) for way in ways]
        slope = [
            value - float(np.vdot(weights, way)) for value, way in zip(slope, (along_a, along_b), strict=True)
        ]
        curvature = [np.vdot(along_a, along_a), np.vdot(along_a, along_b), np.vdot(along_b, along_b)]
        tau = self.reach * best_of_plane(np.array(curvature)[:, None], np.array(slope)[:, None])[:, 0]
        point = np.maximum(now + tau[0] * ways[0] + tau[1] * ways[1], 0.0)
        point /= point.sum(axis=1, keepdims=True)
        point = point.astype(mu.dtype)
        moves = point - now
        change = self._change(rows, -cost[:, None] * moves, along_b)
        gain = -float(cost @ moves[every, own]) - float(
            np.vdot(weights, change) + 0.5 * np.vdot(change, change)
        )
        better = gain > 0
        self.reach = min(2.0 * self.reach, 1.0) if better else 0.25 * self.reach
        if not better:
            return 0.0
        mu[rows] = point
        a[rows] += moves.astype(a.dtype, copy=False)
        weights += change
        along_a += change
        return gain

    def _change(self, rows: Array, alpha: Array, room: Array) -> Array:
        """Return what the weights gain where these samples' α does, in the given array."""
        room[...] = 0.0
        R = np.zeros((self.view.shape[0], alpha.shape[1]), dtype=room.dtype)
        R[rows] = alpha  # rows of zeros are not read
        for part in self.view.parts():
            block = row_arguments(self.view.read(part))
            _hot.add_padded_transposed(*block, R[part], 0, R.shape[1], room[:-1])
        if self.constant:
            room[-1] = self.constant * alpha.sum(axis=0)
        return room
