r"""The joint multiclass SVM (Crammer–Singer), linear: dual coordinate descent over samples.

Problem, for ``K`` classes and ``h_ik = f_k(x_i) + [k ≠ c_i]``:

    min over W:  ½ Σ_k ‖w_k‖² + C Σ_i s_i (max_k h_ik − h_{i c_i}),   f_k(x) = w_k·x + b_k

The intercept is a weight like the others, on a constant feature (`intercept_scaling`, as in LIBLINEAR). Dual:
``μ_i`` in the simplex, ``α_i = C s_i (t_i − μ_i)``,

    max  −½‖Σ_i α_i x_iᵀ‖² + C Σ_i s_i (1 − μ_{i c_i}),

with ``W = Σ α_i x_iᵀ`` at the optimum. A step solves exactly for all classes of one sample
(``_hot/crammer_singer.hpp``; Keerthi, Sundararajan, Chang, Hsieh and Lin, 2008). The gap is a sum over
samples, ``C s_i (max_k h_ik − μ_i·h_i)``, none of them negative, so each visit tells how much is left to gain
at its sample: samples that have nothing left sleep for some epochs, and the sum says when a certificate is
worth its pass.

Epochs that creep are extrapolated (:mod:`._joint_extrapolation`). Few data are solved by Newton's method and
multipliers instead, as other linear machines are (``_hot/small_joint.hpp``; larger ones ``joint_newton.py``),
and so are those on which coordinate descent crawls, where a step is not too dear: features of unequal size do
not matter to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.certificate import Certificate
from separatrix.data.memory import CsrView, DenseView
from separatrix.data.threads import asking, single_threaded
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._box_dual import explain
from separatrix.solvers._coordinate_rows import CHUNK_WORK, visit
from separatrix.solvers._joint_extrapolation import JointExtrapolation
from separatrix.solvers._joint_objective import JointObjective
from separatrix.solvers._loop import Control, Outcome, OutOfTimeError, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._simplex import best_part, freedom, newton_direction
from separatrix.solvers._softmax_gap import Certified, SoftmaxGap
from separatrix.solvers.joint_newton import JointNewton, work

#: Tolerances from here on are reached in single precision, unless ``C s_i ‖x_i‖²`` allows too small ``μ``.
_SINGLE_TOL, _SINGLE_STIFFNESS = 1e-5, 100.0
#: A sample may sleep if its gap is below this part of tol, were all samples to have as much.
_NEGLIGIBLE = 0.1
#: Visits of an epoch at least.
_SMALL = 15_000
#: Newton steps of the whole problem: multiply-adds of one up to which they begin at once; epochs after which
#: they begin, with so many unknowns and numbers to copy at most.
_NEWTON_WORK, _CRAWLING, _NEWTON_SIZE, _NEWTON_COPY = 1 << 22, 60, 700, 1 << 21
#: Such steps at a time, and all of them.
_NEWTON_STEPS, _MOST_NEWTON = 40, 200
#: Steps of larger problems that are expected, and epochs that they save; multiply-adds of steps in the time
#: of one of an epoch.
_NEWTON_NEEDED, _EPOCHS_SAVED, _FASTER = 60.0, 500.0, 40.0
#: Epochs after which no more are waited for, and multiply-adds of steps that may still be borne (30 s).
_WAITED, _RESCUE = 600, 1e12
#: First ρ (1/ρ is the width of the smoothed kink), and after epochs; most of the first ``ρ C s_i ‖x_i‖²``.
_RHO, _LATE_RHO, _STIFF = 0.5, 10.0, 30.0
#: Part of tol to go for; part of a gap that is not worth steps where rounding the weights makes the rest.
_SAFE, _MINOR = 0.9, 0.1
#: Proofs in a row that show no progress, though hardly anything is left to gain: the rest is rounding.
_STUCK = 10
#: Epochs before the first extrapolation, and between two; stored values visited per number it looks at.
_CREEPING, _EVERY, _WORTH = 10, 3, 3.0
#: Epochs after which the gap that was asked for is enough, though a smaller one is gone for.
_PATIENT = 240
#: Joint steps: most free directions, most steps in a row, and multiply-adds that they may cost at first.
_MOST_FREE, _NEWTON_ROUNDS, _FIRST_BUDGET = 2_500, 20, 2e7


class LinearCrammerSinger:
    """One fit by dual coordinate descent, epoch by epoch.

    Parameters
    ----------
    problem : Problem
        Samples, joint codes (a column for each class) and weights; its view must be in memory. With
        ``fit_intercept`` the scores have a penalised constant term.
    C : float
        Factor of the loss.
    tol : float
        Relative duality gap that the fit is meant to reach: it sets precision and effort, the loop ends the
        fit.
    intercept_scaling : float
        Value of the constant feature: the larger, the less the intercept is penalised.
    seed : int
        Where the random orders start.
    threads : int
        Threads for the certificate; epochs use one. The result does not depend on it.
    start : ndarray of shape (n, K) or None
        Dual variables ``μ`` to start from: those of a fit with another ``C`` (`mu`).
    enough : float
        Relative gap above ``tol`` that ends the fit where many epochs have not reached ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.multiclass import Coding
    >>> from separatrix.solvers._loop import Below, run
    >>> problem = Problem(view_of(np.eye(3)), np.arange(3), Coding.of("joint", 3).codes, joint=True)
    >>> solver = LinearCrammerSinger(problem, C=10.0, tol=1e-9)
    >>> result = solver.finish(run(solver, Below(1e-9), max_iter=1000))
    >>> result.certificate.status, result.coef.argmax(axis=0).tolist()
    ('converged', [0, 1, 2])
    """

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        tol: float,
        intercept_scaling: float = 1.0,
        seed: int = 0,
        threads: int = 1,
        start: Array | None = None,
        enough: float = 0.0,
    ) -> None:
        view = problem.view
        if not isinstance(view, DenseView | CsrView):
            raise TypeError(
                "dual coordinate descent visits rows one by one and needs data in memory, "
                f"not {type(view).__name__}."
            )
        if not problem.joint:
            raise ValueError("the Crammer–Singer problem learns all classes jointly: use a joint coding.")
        if not (np.isfinite(C) and C > 0):
            raise ValueError(f"dual coordinate descent needs a finite C > 0; got {C}.")
        self.problem, self.view, self.tol, self.enough = problem, view, tol, enough
        self.columns = problem.columns
        self.padded = -(-self.columns // 8) * 8
        self.constant = float(intercept_scaling) if problem.fit_intercept else 0.0
        self.visits = Visits(view, problem.classes, problem.weights, shuffle=True, seed=seed)
        self.gap = SoftmaxGap(problem, C, self.visits.weights, self.padded, threads)
        self.objective = JointObjective(self.gap, self.constant)
        self.norms = view.row_norms() + self.constant**2
        # A row of zeros has the same scores whatever the weights: its loss is 1, and nothing is to be done.
        self.order = self.visits.order[self.norms[self.visits.order] > 0]
        # Small sets are visited several times in an epoch: else starting the loop costs more than the loop.
        self.passes = int(np.clip(_SMALL // max(1, len(self.order)), 1, 200))
        self.order = np.tile(self.order, self.passes)
        self._random = seed
        self._budget = _FIRST_BUDGET  # multiply-adds that joint steps may cost
        self._worked = 0.0  # stored values visited since the last extrapolation
        self._tried = False
        self.level = self.dual = 0.0
        self._certified: Certified | None = None
        self._held: Certified | None = None
        stiffness = float((self.gap.scale * self.norms).max(initial=0.0))
        single = tol >= _SINGLE_TOL and stiffness <= _SINGLE_STIFFNESS
        self._allocate(np.dtype(np.float32 if single else np.float64))
        if start is None:
            mu = self._first()
            self._arrays["mu"][...] = mu  # the weights are 0
            self.dual = float(self.gap.scale @ (1.0 - mu[np.arange(len(mu)), self.gap.classes]))
        else:
            self._take_over(self._given(start))

    def _first(self) -> Array:
        """Return μ of α = 0; for rows of zeros all of it is the first rival's, which is best."""
        n = self.view.shape[0]
        mu = np.zeros((n, self.padded))
        mu[np.arange(n), self.gap.classes] = 1.0
        idle = np.flatnonzero(self.norms == 0)
        mu[idle] = 0.0
        mu[idle, (self.gap.classes[idle] + 1) % self.columns] = 1.0
        return mu

    def _given(self, start: Array) -> Array:
        mu = np.zeros((self.view.shape[0], self.padded))
        mu[:, : self.columns] = np.maximum(start, 0.0)
        total = mu.sum(axis=1, keepdims=True)
        return np.where(total > 0, mu / np.where(total > 0, total, 1.0), self._first())

    def _allocate(self, dtype: np.dtype[Any]) -> None:
        n, d = self.view.shape
        P = self.padded
        # The arrays must live as long as the compiled state that points into them.
        self._arrays: dict[str, Any] = {
            "weights": np.zeros((d + 1, P), dtype=dtype),
            "mu": np.zeros((n, P), dtype=dtype),
            "asleep": np.zeros(n, dtype=np.uint8),
            "scratch": np.zeros(2 * P, dtype=dtype),
            "tally": np.zeros(4),
        }
        self.dtype = dtype
        kind = _hot.CrammerSingerFloat32 if dtype == np.float32 else _hot.CrammerSingerFloat64
        self.extrapolation = JointExtrapolation(self.view, self.gap.classes, self.gap.scale, self.constant)
        self._state = kind(
            classes=self.gap.classes,
            cost=self.gap.scale,
            norms=self.norms,
            columns=self.columns,
            constant=self.constant,
            **self._arrays,
        )

    def _take_over(self, mu: Array, parts: tuple[Array, Array] | None = None) -> None:
        """Set the state to these dual variables and the weights that follow from them, free of rounding."""
        self._arrays["mu"][...] = mu
        weights, bias = self._weights_of(mu) if parts is None else parts
        self._arrays["weights"][:-1] = weights
        self._arrays["weights"][-1] = bias
        self._arrays["asleep"][...] = 0
        self.dual = self._dual(mu, weights, bias)

    def _weights_of(self, mu: Array) -> tuple[Array, Array]:
        """Return ``Xᵀα`` and the weights of the constant feature."""
        return self.gap.weights_of(mu), self.constant * self.gap.alpha(mu).sum(axis=0)

    def _dual(self, mu: Array, weights: Array, bias: Array) -> float:
        own = mu[np.arange(mu.shape[0]), self.gap.classes]
        squares = float(np.vdot(weights, weights)) + float(bias @ bias)
        return float(self.gap.scale @ (1.0 - own)) - 0.5 * squares

    @property
    def mu(self) -> Array:
        """The dual variables, of shape (n, K)."""
        return self._mu()[:, : self.columns]

    def _mu(self) -> Array:
        mu = self._arrays["mu"].astype(np.float64)
        return np.asarray(mu / mu.sum(axis=1, keepdims=True))

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each epoch; its measure is the last certified relative gap."""
        if self._newton_fits(0):
            yield from self._newton_steps(control, started=False)
        epoch = last = poor = 0
        due = 6 if self.passes == 1 else 1
        measure = np.inf
        part = _NEGLIGIBLE
        while True:
            self._extrapolate(epoch)
            if not self._epoch(control, part):
                return
            epoch += 1
            visited = self._arrays["tally"][3] * self.view.row_elements
            self._worked += visited
            self._budget += visited * self.padded
            gain, left = self._arrays["tally"][:2].tolist()
            left /= self.passes
            self.dual += gain
            self.level = max(self.level, self.dual)
            solved = False
            if left > self.tol * self.level and epoch >= due:
                worth = self._newton(control)
                solved = worth > 0 and self.passes > 1
                due = epoch + (2 if worth > gain else 2 * max(4, epoch // 8))
            record: dict[str, Any] = {"epoch": epoch, "gap": left, "objective": None, "relative_gap": None}
            # Joint steps of few samples often find the optimum: to prove it costs less than an epoch.
            if left <= self.tol * self.level or solved or epoch >= last + max(10, last // 2):
                proof = self._certify()
                poor = poor + 1 if proof.relative_gap > 0.9 * measure and not solved else 0
                measure, last, self.level = proof.relative_gap, epoch, proof.primal
                record.update(objective=proof.primal, relative_gap=measure)
                if measure > self.tol and left <= self.tol * self.level:
                    part *= 0.3  # what is missing sleeps
                if measure > self.tol and poor > 1 and self.dtype == np.float32:
                    self._allocate(np.dtype(np.float64))  # what is missing is rounding
            stuck = poor > _STUCK and left <= self.tol * self.level and self.dtype == np.float64
            finished = "max_iter" if stuck or self._only_rounding() else None
            yield Step(record, measure, "converged" if self._crawled(epoch, measure) else finished)
            if self._certified is not None:
                self._take_over(*self._proven)
            if self._newton_fits(epoch):
                yield from self._newton_steps(control, started=True)

    def _crawled(self, epoch: int, measure: float) -> bool:
        """Return whether many epochs have led to what is enough."""
        return epoch >= _PATIENT and measure <= self.enough

    def _newton_fits(self, epoch: int) -> bool:
        """Return whether Newton steps of the whole problem pay: at once, or where epochs crawl."""
        n, d = self.view.shape
        size = (d + 1.0) * self.columns
        if epoch == 0:
            return n * size**2 + size**3 <= _NEWTON_WORK
        if self._compiled:
            return epoch == _CRAWLING
        if self._tried or epoch % _CRAWLING:
            return False
        most = _FASTER * _EPOCHS_SAVED * 2.0 * n * self.view.row_elements * self.columns
        if epoch >= _WAITED:
            most = max(most, _RESCUE)
        return _NEWTON_NEEDED * work(self.view, self.mu, int(size)) <= most

    @property
    def _compiled(self) -> bool:
        """Whether Newton's method has a copy of the samples, and a loop for them."""
        n, d = self.view.shape
        return (d + 1) * self.columns <= _NEWTON_SIZE and n * max(d + 1, self.columns) <= _NEWTON_COPY

    def _newton_steps(self, control: Control, started: bool) -> Iterator[Step]:
        """Yield Newton steps; epochs go on should these not reach the tolerance."""
        n, d = self.view.shape
        mu, D = np.ascontiguousarray(self.mu), d + (self.constant > 0)
        W = np.ascontiguousarray(self._arrays["weights"][:D, : self.columns].T, dtype=np.float64)
        # The compiled state points into the arrays: they live as long.
        cost, classes, goal = self.gap.scale, self.gap.classes, _SAFE * self.tol
        stiffness = float((cost * self.norms).mean())
        rho = min(_RHO, _STIFF / max(stiffness, 1e-300))
        if started:
            # So wide a kink that dual variables of their present size span it.
            rivals = 1.0 - mu[np.arange(n), classes]
            rho = _LATE_RHO * float(rivals[rivals > 0].mean()) if rivals.any() else _LATE_RHO
        size, several = W.size, 1
        state: Any
        if self._compiled:
            rows: Any = self.view.read(slice(0, n))
            x = np.empty((n, D))
            x[:, :d] = rows.toarray() if self.view.sparse else rows
            x[:, d:] = self.constant
            state = _hot.SmallJoint(x=x, classes=classes, cost=cost, W=W, mu=mu, rho=rho, tol=goal)
            several = int(np.clip(CHUNK_WORK // (3 * n * size + size**3 // 6), 1, _NEWTON_STEPS))
        else:
            self._tried = True
            state = JointNewton(self.view, classes, cost, self.constant, W, mu, rho, goal)
        padded, bias = np.zeros((n, self.padded)), np.zeros(self.padded)
        for _ in range(_MOST_NEWTON // several):
            try:
                with asking(control.ask):
                    state.run(several)
            except OutOfTimeError:
                return
            weights = np.zeros((d, self.padded))  # the best ones are held, and must stay as they are
            padded[:, : self.columns], weights[:, : self.columns] = mu, W[:, :d].T
            bias[: self.columns] = W[:, d] if self.constant else 0.0
            self._take_over(padded)
            self._certified = None
            primal, dual, epoch = state.measure()
            reached = primal - dual <= goal * primal
            proof = self._certify((weights, bias), rounded=reached and self.view.dtype != np.float64)
            self.level = proof.primal
            record = {"epoch": epoch, "gap": proof.gap, "objective": proof.primal}
            # Once it is reached the rest is rounding.
            finished = "max_iter" if reached and self.view.dtype != np.float64 else None
            yield Step({**record, "relative_gap": proof.relative_gap}, proof.relative_gap, finished)
            if reached or (not self._compiled and state.stuck):
                return

    def _extrapolate(self, epoch: int) -> None:
        """Move further the way that the last epochs went, where they creep and cost more than that."""
        if epoch < _CREEPING or epoch % _EVERY or self._worked < _WORTH * sum(self.view.shape):
            return
        self.dual += self.extrapolation.step(self._arrays["mu"], self._arrays["weights"])
        self._worked = 0.0

    def _epoch(self, control: Control, part: float) -> bool:
        """Visit every sample that is awake; return False if the loop wants to stop on the way."""
        self._certified = None
        self._random = _hot.shuffle(self.order, self._random)
        self._arrays["tally"][:] = 0.0
        n = self.order.shape[0]
        self._state.negligible = part * self.tol * self.level / max(1, n)
        return visit(self._state, self.view, self.order, self.padded, control)

    def _newton(self, control: Control) -> float:
        """Move the samples that use several classes together, where they are few; return the dual's gain."""
        worth = 0.0
        for _ in range(_NEWTON_ROUNDS):
            mu = self._arrays["mu"]
            degrees = freedom(mu)
            rows = np.flatnonzero((degrees > 0) & (self.gap.scale > 0))
            if not self._affordable(len(rows), int(degrees[rows].sum())) or control.expired():
                break
            gain = self._newton_step(rows)
            worth += gain
            if gain <= 1e-3 * self.tol * self.level:
                break
        return worth

    def _affordable(self, m: int, free: int) -> bool:
        """Return whether a joint step costs no more than the epochs since the last one; if so, pay."""
        cost = free**3 / 3 + m**2 * (self.view.row_elements + 6 * self.padded)
        if not 0 < free <= _MOST_FREE or cost > self._budget:
            return False
        self._budget -= cost
        return True

    def _newton_step(self, rows: Array) -> float:
        arrays, K = self._arrays, self.columns
        block = self.view.take(rows).astype(np.float64)
        mu = arrays["mu"][rows, :K].astype(np.float64)
        mu /= mu.sum(axis=1, keepdims=True)
        cost, own = self.gap.scale[rows], self.gap.classes[rows]
        with single_threaded(len(rows) ** 2 * (self.view.row_elements + K)):
            W = arrays["weights"][:, :K].astype(np.float64)
            h = np.asarray(block @ W[:-1]) + self.constant * W[-1] + 1.0
            h[np.arange(len(rows)), own] -= 1.0
            products: Any = block @ block.T
            gram = np.asarray(products.toarray() if self.view.sparse else products) + self.constant**2
            d = newton_direction(mu, h, cost, gram)
            change = -cost[:, None] * d
            step = np.vstack([np.asarray(block.T @ change), self.constant * change.sum(axis=0)])
        slope, curvature = float(-(change * h).sum()), float(np.vdot(step, step))
        t = best_part(slope, curvature)
        if t <= 0.0:
            return 0.0
        mu += t * d
        mu[mu < 1e-14] = 0.0  # rounding must not make directions of what is at the border
        arrays["mu"][rows, :K] = mu
        arrays["weights"][:, :K] = W + t * step
        gain = t * slope - 0.5 * t * t * curvature
        self.dual += gain
        return gain

    def _certify(self, given: tuple[Array, Array] | None = None, rounded: bool = False) -> Certified:
        """Compute the dual variables' bound and the objective of given weights, or of theirs, rounded.

        With ``rounded`` only rounding keeps the weights from ``tol``.
        """
        if self._certified is None:
            with single_threaded(np.inf):
                mu = self._mu()
                weights, bias = self._weights_of(mu)
                self._proven = mu, (weights, bias)
                dual = self._dual(mu, weights, bias)
                # Any mean of μ and of α = 0 is a bound, too: the best of them.
                square = 0.5 * (float(np.vdot(weights, weights)) + float(bias @ bias))
                tau = min(max(dual + square, 0.0) / max(2.0 * square, 1e-300), 1.0)
                dual = max(dual, tau * (dual + square - tau * square))
                weights, bias = (weights, bias) if given is None else given
                found = self.objective.returned(weights, self.constant * bias, dual, self.tol, rounded)
                self._certified = self._best(found)
        return self._certified

    def _only_rounding(self) -> bool:
        """Return whether only rounding to the samples' precision makes the weights miss the tolerance."""
        proof = self._certified
        if proof is None or self.view.dtype == np.float64 or proof.relative_gap <= self.tol:
            return False
        weights, bias = self._proven[1]
        with single_threaded(np.inf):
            primal = self.objective(weights, self.constant * bias)
        return primal - proof.dual <= max(_SAFE * self.tol * primal, _MINOR * proof.gap)

    def _best(self, found: Certified) -> Certified:
        """Return the best weights and bound that were ever seen: epochs may lose what steps found."""
        before = self._held
        if before is not None:
            better = found if found.primal <= before.primal else before
            found = replace(better, dual=max(found.dual, before.dual))
        self._held = found
        return found

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters and what they prove, after whatever ended the epochs."""
        proof = self._certify()
        dtype, weights = self.view.dtype, self.problem.weights
        certificate = Certificate(
            status=outcome.status,
            message=explain(outcome.status, proof.relative_gap, self.tol),
            iterations=outcome.iterations,
            seconds=outcome.seconds,
            primal=proof.primal,
            dual=proof.dual,
            gap=proof.gap,
            relative_gap=proof.relative_gap,
            samples=self.view.shape[0] if weights is None else int(np.count_nonzero(weights)),
        )
        coef = np.ascontiguousarray(proof.weights[:, : self.columns].T, dtype=dtype)
        return Result(coef, proof.intercept.astype(dtype), certificate, outcome.history, outcome.iterations)
