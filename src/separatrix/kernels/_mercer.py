"""Is a kernel valid on these samples? The smallest eigenvalue of its Gram matrix, and a witness if not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from separatrix.kernels._base import Kernel, Rows, as_rows, check_finite
from separatrix.kernels._precomputed import check_symmetric
from separatrix.kernels._resolve import resolve_kernel


@dataclass(frozen=True, eq=False)
class Mercer:
    """What :func:`mercer` found.

    Attributes
    ----------
    valid : bool
        False: proven not to be a kernel. True: positive semidefinite on these samples, up to rounding; other
        samples may still tell otherwise.
    smallest : float
        Smallest eigenvalue of the Gram matrix.
    tolerance : float
        What rounding can make of it: eigenvalues above ``-tolerance`` count as not negative.
    witness : ndarray of shape (n,) or None
        A vector ``c`` of length 1 with ``c'Kc < 0``, if there is one.
    value : float or None
        ``c'Kc``, computed anew from ``c`` and the kernel's values.
    samples : int
        Number of samples.
    kernel : Kernel
        The kernel, its parameters resolved.

    Examples
    --------
    >>> from separatrix.kernels import mercer
    >>> verdict = mercer("precomputed", [[0.0, 1.0], [1.0, 0.0]])
    >>> verdict.valid, round(verdict.smallest, 6), abs(verdict.witness).round(4).tolist()
    (False, -1.0, [0.7071, 0.7071])
    """

    valid: bool
    smallest: float
    tolerance: float
    witness: NDArray[Any] | None
    value: float | None
    samples: int
    kernel: Kernel

    def __str__(self) -> str:
        verdict = "positive semidefinite" if self.valid else "not positive semidefinite"
        second = (
            f"these samples are no evidence against {self.kernel!r}; others may be"
            if self.valid
            else f"the witness c has c'Kc = {self.value:.3g} < 0: {self.kernel!r} is not a valid kernel"
        )
        return (
            f"{verdict} on these {self.samples:,} samples: smallest eigenvalue {self.smallest:.3g}, "
            f"tolerance {self.tolerance:.1g}\n{second}"
        )


def mercer(kernel: Any, X: Rows, *, gamma: Any = "scale", degree: int = 3, coef0: float = 0.0) -> Mercer:
    """Test Mercer's condition, that ``K_ij = k(x_i, x_j)`` is positive semidefinite, on samples.

    A function is a kernel, an inner product in some feature space, if and only if all its Gram matrices are
    positive semidefinite: ``c'Kc >= 0`` for every vector ``c``. One negative value proves that it is none.
    Needs the whole matrix and time in proportion to ``n^3``; a few hundred samples tell most.

    Parameters
    ----------
    kernel : str, Kernel or callable
        As for estimators; ``"precomputed"`` if `X` is the Gram matrix itself.
    X : array, CSR matrix, or list of texts
        Samples of the kind that the kernel compares.
    gamma, degree, coef0
        Parameters of named kernels, as in :func:`separatrix.kernels.resolve_kernel`.

    Returns
    -------
    Mercer
        The verdict; its text has two lines.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.kernels import RBF, mercer
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> verdict = mercer("sigmoid", X, gamma=1.0, coef0=-1.0)
    >>> print(verdict)
    not positive semidefinite on these 3 samples: smallest eigenvalue -1.27, tolerance 9e-15
    the witness c has c'Kc = -1.27 < 0: Sigmoid(gamma=1.0, coef0=-1.0) is not a valid kernel
    >>> c = verdict.witness
    >>> bool(c @ verdict.kernel(X) @ c < 0)
    True
    >>> mercer(RBF(0.5), X).valid
    True
    """
    resolved = resolve_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0, X=X)
    if resolved.samples in ("vectors", "matrix"):
        rows = as_rows(X, "X")
        X = rows if rows.dtype == np.float64 else rows.astype(np.float64)
        if sparse.issparse(X) and resolved.precomputed:
            X = X.toarray()
    values = resolved(X)
    if values.shape[0] == 0:
        raise ValueError("X holds no sample; mercer needs at least one")
    check_finite(values, repr(resolved), "scale the features, or choose other parameters of the kernel")
    check_symmetric(values, f"the Gram matrix of {resolved!r}")
    K = 0.5 * (values.astype(np.float64) + values.T)
    eigenvalues, vectors = linalg.eigh(K, subset_by_index=[0, 0])
    smallest, c = float(eigenvalues[0]), vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    tolerance = _tolerance(K, c, float(np.finfo(values.dtype).eps))
    if smallest >= -tolerance:
        return Mercer(True, smallest, tolerance, None, None, K.shape[0], resolved)
    # The tolerance holds the rounding error of this product, so that it is negative beyond doubt.
    return Mercer(False, smallest, tolerance, c, float(c @ K @ c), K.shape[0], resolved)


def _tolerance(K: NDArray[Any], c: NDArray[Any], precision: float) -> float:
    """Bound what rounding does to the eigenvalue, to ``c'Kc``, and to the kernel's values themselves."""
    n, eps = int(K.shape[0]), float(np.finfo(np.float64).eps)
    sizes = np.abs(K)
    peak = float(sizes.max()) or 1.0
    sizes /= peak  # so that no square overflows
    size = float(np.sqrt((sizes * sizes).sum()))
    product = float(np.abs(c) @ sizes @ np.abs(c))
    largest = min(size, float(sizes.sum(axis=0).max()))  # at least the largest eigenvalue
    bound: float = peak * (n * eps * largest + 2 * (n + 2) * eps * product + 8 * precision * size)
    return bound + float(np.finfo(np.float64).tiny)  # below it numbers lose their digits
