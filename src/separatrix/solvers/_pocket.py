"""The pocket: the best parameters seen (Gallant, 1990)."""

from __future__ import annotations

import numpy as np

from separatrix.data.view import Array
from separatrix.problem import Problem


class Pocket:
    """Keeps the parameters with the fewest margin errors on the training set; of equals the later.

    Where the largest score decides, the columns compete as one set; where each column decides by
    its own sign (two classes, one-vs-one), each keeps its own best.
    """

    def __init__(self, problem: Problem, coef: Array, intercept: Array) -> None:
        self.errors = np.full(1 if problem.largest_wins else problem.columns, np.inf)
        self.coef, self.intercept = coef.copy("K"), intercept.copy()

    def offer(self, errors: Array, coef: Array, intercept: Array) -> bool:
        """Take over the columns whose errors are not above those kept; return whether all are."""
        better = errors <= self.errors
        # Copying all columns at once follows the layout of the weights, whatever it is.
        columns = slice(None) if better.all() else np.broadcast_to(better, self.intercept.shape)
        if better.any():
            self.coef[columns], self.intercept[columns] = coef[columns], intercept[columns]
        self.errors = np.where(better, errors, self.errors)
        return bool(better.all())
