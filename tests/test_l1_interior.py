"""The squared hinge loss with an L1 penalty by interior points, and the fits that need them."""

from __future__ import annotations

import numpy as np
import pytest
import qpsolvers
from numpy.testing import assert_allclose
from scipy import sparse

from separatrix.data.memory import view_of
from separatrix.models.linear_svm import LinearSVC
from separatrix.solvers._l1_interior import affordable, chosen_rows, l1_programme


def samples(n: int, d: int, seed: int, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=d) + noise * np.sqrt(d) * rng.normal(size=n)
    return X, np.where(scores > 0, 1.0, -1.0)


def objective(X, y, s, factors, l2, w, b) -> float:
    short = np.maximum(1.0 - y * (X @ w + b), 0.0)
    return float(s @ short**2 + factors @ np.abs(w) + 0.5 * l2 * w @ w)


def by_quadratic_programme(X, y, s, factors, l2, free) -> float:
    """Return the least objective by Clarabel, over (p, q, ξ, b) with w = p − q."""
    n, m = X.shape
    A = y[:, None] * X
    size = 2 * m + n + 1
    P = np.zeros((size, size))
    P[:m, :m] = P[m : 2 * m, m : 2 * m] = l2 * np.eye(m)
    P[:m, m : 2 * m] = P[m : 2 * m, :m] = -l2 * np.eye(m)
    P[2 * m : -1, 2 * m : -1] = np.diag(2.0 * s)
    costs = np.concatenate([factors, factors, np.zeros(n + 1)])
    G = -np.column_stack([A, -A, np.eye(n), y])
    low = np.append(np.zeros(size - 1), -np.inf if free else 0.0)
    high = np.append(np.full(size - 1, np.inf), np.inf if free else 0.0)
    found = qpsolvers.solve_qp(
        sparse.csc_matrix(P), costs, sparse.csc_matrix(G), -np.ones(n), lb=low, ub=high, solver="clarabel"
    )
    return objective(X, y, s, factors, l2, found[:m] - found[m : 2 * m], found[-1])


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.5])
@pytest.mark.parametrize(("n", "d"), [(40, 12), (15, 30)])
@pytest.mark.parametrize("C", [0.1, 1.0, 1e3])
def test_a_quadratic_programme_finds_nothing_better(n: int, d: int, l2: float, free: bool, C: float) -> None:
    X, y = samples(n, d, 3)
    rng = np.random.default_rng(4)
    s, factors = C * rng.exponential(size=n), rng.uniform(0.5, 2.0, d)
    w, b, _ = l1_programme(X, y, s, factors, l2, free, 1e-9)
    assert free or b == 0.0
    least = by_quadratic_programme(X, y, s, factors, l2, free)
    assert_allclose(objective(X, y, s, factors, l2, w, b), least, rtol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_multipliers_prove_the_optimum_whatever_the_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(5, 60, 2)
    X, y = samples(n, m, seed, noise=rng.choice([0.1, 3.0]))
    X *= 10.0 ** rng.uniform(-2, 2, m)
    s = 10.0 ** rng.uniform(-4, 6) * (0.1 + rng.exponential(size=n))
    w, b, u = l1_programme(X, y, s, np.ones(m), 0.0, False, 1e-10)
    scale = 1.0 / max(1.0, float(np.abs((y * u) @ X).max()))
    bound = scale * float(u.sum()) - scale**2 * float((u**2 / (4.0 * s)).sum())
    least = objective(X, y, s, np.ones(m), 0.0, w, b)
    assert u.min() >= 0
    assert -1e-12 <= (least - bound) / least <= 1e-8


def test_weights_vanish_exactly() -> None:
    X, y = samples(60, 200, 5)
    w, _, _ = l1_programme(X, y, np.full(60, 1e4), np.ones(200), 0.0, True, 1e-9)
    # No more than samples, each of which gives one equation.
    assert 10 < np.count_nonzero(w) <= 60


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sparse.csr_matrix])
def test_rows_are_gathered_from_all_blocks(layout) -> None:
    X = np.random.default_rng(0).normal(size=(30_000, 40)).astype(np.float32)
    view = view_of(layout(X))
    assert len(list(view.blocks())) > 1
    rows, features = np.arange(5, 30_000, 7), np.array([3, 17, 30])
    found = chosen_rows(view, rows, features)
    assert found.dtype == np.float64
    assert_allclose(found, X[np.ix_(rows, features)], rtol=0, atol=0)


def test_what_takes_long_or_much_memory_is_left_alone() -> None:
    assert affordable(2000, 1000)
    assert not affordable(20_000, 1000)
    assert not affordable(1_000_000, 20)


def test_one_class_alone_has_no_programme_with_a_free_intercept() -> None:
    X, _ = samples(10, 3, 0)
    assert l1_programme(X, np.ones(10), np.ones(10), np.ones(3), 0.0, True, 1e-9) is None


def test_time_that_is_up_leaves_the_point_reached() -> None:
    X, y = samples(30, 5, 1)
    w, _, u = l1_programme(X, y, np.ones(30), np.ones(5), 0.0, False, 1e-9, lambda: True)
    assert np.isfinite(w).all()
    assert (u > 0).all()


@pytest.mark.parametrize(
    ("n", "d", "C", "dtype", "layout"),
    [
        (188, 639, 395.0, np.float64, "dense"),
        (188, 639, 395.0, np.float32, "sparse"),
        (300, 200, 1e4, np.float64, "dense"),
        (300, 200, 1e4, np.float32, "sparse"),
        (649, 347, 6e3, np.float32, "dense"),
        (120, 300, 1e6, np.float64, "sparse"),
    ],
)
def test_an_l1_penalty_at_a_large_c_converges(n: int, d: int, C: float, dtype: type, layout: str) -> None:
    X, y = samples(n, d, 1)
    X = X.astype(dtype)
    model = LinearSVC(penalty="l1", C=C).fit(sparse.csr_matrix(X) if layout == "sparse" else X, y)
    found = model.certificate_
    assert found.status == "converged"
    assert found.relative_gap <= 1e-4
    w, b = model.coef_[0].astype(float), model.intercept_.astype(float)
    value = objective(X.astype(float), y, np.full(n, C), np.ones(d), 0.0, w, b[0]) + float(np.abs(b[0]))
    assert_allclose(value, found.primal, rtol=1e-6)


def test_a_free_intercept_and_several_classes_at_a_large_c() -> None:
    X, y = samples(150, 300, 2)
    labels = (y > 0).astype(int) + (X[:, 0] > 0.5)
    model = LinearSVC(penalty="l1", C=1e5, penalize_intercept=False).fit(X, labels)
    assert model.certificate_.status == "converged"
    assert model.certificate_.worst_relative_gap <= 1e-4
