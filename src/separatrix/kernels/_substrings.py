"""Kernels that count common substrings: spectrum, bounded range, constant and exponential weights."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.kernels._base import finite, whole
from separatrix.kernels._strings import StringKernel, Texts


@dataclass(frozen=True, repr=False)
class SubstringKernel(StringKernel):
    """``k(s, t) = sum_u w(|u|) count_s(u) count_t(u)`` over all substrings ``u``; a subclass gives ``w``.

    Takes time in proportion to ``|s| + |t|``, whatever the weights.
    """

    @abstractmethod
    def _cumulative(self, lengths: NDArray[Any]) -> NDArray[Any]:
        """``w(1) + … + w(l)`` for each length ``l``."""

    @property
    def _shortest(self) -> int:
        return 1

    def _pairs(self, texts: Texts, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        weights = self._cumulative(np.arange(texts.lengths.max(initial=0) + 1, dtype=np.float64))
        out = np.empty(first.shape[0])
        _hot.substring_kernel(texts.codes, texts.starts, first, second, texts.alphabet, weights, out)
        return out


@dataclass(frozen=True, repr=False)
class Spectrum(SubstringKernel):
    """``k(s, t) = sum of count_s(u) count_t(u)`` over all substrings ``u`` of ``length`` characters.

    Parameters
    ----------
    length : int, default=3
        Characters of a substring, at least 1.
    normalize : bool, default=True
        Whether to divide by ``sqrt(k(s, s) k(t, t))``, so that long texts weigh no more than short ones.

    Examples
    --------
    >>> from separatrix.kernels import Spectrum
    >>> Spectrum(2, normalize=False)(["banana"], ["ananas", "bandana", "kiwi"])
    array([[8., 7., 0.]])
    >>> Spectrum(2)(["banana", "bandana"]).round(4)
    array([[1.   , 0.825],
           [0.825, 1.   ]])
    """

    length: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", whole(self.length, "length", least=1))

    @property
    def _shortest(self) -> int:
        return self.length

    def _cumulative(self, lengths: NDArray[Any]) -> NDArray[Any]:
        return (lengths >= self.length).astype(np.float64)


@dataclass(frozen=True, repr=False)
class BoundedRange(SubstringKernel):
    """``k(s, t) = sum of count_s(u) count_t(u)`` over all substrings ``u`` of 1 to ``length`` characters.

    Parameters
    ----------
    length : int, default=3
        Most characters of a substring, at least 1.
    normalize : bool, default=True
        Whether to divide by ``sqrt(k(s, s) k(t, t))``, so that long texts weigh no more than short ones.

    Examples
    --------
    >>> from separatrix.kernels import BoundedRange
    >>> BoundedRange(2, normalize=False)(["cat"], ["car", "cat", "dog"])
    array([[3., 5., 0.]])
    """

    length: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", whole(self.length, "length", least=1))

    def _cumulative(self, lengths: NDArray[Any]) -> NDArray[Any]:
        sums: NDArray[Any] = np.minimum(lengths, self.length)
        return sums


@dataclass(frozen=True, repr=False)
class ConstantSubstring(SubstringKernel):
    """``k(s, t) = sum of count_s(u) count_t(u)`` over all substrings ``u``, of any length.

    Parameters
    ----------
    normalize : bool, default=True
        Whether to divide by ``sqrt(k(s, s) k(t, t))``, so that long texts weigh no more than short ones.

    Examples
    --------
    >>> from separatrix.kernels import ConstantSubstring
    >>> ConstantSubstring(normalize=False)(["cat"], ["car", "cat", "dog"])
    array([[3., 6., 0.]])
    """

    def _cumulative(self, lengths: NDArray[Any]) -> NDArray[Any]:
        return lengths


@dataclass(frozen=True, repr=False)
class ExponentialSubstring(SubstringKernel):
    """``k(s, t) = sum of base^(-|u|) count_s(u) count_t(u)`` over all substrings ``u``, of any length.

    Parameters
    ----------
    base : float, default=2.0
        Greater than 1; the greater, the less long common substrings count.
    normalize : bool, default=True
        Whether to divide by ``sqrt(k(s, s) k(t, t))``, so that long texts weigh no more than short ones.

    Examples
    --------
    >>> from separatrix.kernels import ExponentialSubstring
    >>> ExponentialSubstring(2.0, normalize=False)(["cat"], ["car", "cat", "dog"])
    array([[1.25 , 2.125, 0.   ]])
    """

    base: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "base", finite(self.base, "base"))
        if self.base <= 1:
            raise ValueError(
                f"base must be greater than 1, not {self.base!r}; for equal weights use ConstantSubstring()"
            )

    def _cumulative(self, lengths: NDArray[Any]) -> NDArray[Any]:
        # Σ base^-l = (1 - base^-l) / (base - 1), without cancellation for a base near 1.
        sums: NDArray[Any] = -np.expm1(-np.log(self.base) * lengths) / (self.base - 1)
        return sums
