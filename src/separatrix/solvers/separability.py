r"""Are two classes separable? A verdict with proof.

Either a hyperplane separates them, and the one with the widest margin is found with bounds of its width from
both sides (``hulls``); or convex combinations of the two classes coincide, up to a stated tolerance. Numbers
of finite precision leave a third case between the two: hulls so near to each other that neither can be shown.

- *separable*: every sample is on the right side by more than the rounding error of its score.
- *touching* (linear kernel only): combinations coincide, and yet a hyperplane has no sample on its wrong
  side, only some on it, up to rounding.
- *inseparable*: combinations coincide.
- *unknown*: neither could be shown, for lack of time or of digits.

Whether the hulls meet does not depend on the scale of the features, their distance does. Combinations
therefore count as coinciding if they agree in every feature to `LINEAR_ZERO` of its range. In a kernel's
feature space distances are known to the square root of the rounding error only: there they count as
coinciding from `KERNEL_ZERO` of the largest ``‖φ(x)‖`` on.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.certificate import Separation
from separatrix.data.threads import asking, single_threaded
from separatrix.data.view import Array, DataView
from separatrix.problem import Problem
from separatrix.solvers._direction import checked
from separatrix.solvers._loop import Below, Control, OutOfTimeError, run
from separatrix.solvers._pairs import EPS, Scale, Unit
from separatrix.solvers._programmes import Search
from separatrix.solvers.hulls import LinearRows, NearestPoints, Similarities
from separatrix.solvers.joint_hull import JointHull
from separatrix.solvers.separation import decide

#: Differences of convex combinations, relative to each feature's range, that count as 0.
LINEAR_ZERO = 1e-11
#: Distances in a feature space, relative to the largest length of a sample, that count as 0.
KERNEL_ZERO = 1e-7
#: Relative gap of the widest margin that is aimed at.
GAP = 1e-9
#: Most entries of the rows of a joint linear programme that is asked only whether hulls just touch.
_SMALL_PROGRAMME = 200_000
_MOST_ROUNDS = 10_000


class Clock:
    """How much time is left for all questions together; after Ctrl-C none."""

    def __init__(self, max_time: float | None = None) -> None:
        self.control = Control(max_time)

    @property
    def left(self) -> float | None:
        """Seconds left; None: no limit."""
        if self.control.deadline is None:
            return None
        return max(0.0, self.control.deadline - self.control.started - self.control.seconds())

    @property
    def over(self) -> bool:
        """Whether to ask nothing more."""
        return self.control.expired()

    def run(self, search: NearestPoints | JointHull, tol: float) -> None:
        """Drive a search until its relative gap is below ``tol`` or the time is over."""
        if self.over:
            return
        outcome = run(search, Below(tol), max_iter=_MOST_ROUNDS, max_time=self.left)
        self.control.interrupted |= outcome.status == "interrupted"


@dataclass(frozen=True, eq=False)
class PairVerdict:
    """What is known about two classes.

    Attributes
    ----------
    verdict : str
        "separable", "touching", "inseparable" or "unknown".
    support, weights : ndarray
        Numbers of the samples in the nearest (or coinciding) convex combinations, and their weights, not
        negative and of sum 1 in each class.
    lower, upper : float
        Bounds of the distance between the hulls, which is the width of the widest margin.
    intercept : float or None
        Constant term of the hyperplane, scaled such that the nearest samples have scores of ±1 (touching: the
        weights have length 1); None where there is no hyperplane.
    coef : ndarray of shape (d,) or None
        Its weights, for the linear kernel. In a feature space they are ``factor`` times the difference of the
        two combinations.
    factor : float or None
        See ``coef``.
    residual, tolerance : float
        How far the combinations are apart, and up to where they count as coinciding: relative to the
        features' ranges for the linear kernel, to the largest length of a sample in a feature space.
    """

    verdict: str
    support: Array
    weights: Array
    lower: float
    upper: float
    intercept: float | None = None
    coef: Array | None = None
    factor: float | None = None
    residual: float = np.inf
    tolerance: float = LINEAR_ZERO


def unasked(tolerance: float = LINEAR_ZERO) -> PairVerdict:
    """Return what is known where time was over before a search began: nothing."""
    none, nothing = np.empty(0, dtype=np.intp), np.empty(0)
    return PairVerdict("unknown", none, nothing, 0.0, np.inf, tolerance=tolerance)


def two_linear(view: DataView, positive: Array, clock: Clock) -> PairVerdict:
    """Decide whether a hyperplane separates the samples of a mask from the others.

    Parameters
    ----------
    view : DataView
        The samples.
    positive : ndarray of bool of shape (n,)
        Which are on the positive side.
    clock : Clock
        When to give up.
    """
    problem = Problem(view, positive.astype(np.int32), np.array([[-1], [1]], dtype=np.int8))
    unit = Unit(problem, 0)
    first, second = np.flatnonzero(positive), np.flatnonzero(~positive)
    try:
        with asking(clock.control.ask):
            centre, width = centre_and_width(view)
            plain = NearestPoints(LinearRows(view, centre), first, second, tol=GAP)
    except OutOfTimeError:
        return unasked()
    clock.run(plain, GAP)
    found = _hyperplane(unit, plain)
    searches = [plain]
    if found is None and not clock.over:
        # The same hulls with all features of one range: whether they meet is the same question.
        common: dict[str, Any] = {"tol": GAP, "zero": 0.01 * LINEAR_ZERO, "start": _whole(plain)}
        with suppress(OutOfTimeError):
            with asking(clock.control.ask):
                scaled = NearestPoints(LinearRows(view, centre, width), first, second, **common)
            clock.run(scaled, GAP)
            found = _hyperplane(unit, scaled)
            searches.append(scaled)
    residuals = [_residual(search, width) for search in searches]
    best = int(np.argmin(residuals))
    if found is None and residuals[best] > LINEAR_ZERO and not clock.over:
        direction = _programme(unit, clock).complete()
        found = None if direction is None else checked(unit, *direction)
    if found is not None and found.kind == "complete":
        return _separable(found, plain)
    search = searches[best]
    if residuals[best] <= LINEAR_ZERO:
        weak = None if clock.over else _touching(unit, search, clock)
        support, weights = _combinations(search)
        return PairVerdict(
            "inseparable" if weak is None else "touching",
            support,
            weights,
            lower=0.0,
            upper=plain.upper,
            coef=None if weak is None else weak.coef[0],
            intercept=None if weak is None else float(weak.intercept[0]),
            residual=residuals[best],
        )
    support, weights = _combinations(plain)
    return PairVerdict("unknown", support, weights, max(0.0, plain.lower), plain.upper, residual=residuals[0])


def centre_and_width(view: DataView) -> tuple[Array, Array]:
    """Return the middle of each feature's range and its length, 1 where all values are equal."""
    low, high = np.full(view.shape[1], np.inf), np.full(view.shape[1], -np.inf)
    for _, block in view.blocks():
        least, most = block.min(axis=0), block.max(axis=0)
        if view.sparse:
            least, most = least.toarray().ravel(), most.toarray().ravel()
        np.minimum(low, least, out=low)
        np.maximum(high, most, out=high)
    width = high - low
    return low / 2 + high / 2, np.where(width > 0, width, 1.0)


def _whole(search: NearestPoints) -> Array:
    nearest = search.nearest
    return np.concatenate([nearest.first, nearest.second])


def _combinations(search: NearestPoints) -> tuple[Array, Array]:
    used = np.flatnonzero(search.a)
    order = np.argsort(search.index[used])
    return search.index[used][order], search.a[used][order]


def _difference(search: NearestPoints) -> Array:
    """Return the difference of the combinations in the search's own coordinates."""
    used = np.flatnonzero(search.a)
    rows = search.matrix
    assert isinstance(rows, LinearRows)
    return rows.weights(search.index[used], (search.signs * search.a)[used])


def _residual(search: NearestPoints, width: Array) -> float:
    rows = search.matrix
    assert isinstance(rows, LinearRows)
    return float(np.abs(_difference(search) * rows.width / width).max(initial=0.0))


def _hyperplane(unit: Unit, search: NearestPoints) -> Separation | None:
    """Return the hyperplane midway between the nearest points, if it separates beyond rounding."""
    if not search.lower > 0:
        return None
    rows = search.matrix
    assert isinstance(rows, LinearRows)
    w = _difference(search) / rows.width
    b = -search.nearest.threshold - float(w @ rows.centre)
    found = checked(unit, w[None], np.array([b]))
    return found if found is not None and found.kind == "complete" else None


def _separable(found: Separation, search: NearestPoints) -> PairVerdict:
    support, weights = _combinations(search)
    return PairVerdict(
        "separable",
        support,
        weights,
        lower=2 * found.margin,
        upper=max(search.upper, 2 * found.margin),
        coef=found.coef[0] / found.margin,
        intercept=float(found.intercept[0] / found.margin),
    )


def _programme(unit: Unit, clock: Clock) -> Search:
    deadline = np.inf if clock.control.deadline is None else clock.control.deadline
    return Search(unit, Scale.of(unit.problem), deadline)


def _touching(unit: Unit, search: NearestPoints, clock: Clock) -> Separation | None:
    """Return a hyperplane without samples on its wrong side, if there is one that is not all of space.

    All samples in the coinciding combinations lie on it. Where these span the whole space there is none.
    """
    rows = search.matrix
    assert isinstance(rows, LinearRows)
    support = search.index[np.flatnonzero(search.a)]
    d = unit.problem.view.shape[1]
    if len(support) > d:
        _, width = centre_and_width(unit.problem.view)
        points = rows.points(support) * rows.width / width
        with single_threaded(points.size * d):
            spread = np.linalg.svd(points[1:] - points[0], compute_uv=False)
        if len(spread) >= d and spread[d - 1] > 1e-9 * spread[0]:
            return None
    some = _programme(unit, clock).some()
    return None if some.direction is None else checked(unit, *some.direction)


def two_kernel(matrix: Similarities, positive: Array, negative: Array, clock: Clock) -> PairVerdict:
    """Decide whether a hyperplane in the feature space separates the samples of two sets of numbers."""
    try:
        with asking(clock.control.ask):
            search = NearestPoints(matrix, positive, negative, tol=GAP, zero=KERNEL_ZERO)
    except OutOfTimeError:
        return unasked(KERNEL_ZERO)
    clock.run(search, GAP)
    support, weights = _combinations(search)
    residual = search.upper / search.extent
    if search.upper > 0 and search.lower > kernel_rounding(search.extent, len(support)) / search.upper:
        factor = 2 / (search.lower * search.upper)
        return PairVerdict(
            "separable",
            support,
            weights,
            search.lower,
            search.upper,
            intercept=-factor * search.nearest.threshold,
            factor=factor,
            residual=residual,
            tolerance=KERNEL_ZERO,
        )
    verdict = "inseparable" if search.meets else "unknown"
    lower = 0.0 if search.meets else max(0.0, search.lower)
    return PairVerdict(
        verdict, support, weights, lower, search.upper, residual=residual, tolerance=KERNEL_ZERO
    )


def kernel_rounding(extent: float, terms: int) -> float:
    """Return a bound of the rounding error of ``Σ a_i k(x_i, x) − Σ b_j k(x_j, x)`` for weights of sum 1.

    For differences of two such scores; each kernel value is taken to be right to some 16 units of its last
    place, relative to the largest.
    """
    return 5 * (terms + 16) * EPS * extent**2


@dataclass(frozen=True, eq=False)
class JointVerdict:
    """Whether ``K`` discriminants exist, the largest of which is each sample's own class's.

    Attributes
    ----------
    verdict : str
        "separable", "touching", "inseparable" or "unknown".
    coef : ndarray of shape (K, d) or None
        Weights of the discriminants (linear kernel); in a feature space ``coef`` is (K, n): one coefficient
        per sample.
    intercept : ndarray of shape (K,) or None
        Their constant terms.
    weights : ndarray of shape (n, K) or None
        The proof that there are none: a weight ``λ ≥ 0`` for each sample and rival. With ``τ_ik = −λ_ik`` for
        rivals and ``τ_ic = Σ_k λ_ik`` for the own class, ``Σ_i τ_ik (x_i, 1) = 0`` for each class.
    residual : float
        How far these sums are from 0.
    """

    verdict: str
    coef: Array | None = None
    intercept: Array | None = None
    weights: Array | None = None
    residual: float = np.inf


def joint_linear(view: DataView, classes: Array, clock: Clock) -> JointVerdict:
    """Decide jointly, in coordinates in which every feature has one range; small cases by programmes, too."""
    K = int(classes.max()) + 1
    codes = (2 * np.eye(K, dtype=np.int8) - 1).astype(np.int8)
    problem = Problem(view, classes.astype(np.int32), codes, joint=True)
    try:
        with asking(clock.control.ask):
            rows = LinearRows(view, *centre_and_width(view))
            search = JointHull(rows, classes, zero=LINEAR_ZERO)
    except OutOfTimeError:
        return JointVerdict("unknown")
    clock.run(search, 0.5)
    if search.least > 0:
        coef = rows.weights(np.arange(view.shape[0]), search.tau).T / rows.width
        found = checked(Unit(problem), coef, search.intercept - coef @ rows.centre)
        if found is not None and found.kind == "complete":
            return JointVerdict("separable", coef=found.coef, intercept=found.intercept)
    meets = search.length <= LINEAR_ZERO
    if not clock.over and (not meets or Unit(problem).pairs * Unit(problem).dimension <= _SMALL_PROGRAMME):
        (verdict,) = decide(problem, max_time=clock.left)
        found = verdict.separation
        if found is not None:
            kind = "separable" if found.kind == "complete" else "touching"
            return JointVerdict(kind, coef=found.coef, intercept=found.intercept)
    if meets:
        return JointVerdict("inseparable", weights=search.weights, residual=search.length)
    return JointVerdict("unknown")


def joint_kernel(matrix: Similarities, classes: Array, clock: Clock) -> JointVerdict:
    """Decide jointly in a feature space."""
    try:
        with asking(clock.control.ask):
            search = JointHull(matrix, classes, zero=KERNEL_ZERO)
    except OutOfTimeError:
        return JointVerdict("unknown")
    clock.run(search, 0.5)
    support = int(np.count_nonzero(search.tau.any(axis=1)))
    if search.least > kernel_rounding(search.extent, support):
        return JointVerdict("separable", coef=search.tau.T, intercept=search.intercept)
    if search.length <= KERNEL_ZERO:
        return JointVerdict("inseparable", weights=search.weights, residual=search.length)
    return JointVerdict("unknown")
