"""A direction along which the likelihood grows for ever, and how it is verified on all samples.

See `separatrix.solvers.separation` for what is proven and what is numerical.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.certificate import Groups, Separation
from separatrix.data.view import Array
from separatrix.problem import Problem
from separatrix.solvers._judge import boundary_norms
from separatrix.solvers._pairs import CLEAR, Direction, Scale, Unit, rounding, tolerance


@dataclass
class _Tally:
    """What a pass over the margins of a direction has seen."""

    complete: bool
    clear: Array
    separated: int = 0
    samples: int = 0
    distance: float = np.inf


def check_columns(problem: Problem, coef: Array, intercept: Array) -> tuple[Separation | None, ...]:
    """Return what each column's direction proves; a joint problem has one verdict for all its columns."""
    if problem.joint:
        return (checked(Unit(problem), coef, intercept),)
    W, b = np.atleast_2d(coef), np.resize(intercept, problem.columns)
    return tuple(checked(Unit(problem, j), W[j], b[j : j + 1]) for j in range(problem.columns))


def check_direction(problem: Problem, coef: Array, intercept: Array) -> Separation | None:
    """Verify on all samples that the likelihood grows for ever along ``(coef, intercept)``.

    One pass in double precision; it ends at the first block with a negative margin. Complete separation is
    proven beyond rounding, quasi-complete separation holds up to rounding (see the module).

    Parameters
    ----------
    problem : Problem
        Samples, codes and weights.
    coef : ndarray of shape (columns, d)
        Candidate.
    intercept : ndarray of shape (columns,)
        Its intercepts; ignored if the problem has none.

    Returns
    -------
    Separation or None
        For several independent columns the first that is separated.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.problem import Problem
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0, 0, 1], dtype=np.int32)
    >>> problem = Problem(view_of(X), y, np.array([[-1], [1]], dtype=np.int8))
    >>> found = check_direction(problem, np.array([[5.0]]), np.array([-10.0]))
    >>> found.kind, found.margin
    ('complete', 1.0)
    >>> check_direction(problem, np.array([[1.0]]), np.array([-1.0])).kind
    'quasi-complete'
    >>> check_direction(problem, np.array([[1.0]]), np.array([-0.5])) is None
    True
    """
    return next((found for found in check_columns(problem, coef, intercept) if found is not None), None)


def checked(unit: Unit, coef: Array, intercept: Array) -> Separation | None:
    """Return what the direction proves about one unit; see `check_direction`."""
    direction = unit.normalised(coef, intercept)
    if direction is None:
        return None
    tally = _tallied(unit, direction)
    if tally is None or not tally.clear.any():
        return None
    W, b = direction
    return Separation(
        kind="complete" if tally.complete else "quasi-complete",
        coef=W,
        intercept=b,
        margin=tally.distance if tally.complete else 0.0,
        separated=tally.separated,
        samples=tally.samples,
        column=unit.column,
        pairs=_groups(unit, tally),
        features=_strongest(unit.problem, W),
    )


def _tallied(unit: Unit, direction: Direction) -> _Tally | None:
    """Return what all margins tell, or None as soon as one is negative beyond rounding."""
    K = unit.problem.codes.shape[0]
    tally = _Tally(True, np.zeros((K, unit.rivals), dtype=bool))
    norms = boundary_norms(unit.problem, direction[0]) if unit.column is None else _length(direction[0])
    for rows, block in unit.parts():
        classes = unit.problem.classes[rows]
        m = unit.margins(rows, block, direction)
        if _few_are_negative(unit, classes, block, direction, m):
            return None
        sizes = unit.sizes(classes, block, direction)
        zero = tolerance(block) * sizes
        if (m < -zero).any():
            return None
        counted = np.isfinite(m)
        taking_part = counted.any(axis=1)
        proven = m > rounding(block) * sizes
        tally.complete &= bool(proven.all())
        clear = counted & (m > CLEAR * zero)
        tally.separated += int(np.count_nonzero((clear | ~counted).all(axis=1) & taking_part))
        tally.samples += int(np.count_nonzero(taking_part))
        np.logical_or.at(tally.clear, classes, clear)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = m / (norms[classes] if unit.column is None else norms)
        tally.distance = min(tally.distance, float(np.nanmin(distance, initial=np.inf)))
    if tally.complete:
        tally.separated = tally.samples
    return tally


def _length(coef: Array) -> Array:
    return np.asarray(np.linalg.norm(coef, axis=1))


def _few_are_negative(unit: Unit, classes: Array, block: Any, direction: Direction, m: Array) -> bool:
    """Return whether one of the rows with the lowest margins is wrong: cheaper than all sizes."""
    least = m.min(axis=1)
    rows = np.argpartition(least, 15)[:16] if len(least) > 16 else np.arange(len(least))
    if not (least[rows] < 0).any():
        return False
    part = block[rows]
    return bool((m[rows] < -tolerance(part) * unit.sizes(classes[rows], part, direction)).any())


def _groups(unit: Unit, tally: _Tally) -> tuple[Groups, ...]:
    if unit.column is not None:
        codes = unit.problem.codes[:, unit.column]
        positive, negative = (tuple(np.flatnonzero(codes == sign).tolist()) for sign in (1, -1))
        first, second = sorted((negative, positive), key=len)
        return ((first, second),)
    both = tally.clear | tally.clear.T
    K = both.shape[0]
    return tuple(((k,), (l,)) for k in range(K) for l in range(k + 1, K) if both[k, l])


def _strongest(problem: Problem, coef: Array, most: int = 3) -> tuple[int, ...]:
    """Return the features with the largest weights times range, down to a tenth of the largest."""
    scale = Scale.of(problem)
    part = np.abs(coef).max(axis=0) * scale.width
    order = np.argsort(-part, kind="stable")[:most]
    return tuple(int(j) for j in order if part[j] > 0.1 * part[order[0]])
