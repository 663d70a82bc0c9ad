r"""Least squares on coded classes: the problem, what weights achieve, and how a fit is driven.

Every sample of class ``k`` has the target ``t_k`` in ``R^q`` (a one-hot row, or codes −1 and +1):

    min over W, b of   P = Σ_i s_i ‖t_i − W x_i − b‖² + Σ_c α_c ‖w_c‖²

With ``μ`` and ``t̄`` the weighted means, ``b = t̄ − W μ`` and ``W`` solves the normal equations

    (S + α_c I) w_c = r_c,     S = Σ s_i (x_i − μ)(x_i − μ)ᵀ,     R = Σ s_i (x_i − μ)(t_i − t̄)ᵀ

Where ``S`` is singular and ``α = 0``, the solution of smallest ``‖W‖`` is returned, the limit of a
vanishing penalty.

The objective is quadratic, so its distance to the optimum is known at any point: with the residuals
``e_i`` of the returned parameters, ``g_c = Σ s_i (x_i − μ) e_ic − α_c w_c`` and ``z = Σ s_i e_i``,

    P − P* = Σ_c g_cᵀ (S + α_c I)⁺ g_c + ‖z‖²/Σ s_i   ≤   Σ_c ‖g_c‖²/α_c + ‖z‖²/Σ s_i

The right side is the gap to the dual value of the residuals. A closed form, which has factorised
``S + α I``, certifies by the left side; conjugate gradients by the right one. The same vector
``(S + α I)⁺ g`` is the correction that closes the gap (iterative refinement with residuals from the
data themselves, not from ``S``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.certificate import Certificate
from separatrix.data.room import NoRoomError
from separatrix.data.threads import asking, single_threaded
from separatrix.data.view import BLOCK_BYTES, Array, DataView, padding
from separatrix.problem import Result
from separatrix.solvers._coordinate_rows import row_arguments
from separatrix.solvers._loop import Control, Outcome, OutOfTimeError, Step
from separatrix.solvers._products import sparse_transposed

#: Columns that a sparse product treats at a time: one or two cache lines per stored value.
SPARSE_COLUMNS = 16
#: Rows of weights that are treated at a time: they stay in the caches.
_WEIGHT_ROWS = 1024
#: Bytes of dense rows that are treated at a time.
PIECE_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Regression:
    """Weighted ridge regression of coded classes.

    Attributes
    ----------
    view : DataView
        The samples.
    classes : ndarray of int of shape (n,)
        Number of each sample's class (or set of labels).
    targets : ndarray of float64 of shape (K, q)
        What the scores of each class should be.
    alpha : ndarray of shape (q,)
        Penalty of each column.
    weights : ndarray of float64 of shape (n,) or None
        Weight of each sample; None means one for each.
    fit_intercept : bool
        Whether the scores have a constant term, which is not penalised.
    positive : bool
        Whether weights below 0 are forbidden.
    """

    view: DataView
    classes: Array
    targets: Array
    alpha: Array
    weights: Array | None = None
    fit_intercept: bool = True
    positive: bool = False

    @property
    def columns(self) -> int:
        """Number of targets."""
        return int(self.targets.shape[1])

    @cached_property
    def class_weight(self) -> Array:
        """Sum of the sample weights of each class."""
        return np.bincount(self.classes, self.weights, minlength=self.targets.shape[0]).astype(np.float64)

    @cached_property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.class_weight.sum())

    @cached_property
    def target_mean(self) -> Array:
        """Weighted mean of the targets; 0 without an intercept."""
        if not self.fit_intercept:
            return np.zeros(self.columns)
        return np.asarray(self.class_weight @ self.targets / self.total)

    @cached_property
    def centred_targets(self) -> Array:
        """Targets less their mean."""
        return np.asarray(self.targets - self.target_mean)

    @cached_property
    def null(self) -> Array:
        """Objective of each column for ``W = 0``: what gaps are compared with."""
        return np.asarray(self.class_weight @ np.square(self.centred_targets))

    @cached_property
    def balanced(self) -> bool:
        """Whether the columns of every target, and hence of every exact score, sum to one constant."""
        sums = self.targets.sum(axis=1)
        return bool(
            self.columns > 1
            and self.fit_intercept
            and not self.positive
            and np.all(sums == sums[0])
            and np.all(self.alpha == self.alpha[0])
        )


@dataclass
class Judged:
    """What weights achieve: loss per column, half the negative gradient, sum of residuals, errors."""

    loss: Array
    gradient: Array
    slack: Array
    errors: float | None


def judge(
    problem: Regression,
    W: Array,
    b: Array,
    mean: Array,
    *,
    shift: bool,
    single: bool = False,
    residuals: Array | None = None,
    whole: Array | None = None,
) -> Judged:
    """Evaluate the scores ``X W + b`` in one pass over the data.

    Parameters
    ----------
    problem : Regression
        Samples and targets.
    W : ndarray of shape (d, q)
        Weights.
    b : ndarray of shape (q,)
        Constant terms.
    mean : ndarray of shape (d,)
        Mean of the samples (0 without an intercept).
    shift : bool
        Whether to subtract the mean from dense samples first: needed where it is far larger than
        their spread.
    single : bool
        Whether single precision will do for dense samples that are not shifted.
    residuals : ndarray of shape (n, padding(q)) or None
        Where the residuals of sparse samples go; the gradient is then summed from them, which takes less
        memory than the sums of several groups of samples.
    whole : ndarray of shape (d, padding(q)) or None
        The weights of sparse samples with columns of zeros, if there are such: a copy is not made then.
    """
    d, q = W.shape
    coded = q == 1 or q == problem.targets.shape[0]
    targets = np.ascontiguousarray(problem.targets, dtype=np.float64)
    numbers = np.ascontiguousarray(problem.classes, dtype=np.int32)
    by_column = np.ascontiguousarray(W.T) if not problem.view.sparse else W
    given = W
    if problem.view.sparse:  # the compiled products want whole registers of columns
        W = _padded(W, padding(q)) if whole is None else whole
        b, targets = (_padded(array, padding(q)) for array in (b, targets))
    offset = b + mean @ W

    def take(total: Array, rows: slice, block: Any) -> Array:
        if problem.view.sparse:
            add(total, rows, block)
        elif not shift:
            total += sweep(rows, block)
        else:
            # Pieces that stay in the caches while they are centred and used twice.
            for piece in row_pieces(block, PIECE_BYTES):
                X = np.subtract(block[piece], mean)
                add(total, slice(rows.start + piece.start, rows.start + piece.stop), X)
        return total

    def sweep(rows: slice, block: Array) -> Array:
        if block.shape[1] > 1 and block.strides[1] != block.itemsize:
            block = np.ascontiguousarray(block)
        sums, gradient = np.zeros((3, q)), np.zeros((q, d))
        slack, losses, errors = sums
        s = None if problem.weights is None else problem.weights[rows]
        found = gradient, slack, losses, errors if coded else None
        _hot.sweep_squares(block, single, numbers[rows], s, targets, by_column, b, *found)
        if problem.fit_intercept:
            gradient -= np.outer(slack, mean)
        return np.concatenate([gradient.T, sums])

    def add(out: Array, rows: slice, X: Any) -> None:
        if problem.view.sparse:
            scores = np.empty((X.shape[0], W.shape[1]))
            _hot.padded_scores(*row_arguments(X), W, scores)
            scores += b
        else:
            scores = X @ W
            scores += offset
        E = targets[numbers[rows]]
        E -= scores
        if residuals is not None:
            residuals[rows] = E
        s = None if problem.weights is None else problem.weights[rows]
        weighted = E if s is None else E * s[:, None]
        slack = weighted.sum(axis=0)
        if not problem.view.sparse:
            out[:-3] += X.T @ weighted
        elif residuals is None:
            _hot.add_padded_transposed(*row_arguments(X), weighted, 0, W.shape[1], out[:-3])
        out[-3] += slack
        out[-2] += np.einsum("ij,ij->j", weighted, E)
        if coded:
            wrong = _wrong(scores[:, :q], numbers[rows], problem.targets)
            out[-1, 0] += wrong.sum() if s is None else s @ wrong

    with single_threaded(problem.view.shape[0] * W.size):
        height = 3 if residuals is not None else d + 3
        start = partial(np.zeros, (height, W.shape[1]))
        sums = problem.view.fold(start, take, 8 * height * W.shape[1])[:, :q]
    if residuals is None:
        g = sums[:d]
    else:
        weighted = residuals if problem.weights is None else residuals * problem.weights[:, None]
        g = sparse_transposed(problem.view, weighted)[:, :q]
    slack = sums[-3] if problem.fit_intercept else np.zeros(q)
    centred = problem.view.sparse and problem.fit_intercept
    for rows in few_rows(g):
        g[rows] -= problem.alpha * given[rows]
        if centred:
            g[rows] -= np.outer(mean[rows], slack)
    return Judged(sums[-2], g, slack, float(sums[-1, 0]) if coded else None)


def few_rows(matrix: Array) -> list[slice]:
    """Return slices of rows so few that what is made of them stays in the caches: fresh memory costs more."""
    return [slice(begin, begin + _WEIGHT_ROWS) for begin in range(0, len(matrix), _WEIGHT_ROWS)]


def _padded(array: Array, columns: int) -> Array:
    out = np.zeros((*array.shape[:-1], columns))
    out[..., : array.shape[-1]] = array
    return out


def _wrong(scores: Array, numbers: Array, targets: Array) -> Array:
    if scores.shape[1] == 1:
        return np.asarray((scores[:, 0] >= 0) != (targets[numbers, 0] > 0))
    return np.asarray(np.argmax(scores, axis=1) != numbers)


def settle(
    problem: Regression, W: Array, mean: Array, dtype: Any, out: Array | None = None
) -> tuple[Array, Array, float]:
    """Return the weights and constant terms to give out, and how far (squared) the weights have moved.

    The weights are rounded to ``dtype`` but float64; they go to ``out``, which may be ``W`` itself.

    Where all targets have the same sum, so have all exact scores: the weights of a feature sum to 0
    and the constant terms to that sum. Rounding errors of a solution of large norm would show there
    first, so they are taken out.
    """
    rounded, moved = np.empty(W.shape) if out is None else out, 0.0
    for rows in few_rows(W):
        part = W[rows]
        if problem.balanced:
            part = part - part.mean(axis=1, keepdims=True)
            part[:, -1] -= part.sum(axis=1)
        part = part.astype(dtype, copy=False)
        moved += float(np.square(part - W[rows]).sum())
        rounded[rows] = part
    b = problem.target_mean - mean @ rounded
    if problem.balanced:
        b += (problem.targets[0].sum() - b.sum()) / problem.columns
    return rounded, b.astype(dtype), moved


class LeastSquaresSolver(ABC):
    """What every route shares: parameters that are valid at any time, and the certificate.

    A route sets ``W`` and ``mean`` and yields from ``steps``; ``coef`` and ``intercept`` are the
    rounded parameters that a fit returns.
    """

    #: In words, for the certificate.
    description = ""
    #: Its name among the routes.
    route = ""
    #: Whether dense samples that are not finite make it raise NotFiniteError: nobody has to look before.
    notices = False

    def __init__(self, problem: Regression) -> None:
        self.problem = problem
        d, q, dtype = problem.view.shape[1], problem.columns, problem.view.dtype
        self.W = np.zeros((d, q))
        self.coef: Array = np.zeros((q, d), dtype=dtype)
        self.intercept = settle(problem, np.zeros((0, q)), np.zeros(0), dtype)[1]
        self.mean = np.zeros(problem.view.shape[1])
        self.shift = False
        self.judged: Judged | None = None
        self.gap: float | None = None
        #: Another route that has taken over.
        self.successor: LeastSquaresSolver | None = None

    @abstractmethod
    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration."""

    def _in_time(self, control: Control, work: Callable[[], None]) -> bool:
        """Do what sets new weights at its end; return whether there was time, and memory, for it.

        If not, the weights stay as they are. At first they are 0, of which no more is known than that no
        objective is below 0; columns that have had their turn keep what they have.
        """
        try:
            with asking(control.ask):
                work()
        except (OutOfTimeError, NoRoomError):
            self.gap = np.inf if self.gap is None else self.gap
            return False
        return True

    def _hand_over(self, other: LeastSquaresSolver, control: Control) -> Iterator[Step]:
        """Let another route go on; what there is stays valid until it has a solution."""
        for step in other.steps(control):
            self.successor, self.route = other, other.route
            self.coef, self.intercept = other.coef, other.intercept
            yield step

    def _round(self, out: Array | None = None) -> float:
        """Set the parameters to give out, in ``out`` if given; return how far (squared) they moved."""
        dtype = self.problem.view.dtype
        self.W, self.intercept, moved = settle(self.problem, self.W, self.mean, dtype, out)
        self.coef = np.empty(self.W.shape[::-1], dtype=dtype)
        for rows in few_rows(self.W):
            self.coef[:, rows] = self.W[rows].T
        return moved

    def _judge(self, *, single: bool = False) -> Judged:
        """Round the current weights and evaluate what is then returned, in single precision only if asked."""
        self._round()
        b = self.intercept.astype(np.float64)
        self.judged = judge(self.problem, self.W, b, self.mean, shift=self.shift, single=single)
        return self.judged

    @property
    def objective(self) -> float:
        """Objective of the returned parameters."""
        assert self.judged is not None
        kept = self.problem.alpha > 0  # without a penalty, weights may be too large to be squared
        W = self.W if kept.all() else self.W[:, kept]
        squares = np.einsum("ij,ij->j", W, W)
        return float(self.judged.loss.sum() + self.problem.alpha[kept] @ squares)

    def _slack_gap(self, judged: Judged) -> float:
        return float(np.square(judged.slack).sum()) / self.problem.total

    def relative(self, gap: float) -> float:
        """Return a gap as a share of the objective without any weights."""
        return gap / max(float(self.problem.null.sum()), np.finfo(np.float64).tiny)

    def finish(self, outcome: Outcome) -> Result:
        """Return parameters, certificate and history."""
        if self.successor is not None:
            return self.successor.finish(outcome)
        if self.judged is None:
            self._judge()
        judged = self.judged
        assert judged is not None
        primal = self.objective
        gap = None if self.gap is None else min(self.gap, primal)
        certificate = Certificate(
            status=outcome.status,
            message=self._explain(outcome.status, gap),
            iterations=outcome.iterations,
            seconds=outcome.seconds,
            primal=primal,
            dual=None if gap is None else primal - gap,
            gap=gap,
            relative_gap=None if gap is None else self.relative(gap),
            kkt_violation=self._violation(judged),
            training_errors=judged.errors,
            samples=self._samples(),
        )
        return Result(self.coef, self.intercept, certificate, outcome.history, outcome.iterations)

    def _samples(self) -> int:
        weights = self.problem.weights
        return self.problem.view.shape[0] if weights is None else int(np.count_nonzero(weights > 0))

    def _violation(self, judged: Judged) -> float:
        """Return the largest entry of half the gradient, at the bound where one holds."""
        g = judged.gradient
        if self.problem.positive:
            g = np.where(self.W > 0, g, np.maximum(g, 0.0))
        largest = max(g.max(initial=0.0), -g.min(initial=0.0))
        return float(max(largest, np.abs(judged.slack).max(initial=0.0)))

    def _explain(self, status: str, gap: float | None) -> str:
        proven = "" if gap is None else f", at most {self.relative(gap):.1e} (relative) above the optimum"
        reason = {
            "converged": f"solved by {self.description}",
            "max_iter": f"{self.description}: max_iter iterations done; raise it to go on",
            "max_time": f"{self.description}: max_time is over; raise it to go on",
            "interrupted": f"{self.description}: interrupted; fit again for the rest",
        }[status]
        return reason + proven


def row_pieces(block: Any, size: int = BLOCK_BYTES) -> list[slice]:
    """Return slices of rows so short that each, dense and in double precision, has at most ``size`` bytes."""
    rows, d = block.shape
    step = max(1, size // (8 * max(1, d)))
    return [slice(begin, min(begin + step, rows)) for begin in range(0, rows, step)]
