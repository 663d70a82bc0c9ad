"""Prediction of kernel machines: sums over support vectors, votes, what is kept between calls."""

import pickle
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm

from separatrix import _hot
from separatrix.data.threads import at_most
from separatrix.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR
from separatrix.multiclass import Coding
from separatrix.solvers import kernel_scores as scoring
from separatrix.solvers.kernel_scores import SupportSums
from separatrix.solvers.votes import pair_scores

KERNELS = [RBF(0.3), Linear(), Polynomial(3, 0.5, 1.0), Sigmoid(0.2, -0.3), Laplacian(0.4)]


def blobs(n=200, d=6, K=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    return (rng.normal(size=(n, d)) + 1.2 * np.eye(K, d)[y] * 2).astype(dtype), y


def naive(kernel, support, coef, sizes, X):
    """Groups side by side, straight from the definition."""
    dense = [np.asarray(a.toarray() if sparse.issparse(a) else a, dtype=np.float64) for a in (X, support)]
    K = np.array([[kernel(x[None], z[None])[0, 0] for z in dense[1]] for x in dense[0]])
    ends = np.cumsum(sizes)
    return np.hstack([K[:, e - s : e] @ coef[e - s : e] for s, e in zip(sizes, ends, strict=True)])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_sums_of_groups_equal_the_definition(kernel, columns):
    rng = np.random.default_rng(columns)
    sizes = np.array([30, 0, 1, 26])
    support, X = rng.normal(size=(57, 5)), rng.normal(size=(11, 5))
    support[rng.random(support.shape) < 0.5] = 0
    coef = rng.normal(size=(57, columns))
    expected = naive(kernel, support, coef, sizes, X)
    size = np.abs(expected).max()
    for z in (support, sparse.csr_matrix(support)):
        sums = SupportSums(kernel, z, coef, sizes)
        for x in (X, np.asfortranarray(X), X[:, ::-1].copy()[:, ::-1], sparse.csr_array(X)):
            assert_allclose(sums(x), expected, atol=1e-12 * size)
        assert_allclose(
            sums(X.astype(np.float32)),
            naive(kernel, support, coef, sizes, X.astype(np.float32)),
            atol=1e-12 * size,
        )
    single = SupportSums(kernel, support.astype(np.float32), coef, sizes)
    if not isinstance(kernel, Laplacian):
        assert_allclose(single(X.astype(np.float32), "float32"), expected, atol=1e-5 * size)


@pytest.mark.parametrize("d", [1, 3, 24, 700])
@pytest.mark.parametrize("rows", [1, 3, 4, 9, 50])
def test_every_tile_size(d, rows):
    rng = np.random.default_rng(d)
    for count in (1, 23, 24, 25, 97, 500):
        support, X = rng.normal(size=(count, d)), rng.normal(size=(rows, d))
        coef = rng.normal(size=(count, 4))
        K = np.exp(-0.5 / d * np.square(X[:, None] - support).sum(axis=2))
        sums = SupportSums(RBF(0.5 / d), support, coef)
        assert_allclose(sums(X), K @ coef, atol=1e-11)
        assert_allclose(sums(X, "float32"), K @ coef, atol=2e-5)


def test_integers_mostly_zeros_and_repeated_entries():
    rng = np.random.default_rng(1)
    support = rng.integers(0, 2, size=(600, 40)) * (rng.random((600, 40)) < 0.2)
    X = rng.integers(0, 3, size=(70, 40)) * (rng.random((70, 40)) < 0.2)
    coef = rng.normal(size=(600, 1))
    K = np.exp(-0.1 * np.square(X[:, None] - support).sum(axis=2))
    assert_allclose(SupportSums(RBF(0.1), support, coef)(X), K @ coef, atol=1e-11)
    csr = sparse.csr_matrix(X.astype(float))
    parts = np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr
    twice = sparse.csr_matrix(parts, shape=csr.shape)
    stored = twice.nnz
    for z in (support, sparse.csr_matrix(support.astype(float))):
        assert_allclose(SupportSums(RBF(0.1), z, coef)(twice), K @ coef, atol=1e-11)
    assert twice.nnz == stored  # the user's matrix is as it was


def test_a_support_vector_itself_has_the_value_one():
    X = (np.random.default_rng(0).normal(size=(40, 9)) * 1e3 + 1e5).astype(np.float32)
    for precision in ("float32", "float64"):
        assert_array_equal(np.diag(SupportSums(RBF(1.0), X, np.eye(40))(X, precision)), 1.0)


def test_instruction_sets_agree():
    rng = np.random.default_rng(2)
    X, Z, coef = rng.normal(size=(33, 17)), rng.normal(size=(90, 17)), rng.normal(size=(90, 4))
    pairs = rng.integers(-2, 3, size=(50, 6)).astype(np.float64)
    chosen = _hot.instruction_set()
    found = {}
    try:
        for name in _hot.instruction_sets():
            _hot.use_instruction_set(name)
            sums = SupportSums(RBF(0.05), Z, coef, np.array([50, 40]))
            found[name] = sums(X), sums(X, "float32"), Coding.of("ovo", 4).decision(pairs)
    finally:
        _hot.use_instruction_set(chosen)
    for double, single, votes in found.values():
        assert_allclose(double, found["baseline"][0], atol=1e-12)
        assert_allclose(single, found["baseline"][0], atol=1e-5)
        assert_array_equal(votes, found["baseline"][2])


def spread(rng, n, d, zeros):
    """Samples of very different lengths, some near and some distant, with zeros in common or not."""
    X = rng.normal(size=(n, d)) * np.exp(rng.uniform(-3, 3, size=(n, 1)))
    X[:, : d // 3][rng.random((n, d // 3)) < zeros] = 0
    X[:, d // 3 : d // 2] *= rng.random((n, 1)) < 1 - zeros
    return X


@pytest.mark.parametrize("zeros", [0.0, 0.7, 0.97])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_near_and_distant_rows_with_and_without_zeros(zeros, dtype):
    rng = np.random.default_rng(5)
    support, X = (spread(rng, n, 30, zeros).astype(dtype) for n in (300, 45))
    X[:9] = support[:9]
    coef = rng.normal(size=(300, 2))
    K = np.exp(-0.2 * np.square(X[:, None].astype(float) - support.astype(float)).sum(axis=2))
    chosen = _hot.instruction_set()
    try:
        for name in _hot.instruction_sets():
            _hot.use_instruction_set(name)
            sums = SupportSums(RBF(0.2), support, coef, np.array([180, 120]))
            found = sums(X, "float64")
            assert_allclose(found[:, :2], K[:, :180] @ coef[:180], atol=1e-11)
            assert_allclose(found[:, 2:], K[:, 180:] @ coef[180:], atol=1e-11)
            # As far from the origin, numbers are as coarse.
            coarse = 1e-6 * np.square(X).sum(axis=1, keepdims=True) + 1e-5
            assert (np.abs(sums(X, "float32") - found) < coarse).all()
            for precision in ("float32", "float64"):
                together = sums(X, precision)
                assert_array_equal(np.vstack([sums(x[None], precision) for x in X]), together)
                assert_array_equal(sums(sparse.csr_array(X), precision), together)
    finally:
        _hot.use_instruction_set(chosen)


@pytest.mark.parametrize("K", [3, 4, 9])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix])
def test_who_wins_all_pairs(K, form):
    rng = np.random.default_rng(K)
    support, sizes = rng.normal(size=(20 * K, 5)), np.full(K, 20)
    coef, intercept = rng.normal(size=(20 * K, K - 1)), rng.normal(size=K * (K - 1) // 2)
    X = rng.normal(size=(150, 5))
    sums = SupportSums(RBF(0.3), support, coef, sizes)
    coding = Coding.of("ovo", K)
    scores = pair_scores(sums(X), K, intercept)
    won = coding.decision(scores).max(axis=1) > K - 1.5
    for error in (0.0, 0.5):
        found = sums.winners(form(X), intercept, np.full(150, error))
        if found is None:
            assert form is np.asfortranarray  # rows are read one by one
            continue
        chosen = coding.decide(scores)
        clear = coding.clear(scores, chosen, np.full(150, error))
        assert_array_equal(found, np.where(clear, chosen, -1))
        assert error or (clear == won).all()
        with at_most(1):
            assert_array_equal(sums.winners(form(X), intercept, np.full(150, error)), found)
    assert won.any()


def test_classes_that_no_sample_wins_alone():
    """Rock, paper, scissors: the sum of scores decides, whatever the number of samples at a time."""
    X, y = blobs(300, K=3)
    model = SVC(gamma=0.3, break_ties=True).fit(X, y)
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(4000, 6)) * 3
    open_ = model._support_sums().winners(queries, model.intercept_) < 0
    assert 0 < open_.sum() < 4000
    decided = model.decision_function(queries).argmax(axis=1)
    assert_array_equal(model.predict(queries), decided)
    assert_array_equal([model.predict(x[None])[0] for x in queries[open_][:20]], decided[open_][:20])


def test_rows_alone_or_together_and_any_number_of_threads():
    X, y = blobs(600, dtype=np.float32)
    model = SVC(gamma=0.2).fit(X[:200], y[:200])
    scores = model._score_columns(X)
    with at_most(1):
        assert_array_equal(model._score_columns(X), scores)
    assert_array_equal(np.vstack([model._score_columns(X[i : i + 1]) for i in range(30)]), scores[:30])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [3, 4, 7])
def test_votes_of_pairs(K, dtype):
    rng = np.random.default_rng(K)
    scores = rng.integers(-2, 3, size=(40, K * (K - 1) // 2)).astype(dtype)
    decision = Coding.of("ovo", K).decision(scores)
    assert decision.dtype == dtype
    for row, found in zip(scores, decision, strict=True):
        votes, total = np.zeros(K), np.zeros(K)
        for (i, j), score in zip(combinations(range(K), 2), row, strict=True):
            votes[i if score >= 0 else j] += 1
            total += score * (np.eye(K)[i] - np.eye(K)[j])
        assert_allclose(found, votes + total / (3 * (np.abs(total) + 1)), rtol=1e-6)


def test_scores_of_pairs_from_sums_of_classes():
    K, rng = 5, np.random.default_rng(0)
    sums, intercept = rng.normal(size=(3, K * (K - 1))), rng.normal(size=K * (K - 1) // 2)
    own = sums.reshape(3, K, K - 1)
    for column, (i, j) in enumerate(combinations(range(K), 2)):
        expected = own[:, i, j - 1] + own[:, j, i] + intercept[column]
        assert_allclose(pair_scores(sums, K, intercept)[:, column], expected)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(["ovr", "ovo", "joint"]), st.integers(2, 5), st.integers(0, 10**6), st.floats(0, 1))
def test_what_is_clear_survives_errors(name, K, seed, error):
    coding, rng = Coding.of(name if K > 2 else "ovr", K), np.random.default_rng(seed)
    scores = rng.normal(size=(20, coding.columns))
    chosen = coding.decide(scores)
    clear = coding.clear(scores, chosen, np.full(20, error))
    for _ in range(5):
        moved = scores + error * rng.choice([-1.0, 0.999, 0.3], size=scores.shape)
        assert_array_equal(coding.decide(moved)[clear], chosen[clear])
    if error == 0:
        assert name != "ovr" or clear.all()


@pytest.mark.parametrize("multiclass", ["ovo", "ovr", "joint"])
@pytest.mark.parametrize("K", [2, 4])
def test_single_precision_never_decides_what_double_would_not(monkeypatch, K, multiclass):
    monkeypatch.setattr(scoring, "_QUICK", 0)
    X, y = blobs(120, K=K)
    model = SVC(C=100.0, gamma=0.5, multiclass=multiclass, break_ties=True).fit(X, y)
    sums = model._support_sums()
    # Samples so near to a boundary that single precision cannot tell.
    rng = np.random.default_rng(0)
    a, b = X[rng.integers(0, 120, 40)], X[rng.integers(0, 120, 40)]
    for _ in range(45):
        middle = (a + b) / 2
        own, other = (model._coding.decide(model._score_columns(x)) for x in (middle, a))
        same = own == other
        a, b = np.where(same[:, None], middle, a), np.where(same[:, None], b, middle)
    queries = np.vstack([a, b, X])
    error = sums.quick_error(queries)
    assert error is not None
    exact = model._coding.decide(model._score_columns(queries, "float64"))
    single = model._coding.decide(model._score_columns(queries, "float32"))
    assert (single != exact).any()
    assert_array_equal(model.predict(queries), exact)
    assert np.abs(sums(queries, "float32") - sums(queries)).max() < error.min()


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_labels_of_samples_far_longer_than_support_vectors(kernel):
    X, y = blobs(600, d=4, K=2)
    model = SVC(kernel=kernel, gamma=0.2, coef0=1.0, C=0.1).fit(X, y)
    far = np.random.default_rng(0).normal(size=(8000, 4)) * 1e3
    first, second = far[:4000], far[4000:]
    side = model.decision_function(first) >= 0
    across = side != (model.decision_function(second) >= 0)
    first, second, side = first[across], second[across], side[across]
    for _ in range(22):  # to either side of the boundary, closer than single precision sees
        middle = (first + second) / 2
        same = (model.decision_function(middle) >= 0) == side
        first, second = np.where(same[:, None], middle, first), np.where(same[:, None], second, middle)
    near = np.vstack([first, second])
    assert model._support_sums().quick_error(near) is not None
    assert_array_equal(model.predict(near), model.classes_[(model.decision_function(near) >= 0).astype(int)])


def test_prediction_leaves_the_model_as_it_was():
    X, y = blobs()
    model = SVC().fit(X, y)
    before, stored = dict(vars(model)), pickle.dumps(model)
    expected = model.predict(X)
    assert vars(model) == before
    assert pickle.dumps(model) == stored
    twin = pickle.loads(stored)
    assert_array_equal(twin.predict(X), expected)
    assert_array_equal(twin.decision_function(X), model.decision_function(X))


def test_what_is_kept_follows_the_model():
    X, y = blobs()
    model = SVC().fit(X, y)
    model.predict(X)
    first = model.decision_function(X[:5]).argmax(axis=1)
    model.fit(X + 1.0, y)
    assert_array_equal(model.decision_function(X[:5] + 1.0).argmax(axis=1), first)
    other = SVC().fit(X + 1.0, y)
    assert_array_equal(model.decision_function(X), other.decision_function(X))
    model.dual_coef_ = 2 * model.dual_coef_
    assert_allclose(model._score_columns(X), 2 * other._score_columns(X) - other.intercept_)
    with pytest.raises(ValueError, match="read-only"):
        model.dual_coef_[0, 0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        model.support_vectors_[0, 0] = 0.0
    regression = SVR().fit(X, X[:, 0])
    assert_array_equal(regression.predict(X), regression.predict(X))


def test_support_vectors_are_packed_once(monkeypatch):
    X, y = blobs()
    model, made = SVC().fit(X, y), []
    pack = SupportSums._pack
    monkeypatch.setattr(SupportSums, "_pack", lambda *given: made.append(given) or pack(*given))
    for row in range(5):
        model.predict(X[row : row + 1])
        model.decision_function(X)
    assert len(made) == 1


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=lambda k: type(k).__name__)
def test_memory_does_not_grow_with_the_features(kernel):
    rng, d = np.random.default_rng(0), 10**7
    columns = np.sort(rng.choice(d, size=300, replace=False))

    def rows(n):
        dense = rng.normal(size=(n, 300)) * (rng.random((n, 300)) < 0.1)
        small = sparse.csr_matrix(dense)
        return dense, sparse.csr_matrix((small.data, columns[small.indices], small.indptr), shape=(n, d))

    (narrow, wide), (queries, wide_queries) = rows(20), rows(30)
    coef = rng.normal(size=(20, 2))
    tracemalloc.start()
    sums = SupportSums(kernel, wide, coef)
    found = sums(wide_queries)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert_allclose(found, kernel(queries, narrow) @ coef, atol=1e-10)
    assert peak < 4 << 20
    assert sums._vectors.shape[1] <= 301


def test_wide_rows_beyond_the_packing_limit(monkeypatch):
    monkeypatch.setattr(scoring, "_WIDE_BYTES", 0)
    rng = np.random.default_rng(0)
    support, X = (sparse.random(n, 500, 0.05, "csr", rng=rng) for n in (40, 25))
    coef = rng.normal(size=(40, 3))
    expected = RBF(0.7)(X.toarray(), support.toarray()) @ coef
    assert_allclose(SupportSums(RBF(0.7), support, coef)(X), expected, atol=1e-12)
    monkeypatch.setattr(scoring, "_SUPPORT_BYTES", 0)
    for x in (X, X.toarray(), X[:0]):
        assert_allclose(SupportSums(RBF(0.7), support, coef)(x), expected[: x.shape[0]], atol=1e-12)


def test_joint_machines_have_probabilities():
    X, y = blobs(300, K=3)
    model = SVC(multiclass="joint", probability=True, random_state=0).fit(X[:200], y[:200])
    p = model.predict_proba(X)
    assert p.shape == (300, 3)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    own = p[np.arange(200, 300), y[200:]]
    frequencies = -np.log(1 / 3)
    assert -np.log(own).mean() < 0.6 * frequencies
    # As sure as it is right: the mean of the largest probability and the share of right answers.
    right = (model.predict(X[200:]) == y[200:]).mean()
    assert abs(p[200:].max(axis=1).mean() - right) < 0.12
    binary = SVC(multiclass="joint", probability=True).fit(X, y == 0)
    assert_array_equal(binary.predict_proba(X)[:, 1] > 0.5, binary.predict(X))


@pytest.mark.parametrize(("peer", "make"), [(svm.SVC, SVC), (svm.NuSVC, NuSVC)])
@pytest.mark.parametrize("probability", [False, True])
def test_equal_votes(peer, make, probability):
    """Among noise classes often have as many votes as others."""
    rng = np.random.default_rng(1)
    X, y, new = rng.normal(size=(40, 2)), np.arange(40) % 4, rng.normal(size=(400, 2))
    order = make(gamma=1.0, probability=probability).fit(X, y)
    scores = make(gamma=1.0, break_ties=True, probability=probability).fit(X, y)
    assert (order.predict(new) != scores.predict(new)).any()
    assert_array_equal(order.predict(new), peer(gamma=1.0, tol=1e-8).fit(X, y).predict(new))
    assert_array_equal(scores.predict(new), order.decision_function(new).argmax(axis=1))
    if probability:
        for model in (order, scores):
            assert_array_equal(model.predict_proba(new).argmax(axis=1), model.predict(new))
