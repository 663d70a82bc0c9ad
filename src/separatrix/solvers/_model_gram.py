"""The quadratic model of a loss with its Hessian formed: few features, many samples.

    min_D  <G, D> + ½ D·H·D + λ₁ ‖W + D‖₁ + (λ₂/2) ‖W + D‖²

with the intercept's step eliminated from ``H`` (Schur complement). ``H`` is either whole (one score
column, or all classes of a small softmax) or one block per class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from separatrix import _hot
from separatrix.data.view import Array, DataView
from separatrix.solvers._logit import Curvature
from separatrix.solvers._loop import Control

#: Multiply-adds of one call into the core: a few milliseconds, between which Ctrl-C is heard.
_CALL_WORK = 2e7
#: Numbers in a temporary block.
_PART = 1 << 20
#: Multiply-adds of a Hessian up to which single precision would save only some milliseconds: what it loses
#: looks like curvature where dependent features have none, and then steps stay short.
_EXACT_WORK = float(1 << 28)
#: Rounds until the inner problem counts as solved well enough.
ROUNDS = 60


class Chosen:
    """The chosen features of a view, centred, block by block."""

    def __init__(self, view: DataView, features: Array, centre: Array) -> None:
        self.view, self.features = view, features
        self.every = features.shape[0] == view.shape[1]
        exact = float(view.shape[0]) * features.shape[0] ** 2 <= _EXACT_WORK
        self.centre = centre[features].astype(view.dtype).astype(np.float64 if exact else view.dtype)
        self.kept: dict[int, Array] | None = None

    def keep(self) -> None:
        """Keep the centred parts of dense data from now on: many products will need them."""
        self.kept = {}

    def _part(self, block: Any, begin: int, end: int, start: int) -> Array:
        if self.kept is not None and start in self.kept:
            return self.kept[start]
        X = self.columns(block[begin:end])
        sparse_rows = hasattr(X, "toarray")
        X = (X.toarray() if sparse_rows else X) - self.centre
        if self.kept is not None and not sparse_rows:
            self.kept[start] = X
        return np.asarray(X)

    def columns(self, block: Any) -> Any:
        """Return the chosen columns of a block."""
        if self.every:
            return block
        return block[:, self.features] if hasattr(block, "tocsr") else np.take(block, self.features, axis=1)

    def visit(self, function: Any, width: int) -> Any:
        """Sum ``function(rows, part)`` over centred parts whose ``width`` numbers per row stay small."""
        step = max(1, _PART // max(1, width if self.kept is None else self.features.shape[0]))

        def on_block(rows: slice, block: Any) -> Any:
            total = None
            for begin in range(0, rows.stop - rows.start, step):
                end = min(begin + step, rows.stop - rows.start)
                X = self._part(block, begin, end, rows.start + begin)
                part = function(slice(rows.start + begin, rows.start + end), X)
                total = part if total is None else total + part
            return total

        return self.view.map_sum(on_block)

    def scores(self, D: Array, b: Array) -> Array:
        """Return ``X Dᵀ + b``, not centred: for double ``D`` every score is exact to double rounding."""
        out = np.empty((self.view.shape[0], D.shape[0]))

        def part(rows: slice, block: Any) -> int:
            out[rows] = self.columns(block) @ D.T
            out[rows] += b
            return 0

        self.view.map_sum(part)
        return out

    def centred_scores(self, D: Array) -> Array:
        """Return ``(X − centre) Dᵀ`` in the data's precision."""
        out = np.empty((self.view.shape[0], D.shape[0]), dtype=self.view.dtype)
        D = D.astype(self.view.dtype)

        def part(rows: slice, X: Array) -> int:
            out[rows] = X @ D.T
            return 0

        self.visit(part, self.features.shape[0])
        return out

    def transposed(self, R: Array) -> Array:
        """Return ``Rᵀ (X − centre)``."""
        return np.asarray(self.visit(lambda rows, X: R[rows].T @ X, self.features.shape[0]))


class GramModel:
    """The model at the present scores on the chosen features.

    Attributes
    ----------
    whole : bool
        Whether the classes' coupling is part of ``H``; else there is a block per class.
    rough : bool
        Whether the blocks are multiples of one matrix: far from the optimum that is as good.
    rounds : int
        Rounds of sweeps and of steps on the support that the last solution took.
    """

    rounds = 0

    def __init__(
        self,
        view: DataView,
        curvature: Curvature,
        features: Array,
        centre: Array,
        fit_intercept: bool,
        kind: str,
        rough: bool,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.sparse, self.rough = kind == "sparse", rough and kind == "blocks"
        self.X = Chosen(view, features, np.zeros_like(centre) if self.sparse else centre)
        if kind == "blocks":
            self.X.keep()
        self.columns, self.size = curvature.columns, int(features.shape[0])
        self.whole = kind == "whole" or curvature.columns == 1
        coupled = kind == "whole" and curvature.p is not None
        self.H, self.lift = self._eliminate(self._whole(curvature) if coupled else self._blocks(curvature))

    def _blocks(self, curvature: Curvature) -> Array:
        """Return ``[X, 1]ᵀ diag(h_k) [X, 1]`` for each class, or roughly so."""
        h = curvature.diagonal()
        if self.rough and self.columns > 1:
            # One matrix for all classes, each with its own factor.
            mean = Curvature(h.mean(axis=1, keepdims=True), None)
            shares = h.sum(axis=0) / max(float(mean.q.sum()), np.finfo(np.float64).tiny)
            return np.asarray(self._each(np.sqrt(mean.q)) * shares[:, None, None])
        return self._sparse_blocks(np.sqrt(h)) if self.sparse else self._each(np.sqrt(h))

    def _each(self, root: Array) -> Array:
        """Return ``[X, 1]ᵀ diag(root_k²) [X, 1]`` for each column of ``root``."""
        m, count = self.size, root.shape[1]

        def part(rows: slice, X: Array) -> Array:
            out = np.empty((count, m + 1, m + 1))
            scaled = np.empty((X.shape[0], m + 1), dtype=X.dtype)
            for k in range(count):
                r = root[rows, k, None].astype(X.dtype)
                np.multiply(X, r, out=scaled[:, :m])
                scaled[:, m:] = r
                out[k] = scaled.T @ scaled
            return out

        return np.asarray(self.X.visit(part, m + 1))

    def _sparse_blocks(self, root: Array) -> Array:
        """Do as :meth:`_blocks` with products of sparse matrices, not centred."""
        m = self.size

        def part(rows: slice, block: Any) -> Array:
            X = self.X.columns(block).tocsr()
            counts = np.diff(X.indptr)
            out = np.empty((self.columns, m + 1, m + 1))
            for k in range(self.columns):
                r = root[rows, k]
                data = X.data * np.repeat(r, counts)
                scaled = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
                out[k, :m, :m] = (scaled.T @ scaled).toarray()
                out[k, m, :m] = out[k, :m, m] = scaled.T @ r
                out[k, m, m] = r @ r
            return out

        return np.asarray(self.X.view.map_sum(part))

    def _whole(self, curvature: Curvature) -> Array:
        """Return ``Σ_i s_i (diag p_i − p_i p_iᵀ) ⊗ [x_i, 1][x_i, 1]ᵀ``, class-major."""
        assert curvature.p is not None
        m, K = self.size, self.columns
        width, q, p = K * (m + 1), curvature.q, curvature.p
        root = np.sqrt(q)
        # q p = s p pᵀ: rows scaled by √s p = √q √p.
        both = root * np.sqrt(p)

        def part(rows: slice, X: Array) -> Array:
            X1 = np.concatenate([X, np.ones((X.shape[0], 1), dtype=X.dtype)], axis=1).astype(np.float64)
            U = (both[rows][:, :, None] * X1[:, None, :]).reshape(X.shape[0], width)
            H = -(U.T @ U)
            for k in range(K):
                R = X1 * root[rows, k, None]
                H[k * (m + 1) : (k + 1) * (m + 1), k * (m + 1) : (k + 1) * (m + 1)] += R.T @ R
            return H

        return np.asarray(self.X.visit(part, width))[None]

    def _eliminate(self, A: Array) -> tuple[Array, Array]:
        """Return ``H`` without the intercepts, and what gives their step: ``db = −lift·[grad_b; D]``."""
        count, m = A.shape[0], self.size
        # [weights, intercept] class after class: rows and columns of both kinds.
        K = A.shape[1] // (m + 1)
        A = A.reshape(count, K, m + 1, K, m + 1)
        H = np.ascontiguousarray(A[:, :, :m, :, :m]).reshape(count, K * m, K * m)
        if not self.fit_intercept:
            return H, np.zeros((count, 0, 0))
        cross, own = A[:, :, m, :, :m].reshape(count, K, K * m), A[:, :, m, :, m]
        self.inverse = np.stack([linalg.pinvh(B) for B in own])
        lift = self.inverse @ cross
        for block in range(count):
            H[block] -= cross[block].T @ lift[block]
        return H, lift

    def minimise(
        self,
        W: Array,
        G: Array,
        Gb: Array,
        l1: float,
        l2: float,
        eta: float,
        control: Control,
        most: int = ROUNDS,
    ) -> tuple[Array, Array]:
        """Return the step of the weights and of the intercepts (for centred features).

        ``W`` and ``G`` have shape (columns, features); the model is solved when a sweep makes it fall by
        at most ``eta`` times what it fell before (unlike a gradient, that has no scale), or after the
        ``most`` rounds.
        """
        count, size = self.H.shape[0], self.H.shape[1]
        gradient = G.reshape(count, size).copy()
        if self.fit_intercept:
            Gb = Gb.reshape(count, -1)
            gradient -= np.einsum("bij,bi->bj", self.lift, Gb)
        weights = np.ascontiguousarray(W.reshape(count, size))
        # Blocks stand for a coupled Hessian: diag p − p pᵀ ≼ 2 diag(p (1 − p)).
        H = self.H if self.whole else 2.0 * self.H
        step = np.zeros_like(weights)
        falls = np.zeros(count)
        sweeps = int(min(max(_CALL_WORK / max(1.0, count * size * size), 1), 30))
        for number in range(most):
            self.rounds = number + 1
            if _hot.gram_descent(H, gradient, weights, step, falls, l1, l2, sweeps, eta) <= eta:
                break
            if control.expired():
                break
            for block in range(count):
                one = H[block], weights[block], gradient[block], step[block], l1, l2
                # A weight that has become 0 stays so until the others have their values: a sweep would bring
                # it back. Where few sweeps are enough, so is one step after them.
                for _ in range(min(size, 2**number)):
                    if not self._on_support(*one) or control.expired():
                        break
        D = step.reshape(W.shape)
        if not self.fit_intercept:
            return D, np.zeros(self.columns)
        db = -np.einsum("bij,bj->bi", self.inverse, Gb) - np.einsum("bij,bj->bi", self.lift, step)
        return D, db.reshape(-1)

    def _on_support(self, H: Array, w: Array, g: Array, d: Array, l1: float, l2: float) -> bool:
        """Take a Newton step of the weights that are not 0; return whether it ends where one becomes 0.

        Along the step the model's slope rises, and where a weight changes its sign it jumps: the step ends
        where it is 0. In directions that H does not bend a ridge makes the step long, so that dependent
        features lose their weights one by one, which coordinate descent takes for ever to do.
        """
        now = w + d
        support = np.flatnonzero(now)
        if support.shape[0] == 0:
            return False
        now = now[support]
        residual = g[support] + l1 * np.sign(now) + l2 * now
        A = H[np.ix_(support, support)]
        scale = np.sqrt(np.maximum(A.diagonal() + l2, 1e-300))
        B = A / scale[:, None] / scale
        B[np.diag_indices_from(B)] = 1.0 + 1e-10
        try:
            move = -linalg.cho_solve(linalg.cho_factor(B, overwrite_a=True), residual / scale) / scale
        except linalg.LinAlgError:
            return False
        slope = float(residual @ move)
        if not slope < 0:
            return False
        curve = float(move @ (A @ move) + l2 * (move @ move))
        t, zero = _best_length(now, move, l1, slope, curve if curve > 0 else -slope)
        moved = t * move
        if zero >= 0:
            moved[zero] = -now[zero]
        d[support] += moved
        g += moved @ H[support]
        if zero >= 0:  # the weight that met zero is zero exactly
            d[support[zero]] = -w[support[zero]]
        return zero >= 0


def _best_length(now: Array, move: Array, l1: float, slope: float, curve: float) -> tuple[float, int]:
    """Return where ``slope t + ½ curve t²`` and what ``l1 |now + t move|`` adds to it are least.

    The slope is that at 0, the penalty's included; the second number is that of the weight that is 0 there,
    or −1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(now * move < 0, -now / move, np.inf)
    order = np.argsort(at)[: np.count_nonzero(at < np.inf)]
    times = at[order]
    after = slope + np.cumsum(2.0 * l1 * np.abs(move[order]))
    before = np.concatenate([[slope], after[:-1]])
    ends = np.flatnonzero(after + curve * times >= 0)
    if not ends.shape[0]:
        return -float(after[-1] if after.shape[0] else slope) / curve, -1
    first = int(ends[0])
    if before[first] + curve * times[first] >= 0:
        return -float(before[first]) / curve, -1
    return float(times[first]), int(order[first])


def violation(W: Array, G: Array, l1: float, l2: float) -> Array:
    """Return how far each weight is from optimal: the distance of 0 to the subdifferential.

    Examples
    --------
    >>> import numpy as np
    >>> violation(np.array([0.0, 0.0, 2.0]), np.array([0.5, -3.0, -1.0]), 1.0, 0.0).tolist()
    [0.0, 2.0, 0.0]
    """
    smooth = G + l2 * W
    return np.where(W != 0, np.abs(smooth + l1 * np.sign(W)), np.maximum(np.abs(smooth) - l1, 0.0))
