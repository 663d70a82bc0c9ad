"""Problem and Result: the two values that travel between estimators and solvers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.certificate import Certificate
from separatrix.data.view import Array, DataView
from separatrix.losses import LOSSES, Loss

if TYPE_CHECKING:  # linear models need not load the kernels
    from separatrix.kernels import Kernel


@dataclass(frozen=True)
class Penalty:
    r"""The term ``alpha (l1_ratio ‖w‖₁ + (1 − l1_ratio) ½ ‖w‖²)`` added to the mean loss.

    Examples
    --------
    >>> import numpy as np
    >>> Penalty(alpha=0.1, l1_ratio=0.0).value(np.array([[3.0, 4.0]]))
    1.25
    """

    alpha: float = 0.0
    l1_ratio: float = 0.0

    @property
    def l1(self) -> float:
        """Factor of ``‖w‖₁``."""
        return self.alpha * self.l1_ratio

    @property
    def l2(self) -> float:
        """Factor of ``½ ‖w‖²``."""
        return self.alpha * (1.0 - self.l1_ratio)

    def __bool__(self) -> bool:
        return bool(self.alpha > 0.0)

    def value(self, coef: Array) -> float:
        """Return the penalty of these weights (the intercept is free)."""
        if not self:
            return 0.0
        w = np.asarray(coef, dtype=np.float64)
        return float(self.l1 * np.abs(w).sum() + 0.5 * self.l2 * np.square(w).sum())


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved.

    Attributes
    ----------
    view : DataView
        The samples.
    classes : ndarray of int32 of shape (n,)
        Number of each sample's class.
    codes : ndarray of int8 of shape (n_classes, columns)
        What a class means to each score column: −1, +1, or 0 where it takes no part.
    joint : bool
        Whether the columns, one per class, are learnt together.
    loss : Loss
        Loss as a function of the margin ``y f(x)``.
    kernel : Kernel or None
        Similarity in place of the inner product.
    penalty : Penalty
        Penalty on the weights.
    weights : ndarray of float64 of shape (n,) or None
        Weight of each sample; None means one for each.
    fit_intercept : bool
        Whether the scores have a constant term.
    targets : ndarray of float64 of shape (n,) or None
        For regression the number that the one column should give; classes and codes then mean nothing.
    factors : ndarray of float64 of shape (n_classes, columns) or None
        What multiplies the weight of a class's samples in each column; None means one.
    """

    view: DataView
    classes: Array
    codes: Array
    joint: bool = False
    loss: Loss = LOSSES["perceptron"]
    kernel: Kernel | None = None
    penalty: Penalty = field(default_factory=Penalty)
    weights: Array | None = None
    fit_intercept: bool = True
    targets: Array | None = None
    factors: Array | None = None

    def __post_init__(self) -> None:
        # A grid of parameters holds NumPy's booleans, which compiled states refuse.
        object.__setattr__(self, "fit_intercept", bool(self.fit_intercept))

    @property
    def columns(self) -> int:
        """Number of score columns."""
        return int(self.codes.shape[1])

    @property
    def largest_wins(self) -> bool:
        """Whether the largest of one score per class decides (else each column by its sign)."""
        return self.joint or (self.columns > 1 and bool(np.all(self.codes)))


@dataclass(eq=False)
class Result:
    """What a solver returns: parameters, certificate and history.

    ``coef`` holds one row of weights per column in the primal form; in the dual form it holds one
    coefficient per training sample.
    """

    coef: Array
    intercept: Array
    certificate: Certificate
    history: list[dict[str, Any]]
    iterations: int
