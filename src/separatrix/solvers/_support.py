"""A Newton step of a softmax on the weights that are not 0: their signs fixed, the loss is smooth.

Conjugate gradients with the exact coupling of the classes, preconditioned by the classes' own blocks of
the Hessian, which the model of the step before has formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from separatrix.data.view import Array
from separatrix.solvers._directions import Directions
from separatrix.solvers._loop import Control
from separatrix.solvers._model_gram import GramModel

if TYPE_CHECKING:
    from separatrix.solvers._l1_part import Part

#: Most products with the Hessian in one step, and how far the residual's energy shall fall: far from the
#: optimum, and near it.
_ROUGH, _FINE = (8, 1e-2), (30, 1e-6)


class _Preconditioner:
    """Solves with each class's block of the Hessian on its support."""

    def __init__(self, model: GramModel, mask: Array, l2: float) -> None:
        self.supports = [np.flatnonzero(row) for row in mask]
        self.factors = []
        for k, support in enumerate(self.supports):
            A = model.H[k][np.ix_(support, support)].copy()
            largest = max(float(A.diagonal().max(initial=0.0)), 1e-300)
            A[np.diag_indices_from(A)] += l2 + 1e-6 * np.maximum(A.diagonal(), 1e-6 * largest)
            self.factors.append(linalg.cho_factor(A, overwrite_a=True) if support.shape[0] else None)

    def __call__(self, residual: Array, room: Array) -> Array:
        R, out = (vector.reshape(len(self.supports), -1) for vector in (residual, room))
        out[...] = 0.0
        for k, (support, factor) in enumerate(zip(self.supports, self.factors, strict=True)):
            if factor is not None:
                out[k, support] = linalg.cho_solve(factor, R[k, support])
        return room


class _Hessian:
    """Products with the loss's Hessian at the scores that are set; the intercepts follow the weights.

    Their part of the Hessian is eliminated from every product.
    """

    def __init__(self, part: Part, model: GramModel, mask: Array) -> None:
        own = part.terms.curvature(0.0)
        assert own.p is not None
        self.q, self.p = own.q, own.p
        self.X, self.mask, self.l2, self.dtype = model.X, mask, part.l2, part.view.dtype
        self.inverse = linalg.pinvh(own.intercepts()) if part.fit_intercept else None

    def intercepts(self, sums: Array) -> Array:
        """Return the intercepts' step for scores whose weighted sums are given."""
        return np.zeros(sums.shape) if self.inverse is None else -self.inverse @ sums

    def coupled(self, Z: Array) -> Array:
        """Return what changes of the scores do to the slopes."""
        return np.asarray(self.q * (Z - (self.p * Z).sum(axis=1)[:, None]))

    def of_intercepts(self, b: Array) -> Array:
        """Return what a step of the intercepts does to the slopes."""
        return self.coupled(np.broadcast_to(b, self.q.shape))

    def __call__(self, D: Array) -> tuple[Array, Array]:
        """Return the product with weights, and the step of the intercepts that follows them."""
        C = self.coupled(self.X.centred_scores(D))
        b = self.intercepts(C.sum(axis=0))
        C += self.of_intercepts(b)
        return self.X.transposed(C.astype(self.dtype)) * self.mask + self.l2 * D, b


def newton_on_support(part: Part, model: GramModel, features: Array, control: Control) -> bool:
    """Take the step and search along it; return whether the objective fell."""
    W = part.W[:, features]
    mask = W != 0
    if not mask.any():
        return False
    part.terms.set_scores(part.F)
    hessian = _Hessian(part, model, mask)
    Gb = -part.terms.theta.sum(axis=0)
    G = -model.X.transposed(part.terms.theta)
    db = hessian.intercepts(Gb)
    gradient = G + part.l2 * W + part.l1 * np.sign(W)
    if db.any():
        gradient = gradient + model.X.transposed(hessian.of_intercepts(db))
    try:
        precondition = _Preconditioner(model, mask, part.l2)
    except linalg.LinAlgError:
        return False
    group = Directions((-gradient * mask).ravel(), precondition)
    first = group.rz
    products, enough = _ROUGH if model.rough else _FINE
    for _ in range(products):
        if not group.rz > enough * first or control.expired():
            break
        product, b = hessian(group.P.reshape(W.shape))
        length = group.advance(product.ravel())
        if not length > 0:
            break
        db = db + length * b
        group.turn()
    target = W + group.step.reshape(W.shape)
    target[np.sign(target) != np.sign(W)] = 0.0
    D = (target - W) * mask
    slope = float((G * D).sum() + Gb @ db)
    db = db - D @ model.X.centre.astype(np.float64)
    return part.search(features, D, db, model.X.scores(D, db), slope) > 0
