"""Kernel values between samples, computed block by block when they are asked for, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.threads import question
from separatrix.data.view import BLOCK_BYTES, Array
from separatrix.kernels import Kernel


class KernelBlocks:
    """``k(x_i, x_j)`` over some samples; nothing is kept but the diagonal.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    samples : array, CSR matrix or sequence
        Rows of numbers, or whatever else the kernel takes (a list of strings).

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import Linear
    >>> matrix = KernelBlocks(Linear(), np.array([[1.0], [2.0], [3.0]]))
    >>> matrix.product(np.array([0, 2]), np.array([[1.0], [-1.0]])).ravel().tolist()
    [-2.0, -4.0, -6.0]
    """

    def __init__(self, kernel: Kernel, samples: Any) -> None:
        self.kernel, self.samples = kernel, samples
        n = samples.shape[0] if hasattr(samples, "shape") else len(samples)
        self.shape = (int(n), int(n))
        self.diag = np.empty(n)
        for part in self._parts(64):
            self.diag[part] = kernel.diag(self._taken(np.arange(part.start, part.stop)))
        self._check(self.diag)

    def _parts(self, width: int) -> list[slice]:
        step = max(64, BLOCK_BYTES // (8 * max(1, width)))
        return [slice(begin, min(begin + step, self.shape[0])) for begin in range(0, self.shape[0], step)]

    def _taken(self, rows: Array) -> Any:
        if not hasattr(self.samples, "shape"):
            return [self.samples[i] for i in rows]
        block = self.samples[rows]
        return block.astype(np.float64) if block.dtype.kind in "fiub" else block

    @staticmethod
    def _check(values: Array) -> Array:
        if not np.isfinite(values).all():
            raise ValueError(
                "kernel values are not finite: they overflow. Scale the features, for example with "
                "sklearn.preprocessing.StandardScaler, or choose other kernel parameters."
            )
        return values

    def block(self, rows: Array, columns: Array) -> Array:
        """Return ``k(x_i, x_j)`` for the given samples."""
        return self._check(np.asarray(self.kernel(self._taken(rows), self._taken(columns)), dtype=np.float64))

    def product(self, rows: Array, coef: Array, targets: Array | None = None) -> Array:
        """Return ``Σ_j k(x_t, x_j) coef[j]`` over the given rows, for the targets or for all samples."""
        everyone = np.arange(self.shape[0]) if targets is None else targets
        support, out = self._taken(rows), np.empty((len(everyone), coef.shape[1]))
        step = max(64, BLOCK_BYTES // (8 * max(1, len(rows))))
        ask = question()
        for begin in range(0, len(everyone), step):
            ask()
            part = slice(begin, begin + step)
            out[part] = self._check(np.asarray(self.kernel(self._taken(everyone[part]), support))) @ coef
        return out
