"""The kernel matrix of the training samples, computed on demand."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, log, sqrt
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np

from separatrix import _hot
from separatrix.data.memory import CsrView, DenseView, view_of
from separatrix.data.threads import in_threads
from separatrix.data.view import Array, csr_parts
from separatrix.kernels import RBF, Kernel, Linear, Polynomial
from separatrix.solvers._loop import OutOfTimeError
from separatrix.solvers._sparse_products import SparseProducts

Precision = Literal["float32", "float64"]

#: Relative rounding error of a double.
_UNIT = 1.1e-16
#: Kernel entries that a product of a kernel without compiled loops holds at a time.
_PIECE = 1 << 21
#: Pairs of texts that are compared at first between two looks at the clock; twice as many if that took less
#: than so many seconds.
_TEXT_PIECE, _QUICK = 1 << 10, 0.1
#: Parts of a matrix that fits, below which it is not computed for their sake.
_FEW = 64
#: Entries of a product below which threads cost more than they gain, and parts it has above.
_SERIAL, _PARTS = 1 << 16, 8
#: Work of a product, in features of kernel values, between two looks at the clock, what a formula costs in
#: these, and the fewest targets it is worth a call for: more where that has to pack the rows anew.
_WORK, _FORMULA, _FEWEST, _FEWEST_UNPACKED = 2e9, 16, 64, 256
#: Most left samples that the compiled loops work on together.
_LEFT = 256
#: Rows looked at to learn how many values differ from their column's commonest.
_SAMPLE = 512
#: Share of such values below which compiled loops go over them alone.
_SPARSE = 0.4
#: The formula of an RBF kernel on whole numbers, and the largest ``|x|²`` whose products are sums of bytes.
_WHOLE, _MOST_COUNT = 4, 255
#: Largest numbers of each precision.
_LARGEST = {"float32": float(np.finfo(np.float32).max), "float64": float(np.finfo(np.float64).max)}
#: Numbers of sparse samples up to which they are packed as dense ones.
_FEW_NUMBERS = 1 << 16


class Native(NamedTuple):
    """A kernel that the compiled loops know, as a function of inner products of scaled vectors."""

    formula: int
    scale: float
    degree: int = 1
    coef0: float = 0.0


def native_of(kernel: Kernel) -> Native | None:
    """Return how the compiled loops compute a kernel; None if they do not know it."""
    if isinstance(kernel, RBF):
        # exp(−γ|x−z|²) = 2^(x̂·ẑ − |x̂|²/2 − |ẑ|²/2)
        return Native(2, sqrt(2 * kernel.gamma / log(2)))
    if isinstance(kernel, Linear):
        return Native(0, 1.0)
    if isinstance(kernel, Polynomial):
        return Native(1, sqrt(kernel.gamma), kernel.degree, kernel.coef0)
    if type(kernel).__name__ == "Sigmoid" and type(kernel).__module__.startswith("separatrix."):
        return Native(3, sqrt(kernel.gamma), 1, kernel.coef0)  # type: ignore[attr-defined]
    return None


class Packing(NamedTuple):
    """How samples are packed: what is subtracted from them, and which share of them is not zero then.

    Compiled loops go over the nonzeros alone where these are few, or where all are whole numbers.
    """

    shift: Array | None
    share: float = 1.0
    whole: bool = False

    @property
    def sparse(self) -> bool:
        """Whether the loops skip zeros."""
        return self.whole or bool(self.share < _SPARSE)


def has_whole_numbers(samples: DenseView | CsrView) -> bool:
    """Return whether samples are small whole numbers, as one-hot columns or counts, with ``|x|² ≤ 255``."""
    if isinstance(samples, CsrView) and not samples.array.has_canonical_format:
        return False  # what stands twice for one place is only known once it is added
    for rows in (slice(0, min(samples.shape[0], _SAMPLE)), *samples.parts()):
        block = samples.read(rows)
        values: Any = block.data if samples.sparse else block
        outside = values.min(initial=0) < 0 or values.max(initial=0) > _MOST_COUNT
        if outside or (values != np.rint(values)).any():
            return False
    return bool(samples.row_norms().max(initial=0.0) <= _MOST_COUNT)


def packing_of(native: Native, samples: DenseView | CsrView) -> Packing:
    """Choose a shift of the samples: an RBF kernel does not see it, its precision and speed do.

    A column whose commonest value is that of at least half of the samples is shifted by it, so that zeros
    come about; another one by its mean, which keeps distances accurate far from the origin.
    """
    n, d = samples.shape
    whole = native.formula == _WHOLE
    if isinstance(samples, CsrView):
        return Packing(None, samples.row_elements / d, whole)
    if n == 0:
        return Packing(None)
    sample = np.asarray(samples.array[:: max(1, n // _SAMPLE)], dtype=np.float64)
    if native.formula != 2:
        return Packing(None, np.count_nonzero(sample) / sample.size, whole)
    shift = np.add.reduce(sample, axis=0) / len(sample)
    if sample.size < 1 << 12:
        return Packing(shift)
    median = np.sort(sample, axis=0)[sample.shape[0] // 2]
    share = (sample != median).mean(axis=0)
    shift = np.where(share <= 0.5, median, shift)
    return Packing(shift, float(np.where(share <= 0.5, share, 1.0).mean()))


def pack(native: Native, samples: DenseView | CsrView, packing: Packing, precision: Precision) -> Any:
    """Pack samples for the compiled loops."""
    make = _hot.KernelPanelsFloat32 if precision == "float32" else _hot.KernelPanelsFloat64
    n, d = samples.shape
    panels = make(
        formula=native.formula,
        degree=native.degree,
        coef0=native.coef0,
        scale=native.scale,
        sparse=packing.sparse,
        n=n,
        d=d,
    )
    parts = samples.parts()

    def fill(number: int) -> None:
        rows = parts[number]
        block = samples.read(rows)
        if samples.sparse:
            panels.fill_csr(*csr_parts(block), rows.start, packing.shift)
        else:
            panels.fill_dense(block, rows.start, packing.shift)

    if len(parts) == 1:
        fill(0)
    else:
        for _ in in_threads(fill, len(parts)):
            pass
    panels.finish()
    return panels


class KernelMatrix:
    """``k(x_i, x_j)`` over the training samples: computed on demand, shared by several problems.

    Parameters
    ----------
    kernel : Kernel
        The formula. One with an attribute ``precomputed = True`` finds its values in the samples.
    samples : DenseView, CsrView or similar
        An object with ``shape`` and ``take(rows)`` (or ``read(rows)``) for arrays of row numbers.
    cache_bytes : float
        Most bytes that are kept of the matrix, whatever the method.
    precision : {"float32", "float64"} or None
        Of the entries; None lets the solver choose what its tolerance needs.
    """

    def __init__(
        self,
        kernel: Kernel,
        samples: Any,
        *,
        cache_bytes: float,
        precision: Precision | None = None,
    ) -> None:
        self.kernel, self.samples = kernel, samples
        self.cache_bytes, self.precision = cache_bytes, precision
        n = int(samples.shape[0])
        self.shape = (n, n)
        self.precomputed = bool(getattr(kernel, "precomputed", False))
        #: Kernel entries computed so far.
        self.entries = 0
        #: What kernel rows are written to, handed on from problem to problem.
        self.memory = _hot.RowMemory()
        self._packs: dict[str, Any] = {}
        self._gram: Array | None = None
        #: Whether time is up, as the solver at work has it.
        self.expired: Callable[[], bool] = lambda: False
        self._half: float | None = None
        self.native: Native | None = None
        self._packing = Packing(None)
        if isinstance(samples, DenseView | CsrView) and samples.shape[1]:
            # Packed samples are dense: wide sparse ones that do not fit are better left to sparse products.
            if not samples.sparse or self._fits("float32"):
                self.native = native_of(kernel)
        #: Inner products of wide sparse samples, where they are the kernel.
        self._inner: SparseProducts | None = None
        if isinstance(samples, CsrView) and self.native is None and isinstance(kernel, Linear):
            self._inner = SparseProducts(samples.array, cache_bytes / 4)
        if self.native is not None:
            if samples.sparse and samples.shape[0] * samples.shape[1] <= _FEW_NUMBERS:
                # Few have the bits of dense ones: which of two equal samples is chosen hangs on them.
                self.samples = samples = view_of(samples.read(slice(0, n)).toarray())
            many = n * samples.shape[1] > _FEW_NUMBERS
            if many and self.native.formula == 2 and has_whole_numbers(samples):
                # exp(−γ|x−z|²) = 2^(c (x·z − |x|²/2 − |z|²/2)), and all in parentheses is exact.
                self.native = Native(_WHOLE, 1.0, coef0=self.native.scale**2)
            self._packing = packing_of(self.native, samples)
        self.diag: Array = self._diagonal()
        unit = isinstance(kernel, RBF)
        #: ``√|k(x, x)|`` of each sample, and the largest ``|k(x, x)|``.
        self.lengths: Array = self.diag if unit else np.sqrt(np.abs(self.diag))
        self.largest = 1.0 if unit else float(self.lengths.max(initial=0.0)) ** 2

    def _fits(self, precision: Precision) -> bool:
        """Return whether all samples may be kept packed: half of the budget is for both precisions."""
        # Whole numbers are packed twice, as numbers and as bytes, a third more of them.
        each = np.dtype(precision).itemsize + (4 / 3 if self._packing.whole else 0)
        size = self.shape[0] * self.samples.shape[1] * each
        return bool(size <= max(self.cache_bytes / 4, 1 << 22))

    @property
    def features_per_entry(self) -> float:
        """How many features the compiled loops go over for one kernel value."""
        d = float(self.samples.shape[1])
        return d * self._packing.share if self._packing.sparse else d

    def targets_at_once(self, rows: int) -> int:
        """Return for how many targets a product over so many rows takes a bounded time."""
        if self._inner is not None:
            return self.shape[0]
        if self.native is None:
            texts = self.kernel.samples == "texts" and self._gram is None
            return max(1, (_TEXT_PIECE if texts else _PIECE) // max(1, rows))
        fewest = _FEWEST if self._fits("float64") else _FEWEST_UNPACKED
        return max(fewest, int(_WORK / (max(1, rows) * (self.features_per_entry + _FORMULA))))

    @property
    def definite(self) -> bool:
        """Whether the kernel is known to be positive semidefinite."""
        return self.kernel.definite

    def prepare(self, precision: Precision) -> None:
        """Pack all samples, if they may be kept, before several threads ask for some of them."""
        if self._fits(precision):
            self.panels(precision)

    def panels(self, precision: Precision, rows: Array | None = None) -> Any:
        """Return samples packed for the compiled loops, all or some; only for kernels that are native."""
        assert self.native is not None
        known = precision in self._packs
        few = rows is not None and 4 * rows.size < self.shape[0]
        if not known and (few or not self._fits(precision)):
            part = self.samples if rows is None else view_of(self.samples.take(rows))
            return pack(self.native, part, self._packing, precision)
        if not known:
            self._packs[precision] = pack(self.native, self.samples, self._packing, precision)
        return self._packs[precision] if rows is None else self._packs[precision].take(rows)

    def _take(self, rows: Array) -> Any:
        take = getattr(self.samples, "take", None) or self.samples.read
        some = take(rows)
        # A kernel without loops of its own computes in the precision of what it is given.
        single = self.precision == "float64" and getattr(some, "dtype", None) == np.float32
        return some.astype(np.float64) if single else some

    def _diagonal(self) -> Array:
        n = self.shape[0]
        if isinstance(self.kernel, RBF):
            return np.ones(n)
        diag = np.empty(n)
        for begin in range(0, n, 1 << 12):
            rows = np.arange(begin, min(n, begin + (1 << 12)))
            if self.precomputed:
                diag[rows] = np.asarray(self._take(rows))[np.arange(rows.size), rows]
            else:
                some = self._take(rows)
                diag[rows] = self.kernel.diag(some)
                if self.native is not None and some.dtype == np.float32 and np.isfinite(diag[rows]).all():
                    # Squares of small values leave the range of single precision before the values do.
                    diag[rows] = self.kernel.diag(some.astype(np.float64))
        if not np.isfinite(diag).all():
            raise ValueError(self._not_finite(int(np.flatnonzero(~np.isfinite(diag))[0])))
        return diag

    def _not_finite(self, row: int) -> str:
        return (
            f"the kernel values of sample {row} are not finite. Scale the features, for example with "
            "sklearn.preprocessing.StandardScaler, or choose other kernel parameters."
        )

    def _chosen(self, precision: Precision | None) -> Precision:
        return precision or self.precision or "float64"

    def error(self, precision: Precision) -> float:
        """Return about how far an entry is from the exact one."""
        eps = 6e-8 if precision == "float32" else _UNIT
        if self.native is None:
            # What a kernel returns is exact by definition, up to the precision it is kept in.
            return eps * self.largest if precision == "float32" else 0.0
        return eps * (1.0 + self._steepness()) * self.largest

    def relative_error(self) -> float:
        """Return how far a term of a kernel sum in double may be off, in units of ``√(k(x, x) k(z, z))``.

        Either factor of an inner product is rounded, their product, and sums of them.
        """
        if self.native is None:
            return _UNIT
        return _UNIT * (1.0 + self._steepness() * (3.0 + sqrt(self.samples.shape[1])))

    def _steepness(self) -> float:
        """Return by what factor the kernel enlarges relative errors of an inner product."""
        assert self.native is not None
        if not isinstance(self.kernel, RBF):
            return float(self.native.degree)
        return self._mean_half() * (self.native.coef0 if self._packing.whole else 1.0)

    def _mean_half(self) -> float:
        """Return the mean of ``|x̂|²/2`` over some samples, or over all where these are packed and few."""
        if self._half is None and "float64" in self._packs and self.shape[0] <= _SAMPLE:
            self._half = float(self._packs["float64"].mean_half)
        if self._half is None:
            some = np.arange(0, self.shape[0], max(1, self.shape[0] // _SAMPLE))
            self._half = float(self.panels("float32", some).mean_half)
        return self._half

    def block(self, rows: Array, columns: Array, precision: Precision | None = None) -> Array:
        """Return the entries of the given rows and columns, as a new array."""
        same = rows is columns
        rows, columns = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        if self.native is not None:
            self.entries += rows.size * columns.size
            chosen = self._chosen(precision)
            values = np.empty((rows.size, columns.size), dtype=chosen)
            right = self.panels(chosen, columns)
            left = right if same else self.panels(chosen, rows)
            right.block(left, np.arange(rows.size), values)
            if not (same and self._bounded(right, rows.size, chosen)):
                self._check(values, rows)
            return values
        few = self._gram is None and _FEW * rows.size * columns.size <= self.shape[0] ** 2
        gram = None if few else self._whole()
        return self._values(rows, columns) if gram is None else gram[np.ix_(rows, columns)]

    def _bounded(self, panels: Any, count: int, precision: Precision) -> bool:
        """Return whether no value of an RBF kernel between packed samples can be other than finite.

        ``|x̂·ẑ|`` is at most the sum of all ``|x̂|²``: a look at the samples saves one at all values.
        """
        if not isinstance(self.kernel, RBF):
            return False
        return bool(4.0 * panels.mean_half * count < _LARGEST[precision])

    def _values(self, rows: Array, columns: Array) -> Array:
        """Return entries from the kernel itself, checked."""
        if self.precomputed:
            values = np.asarray(self._take(rows))[:, columns]
        elif self._inner is not None:
            values = self._inner.block(rows, columns)
        else:
            values = self.kernel(self._take(rows), self._take(columns))
        self.entries += rows.size * columns.size
        self._check(values, rows)
        return values

    def _check(self, values: Array, rows: Array) -> None:
        """Refuse kernel values that are not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            if isfinite(np.add.reduce(values, axis=None)):  # in most cases one sum tells that all are
                return
        if not np.isfinite(values).all():
            raise ValueError(self._not_finite(int(rows[np.argwhere(~np.isfinite(values))[0][0]])))

    def _whole(self) -> Array | None:
        """Return the matrix of a kernel without compiled loops, if it fits: problems share parts of it.

        None, too, where time is up before it is begun: who asks then needs few values, and none of the rest.
        """
        n = self.shape[0]
        if self._gram is None:
            if self.precomputed or n * n * 8 > self.cache_bytes / 2 or self.expired():
                return None
            self._gram = self._computed(n)
        return self._gram

    def check_time(self) -> None:
        """Raise :class:`OutOfTimeError` if time is up before texts have been compared, which takes long."""
        if self.kernel.samples == "texts" and self._gram is None and self.expired():
            raise OutOfTimeError

    def _computed(self, n: int) -> Array:
        """Return the whole matrix; raise :class:`OutOfTimeError` where there is no time for it."""
        most = max(1, _PIECE // max(1, n))
        # A pair of texts may take as long as thousands of vectors, and is the same in any company.
        texts = self.kernel.samples == "texts"
        step = min(most, max(1, _TEXT_PIECE // n)) if texts else most
        begin, gram = 0, np.empty((0, 0))
        while begin < n:
            if begin and self.expired():
                raise OutOfTimeError
            started = perf_counter()
            rows, right = np.arange(begin, min(n, begin + step)), np.arange(begin, n)
            values = self._values(rows, right)
            if not begin:
                gram = np.empty((n, n), dtype=values.dtype)
            gram[rows, begin:] = values
            gram[begin:, rows] = values.T
            begin += step
            if texts and perf_counter() - started < _QUICK:
                step = min(most, 2 * step)
        return gram

    def product(
        self, rows: Array, coef: Array, targets: Array | None = None, precision: Precision | None = None
    ) -> Array:
        """Return ``Σ_j k(x_t, x_rows_j) coef[j, :]`` for the targets (all samples if None), in float64."""
        rows = np.asarray(rows, dtype=np.int64)
        if self.native is not None:
            coef = np.ascontiguousarray(coef, dtype=np.float64)
            return self._native_product(rows, coef, targets, self._chosen(precision))
        if self._inner is not None:
            return self._inner.sums(rows, coef, targets)
        targets = np.arange(self.shape[0]) if targets is None else np.asarray(targets)
        out = np.zeros((targets.size, coef.shape[1]))
        step = max(1, _PIECE // max(1, rows.size))
        for begin in range(0, targets.size, step):
            piece = targets[begin : begin + step]
            out[begin : begin + step] = self.block(piece, rows) @ coef
        return out

    def _native_product(self, rows: Array, coef: Array, targets: Array | None, precision: Precision) -> Array:
        n = self.shape[0] if targets is None else len(targets)
        out = np.zeros((n, coef.shape[1]))
        self.entries += n * rows.size
        if self._fits(precision):
            # The rows may be few or all: they are read where they are packed.
            left = self.panels(precision)
            into = left if targets is None else left.take(np.asarray(targets, dtype=np.int64))
            panel_product(into, n, left, rows, coef, out)
            return out
        step = max(_SAMPLE, int(self.cache_bytes / 16 / (8 * self.samples.shape[1])))
        for start in range(0, rows.size, step):
            part = slice(start, start + step)
            left = self.panels(precision, rows[part])
            numbers = np.arange(rows[part].size)
            for begin in range(0, n, step):
                some = np.arange(begin, min(n, begin + step))
                into = self.panels(precision, some if targets is None else np.asarray(targets)[some])
                panel_product(into, some.size, left, numbers, coef[part], out[begin : begin + step])
        return out


def parts_of(coef: Array) -> Array:
    """Return where parts of neighbouring left samples start, at most 256 in each, and where the last ends.

    Columns that are zero throughout a part cost nothing, so with many columns a part ends where others begin
    to be filled: one-vs-one coefficients, in order of classes, are zero for the pairs of other classes.
    """
    count, columns = coef.shape
    if columns < 8:
        return np.append(np.arange(0, count, _LEFT), count)
    grain = 16
    cuts = np.arange(0, count, grain)
    filled = np.logical_or.reduceat(coef != 0, cuts, axis=0)
    starts, union = [0], filled[0]
    for number in range(1, cuts.size):
        joined = union | filled[number]
        full = (number + 1) * grain - starts[-1] > _LEFT
        own = max(np.count_nonzero(union), np.count_nonzero(filled[number]))
        if full or 4 * np.count_nonzero(joined) > 5 * own:
            starts.append(int(cuts[number]))
            joined = filled[number]
        union = joined
    return np.array([*starts, count])


def panel_product(into: Any, n: int, left: Any, rows: Array, coef: Array, out: Array) -> None:
    """Add ``Σ_j k(x_t, left_rows_j) coef[j, :]`` to ``out`` for all samples t of ``into``, in threads."""
    count, starts = -(-n // into.width), parts_of(coef)
    parts = _PARTS if n * rows.size > _SERIAL else 1

    def add(part: int) -> None:
        into.product(left, rows, starts, coef, part * count // parts, (part + 1) * count // parts, out)

    for _ in in_threads(add, parts):
        pass
