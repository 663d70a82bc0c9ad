"""All classes learnt jointly, as one machine beside those of the binary problems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._loop import CUT_SHORT, Below, Control, Step, run
from separatrix.solvers.kernel_crammer_singer import KernelCrammerSinger
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import Machine
from separatrix.solvers.smo import DualSolution


class JointMachine:
    """Drives :class:`KernelCrammerSinger` until its relative duality gap is small.

    Parameters
    ----------
    matrix : KernelMatrix
        Kernel values between the samples.
    classes : ndarray of int of shape (n,)
        Number of each sample's class.
    upper : ndarray of shape (n,)
        ``C s_i``.
    tol : float
        Relative gap to reach.

    Attributes
    ----------
    coef : ndarray of shape (K, n)
        Coefficients of the samples in each class's score; there are no intercepts.
    """

    def __init__(self, matrix: KernelMatrix, classes: Array, upper: Array, *, tol: float) -> None:
        self.matrix, self.tol, self.rounds = matrix, tol, 0
        self.solver = KernelCrammerSinger(matrix, classes, upper, tol=tol)
        self.status = "running"

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield the steps of the solver; the last one has a status."""
        for step in self.solver.steps(control):
            self.rounds += 1
            if step.finished is None and step.measure <= self.tol:
                step.finished = "converged"
            if step.finished == "converged" and self.solver.nonconvex:
                step.finished = "nonconvex"
            self.status = step.finished or "running"
            yield step

    @property
    def out_of_reach(self) -> bool:
        """Whether rounding errors, not a number of steps, kept the fit from the tolerance."""
        return self.solver.out_of_reach

    @property
    def coef(self) -> Array:
        """Return the coefficients of the samples in each class's score."""
        return self.solver.coef + 0.0

    @property
    def gram(self) -> Array:
        """Return ``w_k·w_l`` of all pairs of classes."""
        return np.asarray(self.solver.coef @ self.solver.scores)

    @property
    def solutions(self) -> list[DualSolution]:
        """Return how the one problem stands."""
        mu, h = self.solver.mu, self.solver.gradient
        # A class in use must have the largest h of its sample.
        least = np.where((mu > 0) & (self.solver.cost > 0)[:, None], h, np.inf).min(axis=1)
        apart = np.where(np.isfinite(least), h.max(axis=1) - least, 0.0)
        violation = float(apart.max(initial=0.0))
        return [DualSolution(mu, h, violation=violation, steps=self.rounds, status=self.status)]

    @property
    def iterations(self) -> Array:
        """Return the rounds of the one problem."""
        return np.array([self.rounds])

    @property
    def machines(self) -> list[Machine]:
        """Return what the one solution means."""
        solver, found = self.solver, self.solutions[0]
        own = solver.gradient[solver.every, solver.classes]
        size = max(abs(solver.primal), abs(solver.dual))
        return [
            Machine(
                coef=self.coef,
                intercept=0.0,
                rho=0.0,
                square=float(np.trace(self.gram)),
                slack=solver.gradient.max(axis=1) - own,
                primal=solver.primal,
                dual=solver.dual,
                gap=solver.gap,
                relative_gap=solver.gap / size if size > 0 else 0.0,
                violation=found.violation,
                rounding=0.0,
                vanishes=False,
                indefinite=False,
            )
        ]


def joint_fold_scores(
    matrix: KernelMatrix,
    classes: Array,
    upper: Array,
    fold_of: Array,
    *,
    tol: float,
    max_time: float | None = None,
) -> tuple[Array, str, int]:
    """Return the scores of samples by joint machines that have not seen their fold.

    Parameters
    ----------
    matrix : KernelMatrix
        Kernel values between the samples.
    classes : ndarray of int of shape (n,)
        Number of each sample's class.
    upper : ndarray of shape (n,)
        ``C s_i``.
    fold_of : ndarray of int of shape (n,)
        Fold of each sample, from 0 on.
    tol : float
        Relative gap of the machines.
    max_time : float or None
        Most seconds for all folds.

    Returns
    -------
    ndarray of shape (n, K)
        One column per class.
    str
        How it ended: "converged", "max_time" (each fold has had its share) or "interrupted".
    int
        The number of folds whose samples have scores: all of them, unless it was interrupted.
    """
    scores = np.zeros((classes.shape[0], int(classes.max(initial=-1)) + 1))
    folds = int(fold_of.max(initial=-1)) + 1
    status, clock = "converged", Control(max_time)
    for fold in range(folds):
        left_out = np.flatnonzero(fold_of == fold)
        if left_out.size == classes.shape[0]:
            continue
        # A sample whose price is 0 takes no part.
        solver = JointMachine(matrix, classes, np.where(fold_of == fold, 0.0, upper), tol=tol)
        limit = None if max_time is None else max(max_time - clock.seconds(), 0.0) / (folds - fold)
        ended = run(solver, Below(-1.0), max_iter=np.inf, max_time=limit).status
        coef = solver.coef
        used = np.flatnonzero(coef.any(axis=0))
        if used.size:
            scores[left_out] = matrix.product(used, np.ascontiguousarray(coef[:, used].T), left_out)
        if ended in CUT_SHORT:
            status = ended
        if ended == "interrupted":
            return scores, status, fold + 1
    return scores, status, folds
