r"""Conjugate gradients, one product with the matrix at a time (Hestenes and Stiefel, 1952).

For ``H v = r`` with a positive definite ``H``, and ``M ≈ H`` that is easy to invert, from ``v = 0``:

    γ = rᵀz / pᵀHp,    v ← v + γ p,    r ← r − γ H p,    z = M⁻¹r,    p ← z + β p,    β = rᵀz / (rᵀz)_before
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.data.view import Array


class Directions:
    """The steps of one system, or of several with the same matrix, each with its own lengths.

    Parameters
    ----------
    residual : ndarray of shape (m,) or (m, q)
        The right sides, a column for each system; changed in place.
    precondition : callable
        Makes of residuals, and room for as many numbers, about the solution.

    Attributes
    ----------
    P : ndarray of shape (m,) or (m, q)
        The directions whose products with the matrix are wanted.
    rz : ndarray of shape () or (q,)
        ``rᵀz``: what is left, in the measure of the preconditioner.
    step : ndarray of shape (m,) or (m, q)
        The solution so far.

    Examples
    --------
    >>> H, r = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([4.0, 7.0])
    >>> group = Directions(r, lambda r, room: np.divide(r, [2.0, 3.0], out=room))
    >>> for _ in range(2):
    ...     length, turn = group.advance(H @ group.P), group.turn()
    >>> group.step.round(9).tolist()
    [1.0, 2.0]
    """

    def __init__(self, residual: Array, precondition: Callable[[Array, Array], Array]) -> None:
        self.R = residual
        self.step = np.zeros_like(residual)
        self.precondition = precondition
        #: Room for products: fresh memory would cost more than they do.
        self.room = np.empty_like(residual)
        self.P = precondition(residual, np.empty_like(residual))
        self.rz = dots(residual, self.P)

    def advance(self, HP: Array) -> Array:
        """Take a step along ``P``, whose product with the matrix is given (and changed); return how far."""
        length = _ratio(self.rz, dots(self.P, HP))
        self.step += np.multiply(self.P, length, out=self.room)
        HP *= length
        self.R -= HP
        return length

    def turn(self) -> Array:
        """Choose the next direction; return how much of the last one is in it."""
        Z = self.precondition(self.R, self.room)
        rz = dots(self.R, Z)
        turn = _ratio(rz, self.rz)
        self.P *= turn
        self.P += Z
        self.rz = rz
        return turn


def dots(A: Array, B: Array) -> Array:
    """Return the products of the columns of one matrix with those of another."""
    return np.asarray(np.einsum("i...,i...->...", A, B))


def _ratio(above: Array, below: Array) -> Array:
    """Return the quotients, 0 where the divisor is not positive."""
    if below.min() > 0:
        return np.asarray(above / below)
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
