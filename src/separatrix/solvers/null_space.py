r"""The directions in which samples do not differ, from eigenvalues of their scatter and checked on them.

Coded categories, sums and copies of features leave the scatter ``C = AᵀA`` of the centred samples, each
column scaled to length 1, without full rank. Its eigenvalues are squares: rounding hides singular values
below ``√ε`` or so, and an eigenvalue near 0 alone does not tell a dependence from a near one. The samples do.
With the eigenvectors ``V₀`` in question and the others, ``V₁`` with values ``Λ``, a pass over the data gives
``A V₀`` and ``Aᵀ(A V₀)``, neither of which is squared before it is small, and

    V₀ ← V₀ − V₁ Λ⁻¹ V₁ᵀ Aᵀ(A V₀)

takes out what rounding of ``C`` has mixed in. If then ``‖A V₀‖`` is what rounding the samples leaves, all of
``V₀`` is null; if not, the question needs an orthogonal factorisation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from separatrix.data.threads import one_thread_for
from separatrix.data.view import Array
from separatrix.solvers.regression import Regression, judge

#: Most corrections of the null space, and how small one must be that what it leaves is nothing.
_ROUNDS, _SMALL = 4, 1e-8


def scatter_factor(
    problem: Regression,
    scatter: Array,
    scale: Array,
    constant: Array,
    mean: Array,
    *,
    shift: bool,
    well: float,
    tolerance: float,
) -> tuple[Array, Array] | None:
    """Return ``σ`` and ``V`` with ``D⁻¹SD⁻¹ ≈ V σ² Vᵀ``, without null space; None where that is in doubt.

    Parameters
    ----------
    problem : Regression
        Samples and weights.
    scatter : ndarray of shape (d, d)
        ``S``.
    scale, constant : ndarray of shape (d,)
        ``D``, and which features count as constant.
    mean : ndarray of shape (d,)
        Mean of the samples (0 without an intercept).
    shift : bool
        Whether to subtract it from dense samples first.
    well : float
        Eigenvalue, as a share of the largest, from which the scatter is enough to tell it.
    tolerance : float
        Singular value of the samples, as a share of the largest, that rounding them leaves.
    """
    d = scatter.shape[0]
    varying = ~constant
    unit = scale[varying][:, None]
    C = scatter[np.ix_(varying, varying)] / unit
    C /= unit.T
    if C.size == 0:
        return np.zeros(0), np.zeros((d, 0))
    with one_thread_for(d):
        values, vectors = linalg.eigh(C, overwrite_a=True, check_finite=False, driver="evd")
    doubtful = int(np.searchsorted(values, max(well, tolerance**2) * values[-1], side="right"))
    null, kept, values = vectors[:, :doubtful], vectors[:, doubtful:], values[doubtful:]
    if doubtful:
        W, rounding = np.zeros((d, doubtful)), tolerance * float(np.sqrt(values[-1]))
        zero = replace(problem, targets=np.zeros((len(problem.targets), doubtful)), alpha=np.zeros(doubtful))
        for _ in range(_ROUNDS):
            W[varying] = null / unit
            judged = judge(zero, W, -(mean @ W), mean, shift=shift)
            with one_thread_for(d):
                change = kept @ ((kept.T @ (judged.gradient[varying] / unit)) / values[:, None])
                null = np.linalg.qr(null + change)[0]
            if np.sqrt(judged.loss.sum()) <= rounding and np.linalg.norm(change) <= _SMALL:
                break
        else:
            return None
        kept = kept - null @ (null.T @ kept)
    V = np.zeros((d, kept.shape[1]))
    V[varying] = kept
    return np.sqrt(values), V
