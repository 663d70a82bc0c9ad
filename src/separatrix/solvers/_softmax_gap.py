r"""The duality gap of softmax (and two-class logistic) regression with an L2 penalty, in double precision.

For given ``W`` the intercept first goes to its optimum by Newton's method, so that with ``p = softmax(f)``
the dual point ``α = C s (t − p)`` satisfies ``Σ α = 0`` up to rounding; then the gap is ``½‖W − Xᵀα‖²``.
Where long rows make that bound poor, the solver's own dual variables give a better one. What is left of
``r = Σ α`` is taken away by mixing a little of one distribution into all: ``μ' = (1 − ε) μ + ε v`` with
``v = (Σ C s μ + r/ε)/Σ C s``, and the lower bound is that of ``μ'``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import entr

from separatrix import _hot
from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.problem import Problem
from separatrix.solvers._coordinate_rows import row_arguments

#: Columns that one task of a transposed product works on.
_TASK_COLUMNS = 32
#: Rows of one task of a score product.
_TASK_ROWS = 2048
_MOST_NEWTON_STEPS = 50


def _part(rows: tuple[Any, ...], at: slice) -> tuple[Any, ...]:
    """Return some of these rows; CSR places may count from anywhere."""
    if len(rows) == 1:
        return (rows[0][at],)
    data, indices, indptr, width = rows
    return data, indices, indptr[at.start : at.stop + 1], width


@dataclass(frozen=True, eq=False)
class Certified:
    """Parameters, padded, and what is proven about them."""

    weights: Array
    intercept: Array
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Distance of the objective to the lower bound."""
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the objective."""
        return self.gap / self.primal if self.primal > 0 else 0.0


class SoftmaxGap:
    """Objective and lower bounds of one problem; weights are (features, padded), ``mu`` is (n, padded).

    ``weights`` are those of the samples, equal ones perhaps merged into one. With one column, ``mu`` is
    the probability of the wrong class and ``α = C s y μ``.
    """

    def __init__(self, problem: Problem, C: float, weights: Array | None, padded: int, threads: int) -> None:
        self.problem, self.view, self.padded, self.threads = problem, problem.view, padded, threads
        n = self.view.shape[0]
        self.columns = problem.columns
        self.classes = np.ascontiguousarray(problem.classes, dtype=np.int32)
        self.scale = np.full(n, float(C)) if weights is None else np.asarray(C * weights, dtype=np.float64)
        self.total = float(self.scale.sum())
        self._own_first = False
        self.per_class = np.bincount(self.classes, self.scale, problem.codes.shape[0])
        self.sign = problem.codes[self.classes, 0].astype(np.float64) if self.columns == 1 else None

    def prior(self) -> Array:
        """Return the best intercept of zero weights."""
        logs = np.log(self.per_class)
        return logs[1:] - logs[:1] if self.columns == 1 else logs - np.log(self.total)

    def _each(self, tasks: list[Callable[[], None]]) -> None:
        if self.threads > 1 and len(tasks) > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                for done in [pool.submit(task) for task in tasks]:
                    done.result()
        else:
            for task in tasks:
                task()

    def scores(self, weights: Array) -> Array:
        """Return ``X W``, without intercept."""
        F = np.empty((self.view.shape[0], self.padded))
        for where, block in self.view.blocks():
            rows, out = row_arguments(block), F[where]
            parts = [slice(b, b + _TASK_ROWS) for b in range(0, out.shape[0], _TASK_ROWS)]
            self._each([partial(_hot.padded_scores, *_part(rows, at), weights, out[at]) for at in parts])
        return F

    def weights_of(self, mu: Array) -> Array:
        """Return ``Xᵀ α``."""
        out = np.zeros((self.view.shape[1], self.padded))
        for where, block in self.view.blocks():
            rows = (*row_arguments(block), self.alpha(mu[where], where))
            parts = [(k, min(k + _TASK_COLUMNS, self.padded)) for k in range(0, self.padded, _TASK_COLUMNS)]
            self._each([partial(_hot.add_padded_transposed, *rows, *at, out) for at in parts])
        return out

    def alpha(self, mu: Array, where: slice = slice(None)) -> Array:
        """Return the dual variables of these rows."""
        scale = self.scale[where]
        if self.sign is not None:
            return np.asarray(mu * (scale * self.sign[where])[:, None])
        alpha: Array = mu * -scale[:, None]
        alpha[np.arange(len(scale)), self.classes[where]] += scale
        return alpha

    def mix(self, mu: Array, theta: float) -> Array:
        """Return the dual point whose α is θ times that of ``mu``."""
        mixed = theta * mu
        if self.sign is None:
            mixed[np.arange(mu.shape[0]), self.classes] += 1.0 - theta
        return mixed

    def loss(self, F: Array, offsets: Array, mu: Array) -> float:
        """Return the loss of these scores; ``mu`` becomes their probabilities."""
        if self.sign is None:
            return _hot.softmax_rows(F, offsets, self.classes, self.scale, self.columns, mu)
        m = self.sign * (F[:, 0] + offsets[0])
        small = np.exp(-np.abs(m))
        mu[:, 0] = np.where(m > 0, small, 1.0) / (1.0 + small)
        return float(self.scale @ (np.maximum(-m, 0.0) + np.log1p(small)))

    def probabilities(self, weights: Array, offsets: Array) -> Array:
        """Return ``mu`` of the scores ``X W + b``."""
        F = self.scores(weights)
        mu = np.empty_like(F)
        self.loss(F, offsets, mu)
        return mu

    def _best_intercept(self, F: Array, offsets: Array, mu: Array, enough: float) -> tuple[Array, float]:
        """Minimise the loss over the intercept; ``mu`` becomes the probabilities there.

        It ends where ``Σ α`` is below the part ``enough`` of each class's weight: what is left is mixed away.
        """
        K = self.columns
        b = offsets.copy()
        accepted, best, step, length = b.copy(), np.inf, np.zeros(K), 1.0
        smallest = np.inf
        for _ in range(_MOST_NEWTON_STEPS):
            loss = self.loss(F, b, mu)
            if loss > best * (1 + 1e-14) + 1e-300:
                length *= 0.25
                b[:K] = accepted[:K] + length * step
                continue
            gradient = -self._sum_alpha(mu)[:K]
            size = float(np.abs(gradient).max())
            if size >= smallest and loss >= best:  # rounding: no progress any more
                b[:] = accepted
                break
            accepted, best, smallest, length = b.copy(), min(loss, best), size, 1.0
            if np.all(np.abs(gradient) <= max(enough, 1e-15) * self.per_class.min()):
                return accepted, loss
            step = -np.linalg.solve(self._curvature(mu), gradient)
            # A longer step than this leaves the region where the quadratic model says anything.
            step *= min(1.0, 20.0 / max(float(np.abs(step).max()), 1e-300))
            b[:K] += step
        return accepted, self.loss(F, accepted, mu)

    def _sum_alpha(self, mu: Array) -> Array:
        if self.sign is not None:
            return np.atleast_1d((self.scale * self.sign) @ mu)
        total = -(self.scale @ mu)
        total[: self.columns] += self.per_class
        return np.asarray(total)

    def _curvature(self, mu: Array) -> Array:
        """Return the Hessian of the loss in b, made regular along its null direction."""
        if self.sign is not None:
            h = float(self.scale @ (mu[:, 0] * (1 - mu[:, 0])))
            return np.array([[h + 1e-12 * self.total]])
        K = self.columns
        P = mu[:, :K]
        with single_threaded(P.size * K):
            H = -(P * self.scale[:, None]).T @ P
        H[np.diag_indices(K)] += self.scale @ P
        H[np.diag_indices(K)] += 1e-12 * self.total
        return np.asarray(H + self.total / K**2)

    def feasible(self, mu: Array) -> Array:
        """Return a point near ``mu`` with ``Σ α = 0``, if the intercept is free."""
        if not self.problem.fit_intercept:
            return mu
        if self.sign is not None:
            parts = [float((self.scale * (self.sign == side)) @ mu[:, 0]) for side in (-1.0, 1.0)]
            least = min(parts)
            shares = [least / part if part > 0 else 1.0 for part in parts]
            return mu * np.where(self.sign > 0, shares[1], shares[0])[:, None]
        r = self._sum_alpha(mu)[: self.columns]
        mass = (self.scale @ mu)[: self.columns]
        epsilon = float(np.max(-r / np.maximum(mass, 1e-300), initial=0.0))
        if epsilon <= 0.0:
            return mu
        epsilon = min(1.0, epsilon * (1 + 1e-12) + 1e-300)
        v = np.zeros(self.padded)
        v[: self.columns] = np.maximum(mass + r / epsilon, 0.0) / self.total
        return np.asarray((1 - epsilon) * mu + epsilon * v)

    def dual(self, mu: Array, weights: Array) -> float:
        """Return the dual value of ``mu``, ``weights`` being its ``Xᵀ α``."""
        entropy = entr(mu).sum(axis=1)
        if self.sign is not None:
            entropy += entr(1.0 - mu[:, 0])
        return float(self.scale @ entropy - 0.5 * np.vdot(weights, weights))

    def certify(self, W: Array, offsets: Array, own: Callable[[], Array], tol: float) -> Certified:
        """Return these weights with their best intercept, objective and lower bound.

        ``own()`` gives the solver's dual variables, asked for only if those of the scores prove no
        relative gap of ``tol``.
        """
        with single_threaded(np.inf):
            return self._certify(W, offsets, own, tol)

    def _certify(self, W: Array, offsets: Array, own: Callable[[], Array], tol: float) -> Certified:
        F = self.scores(W.astype(np.float64, copy=False))
        mu = np.empty_like(F)
        if self.problem.fit_intercept:
            offsets, loss = self._best_intercept(F, offsets, mu, 1e-3 * min(tol, 1e-3))
        else:
            loss = self.loss(F, offsets, mu)
        rounded = offsets.astype(self.view.dtype).astype(np.float64)
        if np.any(rounded != offsets):
            loss = self.loss(F, rounded, np.empty_like(F))
        primal = loss + 0.5 * float(np.einsum("ij,ij->", W, W, dtype=np.float64))
        # Two dual points: of the scores, and the solver's own. The better one is asked first the next time.
        first = self._own_first
        bound = -np.inf
        for use_own in (first, not first):
            point = self.feasible(own() if use_own else mu)
            found = self.dual(point, self.weights_of(point))
            if found > bound:
                bound, self._own_first = found, use_own
            if primal - bound <= tol * primal:
                break
        return Certified(W, rounded[: self.columns], primal, bound)
