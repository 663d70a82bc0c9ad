r"""Reduced vectors in single precision, whose inner products bound distances from below.

Let ``y = s(x − c)`` (``u = x/‖x‖`` in the place of ``x`` for the cosine). For orthonormal columns ``V`` the
map ``z = (Vᵀy, √(‖y‖² − ‖Vᵀy‖²))`` brings no two points farther apart, and ``‖z‖ = ‖y‖``, so that

    s²‖x − q‖² ≥ ‖z_q − z_x‖² = ‖y_q‖² + ‖y_x‖² − 2 z_q·z_x.

With as many directions ``V`` as the data mostly lie along (their principal ones, from a sample), one product
of short vectors tells of nearly all rows that they are too far. Without ``V`` (``z = y``) it is the distance
itself.

Rounding. Stored are ``ẑ = z + e`` with ``‖e‖ ≤ κ‖y‖`` (rounding to single precision; the square root of what
is left of a difference). If ``‖x − q‖ ≤ D``, then ``‖ẑ_q − ẑ_x‖ ≤ sD + κ(‖y_q‖ + ‖y_x‖)``, and because
``(a + b)² ≤ (1 + θ)a² + (1 + 1/θ)b²`` its square is at most
``(1 + θ)s²D² + 2(1 + 1/θ)κ²(‖y_q‖² + ‖y_x‖²)``. The product of ``w`` terms in single precision adds an error
of at most ``2γ(‖y_q‖² + ‖y_x‖²)``, ``γ ≈ w 2⁻²⁴``. Both errors are ``c(‖y_q‖² + ‖y_x‖²)`` and go to either
side: a row within ``D`` has

    ẑ_q·ẑ_x − h_x ≥ (room_q − (1 + θ)s²D²)/2,    2h_x = ‖ẑ_x‖² − c‖y_x‖²,  room_q = ‖ẑ_q‖² − c‖y_q‖².
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.threads import single_threaded
from separatrix.data.view import Array, DataView

#: Rows of a panel in the compiled core.
PANEL = 16
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53
_THETA = 1e-4
#: Numbers of directions to choose among, and rows and bytes of the sample that chooses.
_DIRECTIONS = (16, 32, 48, 64, 96)
_SAMPLE_ROWS, _SAMPLE_BYTES, _PROBES = 2048, 32 << 20, 64
#: Cost of a feature in the filter and in an exact distance, and of the latter's start, in cycles.
_FILTER, _MEASURE, _START = 0.08, 0.4, 60.0


def _normalised(rows: Array) -> Array:
    """Return rows of length 1; rows of zeros stay."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(rows / np.where(norms > 0, norms, 1.0)[:, None])


def _rounded_down(values: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(values - np.abs(values) * 2.0**-22 - 2.0**-120, dtype=np.float32)


def _power_of_two(size: float) -> float:
    """Return the power of two that brings a size near 1, so that scaling rounds nothing."""
    return 2.0 ** -round(np.log2(size)) if 1e-300 < size < 1e300 else 1.0


class Reduction:
    """The map from rows to reduced vectors, with its bound of the rounding errors.

    Parameters
    ----------
    view : DataView
        Dense training samples.
    cosine : bool
        Whether only the rows' directions count.
    project : bool
        Whether to look for principal directions.

    Attributes
    ----------
    width : int
        Numbers in a reduced vector.
    basis : ndarray of shape (d, width − 1) or None
        ``V``.
    grow : float
        Factor of a (squared) distance on the scale of the reduced vectors, with its allowance.
    """

    def __init__(self, view: DataView, cosine: bool, project: bool) -> None:
        n, d = view.shape
        self.cosine = cosine
        most = int(min(_SAMPLE_ROWS, max(_PROBES * 4, _SAMPLE_BYTES // (8 * d)))) if project else _PROBES
        sample = view.take(np.arange(0, n, -(-n // most))).astype(np.float64)
        sample = _normalised(sample) if cosine else sample
        with np.errstate(over="ignore", invalid="ignore"):
            self.centre = sample.mean(axis=0)
            if not np.all(np.isfinite(self.centre)):
                self.centre = np.zeros(d)
            sample -= self.centre
            size = float(np.sqrt(np.mean(np.einsum("ij,ij->i", sample, sample))))
        self.scale = _power_of_two(size)
        sample *= self.scale
        self.basis = None
        if project and np.isfinite(size):
            # Small factorisations: threads of the library would mostly wait for each other.
            with single_threaded(np.inf):
                self.basis = _directions(sample)
        self.width = d if self.basis is None else self.basis.shape[1] + 1
        kappa = 2 * _SINGLE
        if self.basis is not None:
            kappa = 4 * _SINGLE + float(np.sqrt(16 * (d + self.width) * _DOUBLE))
        self.error = 2.2 * (self.width + 8) * _SINGLE + 2 * (1 + 1 / _THETA) * kappa**2
        self.grow = (2.0 if cosine else 1.0) * (1 + 2 * _THETA) * self.scale * self.scale

    def _reduced(self, rows: Array) -> tuple[Array, Array]:
        """Return the reduced vectors in single precision, and ``‖ẑ‖² − c‖y‖²``."""
        y = rows.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            y = _normalised(y) if self.cosine else y
            y -= self.centre
            y *= self.scale
            squares = np.einsum("ij,ij->i", y, y)
            if self.basis is None:
                z = y.astype(np.float32)
            else:
                z = np.empty((len(y), self.width), dtype=np.float32)
                along = y @ self.basis
                z[:, :-1] = along
                z[:, -1] = np.sqrt(np.maximum(squares - np.einsum("ij,ij->i", along, along), 0.0))
            lengths = np.einsum("ij,ij->i", z, z, dtype=np.float64)
            return z, lengths - self.error * squares

    def queries(self, rows: Array) -> tuple[Array, Array]:
        """Return the reduced vectors of queries and their room."""
        return self._reduced(rows)

    def panels(self, rows: Array) -> tuple[Array, Array]:
        """Return rows packed as ``[panel][number][row in panel]``, and their ``h``, both padded."""
        z, lengths = self._reduced(rows)
        count = -(-len(z) // PANEL)
        padded = np.zeros((count * PANEL, self.width), dtype=np.float32)
        padded[: len(z)] = z
        halves = np.zeros(count * PANEL, dtype=np.float32)
        halves[: len(z)] = _rounded_down(lengths / 2)
        return np.ascontiguousarray(padded.reshape(count, PANEL, self.width).transpose(0, 2, 1)), halves


def _directions(sample: Array) -> Array | None:
    """Return the number of principal directions of centred rows that promises the least work, or None."""
    rows, d = sample.shape
    most = _DIRECTIONS[-1]
    if d <= most or rows < 2 * _PROBES:
        return None
    single = sample.astype(np.float32)
    # Any directions give a valid bound: three steps of subspace iteration find good ones.
    block = np.random.default_rng(0).standard_normal((d, min(most + 16, rows)), dtype=np.float32)
    for _ in range(3):
        block = np.linalg.qr(single.T @ (single @ block))[0]
    _, _, turn = np.linalg.svd(single @ block, full_matrices=False)
    basis = np.linalg.qr(block.astype(np.float64) @ turn[:most].T)[0]

    probes, others = sample[:_PROBES], sample[_PROBES:]
    own, other = (np.einsum("ij,ij->i", part, part) for part in (probes, others))
    sizes = own[:, None] + other
    nearest = (sizes - 2 * probes @ others.T).min(axis=1)
    best, chosen = _FILTER * d, None
    for m in (m for m in _DIRECTIONS if m <= basis.shape[1]):
        p, x = probes @ basis[:, :m], others @ basis[:, :m]
        q_rest, x_rest = (
            np.sqrt(np.maximum(squares - np.einsum("ij,ij->i", z, z), 0))
            for squares, z in ((own, p), (other, x))
        )
        passed = np.mean(sizes - 2 * (p @ x.T + np.outer(q_rest, x_rest)) <= nearest[:, None])
        cost = _FILTER * m + float(passed) * (_MEASURE * d + _START)
        if cost < best:
            best, chosen = cost, np.ascontiguousarray(basis[:, :m])
    return chosen


class SparseReduction:
    """The same for sparse rows: ``z = s x`` (or ``x/‖x‖``), neither moved nor projected.

    Parameters
    ----------
    scale : float
        ``s``, a power of two.
    cosine : bool
        Whether only the rows' directions count.
    terms : int
        Most stored values of a row.
    """

    def __init__(self, scale: float, cosine: bool, terms: int) -> None:
        self.cosine, self.scale, self.terms = cosine, 1.0 if cosine else scale, terms
        self.error = 2.2 * (terms + 8) * _SINGLE + 2 * (1 + 1 / _THETA) * (2 * _SINGLE) ** 2
        self.grow = (2.0 if cosine else 1.0) * (1 + 2 * _THETA) * self.scale * self.scale

    @classmethod
    def of(cls, view: DataView, cosine: bool) -> SparseReduction:
        """Return the reduction that fits the training samples."""
        terms, total = 0, 0.0
        for _, block in view.blocks():
            terms = max(terms, int(np.diff(block.indptr).max(initial=0)))
            total += float(np.sum(np.square(block.data[: block.indptr[-1]], dtype=np.float64)))
        return cls(_power_of_two(np.sqrt(total / max(1, view.shape[0]))), cosine, terms)

    def values(self, rows: Any) -> tuple[Array, Array]:
        """Return the values that stand for those of a CSR block, and ``‖ẑ‖² − c‖y‖²`` of each row."""
        count = rows.shape[0]
        row = np.repeat(np.arange(count), np.diff(rows.indptr))
        values = rows.data[: rows.indptr[-1]].astype(np.float64)  # there may be room behind the last row
        with np.errstate(over="ignore", invalid="ignore"):
            if self.cosine:
                norms = np.sqrt(np.bincount(row, values * values, count))
                values /= np.where(norms > 0, norms, 1.0)[row]
            else:
                values *= self.scale
            single = values.astype(np.float32)
            lengths = np.bincount(row, np.square(single, dtype=np.float64), count)
            return single, lengths * (1 - self.error)

    def rows(self, rows: Any) -> tuple[Array, Array]:
        """Return the values of training rows and their ``h``."""
        values, lengths = self.values(rows)
        return values, _rounded_down(lengths / 2)
