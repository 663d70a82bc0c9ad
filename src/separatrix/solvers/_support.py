"""A Newton step of a softmax on the weights that are not 0: their signs fixed, the loss is smooth.

Conjugate gradients with the exact coupling of the classes, preconditioned by the classes' own blocks of
the Hessian, which the model of the step before has formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from separatrix.data.view import Array
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

    def __call__(self, R: Array) -> Array:
        out = np.zeros_like(R)
        for k, (support, factor) in enumerate(zip(self.supports, self.factors, strict=True)):
            if factor is not None:
                out[k, support] = linalg.cho_solve(factor, R[k, support])
        return out


def newton_on_support(part: Part, model: GramModel, features: Array, control: Control) -> bool:
    """Take the step and search along it; return whether the objective fell."""
    terms, l1, l2 = part.terms, part.l1, part.l2
    W = part.W[:, features]
    mask = W != 0
    if not mask.any():
        return False
    terms.set_scores(part.F)
    own = terms.curvature(0.0)
    assert own.p is not None
    q, p = own.q, own.p
    # The intercepts follow the weights: their part of the Hessian is eliminated from every product.
    inverse = linalg.pinvh(own.intercepts()) if part.fit_intercept else None
    dtype = part.view.dtype
    shift = model.X.centre.astype(np.float64)
    Gb = -terms.theta.sum(axis=0)
    G = -model.X.transposed(terms.theta)

    def follow(R: Array) -> Array:
        """Return the intercepts' step for scores whose weighted sums are ``R``."""
        return np.zeros(terms.columns) if inverse is None else -inverse @ R

    def coupled(Z: Array) -> Array:
        return np.asarray(q * (Z - (p * Z).sum(axis=1)[:, None]))

    def product(D: Array) -> tuple[Array, Array]:
        Z = model.X.centred_scores(D)
        C = coupled(Z)
        b = follow(C.sum(axis=0))
        C += coupled(np.broadcast_to(b, Z.shape))
        return model.X.transposed(C.astype(dtype)) * mask + l2 * D, b

    b0 = follow(Gb)
    residual = G + l2 * W + l1 * np.sign(W)
    if inverse is not None and np.any(b0):
        residual = residual + model.X.transposed(coupled(np.broadcast_to(b0, q.shape)))
    residual = -residual * mask
    try:
        precondition = _Preconditioner(model, mask, l2)
    except linalg.LinAlgError:
        return False
    D, db = np.zeros_like(W), b0
    z = precondition(residual)
    direction, rho = z, float((residual * z).sum())
    first = rho
    products, enough = _ROUGH if model.rough else _FINE
    for _ in range(products):
        if not rho > 0 or control.expired():
            break
        Hd, b = product(direction)
        curve = float((direction * Hd).sum())
        if not curve > 0:
            break
        a = rho / curve
        D += a * direction
        db = db + a * b
        residual -= a * Hd
        z = precondition(residual)
        rho, last = float((residual * z).sum()), rho
        if rho <= enough * first:
            break
        direction = z + (rho / last) * direction
    target = W + D
    target[np.sign(target) != np.sign(W)] = 0.0
    D = (target - W) * mask
    slope = float((G * D).sum() + Gb @ db)
    db = db - D @ shift
    return part.search(features, D, db, model.X.scores(D, db), slope) > 0
