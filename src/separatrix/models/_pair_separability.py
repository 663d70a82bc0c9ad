"""Whether a hyperplane separates two classes: the verdict, in words, and its proof."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.view import Array
from separatrix.kernels import Kernel, Linear


def plain(X: Any) -> Any:
    """Return samples in double precision: an array, CSR matrix, or a list of whatever the kernel takes."""
    if sparse.issparse(X):
        return sparse.csr_array(X).astype(np.float64)
    array = np.asarray(X)
    return list(X) if array.dtype.kind in "OUS" and array.ndim == 1 else array.astype(np.float64)


def taken(X: Any, rows: Array) -> Any:
    """Return some of the samples."""
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def name_of(label: Any) -> str:
    """Return a label as people write it."""
    return str(label.item() if hasattr(label, "item") else label)


def subject_of(group: tuple[Any, ...]) -> str:
    """Return a group of classes in words."""
    names = ", ".join(map(name_of, group[:4])) + (f", … ({len(group)} in all)" if len(group) > 4 else "")
    return f"class {names}" if len(group) == 1 else f"classes {names}"


@dataclass(frozen=True, eq=False)
class Separability:
    r"""Whether a hyperplane separates two classes (or groups of classes), with the proof.

    Either the widest margin: ``min ‖w‖`` subject to ``y_i (w·φ(x_i) + b) ≥ 1``; or convex combinations of the
    two classes that coincide.

    Attributes
    ----------
    verdict : {"separable", "touching", "inseparable", "unknown"}
        "touching": the classes meet, but only at the border: a hyperplane has samples on it and none on its
        wrong side (found for the linear kernel only). "unknown": not decided, for lack of time or of digits.
    classes : tuple
        The classes on the negative and on the positive side, two tuples of labels.
    width : float or None
        Width ``2/‖w‖`` of the returned hyperplane's margin; None if there is none.
    widest : float or None
        No margin is wider than this.
    coef : ndarray of shape (n_features,) or None
        ``w`` for the linear kernel, scaled such that the nearest samples have scores of ±1. If touching, a
        hyperplane with ``‖w‖ = 1`` and samples on it.
    intercept : float or None
        ``b``.
    support : ndarray of int
        Rows of ``X`` in the nearest, or coinciding, convex combinations.
    weights : ndarray of float
        Their weights: not negative, of sum 1 in each class.
    dual_coef : ndarray or None
        For a separable pair the coefficients of ``f(x) = Σ dual_coef_i k(x_i, x) + b`` over the support.
    residual : float
        How far the two combinations are apart: in the worst feature relative to its range for the linear
        kernel, relative to the largest ``‖φ(x)‖`` for others.
    tolerance : float
        Residual up to which combinations count as coinciding.
    kernel : Kernel
        The kernel, its parameters resolved.

    Examples
    --------
    >>> from separatrix.models.separability import separability
    >>> verdict = separability([[0.0, 0.0], [0.0, 2.0], [3.0, 1.0]], ["a", "a", "b"])
    >>> print(verdict)
    separable: a hyperplane separates class a from class b
    widest margin 3, 3 support points
    >>> verdict.coef.round(3), round(verdict.intercept, 3)
    (array([0.667, 0.   ]), -1.0)
    """

    verdict: str
    classes: tuple[tuple[Any, ...], tuple[Any, ...]]
    kernel: Kernel
    support: Array
    weights: Array
    width: float | None
    widest: float | None
    coef: Array | None
    intercept: float | None
    dual_coef: Array | None
    residual: float
    tolerance: float

    @property
    def separable(self) -> bool | None:
        """True, False (proven), or None where it is not known."""
        return None if self.verdict == "unknown" else self.verdict == "separable"

    def __str__(self) -> str:
        first, second = map(subject_of, self.classes)
        if self.verdict == "separable":
            assert self.width is not None
            assert self.widest is not None
            gap = self.widest - self.width > 1e-6 * self.widest
            widest = f"{self.width:.6g}" if not gap else f"between {self.width:.6g} and {self.widest:.6g}"
            return (
                f"separable: a hyperplane separates {first} from {second}\n"
                f"widest margin {widest}, {len(self.support)} support points"
            )
        if self.verdict == "unknown":
            known = "" if self.widest == np.inf else f"at most {self.widest:.3g} apart; "
            return (
                f"unknown: neither a separating hyperplane between {first} and {second} nor coinciding "
                f"convex combinations could be proven\n{known}raise max_time, or scale the features"
            )
        how = "meet: no hyperplane separates them"
        if self.verdict == "touching":
            how = "touch: a hyperplane has none on its wrong side, but some on it"
        return (
            f"{self.verdict}: the convex hulls of {first} and {second} {how}\n"
            f"convex combinations of {len(self.support)} samples coincide to {self.residual:.1g} "
            f"(tolerance {self.tolerance:.0g})"
        )

    def _repr_html_(self) -> str:
        fact, detail = str(self).split("\n")
        return f"<p><b>{escape(fact)}</b><br>{escape(detail)}</p>"

    def verify(self, X: Any, y: Any) -> bool:
        """Recompute the proof from the data in double precision; True, or a ValueError that says what fails.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            The samples that the verdict is about.
        y : array-like of shape (n,)
            Their labels.
        """
        if self.verdict == "unknown":
            raise ValueError("there is nothing to verify: the verdict is unknown.")
        rows, y = plain(X), np.asarray(y)
        positive, negative = (np.isin(y, list(group)) for group in (self.classes[1], self.classes[0]))
        sign = np.where(positive, 1.0, -1.0)[self.support]
        a = self.weights
        if not (positive | negative)[self.support].all():
            raise ValueError("the support holds samples of other classes.")
        sums = [float(a[sign == side].sum()) for side in (1, -1)]
        if (a < 0).any() or max(abs(s - 1) for s in sums) > 1e-12:
            raise ValueError(f"the weights are not convex: smallest {a.min()}, sums {sums}.")
        if isinstance(self.kernel, Linear):
            self._verify_linear(rows, positive, negative, sign * a)
        else:
            self._verify_kernel(rows, positive, negative, sign * a)
        return True

    def _verify_linear(self, X: Any, positive: Array, negative: Array, coef: Array) -> None:
        part = X[self.support].toarray() if sparse.issparse(X) else X[self.support]
        difference = coef @ (part - part.mean(axis=0))
        if self.coef is not None:
            assert self.intercept is not None
            scores = np.asarray(X @ self.coef) + self.intercept
            sizes = np.asarray(abs(X) @ np.abs(self.coef)) + abs(self.intercept)
            margins = np.where(positive, scores, np.where(negative, -scores, np.inf))
            rounding = (X.shape[1] + 2) * np.finfo(float).eps * sizes
            slack = 16 * np.finfo(float).eps * float(np.abs(part).max()) * len(difference)
            self._check_margins(margins, rounding, float(margins.min() / np.linalg.norm(self.coef)), slack)
        if self.verdict == "separable":
            self._check_widest(float(np.linalg.norm(difference)), slack)
        else:
            taking_part = X[np.flatnonzero(positive | negative)]
            extent = taking_part.max(axis=0) - taking_part.min(axis=0)
            extent = extent.toarray().ravel() if sparse.issparse(extent) else extent
            self._check_coincidence(float(np.max(np.abs(difference) / np.where(extent > 0, extent, 1.0))))

    def _verify_kernel(self, X: Any, positive: Array, negative: Array, coef: Array) -> None:
        support = taken(X, self.support)
        square = float(coef @ np.asarray(self.kernel(support, support), dtype=np.float64) @ coef)
        length = float(np.sqrt(max(0.0, square)))
        extent = float(np.sqrt(np.max(self.kernel.diag(taken(X, np.flatnonzero(positive | negative))))))
        if self.verdict != "separable":
            self._check_coincidence(length / extent)
            return
        assert self.dual_coef is not None
        assert self.intercept is not None
        factor = float(np.abs(self.dual_coef).sum() / np.abs(coef).sum())
        if not np.allclose(self.dual_coef, factor * coef, rtol=1e-9, atol=0.0):
            raise ValueError("dual_coef is not a multiple of the signed weights.")
        scores = np.asarray(self.kernel(X, support), dtype=np.float64) @ self.dual_coef + self.intercept
        margins = np.where(positive, scores, np.where(negative, -scores, np.inf))
        mass = float(np.abs(self.dual_coef).sum()) * extent**2
        rounding = np.full(len(margins), (len(coef) + 16) * np.finfo(float).eps * mass)
        # The square of a distance in a feature space is known to the rounding error of kernel values.
        slack = 8 * (len(coef) + 16) * np.finfo(float).eps * extent**2 / length
        self._check_margins(margins, rounding, float(margins.min()) / (factor * length), slack)
        self._check_widest(length, slack)

    def _check_margins(self, margins: Array, rounding: Array, distance: float, slack: float) -> None:
        worst = int(np.argmin(margins))
        if self.verdict == "touching":
            if (margins < -8 * rounding).any():
                raise ValueError(f"sample {worst} is on the wrong side of the hyperplane: {margins[worst]}.")
            return
        if not (margins > rounding).all():
            raise ValueError(f"sample {worst} is not on the right side beyond rounding: {margins[worst]}.")
        assert self.width is not None
        if not abs(2 * distance - self.width) <= 1e-6 * self.width + slack:
            raise ValueError(f"the margin is {2 * distance} wide, not {self.width}.")

    def _check_widest(self, length: float, slack: float) -> None:
        assert self.width is not None
        assert self.widest is not None
        if not abs(length - self.widest) <= 1e-6 * max(length, self.widest) + slack:
            raise ValueError(f"the nearest points are {length} apart, not {self.widest}.")

    def _check_coincidence(self, residual: float) -> None:
        if not residual <= self.tolerance:
            raise ValueError(
                f"the convex combinations do not coincide: {residual} apart (tolerance {self.tolerance})."
            )
