"""Linear separation: when the maximum-likelihood estimate does not exist, found and proven.

The plain maximum-likelihood estimate of logistic and softmax regression exists exactly if there is no
*direction of recession*: weights ``δ`` and intercepts ``β`` along which no margin falls and some margin grows
(Albert and Anderson 1984). Margins are ``y (δ·x + β)`` for a binary column and
``(δ_c − δ_k)·x + β_c − β_k`` for each rival ``k`` of the own class ``c`` in a joint problem; samples of
weight 0 have none. All margins positive: *complete* separation. Some of them 0: *quasi-complete* separation,
which includes that only one class of several is separable from the rest.

What is proven and what is numerical:

- Complete separation is proven: each margin exceeds the bound of its rounding error.
- Quasi-complete separation needs margins that are exactly 0, which floating-point numbers cannot show.
  Margins count as 0 from ``−4 u`` times the sum of the sizes of their terms on, ``u = (d + 2) ε`` being the
  bound of the rounding error (together about 1e-13 for 100 features; ``d`` is the largest number of stored
  values in a sparse row). One margin at least must exceed 1000 times that.
- That there is no direction is shown by weights ``λ > 0`` with ``Σ λ_i a_i = 0`` over the rows ``a_i`` of all
  margins (`Verdict.weights`), up to the residual that `Verdict.residual` tells.

References
----------
Albert and Anderson, *On the existence of maximum likelihood estimates in logistic regression models*,
Biometrika 71, 1984. Konis, *Linear programming algorithms for detecting separated data in binary logistic
regression models*, Oxford, 2007.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from separatrix.certificate import Separation
from separatrix.data.view import Array
from separatrix.problem import Problem
from separatrix.solvers._direction import check_columns, check_direction, checked
from separatrix.solvers._pairs import Direction, Scale, Unit, units
from separatrix.solvers._programmes import Search
from separatrix.solvers._recession import noise, polished

__all__ = [
    "Separation",
    "Verdict",
    "Watch",
    "check_columns",
    "check_direction",
    "decide",
    "find_separation",
]


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether one column (or a joint problem) has a direction of recession.

    Attributes
    ----------
    separation : Separation or None
        The direction, if there is one.
    exists : bool or None
        Whether there is one; None: not decided (time, size, or margins too small to tell).
    weights : ndarray of shape (n, rivals) or None
        If there is none, the proof: a positive weight for each margin such that the weighted margins of
        *every* direction (rows ``a`` in scaled coordinates with largest entry 1) have the sum 0.
    residual : float
        How far that sum can be from 0 for directions with scaled entries within −1 … 1.
    """

    separation: Separation | None
    exists: bool | None
    weights: Array | None = None
    residual: float = np.inf


def decide(problem: Problem, *, max_time: float | None = None) -> tuple[Verdict, ...]:
    """Decide by linear programmes whether the maximum-likelihood estimate exists, column by column.

    A direction is returned only if `check_direction` confirms it; that there is none, only with weights that
    prove it. Where neither succeeds (time, size, margins within rounding of 0) the verdict is open.

    Parameters
    ----------
    problem : Problem
        Samples, codes and weights. The loss and the penalty play no part.
    max_time : float or None
        Most seconds in all.

    Returns
    -------
    tuple of Verdict
        One for each independent column, or a single one for a joint problem.
    """
    deadline = np.inf if max_time is None else time.perf_counter() + max_time
    scale = Scale.of(problem)
    return tuple(_decided(unit, scale, deadline) for unit in units(problem))


def _decided(unit: Unit, scale: Scale, deadline: float) -> Verdict:
    search = Search(unit, scale, deadline)
    if len(search.working[0]) == 0:
        return Verdict(None, None)
    direction = search.complete()
    if direction is not None:
        found = checked(unit, *direction)
        if found is not None and found.kind == "complete":
            return Verdict(found, True)
    some = search.some()
    if some.direction is not None:
        found = checked(unit, *some.direction)
        return Verdict(found, True if found is not None else None)
    return Verdict(None, some.exists, some.weights, some.residual)


def find_separation(
    problem: Problem, *, max_time: float | None = None
) -> Separation | Literal["unknown"] | None:
    """Decide whether the maximum-likelihood estimate exists; see `decide` for proofs and single columns.

    Returns
    -------
    Separation, None or "unknown"
        A direction of recession (of the first column that has one); None: proven that there is none;
        "unknown": not decided.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.problem import Problem
    >>> y, codes = np.array([0, 0, 1, 1], dtype=np.int32), np.array([[-1], [1]], dtype=np.int8)
    >>> apart = Problem(view_of(np.array([[0.0], [1.0], [1.0], [2.0]])), y, codes)
    >>> find_separation(apart).kind
    'quasi-complete'
    >>> mixed = Problem(view_of(np.array([[0.0], [2.0], [1.0], [3.0]])), y, codes)
    >>> find_separation(mixed) is None
    True
    """
    verdicts = decide(problem, max_time=max_time)
    for verdict in verdicts:
        if verdict.separation is not None:
            return verdict.separation
    return None if all(verdict.exists is False for verdict in verdicts) else "unknown"


class Watch:
    """Watches the iterates of a plain maximum-likelihood fit for separation.

    On separable data the iterates run away: the iterate itself ends up separating the classes (complete
    separation), or its changes tend to a direction of recession (quasi-complete separation). A check is tried

    - of the iterate, whenever the solver reports no training error, or without such reports now and then;
    - of the change since the last iterate and since the last check, polished, when weights still move by
      more than those of a converging Newton iteration; at iterations 4, 6, 9, 13, …, so that an ordinary fit
      has few of them.

    A check of a wrong candidate ends in the first block of the data. Whatever raises the suspicion, only what
    `check_direction` confirms is returned.

    A direction that leaves margins at 0 may be found before one that does not. In small problems linear
    programmes then decide; in others it is kept until iteration 9, and returned unless something better turns
    up (`settle` returns it if the fit ends earlier). "Quasi-complete" thus says of a large problem that no
    more has been found.

    Parameters
    ----------
    problem : Problem
        What is fitted.

    Attributes
    ----------
    found : Separation or None
        What has been proven and returned.
    """

    #: Most entries of all margins' rows for which linear programmes say how far a separation goes; while
    #: there is none they are asked, once, up to a fifth of it.
    SMALL = 50_000
    #: Iteration from which on a quasi-complete separation is returned.
    PATIENCE = 9

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.found: Separation | None = None
        self.iteration = 0
        self._next = 4
        self._last: Direction | None = None
        self._anchor: Direction | None = None
        self._kept: Separation | None = None
        self._open = list(units(problem))

    def update(
        self, coef: Array, intercept: Array, *, errors: Array | float | None = None
    ) -> Separation | None:
        """Take note of an iterate; return a separation as soon as one is proven.

        Parameters
        ----------
        coef : ndarray of shape (columns, d)
            The iterate's weights.
        intercept : ndarray of shape (columns,)
            Its intercepts.
        errors : float, ndarray of shape (columns,) or None
            Training errors at this iterate, in all or by column, if known: the number of samples that have a
            margin of at most 0.
        """
        if self.found is not None or not self._open:
            return self.found
        self.iteration += 1
        W = np.array(coef, dtype=np.float64).reshape(self.problem.columns, -1)
        b = np.resize(np.asarray(intercept, dtype=np.float64), self.problem.columns)
        due = self.iteration >= self._next
        wrong = None if errors is None else np.resize(errors, self.problem.columns)
        for unit in tuple(self._open):
            own = self._part(unit, (W, b))
            clean = due if wrong is None else bool(wrong[unit.column or 0] == 0)
            if (clean and self._keep(checked(unit, *own))) or (due and self._look(unit, own)):
                return self.found
        if self.iteration >= self.PATIENCE:
            self.settle()
        self._last = (W, b)
        if due or self._anchor is None:
            self._anchor = (W, b)
            self._next = self.iteration + max(2, self.iteration // 2) if due else self._next
        return self.found

    def settle(self) -> Separation | None:
        """Return what has been found, at the end of a fit also what was kept in hope of better."""
        self.found = self.found or self._kept
        return self.found

    def _keep(self, found: Separation | None, *, final: bool = False) -> bool:
        """Take note of a separation; return whether nothing better is to be expected."""
        if found is None:
            return False
        if final or found.kind == "complete":
            self.found = found
        elif self._kept is None or found.separated > self._kept.separated:
            self._kept = found
        return self.found is not None

    @staticmethod
    def _part(unit: Unit, direction: Direction) -> Direction:
        W, b = direction
        return (W, b) if unit.column is None else (W[[unit.column]], b[[unit.column]])

    def _changes(self, unit: Unit, own: Direction) -> Iterator[Direction]:
        """Yield the changes since the last iterate and since the last check."""
        for past in (self._last, self._anchor):
            if past is not None:
                W, b = self._part(unit, past)
                yield own[0] - W, own[1] - b

    def _moves(self, unit: Unit, own: Direction) -> bool:
        """Return whether some weight still changes by more than a part of itself."""
        part = 1.0 / (4 * self.iteration)
        change = next(self._changes(unit, own))
        return any(bool((np.abs(c) > part * np.abs(w)).any()) for c, w in zip(change, own, strict=True))

    def _look(self, unit: Unit, own: Direction) -> bool:
        """Check the changes and what is near them; let linear programmes decide where they are small."""
        if not self._moves(unit, own):
            return False
        late = self.iteration >= self.PATIENCE
        for change in self._changes(unit, own):
            direction = unit.normalised(*change)
            if direction is None or (self._kept is not None and not late):
                continue
            if self._keep(checked(unit, *direction)):
                return True
            low = noise(unit, direction)
            if low is not None:
                near = (checked(unit, *one) for one in polished(unit, self._scale, direction, low))
                if self._keep(next((found for found in near if found is not None), None)):
                    return True
        entries = unit.pairs * unit.dimension
        if entries <= self.SMALL if self._kept is not None else late and entries <= self.SMALL // 5:
            self._open.remove(unit)
            return self._keep(_decided(unit, self._scale, np.inf).separation or self._kept, final=True)
        return False

    @cached_property
    def _scale(self) -> Scale:
        return Scale.of(self.problem)
