"""The Hessian of several classes where their scores vary, beside a model that all classes share.

A shared model takes the features' Gram matrix G to be the same for every pair of classes. That is so in
directions in which the scores do not change (for normal samples it is exact there), but along the weights
themselves probabilities come to 0 or 1, and the objective bends less. The span of the weights has as many
dimensions as there are classes, so that the whole Hessian within it is cheap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.losses import softmax
from separatrix.solvers.curvature import Curvature, Shared
from separatrix.solvers.smooth import Point

#: Rows for each unknown of the Hessian along the scores, and most of these unknowns.
_ROWS, _MOST = 64, 400
#: Smallest eigenvalue, relative to the largest, that is more than rounding.
_RANK = 1e-6


class AlongScores(Curvature):
    r"""``A ⊗ G`` beside the whole Hessian in the span of the weights.

    With a basis B of that span, ``B G Bᵀ = I``, and ``y = (B (x − x̄), 1)``, the inverse is

        A⁻¹ ⊗ (G⁻¹ − BᵀB)  +  (I ⊗ B̃ᵀ) [Σ_i s_i (diag p_i − p_i p_iᵀ) ⊗ y_i y_iᵀ + λ]⁻¹ (I ⊗ B̃),

    where B̃ leaves the intercept as it is.

    Parameters
    ----------
    shared : Shared
        The model of the other directions; of it only A is formed anew.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared.whole)
        self.shared = shared

    @staticmethod
    def fits(shared: Shared) -> bool:
        """Return whether columns are coupled, and few enough for their Hessian."""
        P = shared.objective.columns
        return shared.objective.codes is None and P > 1 and P * P <= _MOST

    def refresh(self, point: Point) -> None:
        """Form both parts for these parameters, from some of the shared model's rows."""
        # Threads of BLAS that wait for more would be in the way of the sweeps that follow.
        with single_threaded(np.inf):
            self._refresh(point)

    def _refresh(self, point: Point) -> None:
        W, P = point.coef, self.objective.columns
        values, vectors = np.linalg.eigh(W @ self.shared.factor.times(W.T))
        clear = values > _RANK * values[-1]
        turn = vectors[:, clear] / np.sqrt(values[clear])
        self.basis = turn.T @ W
        width = self.basis.shape[0] + 1
        rows = self.shared.rows.thinned(_ROWS * P * width)
        centre = self.basis @ self.mean

        def add(total: Array, part: slice, block: Any) -> Array:
            scores = np.asarray(block @ W.T.astype(block.dtype), dtype=np.float64)
            y = np.ones((scores.shape[0], width))
            y[:, :-1] = scores @ turn - centre
            p = softmax(scores + point.intercept)
            s = np.ones(p.shape[0]) if rows.weights is None else rows.weights[part]
            pairs = (p[:, :, None] * y[:, None, :]).reshape(p.shape[0], P * width)
            total -= pairs.T @ (s[:, None] * pairs)
            squares = total.reshape(P, width, P, width)
            for k in range(P):
                squares[k, :, k] += (pairs[:, k * width : (k + 1) * width] * s[:, None]).T @ y
            return total

        size = P * width
        H = rows.view.fold(lambda: np.zeros((size, size)), add, 8 * size * size)
        blocks = H.reshape(P, width, P, width)
        # The intercepts' own block is how the columns bend each other on average.
        self.across = _inverse(blocks[:, -1, :, -1].copy(), 1e-3)
        penalty = self.shared.target.l2 * (self.basis @ self.basis.T)
        for k in range(P):
            blocks[k, :-1, k, :-1] += penalty
        self.along = _inverse(H, _RANK)

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return the matrix's inverse times gradients in (w, b')."""
        with single_threaded(np.inf):
            return self._solve(gradient, slopes)

    def _solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        features = gradient.shape[-1]
        solved = self.shared.factor.solve(gradient.reshape(-1, features).T).T.reshape(gradient.shape)
        inside = gradient @ self.basis.T
        outside = self.across @ (solved - inside @ self.basis)
        right = np.concatenate([inside, slopes[..., None]], axis=-1)
        found = (right.reshape(-1, self.along.shape[0]) @ self.along).reshape(right.shape)
        return outside + found[..., :-1] @ self.basis, found[..., -1]


def _inverse(H: Array, least: float) -> Array:
    """Return the inverse of a positive semi-definite matrix whose eigenvalues count as so much at least.

    What all classes have in common bends nothing; nor is it part of any gradient.
    """
    values, vectors = np.linalg.eigh(H)
    return np.asarray((vectors / np.maximum(values, least * values[-1])) @ vectors.T)
