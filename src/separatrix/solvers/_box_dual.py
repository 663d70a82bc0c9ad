r"""The dual of linear support vector machines: bounds, responses and the certificate.

Every column minimises, over its weights ``w`` and constant ``b``,

    P(w, b) = ½‖w‖² + b²/(2γ²) + Σ_i φ_i(w·x_i + b),     φ_i(f) = max_v [v (t_i − f) − ε|v| − ½ δ_i v²]

with ``v`` from a box: ``[0, U_i]`` or ``[−U_i, 0]`` by the sample's side for the hinge loss (``t = ±1``,
``ε = 0``), ``[−U_i, U_i]`` for the ε-insensitive loss, ``U_i = C s_i``, ``δ = 0``. Squared losses have no
upper
end but ``δ_i = 1/(2 U_i)``. The intercept is a weight of a constant feature γ, or free (``b²`` is then
missing),
or none.
Any ``v`` in the box, with ``Σ v_i = 0`` where the intercept is free, proves

    D(v) = Σ_i [v_i t_i − ε|v_i| − ½ δ_i v_i²] − ½‖Σ v_i x_i‖² − (γ²/2) (Σ v_i)²  ≤  min P.

With an L1 penalty, ``‖w‖₁ + |b|/γ`` instead of the squares, the last two terms are missing, and ``v`` must
have ``|Σ v_i x_ij| ≤ 1`` for every feature and ``γ |Σ v_i| ≤ 1``, which a factor ``τ ≤ 1`` achieves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.certificate import Certificate, gap_in_words
from separatrix.data.threads import in_threads, single_threaded
from separatrix.data.view import BLOCK_BYTES, Array
from separatrix.problem import Problem
from separatrix.solvers._coordinate_rows import row_arguments
from separatrix.solvers._loop import Outcome
from separatrix.solvers._multiple import LONGER, best_multiple

LOSS_NAMES = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")
"""The losses whose dual is a box."""

#: Columns whose double precision weights fill two cache lines, which processors fetch together.
_LINE = 16


class BoxDual:
    """The numbers that define the dual of a problem.

    Parameters
    ----------
    problem : Problem
        Samples, codes or targets, weights and loss.
    C : float
        Factor of the loss.
    scaling : float or None
        γ, the constant feature whose penalised weight is the intercept; None for a free one. Nothing
        without ``problem.fit_intercept``.
    l1 : bool
        Whether the penalty is the sum of absolute values.

    Attributes
    ----------
    upper : ndarray of shape (n,)
        ``U_i``.
    squared : bool
        Whether the loss is squared.
    epsilon : float
        ε, 0 for the hinge losses.
    free : bool
        Whether the intercept is free.
    square : float
        γ², 0 without an intercept or with a free one.
    """

    def __init__(self, problem: Problem, C: float, scaling: float | None, l1: bool = False) -> None:
        name = problem.loss.name
        if name not in LOSS_NAMES:
            raise ValueError(f"the box dual needs one of the losses {', '.join(LOSS_NAMES)}; got {name!r}.")
        self.problem, self.view, self.C, self.scaling = problem, problem.view, float(C), scaling
        weights = problem.weights
        n = self.view.shape[0]
        self.upper = np.full(n, self.C) if weights is None else self.C * weights
        self.squared, self.l1 = name.startswith("squared"), l1
        self.epsilon = float(problem.loss.epsilon or 0.0)
        numbers = problem.targets
        self.numbers = None if numbers is None else np.ascontiguousarray(numbers, dtype=np.float64)
        self.columns = problem.columns
        self.free = problem.fit_intercept and scaling is None
        self.square = float(scaling) ** 2 if problem.fit_intercept and scaling is not None else 0.0

    def codes(self, columns: Array) -> Array | None:
        """Return the codes of the samples in these columns, (columns, n); None for numbers."""
        if self.numbers is not None:
            return None
        return np.ascontiguousarray(self.problem.codes[:, columns].T[:, self.problem.classes])

    def counted(self, k: int) -> tuple[Array, Array | None]:
        """Return the samples that count in column k, and their codes; None for numbers."""
        codes, counted = self.codes(np.array([k])), self.upper > 0
        if codes is None:
            return np.flatnonzero(counted), None
        rows = np.flatnonzero(counted & (codes[0] != 0))
        return rows, codes[0, rows].astype(np.float64)

    def lengths(self, W: Array) -> Array:
        """Return ``‖w‖²`` of each column (row of ``W``); with an L1 penalty ``‖w‖₁``."""
        return np.asarray(np.abs(W).sum(axis=1) if self.l1 else np.einsum("kj,kj->k", W, W))

    def spreads(self, products: Array) -> Array:
        """Return ``‖Σ v x‖²`` of each column; with an L1 penalty the largest ``|Σ v x_j|``."""
        if self.l1:
            return np.asarray(np.abs(products).max(axis=1, initial=0.0))
        return np.asarray(np.einsum("kj,kj->k", products, products))

    def factors(self, features: int) -> Array:
        """Return the factors of the L1 penalty: of the weights and, last, of the intercept."""
        return np.append(np.ones(features), 0.0 if self.scaling is None else 1.0 / self.scaling)

    def primal(self, squares: Array, intercept: Array, losses: Array) -> Array:
        """Return the objective of each column from its `lengths`, its intercept and the sum of its losses."""
        if self.l1:
            return np.asarray(squares + losses + np.abs(intercept) * (self.square and self.square**-0.5))
        value = 0.5 * squares + losses
        if self.square > 0:
            value += 0.5 * np.square(intercept) / self.square
        return np.asarray(value)

    def bound(self, linear: Array, square: Array, squares: Array, sums: Array) -> Array:
        """Return the best bound of each column for a multiple ``τ ≤ 1`` of its dual variables.

        From the sums ``Σ v t − ε|v|``, ``½ Σ δ v²`` and ``Σ v`` and from their `spreads`.
        """
        if self.l1:
            most = np.maximum(squares, np.sqrt(self.square) * np.abs(sums))
            tau = np.maximum(linear, 0.0) / np.maximum(2.0 * square, 1e-150)
            tau = np.minimum(tau, 1.0 / np.maximum(most, 1.0))
            return np.asarray(tau * (linear - tau * square))
        tau, quadratic = self.multiple(linear, square, squares, sums)
        return np.asarray(tau * (linear - tau * quadratic))

    def multiple(self, linear: Array, square: Array, squares: Array, sums: Array) -> tuple[Array, Array]:
        """Return the best such multiple with an L2 penalty, and what its square multiplies."""
        quadratic = 0.5 * squares + 0.5 * self.square * np.square(sums)
        if self.squared:
            quadratic = quadratic + square
        return np.minimum(np.maximum(linear, 0.0) / np.maximum(2.0 * quadratic, 1e-150), 1.0), quadratic

    def balance(self, V: Array) -> Array:
        """Return dual variables that sum to 0 where the intercept is free: the heavier side is shrunk."""
        if not self.free:
            return V
        positive, negative = np.maximum(V, 0.0), np.minimum(V, 0.0)
        above, below = positive.sum(axis=1), -negative.sum(axis=1)
        low = np.minimum(above, below)
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(above > 0, low / above, 1.0)
            down = np.where(below > 0, low / below, 1.0)
        positive *= up[:, None]
        positive += down[:, None] * negative
        return positive

    def evaluate(self, coef: Array, intercept: Array, V: Array) -> Evaluation:
        """Return what weights and dual variables (columns, n) achieve and prove, in double precision."""
        b = np.asarray(intercept, dtype=np.float64)
        V = self.balance(np.asarray(V, dtype=np.float64))
        K = self.columns
        # Rows of sparse data look up the weights of some cache lines of columns at a time.
        width = _LINE if self.view.sparse else K
        groups = [np.arange(k, min(k + width, K)) for k in range(0, K, width)]
        with single_threaded(self.view.shape[0] * coef.size):
            many = len(groups) > 1
            parts = list(in_threads(lambda g: _Judged(self, groups[g], coef, b, V, many), len(groups)))
        mistakes = None
        if self.numbers is None:
            if self.problem.largest_wins:
                best = np.stack([part.best for part in parts]).argmax(axis=0)
                winner = np.take_along_axis(np.stack([part.winner for part in parts]), best[None], axis=0)[0]
                wrong = winner != self.problem.classes
            else:
                wrong = np.any([part.wrong for part in parts], axis=0)
            mistakes = float(self.upper @ wrong) / self.C
        norms, losses, squares = np.concatenate(
            [[part.norms, part.losses, part.squares] for part in parts], axis=1
        )
        primal = self.primal(norms, b, losses)
        bound = self.bound(*self.sums(V), squares, V.sum(axis=1))
        # Where the sums of v overflow, v = 0 proves 0; an objective that overflows leaves nothing to prove.
        bound = np.where(np.isfinite(primal) & ~np.isfinite(bound), 0.0, bound)
        return Evaluation(
            primal,
            bound,
            max(part.violation for part in parts),
            mistakes,
        )

    def sums(self, V: Array) -> tuple[Array, Array]:
        """Return ``Σ v t − ε|v|`` and ``½ Σ δ v²`` of each column."""
        square = np.zeros(V.shape[0])
        if self.squared:
            inverse = np.divide(0.25, self.upper, out=np.zeros_like(self.upper), where=self.upper > 0)
            square = np.square(V) @ inverse
        if self.numbers is not None:
            return V @ self.numbers - self.epsilon * np.abs(V).sum(axis=1), square
        return np.abs(V).sum(axis=1), square  # v has the sign of t = ±1

    def judged(self, k: int, v: Array) -> tuple[Array, float, float, float]:
        """Return the best multiple of column k's weights ``Σ v x``, the intercept, objective and bound."""
        W, total = self.view.transposed(v[:, None]).T, np.array([v.sum()])
        F, own, squares = self.view.scores(W).T, np.array([k]), self.lengths(W)
        b = self.best_intercept(F, own) if self.free else self.square * total
        s, primal = self.best_multiple(F + b, own, squares, b)
        bound = self.bound(*self.sums(v[None]), squares, total)
        return s[0] * W[0], float(s[0] * b[0]), float(primal[0]), float(bound[0])

    def best_multiple(self, F: Array, columns: Array, squares: Array, b: Array) -> tuple[Array, Array]:
        """Return which multiple of its weights and intercept is best for each column, and the objective.

        From scores (columns, n), ``‖w‖²`` and intercepts.
        """
        loss, upper, codes = self.problem.loss, self.upper, self.codes(columns)
        M, t = (F, self.numbers) if codes is None else (codes * F, 0.0)
        curve = 2.0 * self.primal(squares, b, np.zeros_like(b))

        def objective(s: Array) -> Array:
            losses = loss.value(s[:, None] * M - t)
            if codes is not None:
                losses[codes == 0] = 0.0
            return np.asarray(0.5 * curve * s * s + losses @ upper)

        def slope(s: Array) -> Array:
            return np.asarray(curve * s + (M * loss.slope(s[:, None] * M - t)) @ upper)

        return best_multiple(F.shape[0], slope, objective)

    def rounded(self, coef: Array, intercept: Array, V: Array, tol: float) -> tuple[Array, Array, Evaluation]:
        """Return weights and intercepts in the precision of the data, and what they achieve and prove.

        Where single precision leaves samples short of the margin and C makes that dear, weights that are
        longer by as little as that are the better ones to round.
        """
        dtype = self.view.dtype
        W, b = coef.astype(dtype), intercept.astype(dtype)
        found = self.evaluate(W, b, V)
        if dtype == np.float64 or self.l1 or found.relative_gap <= tol:
            return W, b, found
        more = np.zeros(self.columns)
        for k in np.flatnonzero(~(found.primal - found.dual <= tol * found.primal)):
            own, w, c = np.array([k]), W[k : k + 1].astype(np.float64), b[k : k + 1].astype(np.float64)
            more[k] = self.best_multiple(self.view.scores(w, c).T, own, self.lengths(w), c)[0][0] - 1.0
        for times in LONGER:
            s = 1.0 + times * more
            longer, moved = (s[:, None] * coef).astype(dtype), (s * intercept).astype(dtype)
            better = self.evaluate(longer, moved, V).primal < found.primal
            W[better], b[better] = longer[better], moved[better]
            found = self.evaluate(W, b, V)
        return W, b, found

    def best_intercept(self, F: Array, columns: Array) -> Array:
        """Return the constant that is best added to the scores of these columns, (columns, n).

        The derivative of the losses in it rises; bisection finds where it changes its sign.
        """
        loss, reach = self.problem.loss, float(np.abs(F).max(initial=0.0)) + 1.0
        codes = self.codes(columns)
        if self.numbers is not None:
            reach += float(np.abs(self.numbers).max(initial=0.0))
        low, high = np.full(F.shape[0], -reach), np.full(F.shape[0], reach)
        for _ in range(60):
            middle = 0.5 * (low + high)
            f = F + middle[:, None]
            if codes is None:
                slope = loss.slope(f - self.numbers) @ self.upper
            else:
                slope = (codes * loss.slope(codes * f)) @ self.upper
            low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
        return np.asarray(0.5 * (low + high))


class _Judged:
    """Losses, ``‖w‖²``, ``‖Σ v x‖²`` and decisions of some columns, in one reading of the data."""

    def __init__(self, dual: BoxDual, own: Array, W: Array, b: Array, V: Array, one_of_many: bool) -> None:
        self.dual, self.own, self.V = dual, own, V
        n, d = dual.view.shape
        self.count, self.padded = own.shape[0], 1 if own.shape[0] == 1 else -(-own.shape[0] // 8) * 8
        self.b = b[own]
        self.best, self.winner, self.wrong = np.zeros(n), np.zeros(n, dtype=np.int32), np.zeros(n, dtype=bool)
        width = self.padded if dual.view.sparse else self.count
        self.by_feature = np.zeros((d, width))
        self.by_feature[:, : self.count] = W[own].T
        size = (d + 1) * width
        total: Array
        if one_of_many:
            # Threads share the groups: one total is enough for all rows.
            total = np.zeros(size)
            for rows, block in dual.view.blocks():
                self._add(total, rows, block)
        else:
            total = dual.view.fold(lambda: np.zeros(size), self._add, 8 * size)
        total = total.reshape(d + 1, width)
        self.losses = total[d, : self.count]
        products, weights = total[:d], self.by_feature
        self.squares = dual.spreads(products.T)[: self.count]
        self.norms = dual.lengths(weights.T)[: self.count]
        if dual.l1:
            off = np.where(weights != 0, np.abs(products - np.sign(weights)), np.abs(products) - 1.0)
            self.violation = max(0.0, float(off.max(initial=0.0)))
            return
        products -= weights
        self.violation = max(float(products.max(initial=0.0)), -float(products.min(initial=0.0)))

    def _add(self, total: Array, rows: slice, block: Any) -> Array:
        # So few rows at a time that their scores stay within a block's bytes, too.
        short = max(1, BLOCK_BYTES // (8 * self.by_feature.shape[1]))
        for begin in range(0, block.shape[0], short):
            end = min(begin + short, block.shape[0])
            part = block if end - begin == block.shape[0] else block[begin:end]
            self._piece(
                total.reshape(-1, self.by_feature.shape[1]), slice(rows.start + begin, rows.start + end), part
            )
        return total

    def _piece(self, total: Array, rows: slice, block: Any) -> None:
        dual, m = self.dual, self.count
        count, (d, width) = block.shape[0], self.by_feature.shape
        if dual.view.sparse:
            arguments = row_arguments(block)
            scores, R = np.empty((count, width)), np.zeros((count, width))
            R[:, :m] = self.V[self.own, rows].T
            _hot.padded_scores(*arguments, self.by_feature, scores)
            _hot.add_padded_transposed(*arguments, R, 0, width, total[:d])
        else:
            scores = block @ self.by_feature
            total[:d] += (self.V[self.own, rows] @ block).T
        f = scores[:, :m] + self.b
        U, problem = dual.upper[rows], dual.problem
        if dual.numbers is not None:
            total[d, :m] += U @ problem.loss.value(f - dual.numbers[rows][:, None])
            return
        y = problem.codes[:, self.own][problem.classes[rows]]
        total[d, :m] += U @ np.where(y != 0, problem.loss.value(y * f), 0.0)
        if problem.largest_wins:
            winner = f.argmax(axis=1)
            self.winner[rows], self.best[rows] = self.own[winner], f[np.arange(count), winner]
        else:
            self.wrong[rows] = np.any((y != 0) & ((f >= 0) != (y > 0)), axis=1)


@dataclass
class Evaluation:
    """What a fit achieves: objective and bound of each column, distance of ``w`` from ``Σ v x``, errors."""

    primal: Array
    dual: Array
    violation: float
    mistakes: float | None

    @property
    def relative_gap(self) -> float:
        """The gap of all columns, relative to the objective."""
        primal = float(self.primal.sum())
        return max(primal - float(self.dual.sum()), 0.0) / primal if primal > 0 else 0.0

    @property
    def worst_relative_gap(self) -> float | None:
        """The largest relative gap of one of several columns."""
        gaps = np.maximum(self.primal - self.dual, 0.0)
        each = np.divide(gaps, self.primal, out=np.zeros_like(gaps), where=self.primal > 0)
        return float(each.max()) if each.shape[0] > 1 else None

    def certificate(self, outcome: Outcome, tol: float, samples: int) -> Certificate:
        """Return the certificate of the fit."""
        primal, dual = float(self.primal.sum()), float(self.dual.sum())
        gap = max(primal - dual, 0.0)
        status = outcome.status
        if status in ("converged", "max_iter"):
            status = "converged" if self.relative_gap <= tol else "max_iter"
        return Certificate(
            status=status,
            message=explain(status, self.relative_gap, tol, self.worst_relative_gap),
            iterations=outcome.iterations,
            seconds=outcome.seconds,
            primal=primal,
            dual=min(dual, primal),
            gap=gap,
            relative_gap=self.relative_gap,
            worst_relative_gap=self.worst_relative_gap,
            kkt_violation=self.violation,
            training_errors=self.mistakes,
            samples=samples,
        )


def explain(status: str, gap: float, tol: float, worst: float | None = None) -> str:
    """Return in words how far a fit came, and what to change where that is not ``tol``."""
    reached = gap_in_words(gap, worst)
    if status == "converged":
        return reached
    remedy = {
        "max_iter": "raise max_iter, scale the features (StandardScaler), or lower C",
        "max_time": "raise max_time, scale the features (StandardScaler), or lower C",
        "interrupted": "fit again to go on",
    }[status]
    return f"{reached}, above tol={tol:g}: {remedy}"
