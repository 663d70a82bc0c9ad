"""The squared hinge loss as a function of the scores, for the working-set solver; see :mod:`._logit`."""

from __future__ import annotations

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._logit import Curvature


class SquaredHingeTerms:
    """``max(0, 1 − y f)²`` for codes ``y`` in {−1, 0, +1}; 0 takes no part.

    Examples
    --------
    >>> import numpy as np
    >>> terms = SquaredHingeTerms(np.array([1, -1]), np.ones(2))
    >>> terms.value(np.array([[0.0], [1.0]]))
    5.0
    """

    columns = 1
    joint = False

    def __init__(self, y: Array, s: Array) -> None:
        self.y = y.astype(np.float64)[:, None]
        self.s = np.where(y != 0, s, 0.0)[:, None]
        self.positive = self.y > 0

    def value(self, F: Array) -> float:
        """Return the loss."""
        return float(self.s[:, 0] @ np.square(np.maximum(1.0 - self.y * F, 0.0))[:, 0])

    def set_scores(self, F: Array) -> None:
        """Compute loss and dual variables of these scores."""
        self.short = np.maximum(1.0 - self.y * F, 0.0)
        self.loss = float(self.s[:, 0] @ np.square(self.short)[:, 0])
        self.u = 2.0 * self.s * self.short
        self.theta = self.y * self.u

    def set_duals(self, rows: Array, u: Array) -> None:
        """Take these dual variables of some samples, and 0 of the others, instead."""
        self.u = np.zeros_like(self.s)
        self.u[rows, 0] = u
        self.theta = self.y * self.u

    def curvature(self, caution: float) -> Curvature:
        """Return the second derivative, blended with its largest value 2."""
        inside = (self.short > 0).astype(np.float64)
        return Curvature(2.0 * self.s * ((1.0 - caution) * inside + caution), None)

    def balance(self) -> None:
        """Make the dual variables orthogonal to the constant."""
        above, below = float(self.u[self.positive].sum()), float(self.u[~self.positive].sum())
        low = min(above, below)
        factor = np.where(self.positive, low / above if above > 0 else 0.0, low / below if below > 0 else 0.0)
        self.u = self.u * factor
        self.theta = self.theta * factor

    def dual(self, scale: float) -> float:
        """Return the loss's part of the dual objective at ``scale · θ``."""
        u = scale * self.u
        quarter = np.divide(np.square(u), 4.0 * self.s, out=np.zeros_like(u), where=self.s > 0)
        return float((u - quarter).sum())

    def null_intercept(self) -> Array:
        """Return the best intercept without weights."""
        total = float(self.s.sum())
        return np.array([float((self.s * self.y).sum()) / total if total > 0 else 0.0])
