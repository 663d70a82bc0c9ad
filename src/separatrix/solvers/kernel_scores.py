"""Scores of new samples: ``K(X, support) @ coef`` without keeping the kernel block."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.view import Array
from separatrix.kernels import Kernel

#: Kernel entries held at a time.
_PIECE = 1 << 21


def kernel_scores(kernel: Kernel, support: Any, coef: Array, X: Any) -> Array:
    """Return ``Σ_j k(x_t, support_j) coef[j, :]`` for every sample of ``X``, in float64.

    Parameters
    ----------
    kernel : Kernel
        The formula. With ``precomputed = True`` the rows of ``X`` hold the kernel values and ``support`` is
        the list of the columns to use.
    support : array, CSR matrix or list
        The support vectors.
    coef : ndarray of shape (support, P)
        Their coefficients.
    X : array, CSR matrix or list
        New samples.
    """
    m = X.shape[0] if hasattr(X, "shape") else len(X)
    out = np.zeros((m, coef.shape[1]))
    step = max(1, _PIECE // max(1, coef.shape[0]))
    for begin in range(0, m, step):
        block = X[begin : begin + step]
        if getattr(kernel, "precomputed", False):
            values = np.asarray(block)[:, np.asarray(support)]
        else:
            values = kernel(block, support)
        out[begin : begin + step] = values @ coef
    return out
