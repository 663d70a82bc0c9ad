"""The kernel matrix of the training samples, computed on demand."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from separatrix.data.view import Array
from separatrix.kernels import Kernel

#: Kernel entries that a product holds at a time.
_PIECE = 1 << 21


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
        precision: Literal["float32", "float64"] | None = None,
    ) -> None:
        self.kernel, self.samples = kernel, samples
        self.cache_bytes, self.precision = cache_bytes, precision
        n = int(samples.shape[0])
        self.shape = (n, n)
        self.precomputed = bool(getattr(kernel, "precomputed", False))
        self.diag: Array = self._diagonal()

    def _take(self, rows: Array) -> Any:
        take = getattr(self.samples, "take", None) or self.samples.read
        return take(rows)

    def _diagonal(self) -> Array:
        n = self.shape[0]
        diag = np.empty(n)
        for begin in range(0, n, 1 << 12):
            rows = np.arange(begin, min(n, begin + (1 << 12)))
            if self.precomputed:
                diag[rows] = np.asarray(self._take(rows))[np.arange(rows.size), rows]
            else:
                diag[rows] = self.kernel.diag(self._take(rows))
        if not np.isfinite(diag).all():
            raise ValueError(self._not_finite(int(np.flatnonzero(~np.isfinite(diag))[0])))
        return diag

    def _not_finite(self, row: int) -> str:
        return (
            f"the kernel values of sample {row} are not finite. Scale the features, for example with "
            "sklearn.preprocessing.StandardScaler, or choose other kernel parameters."
        )

    def block(self, rows: Array, columns: Array) -> Array:
        """Return the entries of the given rows and columns, as a new array."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        if self.precomputed:
            values = np.asarray(self._take(rows))[:, columns]
        else:
            values = self.kernel(self._take(rows), self._take(columns))
        if not np.isfinite(values).all():
            raise ValueError(self._not_finite(int(rows[np.argwhere(~np.isfinite(values))[0][0]])))
        return values

    def product(self, rows: Array, coef: Array, targets: Array | None = None) -> Array:
        """Return ``Σ_j k(x_t, x_rows_j) coef[j, :]`` for the targets (all samples if None), in float64."""
        rows = np.asarray(rows)
        targets = np.arange(self.shape[0]) if targets is None else np.asarray(targets)
        out = np.zeros((targets.size, coef.shape[1]))
        step = max(1, _PIECE // max(1, rows.size))
        for begin in range(0, targets.size, step):
            piece = targets[begin : begin + step]
            out[begin : begin + step] = self.block(piece, rows) @ coef
        return out
