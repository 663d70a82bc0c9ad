"""Linear separation: when the maximum-likelihood estimate does not exist, found and proven.

The plain maximum-likelihood estimate of logistic and softmax regression exists exactly if there is no
*direction of recession*: weights ``δ`` and intercepts ``β`` along which no margin falls and some margin grows
(Albert and Anderson 1984). Margins are ``y (δ·x + β)`` for a binary column and
``(δ_c − δ_k)·x + β_c − β_k`` for each rival ``k`` of the own class ``c`` in a joint problem; samples of weight 0
have none. All margins positive: *complete* separation. Some of them 0: *quasi-complete* separation, which
includes that only one class of several is separable from the rest.

What is proven and what is numerical:

- Complete separation is proven: each margin exceeds the bound of its rounding error.
- Quasi-complete separation needs margins that are exactly 0, which floating-point numbers cannot show: margins
  from ``−4 u`` times the sum of the sizes of their terms on count as 0, ``u = (d + 2) ε`` being the bound of the
  rounding error (about 1e-13 for 100 features). One margin at least must exceed 1000 times that.
- That there is no direction is shown by weights ``λ > 0`` with ``Σ λ_i a_i = 0`` over all margins' rows ``a_i``
  (`Verdict.weights`), up to the residual that `Verdict.residual` tells.

References
----------
Albert and Anderson, *On the existence of maximum likelihood estimates in logistic regression models*,
Biometrika 71, 1984. Konis, *Linear programming algorithms for detecting separated data in binary logistic
regression models*, Oxford, 2007.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from separatrix.data.view import Array
from separatrix.problem import Problem
from separatrix.solvers._judge import boundary_norms
from separatrix.solvers._pairs import Direction, Scale, Unit, rounding, units
from separatrix.solvers._recession import Search, polished, tolerance

#: How far above "counts as 0" a margin must be to count as positive in quasi-complete separation.
CLEAR = 1000.0

Groups = tuple[tuple[int, ...], tuple[int, ...]]
"""Two groups of classes, by number."""


@dataclass(frozen=True, eq=False)
class Separation:
    """A direction along which the likelihood grows for ever.

    Attributes
    ----------
    kind : str
        "complete" (proven beyond rounding) or "quasi-complete" (zeros up to rounding).
    coef : ndarray of shape (columns, d)
        The direction's weights, of length 1; columns of a joint problem sum to 0. One row for a binary column.
    intercept : ndarray of shape (columns,)
        Its intercepts.
    margin : float
        Smallest signed distance of a sample to a boundary that concerns it; 0 for quasi-complete separation,
        ``inf`` where the direction has intercepts only (there is but one class).
    separated : int
        Samples with a positive margin against every rival.
    samples : int
        Samples that count.
    column : int or None
        The binary column that is separated; None for a joint problem.
    pairs : tuple
        Which groups of classes the direction pulls apart: pairs of tuples of class numbers.
    features : tuple of int
        The features with the largest part in the direction, weights times range, the largest first.
    """

    kind: str
    coef: Array
    intercept: Array
    margin: float
    separated: int
    samples: int
    column: int | None = None
    pairs: tuple[Groups, ...] = ()
    features: tuple[int, ...] = ()

    def message(self, classes: Sequence[Any] | Array, features: Sequence[str] | None = None) -> str:
        """Return fact, classes, features and remedy in words.

        Parameters
        ----------
        classes : sequence
            The classes' names, by number.
        features : sequence of str or None
            The features' names.
        """
        if self.kind == "complete":
            fact = f"a hyperplane separates {self._who(classes)} completely"
            if len(self.pairs) > 1:
                fact = f"hyperplanes separate {self._who(classes)} completely"
        else:
            fact = (
                f"{self._who(classes)} are separable but for samples on the boundary "
                f"({self.separated:,} of {self.samples:,} samples lie beside it)"
            )
        named = [f"feature {j}" if features is None else str(features[j]) for j in self.features]
        along = f", mostly by {', '.join(named)}" if named else ""
        return (
            f"{fact}{along}: the maximum-likelihood estimate does not exist, its weights grow for ever. "
            "Choose a finite C (a penalty) to get a finite estimate."
        )

    def _who(self, classes: Sequence[Any] | Array) -> str:
        def names(group: tuple[int, ...]) -> str:
            shown = [str(classes[k]) for k in group[:4]]
            return ", ".join(shown) + (f", … ({len(group)} classes)" if len(group) > 4 else "")

        joined = [
            f"{names(a)} and {names(b) if self._others(a, b, len(classes)) else 'the other classes'}"
            for a, b in self.pairs[:3]
        ]
        more = len(self.pairs) - 3
        return "; ".join(joined) + (f"; and {more} more pairs" if more > 0 else "")

    @staticmethod
    def _others(a: tuple[int, ...], b: tuple[int, ...], n_classes: int) -> bool:
        """Return whether the second group is named in full rather than as all the others."""
        return len(b) == 1 or len(a) + len(b) < n_classes


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
        If there is none, the proof: a positive weight for each margin such that the margins of *every*
        direction, each divided by the largest entry of its row in scaled coordinates, have the weighted sum 0.
    residual : float
        How far that sum can be from 0 for directions with scaled entries within −1 … 1.
    """

    separation: Separation | None
    exists: bool | None
    weights: Array | None = None
    residual: float = np.inf


# --- Checking a direction -------------------------------------------------------------------------------------


@dataclass
class _Tally:
    """What a pass over the margins of a direction has seen."""

    complete: bool
    clear: Array
    separated: int = 0
    samples: int = 0
    distance: float = np.inf


def check_column(problem: Problem, column: int, coef: Array, intercept: Array) -> Separation | None:
    """Return what the direction proves about one column of independent ones; see `check_direction`."""
    return _checked(Unit(problem, column), coef, intercept)


def check_columns(problem: Problem, coef: Array, intercept: Array) -> tuple[Separation | None, ...]:
    """Return what each column's direction proves; a joint problem has one verdict for all its columns."""
    if problem.joint:
        return (_checked(Unit(problem), coef, intercept),)
    W, b = np.atleast_2d(coef), np.resize(intercept, problem.columns)
    return tuple(check_column(problem, j, W[j], b[j : j + 1]) for j in range(problem.columns))


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


def _checked(unit: Unit, coef: Array, intercept: Array) -> Separation | None:
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
        return ((negative, positive),)
    both = tally.clear | tally.clear.T
    K = both.shape[0]
    return tuple(((k,), (l,)) for k in range(K) for l in range(k + 1, K) if both[k, l])


def _strongest(problem: Problem, coef: Array, most: int = 3) -> tuple[int, ...]:
    """Return the features with the largest weights times range, down to a tenth of the largest."""
    scale = Scale.of(problem)
    part = np.abs(coef).max(axis=0) * scale.width
    order = np.argsort(-part, kind="stable")[:most]
    return tuple(int(j) for j in order if part[j] > 0.1 * part[order[0]])


# --- Deciding -------------------------------------------------------------------------------------------------


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
        found = _checked(unit, *direction)
        if found is not None and found.kind == "complete":
            return Verdict(found, True)
    some = search.some()
    if some.direction is not None:
        found = _checked(unit, *some.direction)
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


# --- Watching a fit -------------------------------------------------------------------------------------------


class Watch:
    """Watches the iterates of a plain maximum-likelihood fit for separation.

    On separable data the iterates run away: the iterate itself ends up separating the classes (complete
    separation), or its changes tend to a direction of recession (quasi-complete separation). A check is tried

    - of the iterate, whenever the solver reports no training error, or without such reports now and then;
    - of the change since some iterations ago, polished, when weights still move by more than a converging
      Newton iteration's would; at iterations 4, 6, 9, 13, … so that an ordinary fit has few of them.

    A check of a wrong candidate ends in the first block of the data. Once, in a small problem that still moves
    after eight iterations, linear programmes decide.

    Parameters
    ----------
    problem : Problem
        What is fitted.

    Attributes
    ----------
    found : Separation or None
        What has been proven.
    """

    #: Most entries of all margins' rows for which linear programmes are tried within a fit.
    SMALL = 200_000

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.found: Separation | None = None
        self.iteration = 0
        self._next = 4
        self._past: list[Direction] = []
        self._scale: Scale | None = None
        self._open = list(units(problem))

    def update(self, coef: Array, intercept: Array, *, errors: Array | float | None = None) -> Separation | None:
        """Take note of an iterate; return a separation as soon as one is proven.

        Parameters
        ----------
        coef : ndarray of shape (columns, d)
            The iterate's weights.
        intercept : ndarray of shape (columns,)
            Its intercepts.
        errors : float, ndarray of shape (columns,) or None
            Training errors at this iterate, of all or by column, if known: samples whose margin against a rival
            is not positive.
        """
        if self.found is not None or not self._open:
            return self.found
        self.iteration += 1
        W, b = np.array(coef, dtype=np.float64, ndmin=2), np.array(intercept, dtype=np.float64, ndmin=1)
        if self.iteration > 1 or errors is not None:
            due = self.iteration >= self._next
            wrong = None if errors is None else np.resize(errors, self.problem.columns)
            for unit in tuple(self._open):
                own = self._own(unit, W, b)
                column = unit.column or 0
                if (due and wrong is None) or (wrong is not None and wrong[column] == 0):
                    self.found = self.found or _checked(unit, *own)
                if self.found is None and due and self._moves(unit, own):
                    self.found = self._look(unit, own)
            if due:
                self._next = self.iteration + max(2, self.iteration // 2)
        # The last iterate, and one from about half the way: slow solvers need the longer distance.
        self._past = [*self._past[-1:], (W, b)] if self.iteration % 4 else [*self._past, (W, b)][-3:]
        return self.found

    @staticmethod
    def _own(unit: Unit, W: Array, b: Array) -> Direction:
        return (W, b) if unit.column is None else (W[unit.column : unit.column + 1], b[unit.column : unit.column + 1])

    def _changes(self, unit: Unit, own: Direction) -> Iterator[Direction]:
        for past in reversed(self._past):
            W, b = self._own(unit, *past)
            yield own[0] - W, own[1] - b

    def _moves(self, unit: Unit, own: Direction) -> bool:
        """Return whether some weight still changes by more than a part of itself."""
        change = next(self._changes(unit, own))
        part = 1.0 / (4 * self.iteration)
        return any(bool((np.abs(c) > part * np.abs(w)).any()) for c, w in zip(change, own, strict=True))

    def _look(self, unit: Unit, own: Direction) -> Separation | None:
        if self._scale is None:
            self._scale = Scale.of(self.problem)
        for change in self._changes(unit, own):
            direction = unit.normalised(*change)
            if direction is None:
                continue
            found = _checked(unit, *direction)
            for candidate in polished(unit, self._scale, direction) if found is None else ():
                found = found or _checked(unit, *candidate)
            if found is not None:
                return found
        if self.iteration >= 8 and unit.pairs * unit.dimension <= self.SMALL:
            verdict = _decided(unit, self._scale, np.inf)
            if verdict.exists is not None:
                self._open.remove(unit)
            return verdict.separation
        return None
