r"""Softmax regression by dual coordinate descent: for sparse or wide data with many classes.

Problem, for ``K`` classes (and, with codes ±1 in one column, for two):

    min over W, b:  C Σ_i s_i [logsumexp_k f_k(x_i) − f_{c_i}(x_i)] + ½‖W‖²,   f_k(x) = w_k·x + b_k

Dual: ``μ_i`` in the simplex, ``α_i = C s_i (t_i − μ_i)``,

    max  −½‖Σ_i α_i x_iᵀ‖² + C Σ_i s_i H(μ_i)   subject to  Σ_i α_i = 0 where the intercept is free,

``H`` the entropy. At the optimum ``W = Σ α_i x_iᵀ`` and ``μ_i = softmax(f(x_i))``. A step solves for all
classes of one sample (``_hot/softmax_dual.hpp``; after Yu, Huang and Lin, 2011); an epoch visits all samples
in random order, those whose last steps gained next to nothing less often.

The free intercept is the multiplier of ``Σ α_i = 0``. On that plane nothing changes if all rows are moved by
their mean and σ is added to all inner products. Off it, the first takes away the direction that couples all
samples, and the second is an augmented Lagrangian, with which the intercept follows every step. After each
epoch the multiplier moves by ``(σ + 1/h) Σ α_i``, ``h`` the curvature of the loss in ``b``.

Where epochs gain little (long rows that are much alike), the accelerated proximal point method takes over
(Lin, Mairal and Harchaoui, 2015): each epoch works on the objective plus ``κ/2 ‖W − Y‖²``, whose steps are
much less stiff, and then ``Y`` moves beyond the new ``W`` by a part of the last change. The solution for
given ``α`` is ``W = (Xᵀα + κ Y)/(1 + κ)``; at the end ``Y = W = Xᵀα``. One epoch may solve too little of that
problem, as a free intercept follows the less the larger κ is: where gaps rise, it goes on from the best point
with a smaller κ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from separatrix import _hot
from separatrix.certificate import Certificate
from separatrix.data.memory import CsrView, DenseView
from separatrix.data.room import demand
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._coordinate_rows import visit
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._room import softmax_dual_bytes
from separatrix.solvers._softmax_gap import Certified, SoftmaxGap

#: Added to all inner products where the intercept is free, relative to the median of the squared row lengths.
_SIGMA = 1.0
#: Tolerances from here on are reached in single precision, unless steps are too stiff for it.
_SINGLE_TOL, _SINGLE_STIFFNESS = 1e-5, 1e7
#: A sample may rest if its step gains less than this part of tol, were all samples to gain as much.
_NEGLIGIBLE = 0.03
#: Certified gaps after which single precision is given up if none was clearly better than the one before.
_PATIENCE = 2
#: Epochs whose gain is more than this part of the last one's are slow; κ is this part of the stiffness.
_SLOW, _KAPPA = 0.5, 1.0 / 40
#: Certified gaps so many times the least one mean that acceleration leads away; κ is then this part of it.
_WORSE, _CALMER = 2.0, 1.0 / 8
_NEW = 255


class _Momentum:
    """The point ``Y`` of the accelerated proximal point method, and the last weights."""

    def __init__(self, kappa: float, weights: Array, sums: Array) -> None:
        self.part = kappa / (1.0 + kappa)
        root = np.sqrt(1.0 + kappa)
        self.beta = (root - 1.0) / (root + 1.0)
        # Weights and their sums Σ α move alike; the sums also remember what part of them is not α's.
        self._points = [[weights.copy(), weights.copy()], [sums.copy(), sums.copy()]]
        self.base = self.part * sums

    def advance(self, weights: Array, sums: Array, mean: Array) -> tuple[Array, Array]:
        """Move ``Y``, and with it weights and sums; return how scores of the mean and sums changed."""
        changes = []
        for points, now, factor in zip(self._points, (weights, sums), (mean, None), strict=True):
            Y, last = points
            np.subtract(now, last, out=last)
            last *= self.beta
            last += now  # the new Y
            np.subtract(last, Y, out=Y)
            Y *= self.part
            now += Y
            changes.append(Y.copy() if factor is None else factor @ Y)
            np.subtract(now, Y, out=Y)  # the weights before they were moved
            points.reverse()
        self.base += changes[1]
        return changes[0], changes[1]


class SoftmaxDual:
    """One fit by dual coordinate descent, epoch by epoch.

    Parameters
    ----------
    problem : Problem
        Samples, codes (joint, or one column for two classes) and weights; its view must be in memory.
    C : float
        Factor of the loss.
    coef, intercept : ndarray of shape (columns, features) and (columns,)
        Where to start; all zeros mean that nothing is known.
    tol : float
        Relative duality gap that the fit is meant to reach: it sets precision and effort, not the end.
    seed : int
        Where the random orders start.
    threads : int
        Threads for the certificate; epochs use one. The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.multiclass import Coding
    >>> from separatrix.solvers._loop import Below, run
    >>> problem = Problem(view_of(np.eye(3)), np.arange(3), Coding.of("joint", 3).codes, joint=True)
    >>> solver = SoftmaxDual(problem, C=1.0, coef=np.zeros((3, 3)), intercept=np.zeros(3), tol=1e-9, seed=0)
    >>> result = solver.finish(run(solver, Below(1e-9), max_iter=100))
    >>> result.certificate.status, int(np.argmax(result.coef[1]))
    ('converged', 1)
    """

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        coef: Array,
        intercept: Array,
        tol: float,
        seed: int,
        threads: int = 1,
    ) -> None:
        view = problem.view
        if not isinstance(view, DenseView | CsrView):
            raise TypeError(
                f"dual coordinate descent visits rows one by one and needs data in memory, "
                f"not {type(view).__name__}."
            )
        if problem.columns > 1 and not problem.joint:
            raise ValueError(
                "dual coordinate descent learns all classes jointly, or two in one column; solve "
                "one-vs-rest problems column by column."
            )
        if not np.isfinite(C):
            raise ValueError("dual coordinate descent needs a penalty: give a finite C.")
        demand(softmax_dual_bytes(view, problem.columns), "the dual method", "choose solver='auto'")
        self.problem, self.view, self.C, self.tol = problem, view, C, tol
        self.columns = problem.columns
        self.padded = 1 if self.columns == 1 else -(-self.columns // 8) * 8
        self._check_classes()
        self.visits = Visits(view, problem.classes, problem.weights, shuffle=True, seed=seed)
        self.order, self._random = self.visits.order, seed
        self.gap = SoftmaxGap(problem, C, self.visits.weights, self.padded, threads)
        self.level = 0.0  # what the objective is like, to know which gains matter
        self._certified: Certified | None = None
        self._momentum: _Momentum | None = None
        #: Least certified gap, and the dual variables and offsets that had it.
        self._best: tuple[float, Array, Array] | None = None
        #: The certified weights with the least objective.
        self._lowest: Certified | None = None
        self._prepare_rows()
        stiffness = (self._shared["scale"] * self._shared["norms"])[self.order]
        self.kappa = _KAPPA * float(np.median(stiffness)) if stiffness.size else 0.0
        single = tol >= _SINGLE_TOL and float(stiffness.max(initial=0.0)) < _SINGLE_STIFFNESS
        self._allocate(np.dtype(np.float32 if single else np.float64))
        self._start(np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64))

    def _check_classes(self) -> None:
        weights = self.problem.weights
        present = np.bincount(self.problem.classes, weights, self.problem.codes.shape[0])
        if self.problem.fit_intercept and not np.all(present > 0):
            raise ValueError(
                f"class number {int(np.argmin(present))} has no samples (or only of weight 0), so its "
                "intercept would be −inf: leave the class out, or fit without intercept."
            )

    def _prepare_rows(self) -> None:
        """Lengths of the rows, moved by their mean where the intercept is free."""
        view, n = self.view, self.view.shape[0]
        weights = self.visits.weights
        norms = view.row_norms()
        self.mean, self.constant, self.sigma = np.zeros(view.shape[1]), 0.0, 0.0
        dots = np.zeros(n)
        if self.problem.fit_intercept:
            share = (np.ones(n) if weights is None else weights) / self.visits.total
            self.mean = view.transposed(share[:, None].astype(view.dtype))[:, 0].astype(np.float64)
            dots = np.ascontiguousarray(view.scores(self.mean[None])[:, 0], dtype=np.float64)
            square = float(self.mean @ self.mean)
            moved = np.maximum(norms - 2 * dots + square, 1e-9 * norms)
            self.sigma = max(_SIGMA * float(np.median(moved)), float(np.finfo(np.float32).tiny))
            self.constant = square + self.sigma
            norms = moved + self.sigma
        self._shared: dict[str, Any] = {
            "classes": self.gap.classes,
            "scale": self.gap.scale,
            "norms": norms,
            "mean_dots": dots,
        }

    def _allocate(self, dtype: np.dtype[Any]) -> None:
        n, d = self.view.shape
        P = self.padded
        # The arrays must live as long as the compiled state that points into them.
        self._arrays: dict[str, Any] = {
            "weights": np.zeros((d, P), dtype=dtype),
            "nu": np.zeros((n, P), dtype=dtype),
            "asleep": np.full(n, _NEW, dtype=np.uint8),
            "offsets": np.zeros(P, dtype=dtype),
            "sums": np.zeros(P, dtype=dtype),
            "spread": np.zeros(P, dtype=dtype),
            "scratch": np.zeros(6 * P, dtype=dtype),
            "tally": np.zeros(3),
        }
        self.dtype = dtype
        kind = _hot.SoftmaxDualFloat32 if dtype == np.float32 else _hot.SoftmaxDualFloat64
        self._state = kind(**self._shared, **self._arrays, columns=self.columns, constant=self.constant)

    def _start(self, coef: Array, intercept: Array) -> None:
        """Take over given weights as far as the dual can express them, else only the classes' shares."""
        offsets = self._arrays["offsets"][: self.columns]
        if self.problem.fit_intercept:
            offsets[:] = intercept if np.any(intercept) or np.any(coef) else self.gap.prior()
        if not np.any(coef):
            return
        # α = θ C s (t − p): θ is 1 at an optimum, and C'/C at that of another C' < C.
        mu = self.gap.probabilities(self._padded(coef.T), self._padded(intercept))
        G = self.gap.weights_of(mu)
        wanted, square = float(np.vdot(self._padded(coef.T), G)), float(np.vdot(G, G))
        theta = min(1.0, wanted / square) if square > 0 else 0.0
        if theta < 1e-6:
            return
        mu = self.gap.mix(mu, theta)
        self._take_over(mu, theta * G)

    def _take_over(self, mu: Array, weights: Array) -> None:
        """Set the state to these dual variables and the weights that follow from them."""
        arrays = self._arrays
        scale = self._shared["scale"][:, None]
        with np.errstate(divide="ignore"):
            nu = np.log(mu) - (np.log1p(-mu) if self.columns == 1 else 0.0)
        bound = 80.0 if self.dtype == np.float32 else 700.0
        arrays["nu"][...] = np.clip(nu, -bound, bound if self.columns == 1 else 0.0)
        arrays["nu"][:, self.columns :] = -100.0
        arrays["weights"][...] = weights
        arrays["sums"][...] = self.gap.alpha(mu).sum(axis=0)
        arrays["spread"][...] = (scale * mu * (1 - mu)).sum(axis=0)
        arrays["asleep"][...] = 0
        self.level = max(0.0, self.gap.dual(mu, weights))

    def _padded(self, values: Array) -> Array:
        out = np.zeros((*values.shape[:-1], self.padded))
        out[..., : self.columns] = values
        return out

    def _mu(self) -> Array:
        """Return the dual variables in double precision; samples not yet visited have α = 0."""
        nu = self._arrays["nu"].astype(np.float64)
        if self.columns == 1:
            mu = expit(nu)
        else:
            mu = np.exp(nu)
            mu[:, self.columns :] = 0.0
            mu /= np.maximum(mu.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        fresh = self._arrays["asleep"] == _NEW
        if fresh.any():
            mu[fresh] = 0.0
            if self.columns > 1:
                mu[fresh, self.gap.classes[fresh]] = 1.0
        return np.asarray(mu)

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each epoch; its measure is the last certified relative gap."""
        before, factor, last, epoch, poor, slow = 0.0, 0.5, 0, 0, 0, 0
        measure = np.inf
        while True:
            if not self._epoch(control):
                return
            epoch += 1
            gain = max(float(self._arrays["tally"][0]), 0.0)
            if last == 0:
                self.level += gain
            self._move_outer()
            # Gains that fall by a factor ρ each time have gain ρ/(1 − ρ) still to come; what part of the gap
            # that is shows the last certificate.
            rho = min(gain / before, 0.99) if before > 0 else 0.99
            before, remaining = gain, gain * rho / (1 - rho)
            if self._momentum is None:
                slow = slow + 1 if rho > _SLOW and epoch > 1 else 0
                if slow > 1 and self.kappa > 0.5:
                    self._accelerate()
            else:
                remaining = gain  # which no longer falls steadily
            promising = factor * remaining <= self.tol * self.level and epoch > last + 1 + last // 20
            record: dict[str, Any] = {"epoch": epoch, "gain": gain, "objective": None, "relative_gap": None}
            if promising or epoch >= last + max(10, last // 2):
                certified = self._certify()
                poor = 0 if certified.relative_gap < 0.5 * measure else poor + 1
                measure, last, self.level = certified.relative_gap, epoch, certified.primal
                record.update(objective=certified.primal, relative_gap=measure)
                if remaining > 0:
                    factor = float(np.clip(certified.gap / remaining, 1e-2, 1e4))
                if self._lowest is None or certified.primal < self._lowest.primal:
                    # Without an intercept they are the loop's own, which moves on.
                    self._lowest = replace(certified, weights=certified.weights.copy())
                if self._best is None or certified.gap < self._best[0]:
                    self._best = certified.gap, self._mu(), self._arrays["offsets"].copy()
                if self._momentum is not None and certified.gap > _WORSE * self._best[0]:
                    self.kappa *= _CALMER
                    self._begin_again(*self._best[1:], self.dtype)
                    before, slow, poor = 0.0, 0, 0
                elif poor >= _PATIENCE and self.dtype == np.float32 and measure > self.tol:
                    self._promote()
                    poor = 0
            yield Step(record, measure)

    def _epoch(self, control: Control) -> bool:
        """Visit every sample that is awake; return False if the loop wants to stop on the way."""
        self._certified = None
        self._random = _hot.shuffle(self.order, self._random)
        self._arrays["tally"][:] = 0.0
        n = self.order.shape[0]
        # While Y moves, every sample is affected: none may rest.
        restful = self._momentum is None
        self._state.negligible = _NEGLIGIBLE * self.tol * self.level / max(1, n) if restful else 0.0
        return visit(self._state, self.view, self.order, self.padded, control)

    def _move_outer(self) -> None:
        """Move what stands still within an epoch: the multiplier, and the point of acceleration."""
        arrays, momentum = self._arrays, self._momentum
        if self.problem.fit_intercept:
            base = 0.0 if momentum is None else momentum.base
            c, h = arrays["sums"].astype(np.float64) - base, arrays["spread"].astype(np.float64)
            share = 1.0 if self.columns == 1 else 1.0 - 1.0 / self.columns
            # With nearly all probabilities at 0 or 1 the curvature is no guide: σ alone leads.
            inverse = share / (self._state.shrink * np.maximum(h, 1e-3 * share / self.sigma))
            arrays["offsets"][...] += ((self.sigma + inverse) * c).astype(self.dtype)
        if momentum is not None:
            mean = self.mean.astype(self.dtype, copy=False)
            scores, sums = momentum.advance(arrays["weights"], arrays["sums"], mean)
            # The change concerns x − m: the score of the mean stays.
            arrays["offsets"][...] -= scores - sums * self.dtype.type(self.constant - self.sigma)

    def _accelerate(self) -> None:
        self._momentum = _Momentum(self.kappa, self._arrays["weights"], self._arrays["sums"])
        self._state.shrink = 1.0 / (1.0 + self.kappa)

    def _promote(self) -> None:
        """Go on in double precision, from the same dual variables."""
        self._begin_again(self._mu(), self._arrays["offsets"], np.dtype(np.float64))

    def _begin_again(self, mu: Array, offsets: Array, dtype: np.dtype[Any]) -> None:
        """Go on from these dual variables, without acceleration."""
        self._certified = None
        offsets = offsets.astype(np.float64)
        self._momentum = None
        self._allocate(dtype)
        self._arrays["offsets"][...] = offsets
        self._take_over(mu, self.gap.weights_of(mu))

    def _certify(self) -> Certified:
        if self._certified is None:
            arrays = self._arrays
            W = arrays["weights"]
            if self.problem.fit_intercept:
                W = W - self.mean[:, None].astype(self.dtype) * arrays["sums"]
            W = W.astype(self.view.dtype, copy=False)  # what the fit returns
            self._certified = self.gap.certify(W, arrays["offsets"].astype(np.float64), self._mu, self.tol)
        return self._certified

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters and what they prove, after whatever ended the epochs."""
        proof = self._certify()
        if self._lowest is not None and outcome.status != "converged" and self._lowest.primal < proof.primal:
            proof = self._lowest
        dtype = self.view.dtype
        coef = np.ascontiguousarray(proof.weights[:, : self.columns].T, dtype=dtype)
        intercept = proof.intercept
        if self.problem.joint and self.problem.fit_intercept:
            intercept = intercept - intercept.mean()  # softmax does not see what all classes share
        status, weights = outcome.status, self.problem.weights
        reason = {
            "converged": "the certified relative gap is within tol",
            "max_iter": "max_iter epochs done; raise it for a smaller gap",
            "max_time": "max_time is over; raise it for a smaller gap",
            "interrupted": "interrupted; fit again to go on",
        }.get(status, status)
        certificate = Certificate(
            status=status,
            message=f"{reason} (relative gap {proof.relative_gap:.2g})",
            iterations=outcome.iterations,
            seconds=outcome.seconds,
            primal=proof.primal,
            dual=proof.dual,
            gap=proof.gap,
            relative_gap=proof.relative_gap,
            samples=self.view.shape[0] if weights is None else int(np.count_nonzero(weights)),
        )
        return Result(coef, intercept.astype(dtype), certificate, outcome.history, outcome.iterations)
