"""Sums, products, multiples and powers of kernels, each a kernel again.

A product of kernels is the kernel of the tensor product of their feature spaces (Schur's product theorem), so
that positive semidefinite parts make positive semidefinite wholes.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Any

from numpy.typing import NDArray

from separatrix.kernels._base import Kernel, Rows, positive, whole


@dataclass(frozen=True)
class _Composed(Kernel):
    """A kernel made of others, its ``parts``."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels it is made of."""

    @property
    def samples(self) -> str:
        """What its parts compare."""
        kinds = {part.samples for part in self.parts} - {"any"}
        return kinds.pop() if kinds else "any"

    @property
    def definite(self) -> bool:
        """Whether all its parts are known to be positive semidefinite."""
        return all(part.definite for part in self.parts)

    def _check(self) -> None:
        for part in self.parts:
            if not isinstance(part, Kernel):
                raise TypeError(f"only kernels can be composed, not {part!r}")
        kinds = {part.samples: part for part in self.parts if part.samples != "any"}
        if "matrix" in kinds:
            raise TypeError(
                "Precomputed() stands for a matrix that is at hand: compose the matrices themselves, for "
                "example with K1 + 0.5 * K2, instead of the kernels"
            )
        if len(kinds) > 1:
            first, second = kinds.values()
            raise TypeError(
                f"{first!r} compares {first.samples} and {second!r} compares {second.samples}: no sample is "
                "both; compose kernels of one kind"
            )


@dataclass(frozen=True, repr=False)
class Sum(_Composed):
    """``k(x, z) = k_1(x, z) + … + k_q(x, z)``, written ``k_1 + … + k_q``.

    Parameters
    ----------
    terms : tuple of Kernel
        At least one.

    Examples
    --------
    >>> from separatrix.kernels import RBF, Linear
    >>> Linear() + 0.5 * RBF(2)
    Linear() + 0.5 * RBF(gamma=2.0)
    >>> (Linear() + 0.5 * RBF(2))([[1.0]], [[1.0], [3.0]]).round(4)
    array([[1.5   , 3.0002]])
    """

    terms: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", _several(self.terms, "terms"))
        self._check()

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The terms."""
        return self.terms

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""
        return _total([lambda term=term: term(A, B) for term in self.terms])

    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""
        return _total([lambda term=term: term.diag(A) for term in self.terms])

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))


@dataclass(frozen=True, repr=False)
class Product(_Composed):
    """``k(x, z) = k_1(x, z) ⋯ k_q(x, z)``, written ``k_1 * … * k_q``.

    Parameters
    ----------
    factors : tuple of Kernel
        At least one.

    Examples
    --------
    >>> from separatrix.kernels import RBF, Linear
    >>> Linear() * RBF(2)
    Linear() * RBF(gamma=2.0)
    >>> (Linear() * RBF(0.5)).diag([[2.0]])
    array([4.])
    """

    factors: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", _several(self.factors, "factors"))
        self._check()

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The factors."""
        return self.factors

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""
        return _total([lambda factor=factor: factor(A, B) for factor in self.factors], times=True)

    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""
        return _total([lambda factor=factor: factor.diag(A) for factor in self.factors], times=True)

    def __repr__(self) -> str:
        return " * ".join(_bracketed(factor, Sum, Scaled) for factor in self.factors)


@dataclass(frozen=True, repr=False)
class Scaled(_Composed):
    """``k(x, z) = factor · k_1(x, z)``, written ``factor * k_1``.

    Parameters
    ----------
    kernel : Kernel
        What is multiplied.
    factor : float
        Positive: a negative multiple of a kernel is none.

    Examples
    --------
    >>> from separatrix.kernels import Linear
    >>> 3 * Linear()
    3.0 * Linear()
    >>> (3 * Linear())([[1.0, 2.0]], [[1.0, 1.0]])
    array([[9.]])
    """

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "factor", positive(self.factor, "the factor of a kernel"))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernel that is multiplied."""
        return (self.kernel,)

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""
        return self.kernel(A, B) * self.factor

    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""
        return self.kernel.diag(A) * self.factor

    def __repr__(self) -> str:
        return f"{self.factor!r} * {_bracketed(self.kernel, Sum)}"


@dataclass(frozen=True, repr=False)
class Power(_Composed):
    """``k(x, z) = k_1(x, z)^exponent``, written ``k_1 ** exponent``.

    Parameters
    ----------
    kernel : Kernel
        The base.
    exponent : int
        At least 1: other powers of a kernel need not be one.

    Examples
    --------
    >>> from separatrix.kernels import RBF, Linear
    >>> (Linear() + RBF(1)) ** 2
    (Linear() + RBF(gamma=1.0))**2
    >>> ((Linear() + RBF(1)) ** 2).diag([[2.0]])
    array([25.])
    """

    kernel: Kernel
    exponent: int

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "exponent", whole(self.exponent, "the exponent of a kernel", least=1))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The base."""
        return (self.kernel,)

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the rows of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""
        values: NDArray[Any] = self.kernel(A, B) ** self.exponent
        return values

    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each row of `A` with itself, shape (n,)."""
        values: NDArray[Any] = self.kernel.diag(A) ** self.exponent
        return values

    def __repr__(self) -> str:
        return f"{_bracketed(self.kernel, Sum, Product, Scaled, Power)}**{self.exponent}"


def add(first: Kernel, second: Kernel) -> Kernel:
    """Return the sum of two kernels; sums of sums are one."""
    terms = [part.terms if isinstance(part, Sum) else (part,) for part in (first, second)]
    return Sum(terms[0] + terms[1])


def multiply(first: Kernel, second: Kernel) -> Kernel:
    """Return the product of two kernels; products of products are one, and multiples stand in front."""
    bare = [part.kernel if isinstance(part, Scaled) else part for part in (first, second)]
    factors = [part.factors if isinstance(part, Product) else (part,) for part in bare]
    product = Product(factors[0] + factors[1])
    scales = [part.factor for part in (first, second) if isinstance(part, Scaled)]
    return Scaled(product, prod(scales)) if scales else product


def scale(kernel: Kernel, factor: Any) -> Kernel:
    """Return a multiple of a kernel; a multiple of a multiple is one."""
    factor = positive(factor, "the factor of a kernel")
    if isinstance(kernel, Scaled):
        return Scaled(kernel.kernel, kernel.factor * factor)
    return Scaled(kernel, factor)


def raise_to(kernel: Kernel, exponent: Any) -> Kernel:
    """Return a power of a kernel."""
    return Power(kernel, exponent)


def _several(parts: Any, name: str) -> tuple[Kernel, ...]:
    several: tuple[Kernel, ...] = tuple(parts)
    if not several:
        raise ValueError(f"{name} must hold at least one kernel")
    return several


def _total(computations: list[Any], *, times: bool = False) -> NDArray[Any]:
    """Sum or product of arrays that are computed one after the other, so that two exist at a time."""
    # The first two make a new array; a part may have handed out one that it keeps.
    total: NDArray[Any] | None = None
    owned = False
    for compute in computations:
        part = compute()
        if total is None:
            total = part
        elif not owned or part.dtype != total.dtype:
            total, owned = (total * part if times else total + part), True
        elif times:
            total *= part
        else:
            total += part
    assert total is not None
    return total


def _bracketed(kernel: Kernel, *weaker: type) -> str:
    return f"({kernel!r})" if isinstance(kernel, weaker) else repr(kernel)
