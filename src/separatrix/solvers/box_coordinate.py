r"""Linear support vector machines by dual coordinate descent: for sparse or wide data.

The problem and its dual are those of :mod:`separatrix.solvers._box_dual`; a step solves for one sample's dual
variables exactly (``_hot/box_dual.hpp``). An epoch visits the samples in random order, those that add next
to nothing to the duality gap less often: the gap is a sum over samples, and a visit sees its part of it.
(Hsieh et al., 2008, algorithm 3, go by the gradient's sign.) Every few epochs the way they went is
extrapolated (:mod:`separatrix.solvers._extrapolation`). Columns are independent problems; a few cache lines
of them share the visits, and such groups run in threads, so that the result does not depend on their number.

A free intercept is the multiplier of ``Σ v = 0``: the augmented Lagrangian adds σ to all inner products, with
which the intercept follows every step, and after each epoch the multiplier moves by ``σ Σ v``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from separatrix.data.threads import in_threads
from separatrix.data.view import Array
from separatrix.problem import Problem, Result
from separatrix.solvers._box_dual import BoxDual
from separatrix.solvers._box_finish import LANES, Finish
from separatrix.solvers._box_group import ROUNDED, SAFE, Group
from separatrix.solvers._loop import Control, Outcome, Step
from separatrix.solvers._order import Visits
from separatrix.solvers._rows import in_memory

#: Least curvature of a dual variable, whose steps go from one end to the other.
_FLAT = 1e-25
#: Bytes of the weights of one feature in a group of columns, at most.
_MOST_BYTES = 256
#: Tolerances from here on are reached in single precision, unless steps are too stiff for it.
_SINGLE_TOL, _SINGLE_STIFFNESS = 1e-5, 1e6
#: Epochs after which it is asked again whether another method would be quicker.
_REFLECT = 8
#: Rounding unit of single precision.
_UNIT = 6e-8
#: How steeply a sample's dual variable is guessed to rise with its margin's shortfall from given weights.
_SLOPE = 5.0


class BoxCoordinate:
    """Solver; see the module's description.

    Parameters
    ----------
    problem : Problem
        Samples, codes or targets, weights; a loss of :data:`separatrix.solvers._box_dual.LOSS_NAMES`. Its
        view must be in memory.
    C : float
        Factor of the loss.
    scaling : float or None
        The constant feature whose penalised weight is the intercept; None for a free intercept.
    coef, intercept : ndarray of shape (columns, features) and (columns,)
        Where to start.
    tol : float
        Relative duality gap to reach.
    seed : int
        Where the random orders start.
    newton : bool
        Whether another method may finish what is slow.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import view_of
    >>> from separatrix.losses import LOSSES
    >>> from separatrix.solvers._loop import Below, run
    >>> problem = Problem(view_of(np.array([[-2.0], [-1.0], [1.0], [2.0]])), np.array([0, 0, 1, 1]),
    ...                   np.array([[-1], [1]], dtype=np.int8), loss=LOSSES["hinge"], fit_intercept=False)
    >>> solver = BoxCoordinate(problem, C=10.0, scaling=None, coef=np.zeros((1, 1)),
    ...                        intercept=np.zeros(1), tol=1e-9, seed=0)
    >>> result = solver.finish(run(solver, Below(1e-9), max_iter=100))
    >>> result.certificate.status, result.coef.round(6).tolist()
    ('converged', [[1.0]])
    """

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        scaling: float | None,
        coef: Array,
        intercept: Array,
        tol: float,
        seed: int,
        newton: bool = False,
    ) -> None:
        self.newton = newton
        self.view = in_memory(problem.view, "dual coordinate descent")
        self.problem, self.tol = problem, float(tol)
        self.dual = BoxDual(problem, C, scaling)
        self.coef = np.asarray(coef, dtype=np.float64)
        self.intercept = np.asarray(intercept, dtype=np.float64)
        present = problem.weights
        self.visits = Visits(self.view, problem.classes, present, shuffle=True, seed=seed, merge=False)
        self.seed = seed
        norms = self.view.row_norms()
        median = float(np.median(norms[self.visits.order])) if self.visits.order.size else 1.0
        self.constant = self._sigma(median) if self.dual.free else self.dual.square
        # A sample of zeros without an intercept has no curvature: its variable goes to the end at once.
        self.norms = np.maximum(norms + self.constant, _FLAT)
        stiffness = float((self.dual.upper * self.norms).max(initial=0.0))
        self.single = tol >= _SINGLE_TOL and (self.dual.squared or stiffness < _SINGLE_STIFFNESS)
        # What rounded scores may add to squares of what samples lack: it is looked at in double.
        rounded = 4.0 * _UNIT**2 * float(self.dual.upper @ self.norms) * self.view.row_elements
        self.delicate = self.dual.squared and rounded > ROUNDED * tol
        self.primal, self.gap = np.zeros(problem.columns), np.full(problem.columns, np.inf)
        self.finisher: Finish | None = None
        self.groups = self._grouped()
        if self.coef.any():
            self._start()

    def _sigma(self, norm: float) -> float:
        """Return σ of the augmented Lagrangian: as a sample's norm, but no less than moves the intercept.

        At a small C all dual variables are at their bounds, ``Σ v`` is at most ``Σ U``, and by σ times that
        the intercept moves in an epoch: it should cross the scores that are asked for.
        """
        total = float(self.dual.upper.sum())
        spread = 1.0 if self.dual.numbers is None else float(np.std(self.dual.numbers))
        return max(norm, spread / total if total > 0 else 0.0, 1e-30)

    def _start(self) -> None:
        """Take over given weights as far as the dual can express them."""
        dual, every = self.dual, np.arange(self.problem.columns)
        F = self.view.scores(self.coef, self.intercept).T.astype(np.float64)
        codes = dual.codes(every)
        short: Array = (dual.numbers if codes is None else codes) - F  # type: ignore[operator]
        short = np.sign(short) * np.maximum(np.abs(short) - dual.epsilon, 0.0)
        V = 2.0 * short if dual.squared else np.clip(_SLOPE * short, -1.0, 1.0)
        if codes is not None:
            V = np.where(codes * V > 0, V, 0.0)
        V *= dual.upper
        # v is right at an optimum, and C'/C times as large at that of another C'.
        G = self.view.transposed(V.T.astype(self.view.dtype)).T
        wanted, square = np.einsum("kj,kj->k", self.coef, G), np.einsum("kj,kj->k", G, G)
        theta = np.clip(np.divide(wanted, square, out=np.zeros_like(wanted), where=square > 0), 0.0, 1.0)
        for group in self.groups:
            group.take_over(theta[group.own, None] * V[group.own])

    def _grouped(self) -> list[Group]:
        dtype = np.dtype(np.float32 if self.single else np.float64)
        K = self.problem.columns
        # Two groups at least, for two threads, where they fill registers.
        count = max(2 if K > LANES else 1, -(-K * dtype.itemsize // _MOST_BYTES))
        width = -(-K // (count * LANES)) * LANES
        starts = range(0, K, width)
        return [Group(self, np.arange(k, min(k + width, K)), dtype, self.seed + k) for k in starts]

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each epoch; its measure is the last computed relative gap."""
        epoch, measure, objective = 0, np.inf, 0.0
        while True:
            awake = [group for group in self.groups if not group.done]
            for _ in in_threads(lambda i: awake[i].epoch(control), len(awake)):  # noqa: B023
                pass
            epoch += 1
            # Few epochs end with a look at the gap, and many are so short that all else is felt.
            looked = [group for group in awake if group.checked == group.count]
            for group in looked:
                self.primal[group.own], self.gap[group.own] = group.primal, group.gap
            if looked:
                measure, objective = self.measure(), float(self.primal.sum())
                # What is rounded may not be called converged yet.
                if SAFE * self.tol < measure <= self.tol:
                    measure = float(np.nextafter(self.tol, np.inf))
            done = all(group.done for group in self.groups)
            stuck = done and any(group.stuck for group in self.groups)
            if done and not stuck:
                measure = min(measure, self.tol)
            known = measure < np.inf
            record = {
                "epoch": epoch,
                "gain": sum(float(group.tally[0]) for group in awake),
                "objective": objective if known else None,
                "relative_gap": measure if known else None,
            }
            # What no step improves any more in double precision is left to another method, or as it is.
            halted = stuck and not self.single and measure > self.tol
            lost = [group for group in self.groups if group.stuck] if halted and self.newton else []
            rescue = Finish(self, lost) if lost else None
            rescued = rescue is not None and rescue.bearable
            yield Step(record, measure, "max_iter" if halted and not rescued else None)
            if control.reason() is not None:
                return
            if rescue is not None and rescued:
                self.finisher = rescue
                yield from rescue.steps(control)
                return
            if self.single and (stuck or any(group.rounded for group in self.groups)):
                self._promote()
                self.gap[:], measure = np.inf, np.inf
            if not looked and epoch % _REFLECT:
                continue
            slow = [group for group in self.groups if group.slow and not group.done]
            all_slow = slow and len(slow) == sum(not group.done for group in self.groups)
            if self.newton and all_slow and (other := Finish(self, slow)).pays:
                self.finisher = other
                yield from other.steps(control)
                return

    def measure(self) -> float:
        """Return the gap of all columns, relative to their objective."""
        total, gap = float(self.primal.sum()), float(self.gap.sum())
        return gap / total if np.isfinite(gap) and total > 0 else np.inf

    def _promote(self) -> None:
        """Go on in double precision."""
        old, self.single = self.groups, False
        V = self._dual_variables(old)
        self.groups = self._grouped()
        for group in self.groups:
            group.take_over(V[group.own])
            group.follow(next(before for before in old if group.own[0] in before.own))

    def parameters(self) -> tuple[Array, Array, Array]:
        """Return weights, intercepts and dual variables of all columns."""
        coef, intercept = np.empty_like(self.coef), np.empty_like(self.intercept)
        for group in self.groups:
            coef[group.own], intercept[group.own] = group.parameters()
        return coef, intercept, self._dual_variables(self.groups)

    def _dual_variables(self, groups: list[Group]) -> Array:
        """Return the dual variables of all columns, (columns, n)."""
        V = np.zeros((self.problem.columns, self.view.shape[0]))
        for group in groups:
            V[group.own] = group.v[:, : group.own.shape[0]].T
        return V

    def finish(self, outcome: Outcome) -> Result:
        """Return the parameters in the data's precision and what they prove."""
        if self.finisher is not None:
            coef, intercept, V = self.finisher.coef, self.finisher.intercept, self.finisher.V
        else:
            coef, intercept, V = self.parameters()
        coef, intercept, found = self.dual.rounded(coef, intercept, V, self.tol)
        samples = int(np.count_nonzero(self.dual.upper > 0))
        certificate = found.certificate(outcome, self.tol, samples)
        return Result(coef, intercept, certificate, outcome.history, outcome.iterations)
