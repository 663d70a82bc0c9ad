r"""Extrapolation of dual coordinate descent: the best point of the plane through its last three points.

Epochs of coordinate descent that creep move the dual variables ``v`` along nearly the same few directions.
Within the box the dual is quadratic,

    D(v) = Σ v t − ε|v| − ½ Σ δ v² − ½‖Σ v x‖² − (c/2)(Σ v)² − λ Σ v,

and ``w = Σ v x`` is at hand for every point that an epoch has ended at. So the best point
``v + τ₁ (v − v') + τ₂ (v' − v'')`` costs inner products, no look at the data; clipped to the box, whose
weights cost the rows that have moved, it is taken where it is better. With one direction of the past besides
the present one this is what conjugate gradients do with epochs as their preconditioner, and it does not ask
that epochs visit samples in the same order, as an extrapolation by differences alone does (Bertrand and
Massias, *Anderson acceleration of coordinate descent*, 2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.memory import CsrView, DenseView
from separatrix.data.view import Array
from separatrix.solvers._coordinate_rows import row_arguments

#: Directions whose squared sine is less than this are one.
_PARALLEL = 1e-8


class Extrapolation:
    """The plane's best point, for columns that are each a problem of its own.

    Parameters
    ----------
    view : DenseView or CsrView
        The samples.
    state : BoxDualFloat32 or BoxDualFloat64
        The compiled state of the loop.
    v, weights : ndarray of shape (n, columns) and (d, columns)
        Its dual variables and ``Σ v x``; changed in place.
    offsets : ndarray of shape (columns,)
        Its ``λ + c Σ v``; changed in place.
    constant : float
        ``c``.
    """

    def __init__(
        self,
        view: DenseView | CsrView,
        state: Any,
        v: Array,
        weights: Array,
        offsets: Array,
        constant: float,
    ) -> None:
        self.view, self.state, self.constant = view, state, constant
        self.v, self.weights, self.offsets = v, weights, offsets
        #: How far towards the plane's best point each column goes: not so far where the box was in the way.
        self.reach = np.ones(v.shape[1])
        #: The last two points: dual variables and weights of each, the newest first.
        self.past: list[tuple[Array, Array]] = []

    def step(self) -> float:
        """Move to the best point of the plane; return how much the dual gains."""
        if len(self.past) < 2:
            self.past.insert(0, (self.v.copy(), self.weights.copy()))
            return 0.0
        (old_v, old_w), (older_v, older_w) = self.past
        points, offsets = (old_v, older_v, old_w, older_w), self.offsets.astype(np.float64)
        sums, gains = np.zeros((7, self.v.shape[1])), np.zeros(self.v.shape[1])
        self.state.plane_sums(*points, sums)
        # The candidate takes the place of the oldest point. The change of its weights is not that of the
        # plane but a sum over rows: differences of points, multiplied again and again, would multiply
        # their rounding.
        moves, changes = np.empty_like(self.v), older_w
        tau = self.reach * best_of_plane(*self._with_constant(sums, offsets))
        self.state.plane_point(*points, tau, moves, gains)
        changes[:] = 0.0
        for part in self.view.parts():
            rows = row_arguments(self.view.read(part))
            _hot.add_padded_transposed(*rows, moves[part], 0, moves.shape[1], changes)
        self.state.plane_loss(changes, gains)
        total = moves.sum(axis=0, dtype=np.float64)
        gains -= total * (offsets + 0.5 * self.constant * total)
        better = gains > 0
        self.reach = np.where(better, np.minimum(2.0 * self.reach, 1.0), 0.25 * self.reach)
        np.copyto(self.v, older_v, where=better)
        self.weights += np.multiply(changes, better, out=changes)
        self.offsets += np.where(better, self.constant * total, 0.0).astype(self.offsets.dtype)
        older_v[:], older_w[:] = self.v, self.weights
        self.past.reverse()
        return float(gains[better].sum())

    def _with_constant(self, sums: Array, offsets: Array) -> tuple[Array, Array]:
        """Return curvatures (first, mixed, second) and slopes along both directions, with the constant."""
        a, b = sums[5], sums[6]
        return sums[:3] + self.constant * np.stack([a * a, a * b, b * b]), sums[3:5] - offsets * sums[5:7]


def best_of_plane(curvature: Array, slope: Array) -> Array:
    """Return where each column's concave quadratic function of two numbers is largest, (2, columns).

    Examples
    --------
    >>> best_of_plane(np.array([[2.0], [0.0], [4.0]]), np.array([[1.0], [1.0]])).ravel().tolist()
    [0.5, 0.25]
    """
    first, mixed, second = curvature
    tau = np.zeros_like(slope)
    np.divide(slope[0], first, out=tau[0], where=first > 0)
    determinant = first * second - mixed * mixed
    plane = determinant > _PARALLEL * first * second
    np.divide(slope[0] * second - slope[1] * mixed, determinant, out=tau[0], where=plane)
    np.divide(slope[1] * first - slope[0] * mixed, determinant, out=tau[1], where=plane)
    return tau
