"""The Bessel kernel, in floating-point numbers for every order and distance."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, j0, j1, jv

from separatrix.data.threads import in_blocks
from separatrix.kernels._base import Rows, VectorKernel, finite, positive, whole
from separatrix.kernels._vectors import squared_distances


@dataclass(frozen=True)
class Bessel(VectorKernel):
    """``k(x, z) = (Gamma(order + 1) 2^order J_order(t) / t^order)^degree`` with ``t = sigma ||x - z||``.

    ``J`` is the Bessel function of the first kind; the value at ``t = 0`` is 1. Positive semidefinite on
    vectors of at most ``2 order + 2`` features, and in general not beyond (Schoenberg): with just so many
    features it is the mean of all waves ``exp(i w.(x - z))`` with ``||w|| = sigma``.

    Parameters
    ----------
    sigma : float, default=1.0
        Inverse width, positive.
    order : float, default=1.0
        Order of the Bessel function, at least 0; ``d / 2 - 1`` or more for ``d`` features.
    degree : int, default=1
        The power, at least 1.

    Examples
    --------
    >>> from separatrix.kernels import Bessel
    >>> Bessel(sigma=1.0, order=0)([[0.0]], [[0.0], [1.0], [2.4048]]).round(4)
    array([[1.    , 0.7652, 0.    ]])
    """

    sigma: float = 1.0
    order: float = 1.0
    degree: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))
        object.__setattr__(self, "order", finite(self.order, "order"))
        if self.order < 0:
            raise ValueError(f"order must be at least 0, not {self.order!r}")
        object.__setattr__(self, "degree", whole(self.degree, "degree", least=1))

    @property
    def definite(self) -> bool:
        """Not known to be positive semidefinite."""
        return False

    def _block(self, A: Rows, B: Rows | None) -> NDArray[Any]:
        values = squared_distances(A, B)
        in_blocks(self._replace, values.reshape(-1))
        return values

    def _replace(self, squares: NDArray[Any]) -> None:
        """Write the kernel's values over squared distances, by way of float64."""
        t = np.sqrt(squares.astype(np.float64, copy=False))
        t *= self.sigma
        squares[:] = spherical_wave(self.order, t) ** self.degree

    def _diagonal(self, A: Rows) -> NDArray[Any]:
        return np.ones(A.shape[0], dtype=A.dtype)


def spherical_wave(order: float, t: NDArray[Any]) -> NDArray[Any]:
    """``Gamma(order + 1) 2^order J_order(t) / t^order`` for ``t >= 0``; 1 at 0, never more.

    The quotient is 0/0 near 0, and for a large order both parts leave the range of floating-point numbers.
    Up to two thirds of the first zero of ``J`` its logarithm is therefore summed up:
    ``-sum_k s_k t^(2k) / k``, where ``s_k`` is the sum of the powers ``-2k`` of all zeros (Rayleigh). All
    terms are positive, so that no digit is lost. Kishore's recursion gives them: ``s_1 = 1/(4(order + 1))``,
    ``(order + n) s_n = sum of s_k s_(n-k)``. Beyond, logarithms keep the quotient's parts in range.

    Examples
    --------
    >>> import numpy as np
    >>> spherical_wave(0.5, np.array([0.0, np.pi / 2])).round(6)  # sin(t) / t
    array([1.     , 0.63662])
    """
    # A lower bound of the first zero's square; u = t^2 / bound keeps the powers in range.
    bound = max(4 * (order + 1) * np.sqrt(order + 2), order * (order + 2))
    near = t <= np.sqrt(bound / 2)
    values = np.empty_like(t)
    u = t[near] ** 2 / bound
    if u.size:
        values[near] = np.exp(-_rayleigh_sum(order, float(bound), u))
    far = t[~near]
    if far.size:
        quick = {0.0: j0, 1.0: j1}.get(order)
        J = jv(order, far) if quick is None else quick(far)
        with np.errstate(divide="ignore"):  # J may be 0, at a zero or below the smallest number
            logarithm = np.log(np.abs(J))
        logarithm += gammaln(order + 1) + order * np.log(2 / far)
        values[~near] = np.copysign(np.exp(np.minimum(logarithm, 0.0)), J)
    return values


def _rayleigh_sum(order: float, bound: float, u: NDArray[Any]) -> NDArray[Any]:
    """``sum_k s_k bound^k u^k / k`` for ``u <= 1/2``: so many terms that the rest is below rounding."""
    largest = float(u.max(initial=0.0))
    terms = 1 if largest == 0 else max(1, int(np.ceil(-37.0 / np.log(largest))) + 1)
    s = np.empty(terms)
    s[0] = bound / (4 * (order + 1))
    for n in range(2, terms + 1):
        s[n - 1] = s[: n - 1] @ s[n - 2 :: -1] / (order + n)
    total = np.zeros_like(u)
    for k in range(terms, 0, -1):
        total += s[k - 1] / k
        total *= u
    return total
