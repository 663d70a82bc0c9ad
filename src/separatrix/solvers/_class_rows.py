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
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision, panel_product

#: Points of all problems together from which on it pays to look for classes.
_LEAST = 1000
#: Features from which on kernel values are dear enough: below, finding and copying them takes as long.
_FEATURES = 64
#: Parts of a block that threads compute.
_PARTS = 4

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
        self._matrix = matrix
        self._exact: dict[Key, ExactRows] = {}
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
        doubles = 8 * sum(key[0] * (key[0] + d) for key in wanted)
        self._samples = found if doubles <= matrix.cache_bytes / 4 else {}

    def __contains__(self, work: Work) -> bool:
        return id(work) in self._pairs

    def of(self, work: Work) -> tuple[Any, Any] | None:
        """Return what keeps the rows of a problem's two classes; None if it has none that others share."""
        pair = self._pairs.get(id(work))
        return None if pair is None else (self._classes[pair[0]], self._classes[pair[1]])

    def recompute(self, work: Work) -> bool:
        """Compute E of a problem anew in double; what its classes share is computed once.

        Return whether time was enough for that: else it stays as it was.
        """
        pair = self._pairs.get(id(work))
        if pair is None or not self._samples:
            return work.recompute("float64")
        for key in pair:
            if key not in self._exact:
                self._exact[key] = ExactRows(self._matrix, self._samples[key])
        classes, cut, weights = [self._exact[key] for key in pair], work.cut, work.weights(work.alpha)
        E = work.linear.copy()
        for side, part in enumerate((slice(0, cut), slice(cut, None))):
            E[part] += classes[side].own(weights[part])
        for side, part, other in ((0, slice(0, cut), slice(cut, None)), (1, slice(cut, None), slice(0, cut))):
            E[part] += classes[side].product(classes[1 - side], weights[other])
        work.set_exact(E)
        return True

    def new_entries(self) -> int:
        """Return how many kernel entries have been computed since the last call."""
        before, self._counted = self._counted, sum(rows.entries for rows in self._classes.values())
        return self._counted - before


class ExactRows:
    """A class packed in double precision, and its kernel rows among its samples as they come to be needed.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix.
    samples : ndarray of intp
        The samples of the class.
    """

    def __init__(self, matrix: KernelMatrix, samples: Array) -> None:
        self.matrix, self.size = matrix, samples.size
        self.panels = matrix.panels("float64", samples)
        # Memory that is never used is never touched.
        self.rows, self.count = np.empty((samples.size, samples.size)), 0
        self.place = np.full(samples.size, -1)

    def own(self, weights: Array) -> Array:
        """Return ``Σ_j k(x_i, x_j) weights_j`` over the samples of the class, for each of them."""
        used = np.flatnonzero(weights)
        missing = used[self.place[used] < 0]
        if missing.size:
            values = self.rows[self.count : self.count + missing.size]
            self.matrix.entries += values.size

            def fill(part: int) -> None:
                some = slice(part * missing.size // _PARTS, (part + 1) * missing.size // _PARTS)
                self.panels.block(self.panels, missing[some], values[some])

            for _ in in_threads(fill, _PARTS):
                pass
            self.place[missing] = self.count + np.arange(missing.size)
            self.count += missing.size
        # In the order of the samples, whatever the order in which they have come.
        return np.asarray(np.einsum("i,ij->j", weights[used], self.rows[self.place[used]]))

    def product(self, other: ExactRows, weights: Array) -> Array:
        """Return ``Σ_j k(x_i, z_j) weights_j`` over the samples of another class."""
        used, out = np.flatnonzero(weights), np.zeros((self.size, 1))
        self.matrix.entries += used.size * self.size
        panel_product(self.panels, self.size, other.panels, used, weights[used, None], out)
        return out[:, 0]


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
