"""Sums of products of the samples that bend the loss of a column: Hessians of :mod:`._newton_columns`."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads
from separatrix.data.view import Array, DataView, csr_parts
from separatrix.solvers._room import kept_bytes

#: Free samples that are gathered for one product, at least; how many sums of such products run side by side.
_GATHERED, _GROUPS = 4096, 4
#: How much larger what is taken away may be than what is left.
_ROUNDED = 1e3


class FreeProducts:
    """``Σ U x xᵀ``, ``Σ U x`` and ``Σ U`` over the free samples of each column.

    From one step to the next few samples change sides: then only these are added or taken away.

    Parameters
    ----------
    view : DataView
        The samples.
    upper : ndarray of shape (n,)
        Their weights ``U``.
    even : float or None
        The weight that all samples have, if they do: then ``U = 1`` in the sums.
    columns : int
        How many columns there are.
    """

    def __init__(self, view: DataView, upper: Array, even: float | None, *, columns: int) -> None:
        self.view, self.upper, self.even = view, upper, even
        #: Free samples of each column's last sums, and the sums.
        self.kept: dict[int, tuple[Array, Array]] = {}
        self.keep = columns * view.shape[1] ** 2 * 8 <= kept_bytes()

    def of(self, k: int, free: Array, *, single: bool) -> Array:
        """Return the sums of column ``k`` one after the other, of the free samples (1, else 0)."""
        dtype = np.dtype(np.float32 if single and not self.view.sparse else np.float64)
        kept, total = self.kept.pop(k, None), None
        if kept is not None and kept[1].dtype == dtype:
            change = free.view(np.int8) - kept[0].view(np.int8)
            total = self._changed(kept[1], change, int(free.sum(dtype=int)))
        if total is None:
            total = self._sums(np.flatnonzero(free), dtype)
        if self.keep:
            self.kept[k] = free.copy(), total
        return total

    def share(self, columns: list[int], free: Array, *, single: bool) -> None:
        """Give columns with the same free samples, of which nothing is kept yet, the same sums."""
        fresh = [k for k in columns if k not in self.kept]
        if len(fresh) > 1 and self.keep:
            total = self.of(fresh[0], free, single=single)
            for k in fresh[1:]:
                self.kept[k] = free.copy(), total.copy()

    def _changed(self, total: Array, change: Array, count: int) -> Array | None:
        """Return the sums after samples came (1) and went (−1); None where it is better to begin anew."""
        came, gone = np.flatnonzero(change > 0), np.flatnonzero(change < 0)
        if came.shape[0] + gone.shape[0] >= count:
            return None
        if came.shape[0]:
            total += self._sums(came, total.dtype)
        if gone.shape[0]:
            less = self._sums(gone, total.dtype)
            total -= less
            # What is left of much larger numbers is rounded with them.
            d = self.view.shape[1]
            if np.any(less[: d * d : d + 1] > _ROUNDED * total[: d * d : d + 1]):
                return None
        return total

    def _sums(self, chosen: Array, dtype: np.dtype[Any]) -> Array:
        d = self.view.shape[1]
        size, step = d * d + d + 1, max(_GATHERED, 2 * d)
        starts = range(0, chosen.shape[0], step)
        groups = max(1, min(_GROUPS, len(starts)))

        def group(number: int) -> Array:
            total = np.zeros(size, dtype=dtype)
            H, sums = total[: d * d].reshape(d, d), total[d * d : -1]
            for start in starts[number * len(starts) // groups : (number + 1) * len(starts) // groups]:
                rows = chosen[start : start + step]
                A, s = self.view.take(rows), self.upper[rows]
                if self.even is not None:
                    s[:] = 1.0
                total[-1] += s.sum()
                if self.view.sparse:
                    A.sort_indices()  # products of features in rising order fill the upper triangle
                    _hot.gram_csr(*csr_parts(A), s, H)
                    sums += A.T @ s
                    continue
                A = A.astype(dtype, copy=False)
                root = np.sqrt(s).astype(dtype)
                if self.even is None:
                    A *= root[:, None]
                H += A.T @ A
                sums += root @ A
            return total

        parts = in_threads(group, groups)
        total = next(parts)
        for part in parts:
            total += part
        return total
