"""Kernel rows of classes among their own samples, which all pairs of classes share.

One against one, a class meets every other one: of the kernel rows of its samples the half over the class is
the same each time. It is computed once, by whichever pair needs it first, and copied from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads
from separatrix.data.view import Array
from separatrix.solvers._dual import Work
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision

#: Points of all problems together from which on it pays to look for classes.
_LEAST = 1000
#: Features from which on kernel values are dear enough: below, finding and copying them takes as long.
_FEATURES = 64

#: What tells classes apart: number of samples, the first and the last.
Key = tuple[int, int, int]


class ClassRows:
    """The classes of several problems, as far as at least two problems share them and their rows can be kept.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix that all problems share.
    works : sequence of Work
        The problems.
    precision : {"float32", "float64"}
        Of the kernel rows.
    """

    def __init__(self, matrix: KernelMatrix, works: Sequence[Work], precision: Precision) -> None:
        self._pairs: dict[int, tuple[Key, Key]] = {}
        self._classes: dict[Key, Any] = {}
        self._counted = 0
        if len(works) < 3 or sum(work.points.size for work in works) < _LEAST:
            return
        if matrix.native is None or matrix.features_per_entry < _FEATURES:
            return
        found, pairs = _shared(works)
        wanted = sorted({key for pair in pairs.values() for key in pair})
        size, d = np.dtype(precision).itemsize, int(matrix.samples.shape[1])
        packed, kept = size * d * sum(key[0] for key in wanted), size * sum(key[0] ** 2 for key in wanted)
        # Two threads that miss a row at the same time both keep it.
        if not wanted or max(packed, 2 * kept) > matrix.cache_bytes / 4:
            return
        make = _hot.ClassRowsFloat32 if precision == "float32" else _hot.ClassRowsFloat64

        def rows_of(number: int) -> Any:
            return make(matrix.panels(precision, found[wanted[number]]), matrix.memory)

        if any(4 * key[0] >= matrix.shape[0] for key in wanted):
            matrix.prepare(precision)
        self._classes = dict(zip(wanted, in_threads(rows_of, len(wanted)), strict=True))
        self._pairs = pairs

    def __contains__(self, work: Work) -> bool:
        return id(work) in self._pairs

    def of(self, work: Work) -> tuple[Any, Any] | None:
        """Return what keeps the rows of a problem's two classes; None if it has none that others share."""
        pair = self._pairs.get(id(work))
        return None if pair is None else (self._classes[pair[0]], self._classes[pair[1]])

    def new_entries(self) -> int:
        """Return how many kernel entries have been computed since the last call."""
        before, self._counted = self._counted, sum(rows.entries for rows in self._classes.values())
        return self._counted - before


def _shared(works: Sequence[Work]) -> tuple[dict[Key, Array], dict[int, tuple[Key, Key]]]:
    """Return the classes of all problems, and by ``id(work)`` those of problems that share both."""
    found: dict[Key, Array] = {}
    uses: Counter[Key] = Counter()
    pairs: dict[int, tuple[Key, Key]] = {}
    for work in works:
        cut = work.cut
        if not cut:
            continue
        sides = work.points[:cut], work.points[cut:]
        first, second = keys = tuple((side.size, int(side[0]), int(side[-1])) for side in sides)
        known = [found.setdefault(key, side) for key, side in zip(keys, sides, strict=True)]
        if all(map(np.array_equal, known, sides)):
            pairs[id(work)] = first, second
            uses.update(keys)
    return found, {k: pair for k, pair in pairs.items() if min(uses[key] for key in pair) > 1}
