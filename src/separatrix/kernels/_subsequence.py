"""The gap-weighted subsequence kernel."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot
from separatrix.kernels._base import positive, whole
from separatrix.kernels._strings import StringKernel, Texts


@dataclass(frozen=True, repr=False)
class Subsequence(StringKernel):
    """``k(s, t) = sum_u sum over u = s[i], u = t[j] of decay^(span(i) + span(j))``, gaps allowed.

    ``u`` runs over all strings of ``length`` characters, ``i`` and ``j`` over the rising tuples of places at
    which it can be read in ``s`` and in ``t``; the span is the last place minus the first plus one, so that
    gaps cost as much as characters (Lodhi et al. 2002). Takes time in proportion to ``length |s| |t|``.

    Parameters
    ----------
    length : int, default=3
        Characters of a subsequence, at least 1.
    decay : float, default=0.5
        Above 0 and at most 1; the smaller, the less subsequences with gaps count.
    normalize : bool, default=True
        Whether to divide by ``sqrt(k(s, s) k(t, t))``, so that long texts weigh no more than short ones.

    Examples
    --------
    >>> from separatrix.kernels import Subsequence
    >>> Subsequence(2, decay=0.5, normalize=False)(["cat"], ["car"])  # c-a in both: 0.5^(2 + 2)
    array([[0.0625]])
    >>> Subsequence(2, decay=0.5)(["cat"], ["car"]).round(6)  # 1 / (2 + 0.5^2)
    array([[0.444444]])
    """

    length: int = 3
    decay: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", whole(self.length, "length", least=1))
        object.__setattr__(self, "decay", positive(self.decay, "decay"))
        if self.decay > 1:
            raise ValueError(f"decay must be at most 1, not {self.decay!r}")

    @property
    def _shortest(self) -> int:
        return self.length

    def _pairs(self, texts: Texts, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        longest = int(texts.lengths.max(initial=0))
        if self.length > longest:
            return np.zeros(first.shape[0])
        out = np.empty(first.shape[0])
        _hot.subsequence_kernel(texts.codes, texts.starts, first, second, self.length, self.decay, out)
        if not np.isfinite(out).all():
            raise ValueError(
                f"{self!r} is too large for float64 on texts of {longest:,} characters: choose a "
                "smaller length or decay"
            )
        return out

    def _unscaled(self, values: NDArray[Any]) -> NDArray[Any]:
        # The loops leave out the factor of subsequences without gaps; in two steps, as it may underflow.
        values *= self.decay**self.length
        values *= self.decay**self.length
        return values
