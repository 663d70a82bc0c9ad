"""Directions along which no margin falls: which margins one violates, and how an approximation is mended.

A direction taken from an iterative fit has margins near 0 where they are 0 in the limit. It is projected onto
the null space of those rows (``_pairs``), and then corrected until these margins are 0 to rounding, relative
to the terms that they are summed of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import lstsq, qr

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._pairs import Direction, Pairs, Scale, Unit, tolerance

#: Most parameters of a direction that is polished.
LARGEST_POLISH = 1_200


def violated(unit: Unit, direction: Direction, limit: int) -> tuple[Pairs, int]:
    """Return up to ``limit`` pairs whose margin is below 0 by more than rounding, and how many there are.

    One pass. One half are those with the lowest margins, the others are spread over the data.
    """
    samples, rivals, lowest, count = [], [], [], 0
    for rows, block in unit.parts():
        m = unit.margins(rows, block, direction)
        wrong = np.flatnonzero((m < 0).any(axis=1))
        if len(wrong) == 0:
            continue
        sizes = unit.sizes(unit.problem.classes[rows][wrong], block[wrong], direction)
        # Half of what the final check allows: normalising the direction costs some rounding, too.
        i, k = np.nonzero(m[wrong] < -0.5 * tolerance(block) * sizes)
        i = wrong[i]
        count += len(i)
        kept = _chosen(m[i, k], limit)
        samples.append(i[kept] + rows.start)
        rivals.append(k[kept])
        lowest.append(m[i, k][kept])
    if not count:
        return (np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)), 0
    kept = _chosen(np.concatenate(lowest), limit)
    return (np.concatenate(samples)[kept], np.concatenate(rivals)[kept]), count


def _chosen(margins: Array, limit: int) -> Array:
    if len(margins) <= limit:
        return np.arange(len(margins))
    order = np.argsort(margins, kind="stable")
    rest = order[limit // 2 :]
    return np.concatenate([order[: limit // 2], spread(rest, limit - limit // 2)])


def spread(items: Array, limit: int) -> Array:
    """Return up to ``limit`` of the items, always the same ones, at irregular distances."""
    if len(items) <= limit:
        return items
    return np.sort(np.random.default_rng(0).choice(items, size=limit, replace=False))


def joined(first: Pairs, second: Pairs) -> Pairs:
    """Return the pairs of both, each once."""
    both = np.column_stack([np.concatenate(part) for part in zip(first, second, strict=True)])
    both = np.unique(both, axis=0)
    return both[:, 0], both[:, 1]


def noise(unit: Unit, direction: Direction) -> float | None:
    """Return how far the lowest margin is below 0, or None if that is not small beside the largest margin.

    Only a direction whose margins are nearly all positive can approximate one of recession. One pass at most;
    it ends early where margins of both signs are of one size.
    """
    low, high = 0.0, 0.0
    for rows, block in unit.parts():
        m = unit.margins(rows, block, direction)
        low = min(low, float(m.min(initial=np.inf)))
        high = max(high, float(np.max(m, where=np.isfinite(m), initial=-np.inf)))
        if -low > 0.3 * high:
            return None
    return -low if 0 < -low < 0.1 * high and unit.dimension <= LARGEST_POLISH else None


def polished(unit: Unit, scale: Scale, direction: Direction, low: float) -> Iterator[Direction]:
    """Yield directions near this one without negative margins; ``low`` is its `noise`.

    Negative margins are made 0, and those that turn negative by that; or all that are small at once.
    """
    for factor in (0.0, 3.0, 100.0):
        pairs = _below(unit, direction, low * factor, 3 * unit.dimension)
        for _ in range(4):
            found, pairs = _nearest(unit, scale, direction, pairs)
            if found is not None:
                yield found
            if len(pairs[0]) == 0:
                break


def _nearest(unit: Unit, scale: Scale, direction: Direction, pairs: Pairs) -> tuple[Direction | None, Pairs]:
    """Return the direction with these margins made 0, if it violates none; else these pairs and more."""
    A = dense(scale.rows(unit, pairs))
    z = scale.inward(unit, direction)
    size = float(np.abs(z).max())
    Q = _row_basis(A)
    for _ in range(2):
        z = z - Q @ (Q.T @ z)
    if float(np.abs(z).max()) > 1e-9 * size:  # else nothing is left but rounding
        # Exact zeros are often the truth (a feature that takes no part); rounding hides them.
        for snap in (1e-10, 0.0):
            start = np.where(np.abs(z) <= snap * np.abs(z).max(), 0.0, z)
            found = scale.outward(unit, corrected(A, start))
            more, count = violated(unit, found, 2 * unit.dimension)
            if count == 0:
                return found, (pairs[0][:0], pairs[1][:0])
        together = joined(pairs, more)
        if len(together[0]) > len(pairs[0]):
            return None, together
    return None, (pairs[0][:0], pairs[1][:0])


def _row_basis(A: Array) -> Array:
    """Return orthonormal columns that span the rows of A, but for rounding."""
    with single_threaded(A.size * A.shape[1]):
        # A triangle has the same rows' span, and fewer of them; pivoting is slow.
        R = np.asarray(np.linalg.qr(A, mode="r")) if A.shape[0] > A.shape[1] else A
        Q, T, _ = qr(R.T, mode="economic", pivoting=True, check_finite=False)
        pivots = np.abs(np.diagonal(T))
        return np.asarray(Q[:, : np.count_nonzero(pivots > 1e-11 * pivots.max(initial=0.0))])


def _least(A: Array, b: Array) -> Array:
    """Return the shortest ``z`` with the least ``‖A z − b‖``."""
    with single_threaded(A.size * A.shape[1]):
        return np.asarray(lstsq(A, b, cond=1e-11, lapack_driver="gelsy", check_finite=False)[0])


def dense(A: Any) -> Array:
    """Return the rows as an array."""
    return np.asarray(A.toarray() if hasattr(A, "toarray") else A)


def _below(unit: Unit, direction: Direction, bound: float, limit: int) -> Pairs:
    """Return about ``limit`` pairs with margins of at most ``bound``, spread over the data."""
    samples, rivals = [], []
    n = unit.problem.view.shape[0]
    for rows, block in unit.parts():
        m = unit.margins(rows, block, direction)
        i, k = np.nonzero(m <= bound)
        kept = spread(np.arange(len(i)), max(32, limit * (rows.stop - rows.start) // n))
        samples.append(i[kept] + rows.start)
        rivals.append(k[kept])
    found = np.column_stack([np.concatenate(samples), np.concatenate(rivals)])
    found = found[spread(np.arange(len(found)), max(limit, 1500))]  # many blocks, however few of each
    return found[:, 0], found[:, 1]


def corrected(A: Array, z: Array) -> Array:
    """Return ``z`` with the smallest relative change that makes ``A z`` zero relative to its terms."""
    for _ in range(2):
        B = A * np.abs(z)
        largest = np.abs(B).max(axis=1, initial=0.0)
        B = B[largest > 0] / largest[largest > 0, None]
        if B.shape[0] == 0:
            break
        change = _least(B, -B @ np.sign(z))
        if np.abs(change).max() > 1e-3:  # another direction: rather the one that was asked for
            break
        z = z + np.abs(z) * change
    return z
