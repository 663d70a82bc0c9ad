"""The routes of least squares, and which one suits which data."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from separatrix.data.room import allowed, basis, blocks_of, demand
from separatrix.data.threads import thread_count, threads_allowed
from separatrix.data.view import padding
from separatrix.solvers._loop import Below
from separatrix.solvers.conjugate_gradient import FORMED, ConjugateGradient
from separatrix.solvers.nonnegative import LARGEST, Nonnegative
from separatrix.solvers.normal_equations import PANEL_BYTES, Dual, Primal
from separatrix.solvers.orthogonal import LARGEST_WIDE, Orthogonal
from separatrix.solvers.regression import LeastSquaresSolver, Regression
from separatrix.solvers.sparse_dual import LARGEST_DOUBLE, SparseDual

#: Most rows of a square matrix that a closed form factorises.
_LARGEST = 4096
#: The same for samples of sparse data, where the alternative is slow: in single precision, half of the matrix
#: stored (400 MB); without a penalty, or with several, it is as many as LARGEST_DOUBLE.
_LARGEST_SPARSE = 14_000
#: Samples from which single precision pays.
_MANY_SAMPLES = 1024
#: Share of stored values from which data count as dense.
_DENSE = 0.1
#: Multiply-adds of a dense Gram matrix that sparse data are worth.
_SPARSE_WORK = 2e10
#: Iterations of conjugate gradients that easy data need, and many; what an iteration costs besides its
#: multiply-adds. (Where a closed form costs no more than few, beginning with them can only double the work.)
_FEW, _MANY, _CALLS = 16.0, 50.0, 5e4
#: Multiply-adds of a closed form that a processor makes in a second, for an estimate, and how many of them
#: eigenvalues are worth.
_RATE, _EIGENVALUES = 1.5e10, 4.0
_CLOSED: dict[str, Any] = {"primal": Primal, "dual": Dual, "svd": Orthogonal}


def choose_route(problem: Regression) -> str:
    """Return the route for these data: by the shape of dense data, by work for sparse ones.

    "cg, or primal" begins with conjugate gradients, and ends otherwise if these need many iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.data.memory import DenseView
    >>> wide = Regression(DenseView(np.ones((3, 1000))), np.array([0, 1, 1]), np.eye(2), np.zeros(2))
    >>> choose_route(wide)
    'dual'
    """
    n, d = problem.view.shape
    stored = float(problem.view.row_elements)
    if stored >= _DENSE * d:
        if min(n, d) > _LARGEST:
            return "cg"
        return "primal" if d <= max(n, 64) else "dual"
    closed, iterations = _closed_form(problem)
    if problem.alpha.all():
        return "cg" if closed is None else closed if iterations < _FEW else f"cg, or {closed}"
    # (Without a penalty iterations are many.)
    return "cg" if closed is None or (d > _LARGEST and iterations > _MANY) else closed


def _closed_form(problem: Regression) -> tuple[str | None, float]:
    """Return the closed form that sparse data can afford, and how many iterations cost as much.

    Dense multiply-adds run at some 30 times the rate of sparse products, of which conjugate gradients need
    two for each iteration and each column.
    """
    n, d = problem.view.shape
    one = 2.0 * n * float(problem.view.row_elements) * problem.columns + _CALLS
    single = _in_single_precision(problem)
    if n < d and n <= (_LARGEST_SPARSE if single else LARGEST_DOUBLE):
        return "dual", n**3 / ((300 if single else 90) * one)
    if d <= _LARGEST and n * float(d) ** 2 <= _SPARSE_WORK:
        return "primal", d**2 * (d / 90 + n / 60) / one
    return None, 0.0


def _in_single_precision(problem: Regression) -> bool:
    """Return whether a factor in single precision can precondition the dual form: for one penalty."""
    many = problem.view.sparse and problem.view.shape[0] >= _MANY_SAMPLES
    return bool(many and problem.alpha[0] > 0 and np.all(problem.alpha == problem.alpha[0]))


def _closed(problem: Regression, route: str, tol: float) -> LeastSquaresSolver:
    """Return the closed form of this name."""
    if route == "dual" and _in_single_precision(problem):
        many = problem.view.shape[0] > LARGEST_DOUBLE
        return SparseDual(problem, tol, partial(ConjugateGradient, tol=tol) if many else Dual)
    solver: LeastSquaresSolver = _CLOSED[route](problem)
    if isinstance(solver, Orthogonal):  # all of them are
        solver.otherwise = partial(ConjugateGradient, tol=tol)
    return solver


def _seconds(problem: Regression, route: str) -> float:
    """Return about how long a closed form takes at least: its products and its factor."""
    n, d = problem.view.shape
    across = float(problem.view.row_elements)
    if route.endswith("dual"):
        work = n**3 / 3 + (0.0 if problem.view.sparse else 0.5 * d * float(n) ** 2)
        if not problem.alpha.all() and n * d > LARGEST_WIDE:  # dependent samples need eigenvalues
            work += _EIGENVALUES * float(n) ** 3
    elif route.endswith("primal"):
        work = d**3 / 3 + 0.5 * n * across**2
    else:
        return 0.0
    return work / (_RATE * thread_count(None))


def bytes_of(problem: Regression, route: str) -> float:
    """Return the most bytes that a route takes besides its input, rather too many than too few.

    Matrices in work, by the side of the square that a closed form factorises: the sums of each thread, their
    total, and its factor. Conjugate gradients keep some ten matrices of the shape of the weights.
    """
    (n, d), q = problem.view.shape, problem.columns
    always = basis(n) + 48.0 * d * q
    if route != "primal" and not problem.view.sparse:
        always += blocks_of(problem.view)
    if route.startswith("cg"):
        formed = d <= FORMED and not problem.view.sparse
        totals = (threads_allowed() + 2.0) * d * (d if formed else q)
        wide = padding(q) if problem.view.sparse else q
        return always + 8.0 * (totals + (22.0 * d + 3.0 * n * problem.view.sparse) * wide)
    if route == "dual" and _in_single_precision(problem):
        return always + 2.0 * n**2 + 64.0 * (n + d) * padding(q) + 24.0 * n * problem.view.row_elements
    alphas = len(np.unique(problem.alpha))
    if route == "dual":
        rows = 4.0 * PANEL_BYTES if not problem.view.sparse else 24.0 * n * problem.view.row_elements
        eigenvalues = not problem.alpha.all() and n * d > LARGEST_WIDE
        return always + 8.0 * n**2 * (alphas + 0.5 + 3.0 * eigenvalues) + rows
    if route == "svd":
        return always + Orthogonal.bytes(problem)
    return always + 8.0 * d**2 * (threads_allowed() + 1.0 + alphas)


def solver_of(
    problem: Regression, route: str, tol: float, max_time: float | None = None
) -> LeastSquaresSolver:
    """Return the solver of a route ("auto" chooses one).

    Parameters
    ----------
    problem : Regression
        What is solved.
    route : {"auto", "primal", "dual", "svd", "cg"}
        How.
    tol : float
        Relative gap that ends an iterative route.
    max_time : float or None
        Most seconds: where a closed form seems to take longer, "auto" iterates instead, which has something
        to show whenever it ends.
    """
    n, d = problem.view.shape
    if problem.positive:
        if d > LARGEST:
            raise ValueError(
                f"positive=True is solved exactly for at most {LARGEST:,} features, but X has {d:,}. Select "
                "features first, for example with sklearn.feature_selection.SelectKBest, or set "
                "positive=False."
            )
        demand(bytes_of(problem, "svd"), "positive=True", "set positive=False")
        return Nonnegative(problem)
    if route == "auto":
        route = choose_route(problem)
        if max_time is not None and _seconds(problem, route) > max_time:
            route = "cg"
        if max(bytes_of(problem, r) for r in route.split(", or ")) > allowed():
            route = "cg"
    remedy = "" if route == "cg" else "choose the iterative solver: 'cg', in RidgeClassifier 'sparse_cg'"
    demand(max(bytes_of(problem, r) for r in route.split(", or ")), f"solver {route!r}", remedy)
    if route == "cg":
        return ConjugateGradient(problem, tol)
    if route.startswith("cg, or "):
        otherwise = partial(_closed, route=route[7:], tol=tol)
        return ConjugateGradient(problem, tol, _closed_form(problem)[1], otherwise)
    side = {"primal": d, "dual": n, "svd": min(n, d)}[route]
    # (Single precision and half of the matrix: twice the rows in the same memory.)
    largest = (8 if route == "dual" and _in_single_precision(problem) else 4) * _LARGEST
    if side > largest or (route == "svd" and n < d and n * d > 4 * LARGEST_WIDE):
        raise ValueError(
            f"this solver factorises a matrix of {side:,} rows (X has shape {n:,} × {d:,}), and at most "
            f"{largest:,} are allowed. Choose the iterative one: solver='cg', in RidgeClassifier 'sparse_cg'."
        )
    return _closed(problem, route, tol)


def stop_rule(tol: float) -> Below:
    """Return the rule that ends an iterative route; closed forms end by themselves."""
    return Below(float(np.maximum(tol, 0.0)))
