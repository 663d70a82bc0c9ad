"""Scores of new samples: ``K(X, support) @ coef`` without keeping the kernel block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import CsrView, DenseView, view_of, working_dtype
from separatrix.data.threads import together
from separatrix.data.view import Array, csr_parts
from separatrix.kernels import Kernel
from separatrix.solvers._lattice import on_lattice
from separatrix.solvers.kernel_matrix import Native, Packing, Precision, native_of, packing_of

#: Kernel entries held at a time where the compiled loops do not know the kernel.
_PIECE = 1 << 21
#: Bytes that packed support vectors may take in double precision; those of sparse ones beyond which only
#: features that occur in them are packed.
_SUPPORT_BYTES, _WIDE_BYTES = 1 << 30, 1 << 26
#: Rounding error of a score up to which float32 data are worked on in float32.
_ERROR = 1e-5
#: How many times the expected rounding error of a score it is taken to be at most, and the error up to which
#: so few decisions are in doubt that float32 pays.
_SAFE, _MOST_DOUBT = 32.0, 0.2
#: Kernel values of inner products, at most, below which float32 does not decide.
_LEAST = 1e-20
#: Multiply-adds below which float32 does not pay, and below which threads cost more than they gain.
_QUICK, _SERIAL = 1 << 20, 1 << 22
#: Multiply-adds of the rows that a thread takes at a time, and how many rows these are at least.
_TURN, _TURN_ROWS = 1 << 23, 256
#: Turns of fewer rows than so many times that; fewer turns where support vectors have more bytes than this,
#: which each turn reads anew.
_TURNS, _FAR_TURNS, _FAR_BYTES = 16, 4, 1 << 20
#: Share of values that are not zero up to which zeros are left out.
_ZEROS = 0.9
#: Features from which on 16-bit integers are quicker than float32, and samples that pay for rounding the
#: support vectors.
_COARSE_FEATURES, _COARSE_ROWS = 64, 1000
#: Samples that show whether rounding matters: a share of all, and at least so many; the share of them without
#: a clear winner from which on integers do not pay; support vectors in which a lattice is looked for.
_TRIAL, _TRIAL_ROWS, _MOST_OPEN, _LATTICE_ROWS = 16, 64, 0.2, 64
#: Features up to which places of numbers in a panel fit 32 bits.
_MOST_FEATURES = 1 << 25


class SupportSums:
    """``Σ_j k(x, z_j) c_j`` over groups of support vectors ``z_j``, which are packed once for many calls.

    Parameters
    ----------
    kernel : Kernel
        The formula. With ``precomputed = True`` the rows of new samples hold the kernel values and
        ``support`` is the array of the columns to use.
    support : array, CSR matrix or list
        The support vectors, group by group. They must not change as long as the object is used.
    coef : ndarray of shape (support, P)
        Their coefficients.
    sizes : ndarray of int or None
        How many support vectors each group has; None is one group.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import Linear
    >>> sums = SupportSums(Linear(), np.eye(3), np.ones((3, 1)), np.array([2, 1]))
    >>> sums(np.array([[1.0, 2.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, kernel: Kernel, support: Any, coef: Array, sizes: Array | None = None) -> None:
        self.kernel, self.support = kernel, support
        self.coef = np.ascontiguousarray(coef, dtype=np.float64)
        self.sizes = np.array([coef.shape[0]]) if sizes is None else np.asarray(sizes, dtype=np.int64)
        self.columns = self.sizes.size * coef.shape[1]
        rows = support.shape[0] if hasattr(support, "shape") else len(support)
        if not rows == coef.shape[0] == self.sizes.sum():
            raise ValueError(
                f"{rows} support vectors, {coef.shape[0]} rows of coefficients and groups of "
                f"{self.sizes.sum()} do not belong together: the model was altered."
            )
        self._packs: dict[Precision, Any] = {}
        self._expected: float | None = None
        self._norm: float | None = None
        self._narrow: _Narrow | None = None
        self._coarse: Any = None
        self._asked, self._coarse_pays = 0, True
        native = native_of(kernel) if coef.shape[0] and _is_matrix(support) else None
        if native is not None:
            support = _canonical(support)
            if sparse.issparse(support) and support.shape[0] * support.shape[1] * 8 > _WIDE_BYTES:
                self._narrow = _Narrow(support)
                self.support = support = self._narrow(support)
            self._vectors = view_of(support)
            if support.shape[0] * support.shape[1] * 8 > _SUPPORT_BYTES or support.shape[1] > _MOST_FEATURES:
                native = None
        self._native = native
        if native is not None:
            self._packing = packing_of(native, self._vectors)

    def __call__(self, X: Any, precision: Precision | None = None) -> Array:
        """Return the sums for every sample: all columns of the first group, of the second, … in float64.

        Parameters
        ----------
        X : array, CSR matrix or list
            Samples.
        precision : {"float32", "float64"} or None
            Of the kernel values; None is that of :meth:`precision`.
        """
        m = X.shape[0] if hasattr(X, "shape") else len(X)
        if m == 0 or self.coef.shape[0] == 0:
            return np.zeros((m, self.columns))
        out = np.empty((m, self.columns))
        if self._narrow is None:
            self._add(X, out, precision)
            return out
        wide = view_of(_canonical(sparse.csr_array(X)))
        for rows in wide.parts():
            self._add(self._narrow(wide.read(rows)), out[rows], precision)
        return out

    def _add(self, X: Any, out: Array, precision: Precision | None) -> None:
        if self._native is None or not _is_matrix(X):
            self._by_blocks(X, out)
        else:
            self._check_features(X)
            self._compiled(self._machine(precision or self.precision(X)), view_of(_canonical(X)), out)

    def _check_features(self, X: Any) -> None:
        """Refuse samples of other features: another thread may have fitted the model anew."""
        d = self._vectors.shape[1]
        if X.shape[1] != d:
            raise ValueError(f"X has {X.shape[1]} features, but the support vectors have {d}.")

    def winners(
        self, X: Any, intercept: Array, error: Array | None = None, precision: Precision | None = None
    ) -> Array | None:
        """Return the class that wins all its pairs, −1 for samples that have none; None if it is not known.

        Groups are classes, and their columns the other classes in order.

        Parameters
        ----------
        X : array, CSR matrix or list
            Samples.
        intercept : ndarray of shape (pairs,)
            What each pair's score begins with.
        error : ndarray of shape (n,) or None
            By how much pairs must be won.
        precision : {"float32", "float64"} or None
            As in a call.

        Examples
        --------
        >>> import numpy as np
        >>> from separatrix.kernels import Linear
        >>> coef = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
        >>> sums = SupportSums(Linear(), np.eye(3), coef, np.ones(3, dtype=int))
        >>> sums.winners(np.array([[3.0, 2.0, 1.0], [1.0, 1.5, 1.0]]), np.zeros(3)).tolist()
        [0, 1]
        """
        if self._native is None or self._narrow is not None or not _is_matrix(X):
            return None
        self._check_features(X)
        samples = view_of(_canonical(X))
        if not samples.rows_in_place:
            return None
        error = np.zeros(samples.shape[0]) if error is None else error
        return self._winners(self._machine(precision or self.precision(X)), samples, intercept, error)

    def clear_winners(self, X: Any, intercept: Array) -> Array | None:
        """Return what :meth:`winners` does, −1 also where rounding to 16-bit integers might matter.

        One group with one column are two classes, the second of which has the positive scores. None where
        integers do not pay: for kernels other than RBF, few features, many zeros, few samples, or where a
        part of the samples shows that too few are clear.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Samples.
        intercept : ndarray of shape (pairs,)
            What each pair's score begins with.
        """
        m = X.shape[0] if hasattr(X, "shape") else 0
        self._asked += m
        if not self._coarse_pays or self._asked < _COARSE_ROWS or m < _TRIAL_ROWS or not _is_matrix(X):
            return None
        error = _SAFE * self.error()
        if self._coarse is None:
            sides = self._sides() if error < _MOST_DOUBT else None
            if sides is None:
                self._coarse_pays = False
                return None
            self._coarse = self._round(sides)
        samples = view_of(_canonical(X))
        if not samples.rows_in_place:
            return None
        self._check_features(X)
        first = max(_TRIAL_ROWS, m // _TRIAL)
        errors = np.full(m, error)
        trial = self._winners(self._coarse, view_of(samples.array[:first]), intercept, errors)
        if np.count_nonzero(trial < 0) > _MOST_OPEN * first:
            self._coarse_pays, self._coarse = False, None
            return None
        rest = self._winners(self._coarse, view_of(samples.array[first:]), intercept, errors)
        winner = np.concatenate([trial, rest])
        if self.sizes.size == 1:
            np.subtract(1, winner, out=winner, where=winner >= 0)
        return winner

    def _sides(self) -> Array | None:
        """Return how many support vectors each class has, if integers pay and their bound holds; else None.

        A pair's sums over the support vectors of either class must be sums of one sign.
        """
        if self._native is None or self._native.formula != 2 or self._narrow is not None:
            return None
        if self._packing.sparse or self._vectors.shape[1] < _COARSE_FEATURES:
            return None
        sizes = self.sizes
        if sizes.size == 1:
            below = np.count_nonzero(self.coef < 0)
            sizes = np.array([below, self.coef.size - below])
        if sizes.min() == 0 or self.coef.shape[1] != sizes.size - 1:
            return None
        starts = np.cumsum(sizes) - sizes
        least, most = (fold.reduceat(self.coef, starts) for fold in (np.minimum, np.maximum))
        return sizes if ((least >= 0) | (most <= 0)).all() else None

    def _round(self, sizes: Array) -> Any:
        """Return the support vectors of classes of these sizes as integers."""
        assert self._native is not None
        vectors, packing, quantum = self._vectors, self._packing, 0.0
        if packing.shift is not None and not vectors.sparse:
            some = np.asarray(vectors.array[:: max(1, vectors.shape[0] // _LATTICE_ROWS)], dtype=np.float64)
            shift, quantum = on_lattice(some, packing.shift)
            packing = Packing(shift, packing.share)
        machine = self._pack(self._native, packing, "float32", sizes)
        machine.round(quantum)
        return machine

    def _winners(self, machine: Any, samples: DenseView | CsrView, intercept: Array, error: Array) -> Array:
        groups = self.coef.shape[1] + 1
        if intercept.shape[0] != groups * (groups - 1) // 2:
            raise ValueError(f"{intercept.shape[0]} intercepts for {groups} classes: the model was altered.")
        intercept = np.ascontiguousarray(intercept, dtype=np.float64)
        winner = np.empty(samples.shape[0], dtype=np.int64)
        run = machine.winners_csr if samples.sparse else machine.winners_dense
        self._in_turns(samples, lambda *turns: run(*turns, intercept, error, winner))
        return winner

    def precision(self, X: Any) -> Precision:
        """Return the precision for these samples: float32 where they are and it is exact to about 1e-5."""
        single = self._native is not None and working_dtype(X.dtype) == np.float32 == self._vectors.dtype
        return "float32" if single and self.error() <= _ERROR else "float64"

    def quick_error(self, X: Any) -> Array | None:
        """Return how far each sample's sums in float32 may be from those in double; None if they do not pay.

        It is a multiple of what is to be expected of independent rounding errors, not a proof.
        """
        if self._native is None or not _is_matrix(X):
            return None
        if X.shape[0] * self.coef.shape[0] * (self._vectors.shape[1] + 16) < _QUICK:
            return None
        if self.precision(X) == "float32":
            return None
        error = _SAFE * self.error()
        if not error < _MOST_DOUBT:
            return None
        if self._native.formula == 2:
            return np.full(X.shape[0], error)
        usual = self._size(self._longest())
        if usual < _LEAST:  # float32 would take small products for 0
            return None
        # Values of these kernels, and with them their rounding, grow with the samples.
        with np.errstate(over="ignore"):
            size = self._size(np.sqrt(view_of(_canonical(X)).row_norms()))
            return np.asarray(error * np.maximum(1.0, size / usual))

    def _longest(self) -> float:
        """Return the largest norm of a support vector."""
        if self._norm is None:
            self._norm = float(np.sqrt(self._vectors.row_norms().max()))
        return self._norm

    def _size(self, norms: Any) -> Any:
        """Return how large values of a kernel of inner products are at most for samples of these norms."""
        native = self._native
        assert native is not None
        return (norms * self._longest() * native.scale**2 + abs(native.coef0)) ** max(1, native.degree)

    def error(self) -> float:
        """Return about how far sums are from exact ones if kernel values are computed in float32.

        The samples are taken to be no longer than the support vectors.
        """
        native = self._native
        if native is None:
            return np.inf
        if self._expected is None:
            if native.formula == 2:
                scale = 2.0 + self._machine("float32").mean_half  # of the exponential, and of its argument
            else:
                scale = (1.0 + native.degree) * self._size(self._longest())
            norm = float(np.sqrt(np.square(self.coef).sum(axis=0).max()))
            self._expected = 6e-8 * scale * norm
        return self._expected

    def _machine(self, precision: Precision) -> Any:
        """Return the packed support vectors; threads that come at the same time may both pack them."""
        machine = self._packs.get(precision)
        if machine is None:
            assert self._native is not None
            machine = self._packs[precision] = self._pack(self._native, self._packing, precision, self.sizes)
        return machine

    def _pack(self, native: Native, packing: Packing, precision: Precision, sizes: Array) -> Any:
        make = _hot.KernelMachineFloat32 if precision == "float32" else _hot.KernelMachineFloat64
        vectors = self._vectors
        machine = make(
            formula=native.formula,
            degree=native.degree,
            coef0=native.coef0,
            scale=native.scale,
            zeros=bool(packing.share < _ZEROS),
            few=packing.sparse,
            d=vectors.shape[1],
            shift=packing.shift,
            sizes=sizes,
            columns=self.coef.shape[1],
        )
        for rows in vectors.parts():
            block = vectors.read(rows)
            if vectors.sparse:
                machine.fill_csr(*csr_parts(block), rows.start)
            else:
                machine.fill_dense(block, rows.start)
        machine.finish(self.coef)
        return machine

    def _compiled(self, machine: Any, samples: DenseView | CsrView, out: Array) -> None:
        run = machine.sums_csr if samples.sparse else machine.sums_dense
        if samples.rows_in_place:
            self._in_turns(samples, lambda *turns: run(*turns, out))
            return
        for rows in samples.parts():  # what has to be converted, is so part by part
            part = view_of(samples.read(rows))
            self._in_turns(part, lambda *turns, to=out[rows]: run(*turns, to))

    def _in_turns(self, samples: DenseView | CsrView, run: Callable[..., None]) -> None:
        """Let threads take rows until none is left: ``run(rows, turn, step)`` in each.

        A row's sums do not depend on who takes it, nor on its neighbours.
        """
        m, work = samples.shape[0], self.coef.shape[0] * (samples.shape[1] + 16)
        arrays = csr_parts(samples.array) if samples.sparse else (samples.array,)
        far = self.coef.shape[0] * samples.shape[1] * 4 > _FAR_BYTES
        step = max(16, min(max(_TURN_ROWS, _TURN // work), -(-m // (_FAR_TURNS if far else _TURNS))))
        turns = *arrays, np.zeros(1, dtype=np.int64), step
        if m * work < _SERIAL:
            run(*turns)
        else:
            together(lambda: run(*turns), m)

    def _by_blocks(self, X: Any, out: Array) -> None:
        """Sum with blocks of the kernel's own values."""
        groups = self.sizes.size
        ends = np.cumsum(self.sizes).tolist()
        step, width = max(1, _PIECE // self.coef.shape[0]), self.coef.shape[1]
        for begin in range(0, out.shape[0], step):
            block = X[begin : begin + step]
            if getattr(self.kernel, "precomputed", False):
                values = np.asarray(block)[:, np.asarray(self.support)]
            else:
                values = self.kernel(block, self.support)
            for g in range(groups):
                part = slice(ends[g] - int(self.sizes[g]), ends[g])
                out[begin : begin + step, g * width : (g + 1) * width] = values[:, part] @ self.coef[part]


class _Narrow:
    """Only the features that occur in some sparse rows, and one more.

    Inner products with those rows do not see the other features; their squares are part of a norm, which the
    last feature keeps. The memory that is needed grows with the stored values, not with the features.
    """

    def __init__(self, rows: Any) -> None:
        self.features = np.unique(rows.indices[: rows.indptr[-1]])

    def __call__(self, rows: Any) -> Any:
        """Return sparse rows in these features."""
        n, count = rows.shape[0], self.features.shape[0]
        stored = int(rows.indptr[-1])
        indices, data = rows.indices[:stored], rows.data[:stored]
        if data.dtype.kind != "f":
            data = data.astype(np.float64)
        place = np.searchsorted(self.features, indices)
        place[place == count] = 0
        known = self.features[place] == indices if count else np.zeros(stored, dtype=bool)
        row = np.repeat(np.arange(n), np.diff(rows.indptr))
        rest = np.bincount(row[~known], np.square(data[~known], dtype=np.float64), minlength=n)
        kept = np.bincount(row[known], minlength=n) + 1
        indptr = np.concatenate([[0], np.cumsum(kept)])
        last = indptr[1:] - 1
        inner = np.ones(indptr[-1], dtype=bool)
        inner[last] = False
        values = np.empty(indptr[-1], dtype=data.dtype)
        columns = np.empty(indptr[-1], dtype=np.int64)
        values[inner], columns[inner] = data[known], place[known]
        values[last], columns[last] = np.sqrt(rest), count
        return sparse.csr_array((values, columns, indptr), shape=(n, count + 1))


def _is_matrix(samples: Any) -> bool:
    if sparse.issparse(samples):
        return bool(samples.format == "csr" and samples.dtype.kind in "fiub" and samples.shape[1])
    if not isinstance(samples, np.ndarray) or samples.ndim != 2:
        return False
    return samples.dtype.kind in "fiub" and samples.shape[1] > 0


def _canonical(samples: Any) -> Any:
    """Return rows in which each feature is stored once, in rising order; a copy only if they are not so."""
    if not sparse.issparse(samples) or samples.has_canonical_format:
        return samples
    samples = samples.copy()
    samples.sum_duplicates()
    return samples
