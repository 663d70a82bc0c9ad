r"""Linear machines on wide sparse data whose coordinate descent crawls, as with a large C: by active sets.

With ``x̃ = (x, γ, √δ_i e_i)`` the dual of a column (:mod:`separatrix.solvers._box_dual`),

    max_v  Σ_i v_i t_i − ε|v_i| − ½ ‖Σ_i v_i x̃_i‖²,

is that of a kernel machine with the linear kernel of the ``x̃``: ``v = s a``, and squared losses have no
upper bounds. Where the intercept is free, that machine's is; elsewhere there is no sum of ``v`` to be kept,
and a sample at the origin that costs nothing takes up whatever the others sum to. :mod:`.active_set` then
solves the column: free samples and the worst violators among themselves, by steps of pairs, and in the end
the free ones by one factor of their products. The scores of all samples cost one reading of the data.

Few samples are free where features are many, and C may be as large as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from separatrix.data.memory import CsrView, view_of
from separatrix.data.room import allowed
from separatrix.data.view import Array
from separatrix.kernels import Linear
from separatrix.solvers._box_dual import BoxDual
from separatrix.solvers._dual_problem import DualProblem
from separatrix.solvers._loop import Control
from separatrix.solvers._newton import MOST_FREE
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import SequentialMinimal

#: Free samples per feature, at most.
_INDEPENDENT = 0.8
#: Most bytes of kernel values in work.
_CACHE = float(256 << 20)
#: First violation that is asked for, by what it shrinks as long as the gap is too large, and the last one.
_VIOLATION, _TIGHTER, _LAST = 1e-2, 0.03, 1e-12
#: Part of the gap asked for at which the free samples need no last step.
_PART = 0.5
#: Least active samples, and variables up to which all are active.
_ACTIVE, _DIRECT = 1000, 1500
#: Stored entries of the extended rows, per stored entry and per row, in bytes.
_ENTRY, _ROW = 40.0, 160.0


def suitable(dual: BoxDual, free: int) -> bool:
    """Return whether a column with so many free samples can be solved: their products must have a factor.

    Where they are about as many as the features, they depend on each other, and steps of pairs crawl.
    """
    view = dual.view
    n, d = view.shape
    if not isinstance(view, CsrView) or not 0 < free <= min(MOST_FREE, _INDEPENDENT * d):
        return False
    return _CACHE + n * (_ENTRY * view.row_elements + _ROW) <= allowed() / 2


class BoxRounds:
    """Solves columns one after the other, from dual variables that are near.

    Parameters
    ----------
    dual : BoxDual
        The problem; its view must be a :class:`~separatrix.data.memory.CsrView`.
    tol : float
        Relative duality gap to reach in each column.
    columns : ndarray of int
        The columns to solve.
    coef, intercept, V : ndarray of shape (columns, features), (columns,) and (columns, n)
        Where all columns are; those that are solved are written over.
    """

    def __init__(
        self, dual: BoxDual, *, tol: float, columns: Array, coef: Array, intercept: Array, V: Array
    ) -> None:
        self.dual, self.tol, self.columns = dual, tol, columns
        self.coef, self.intercept, self.V = coef, intercept, V
        self.primal, self.gap = np.zeros(dual.columns), np.full(dual.columns, np.inf)
        self.matrix = KernelMatrix(Linear(), view_of(self._extended()), cache_bytes=_CACHE)

    def _extended(self) -> sparse.csr_matrix:
        """Return the ``x̃``, and the sample at the origin."""
        dual = self.dual
        view = dual.view
        assert isinstance(view, CsrView)
        n = view.shape[0]
        parts = [view.array.astype(np.float64)]
        if dual.square > 0:
            parts.append(sparse.csr_matrix(np.full((n, 1), dual.square**0.5)))
        if dual.squared:
            delta = np.divide(0.5, dual.upper, out=np.zeros(n), where=dual.upper > 0)
            parts.append(sparse.diags(np.sqrt(delta)))
        X = sparse.hstack(parts, format="csr")
        index = np.int32 if max(X.nnz, *X.shape) < 2**31 - 1 else np.int64
        starts = np.append(X.indptr, X.indptr[-1]).astype(index)
        return sparse.csr_matrix((X.data, X.indices.astype(index), starts), shape=(n + 1, X.shape[1]))

    def steps(self, control: Control) -> Iterator[int]:
        """Yield after each column how many are left."""
        for done, k in enumerate(self.columns.tolist(), 1):
            self._solve(k, control)
            yield len(self.columns) - done
            if control.expired():
                return

    def _solve(self, k: int, control: Control) -> None:
        """Solve a column, and keep what is best of it."""
        violation, before, best = _VIOLATION, np.inf, -np.inf
        v = self.dual.balance(self.V[k : k + 1])[0]
        while violation >= _LAST and not control.expired():
            solver = SequentialMinimal(
                self.matrix,
                [self._problem(k, v)],
                tol=violation,
                direct=_DIRECT,
                active=_ACTIVE,
                gap=_PART * self.tol,
            )
            for _ in solver.steps(control):
                pass
            found = solver.solutions[0]
            v, moved = self._variables(k, found.alpha), found.steps > 0 or before == np.inf
            w, b, primal, bound = self.dual.judged(k, v)
            if bound > best:
                best, self.V[k] = bound, v
            if not self.primal[k] <= primal or not np.isfinite(self.gap[k]):
                self.primal[k], self.coef[k], self.intercept[k] = primal, w, b
            self.gap[k] = max(self.primal[k] - best, 0.0)
            if self.gap[k] <= self.tol * self.primal[k] or found.status == "rounding":
                return
            if not (moved and self.gap[k] < before):
                return
            violation, before = _TIGHTER * min(violation, found.violation), self.gap[k]

    def _problem(self, k: int, v: Array) -> DualProblem:
        """Return the dual of a column as that of a kernel machine, from ``v``."""
        dual = self.dual
        rows, codes = dual.counted(k)
        upper = np.full(rows.size, np.inf) if dual.squared else dual.upper[rows]
        v = v[rows]
        # The sample at the origin, with either sign.
        more = 0 if dual.free else 1
        origin, rest = np.full(more, self.dual.view.shape[0]), np.full(more, -float(v.sum()))
        none, ends = np.zeros(more), np.full(more, np.inf)
        if codes is not None:
            return DualProblem(
                np.concatenate([rows, origin, origin]),
                np.concatenate([codes, np.ones(more), -np.ones(more)]),
                np.concatenate([np.full(rows.size, -1.0), none, none]),
                np.concatenate([upper, ends, ends]),
                np.concatenate([np.abs(v), np.maximum(rest, 0.0), np.maximum(-rest, 0.0)]),
                solvable=True,
            )
        assert dual.numbers is not None
        v, t = np.append(v, rest), np.append(dual.numbers[rows], none)
        price = np.append(np.full(rows.size, dual.epsilon), none)
        return DualProblem(
            np.tile(np.append(rows, origin), 2),
            np.repeat([1.0, -1.0], v.size),
            np.concatenate([price - t, price + t]),
            np.tile(np.append(upper, ends), 2),
            np.concatenate([np.maximum(v, 0.0), np.maximum(-v, 0.0)]),
            solvable=True,
        )

    def _variables(self, k: int, alpha: Array) -> Array:
        """Return ``v`` of all samples."""
        rows, codes = self.dual.counted(k)
        v = np.zeros(self.dual.view.shape[0])
        if codes is None:
            alpha = alpha[: alpha.size // 2] - alpha[alpha.size // 2 :]
            codes = np.ones(rows.size)
        v[rows] = codes * alpha[: rows.size]
        return v
