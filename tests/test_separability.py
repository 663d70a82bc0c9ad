"""Verdicts on separability: right, proven, and the same however the data are written."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from oracles import quadratic_programme
from separatrix.data.memory import view_of
from separatrix.kernels import RBF, Kernel, Linear, Polynomial
from separatrix.models.separability import separability
from separatrix.solvers._kernel_blocks import KernelBlocks
from separatrix.solvers._loop import Below, Control, run
from separatrix.solvers._min_norm import MinNorm, Products, Vectors
from separatrix.solvers.hulls import LinearRows, NearestPoints


def widest_by_programme(X, y):
    """The hard-margin SVM as a quadratic programme: width of the margin, and the hyperplane."""
    d = X.shape[1]
    P = np.diag([1.0] * d + [1e-12])
    sign = np.where(y == np.unique(y)[1], 1.0, -1.0)
    G = -sign[:, None] * np.column_stack([X, np.ones(len(X))])
    z = quadratic_programme(P, np.zeros(d + 1), G, -np.ones(len(X)))
    return 2 / np.linalg.norm(z[:d]), z[:d], z[d]


def strictly_separable(X, y):
    """A linear programme: can every margin be at least 1?"""
    sign = np.where(y == np.unique(y)[1], 1.0, -1.0)
    A = -sign[:, None] * np.column_stack([X, np.ones(len(X))])
    return linprog(np.zeros(A.shape[1]), A, -np.ones(len(X)), bounds=(None, None)).status == 0


def clouds(n, d, shift, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = random.normal(size=(n, d))
    X[:, 0] += shift * (2 * y - 1)
    return X, y


@pytest.mark.parametrize(("n", "d", "shift"), [(40, 2, 4.0), (60, 5, 4.0), (30, 40, 0.0), (300, 12, 6.0)])
def test_widest_margin_is_that_of_a_quadratic_programme(n, d, shift):
    X, y = clouds(n, d, shift)
    found = separability(X, y)
    width, w, b = widest_by_programme(X, y)
    assert found.verdict == "separable"
    assert found.width == pytest.approx(width, rel=1e-6)
    assert found.widest == pytest.approx(found.width, rel=1e-8)
    np.testing.assert_allclose(found.coef, w, atol=1e-5 * np.abs(w).max())
    assert found.intercept == pytest.approx(b, abs=1e-5)
    np.testing.assert_allclose(found.dual_coef @ X[found.support], found.coef, atol=1e-7)
    assert found.verify(X, y)


coordinates = st.integers(-3, 3)
points = st.lists(st.tuples(coordinates, coordinates), min_size=2, max_size=12)


@given(points, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_verdict_on_small_grids_with_its_proof(rows, random):
    X = np.array(rows, dtype=float)
    y = np.array([random.randint(0, 1) for _ in rows])
    y[0], y[1] = 0, 1
    found = separability(X, y)
    assert found.separable == strictly_separable(X, y)
    assert found.verify(X, y)
    if not found.separable:  # the witness, written out
        a, part = found.weights, X[found.support]
        means = [(a[side] @ part[side]) for side in (y[found.support] == 0, y[found.support] == 1)]
        np.testing.assert_allclose(*means, atol=1e-10)


@given(st.integers(0, 50), st.sampled_from([1e-6, 1.0, 1e6]), st.booleans())
@settings(max_examples=25)
def test_invariance(seed, factor, apart):
    X, y = clouds(24, 3, 4.0 if apart else 0.5, seed)
    plain = separability(X, y)
    random = np.random.default_rng(seed)
    order = random.permutation(len(y))
    moved = separability((X[order] + [5.0, -3.0, 100.0]) * factor, y[order])
    scaled = separability(X * [1.0, 1e4, 1e-3], y)
    assert moved.verdict == scaled.verdict == plain.verdict
    if plain.separable:
        assert moved.width == pytest.approx(plain.width * factor, rel=1e-7)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, np.asfortranarray, np.float32])
@pytest.mark.parametrize("shift", [5.0, 0.0])
def test_every_layout_gives_the_same_verdict(make, shift):
    X, y = clouds(80, 3, shift)
    X = np.round(X, 2)
    plain, other = separability(X, y), separability(make(X), y)
    assert other.verdict == plain.verdict
    assert other.verify(make(X), y)
    if shift:
        assert other.width == pytest.approx(plain.width, rel=1e-5)


def test_integers_are_read():
    assert separability(np.array([[0], [1], [5]]), [0, 0, 1]).width == 4


def test_one_sample_each():
    found = separability([[0.0, 0.0], [3.0, 4.0]], ["left", "right"])
    assert found.width == pytest.approx(5.0)
    assert found.classes == (("left",), ("right",))


def test_a_sample_in_both_classes():
    X, y = clouds(40, 3, 5.0)
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    found = separability(X, y)
    assert found.separable is False
    assert found.verify(X, y)
    assert separability(X, y, kernel="rbf").verdict == "inseparable"


def test_touching_is_told_from_overlapping():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    beside = square + np.array([1.0, 0.5])  # shares a part of an edge
    X, y = np.vstack([square, beside]), np.repeat([0, 1], 4)
    found = separability(X, y)
    assert found.verdict == "touching"
    assert abs(found.coef @ [0.0, 1.0]) < 1e-12
    assert found.verify(X, y)
    X[4:] -= [0.1, 0.0]
    assert separability(X, y).verdict == "inseparable"
    X[4:] += [0.1 + 1e-9, 0.0]
    found = separability(X, y)
    assert found.verdict == "separable"
    assert found.width == pytest.approx(1e-9, rel=1e-4)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_features_of_very_different_size(offset, make):
    X, y = clouds(200, 4, 3.5, seed=4)
    X = X * [1e-3, 1.0, 1e6, 1e3] + offset * np.array([0.0, 1.0, 1.0, 0.0])
    found = separability(make(X), y)
    assert found.verdict == "separable"
    assert found.verify(make(X), y)
    X[0, 0], X[1, 0] = X[1, 0], X[0, 0]
    mixed = separability(make(X), y)
    assert mixed.separable == strictly_separable((X - X.mean(axis=0)) / X.std(axis=0), y)


def test_more_samples_than_the_working_set():
    X, y = clouds(20_000, 15, 7.5, seed=2)
    found = separability(X, y)
    assert found.verify(X, y)
    assert found.widest - found.width <= 1e-8 * found.widest
    X, y = clouds(20_000, 15, 0.0)
    assert separability(X, y).verdict == "inseparable"


@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(2, coef0=1.0), lambda A, B: (A @ B.T + 1) ** 2])
def test_kernels(kernel):
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    radius = np.linalg.norm(X, axis=1)
    keep = np.abs(radius - 1) > 0.1
    X, y = X[keep], (radius[keep] > 1).astype(int)
    assert separability(X, y).verdict == "inseparable"
    found = separability(X, y, kernel=kernel)
    assert found.verdict == "separable"
    assert found.verify(X, y)
    K = np.asarray(found.kernel(X, X))
    H = np.where(y == 1, 1.0, -1.0)[:, None] * K * np.where(y == 1, 1.0, -1.0)
    sides = np.array([y == 0, y == 1], dtype=float)
    zero = np.zeros(len(y))
    a = quadratic_programme(H + 1e-12 * np.eye(len(y)), zero, A=sides, b=np.ones(2), lb=zero)
    assert found.widest == pytest.approx(np.sqrt(a @ H @ a), rel=1e-4)
    scores = K[:, found.support] @ found.dual_coef + found.intercept
    assert np.where(y == 1, scores, -scores).min() == pytest.approx(1.0, rel=1e-6)


def test_linear_kernel_through_blocks_agrees_with_explicit_vectors():
    X, y = clouds(150, 4, 5.0)
    first, second = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    widths = []
    for matrix in (LinearRows(view_of(X)), KernelBlocks(Linear(), X)):
        search = NearestPoints(matrix, first, second)
        run(search, Below(1e-9), max_iter=100)
        widths.append(search.nearest.upper)
        assert search.nearest.first.sum() == pytest.approx(1.0)
    assert widths[0] == pytest.approx(widths[1], rel=1e-8)
    warm = NearestPoints(
        LinearRows(view_of(X)),
        first,
        second,
        start=np.concatenate([search.nearest.first, search.nearest.second]),
    )
    assert run(warm, Below(1e-9), max_iter=100).iterations == 1
    with pytest.raises(ValueError, match="one sample at least"):
        NearestPoints(matrix, first, second[:0])
    with pytest.raises(ValueError, match="positive sum"):
        NearestPoints(matrix, first, second, start=np.zeros(len(y)))


@given(st.integers(0, 1000), st.integers(2, 9), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=60)
def test_shortest_vector_of_a_polytope(seed, m, d, groups):
    random = np.random.default_rng(seed)
    V = random.integers(-4, 5, size=(m * groups, d)).astype(float)
    group = np.repeat(np.arange(groups), m)
    E = np.eye(groups)[group]
    a = quadratic_programme(
        V @ V.T + 1e-11 * np.eye(len(V)), np.zeros(len(V)), A=E.T, b=np.ones(groups), lb=np.zeros(len(V))
    )
    assume(a is not None)  # the oracle gives up now and then
    best = np.linalg.norm(a @ V)
    for atoms in (Vectors(V), Products(V @ V.T)):
        start = np.array([np.flatnonzero(group == g)[0] for g in range(groups)])
        solver = MinNorm(atoms, group, tol=1e-12, zero=1e-9)
        used, weights = solver.solve(start, np.ones(groups), Control(None))
        assert (weights > 0).all()
        np.testing.assert_allclose(E[used].T @ weights, 1.0, atol=1e-10)
        assert np.linalg.norm(weights @ V[used]) <= best + 1e-5


def pinwheel():
    """Four rectangles around a fifth: each two separable, but no joint discriminants."""
    boxes = [(-2, 1, 1, 2), (1, 2, -1, 2), (-1, 2, -2, -1), (-2, -1, -2, 1), (-1, 1, -1, 1)]
    X = [[x, z] for a, b, c, d in boxes for x in (a + 0.02, b - 0.02) for z in (c + 0.02, d - 0.02)]
    return np.array(X), np.repeat(list("neswo"), 4)


def test_pairwise_separable_but_not_jointly():
    X, y = pinwheel()
    found = separability(X, y)
    assert {pair.verdict for pair in found.pairs.values()} == {"separable"}
    assert found.verdict == "inseparable"
    assert found.weights is not None
    assert found.verify(X, y)
    found.weights[0, 3] += 1.0
    with pytest.raises(ValueError, match="not 0"):
        found.verify(X, y)
    kernel = separability(X, y, kernel=Polynomial(1, coef0=1.0))
    assert kernel.verdict == "inseparable"
    assert kernel.verify(X, y)
    assert separability(X, y, kernel="rbf", gamma=2.0).verdict == "separable"


@pytest.mark.parametrize("kernel", ["linear", Polynomial(1, coef0=1.0)])
def test_jointly_separable_though_not_one_from_the_rest(kernel):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    y = np.repeat(["low", "mid", "top"], 2)
    found = separability(X, y, kernel=kernel)
    assert found.verdict == "separable"
    assert found.one_vs_rest["mid"].verdict == "inseparable"
    assert found.verify(X, y)
    assert "mid" in found.table()
    assert "<table>" in found._repr_html_()
    assert str(found).count("\n") == 1


def test_joint_touching():
    X = np.array([[0.0], [1.0], [1.0], [2.0], [2.0], [3.0]])
    found = separability(X, np.repeat([0, 1, 2], 2))
    assert found.verdict == "touching"
    assert found.verify(X, np.repeat([0, 1, 2], 2))


@dataclass(frozen=True)
class SharedLetters(Kernel):
    """How many letters two words share, each counted once."""

    def __call__(self, A, B=None):
        return np.array([[float(len(set(a) & set(b))) for b in (A if B is None else B)] for a in A])

    def diag(self, A):
        return np.array([float(len(set(a))) for a in A])


def test_words_with_a_kernel_on_words():
    X, y = ["cat", "car", "tar", "dog", "god", "good"], [0, 0, 0, 1, 1, 1]
    found = separability(X, y, kernel=SharedLetters())
    assert found.verdict == "separable"
    assert found.verify(X, y)
    found = separability([*X, "act"], [*y, 1], kernel=SharedLetters())
    assert found.verdict == "inseparable"


@given(st.integers(0, 500))
@settings(max_examples=25)
def test_joint_verdict_is_that_of_a_linear_programme(seed):
    random = np.random.default_rng(seed)
    X = random.integers(-3, 4, size=(8, 2)).astype(float)
    y = np.repeat(np.arange(3), [3, 3, 2])
    A = []
    for x, c in zip(np.column_stack([X, np.ones(8)]), y, strict=True):
        for k in set(range(3)) - {c}:
            row = np.zeros((3, 3))
            row[c], row[k] = -x, x
            A.append(row.ravel())
    exists = linprog(np.zeros(9), np.array(A), -np.ones(len(A)), bounds=(None, None)).status == 0
    found = separability(X, y)
    assert found.separable == exists
    assert found.verify(X, y)


def test_verification_fails_where_it_must():
    X, y = clouds(60, 3, 5.0)
    found = separability(X, y)
    flipped = y.copy()
    flipped[np.setdiff1d(np.arange(60), found.support)[0]] ^= 1
    with pytest.raises(ValueError, match="right side"):
        found.verify(X, flipped)
    with pytest.raises(ValueError, match="wide"):
        found.verify(X + 0.1 * found.coef / np.linalg.norm(found.coef), y)
    X, y = clouds(60, 3, 0.0)
    found = separability(X, y)
    X[found.support[0]] += 0.1
    with pytest.raises(ValueError, match="coincide"):
        found.verify(X, y)


def test_words():
    X, y = clouds(30, 2, 5.0)
    found = separability(X, y)
    assert str(found).startswith("separable: a hyperplane separates class 0 from class 1\nwidest margin ")
    assert "<b>" in found._repr_html_()
    assert separability(X, y).support.tolist() == found.support.tolist()


def test_time_limit_leaves_the_question_open():
    X, y = clouds(3000, 60, 2.0)
    found = separability(X, y, max_time=1e-9)
    assert found.verdict == "unknown"
    assert found.separable is None
    assert "max_time" in str(found)
    with pytest.raises(ValueError, match="unknown"):
        found.verify(X, y)
    several = separability(X[:90], np.arange(90) % 3, max_time=1e-9)
    assert several.verdict == "unknown"
    assert several.separable is None


def test_nothing_is_asked_once_time_is_over(monkeypatch):
    """A thousand classes have half a million pairs: a glance at each would take minutes."""
    for name in ("two_linear", "joint_linear"):
        monkeypatch.setattr(f"separatrix.models.separability.{name}", lambda *_: pytest.fail("asked"))
    X = np.random.default_rng(0).normal(size=(120, 2))
    several = separability(X, np.arange(120) % 40, max_time=1e-9)
    assert several.verdict == "unknown"
    assert len(several.pairs) == 780
    assert "raise max_time" in str(several.pairs[0, 1])
    assert "inf" not in str(several.pairs[0, 1])


def test_bad_input_is_refused():
    X = np.eye(3)
    with pytest.raises(ValueError, match="at least 2 classes"):
        separability(X, [1, 1, 1])
    with pytest.raises(ValueError, match="max_time"):
        separability(X, [0, 1, 1], max_time=0)
    with pytest.raises(ValueError, match="unknown kernel"):
        separability(X, [0, 1, 1], kernel="nothing")
    with pytest.raises(ValueError, match="row 1, column 0"):
        separability(np.array([[0.0], [np.nan]]), [0, 1])
    with pytest.raises(ValueError, match="not finite"):
        separability(1e200 * X, [0, 1, 1], kernel="poly", gamma=1.0)
