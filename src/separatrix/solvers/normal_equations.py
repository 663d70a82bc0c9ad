r"""Least squares by normal equations, primal and dual.

Primal, for few features: the classes' weights, means and scatter (:mod:`separatrix.solvers.scatter`)
are all that the problem needs of the data, since the targets are coded classes:

    S = S_within + Σ_k w_k (μ_k − μ)(μ_k − μ)ᵀ,     R = Σ_k w_k (μ_k − μ)(t_k − t̄)ᵀ

Dual, for fewer samples than features: with the weighted centred rows ``A = √s (x − μ)``,

    (A Aᵀ + α I) v = √s (T − t̄),      W = Aᵀ v

which is the shortest solution for ``α → 0``. Centred rows are dependent (``√s`` is in the null
space), so ``τ u uᵀ`` with ``u ∝ √s`` is added, which changes no solution.

Both are scaled to a unit diagonal, so the units of features do not matter, and factorised by Cholesky.
The solution is corrected with residuals computed from the data (iterative refinement) until the
correction is negligible. Where the condition is too bad for that, or the rank in doubt, the
orthogonal route takes over.

Since residuals correct the solution, many features of dense data are at first multiplied with four
digits (:func:`separatrix.data.products.add_products`, coarse): each correction then adds some three
digits more. The matrix that is so factorised differs from the true one by a share ``ρ`` in any direction,
and the gap that it tells by a factor of at most ``1/(1 − ρ)``. Where corrections shrink too slowly, the
products are made again in double precision.

Whole numbers of some fraction (:mod:`separatrix.solvers.grid`) have exact products of the same speed, which
need no correction. Where samples ``X`` are such numbers ``Y`` but for rounding, ``|X − Y| ≤ ε |X|``, the gap
that the sums of ``Y`` tell is widened by what that can do at most: with the diagonal ``D²`` of
``M = S + α I``, the least eigenvalue ``λ`` of ``D⁻¹ M D⁻¹`` and residuals ``e_c``,

    √gap ≤ √gap_Y + ‖ κ ‖e_c‖ + 3 η_c ‖_c,    κ² = ε²/λ Σ_j ‖x_j‖²/D_j²,    η_c = ε Σ_j ‖x_j‖ |w_jc|
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from separatrix import _hot
from separatrix.data.products import NotFiniteError, Precision
from separatrix.data.room import basis, demand
from separatrix.data.threads import one_thread_for, question
from separatrix.data.view import Array, csr_parts
from separatrix.solvers._loop import Control, Step
from separatrix.solvers.glance import glance
from separatrix.solvers.grid import Grid, grid_of
from separatrix.solvers.null_space import scatter_factor
from separatrix.solvers.orthogonal import LARGEST_WIDE, Orthogonal, Singular, column_scale
from separatrix.solvers.regression import PIECE_BYTES, Judged, Regression, judge, row_pieces
from separatrix.solvers.scatter import statistics

#: Reciprocal condition (of the squared problem) from which refinement surely converges.
_WELL = 1e-11
#: The same where the sums were formed in single precision.
_WELL_SINGLE = 1e-4
#: The same from which a solution of double-precision sums needs no correction.
_EASY = 1e-6
#: Least eigenvalue, about, of a matrix with a unit diagonal from which rounding of samples leaves six digits.
_CLEAR = 1e-3
#: Entries of a small matrix.
_FEW = 1 << 18
#: Least eigenvalue, about, of a matrix with a unit diagonal and four digits (ρ is then 0.3 at most), and the
#: factor that makes up for its errors in a gap.
_WELL_COARSE, _UNSURE = 1e-6, 1.5
#: Features from which four digits save more in products than corrections cost, and how many more per target
#: (in double precision, which needs more corrections, twice as many).
_MANY_COARSE, _MORE_COARSE = 192, 12
#: Values of the data from which it matters.
_LARGE = 1 << 22
#: Largest first correction of such a solution, as a share of it.
_FIRST = 0.1
#: Features from which single precision saves more in sums than residuals cost, and how many more per target.
_MANY, _MORE = 48, 12
#: Rows for each feature among which a few tell what all are like.
_TALL = 40
#: Most corrections.
_ROUNDS = 5
#: Mean of a column, in units of its spread, from which samples are centred before they are judged.
_FAR = 100.0
#: Bytes of the rows that are multiplied with each other at a time in the dual form.
PANEL_BYTES = 32 << 20
#: Pairs of sparse samples that are multiplied at a time.
_PAIRS = 1e8
#: Cubes of rows of a square matrix that one processor factorises in a second, for an estimate: by Cholesky's
#: method, and by eigenvalues.
_CHOLESKY_RATE, _EIGEN_RATE = 5e10, 4e9


class _Cholesky:
    """``M ≈ D L Lᵀ D`` with ``D`` the root of the diagonal; tells whether it can be trusted."""

    def __init__(self, M: Array, free: Array | None = None, well: float = _WELL) -> None:
        """Factorise ``M``, which is overwritten; rows in ``free`` are left out of it."""
        diagonal = np.einsum("ii->i", M)
        if free is not None and free.any():
            M[free] = 0.0
            M[:, free] = 0.0
            diagonal[free] = 1.0
        self.free = free
        with np.errstate(divide="ignore", invalid="ignore"):
            self.scale = 1.0 / np.sqrt(diagonal)
        self.sound = bool(np.all(np.isfinite(self.scale)))
        if not self.sound:
            return
        M *= self.scale
        M *= self.scale[:, None]
        pieces = row_pieces(M, PIECE_BYTES)
        norm = max((float(np.abs(M[rows]).sum(axis=1).max()) for rows in pieces), default=0.0)
        # The transposed view of a symmetric C array is Fortran-ordered: LAPACK works in place.
        with one_thread_for(M.shape[0]):
            self.factor, info = lapack.dpotrf(M.T, lower=1, overwrite_a=1, clean=0)
            #: Reciprocal condition number, estimated.
            self.condition = float(lapack.dpocon(self.factor, norm, uplo="L")[0]) if info == 0 else 0.0
            #: What the eigenvalues of the scaled matrix are not below, about.
            self.least = self.condition * norm
        self.sound = self.condition >= well

    def solve(self, B: Array) -> Array:
        """Return ``M⁻¹ B``."""
        with one_thread_for(B.shape[0]):
            solved = lapack.dpotrs(self.factor, B * self.scale[:, None], lower=1)[0] * self.scale[:, None]
        if self.free is not None:
            solved[self.free] = 0.0
        return np.asarray(solved)


class _Direct(Orthogonal):
    """A closed form with refinement, and the orthogonal route where that is not safe."""

    own = ""
    own_route = ""

    def __init__(self, problem: Regression) -> None:
        super().__init__(problem)
        self.fell_back = False
        #: Whether sums of a few digits may be tried, and whether the factors belong to such.
        self.hasty, self.coarse = True, False

    @abstractmethod
    def _start(self) -> bool:
        """Factorise and set the weights; return whether the factors can be trusted."""

    def _size(self, W: Array) -> float:
        """Return the largest weight, in units in which features compare."""
        return float(np.abs(W * self.scale[:, None]).max(initial=0.0))

    def _set_out(self) -> None:
        """Solve for the first time, by this route or by the orthogonal one."""
        self.description, self.route = self.own, self.own_route
        if self._start():
            self.description = self.own  # it may have found more to tell
        else:
            self.fell_back = True
            self.description, self.route = Orthogonal.description, Orthogonal.route
            demand(basis(self.problem.view.shape[0]) + self.bytes(self.problem), self.description)
            self.solve()

    def steps(self, control: Control) -> Iterator[Step]:
        """Solve, then correct until corrections are negligible."""
        self._control = control
        if not self._in_time(control, self._set_out):
            yield from self._iterate_instead(control)
            return
        narrow = self.problem.view.dtype == np.float32
        negligible = 1e-6 if narrow else 1e-10
        last, rounds = np.inf, 0
        while True:
            single = self.coarse and narrow and rounds == 0  # three digits: the next pass tells the others
            delta, self.gap = self._correct(single=single)
            self.gap *= _UNSURE if self.coarse else 1.0
            share = self._size(delta) / max(self._size(self.W), np.finfo(np.float64).tiny)
            rounds += 1
            record = {"objective": self.objective, "relative_gap": self.relative(self.gap)}
            if single:
                self.judged = None  # a fit that ends here is judged again
            if self.coarse and share > negligible and not share <= _slowest(share, last, negligible):
                yield Step(record, np.inf)
                self.hasty, self.coarse = False, False
                if not self._in_time(control, self._set_out):
                    yield from self._iterate_instead(control)
                    return
                last, rounds = np.inf, 0
                continue
            done = not single and (share <= negligible or share > 0.5 * last or rounds == _ROUNDS)
            yield Step(record, 0.0 if done else np.inf, "converged" if done else None)
            last = share
            self.W = self.W + delta


def _slowest(share: float, last: float, negligible: float) -> float:
    """Return how large a correction may be if two more of its kind are to be the last ones."""
    return _FIRST if last == np.inf else negligible * (last / share) ** 2


class Primal(_Direct):
    """Normal equations in the features."""

    own = "the normal equations"
    own_route = "primal"
    notices = True
    #: Where sums of whole numbers judge samples that differ from them: ``ε ‖x_j‖`` by feature, and ``κ``.
    _blur: tuple[Array, float] | None = None
    #: Scatter and right sides, where these can judge the weights.
    _sums: tuple[Array, Array] | None = None

    def _start(self) -> bool:
        # With fewer digits the sums are quicker; residuals in double precision make up for it. They need
        # other passes, which cost more than they save where the features are few.
        p = self.problem
        n, d = p.view.shape
        enough = (_MANY_COARSE + _MORE_COARSE * p.columns) * (1 if p.view.dtype == np.float32 else 2)
        coarse = d >= enough and n * d >= _LARGE and not p.view.sparse
        grid = grid_of(p.view, p.weights) if self.hasty else None
        if grid is not None and self._exactly(grid):
            return True
        if coarse and self.hasty:
            return self._attempt("coarse") or self._attempt()
        single = d >= _MANY + _MORE * p.columns and p.view.dtype == np.float32 and not p.view.sparse
        if single and n >= _TALL * d:  # a glance at a few rows saves sums that would have to be formed again
            single = glance(p.view, np.zeros(n, dtype=np.int8), 1, p.weights).condition >= _WELL_SINGLE
        return (single and self._attempt("single")) or self._attempt()

    def _exactly(self, grid: Grid) -> bool:
        """Try exact products of whole numbers; return whether their factors can be trusted."""
        try:
            return self._attempt("whole", grid)
        except NotFiniteError:  # a value is no such number, or not finite: the next sums will tell
            return False

    def _attempt(self, precision: Precision = "double", grid: Grid | None = None) -> bool:
        """Sum, factorise and solve; return whether the factors can be trusted."""
        p = self.problem
        weight, means, self.mean, scatter = statistics(p, precision, 1 if grid is None else grid.steps)
        blur = 0.0 if grid is None else grid.blur
        exact = precision in ("double", "whole") and not blur
        coarse, well = precision == "coarse", _WELL_SINGLE if precision == "single" else _WELL
        variance = np.einsum("ii->i", scatter).copy()
        if coarse and np.any((variance <= 0) & means.any(axis=0)):  # too small for single precision
            return False
        length = np.sqrt(p.total) * np.abs(weight @ means / p.total if not p.fit_intercept else self.mean)
        self.scale, self.constant = column_scale(variance, length, p)
        self.shift = p.fit_intercept and bool(np.any(length > _FAR * self.scale))
        if weight.shape[0] > 1:
            R = means.T @ (weight[:, None] * p.centred_targets)
        else:
            R = judge(p, np.zeros_like(self.W), p.target_mean, self.mean, shift=self.shift).gradient
        self._cholesky: dict[float, _Cholesky] = {}
        for alpha in np.unique(p.alpha):
            M = scatter.copy()
            np.einsum("ii->i", M)[:] += alpha
            factor = _Cholesky(M, self.constant if alpha == 0 else None, well)
            if not factor.sound or (coarse and factor.least < _WELL_COARSE):
                told = precision in ("double", "whole") and not p.alpha.any()
                return told and self._without_null_space(scatter, R, length, accurate=not blur)
            self._cholesky[float(alpha)] = factor
        condition = min(factor.condition for factor in self._cholesky.values())
        least = min(factor.least for factor in self._cholesky.values())
        self.coarse = coarse
        clear = condition >= _EASY and (exact or (precision == "whole" and least >= _CLEAR))
        self._begin(scatter, R, accurate=clear)
        self._blur = None
        if blur and self._sums is not None:
            lengths = np.where(self.constant, 0.0, blur * np.hypot(self.scale, length))
            self._blur = lengths, float(np.linalg.norm(lengths / self.scale)) / np.sqrt(least)
        return True

    def _begin(self, scatter: Array, R: Array, *, accurate: bool) -> None:
        """Set the weights, and whether the sums can judge them."""
        self.W = self._solve(R)
        # A good condition needs no residuals of the data; a few rows cost nothing, and tell the errors.
        n, d = self.problem.view.shape
        self._sums = (scatter, R) if accurate and not self.shift and n * d > _FEW else None

    def _without_null_space(self, scatter: Array, R: Array, length: Array, *, accurate: bool) -> bool:
        """Solve for the shortest weights; return whether the rank is beyond doubt."""
        options: dict[str, Any] = {"shift": self.shift, "well": _WELL, "tolerance": self._rounding(length)}
        found = scatter_factor(self.problem, scatter, self.scale, self.constant, self.mean, **options)
        if found is None:
            return False
        sigma, V = found
        self.own, self.rank, self._cholesky = f"{self.own} on {len(sigma)} dimensions", len(sigma), {}
        self._factors = {0.0: Singular(sigma, V, self.scale)}
        easy = bool(np.all(sigma[:1] ** 2 >= _EASY * sigma[-1:] ** 2))
        self._begin(scatter, R, accurate=accurate and easy)
        return True

    def _judge(self, *, single: bool = False) -> Judged:
        """Evaluate the rounded parameters from the sums, where these are accurate enough."""
        if self.fell_back or self._sums is None:
            return super()._judge(single=single)
        self._round()
        (scatter, R), p = self._sums, self.problem
        offset = p.total * (p.target_mean - self.intercept - self.mean @ self.W) if p.fit_intercept else 0.0
        rest = R - scatter @ self.W
        loss = p.null - np.einsum("ij,ij->j", self.W, R + rest) + np.square(offset) / p.total
        slack = np.zeros(p.columns) + offset
        self.judged = Judged(np.maximum(loss, 0.0), rest - p.alpha * self.W, slack, None)
        return self.judged

    def _correct(self, *, single: bool = False) -> tuple[Array, float]:
        """Return the correction and the gap that it closes, widened by what the samples' rounding can do."""
        delta, gap = super()._correct(single=single)
        if self._blur is not None and self.judged is not None:
            (lengths, kappa), residuals = self._blur, np.sqrt(self.judged.loss)
            gap = (np.sqrt(gap) + np.linalg.norm(kappa * residuals + 3.0 * lengths @ np.abs(self.W))) ** 2
        return delta, float(gap)

    def _violation(self, judged: Judged) -> float:
        violation = super()._violation(judged)
        if self._blur is None:
            return violation
        # |Eᵀe − AᵀE w| of each feature and column
        lengths, own = self._blur[0][:, None], self.scale[:, None]
        beyond = lengths * np.sqrt(judged.loss) + own * (lengths[:, 0] @ np.abs(self.W))
        return violation + float(beyond.max(initial=0.0))

    def _solve(self, R: Array) -> Array:
        if not self._cholesky:
            return super()._inverse(R)
        if len(self._cholesky) == 1:
            return next(iter(self._cholesky.values())).solve(R)
        W = np.empty_like(R)
        for alpha, factor in self._cholesky.items():
            columns = self.problem.alpha == alpha
            W[:, columns] = factor.solve(R[:, columns])
        return W

    def _inverse(self, gradient: Array) -> Array:
        return super()._inverse(gradient) if self.fell_back else self._solve(gradient)


class Dual(_Direct):
    """Normal equations in the samples."""

    own = "the normal equations in dual form"
    own_route = "dual"

    def _start(self) -> bool:
        p = self.problem
        n, d = p.view.shape
        self.kept = np.arange(n) if p.weights is None else np.flatnonzero(p.weights > 0)
        self.root = np.ones(n) if p.weights is None else np.sqrt(p.weights[self.kept])
        self.scale = np.ones(d)
        self._only: Any = None
        self.shift = p.fit_intercept
        if p.fit_intercept:
            self.mean = p.view.column_sums(p.weights) / p.total
        K = self._gram()
        u = self.root / np.linalg.norm(self.root)
        if p.fit_intercept:
            u *= np.sqrt(np.mean(np.einsum("ii->i", K)))
            for begin in range(0, u.shape[0], 256):
                K[begin : begin + 256] += np.outer(u[begin : begin + 256], u)
        Z = self.root[:, None] * p.centred_targets[p.classes[self.kept]]
        self._dual: dict[float, _Cholesky | _Eigen] = {}
        alphas = np.unique(p.alpha)
        V = np.empty_like(Z)
        for alpha in alphas:
            small = n * d <= LARGEST_WIDE
            # Only where the eigenvalues may be needed, or another penalty follows, is the matrix kept.
            M = K if len(alphas) == 1 and (small or alpha > 0) else K.copy()
            np.einsum("ii->i", M)[:] += alpha
            question()()
            self._afford(float(n) ** 3 / _CHOLESKY_RATE)
            factor: _Cholesky | _Eigen = _Cholesky(M)
            if not factor.sound:
                if small:
                    return False
                self._afford(float(n) ** 3 / _EIGEN_RATE)
                factor = _Eigen(self._gram(), float(alpha))
            columns = p.alpha == alpha
            self._dual[float(alpha)] = factor
            V[:, columns] = factor.solve(Z[:, columns])
        self.W = self._spread(V)
        return True

    def _panels(self) -> Iterator[tuple[slice, Any]]:
        n, d = self.kept.shape[0], self.problem.view.shape[1]
        stored = float(getattr(self.problem.view, "row_elements", d))
        step = max(1, int(PANEL_BYTES // (8 * max(1.0, stored))))
        for begin in range(0, n, step):
            rows = slice(begin, min(begin + step, n))
            if self._only is None or step < n:
                self._only = self._panel(rows)  # where one panel holds all rows, it is made once
            yield rows, self._only

    def _panel(self, rows: slice) -> Any:
        """Return these rows of ``A``; sparse ones are not centred."""
        every = self.kept.shape[0] == self.problem.view.shape[0]
        view = self.problem.view
        X = view.read(rows) if every else view.take(self.kept[rows])
        weighted = self.problem.weights is not None
        if hasattr(X, "tocsr"):
            return (X.multiply(self.root[rows][:, None]).tocsr() if weighted else X).astype(np.float64)
        A = np.subtract(X, self.mean)
        if weighted:
            A *= self.root[rows][:, None]
        return A

    def _gram(self) -> Array:
        n = self.kept.shape[0]
        if hasattr(self.problem.view.read(slice(0, 1)), "tocsr"):
            return self._sparse_gram()
        K, ask = np.empty((n, n)), question()
        for rows, A in self._panels():
            for others, B in self._panels():
                if others.start > rows.start:
                    break
                ask()
                K[rows, others] = A @ B.T
                K[others, rows] = K[rows, others].T
        return K

    def _sparse_gram(self) -> Array:
        """Return the Gram matrix of sparse rows as that of the columns of their transpose."""
        n = self.kept.shape[0]
        X = self.problem.view.take(self.kept).astype(np.float64)
        X = X.multiply(self.root[:, None]).tocsr()
        K, ask = np.zeros((n, n)), question()
        data, indices, starts = csr_parts(X.T.tocsr())
        # Some features at a time: each multiplies all pairs of the samples that have it.
        pairs = np.cumsum(np.square(np.diff(starts), dtype=np.float64))
        ends = [*np.searchsorted(pairs, np.arange(_PAIRS, pairs[-1], _PAIRS)), len(pairs)]
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            ask()
            _hot.gram_csr(data, indices, starts[begin : end + 1], None, K)
        for begin in range(0, n, 256):  # K + Kᵀ, in place
            rows, rest = slice(begin, begin + 256), slice(begin, n)
            both = K[rows, rest] + K[rest, rows].T
            K[rows, rest], K[rest, rows] = both, both.T
        if self.problem.fit_intercept:
            # √s(x − μ) = √s x − √s μ, multiplied out: sparse rows are not centred one by one.
            along = X @ self.mean - (0.5 * float(self.mean @ self.mean)) * self.root
            for begin in range(0, n, 256):
                rows = slice(begin, begin + 256)
                K[rows] -= np.outer(along[rows], self.root) + np.outer(self.root[rows], along)
        return K

    def _spread(self, V: Array) -> Array:
        """Return ``Aᵀ V``."""
        W = np.zeros((self.problem.view.shape[1], V.shape[1]))
        for rows, A in self._panels():
            W += A.T @ V[rows]
            if hasattr(A, "tocsr"):
                W -= np.outer(self.mean, self.root[rows] @ V[rows])
        return W

    def _gather(self, W: Array) -> Array:
        """Return ``A W``."""
        V = np.empty((self.kept.shape[0], W.shape[1]))
        for rows, A in self._panels():
            V[rows] = A @ W
            if hasattr(A, "tocsr"):
                V[rows] -= np.outer(self.root[rows], self.mean @ W)
        return V

    def _inverse(self, gradient: Array) -> Array:
        if self.fell_back:
            return super()._inverse(gradient)
        out = np.empty_like(gradient)
        for alpha, factor in self._dual.items():
            columns = self.problem.alpha == alpha
            g = gradient[:, columns]
            V = factor.solve(self._gather(g))
            if alpha > 0:
                out[:, columns] = (g - self._spread(V)) / alpha
            else:
                out[:, columns] = self._spread(factor.solve(V))
        return out


class _Eigen:
    """``(K + α I)⁺`` by eigenvalues, for wide data that are too large for the orthogonal route."""

    sound = True

    def __init__(self, K: Array, alpha: float) -> None:
        values, self.vectors = linalg.eigh(K, check_finite=False)
        kept = values > values[-1] * K.shape[0] * np.finfo(np.float64).eps * 8
        self.vectors, self.values = self.vectors[:, kept], values[kept] + alpha

    def solve(self, B: Array) -> Array:
        """Return the product of the pseudo-inverse with ``B``."""
        return np.asarray(self.vectors @ ((self.vectors.T @ B) / self.values[:, None]))
