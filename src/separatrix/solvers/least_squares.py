"""The routes of least squares, and which one suits which data."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from separatrix.solvers._loop import Below
from separatrix.solvers.conjugate_gradient import ConjugateGradient
from separatrix.solvers.nonnegative import LARGEST, Nonnegative
from separatrix.solvers.normal_equations import Dual, Primal
from separatrix.solvers.orthogonal import LARGEST_WIDE, Orthogonal
from separatrix.solvers.regression import LeastSquaresSolver, Regression

#: Most rows of a square matrix that a closed form factorises.
_LARGEST = 4096
#: The same for samples of sparse data, where the alternative is slow (400 MB).
_LARGEST_SPARSE = 7000
#: Share of stored values from which data count as dense.
_DENSE = 0.1
#: Multiply-adds of a dense Gram matrix that sparse data are worth.
_SPARSE_WORK = 2e10
#: Iterations of conjugate gradients on well-conditioned data.
_USUAL = 50.0


def choose_route(problem: Regression) -> str:
    """Return the route for these data: by the shape of dense data, by work for sparse ones.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import DenseView
    >>> wide = Regression(DenseView(np.ones((3, 1000))), np.array([0, 1, 1]), np.eye(2), np.zeros(2))
    >>> choose_route(wide)
    'dual'
    """
    n, d = problem.view.shape
    stored = float(getattr(problem.view, "row_elements", d))
    if stored >= _DENSE * d:
        if min(n, d) > _LARGEST:
            return "cg"
        return "primal" if d <= max(n, 64) else "dual"
    # A factorisation of m³/3 multiply-adds runs at some 30 times the rate of sparse products, of which
    # conjugate gradients need two for each iteration and each column.
    side = min(n, d)
    closed = side**3 / 90 <= 2 * _iterations(problem) * n * stored * problem.columns
    if n < d and n <= _LARGEST_SPARSE and closed:
        return "dual"
    if d <= _LARGEST and n * float(d) ** 2 <= _SPARSE_WORK and (closed or not problem.alpha.all()):
        return "primal"
    return "cg"


def _iterations(problem: Regression) -> float:
    """Return about how many iterations conjugate gradients need on sparse data.

    Their number grows with the square root of the largest eigenvalue of ``XᵀSX + αI`` over the smallest; no
    eigenvalue is below α, and the largest is at least the largest ``Σ s x_j²`` of a feature j.
    """
    least = float(problem.alpha.min())
    if least == 0 or problem.view.shape[1] > _LARGEST:
        return _USUAL
    squares = np.zeros(problem.view.shape[1])
    for rows, block in problem.view.blocks():
        s = np.ones(block.shape[0]) if problem.weights is None else problem.weights[rows]
        squares += block.astype(np.float64).power(2).T @ s
    return _USUAL * max(1.0, 0.2 * sqrt(float(squares.max(initial=0.0)) / least))


def solver_of(problem: Regression, route: str, tol: float) -> LeastSquaresSolver:
    """Return the solver of a route ("auto" chooses one).

    Parameters
    ----------
    problem : Regression
        What is solved.
    route : {"auto", "primal", "dual", "svd", "cg"}
        How.
    tol : float
        Relative gap that ends an iterative route.
    """
    n, d = problem.view.shape
    if problem.positive:
        if d > LARGEST:
            raise ValueError(
                f"positive=True is solved exactly for at most {LARGEST:,} features, but X has {d:,}. Select "
                "features first, for example with sklearn.feature_selection.SelectKBest, or set "
                "positive=False."
            )
        return Nonnegative(problem)
    if route == "auto":
        route = choose_route(problem)
    if route == "cg":
        return ConjugateGradient(problem, tol)
    side = {"primal": d, "dual": n, "svd": min(n, d)}[route]
    largest = 4 * _LARGEST
    if side > largest or (route == "svd" and n < d and n * d > 4 * LARGEST_WIDE):
        raise ValueError(
            f"this solver factorises a matrix of {side:,} rows (X has shape {n:,} × {d:,}), and at most "
            f"{largest:,} are allowed. Choose the iterative one: solver='cg', in RidgeClassifier 'sparse_cg'."
        )
    solvers: dict[str, Any] = {"primal": Primal, "dual": Dual, "svd": Orthogonal}
    solver: LeastSquaresSolver = solvers[route](problem)
    return solver


def stop_rule(tol: float) -> Below:
    """Return the rule that ends an iterative route; closed forms end by themselves."""
    return Below(float(np.maximum(tol, 0.0)))
