"""What a support vector classifier knows of labelled samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.view import Array


@dataclass(frozen=True, eq=False)
class MarginReport:
    r"""Where labelled samples lie: outside, on or inside the margin, or on the wrong side.

    With one machine (two classes, or all classes jointly) arrays have the shape (n,), with several machines
    (n, machines); a sample that takes no part in a machine has NaN there and is nowhere.

    Attributes
    ----------
    width : float or ndarray of shape (machines,)
        Widths ``2/‖w‖`` of the margins.
    margins : ndarray
        ``y f(x)`` (jointly: the own class's score less the best rival's).
    slack : ndarray
        ``ξ = max(0, 1 − y f(x))``.
    places : ndarray of int8
        0 outside, 1 on, 2 inside the margin but on the right side, 3 misclassified; −1 takes no part.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[3.0], [1.0], [0.5], [-1.0]])
    >>> report = MarginReport.of(scores, np.ones((4, 1)), np.array([2.0]), 1e-3)
    >>> print(report)
    margin width 2: 1 outside, 1 on the margin, 1 inside, 1 misclassified; slack 2.5 in all
    >>> report.misclassified.tolist()
    [False, False, False, True]
    """

    width: Any
    margins: Array
    slack: Array
    places: Array

    @classmethod
    def of(cls, scores: Array, codes: Array, width: Array, within: float) -> MarginReport:
        """Return the report of scores and codes of shape (n, machines)."""
        margins = np.where(codes != 0, codes * scores, np.nan)
        # A score of 0 belongs to the positive class.
        wrong = (codes != 0) & ((scores >= 0) != (codes > 0))
        places = np.select([codes == 0, wrong, margins > 1 + within, margins >= 1 - within], [-1, 3, 0, 1], 2)
        slack = np.maximum(1 - margins, 0.0)
        places = places.astype(np.int8)
        if scores.shape[1] == 1:
            return cls(float(width[0]), margins[:, 0], slack[:, 0], places[:, 0])
        return cls(width, margins, slack, places)

    @property
    def outside(self) -> Array:
        """Which samples are beyond the margin."""
        return np.asarray(self.places == 0)

    @property
    def on(self) -> Array:
        """Which samples are on the margin, up to the tolerance."""
        return np.asarray(self.places == 1)

    @property
    def inside(self) -> Array:
        """Which samples are inside the margin, on the right side."""
        return np.asarray(self.places == 2)

    @property
    def misclassified(self) -> Array:
        """Which samples are on the wrong side of the boundary."""
        return np.asarray(self.places == 3)

    def __str__(self) -> str:
        counts = [int(np.count_nonzero(self.places == place)) for place in range(4)]
        widths = np.atleast_1d(self.width)
        width = f"{widths[0]:.6g}" if widths.size == 1 else f"{widths.min():.6g} to {widths.max():.6g}"
        return (
            f"margin width {width}: {counts[0]:,} outside, {counts[1]:,} on the margin, {counts[2]:,} "
            f"inside, {counts[3]:,} misclassified; slack {float(np.nansum(self.slack)):.6g} in all"
        )


@dataclass(frozen=True, eq=False)
class Witness:
    """Convex combinations of two classes that coincide: no hyperplane can lie between them.

    Attributes
    ----------
    classes : tuple
        The two classes (the second is None for "all others").
    first, second : ndarray of int
        Numbers of training samples of either class.
    first_weights, second_weights : ndarray
        Their weights: positive, of sum 1.
    distance : float
        Distance of the two combinations in the kernel's feature space: 0 up to rounding.
    """

    classes: tuple[Any, Any]
    first: Array
    second: Array
    first_weights: Array
    second_weights: Array
    distance: float

    def __str__(self) -> str:
        other = "the others" if self.classes[1] is None else f"class {self.classes[1]}"
        return (
            f"class {self.classes[0]} and {other}: combinations of {self.first.size} and "
            f"{self.second.size} samples coincide (distance {self.distance:.1g})"
        )
