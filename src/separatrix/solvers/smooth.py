r"""Value and gradient of a smooth linear model, by sweeps over the data.

The objective is

    F(W, b) = Σ_i s_i ℓ(W x_i + b, c_i) + (λ/2) ‖W‖²,        the intercept b free,

with ℓ the softmax cross-entropy (joint) or the logistic loss of each column's code. All sums are
totals, not means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.memory import ChosenRows, view_of, with_kept_blocks
from separatrix.data.view import Array, DataView, csr_parts
from separatrix.problem import Problem

_ALL = slice(None)
#: Entries that are converted at a time.
_PIECE = 1 << 16


@dataclass
class Point:
    """Parameters with the objective and its gradient there.

    Attributes
    ----------
    coef, intercept : ndarray of float64
        Parameters, of shapes (columns, features) and (columns,).
    loss : float
        ``Σ_i s_i ℓ_i``.
    value : float
        The objective.
    gradient, gradient_intercept : ndarray of float64
        Gradient of the objective.
    residuals : ndarray of shape (n, columns) or None
        ``∂ℓ_i/∂score``, where they were kept.
    flat : ndarray or None
        The gradient in centred features, once it was asked for.
    """

    coef: Array
    intercept: Array
    loss: float
    value: float
    gradient: Array
    gradient_intercept: Array
    residuals: Array | None = None
    flat: Array | None = None


class SmoothObjective:
    """The objective of a problem with logistic loss and an L2 penalty.

    Parameters
    ----------
    problem : Problem
        Samples, labels and weights.
    l2 : float
        λ, the factor of ½ ‖W‖².
    """

    def __init__(self, problem: Problem, l2: float) -> None:
        self.problem, self.l2 = problem, l2
        self.view: DataView = with_kept_blocks(problem.view, problem.columns)
        self.features, self.columns = self.view.shape[1], problem.columns
        self.classes = np.ascontiguousarray(problem.classes, dtype=np.int32)
        weights = problem.weights
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        #: ``Σ s (x − x̄)²`` of each feature, once somebody has asked for it.
        self.squares: Array | None = None
        self.codes = None if problem.joint else np.ascontiguousarray(problem.codes, dtype=np.int8)

    def sample(
        self, rows: Array, *, often: bool = True, l2: float | None = None, single: bool = False
    ) -> SmoothObjective:
        """Return the same objective, or that of another penalty, estimated from a sample of the rows.

        Only for many passes over them (``often``) are dense rows copied, in single precision if that will do:
        new memory costs more than a few.
        """
        s = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        total = float(self.view.shape[0] if self.weights is None else self.weights.sum())
        problem = replace(
            self.problem,
            view=self._copied(rows, single) if often or self.view.sparse else ChosenRows(self.view, rows),
            classes=self.classes[rows],
            weights=s * (total / max(float(s.sum()), 1e-300)),
        )
        return SmoothObjective(problem, self.l2 if l2 is None else l2)

    def _copied(self, rows: Array, single: bool) -> DataView:
        if self.view.sparse or not single or self.view.dtype == np.float32:
            return view_of(self.view.take(rows))
        copied = np.empty((len(rows), self.features), dtype=np.float32)
        some = max(1, _PIECE // self.features)
        for first in range(0, len(rows), some):
            copied[first : first + some] = self.view.take(rows[first : first + some])
        return view_of(copied)

    def thinned(self, count: int) -> SmoothObjective:
        """Return the objective estimated from at most so many of the rows, evenly spread."""
        n = self.view.shape[0]
        return self if n <= count else self.sample(np.arange(count) * n // count, often=False)

    def residuals(self, point: Point, *, single: bool) -> Array:
        """Return ``∂ℓ_i/∂score`` of all rows at the parameters of a point."""
        kept = np.empty((self.view.shape[0], self.columns))
        self.at(point.coef, point.intercept, single=single, residuals=kept)
        return kept

    def from_residuals(self, residuals: Array, rows: slice = _ALL) -> tuple[Array, Array]:
        """Return the probabilities and ``s p (1 − p)`` that the residuals ``s (p − t)`` of some rows tell.

        Of independent columns the probabilities are those of the wrong side.
        """
        # In place where it can be: these are as many values as there are scores, and new memory is dear.
        weights = None if self.weights is None else self.weights[rows]
        s = None if weights is None else np.where(weights > 0, weights, 1.0)[:, None]
        share = residuals.copy() if s is None else residuals / s
        if self.codes is not None:
            np.abs(share, out=share)
        else:
            share[np.arange(share.shape[0]), self.classes[rows]] += 1.0
        # In single precision 1 − (1 − p) may be below 0, and a negative weight has no root.
        np.clip(share, 0.0, 1.0, out=share)
        each = 1.0 - share
        each *= share
        if s is not None:
            each *= s
        return share, each

    def at(
        self, coef: Array, intercept: Array, *, single: bool = False, residuals: Array | None = None
    ) -> Point:
        """Return the objective and its gradient at these parameters, in one sweep over the data.

        Parameters
        ----------
        coef, intercept : ndarray of float64
            Parameters.
        single : bool
            Whether dense rows may be worked on in single precision.
        residuals : ndarray of float64 of shape (n, columns) or None
            Where to keep ``∂ℓ_i/∂score``.
        """
        P, d = self.columns, self.features
        coef = np.ascontiguousarray(coef, dtype=np.float64)
        by_feature = np.ascontiguousarray(coef.T)
        sparse = self.view.sparse
        shape = (d, P) if sparse else (P, d)

        def add(total: Array, rows: slice, block: Any) -> Array:
            weights = None if self.weights is None else self.weights[rows]
            kept = None if residuals is None else residuals[rows]
            gradient, slopes = total[: P * d].reshape(shape), total[P * d : -1]
            common = (self.classes[rows], weights, self.codes)
            if sparse:
                parts = csr_parts(block)
                total[-1] += _hot.sweep_csr(*parts, *common, by_feature, intercept, gradient, slopes, kept)
            else:
                if block.shape[1] > 1 and block.strides[1] != block.itemsize:
                    block = np.ascontiguousarray(block)
                total[-1] += _hot.sweep_dense(block, single, *common, coef, intercept, gradient, slopes, kept)
            return total

        size = P * d + P + 1
        total = self.view.fold(lambda: np.zeros(size), add, size * 8)
        gradient = total[: P * d].reshape(shape)
        gradient = np.ascontiguousarray(gradient.T if sparse else gradient)
        gradient += self.l2 * coef
        slopes = total[P * d : -1] if self.problem.fit_intercept else np.zeros(P)
        loss = float(total[-1])
        value = loss + 0.5 * self.l2 * float(np.vdot(coef, coef))
        return Point(coef, intercept, loss, value, gradient, slopes, residuals)
