"""Linear separation: directions verified, and decided by linear programmes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from problems import problem_of, three_groups
from separatrix.solvers.separation import (
    Separation,
    check_columns,
    check_direction,
    decide,
    find_separation,
)


def margin_rows(X, y, K):
    """One row per margin in the parameters (w, b) of one column (K = 2), or of K − 1 classes."""
    Xt = np.column_stack([X, np.ones(len(X))])
    if K == 2:
        return Xt * np.where(np.asarray(y) == 1, 1, -1)[:, None]
    rows = []
    for x, c in zip(Xt, y, strict=True):
        for k in range(K):
            if k != c:
                row = np.zeros((K, len(x)))
                row[c], row[k] = x, -x
                rows.append(row[:-1].ravel())
    return np.array(rows)


def exact_kind(A):
    """Kind of separation for small integers and full rank: the sum of the extreme rays of A z ≥ 0."""
    D = A.shape[1]
    some = A[list(combinations(range(len(A)), D - 1))]  # D − 1 rows each, that a ray may be orthogonal to
    minors = [(-1) ** j * np.linalg.det(np.delete(some, j, axis=2)) for j in range(D)]
    rays = np.rint(np.column_stack(minors))
    rays = np.vstack([rays, -rays])
    total = (A @ rays[(rays @ A.T >= 0).all(axis=1)].T).sum(axis=1)
    if not total.any():
        return None
    return "complete" if (total > 0).all() else "quasi-complete"


def scores_of(found, X):
    return X @ found.coef.T + found.intercept


# --- Checking a direction


def test_a_direction_that_separates_is_measured():
    X, y = np.array([[0.0, 5.0], [1.0, 0.0], [3.0, 1.0]]), [0, 0, 1]
    found = check_direction(problem_of(X, y), np.array([[100.0, 0.0]]), np.array([-200.0]))
    assert (found.kind, found.separated, found.samples, found.column) == ("complete", 3, 3, 0)
    np.testing.assert_allclose(found.coef, [[1.0, 0.0]])
    assert found.margin == pytest.approx(1.0)
    assert found.features == (0,)


def test_a_direction_that_touches_is_quasi_complete():
    X, y = np.array([[0.0], [1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    found = check_direction(problem_of(X, y), np.array([[1.0]]), np.array([-1.0]))
    assert (found.kind, found.margin, found.separated) == ("quasi-complete", 0.0, 2)


def test_a_joint_direction_is_centred_and_measures_the_distance_to_the_nearest_boundary():
    X, y = np.array([[0.0, 1.0], [4.0, 1.0], [0.0, -3.0]]), [0, 1, 2]
    coef, intercept = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, -1.0]]) + 7, np.array([0.0, -2.0, -1.0])
    found = check_direction(problem_of(X, y, "joint"), coef, intercept)
    assert found.kind == "complete"
    np.testing.assert_allclose(found.coef.sum(axis=0), 0, atol=1e-15)
    assert np.linalg.norm(found.coef) == pytest.approx(1.0)
    assert found.margin == pytest.approx(2.0)  # of samples 0 and 1 to their common boundary x₀ = 2


@pytest.mark.parametrize("name", ["ovr", "joint"])
def test_wrong_directions_are_refused(name):
    X, y = np.array([[0.0], [1.0], [3.0]]), [0, 0, 1]
    problem = problem_of(X, y, name)
    shape = problem.columns
    up = np.array([[1.0]]) if shape == 1 else np.array([[-1.0], [1.0]])
    offset = np.array([-0.5]) if shape == 1 else np.array([0.5, -0.5])
    assert check_direction(problem, up, 4 * offset).kind == "complete"
    assert check_direction(problem, -up, -4 * offset) is None
    assert check_direction(problem, up, offset) is None
    assert check_direction(problem, 0 * up, 0 * offset) is None
    assert check_direction(problem, np.nan * up, offset) is None


def test_a_margin_within_rounding_proves_no_complete_separation():
    # 0.1 + 0.2 > 0.3 only by rounding: the third sample lies on the boundary.
    X, y = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.1, 0.2, 0.3]]), [1, 0, 1]
    found = check_direction(problem_of(X, y), np.array([[1.0, 1.0, -1.0]]), np.zeros(1))
    assert (found.kind, found.separated) == ("quasi-complete", 2)


def test_rounding_alone_is_no_direction():
    random = np.random.default_rng(3)
    X = random.normal(size=(30, 3))
    X = np.column_stack([X, X @ [0.3, -1.7, 0.9]])  # collinear: this direction moves no score
    y = np.arange(30) % 2
    assert check_direction(problem_of(X, y), np.array([[0.3, -1.7, 0.9, -1.0]]), np.zeros(1)) is None


def test_an_offset_of_the_data_hides_no_overlap():
    X, y = 1e8 + np.array([[0.0], [2.0], [1.0], [3.0]]), [0, 0, 1, 1]
    assert check_direction(problem_of(X, y), np.array([[1.0]]), np.array([-1e8 - 1.5])) is None
    assert find_separation(problem_of(X, y)) is None
    assert find_separation(problem_of(np.sort(X, axis=0), y)).kind == "complete"


def test_dense_csr_float32_and_integers_agree():
    random = np.random.default_rng(0)
    X = random.integers(-3, 4, size=(40, 4))
    y = (X[:, 0] + X[:, 2] > 0).astype(int)
    w, b = np.array([[1.0, 0.0, 1.0, 0.0]]), np.array([-0.5])
    forms = [X, np.float32(X), np.float64(X), np.asfortranarray(X, dtype=float), sparse.csr_array(X)]
    forms += [sparse.csr_matrix(X), sparse.csr_array(X.astype(np.float32))]
    for form in forms:
        problem = problem_of(form, y)
        assert check_direction(problem, w, b).margin == pytest.approx(0.5 / np.sqrt(2))
        assert find_separation(problem).kind == "complete"
        three = np.where(X[:, 1] > 2, 2, np.arange(40) % 2)
        for name in ("ovr", "joint"):
            assert [v.exists for v in decide(problem_of(form, three, name))] == [
                v.exists for v in decide(problem_of(X, three, name))
            ]


def test_samples_without_weight_have_no_say():
    X, y = np.array([[0.0], [1.0], [3.0], [0.5]]), [0, 0, 1, 1]
    assert find_separation(problem_of(X, y)) is None
    problem = problem_of(X, y, weights=[1, 2, 0.5, 0])
    found = check_direction(problem, np.array([[1.0]]), np.array([-2.0]))
    assert (found.kind, found.samples) == ("complete", 3)
    assert find_separation(problem).kind == "complete"


def test_without_intercept_the_boundary_goes_through_the_origin():
    X, y = np.array([[1.0], [2.0], [4.0], [5.0]]), [0, 0, 1, 1]
    assert find_separation(problem_of(X, y)).kind == "complete"
    problem = problem_of(X, y, fit_intercept=False)
    assert find_separation(problem) is None
    assert check_direction(problem, np.array([[1.0]]), np.array([-3.0])) is None
    found = find_separation(problem_of(X - 2, y, fit_intercept=False))
    assert found.kind == "quasi-complete"
    assert found.intercept.tolist() == [0.0]


# --- Deciding


integers = st.integers(-3, 3)


@given(st.lists(st.tuples(integers, integers, st.integers(0, 1)), min_size=4, max_size=10))
@settings(max_examples=80)
def test_the_binary_verdict_is_the_exact_one(rows):
    data = np.array(rows)
    X, y = data[:, :2], data[:, 2]
    A = margin_rows(X, y, 2)
    assume(np.linalg.matrix_rank(A) == 3)
    verdict = decide(problem_of(X, y, n_classes=2))[0]
    assert (verdict.separation.kind if verdict.exists else None) == exact_kind(A)
    assert verdict.exists is not None


@given(st.lists(st.tuples(integers, st.integers(0, 2)), min_size=4, max_size=7))
@settings(max_examples=50)
def test_the_joint_verdict_is_the_exact_one(rows):
    X, y = np.array(rows)[:, :1], np.array(rows)[:, 1]
    A = margin_rows(X, y, 3)
    assume(np.linalg.matrix_rank(A) == 4)
    found = find_separation(problem_of(X, y, "joint", n_classes=3))
    assert found != "unknown"
    assert (found.kind if found else None) == exact_kind(A)


@pytest.mark.parametrize("name", ["ovr", "joint"])
@pytest.mark.parametrize("exponent", [-6, 0, 6])
def test_that_there_is_none_is_proven_by_weights(name, exponent):
    random = np.random.default_rng(5)
    X = random.normal(size=(60, 3)) * 10.0**exponent * [1.0, 1e-3, 1e3]
    y = random.integers(0, 2 if name == "ovr" else 3, size=60)
    verdict = decide(problem_of(X, y, name))[0]
    assert verdict.exists is False
    assert verdict.separation is None
    # The rows again, by the formula: features scaled to 1, then each row.
    K = 2 if name == "ovr" else 3
    scaled = X / np.abs(X).max(axis=0)
    A = margin_rows(scaled, y, K)
    A = A / np.abs(A).max(axis=1, keepdims=True)
    own = np.arange(K) == y[:, None]
    weights = verdict.weights.ravel() if K == 2 else verdict.weights[~own]
    assert (weights >= 1).all()
    assert np.abs(weights @ A).sum() == pytest.approx(verdict.residual, abs=1e-9)
    assert verdict.residual < 1e-9


@pytest.mark.parametrize("exponents", [(-6, -6), (6, 6), (-6, 6)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_scales_change_no_verdict(exponents, form):
    random = np.random.default_rng(2)
    dummy = (random.random(90) < 0.2).astype(float)
    X = np.column_stack([random.normal(size=(90, 2)), dummy])
    y = ((X[:, 0] + random.normal(size=90) > 0) | (dummy > 0)).astype(int)
    scales = np.array([10.0 ** exponents[0], 10.0 ** exponents[1], 1.0])
    found = find_separation(problem_of(form(X * scales), y))
    assert (found.kind, found.separated) == ("quasi-complete", int(dummy.sum()))
    assert found.features == (2,)
    assert find_separation(problem_of(form(X * scales), random.integers(0, 2, 90))) is None


def test_many_rows_are_decided_from_few():
    random = np.random.default_rng(1)
    X = random.normal(size=(30_000, 8))
    w = random.normal(size=8)
    apart = X @ w > 0.3
    assert find_separation(problem_of(X, apart)).kind == "complete"
    assert find_separation(problem_of(X, apart ^ (random.random(30_000) < 0.001))) is None
    X[:, 0] = random.random(30_000) < 0.01
    y = (X[:, 1] + random.normal(size=30_000) > 0) | (X[:, 0] > 0)
    found = find_separation(problem_of(X, y))
    assert (found.kind, found.separated) == ("quasi-complete", int(X[:, 0].sum()))
    three = np.where(X[:, 0] > 0, 2, random.integers(0, 2, 30_000))
    found = find_separation(problem_of(X, three, "joint"))
    assert (found.kind, found.separated) == ("quasi-complete", int(X[:, 0].sum()))


def test_no_time_leaves_the_verdict_open():
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    assert find_separation(problem_of(X, y), max_time=0.0) == "unknown"


def test_a_tiny_overlap_is_never_called_separation():
    # The estimate exists, and is moderate: the weight grows only until exp(−w) is about 1e-10.
    X, y = np.array([[-1.0], [1e-10], [-1e-10], [1e6]]), [0, 0, 1, 1]
    found = find_separation(problem_of(X, y))
    assert found is None or found == "unknown"


def test_a_class_without_samples_has_no_estimate():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), random.integers(0, 2, size=40)
    found = find_separation(problem_of(X, y, "joint", n_classes=3))
    assert found.kind == "quasi-complete"
    assert found.pairs == (((0,), (2,)), ((1,), (2,)))
    only = find_separation(problem_of(X, np.zeros(40, dtype=int), n_classes=2))
    assert only.kind == "complete"


# --- Independent columns


@pytest.mark.parametrize(("name", "expected"), [("ovr", [False, False, True]), ("ovo", [False, True, True])])
def test_each_column_has_its_verdict(name, expected):
    X, y = three_groups(np.random.default_rng(0))
    problem = problem_of(X, y, name)
    verdicts = decide(problem)
    assert [verdict.exists for verdict in verdicts] == expected
    assert find_separation(problem).column == expected.index(True)
    sign = np.sign(problem.codes[2])[:, None]
    checks = check_columns(problem, sign * np.array([[1.0, 0.0]] * 3), sign[:, 0] * np.full(3, -10.0))
    assert [found is not None for found in checks] == expected
    for column, found in enumerate(checks):
        assert found is None or (found.kind == "complete" and found.column == column)
    if name == "ovo":
        assert [found.samples for found in checks if found] == [100, 100]


# --- Words


def test_the_message_names_fact_classes_features_and_remedy():
    X, y = three_groups(np.random.default_rng(0))
    joint = find_separation(problem_of(X, y, "joint")).message(["ash", "beech", "cedar"])
    assert "class ash from class cedar; class beech from class cedar but for samples on them" in joint
    assert "50 of 150 samples" in joint
    assert "class ash from class beech" not in joint
    assert "feature 0" in joint
    assert "does not exist" in joint
    assert "finite C" in joint
    rest = find_separation(problem_of(X, y)).message(np.array(["ash", "beech", "cedar"]), ["height", "age"])
    assert "a hyperplane separates class cedar from the other classes completely" in rest
    assert "height" in rest
    pairs = tuple(((k,), (9,)) for k in range(9))
    many = Separation("complete", np.eye(1), np.zeros(1), 1.0, 1, 1, None, pairs)
    assert "and 6 more pairs" in many.message(range(10))
