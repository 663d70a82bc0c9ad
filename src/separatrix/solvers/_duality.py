r"""Objective and duality gap of a linear model, from the weights that a fit returns.

Each column minimises ``P(w, b) = (1/n) Σ_i s_i l_i(f_i) + R(w)``, ``f_i = w·x_i + b``,
``R(w) = l1 ‖w‖₁ + ½ l2 ‖w‖²``. For any ``α`` with ``Σ_i α_i = 0`` (if there is an intercept)

    D(α) = −(1/n) Σ_i s_i l_i*(n α_i / s_i) − R*(−Σ_i α_i x_i)  ≤  min P.

The slopes at the returned scores give a point, ``α_i = s_i l_i'(f_i) / n``, and there the conjugate is
``l_i*(l_i') = l_i' f_i − l_i`` (Fenchel–Young with equality), so that every convex loss has one. Two changes
make it feasible and better. They only shrink: all losses here have minimum 0, so ``l_i*(0) = 0`` and by
convexity ``l_i*(ρ a) ≤ ρ l_i*(a)`` for ``0 ≤ ρ ≤ 1``, which keeps the bound proven without another reading:

- the intercept's constraint: of the positive and the negative ``α`` the heavier side is multiplied by the
  ratio of the two sums;
- all are multiplied by the ``τ ≤ 1`` that gives the largest bound, or, for a pure L1 penalty, by the one
  that brings ``max_j |Σ_i α_i x_ij|`` down to ``l1``, where ``R*`` is finite.

Without a penalty no point is at hand, and there is no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.certificate import Certificate
from separatrix.data.threads import single_threaded
from separatrix.data.view import BLOCK_BYTES, Array
from separatrix.problem import Penalty, Problem
from separatrix.solvers._loop import Outcome


@dataclass
class Objective:
    """What a set of weights achieves: objective, proven lower bound, wrong decisions, samples."""

    primal: float
    dual: float | None
    mistakes: float | None
    samples: int


@dataclass
class _Sums:
    """Sums over samples; a column per score column, the positive side of ``α`` above the negative."""

    losses: Array
    sides: Array  # (sides, columns): sums of α
    conjugates: Array  # (sides, columns)
    products: Any  # (features, sides * columns): Σ α x, or None
    mistakes: float
    samples: int

    def __add__(self, other: _Sums) -> _Sums:
        # Each is added once and then forgotten: no need for new arrays, which may be large.
        self.losses += other.losses
        self.sides += other.sides
        self.conjugates += other.conjugates
        if self.products is not None:
            self.products += other.products
        self.mistakes += other.mistakes
        self.samples += other.samples
        return self


def measure(problem: Problem, coef: Array, intercept: Array, *, bound: bool = True) -> Objective:
    """Return what these weights achieve; without ``bound`` one product with the data is enough."""
    W, b = np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64)
    bound = bound and bool(problem.penalty) and problem.loss.convex
    short = max(1, BLOCK_BYTES // (8 * problem.columns))

    def part(rows: slice, block: Any) -> _Sums:
        # So few rows at a time that their scores stay within a block's bytes, too.
        starts = range(rows.start, rows.stop, short)
        pieces = (slice(start, min(start + short, rows.stop)) for start in starts)
        sums = [
            _sums(problem, piece, block[piece.start - rows.start : piece.stop - rows.start], W, b, bound)
            if len(starts) > 1
            else _sums(problem, piece, block, W, b, bound)
            for piece in pieces
        ]
        return sum(sums[1:], sums[0])

    with single_threaded(problem.view.shape[0] * W.size):
        total = problem.view.map_sum(part)
    n = max(1, total.samples)
    with np.errstate(over="ignore", invalid="ignore"):
        primal = float(total.losses.sum()) / n + problem.penalty.value(W)
        lower = _lower_bound(problem, total, n) if bound else None
    return Objective(
        primal,
        lower if lower is not None and np.isfinite(lower) else None,
        None if problem.targets is not None else total.mistakes,
        total.samples,
    )


@np.errstate(over="ignore", invalid="ignore")
def _sums(problem: Problem, rows: slice, block: Any, W: Array, b: Array, bound: bool) -> _Sums:
    f = np.asarray(block @ W.T) + b
    each = None if problem.weights is None else problem.weights[rows]
    s: Any = 1.0 if each is None else each[:, None]
    mistakes = 0.0
    if problem.targets is not None:
        y = problem.targets[rows][:, None]
    else:
        classes = problem.classes[rows]
        y = problem.codes[classes]
        right = f.argmax(axis=1) == classes if problem.largest_wins else ((f >= 0) == (y > 0)).all(axis=1)
        mistakes = float(np.sum(~right if each is None else each[~right]))
        if problem.factors is not None:
            s = s * problem.factors[classes]
    argument = y * f if problem.loss.of == "margin" else f - y
    losses = s * problem.loss.value(argument)
    every, K = np.ones(f.shape[0]), W.shape[0]
    sides, conjugates, products = np.zeros((2, K)), np.zeros((2, K)), None
    if bound:
        slope = s * problem.loss.slope(argument)
        alpha = slope * y if problem.loss.of == "margin" else slope
        conjugate = alpha * f - losses
        if problem.fit_intercept:
            alpha = np.concatenate([np.maximum(alpha, 0.0), np.minimum(alpha, 0.0)], axis=1)
            conjugate = np.where(alpha != 0, np.tile(conjugate, 2), 0.0)
        sides, conjugates = (every @ alpha).reshape(-1, K), (every @ conjugate).reshape(-1, K)
        products = np.asarray(block.T @ alpha)
    samples = f.shape[0] if each is None else int(np.count_nonzero(each > 0))
    return _Sums(every @ losses, sides, conjugates, products, mistakes, samples)


def _lower_bound(problem: Problem, total: _Sums, n: int) -> float:
    """Return the sum over the columns of the bounds that the slopes prove."""
    ratios = np.ones_like(total.sides)
    if problem.fit_intercept:
        weights = np.abs(total.sides)
        np.divide(weights.min(axis=0), weights, out=ratios, where=weights > 0)
    conjugate = (ratios * total.conjugates).sum(axis=0) / n
    products = total.products.reshape(-1, *total.sides.shape)
    z = (ratios * products).sum(axis=1) / n
    bounds = [_shrunk(problem.penalty, c, z[:, k]) for k, c in enumerate(conjugate)]
    return float(sum(bounds))


def _shrunk(penalty: Penalty, conjugate: float, z: Array) -> float:
    """Return the largest of the bounds ``−τ c − R*(τ z)`` (from above: ``R*(τ z) ≤ τ² R*(z)``)."""
    beyond = np.maximum(np.abs(z) - penalty.l1, 0.0)
    if penalty.l2 <= 0:
        largest = float(np.max(np.abs(z), initial=0.0))
        return max(0.0, -conjugate * min(1.0, penalty.l1 / largest if largest > 0 else 1.0))
    square = float(beyond @ beyond) / (2.0 * penalty.l2)
    tau = 1.0 if square <= 0 else min(1.0, max(0.0, -conjugate / (2.0 * square)))
    return max(0.0, -tau * conjugate - tau**2 * square)


def certify(objective: Objective, outcome: Outcome, message: str) -> Certificate:
    """Return the certificate of a fit that minimised ``P``."""
    primal, dual = objective.primal, objective.dual
    # Rounding may put the bound of an exact optimum above it by a few units in the last place.
    gap = None if dual is None else max(0.0, primal - dual)
    return Certificate(
        status=outcome.status,
        message=message,
        iterations=outcome.iterations,
        seconds=outcome.seconds,
        primal=primal,
        dual=None if dual is None else min(dual, primal),
        gap=gap,
        relative_gap=None if gap is None else (gap / abs(primal) if primal != 0 else 0.0),
        training_errors=objective.mistakes,
        samples=objective.samples,
    )
