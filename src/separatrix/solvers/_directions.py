r"""Conjugate gradients, one product with the matrix at a time (Hestenes and Stiefel, 1952).

For ``H v = r`` with a positive definite ``H``, and ``M ≈ H`` that is easy to invert, from ``v = 0``:

    γ = rᵀz / pᵀHp,    v ← v + γ p,    r ← r − γ H p,    z = M⁻¹r,    p ← z + β p,    β = rᵀz / (rᵀz)_before
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from separatrix.data.view import Array

#: Square of a direction of unit length, less what others have of it, that is nothing but rounding.
_DEPENDENT = 1e-13


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


class JointDirections:
    r"""The steps of several systems with the same matrix, which share their directions (O'Leary, 1980).

    With ``P`` the directions of all systems, ``G = PᵀHP``:

        V ← V + P G⁻¹PᵀR,    R ← R − H P G⁻¹PᵀR,    Z = M⁻¹R,    P ← basis of Z − P G⁻¹(HP)ᵀZ

    Every system takes the best step within all directions, so a few eigenvalues of the matrix that lie
    apart, or near 0, cost each of them nothing: as many as there are systems are gone after one step. What
    depends on other directions is left out.

    Parameters, and the attributes ``P``, ``R`` and ``step``, are those of :class:`Directions`, but that ``P``
    may have fewer columns.

    Examples
    --------
    >>> H, R = np.diag([1.0, 2.0, 50.0]), np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 5.0]])
    >>> group = JointDirections(R, lambda R, room: R)
    >>> for _ in range(2):
    ...     done = group.advance(H @ group.P), group.turn()
    >>> group.step.round(9).tolist()
    [[1.0, 0.0], [0.5, 1.0], [0.02, 0.1]]
    """

    def __init__(self, residual: Array, precondition: Callable[[Array, Array], Array]) -> None:
        self.R = residual
        self.step = np.zeros_like(residual)
        self.precondition = precondition
        self._room = np.empty(residual.size)
        self.P = _basis(precondition(residual, np.empty_like(residual)))

    @classmethod
    def after(cls, steps: Directions) -> JointDirections:
        """Return directions that go on where each system's own have led."""
        joint = cls(steps.R, steps.precondition)
        joint.step = steps.step
        return joint

    @property
    def room(self) -> Array:
        """Room for as many numbers as ``P`` has."""
        return self._room[: self.P.size].reshape(self.P.shape)

    def advance(self, HP: Array) -> None:
        """Take the best step within ``P``, whose product with the matrix is given (and kept)."""
        values, vectors = np.linalg.eigh(self.P.T @ HP)
        kept = values > _DEPENDENT * values[-1:]
        self._inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        self._product = HP
        lengths = self._inverse @ (self.P.T @ self.R)
        self.step += self.P @ lengths
        self.R -= HP @ lengths

    def turn(self) -> None:
        """Choose the next directions."""
        Z = self.precondition(self.R, np.empty_like(self.R))
        self.P = _basis(Z - self.P @ (self._inverse @ (self._product.T @ Z)))


def _basis(P: Array) -> Array:
    """Return an orthonormal basis of the columns that are finite, whatever their lengths."""
    length = np.sqrt(dots(P, P))
    some = (length > 0) & np.isfinite(length)
    P = P[:, some] / length[some]
    values, vectors = np.linalg.eigh(P.T @ P)
    kept = values > _DEPENDENT * values[-1:]
    return np.asarray(P @ (vectors[:, kept] / np.sqrt(values[kept])))


def dots(A: Array, B: Array) -> Array:
    """Return the products of the columns of one matrix with those of another."""
    return np.asarray(np.einsum("i...,i...->...", A, B))


def _ratio(above: Array, below: Array) -> Array:
    """Return the quotients, 0 where the divisor is not positive."""
    if below.min() > 0:
        return np.asarray(above / below)
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
