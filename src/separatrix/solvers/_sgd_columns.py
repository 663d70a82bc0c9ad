"""Neighbouring columns of stochastic gradient descent, with the compiled state that learns them.

Columns do not ask for each other, so that several such groups may learn at the same time, each in a thread.
What a column learns does not depend on the columns beside it, to the last bit.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.view import Array
from separatrix.solvers._rows import apart, run_rows

#: Columns that one look-up of a feature serves at least: fewer would be read as long.
_FEWEST = 4


def shares(columns: int, threads: int) -> list[slice]:
    """Return the columns of each thread, multiples of four that differ by no more than they must.

    Examples
    --------
    >>> shares(10, 2)
    [slice(0, 4, None), slice(4, 10, None)]
    >>> shares(3, 2)
    [slice(0, 3, None)]
    """
    count = max(1, min(threads, columns // _FEWEST))
    ends = [_FEWEST * round(columns * share / (_FEWEST * count)) for share in range(count)] + [columns]
    return [slice(first, last) for first, last in pairwise(ends)]


class SgdColumns:
    """The columns ``own`` of a fit.

    Parameters
    ----------
    own : slice
        Which columns.
    weights : ndarray
        Theirs: of shape (features, columns) for sparse rows, (columns, features) for dense ones.
    intercepts : ndarray
        Theirs at the start.
    sparse : bool
        Which of both shapes.
    averaging : bool
        Whether the mean of all weights is wanted.
    clock : float
        Number of the first visit.
    given : dict
        What all columns share, and of all of them "targets" and "factors" of the classes, "active" and "eta".
    constants : dict
        Numbers of the problem and of the step rule; see SgdState in ``_hot``.
    """

    def __init__(
        self,
        own: slice,
        weights: Array,
        intercepts: Array,
        *,
        sparse: bool,
        averaging: bool,
        clock: float,
        given: dict[str, Any],
        constants: dict[str, Any],
    ) -> None:
        count, dtype = intercepts.shape[0], weights.dtype
        self.weights, self._sparse = weights, sparse
        # Threads write these with every row, so none may share a cache line with another thread's.
        self.intercepts, self.scale, self.area = apart(count), apart(count), apart(count)
        self.losses, self.intercept_sums, self.clock = apart(count), apart(count), apart(1)
        self.intercepts[...], self.scale[...], self.clock[...] = intercepts, 1.0, clock
        self.drift = np.zeros(weights.shape) if averaging else None
        of_classes = given["classes"] is not None

        def part(values: Array | None) -> Array | None:
            return values if values is None or not of_classes else np.ascontiguousarray(values[:, own])

        # The arrays must live as long as the compiled state that points into them.
        self._arrays: dict[str, Any] = {
            **given,
            "targets": part(given["targets"]),
            "factors": part(given["factors"]),
            "active": given["active"][own],
            "eta": given["eta"][own],
            "weights": weights,
            "intercepts": self.intercepts,
            "scale": self.scale,
            "owed": apart(count),
            "paid": np.zeros_like(weights) if constants["l1"] > 0 else None,
            "clock": self.clock,
            "drift": self.drift,
            "area": self.area,
            "intercept_sums": self.intercept_sums,
            "losses": self.losses,
            "scores": apart(count, dtype),
            "steps": apart(count, dtype),
            "margins": apart(count),
            "values": apart(count),
            "slopes": apart(count),
        }
        state = _hot.SgdFloat32 if dtype == np.float32 else _hot.SgdFloat64
        self.learner = state(**self._arrays, **constants)

    @property
    def coef(self) -> Array:
        """Current weights as (columns, features); a view."""
        return self.by_column(self.weights)

    def by_column(self, weights: Any) -> Array:
        """Return weights as (columns, features), whatever their layout."""
        return np.asarray(weights.T if self._sparse else weights)

    def visit(self, rows: Any, order: Array, begin: int, end: int, chunk: int, gathered: int) -> None:
        """Visit the samples at these positions of the order."""
        run_rows(self.learner, rows, order, begin, end, chunk, gathered)

    def settle(self, *, decays: bool) -> list[float]:
        """Multiply the scale into the weights, and the area into their sum; return ‖w‖² of each column."""
        W = self.coef
        if self.drift is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                self.by_column(self.drift)[...] -= self.area[:, None] * W
            self.area[:] = 0.0
        if decays:
            # No factor exceeds one, so nothing overflows here.
            W *= self.scale[:, None].astype(W.dtype, copy=False)
            self.scale.fill(1.0)
        squares: list[float] = np.einsum("kj,kj->k", W, W, dtype=np.float64).tolist()
        return squares
