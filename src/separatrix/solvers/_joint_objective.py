r"""What weights of the joint multiclass machine (Crammer–Singer) cost, as a fit returns them.

P(W) = ½ Σ_k (‖w_k‖² + b_k²/γ²) + Σ_i C_i max_k h_ik,     h_ik = f_k(x_i) − f_{c_i}(x_i) + [k ≠ c_i]
"""

from __future__ import annotations

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._multiple import LONGER, best_multiple
from separatrix.solvers._softmax_gap import Certified, SoftmaxGap

#: Part of the objective that a bound must be; else the best multiple of the weights is taken.
_FAR = 0.5


class JointObjective:
    """The objective of padded weights (features, padded) and intercepts (padded).

    Parameters
    ----------
    gap : SoftmaxGap
        Scores, classes and ``C_i`` of the samples.
    constant : float
        γ, the constant feature whose weights carry the intercepts; 0 for none.
    """

    def __init__(self, gap: SoftmaxGap, constant: float) -> None:
        self.gap, self.constant = gap, constant
        self.every = np.arange(gap.view.shape[0])

    def rivals(self, W: Array, b: Array) -> Array:
        """Return how far the score of each class is above that of the own one, (n, K)."""
        K = self.gap.columns
        F = self.gap.scores(W)[:, :K] + b[:K]
        F -= F[self.every, self.gap.classes][:, None]
        return np.asarray(F)

    def __call__(self, W: Array, b: Array) -> float:
        """Return the objective."""
        return self._value(self.rivals(W, b), self._squares(W, b))

    def _squares(self, W: Array, b: Array) -> float:
        squares = float(np.vdot(W, W))
        return squares + float(b @ b) / self.constant**2 if self.constant else squares

    def _lacking(self, above: Array, s: float) -> Array:
        lacking = s * above + 1.0
        lacking[self.every, self.gap.classes] = 0.0
        return lacking

    def _value(self, above: Array, squares: float, s: float = 1.0) -> float:
        return float(self.gap.scale @ self._lacking(above, s).max(axis=1)) + 0.5 * s**2 * squares

    def best_multiple(self, W: Array, b: Array) -> float:
        """Return which multiple of weights and intercepts is best."""
        above, squares = self.rivals(W, b), self._squares(W, b)

        def slope(s: Array) -> Array:
            worst = self._lacking(above, float(s[0])).argmax(axis=1)
            return np.asarray(s * squares + self.gap.scale @ above[self.every, worst])

        def value(s: Array) -> Array:
            return np.array([self._value(above, squares, float(s[0]))])

        return float(best_multiple(1, slope, value)[0][0])

    def returned(self, W: Array, b: Array, dual: float, tol: float, rounded: bool) -> Certified:
        """Return weights in the precision of the data; where that is far better, their best multiple.

        ``dual`` is a lower bound of the objective. With ``rounded`` only rounding keeps the weights from
        ``tol``.
        """
        dtype, K = self.gap.view.dtype, self.gap.columns

        def multiple(s: float) -> Certified:
            V, c = s * W, s * b
            if dtype != np.float64:
                V, c = (part.astype(dtype).astype(np.float64) for part in (V, c))
            return Certified(V, c[:K], self(V, c), dual)

        found = multiple(1.0)
        if dual < _FAR * found.primal or (rounded and found.relative_gap > tol):
            more = self.best_multiple(found.weights, found.intercept) - 1.0
            others = [multiple(1.0 + times * more) for times in (LONGER if rounded else LONGER[:1])]
            found = min(found, *others, key=lambda one: one.primal)
        return found
