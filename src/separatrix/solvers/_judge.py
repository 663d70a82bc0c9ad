"""What a linear or kernel score function achieves on the training set.

Everything is computed in double precision from the parameters that the fit returns, block by
block, so that anyone can recompute it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.certificate import Certificate
from separatrix.data.threads import in_threads, single_threaded
from separatrix.data.view import BLOCK_BYTES, Array, by_feature
from separatrix.problem import Problem
from separatrix.solvers._loop import Outcome
from separatrix.solvers._products import sparse_scores


@dataclass
class Judgement:
    """Errors, criterion and separation of a set of scores.

    Attributes
    ----------
    errors : ndarray
        Weighted margin errors: one number if the largest score decides, else one per column.
    mistakes : float
        Weighted number of wrong decisions (of wrong column decisions, if columns decide alone).
    criterion : float
        ``J = Σ s max(0, b − m)`` over samples and columns, ``m`` the margin of the score.
    smallest : float
        Smallest ``m``; the scores separate the classes if it is positive.
    distance : float
        Smallest signed distance of a sample to a boundary that concerns it (linear scores).
    samples : int
        Number of samples with positive weight.
    """

    errors: Array
    mistakes: float = 0.0
    criterion: float = 0.0
    smallest: float = np.inf
    distance: float = np.inf
    samples: int = 0

    def __iadd__(self, other: Judgement) -> Judgement:
        self.errors += other.errors
        self.mistakes += other.mistakes
        self.criterion += other.criterion
        self.smallest = min(self.smallest, other.smallest)
        self.distance = min(self.distance, other.distance)
        self.samples += other.samples
        return self


def own_and_rival(scores: Array, classes: Array) -> tuple[Array, Array, Array]:
    """Return each sample's score for its own class, the best rival's, and whether a rival wins.

    Among equal scores the first class wins.
    """
    every = np.arange(scores.shape[0])
    own = scores[every, classes]
    beaten = np.argmax(scores, axis=1) != classes
    others = scores.copy()
    others[every, classes] = -np.inf
    return own, others.max(axis=1), beaten


def start(problem: Problem) -> Judgement:
    """Return an empty judgement."""
    return Judgement(np.zeros(1 if problem.largest_wins else problem.columns))


def add(
    judgement: Judgement,
    problem: Problem,
    scores: Array,
    classes: Array,
    weights: Array | None,
    margin: float,
    norms: Array | None = None,
) -> None:
    """Add a block of scores of shape (rows, columns) to the judgement.

    ``norms`` are the lengths of the boundaries' normal vectors: one per column, or one per pair of
    classes where the largest score decides.
    """
    if weights is not None:
        kept = weights > 0
        if not kept.all():
            scores, classes, weights = scores[kept], classes[kept], weights[kept]
    if scores.shape[0] == 0:
        return
    s = np.ones(scores.shape[0]) if weights is None else weights
    judgement.samples += scores.shape[0]
    codes = problem.codes[classes]
    if problem.largest_wins:
        own, rival, beaten = own_and_rival(scores, classes)
        m = own - rival
        judgement.errors[0] += s[beaten | (rival + margin > own)].sum()
        judgement.mistakes += float(s[beaten].sum())
        shortfall = problem.loss.value((m if problem.joint else codes * scores) - margin)
    else:
        taking_part = codes != 0
        m = np.where(taking_part, codes * scores, np.inf)
        wrong = taking_part & ((scores >= 0) != (codes > 0))
        judgement.errors += s @ (wrong | (m < margin))
        judgement.mistakes += float(s @ wrong.sum(axis=1))
        shortfall = problem.loss.value(m - margin)
    judgement.criterion += float((s @ shortfall).sum())
    judgement.smallest = min(judgement.smallest, float(m.min()))
    if norms is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            if problem.largest_wins:
                m = own[:, None] - scores
                m[np.arange(scores.shape[0]), classes] = np.inf
                distance = m / norms[classes]
            else:
                distance = m / norms
        judgement.distance = min(judgement.distance, float(np.nanmin(distance, initial=np.inf)))


def boundary_norms(problem: Problem, coef: Array) -> Array:
    """Return ``‖w‖`` of each column, or ``‖w_k − w_l‖`` of each pair where the largest score wins."""
    W = np.asarray(coef, dtype=np.float64)
    if not problem.largest_wins:
        return np.asarray(np.linalg.norm(W, axis=1))
    gram = W @ W.T
    squares = np.diag(gram)
    norms: Array = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0.0))
    close = norms < 1e-6 * np.sqrt(squares.max(initial=0.0))
    for k, l in zip(*np.nonzero(np.triu(close, 1)), strict=True):
        norms[k, l] = norms[l, k] = np.linalg.norm(W[k] - W[l])
    np.fill_diagonal(norms, 1.0)
    return norms


def _short(problem: Problem, rows: slice) -> Iterator[slice]:
    """Yield parts of some rows, so few at a time that their scores stay within a block's bytes, too."""
    step = max(1, BLOCK_BYTES // (8 * problem.columns))
    for begin in range(rows.start, rows.stop, step):
        yield slice(begin, min(begin + step, rows.stop))


def _by_feature(coef: Array) -> Array:
    """Return the weights in double as (features, columns), in the order in which CSR rows look them up."""
    return np.ascontiguousarray(coef.T, dtype=np.float64)


def _products(block: Any, W: Array) -> Array:
    """Return ``block @ W``; one column as a vector, for which SciPy has a quicker loop.

    NumPy copies dense rows of any type but double: a quarter of a block at a time.
    """
    right = W[:, 0] if W.shape[1] == 1 else W
    step = max(1, BLOCK_BYTES // (4 * 8 * W.shape[0]))
    if block.dtype == np.float64 or not isinstance(block, np.ndarray) or block.shape[0] <= step:
        return np.asarray(block @ right).reshape(block.shape[0], W.shape[1])
    out = np.empty((block.shape[0], *right.shape[1:]))
    for begin in range(0, block.shape[0], step):
        np.matmul(block[begin : begin + step], right, out=out[begin : begin + step])
    return out.reshape(block.shape[0], W.shape[1])


def _scored(problem: Problem, rows: slice, W: Array, b: Array) -> Iterator[tuple[slice, Array]]:
    """Yield the scores of some rows, a few at a time; ``W`` stands by feature, padded for sparse rows."""
    view = problem.view
    if view.sparse:
        for few in _short(problem, rows):
            yield few, sparse_scores(view, few, W)[:, : problem.columns] + b
        return
    block = view.read(rows)
    for few in _short(problem, rows):
        yield few, _products(block[few.start - rows.start : few.stop - rows.start], W) + b


def judge_linear(problem: Problem, coef: Array, intercept: Array, margin: float) -> Judgement:
    """Judge the scores ``X Wᵀ + b`` on all samples."""
    W = by_feature(problem.view, coef) if problem.view.sparse else _by_feature(coef)
    b = np.asarray(intercept, dtype=np.float64)
    parts = problem.view.parts()
    with single_threaded(problem.view.shape[0] * coef.size):
        norms = boundary_norms(problem, coef)

        def judged(number: int) -> Judgement:
            own = start(problem)
            for rows, scores in _scored(problem, parts[number], W, b):
                weights = None if problem.weights is None else problem.weights[rows]
                add(own, problem, scores, problem.classes[rows], weights, margin, norms)
            return own

        judgement = start(problem)
        for own in in_threads(judged, len(parts)):
            judgement += own
    return judgement


def _parts(problem: Problem) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of rows so short that their scores stay within a block's bytes, too."""
    for rows, block in problem.view.blocks():
        for few in _short(problem, rows):
            yield few, block if few == rows else block[few.start - rows.start : few.stop - rows.start]


def proves_separation(problem: Problem, coef: Array, intercept: Array) -> bool:
    """Return whether every sample is on the right side by more than any rounding error.

    In whatever order its terms are summed, a computed score differs from the exact one by at most
    ``(d + 2) ε (Σ_j |w_j x_j| + |b|)``.
    """
    W, b = _by_feature(coef), np.asarray(intercept, dtype=np.float64)
    sizes_of = np.abs(W)
    relative = (problem.view.shape[1] + 2) * float(np.finfo(np.float64).eps)
    for rows, block in _parts(problem):
        with single_threaded(problem.view.shape[0] * coef.size):
            scores = _products(block, W) + b
            sizes = _products(abs(block), sizes_of) + np.abs(b)
        bounds = relative * sizes
        classes, every = problem.classes[rows], np.arange(scores.shape[0])
        if problem.largest_wins:
            m = scores[every, classes][:, None] - scores
            bounds = bounds[every, classes][:, None] + bounds
            m[every, classes] = np.inf
        else:
            codes = problem.codes[classes]
            m = np.where(codes != 0, codes * scores, np.inf)
        right = np.all(m > bounds, axis=1)
        if problem.weights is not None:
            right |= problem.weights[rows] <= 0
        if not right.all():
            return False
    return True


def certify(judgement: Judgement, outcome: Outcome, *, proven: bool, margin: float) -> Certificate:
    """Return the certificate of a perceptron fit.

    ``proven`` says whether all samples are on the right side beyond rounding error. (A pass without
    an update proves nothing by itself: zero weights make no update either under the strict joint
    rule with margin 0.)
    """
    error_free = float(judgement.errors.sum()) == 0.0
    status = outcome.status
    if proven and error_free and status in ("converged", "max_iter"):
        status = "separable"
    distance = judgement.distance if np.isfinite(judgement.distance) else None
    return Certificate(
        status=status,
        message=_explain(status, proven, judgement, margin),
        iterations=outcome.iterations,
        seconds=outcome.seconds,
        primal=judgement.criterion,
        separable=True if proven else None,
        margin=distance,
        training_errors=judgement.mistakes,
        samples=judgement.samples,
    )


def _explain(status: str, proven: bool, judgement: Judgement, margin: float) -> str:
    verdict = (
        f"this boundary separates the classes (all {judgement.samples:,} samples on the right side)"
        if proven
        else f"{judgement.mistakes:,.6g} training errors"
    )
    if status == "separable":
        return verdict
    reason = {
        "converged": "no update or no improvement by tol any more",
        "max_iter": "max_iter passes done",
        "max_time": "max_time is over",
        "interrupted": "interrupted",
    }[status]
    remedy = ""
    if status != "converged":
        remedy = (
            "; raise it for more passes" if status in ("max_iter", "max_time") else "; fit again to go on"
        )
    wanted = f", margin errors {judgement.errors.sum():,.6g} at margin {margin:g}" if margin > 0 else ""
    return f"{reason}{remedy}; {verdict}{wanted}"
