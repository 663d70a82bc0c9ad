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
from separatrix.data.threads import in_threads, single_threaded
from separatrix.data.view import BLOCK_BYTES, Array, by_feature, padding
from separatrix.problem import Penalty, Problem
from separatrix.solvers._loop import Outcome
from separatrix.solvers._products import sparse_scores, sparse_transposed

#: Up to this size the slopes of all samples are kept for a second product; beyond it that product is made on
#: the way, for both signs of ``α`` apart.
_KEPT_BYTES = 64 << 20


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
    with single_threaded(problem.view.shape[0] * W.size):
        if problem.view.sparse and (not bound or 8 * problem.view.shape[0] * W.shape[0] <= _KEPT_BYTES):
            total, slopes = _sparse_totals(problem, W, b, bound)
        else:
            total, slopes = _totals(problem, W, b, bound), None
        n = max(1, total.samples)
        with np.errstate(over="ignore", invalid="ignore"):
            primal = float(total.losses.sum()) / n + problem.penalty.value(W)
            lower = _lower_bound(problem, total, slopes, n) if bound else None
    return Objective(
        primal,
        lower if lower is not None and np.isfinite(lower) else None,
        None if problem.targets is not None else total.mistakes,
        total.samples,
    )


def _short(problem: Problem, rows: slice) -> list[slice]:
    """Return parts of some rows, so few at a time that their scores stay within a block's bytes, too."""
    short = max(1, BLOCK_BYTES // (8 * problem.columns))
    return [slice(at, min(at + short, rows.stop)) for at in range(rows.start, rows.stop, short)]


def _totals(problem: Problem, W: Array, b: Array, bound: bool) -> _Sums:
    """Return the sums over all samples from one reading."""

    @np.errstate(over="ignore", invalid="ignore")
    def part(rows: slice, block: Any) -> _Sums:
        sums = []
        for few in _short(problem, rows):
            piece = block if few == rows else block[few.start - rows.start : few.stop - rows.start]
            own, alpha = _sums(problem, few, np.asarray(piece @ W.T) + b, bound)
            if bound:
                if problem.fit_intercept:
                    alpha = np.concatenate([np.maximum(alpha, 0.0), np.minimum(alpha, 0.0)], axis=1)
                own.products = np.asarray(piece.T @ alpha)
            sums.append(own)
        return sum(sums[1:], sums[0])

    result: _Sums = problem.view.map_sum(part, 16 * W.size)
    return result


def _sparse_totals(problem: Problem, W: Array, b: Array, bound: bool) -> tuple[_Sums, Array | None]:
    """Return the sums over sparse samples, without products, and every sample's slopes for these."""
    view, K, weights = problem.view, problem.columns, by_feature(problem.view, W)
    slopes = np.zeros((view.shape[0], padding(K))) if bound else None
    parts = view.parts()

    @np.errstate(over="ignore", invalid="ignore")
    def part(number: int) -> _Sums:
        sums = []
        for few in _short(problem, parts[number]):
            own, alpha = _sums(problem, few, sparse_scores(view, few, weights)[:, :K] + b, bound)
            if slopes is not None:
                slopes[few, :K] = alpha
            sums.append(own)
        return sum(sums[1:], sums[0])

    totals = list(in_threads(part, len(parts)))
    return sum(totals[1:], totals[0]), slopes


def _sums(problem: Problem, rows: slice, f: Array, bound: bool) -> tuple[_Sums, Any]:
    """Return what samples with scores ``f`` add to the sums, without products, and their ``α``."""
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
    every, K, alpha = np.ones(f.shape[0]), f.shape[1], None
    sides, conjugates = np.zeros((2, K)), np.zeros((2, K))
    if bound:
        slope = s * problem.loss.slope(argument)
        alpha = slope * y if problem.loss.of == "margin" else slope
        conjugate = alpha * f - losses
        if problem.fit_intercept:
            for side, members in enumerate((alpha > 0, alpha < 0)):
                sides[side] = every @ np.where(members, alpha, 0.0)
                conjugates[side] = every @ np.where(members, conjugate, 0.0)
        else:
            sides, conjugates = (every @ alpha)[None], (every @ conjugate)[None]
    samples = f.shape[0] if each is None else int(np.count_nonzero(each > 0))
    return _Sums(every @ losses, sides, conjugates, None, mistakes, samples), alpha


def _lower_bound(problem: Problem, total: _Sums, slopes: Array | None, n: int) -> float:
    """Return the sum over the columns of the bounds that the slopes prove."""
    K = problem.columns
    ratios = np.ones_like(total.sides)
    if problem.fit_intercept:
        weights = np.abs(total.sides)
        np.divide(weights.min(axis=0), weights, out=ratios, where=weights > 0)
    conjugate = (ratios * total.conjugates).sum(axis=0) / n
    if slopes is None:
        products = total.products.reshape(-1, *total.sides.shape)
        z = (ratios * products).sum(axis=1) / n
    else:
        if problem.fit_intercept:
            slopes[:, :K] *= np.where(slopes[:, :K] > 0, ratios[0], ratios[1])
        z = sparse_transposed(problem.view, slopes)[:, :K]
        z /= n
    return float(_shrunk(problem.penalty, conjugate, z).sum())


def _shrunk(penalty: Penalty, conjugate: Array, z: Array) -> Array:
    """Return each column's largest bound ``−τ c − R*(τ z)`` (from above: ``R*(τ z) ≤ τ² R*(z)``)."""
    if penalty.l2 <= 0:
        largest = np.maximum(z.max(axis=0, initial=0.0), -z.min(axis=0, initial=0.0))
        tau = np.minimum(1.0, np.divide(penalty.l1, largest, out=np.ones_like(largest), where=largest > 0))
        return np.asarray(np.maximum(0.0, -conjugate * tau))
    beyond = np.maximum(np.abs(z) - penalty.l1, 0.0) if penalty.l1 > 0 else z
    square = np.einsum("jk,jk->k", beyond, beyond) / (2.0 * penalty.l2)
    tau = np.divide(-conjugate, 2.0 * square, out=np.ones_like(square), where=square > 0)
    tau = np.clip(tau, 0.0, 1.0)
    return np.asarray(np.maximum(0.0, -tau * conjugate - tau**2 * square))


def certify(objective: Objective, outcome: Outcome, message: str) -> Certificate:
    """Return the certificate of a fit that minimised ``P``."""
    primal, dual = objective.primal, objective.dual
    # Rounding may put the bound of an exact optimum above it by a few units in the last place.
    gap = None if dual is None else max(primal - dual, 0.0)
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
