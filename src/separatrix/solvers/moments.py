r"""Weights, means and scatter of each class, in one pass over the data.

For class ``k`` with samples ``x_i`` of weight ``s_i``:

    w_k = Σ s_i,   μ_k = Σ s_i x_i / w_k,   S_k = Σ s_i (x_i − μ_k)(x_i − μ_k)ᵀ

Each block of rows is centred by its own class means before the product, and two parts merge by
Chan, Golub and LeVeque (1979): with ``δ = μ_b − μ_a``,

    μ = μ_a + δ w_b/(w_a + w_b),   S = S_a + S_b + δδᵀ w_a w_b/(w_a + w_b)

so nothing large is ever subtracted from something large. A mean is kept as the sum of two doubles, because
``δ`` is a small difference of means that may be large: data of mean 1e8, and classes that lie 1e8 apart,
lose no digits. Blocks of a file, batches of a stream and the parts of several threads or machines merge
by the same formula.

Products of float32 rows are summed in double precision, too. Only where a glance at a few rows shows a
covariance far from singular may stretches of a few hundred rows be summed in single precision, which is twice
as fast: entries are then off by less than 1e-6 of the features' spread. Rows of whole numbers (grey values,
counts, codes) about class means that are rounded to whole numbers have exact products of 16-bit integers,
which are faster still.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.memory import ChosenRows
from separatrix.data.products import NotFiniteError, Precision, add_products, symmetric
from separatrix.data.threads import one_thread_for
from separatrix.data.view import BLOCK_BYTES, Array, DataView
from separatrix.solvers.covariance import least_correlation
from separatrix.solvers.glance import glance
from separatrix.solvers.grid import grid_of

#: Most bytes of the scatter matrices; beyond, a model needs another covariance.
LARGEST_SCATTER = 1 << 30
#: Most bytes of the rows that are centred and multiplied at a time.
_PIECE_BYTES = 32 << 20
#: Fewest features, and rows for each, whose products may be summed in single precision.
_MANY, _ROWS = 64, 40
#: Least eigenvalue of correlations, about, that rounding of float32 samples leaves with six digits.
_CLEAR = 1e-3
#: Reciprocal condition of correlations that single precision does not harm, and largest mean of a feature in
#: units of its spread.
_WELL, _FAR = 1e-2, 100.0
KINDS = ("shared", "full", "diagonal", "rows")


@dataclass(eq=False)
class Moments:
    """Weighted class counts, means and centred scatter.

    They merge (``a + b``, ``a += b``), so blocks, batches and streams give one answer.

    Attributes
    ----------
    weight : ndarray of shape (K,)
        Sum of the sample weights of each class.
    mean : ndarray of shape (K, d)
        Class means; 0 for a class without weight.
    scatter : ndarray
        ``Σ_k S_k`` of shape (d, d) for kind "shared", ``S_k`` of shape (K, d, d) for "full", its
        diagonal of shape (K, d) for "diagonal"; for "rows" a matrix ``A`` of shape (m, d) with
        ``AᵀA = Σ_k S_k``, where samples are fewer than features.
    rest : ndarray of shape (K, d)
        What rounding left out: the means are ``mean + rest``.
    kind : {"shared", "full", "diagonal", "rows"}
        What the scatter holds.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import DenseView
    >>> X, y = np.array([[1.0, 0.0], [3.0, 2.0], [5.0, 5.0]]), np.array([0, 0, 1])
    >>> whole = class_moments(DenseView(X), y, 2)
    >>> parts = class_moments(DenseView(X[:1]), y[:1], 2) + class_moments(DenseView(X[1:]), y[1:], 2)
    >>> whole.mean.tolist(), parts.scatter.round(12).tolist()
    ([[2.0, 1.0], [5.0, 5.0]], [[2.0, 2.0], [2.0, 2.0]])
    """

    weight: Array
    mean: Array
    scatter: Array
    rest: Array
    kind: str = "shared"

    @classmethod
    def empty(cls, n_classes: int, n_features: int, kind: str = "shared") -> Moments:
        """Return the moments of no samples."""
        square, rows = (n_features, n_features), (n_classes, n_features)
        none = (0, n_features)
        shape = {"shared": square, "full": (n_classes, *square), "diagonal": rows, "rows": none}[kind]
        return cls(np.zeros(n_classes), np.zeros(rows), np.zeros(shape), np.zeros(rows), kind)

    def copy(self) -> Moments:
        """Return moments that can change by themselves."""
        return Moments(self.weight.copy(), self.mean.copy(), self.scatter.copy(), self.rest.copy(), self.kind)

    def __add__(self, other: Moments) -> Moments:
        return self.copy().__iadd__(other)

    def __iadd__(self, other: Moments) -> Moments:
        if self.kind != other.kind or self.mean.shape != other.mean.shape:
            raise ValueError(
                f"moments of kind {self.kind!r} and shape {self.mean.shape} do not merge with those of kind "
                f"{other.kind!r} and shape {other.mean.shape}."
            )
        if self.kind != "rows":
            self.scatter += other.scatter
        factor, delta = self._join(other.weight, other.mean, other.rest)
        both = np.flatnonzero(factor)
        if self.kind == "rows":
            spread = delta[both] * np.sqrt(factor[both])[:, None]
            self.scatter = np.concatenate([self.scatter, other.scatter, spread])
        elif self.kind == "diagonal":
            self.scatter[both] += factor[both, None] * np.square(delta[both])
        elif self.kind == "full":
            for k in both:
                self.scatter[k] += np.outer(factor[k] * delta[k], delta[k])
        elif both.size:
            spread = delta[both] * np.sqrt(factor[both])[:, None]
            self.scatter += spread.T @ spread
        return self

    def _join(self, weight: Array, mean: Array, rest: Array) -> tuple[Array, Array]:
        """Move weights and means; return ``w_a w_b/(w_a + w_b)`` and ``δ`` of each class for the scatter."""
        total = self.weight + weight
        share = np.divide(weight, total, out=np.zeros_like(total), where=total > 0)
        delta = (mean - self.mean) + (rest - self.rest)
        factor = self.weight * share
        step = self.rest + delta * share[:, None]
        moved_mean = self.mean + step
        moved = moved_mean - self.mean
        lost = (self.mean - (moved_mean - moved)) + (step - moved)
        new = (self.weight == 0)[:, None]
        self.mean, self.rest = np.where(new, mean, moved_mean), np.where(new, rest, lost)
        self.weight = total
        return factor, delta

    @property
    def total_weight(self) -> float:
        """Sum of all sample weights."""
        return float(self.weight.sum())

    @property
    def total_mean(self) -> Array:
        """Mean of all samples, of shape (d,)."""
        shares = self.weight / self.weight.sum()
        # Relative to one class: classes that lie close together far from 0 keep their digits.
        origin = self.mean[int(np.argmax(self.weight))]
        present = shares > 0
        return np.asarray(origin + shares[present] @ (self.mean[present] - origin))

    def within(self) -> Array:
        """Return ``Σ_k S_k``: (d, d), or its diagonal (d,) for kind "diagonal"."""
        if self.kind == "rows":
            return np.asarray(self.scatter.T @ self.scatter)
        return self.scatter if self.kind == "shared" else np.asarray(self.scatter.sum(axis=0))

    def centred_means(self) -> Array:
        """Return ``√w_k (μ_k − μ)``, whose product with itself is the scatter between classes."""
        weight = self.weight[:, None]
        return np.asarray(np.where(weight > 0, np.sqrt(weight) * (self.mean - self.total_mean), 0.0))

    def between(self) -> Array:
        """Return ``Σ_k w_k (μ_k − μ)(μ_k − μ)ᵀ``, or its diagonal for kind "diagonal"."""
        spread = self.centred_means()
        return np.square(spread).sum(axis=0) if self.kind == "diagonal" else np.asarray(spread.T @ spread)

    def total_scatter(self) -> Array:
        """Return the scatter of all samples about their mean: within plus between classes."""
        return np.asarray(self.within() + self.between())


def class_moments(
    view: DataView,
    classes: Array,
    n_classes: int,
    weights: Array | None = None,
    *,
    kind: str = "shared",
    single: bool = False,
) -> Moments:
    """Return the moments of each class, in double precision.

    Parameters
    ----------
    view : DataView
        The samples. CSR blocks are made dense in pieces of bounded size, except for "diagonal".
    classes : ndarray of int of shape (n,)
        Number of each sample's class, below ``n_classes``.
    n_classes : int
        Number of classes.
    weights : ndarray of shape (n,) or None
        Weights of the samples, not negative.
    kind : {"shared", "full", "diagonal", "rows"}
        Whether the scatter is summed over the classes, kept for each, or only its diagonal kept; "rows"
        keeps the centred samples themselves instead.
    single : bool
        Whether products of a few hundred float32 rows may be summed in single precision, for kind "shared",
        where the covariance is so well conditioned that what is lost does not matter.

    Returns
    -------
    Moments
        Weights, means and scatter.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    d = view.shape[1]
    matrices = {"shared": 1, "full": n_classes, "diagonal": 0, "rows": 0}[kind]
    if matrices * d * d * 8 > LARGEST_SCATTER:
        raise ValueError(
            f"{d:,} features need {matrices:,} scatter matri{'x' if matrices == 1 else 'ces'} of "
            f"{d * d * 8 / 2**20:,.0f} MiB, more than {LARGEST_SCATTER >> 20:,} MiB in all. Reduce the "
            "features (for example with sklearn.decomposition.TruncatedSVD) or choose a model with one "
            "variance per feature (GaussianClassifier(covariance='diagonal'))."
        )
    # Sorting small numbers is a radix sort.
    numbers = classes.astype(np.int32, copy=False)
    if matrices > 1 and matrices * d * d * 8 > BLOCK_BYTES:
        return _class_by_class(view, numbers, n_classes, weights)

    if kind == "shared":
        exact = _of_whole_numbers(view, numbers, n_classes, weights)
        if exact is not None:
            return exact
    if single and kind == "shared":
        near = _near_means(view, numbers, n_classes, weights)
        if near is not None:
            return _about(view, numbers, n_classes, weights, near, "single")

    def add(total: Moments, rows: slice, block: Any) -> Moments:
        s = None if weights is None else weights[rows]
        if not hasattr(block, "tocsr"):
            _add_dense(total, block, numbers[rows], s)
        elif kind == "diagonal":
            total += _sparse_diagonal(block, numbers[rows], n_classes, s)
        else:
            step = _rows_at_a_time(d)
            for begin in range(0, block.shape[0], step):
                piece = slice(begin, begin + step)
                own = None if s is None else s[piece]
                _add_dense(total, block[piece].toarray(), numbers[rows][piece], own)
        return total

    view = view.for_products() if matrices else view
    moments = view.fold(lambda: Moments.empty(n_classes, d, kind), add, matrices * d * d * 8)
    for scatter in {"shared": moments.scatter[None], "full": moments.scatter}.get(kind, ()):
        symmetric(scatter)
    return moments


def _about(
    view: DataView,
    classes: Array,
    n_classes: int,
    weights: Array | None,
    near: Array,
    precision: Precision,
    steps: int = 1,
) -> Moments:
    """Return the moments of rows whose products are summed about means that are nearly right."""
    weight = np.bincount(classes, weights, minlength=n_classes).astype(np.float64)
    how: dict[str, Any] = {"precision": precision, "steps": steps}
    scatter, sums = view.class_products(classes, n_classes, weights, near, **how)
    present = weight[:, None] > 0
    moved = np.divide(sums, weight[:, None], out=np.zeros_like(sums), where=present)
    spread = np.sqrt(weight)[:, None] * moved
    with one_thread_for(scatter.shape[0]):
        scatter -= spread.T @ spread
    if steps != 1:
        scatter /= steps**2
    return Moments(weight, np.where(present, (near + moved) / steps, 0.0), scatter, np.zeros_like(sums))


def _in_memory(view: DataView) -> bool:
    return getattr(view, "rows_in_place", False) and not view.sparse


def _of_whole_numbers(
    view: DataView, classes: Array, n_classes: int, weights: Array | None
) -> Moments | None:
    """Return the moments of rows of whole numbers of some fraction that differ little; None of others."""
    grid = grid_of(view, weights)
    if grid is None:
        return None
    of = classes[grid.seen]
    near = view.take(_first_of(classes, n_classes, None)).astype(np.float64)
    for k in np.unique(of):
        near[k] = grid.rows[of == k].mean(axis=0, dtype=np.float64)
    near = np.rint(grid.steps * near)
    try:
        rounded = near.astype(view.dtype).astype(np.float64)  # as the rows are from which it is subtracted
        moments = _about(view, classes, n_classes, None, rounded, "whole", grid.steps)
    except NotFiniteError:
        return None
    # (What rounding of the samples does to directions in which they vary little.)
    return moments if not grid.blur or least_correlation(moments.scatter) >= _CLEAR else None


def _near_means(view: DataView, classes: Array, n_classes: int, weights: Array | None) -> Array | None:
    """Return about the mean of each class, rounded as the rows are; None where single precision does harm."""
    n, d = view.shape
    if view.dtype != np.float32 or not _in_memory(view) or d < _MANY or n < _ROWS * d:
        return None
    seen = glance(view, classes, n_classes, weights)
    if seen.condition < _WELL or seen.largest_mean > _FAR:
        return None
    if not np.all(seen.weight):  # rare classes: one of their own samples is near enough
        missed = np.flatnonzero(seen.weight == 0)
        seen.means[missed] = view.take(_first_of(classes, n_classes, weights)[missed])
    return seen.means


def _first_of(classes: Array, n_classes: int, weights: Array | None) -> Array:
    """Return the first sample of each class that counts; 0 where there is none."""
    first = np.zeros(n_classes, dtype=np.intp)
    counted = np.arange(classes.shape[0]) if weights is None else np.flatnonzero(weights)
    first[classes[counted[::-1]]] = counted[::-1]
    return first


def _rows_at_a_time(d: int) -> int:
    """Return a number of rows whose product is worth writing a matrix of ``d × d``."""
    row = 8 * max(1, d)
    return max(1, min(max(BLOCK_BYTES // row, 3 * d), _PIECE_BYTES // row))


def _add_dense(total: Moments, block: Array, classes: Array, weights: Array | None) -> None:
    """Add a few rows to the moments: class means first, then what is left of the rows without them."""
    n_classes, d = total.mean.shape
    if total.kind in ("diagonal", "rows"):
        _add_centred(total, block, classes, weights)
        return
    weight = np.bincount(classes, weights, minlength=n_classes).astype(np.float64, copy=False)
    one = n_classes == 1
    mean, rest = np.zeros((n_classes, d)), np.zeros((n_classes, d))
    share = np.divide(1.0, weight, out=np.zeros(n_classes), where=weight > 0)[:, None]
    # Relative to one of its samples: the mean of a class loses no digits, and that of equal values is theirs.
    near = block[_first_of(classes, n_classes, weights)].astype(np.float64, copy=False)
    add_products(block, None, mean, classes=None if one else classes, weights=weights, origin=near)
    if not np.all(np.isfinite(mean)):
        raise NotFiniteError
    mean = np.where(weight[:, None] > 0, near + mean * share, 0.0)
    if total.kind == "shared" or one:
        scatter = total.scatter if total.kind == "shared" else total.scatter[0]
        own = None if one else classes
        add_products(block, scatter, rest, classes=own, weights=weights, origin=mean)
    else:
        order = np.argsort(classes, kind="stable")
        ends = np.cumsum(np.bincount(classes, minlength=n_classes))
        for k in np.flatnonzero(weight):
            rows = order[ends[k - 1] if k else 0 : ends[k]]
            add_products(block, total.scatter[k], rest[k], weights=weights, origin=mean[k], order=rows)
    rest *= share
    factor, delta = total._join(weight, mean, rest)
    # What a class mean moves adds to the scatter like a sample.
    moved = np.flatnonzero(factor)
    spread = delta[moved] * np.sqrt(factor[moved])[:, None]
    if total.kind == "shared":
        add_products(spread, total.scatter)
    else:
        for k, row in zip(moved, spread, strict=True):
            add_products(row[None], total.scatter[k])
    if not total.scatter.diagonal(0, -2, -1).max() <= np.finfo(block.dtype).max:
        raise NotFiniteError


def _add_centred(total: Moments, block: Array, classes: Array, weights: Array | None) -> None:
    """Add a few rows to moments without products of features: sort them by class and centre them."""
    if weights is not None and not np.all(weights):
        counted = np.flatnonzero(weights)
        block, classes, weights = block[counted], classes[counted], weights[counted]
    n_classes, d = total.mean.shape
    order = np.argsort(classes, kind="stable")
    s = None if weights is None else weights[order]
    counts = np.bincount(classes, minlength=n_classes)
    ends = np.cumsum(counts)
    present = np.flatnonzero(counts)
    n = order.shape[0]
    X = np.empty((n + present.size, d))
    if block.dtype == X.dtype:
        np.take(block, order, axis=0, out=X[:n], mode="clip")
    else:
        X[:n] = block[order]
    weight, mean, rest = np.zeros(n_classes), np.zeros((n_classes, d)), np.zeros((n_classes, d))
    for k in present:
        rows = slice(ends[k] - counts[k], ends[k])
        Xk = X[rows]
        weight[k] = counts[k] if s is None else s[rows].sum()
        shares = np.full(counts[k], 1.0 / counts[k]) if s is None else s[rows] / weight[k]
        np.matmul(shares, Xk, out=mean[k])
        Xk -= mean[k]
        np.matmul(shares, Xk, out=rest[k])
        if s is not None:
            Xk *= np.sqrt(s[rows])[:, None]
        if total.kind == "diagonal":
            total.scatter[k] += np.einsum("ij,ij->j", Xk, Xk)
    factor, delta = total._join(weight, mean, rest)
    X[n:] = delta[present] * np.sqrt(factor[present])[:, None]
    if total.kind == "rows":
        total.scatter = np.concatenate([total.scatter, X])
    else:
        total.scatter[present] += np.square(X[n:])


def _sparse_diagonal(block: Any, classes: Array, n_classes: int, weights: Array | None) -> Moments:
    """Return the diagonal moments of CSR rows: each unstored 0 adds ``μ²``, unseen."""
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    rows, d = block.shape
    s = np.ones(rows) if weights is None else weights
    part = Moments.empty(n_classes, d, "diagonal")
    part.weight = np.bincount(classes, weights=s, minlength=n_classes)
    stored = np.diff(block.indptr)
    entry_class = np.repeat(classes.astype(np.intp), stored)
    entry_weight = np.repeat(s, stored)
    place = entry_class * d + block.indices
    values = block.data.astype(np.float64, copy=False)

    def collect(amounts: Array) -> Array:
        return np.bincount(place, weights=amounts, minlength=n_classes * d).reshape(n_classes, d)

    weight = part.weight[:, None]
    np.divide(collect(entry_weight * values), weight, out=part.mean, where=weight > 0)
    deviation = values - part.mean[entry_class, block.indices]
    unstored = np.maximum(weight - collect(entry_weight), 0.0)
    part.scatter = collect(entry_weight * np.square(deviation)) + unstored * np.square(part.mean)
    return part


def _class_by_class(view: DataView, classes: Array, n_classes: int, weights: Array | None) -> Moments:
    """Visit one class after the other: large scatter matrices of all classes would not fit the caches."""
    moments = Moments.empty(n_classes, view.shape[1], "full")
    for k in range(n_classes):
        rows = np.flatnonzero(classes == k)
        if not rows.size:
            continue
        s = None if weights is None else weights[rows]
        alone = class_moments(ChosenRows(view, rows), np.zeros(rows.size, dtype=np.int32), 1, s)
        moments.weight[k], moments.mean[k] = alone.weight[0], alone.mean[0]
        moments.rest[k], moments.scatter[k] = alone.rest[0], alone.scatter
    return moments
