"""All classes learnt jointly, as one machine beside those of the binary problems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.kernel_crammer_singer import KernelCrammerSinger
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import DualSolution
from separatrix.solvers.svm import Machine


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
        self.solver, self.tol, self.rounds = KernelCrammerSinger(matrix, classes, upper, tol=tol), tol, 0
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
                vanishes=False,
            )
        ]
