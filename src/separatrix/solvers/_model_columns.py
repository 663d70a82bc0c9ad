"""The quadratic model of a loss behind the columns of X: many features, sparse data.

The chosen columns are packed once (dense: Fortran order; CSR: compressed columns), each when it is
first needed, and coordinate descent (``_hot/coordinate.hpp``) keeps the scores of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg, sparse

from separatrix import _hot
from separatrix.data.view import Array, DataView
from separatrix.solvers._logit import Curvature
from separatrix.solvers._loop import Control
from separatrix.solvers._model_gram import Chosen

#: Sweeps until the inner problem counts as solved well enough.
_SWEEPS = 100
#: Features of one call into the core, times samples: a few milliseconds, between which Ctrl-C is heard.
_CALL_WORK = 1 << 24


class Packed:
    """Columns of a view, gathered when they are first asked for; dense ones centred.

    Centred columns hardly touch the intercept, so that coordinate descent need not go back and forth
    between it and them.
    """

    def __init__(self, view: DataView, centre: Callable[[], Array]) -> None:
        self.view, self.centre = view, centre
        self.place = np.full(view.shape[1], -1, dtype=np.int64)
        self.count = 0
        self.parts: tuple[Array, ...] = ()

    def columns(self, features: Array) -> Array:
        """Return where the features stand in ``parts``, gathering those that are missing."""
        new = features[self.place[features] < 0]
        if new.shape[0]:
            self.place[new] = self.count + np.arange(new.shape[0])
            self.count += int(new.shape[0])
            self.parts = self._join(new)
        return self.place[features]

    def _join(self, new: Array) -> tuple[Array, ...]:
        if not self.view.sparse:
            old = self.count - int(new.shape[0])
            X = np.empty((self.view.shape[0], self.count), dtype=self.view.dtype, order="F")
            centre = self.centre()[new].astype(self.view.dtype)
            if old:
                X[:, :old] = self.parts[0]
            for rows, block in self.view.blocks():
                np.subtract(np.take(block, new, axis=1), centre, out=X[rows, old:])
            return (X,)
        blocks = [block[:, new] for _, block in self.view.blocks()]
        packed = (blocks[0] if len(blocks) == 1 else sparse.vstack(blocks)).tocsc()
        data, rows, starts = packed.data, packed.indices.astype(np.int32), packed.indptr.astype(np.int64)
        if not self.parts:
            return data, rows, starts
        before = self.parts
        return (
            np.concatenate([before[0], data]),
            np.concatenate([before[1], rows]),
            np.concatenate([before[2], starts[1:] + before[2][-1]]),
        )


def _padded(values: Array, width: int) -> Array:
    if values.shape[1] == width:
        return np.ascontiguousarray(values)
    out = np.zeros((values.shape[0], width))
    out[:, : values.shape[1]] = values
    return out


class ColumnModel:
    """The model at the present scores on the chosen features."""

    def __init__(self, packed: Packed, curvature: Curvature, features: Array, fit_intercept: bool) -> None:
        self.packed, self.curvature, self.fit_intercept = packed, curvature, fit_intercept
        self.columns = packed.columns(features)
        self.dense = len(packed.parts) == 1
        self.features = features
        self.joint = curvature.p is not None
        self.width = -(-curvature.columns // 4) * 4 if self.joint else 1

    def minimise(
        self, W: Array, G: Array, Gb: Array, l1: float, l2: float, eta: float, control: Control
    ) -> tuple[Array, Array, Array]:
        """Return the step of the weights, of the intercepts, and its scores."""
        own, width, K = self.curvature, self.width, self.curvature.columns
        shift = self.packed.centre()[self.features] if self.dense else None
        if shift is not None:
            G = G - np.outer(Gb, shift)
        n, m = own.q.shape[0], W.shape[1]
        curvature = np.empty((m, width))
        h = _padded(own.diagonal(), width)
        _hot.column_curvature(*self.packed.parts, self.columns, h, curvature)
        del h
        weights, gradient = _padded(W.T, width), _padded(G.T, width)
        step, Z, db = np.zeros((m, width)), np.zeros((n, width)), np.zeros(width)
        inverse = np.zeros((width, width))
        inverse[:K, :K] = linalg.pinvh(own.intercepts()) if self.fit_intercept else 0.0
        Gb = _padded(Gb[None], width)[0]
        q = _padded(own.q, width)
        p = None if own.p is None else _padded(own.p, width)
        mean = np.zeros(n) if self.joint else None
        scratch = np.empty(3 * width)
        state = _hot.Coordinates(
            l1=l1, l2=l2, q=q, p=p, Z=Z, mean=mean, gradient=gradient, curvature=curvature,
            weights=weights, step=step, intercept_gradient=Gb, intercept_inverse=inverse,
            intercept_step=db, scratch=scratch, fit_intercept=self.fit_intercept,
        )  # fmt: skip
        active = np.ones((m, width), dtype=np.uint8)
        everything = np.arange(m)
        order, total = everything, 0.0
        for _ in range(_SWEEPS):
            fallen = self._sweep(state, order, active, order is not everything, control)
            total += fallen
            if fallen <= eta * total:
                if order is everything:
                    break
                order = everything
            else:
                order = np.flatnonzero(active.any(axis=1))
            if control.expired():
                break
        D, b = np.ascontiguousarray(step[:, :K].T), db[:K].copy()
        if shift is not None:
            b -= D @ shift
        if self.dense and self.packed.view.dtype == np.float32:
            # A centred column is rounded once more than the data: the scores must be those of the data.
            return D, b, Chosen(self.packed.view, self.features, self.packed.centre()).scores(D, b)
        return D, b, np.ascontiguousarray(Z[:, :K])

    def _sweep(self, state: Any, order: Array, active: Array, partial: bool, control: Control) -> float:
        """Sweep over the features in a few calls, so that an interrupt need not wait for all."""
        n = self.curvature.q.shape[0] * self.width
        per_call = max(1, _CALL_WORK // max(1, n)) if self.dense else 1 << 14
        fallen = 0.0
        for begin in range(0, max(1, order.shape[0]), per_call):
            part = np.ascontiguousarray(order[begin : begin + per_call])
            fallen += state.sweep(*self.packed.parts, self.columns, part, active, partial)
            if control.expired():
                break
        return fallen
