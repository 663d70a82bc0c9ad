r"""Ridge on sparse samples that are fewer than features, in the samples' coordinates.

    (A Aᵀ + α I) V = Z,      W = Aᵀ V,      A = √s (x − μ),   Z = √s (t − t̄)

by conjugate gradients whose columns share their directions (:mod:`._directions`), preconditioned by a factor
in single precision (:mod:`separatrix.solvers.sample_factor`): where the condition is good, each iteration
adds some four digits, and where it is bad, a few. Products with ``A Aᵀ`` come from the data, in double
precision.

Any ``W``, ``b`` and ``V`` with ``√s ⊥ V`` are this far from the optimum at most, ``E`` being the residuals of
``W`` and ``b``, each row times ``√s``:

    P(W, b) − P* ≤ ‖E − α V‖² + α ‖W − Aᵀ V‖²

which is ``‖R‖²`` with the residual ``R`` of the system above if ``W = Aᵀ V`` exactly, and is computed from
the data for the weights that are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from separatrix.data.threads import in_threads
from separatrix.data.view import Array, padding
from separatrix.solvers._directions import JointDirections
from separatrix.solvers._loop import Control, Step
from separatrix.solvers._products import sparse_scores, sparse_transposed
from separatrix.solvers.regression import Judged, LeastSquaresSolver, Regression, few_rows, judge
from separatrix.solvers.sample_factor import SampleFactor

#: Gap, as a share of the objective without weights, that counts as exact: about what rounding weights costs.
_EXACT = {np.dtype(np.float32): 1e-13, np.dtype(np.float64): 1e-20}
#: Iterations after which a factor in double precision is the better way, and most samples for that (400 MB).
_PATIENCE, LARGEST_DOUBLE = 40, 7000


class SparseDual(LeastSquaresSolver):
    """The dual route for one penalty, above 0.

    Parameters
    ----------
    problem : Regression
        Sparse samples.
    tol : float
        Relative gap that is enough where iterations are slow.
    otherwise : callable
        Makes the route that takes over where this one does not come to an end.
    """

    description = "the normal equations in dual form"
    route = "dual"

    def __init__(
        self, problem: Regression, tol: float, otherwise: Callable[[Regression], LeastSquaresSolver]
    ) -> None:
        self.V = np.zeros((problem.view.shape[0], problem.columns))
        self._pending: JointDirections | None = None
        self._room: Array | None = None
        self._whole: Array | None = None  # the weights, with columns of zeros
        super().__init__(problem)
        self.tol, self.otherwise = tol, otherwise
        self.alpha = float(problem.alpha[0])

    def steps(self, control: Control) -> Iterator[Step]:
        """Factorise, then yield after each iteration on all columns, and after each judgement."""
        p = self.problem
        n = p.view.shape[0]
        self.root = np.ones(n) if p.weights is None else np.sqrt(p.weights)
        if p.fit_intercept:
            self.mean = p.view.column_sums(p.weights) / p.total
        X = p.view.read(slice(0, n)).astype(np.float64)
        self.along = X @ self.mean - 0.5 * float(self.mean @ self.mean)
        factor = SampleFactor(X, self.root, self.mean, self.alpha, control.expired)
        del X
        Z = self.root[:, None] * p.centred_targets[p.classes]
        if control.expired():
            yield Step({"residual": float(np.linalg.norm(Z)), "measure": 1.0}, np.inf)
        if not factor.sound:
            yield from self._hand_over(self.otherwise(p), control)
            return
        exact, iterations, last = _EXACT[p.view.dtype], 0, np.inf
        while True:
            R = Z - self._multiply(self.V) if iterations else Z.copy()
            group = JointDirections(R, lambda R, _: factor.solve(R))
            while self._share(group.R) > exact:
                if not group.P.size:  # the factor's solutions are not finite
                    yield from self._hand_over(self.otherwise(p), control)
                    return
                group.advance(self._multiply(group.P))
                self._pending, self.judged, iterations = group, None, iterations + 1
                share = self._share(group.R)
                if iterations >= _PATIENCE and n <= LARGEST_DOUBLE:
                    yield from self._hand_over(self.otherwise(p), control)
                    return
                # A closed form is exact, whatever the tolerance; where it is slow, the tolerance counts.
                measure = np.inf if iterations < _PATIENCE else share
                yield Step({"residual": float(np.sqrt(np.square(group.R).sum())), "measure": share}, measure)
                if share > exact:
                    group.turn()
            self._judge()
            assert self.gap is not None
            gap = self.relative(self.gap)
            stuck = gap > 0.25 * last
            if stuck and gap > self.tol:
                self.description += ", as far as the precision reaches"
            done = stuck or gap <= self.tol
            yield Step(
                {"objective": self.objective, "relative_gap": gap},
                0.0 if done else np.inf,
                "converged" if done else None,
            )
            last = gap

    def _share(self, R: Array) -> float:
        return self.relative(float(np.square(R).sum()))

    def _round(self, out: Array | None = None) -> float:
        """Bring weights and constants to the samples' coordinates, and round them where they are."""
        if self._pending is not None:
            self.V += self._pending.step
            self._pending.step[:] = 0.0
            self._pending = None
            if self.problem.fit_intercept:
                self.V -= np.outer(self.root, (self.root @ self.V) / self.problem.total)
            self._whole = self._transposed(self._padded(self.V))
            self.W = self._whole[:, : self.V.shape[1]]
            self._room = None
            total = self.root @ self.V
            for rows in few_rows(self.W):
                self.W[rows] -= np.outer(self.mean[rows], total)
        return super()._round(self.W)

    def _judge(self, *, single: bool = False) -> Judged:
        """Evaluate the weights to be returned, and how far from the optimum they are at most."""
        moved = self._round()
        E = np.empty((self.V.shape[0], padding(self.V.shape[1])))
        b = self.intercept.astype(np.float64)
        self.judged = judge(self.problem, self.W, b, self.mean, shift=False, residuals=E, whole=self._whole)
        E *= self.root[:, None]
        E[:, : self.V.shape[1]] -= self.alpha * self.V
        self.gap = float(np.square(E).sum()) + self.alpha * moved
        return self.judged

    def _padded(self, V: Array) -> Array:
        """Return ``√s V``, in whole registers of columns."""
        out = np.zeros((V.shape[0], padding(V.shape[1])))
        np.multiply(V, self.root[:, None], out=out[:, : V.shape[1]])
        return out

    def _transposed(self, rooted: Array) -> Array:
        """Return ``Xᵀ R``, where the last one was: fresh memory costs more than the product."""
        d = self.problem.view.shape[1]
        if self._room is None:
            self._room = np.empty(d * padding(self.problem.columns))
        return sparse_transposed(self.problem.view, rooted, self._room[: d * rooted.shape[1]].reshape(d, -1))

    def _multiply(self, V: Array) -> Array:
        """Return ``(A Aᵀ + α I) V``."""
        view, rooted = self.problem.view, self._padded(V)
        W = self._transposed(rooted)
        parts = view.parts()
        out = np.empty_like(V)
        # A Aᵀ = √s (X − 1 μᵀ)(X − 1 μᵀ)ᵀ √s, multiplied out: neither samples nor weights are centred.
        total, across = rooted.sum(axis=0), self.along @ rooted

        def write(number: int) -> None:
            rows = parts[number]
            scores = sparse_scores(view, rows, W)
            scores -= np.outer(self.along[rows], total)
            scores -= across
            np.multiply(scores[:, : V.shape[1]], self.root[rows][:, None], out=out[rows])

        for _ in in_threads(write, len(parts)):
            pass
        out += self.alpha * V
        return out
