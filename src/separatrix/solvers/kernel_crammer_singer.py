r"""The joint multiclass SVM (Crammer–Singer) with a kernel: exact solutions on working sets of samples.

Problem, for ``K`` classes, ``f_k(x) = Σ_j α_jk k(x_j, x) + b_k`` and ``h_ik = f_k(x_i) + [k ≠ c_i]``:

    min  ½ Σ_k ‖w_k‖² + Σ_i C_i (max_k h_ik − h_{i c_i})

Dual: ``μ_i`` in the simplex, ``α_i = C_i (t_i − μ_i)``, maximise ``Σ_i C_i (1 − μ_{i c_i}) − ½ Σ_k α_kᵀ Q
α_k``. Without a constant ``Q`` is the kernel matrix and there are no intercepts, as Crammer and Singer (2001)
state the problem; with a constant ``s`` it is ``k + s²``, which is a penalised intercept ``b_k = s² Σ_i
α_ik``, as in the linear case.

A round takes the samples with the largest gaps ``C_i (max_k h_ik − μ_i·h_i)`` and those that use several
classes, and solves for them: the rows of a factor ``Q = L Lᵀ`` of their block are vectors with these inner
products, so that the loop of the linear case (``_hot/crammer_singer.hpp``) does the coordinate descent; joint
Newton steps (``_simplex``) finish it. Scores of all samples are then brought up to date. Where ``Q`` is not
positive semidefinite its negative part is left out of the working set's model, an upper bound of what a step
costs, so that the dual rises in any case.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import eigh, lapack, solve_triangular

from separatrix import _hot
from separatrix.data.threads import single_threaded
from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers._simplex import best_part, freedom, newton_direction
from separatrix.solvers.hulls import Similarities

#: Samples of a working set; up to twice as many are solved for at once.
_WORKING = 1_000
#: Kernel values of a product between two looks at the clock.
_ENTRIES = 1 << 21
#: Most free directions of a joint step, most such steps in a row, most epochs of a round.
_MOST_FREE, _NEWTON_ROUNDS, _EPOCHS = 1_500, 30, 200
#: What the gap must fall by in a round or a joint step that the dual does not show.
_HALF = 0.5


class KernelCrammerSinger:
    """One fit, round by round, driven by the loop; the measure is the relative duality gap.

    Parameters
    ----------
    matrix : Similarities
        Kernel values between the training samples: ``block``, ``product`` and ``diag``.
    classes : ndarray of int of shape (n,)
        Class of each sample, from 0 on.
    upper : ndarray of shape (n,)
        ``C_i = C s_i``, not negative.
    tol : float
        Relative duality gap that the fit is meant to reach.
    constant : float
        ``s``, which carries the intercepts; 0 for none.
    seed : int
        Where the random orders start.

    Attributes
    ----------
    coef : ndarray of shape (K, n)
        Dual variables ``α``: the scores are ``coef @ k(x_i, x) + intercept``.
    intercept : ndarray of shape (K,)
        ``s² Σ_i α_ik``.
    gradient : ndarray of shape (n, K)
        ``h``, the scores of the training samples plus 1 for rivals.
    primal, dual, gap : float
        Objective, lower bound, and their difference, of the present dual variables.
    nonconvex : bool
        Whether a block of the matrix was not positive semidefinite: optimality is then local only, and the
        bound none.
    out_of_reach : bool
        Whether steps ended because rounding errors hide what is left of the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import RBF
    >>> from separatrix.solvers._kernel_blocks import KernelBlocks
    >>> from separatrix.solvers._loop import Below, run
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 2, 1])
    >>> solver = KernelCrammerSinger(KernelBlocks(RBF(1.0), X), y, np.full(4, 10.0), tol=1e-8)
    >>> run(solver, Below(1e-8), max_iter=100).status
    'converged'
    >>> solver.scores.argmax(axis=1).tolist()
    [0, 1, 2, 1]
    """

    def __init__(
        self,
        matrix: Similarities,
        classes: Array,
        upper: Array,
        *,
        tol: float,
        constant: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.matrix, self.tol, self.constant = matrix, tol, float(constant)
        self.classes = np.ascontiguousarray(classes, dtype=np.int32)
        self.cost = np.ascontiguousarray(upper, dtype=np.float64)
        if not np.isfinite(self.cost).all() or (self.cost < 0).any():
            raise ValueError("the bounds C_i of the dual variables must be finite and not negative.")
        self.n, self.K = len(self.classes), max(2, int(self.classes.max()) + 1)
        self.every = np.arange(self.n)
        self.mu = np.zeros((self.n, self.K))
        self.mu[self.every, self.classes] = 1.0
        self.gradient = np.ones((self.n, self.K))
        self.gradient[self.every, self.classes] = 0.0
        self.nonconvex = self.out_of_reach = False
        self._random = seed
        self._measure()

    @property
    def _alpha(self) -> Array:
        alpha = -self.mu * self.cost[:, None]
        alpha[self.every, self.classes] += self.cost
        return alpha

    @property
    def coef(self) -> Array:
        """Dual variables ``α``, of shape (K, n)."""
        return np.ascontiguousarray(self._alpha.T)

    @property
    def intercept(self) -> Array:
        """Constant terms of the scores."""
        return np.asarray(self.constant**2 * self._alpha.sum(axis=0))

    @property
    def scores(self) -> Array:
        """Scores of the training samples, of shape (n, K)."""
        f = self.gradient - 1.0
        f[self.every, self.classes] += 1.0
        return np.asarray(f)

    def _gaps(self, rows: Array) -> Array:
        h = self.gradient[rows]
        return np.asarray(self.cost[rows] * np.maximum(h.max(axis=1) - (self.mu[rows] * h).sum(axis=1), 0.0))

    def _measure(self) -> None:
        h = self.gradient
        own = h[self.every, self.classes]
        self.gaps = self._gaps(self.every)
        quadratic = float((self._alpha * self.scores).sum())
        self.primal = 0.5 * quadratic + float(self.cost @ (h.max(axis=1) - own))
        self.dual = float(self.cost @ (1.0 - self.mu[self.every, self.classes])) - 0.5 * quadratic
        self.gap = float(self.gaps.sum())

    def refresh(self) -> None:
        """Compute the scores of the present dual variables anew, free of the rounds' rounding errors."""
        used = np.flatnonzero(self._alpha.any(axis=1))
        self.gradient = np.ones((self.n, self.K))
        if len(used):
            self.gradient += self.matrix.product(used, self._alpha[used]) + self.intercept
        self.gradient[self.every, self.classes] -= 1.0
        self._measure()

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each round; its measure is the relative gap."""
        stuck = 0
        while not control.expired():
            before, gap = self.dual, self.gap
            working = self._working(_WORKING << stuck)
            self._round(working, control)
            relative = self.gap / self.primal if self.primal > 0 else 0.0
            if relative <= self.tol:
                self.refresh()
                relative = self.gap / self.primal if self.primal > 0 else 0.0
            # Near the optimum the gap falls with what scores are off by, the dual rises with its square.
            gains = self.dual > before + 1e-13 * abs(self.dual) or self.gap < _HALF * gap
            stuck = 0 if gains else stuck + 1
            finished = None
            if stuck > 2 and len(working) == np.count_nonzero(self.cost):
                self.refresh()
                relative = self.gap / self.primal if self.primal > 0 else 0.0
                self.out_of_reach = not relative <= self.tol  # the rest of the gap is rounding
                finished = "nonconvex" if self.nonconvex else "max_iter" if self.out_of_reach else "converged"
            record = {
                "objective": self.primal,
                "lower_bound": self.dual,
                "relative_gap": relative,
                "support_vectors": int(np.count_nonzero(self.mu[self.every, self.classes] < 1.0)),
            }
            yield Step(record, relative, finished)

    def _working(self, size: int) -> Array:
        """Return the samples that use several classes, and those with the largest gaps."""
        candidates = np.flatnonzero(self.cost > 0)
        if len(candidates) <= 2 * size:
            return candidates
        free = candidates[freedom(self.mu[candidates]) > 0]
        free = free[np.argsort(-self.gaps[free], kind="stable")[:size]]
        rest = np.setdiff1d(candidates, free)
        worst = rest[np.argsort(-self.gaps[rest], kind="stable")[:size]]
        return np.sort(np.concatenate([free, worst[self.gaps[worst] > 0]]))

    def _round(self, rows: Array, control: Control) -> None:
        if not len(rows):
            return
        Q = np.asarray(self.matrix.block(rows, rows), dtype=np.float64) + self.constant**2
        before, mu, gradient = self._alpha[rows], self.mu[rows], self.gradient[rows]
        with single_threaded(np.inf):
            self._descend(rows, Q, control)
            self._newton(rows, Q, control)
            change = self._alpha[rows] - before
            moved = np.flatnonzero(change.any(axis=1))
            self.gradient[rows] -= Q @ change  # told again below, with all other samples
        if len(rows) == self.n:
            self.gradient += Q @ change
        elif len(moved):
            sums = self._product(rows[moved], change[moved], control)
            if sums is None:  # a round that not all samples can be told of has not been
                self.mu[rows], self.gradient[rows] = mu, gradient
                return
            self.gradient += sums + self.constant**2 * change.sum(axis=0)
        self._measure()

    def _product(self, rows: Array, change: Array, control: Control) -> Array | None:
        """Return what a change adds to the scores of all samples; None if time is up before."""
        step = max(1, _ENTRIES // len(rows))
        if step >= self.n:
            return self.matrix.product(rows, change)
        sums = np.empty((self.n, self.K))
        for begin in range(0, self.n, step):
            if begin and control.expired():
                return None
            part = slice(begin, begin + step)
            sums[part] = self.matrix.product(rows, change, self.every[part])
        return sums

    def _factor(self, Q: Array) -> Array:
        """Return ``L`` with ``L Lᵀ = Q``, a little of the diagonal added where Q is not regular."""
        ridge = 1e-10 * float(np.abs(Q.diagonal()).max(initial=1e-300))
        L, info = lapack.dpotrf(Q + ridge * np.eye(len(Q)), lower=1, clean=1)
        if info == 0:
            return np.ascontiguousarray(L)
        values, vectors = eigh(Q)
        self.nonconvex |= bool(values[0] < -1e-8 * max(values[-1], 1e-300))
        # Triangular like the other: the rows of Rᵀ for V √λ = (Qᵀ R)ᵀ.
        R = np.linalg.qr((vectors * np.sqrt(np.maximum(values, ridge))).T, mode="r")
        return np.ascontiguousarray(np.asarray(R).T)

    def _descend(self, rows: Array, Q: Array, control: Control) -> None:
        """Coordinate descent on the working set; ``gradient`` and ``mu`` of its samples follow."""
        L = self._factor(Q)
        m, P = len(rows), -(-self.K // 8) * 8
        mu = np.zeros((m, P))
        mu[:, : self.K] = self.mu[rows]
        weights = np.zeros((m + 1, P))
        # Weights whose scores are the present ones: those of α and of all other samples alike.
        weights[:-1, : self.K] = solve_triangular(L, self.scores[rows], lower=True, check_finite=False)
        # The arrays must live as long as the compiled state that points into them.
        arrays = {
            "classes": np.ascontiguousarray(self.classes[rows]),
            "cost": np.ascontiguousarray(self.cost[rows]),
            "norms": np.einsum("ij,ij->i", L, L),
            "weights": weights,
            "mu": mu,
            "asleep": np.zeros(m, dtype=np.uint8),
            "scratch": np.zeros(2 * P),
            "tally": np.zeros(4),
        }
        state = _hot.CrammerSingerFloat64(columns=self.K, constant=0.0, **arrays)
        goal = max(0.1 * float(self.gaps[rows].sum()), 0.3 * self.tol * abs(self.dual))
        state.negligible = 0.01 * goal / m
        order = np.flatnonzero(arrays["norms"] > 0)
        for _ in range(_EPOCHS):
            self._random = _hot.shuffle(order, self._random)
            arrays["tally"][:] = 0.0
            state.run_dense(L, order, 0, len(order), -1)
            if arrays["tally"][1] <= goal or control.expired():
                break
        self._move(rows, mu[:, : self.K] / mu[:, : self.K].sum(axis=1, keepdims=True), Q)

    def _move(self, rows: Array, mu: Array, Q: Array) -> None:
        """Go towards these dual variables, as far as the dual rises."""
        d = mu - self.mu[rows]
        change = -self.cost[rows][:, None] * d
        step = Q @ change
        slope = float(-(change * self.gradient[rows]).sum())
        t = best_part(slope, float((change * step).sum()))
        moved = self.mu[rows] + t * d
        moved[moved < 1e-14] = 0.0
        self.mu[rows] = moved
        self.gradient[rows] += t * step

    def _newton(self, rows: Array, Q: Array, control: Control) -> None:
        """Joint steps of all samples of the set that use several classes."""
        last = np.inf
        for _ in range(_NEWTON_ROUNDS):
            degrees = freedom(self.mu[rows])
            part = np.flatnonzero(degrees > 0)
            if not 0 < int(degrees[part].sum()) <= _MOST_FREE or control.expired():
                return
            chosen = rows[part]
            gram = Q[np.ix_(part, part)]
            d = newton_direction(self.mu[chosen], self.gradient[chosen], self.cost[chosen], gram)
            change = -self.cost[chosen][:, None] * d
            slope = float(-(change * self.gradient[chosen]).sum())
            gap = float(self._gaps(rows).sum())
            if slope <= 0 or (slope <= 1e-3 * self.tol * abs(self.dual) and not gap < _HALF * last):
                return
            last = gap
            t = best_part(slope, float((change * (gram @ change)).sum()))
            moved = self.mu[chosen] + t * d
            moved[moved < 1e-14] = 0.0
            self.mu[chosen] = moved
            self.gradient[rows] += t * (Q[:, part] @ change)
