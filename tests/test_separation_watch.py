"""Linear separation met by iterative fits: a watch ends those that have no maximum, and no others."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from problems import problem_of, three_groups
from separatrix.solvers.separation import (
    Watch,
    check_direction,
    find_separation,
)


def newton(problem, X, iterations=15, *, errors=False):
    """Damped Newton for the plain likelihood, in well-scaled coordinates; returns iterations and verdict."""
    middle = X.min(axis=0) / 2 + X.max(axis=0) / 2
    centre = np.where(np.abs(middle) > np.ptp(X, axis=0), middle, 0.0)
    width = np.abs(X - centre).max(axis=0)
    width[width == 0] = 1.0
    A = np.column_stack([(X - centre) / width, np.ones(len(X))])
    n, D = A.shape
    K = problem.codes.shape[0]
    T = np.eye(K)[problem.classes]
    free = K if problem.joint else 1

    def scores(W):
        return A @ W.T if problem.joint else A @ np.vstack([0 * W, W]).T

    def loss(W):
        F = scores(W)
        top = F.max(axis=1)
        return (np.log(np.exp(F - top[:, None]).sum(axis=1)) + top - F[np.arange(n), problem.classes]).sum()

    W, watch = np.zeros((free, D)), Watch(problem)
    for iteration in range(1, iterations + 1):
        F = scores(W)
        P = np.exp(F - F.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        G = ((P - T).T @ A)[K - free :]
        H = np.zeros((free, D, free, D))
        for k in range(free):
            for l in range(free):
                a, b = k + K - free, l + K - free
                H[k, :, l] = (A * (P[:, a] * ((a == b) - P[:, b]))[:, None]).T @ A
        size = np.sqrt(np.einsum("kiki->ki", H)).ravel()
        size[size <= 1e-12 * size.max()] = np.inf
        H = H.reshape(free * D, free * D) / size / size[:, None]
        step = (np.linalg.lstsq(H, G.ravel() / size, rcond=1e-13)[0] / size).reshape(free, D)
        factor, before = 1.0, loss(W)
        while loss(W - factor * step) > before and factor > 1e-4:
            factor /= 2
        W = W - factor * step
        known = None
        if errors:
            F = scores(W)
            own = F[np.arange(n), problem.classes][:, None]
            known = float(np.count_nonzero(((own - F <= 0) & (T == 0)).any(axis=1)))
        coef = W[:, :-1] / width
        found = watch.update(coef, W[:, -1] - coef @ centre, errors=known)
        if found is not None:
            return iteration, found
    return iterations, None


def complete(random, K):
    X = random.normal(size=(100, 3))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1], np.linspace(-0.8, 0.8, K - 1) if K > 2 else [0.1])


def predictive_feature(random, K):
    X = np.column_stack([random.normal(size=(120, 2)), random.random(120) < 0.15])
    return X, np.where(X[:, 2] > 0, K - 1, random.integers(0, K, 120))


def touching(random, K):
    X = random.integers(-4, 5, size=(150, 2)).astype(float)
    y = np.digitize(X[:, 0], np.arange(1, K) - 1.5 + 0.5)
    edge = np.flatnonzero(X[:, 0] == 0)
    y[edge[::2]] = 0
    return X, y


def one_apart(random, K):
    X = random.normal(size=(120, 3))
    y = random.integers(0, K, 120) if K > 2 else np.zeros(120, dtype=int)
    y[X[:, 0] > 0.7] = K - 1
    y[(X[:, 0] <= 0.7) & (y == K - 1)] = 0
    return X, y


def single_sample(random, K):
    X = random.normal(size=(60, 3))
    y = random.integers(0, K - 1, 60) if K > 2 else np.zeros(60, dtype=int)
    X[7], y[7] = [0.0, 9.0, 0.0], K - 1
    return X, y


def wide(random, K):
    X = random.normal(size=(12, 15))
    return X, np.arange(12) % K


def duplicated(random, K):
    X, y = predictive_feature(random, K)
    again = random.integers(0, len(X), 200)
    return np.vstack([X, X[again]]), np.concatenate([y, y[again]])


def collinear(random, K):
    X, y = predictive_feature(random, K)
    return np.column_stack([X, X @ [1.0, 2.0, 0.0], np.ones(len(X))]), y


def through_points(random, K):
    """Class 0 and the others touch in d points in general position, which carry both labels."""
    X = random.normal(size=(120, 3))
    points = random.normal(size=(3, 3))
    normal = np.linalg.solve(points, np.ones(3))
    y = np.where(X @ normal > 1, random.integers(1, K, 120), 0)
    return np.vstack([X, points, points]), np.concatenate([y, [0] * 3, [1] * 3])


def far_away(random, K):
    X, y = through_points(random, K)
    return X + np.array([1e6, -1e6, 0.0]), y


CASES = [
    complete,
    predictive_feature,
    touching,
    one_apart,
    single_sample,
    wide,
    duplicated,
    collinear,
    through_points,
    far_away,
]


@pytest.mark.parametrize(("scale", "seed"), [(1e-6, 0), (1.0, 1), (1e6, 2)])
@pytest.mark.parametrize(("name", "K"), [("ovr", 2), ("joint", 2), ("joint", 3), ("joint", 4)])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_newton_is_stopped_soon(case, name, K, scale, seed, monkeypatch):
    X, y = case(np.random.default_rng(seed), K)
    X = X * scale
    problem = problem_of(X, y, name, n_classes=K)
    _, found = newton(problem, X, errors=bool(seed % 2))
    assert found is not None
    assert check_direction(problem, found.coef, found.intercept).kind == found.kind
    best = find_separation(problem)
    assert (found.kind, found.separated) == (best.kind, best.separated)
    # The same by its own iterates, without linear programmes.
    monkeypatch.setattr(Watch, "SMALL", 0)
    assert newton(problem, X, errors=bool(seed % 2))[1] is not None


@pytest.mark.parametrize("case", [complete, predictive_feature, one_apart])
@pytest.mark.parametrize("name", ["ovr", "joint"])
def test_a_quasi_newton_fit_is_stopped_too(case, name):
    X, y = case(np.random.default_rng(1), 2)
    problem = problem_of(X, y, name)
    watch, K = Watch(problem), problem.columns
    A = np.column_stack([X, np.ones(len(X))])

    def objective(v):
        W = v.reshape(K, -1)
        f = A @ (W[0] if K == 1 else W[1] - W[0])
        sign = np.where(y == 1, 1.0, -1.0)
        slope = A.T @ (-sign * np.exp(-np.logaddexp(0, sign * f)))
        return np.logaddexp(0, -sign * f).sum(), slope if K == 1 else np.concatenate([-slope, slope])

    class FoundError(Exception):
        pass

    def callback(v):
        W = v.reshape(K, -1)
        if watch.update(W[:, :-1], W[:, -1]) is not None:
            raise FoundError

    with pytest.raises(FoundError):
        minimize(
            objective,
            np.zeros(K * 4),
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options=dict(ftol=0, gtol=1e-12, maxiter=100),
        )
    assert watch.iteration <= 40


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([2, 3]), st.integers(-6, 6), st.booleans())
@settings(max_examples=40)
def test_no_alarm_where_the_estimate_exists(seed, d, K, exponent, near):
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, d))
    y = np.digitize(X[:, 0], [0.0, 0.5][: K - 1])
    # d + 1 points in general position that carry every label: all margins of a direction are 0 at them.
    witness = random.normal(size=(d + 1, d)) * (1e-3 if near else 1.0)
    assume(np.linalg.cond(np.column_stack([witness, np.ones(d + 1)])) < 1e6)
    X = np.vstack([X, *[witness] * K]) * 10.0**exponent
    y = np.concatenate([y, np.repeat(np.arange(K), d + 1)])
    for name in ("ovr", "joint") if K == 2 else ("joint",):
        problem = problem_of(X, y, name)
        assert newton(problem, X, iterations=12)[1] is None
        assert find_separation(problem) is None


@pytest.mark.parametrize("name", ["ovr", "ovo"])
def test_columns_are_watched_one_by_one(name):
    X, y = three_groups(np.random.default_rng(4))
    problem, watch = problem_of(X, y, name), Watch(problem_of(X, y, name))
    W = np.array([[0.1, 0.2], [0.3, -0.1], [0.2, 0.1]])
    assert watch.update(W, np.zeros(3), errors=np.array([40, 30, 20])) is None
    W[2], b = ([1.0, 0.0], -10.0) if name == "ovr" else ([-1.0, 0.0], 10.0)
    found = watch.update(W, np.array([0.0, 0.0, b]), errors=np.array([40, 30, 0]))
    assert (found.kind, found.column) == ("complete", 2)
    assert watch.found is found
    assert problem.columns == 3


def test_a_converging_fit_is_hardly_touched(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))
    y = (X[:, 0] + random.normal(size=500) > 0).astype(int)
    problem = problem_of(X, y)
    passes = []
    blocks = type(problem.view).blocks
    monkeypatch.setattr(type(problem.view), "blocks", lambda self: passes.append(1) or blocks(self))
    assert newton(problem, X, iterations=30, errors=True)[1] is None
    assert len(passes) <= 8


def test_a_proven_overlap_ends_the_watch(monkeypatch):
    X, y = np.array([[0.0], [2.0], [1.0], [3.0]]), [0, 0, 1, 1]
    watch = Watch(problem_of(X, y))
    for t in range(1, 12):
        assert watch.update(np.array([[float(t)]]), np.array([-1.5 * t])) is None
    monkeypatch.setattr("separatrix.solvers.separation.checked", None)  # a further check would fail
    for t in range(12, 30):
        assert watch.update(np.array([[float(t)]]), np.array([-1.5 * t]), errors=0) is None


def test_what_was_kept_in_hope_of_better_is_there_at_the_end(monkeypatch):
    monkeypatch.setattr(Watch, "SMALL", 0)
    X, y = np.array([[0.0], [1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    watch = Watch(problem_of(X, y))
    for t in range(1, 6):
        assert watch.update(np.array([[float(t)]]), np.array([-float(t)])) is None
    assert watch.settle().kind == "quasi-complete"
    assert watch.update(np.array([[9.0]]), np.array([-9.0])) is watch.found


def test_a_watch_without_suspicion_settles_for_nothing():
    watch = Watch(problem_of(np.array([[0.0], [2.0], [1.0], [3.0]]), [0, 0, 1, 1]))
    assert watch.update(np.array([[0.1]]), np.array([0.0])) is None
    assert watch.settle() is None
