"""The dual problems of support vector machines, and where one stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.data.view import Array


@dataclass(frozen=True, eq=False)
class DualProblem:
    """``min ½ a'Qa + p'a`` over ``0 ≤ a ≤ u``, ``s'a = s'start``; ``Q_ij = s_i s_j k(x_{r_i}, x_{r_j})``.

    Attributes
    ----------
    rows : ndarray of intp, shape (m,)
        Which samples; they may repeat.
    signs : ndarray of shape (m,)
        ``s``: +1 or −1.
    linear : ndarray of shape (m,)
        ``p``.
    upper : ndarray of shape (m,)
        ``u``; infinity is allowed (hard margin).
    start : ndarray of shape (m,)
        A feasible start.
    separate : bool
        Whether ``Σ a`` stays too, that is the sums over either sign: the nu-problems.
    solvable : bool
        Whether there is known to be a solution, even where ``u`` is infinite.
    """

    rows: Array
    signs: Array
    linear: Array
    upper: Array
    start: Array
    separate: bool = False
    solvable: bool = False


@dataclass
class DualSolution:
    """Where a problem stands.

    Attributes
    ----------
    alpha, gradient : ndarray of shape (m,)
        A feasible point, and ``Qa + p`` there.
    violation : float
        ``m(a) − M(a)``; for separate sums the larger of the two signs'.
    steps : int
        Pairs changed.
    status : str
        "running", "converged", "max_iter", "nonconvex", "unbounded", or "rounding": the tolerance is out of
        reach, since the gradient cannot be known as exactly.
    doubt : float
        About how far the gradient may be from one of kernel values in double.
    known : ndarray of intp or None
        The variables whose gradient has been computed, where time was not enough for all; None: all of them.
    """

    alpha: Array
    gradient: Array
    violation: float = np.inf
    steps: int = 0
    status: str = "running"
    doubt: float = 0.0
    known: Array | None = None
