r"""Newton's steps by conjugate gradients, and what they leave to gain.

The Hessian ``H`` in the weights, the intercepts being optimal for each (a Schur complement), is at least
``λ I``. Conjugate gradients for ``H v = g``, preconditioned by a diagonal ``M``, add up the decrement
``gᵀH⁻¹g`` from below; the Gauss–Radau rule with a node below the smallest eigenvalue of ``M⁻¹H`` bounds what
is missing from above (Meurant and Tichý, 2013):

    gᵀH⁻¹g − Σ_{j<k} γ_j z_jᵀr_j  ≤  η_k z_kᵀr_k,     η_0 = 1/μ,
    η_{k+1} = (η_k − γ_k) / (μ (η_k − γ_k) + β_{k+1}),     μ = λ / max M,

with γ and β the lengths and turns of the method, r its residuals and ``z = M⁻¹r``. So the decrement is known
where no Hessian can be formed. A diagonal model alone does not know it: where a few directions bend the
objective much more than all others, it sees those only.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._directions import Directions
from separatrix.solvers.curvature import Curvature, Diagonal, Whole
from separatrix.solvers.smooth import Point, SmoothObjective

#: Most products with the Hessian for one step.
_MOST = 250
#: Share of the decrement that may be missing from a step.
_MISSING = 0.1
#: Without a penalty: so many of the last gains together estimate what is missing.
_LAST = 5


class Iterated(Curvature):
    """The whole Hessian, known by its products with vectors.

    Parameters
    ----------
    whole : Whole
        The objective over all rows.
    objective : SmoothObjective
        The objective whose Hessian is meant.
    enough : float
        Share of the objective's value below which the decrement needs no further digits.

    Attributes
    ----------
    most : float
        Half the squared decrement of the last solution, at most. It comes from the gains of the steps, which
        stay exact where rounding has turned the first directions; the solution's product with the gradient
        does not. Without a penalty it is an estimate.
    """

    def __init__(self, whole: Whole, objective: SmoothObjective, enough: float) -> None:
        super().__init__(whole)
        self.target, self.enough = objective, enough
        self.scale = Diagonal(whole)
        self.most = np.inf

    def refresh(self, point: Point) -> None:
        """Keep what the Hessian's products need at these parameters."""
        self.scale.refresh(point)
        self.value = abs(point.value)
        residuals = point.residuals
        if residuals is None:
            residuals = self.target.residuals(point, single=False)
        self.p, self.each = self.target.from_residuals(residuals)
        s = self.target.weights
        if s is not None:
            self.each = np.where((s > 0)[:, None], self.each, 0.0)
        if self.target.codes is None:
            self.share = np.ones(self.p.shape[0]) if s is None else s
            bend = np.diag(self.share @ self.p) - (self.share[:, None] * self.p).T @ self.p
        else:
            bend = np.diag(self.each.sum(axis=0))
        free = self.target.problem.fit_intercept
        self.intercepts = np.linalg.pinv(bend, rcond=1e-12, hermitian=True) if free else np.zeros_like(bend)

    def _bent(self, scores: Array) -> Array:
        """Return the second derivatives of the loss times changes of the scores, row by row."""
        if self.target.codes is not None:
            return self.each * scores
        out = self.p * scores
        out -= self.p * out.sum(axis=1, keepdims=True)
        out *= self.share[:, None]
        return out

    def _back(self, bent: Array) -> Array:
        products = self.target.view.transposed(bent).T
        return np.asarray(products - bent.sum(axis=0)[:, None] * self.mean)

    def _product(self, V: Array) -> tuple[Array, Array]:
        """Return the Hessian times weights, and the change of the intercepts that is best beside them."""
        bent = self._bent(self.target.view.scores(V, -(V @ self.mean)))
        change = -self.intercepts @ bent.sum(axis=0)
        bent += self._bent(np.broadcast_to(change, bent.shape))
        return self._back(bent) + self.target.l2 * V, change

    def solve(self, gradient: Array, slopes: Array) -> tuple[Array, Array]:
        """Return about the Hessian's inverse times a gradient in (w, b'); keep what there is to gain."""
        M, l2 = self.scale.diagonal, self.target.l2
        own = self.intercepts @ slopes
        r = np.array(gradient)
        if own.any():
            r -= self._back(self._bent(np.broadcast_to(own, (self.each.shape[0], own.shape[0]))))
        shift, known = own.copy(), [float(slopes @ own)]
        group = Directions(r.ravel(), lambda r, room: np.divide(r, M.ravel(), out=room))
        square, mu = float(group.rz), l2 / float(M.max())
        eta = 1.0 / mu if mu > 0 else np.inf
        for _ in range(_MOST):
            if not square > 0 or self._is_enough(known, eta * square):
                break
            product, change = self._product(group.P.reshape(r.shape))
            length = float(group.advance(product.ravel()))
            if not length > 0:
                break
            shift += length * change
            known.append(length * square)
            turn, square = float(group.turn()), float(group.rz)
            # Rounding alone makes a rest negative: then everything is known.
            rest = max(eta - length, 0.0)
            eta = rest / (mu * rest + turn) if np.isfinite(eta) and turn > 0 else eta
        self.most = 0.5 * (sum(known) + self._missing(known, eta * square if square > 0 else 0.0))
        return group.step.reshape(r.shape), shift

    def _missing(self, known: list[float], bound: float) -> float:
        if np.isfinite(bound):
            return bound
        return sum(known[-_LAST:]) if len(known) > _LAST else np.inf

    def _is_enough(self, known: list[float], bound: float) -> bool:
        missing = self._missing(known, bound)
        return missing <= _MISSING * sum(known) or 0.5 * (sum(known) + missing) <= self.enough * self.value
