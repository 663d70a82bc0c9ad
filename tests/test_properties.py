"""Theory as properties: bounds, scaling laws, weights, relabelling, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from separatrix import KernelPerceptron, Perceptron

CODINGS = st.sampled_from(["ovr", "ovo", "joint"])
KEEPS = st.sampled_from(["best", "last", "average"])
EXACT = dict(tol=None, max_iter=5)
# Eighths are exact in binary: every order of summation gives the same score.
ENTRY = st.integers(-16, 16).map(lambda i: i / 8)


@st.composite
def labelled(draw, n_classes=3, most=12):
    n = draw(st.integers(n_classes, most))
    d = draw(st.integers(1, 4))
    X = draw(arrays(np.float64, (n, d), elements=ENTRY))
    others = draw(arrays(np.int64, n - n_classes, elements=st.integers(0, n_classes - 1)))
    y = np.concatenate([np.arange(n_classes), others])
    return X, draw(st.permutations(list(y)).map(np.array))


@given(
    arrays(np.float64, (12, 3), elements=st.floats(-5, 5)),
    arrays(np.float64, 4, elements=st.floats(-1, 1)),
    st.permutations(range(12)),
)
def test_mistake_bound(X, normal, order):
    """Separable with margin γ and radius R: at most (R/γ)² mistakes, whatever the order."""
    assume(np.linalg.norm(normal) > 0.1)
    normal = normal / np.linalg.norm(normal)
    Xt = np.column_stack([np.ones(len(X)), X])
    y = np.where(Xt @ normal >= 0, 1, -1)
    gamma = np.min(y * (Xt @ normal))
    radius = np.max(np.linalg.norm(Xt, axis=1))
    assume(gamma > 0.1 and len(np.unique(y)) == 2)
    order = np.array(order)
    for shuffle in (False, True):
        model = Perceptron(shuffle=shuffle, tol=None, max_iter=100_000).fit(X[order], y[order])
        assert sum(h["mistakes"] for h in model.history_) <= (radius / gamma) ** 2
        # Proven beyond rounding errors of the scores; the bound says nothing of the margin that is found.
        assert model.certificate_.separable or model.certificate_.margin < 1e-14


@given(
    labelled(),
    CODINGS,
    KEEPS,
    st.sampled_from([0.25, 0.5, 2.0, 8.0]),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.booleans(),
)
def test_only_the_ratio_of_margin_and_rate_matters_from_zero(data, coding, keep, eta, ratio, shuffle):
    X, y = data
    assume(coding != "joint" or ratio > 0)
    parameters = dict(multiclass=coding, keep=keep, shuffle=shuffle, **EXACT)
    unit = Perceptron(eta0=1.0, margin=ratio, **parameters).fit(X, y)
    scaled = Perceptron(eta0=eta, margin=ratio * eta, **parameters).fit(X, y)
    assert_allclose(scaled.coef_, eta * unit.coef_, rtol=1e-12, atol=1e-12)
    assert_allclose(scaled.intercept_, eta * unit.intercept_, rtol=1e-12, atol=1e-12)


@given(labelled(), CODINGS, KEEPS, st.booleans(), st.data())
def test_weight_two_is_the_sample_twice(data, coding, keep, shuffle, draw):
    X, y = data
    counts = draw.draw(arrays(np.int64, len(y), elements=st.integers(0, 3)))
    counts[[np.flatnonzero(y == k)[0] for k in range(3)]] = 1
    # Equal samples of different classes are visited in the order of the rows.
    assume(not shuffle or len(np.unique(X, axis=0)) == len(X))
    parameters = dict(multiclass=coding, keep=keep, shuffle=shuffle, **EXACT)
    weighted = Perceptron(**parameters).fit(X, y, sample_weight=counts)
    repeated = Perceptron(**parameters).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-12, atol=1e-12)
    assert weighted.certificate_.training_errors == pytest.approx(repeated.certificate_.training_errors)


@given(labelled(), CODINGS, KEEPS, st.permutations(range(3)), st.booleans())
def test_relabelling_permutes_weights(data, coding, keep, relabel, shuffle):
    X, y = data
    assume(coding != "ovo")  # there a pair may also change its sign: see the next test
    relabel = np.array(relabel)
    # The pocket breaks ties of scores by class order; the others do not know the order.
    assume(keep != "best")
    parameters = dict(multiclass=coding, keep=keep, shuffle=shuffle, **EXACT)
    before = Perceptron(**parameters).fit(X, y)
    after = Perceptron(**parameters).fit(X, relabel[y])
    assert_array_equal(after.coef_[relabel], before.coef_)
    assert_array_equal(after.intercept_[relabel], before.intercept_)


@given(labelled(), KEEPS)
def test_relabelling_pairs_changes_their_sign(data, keep):
    X, y = data
    assume(keep != "best")
    before = Perceptron(multiclass="ovo", keep=keep, **EXACT).fit(X, y)
    after = Perceptron(multiclass="ovo", keep=keep, **EXACT).fit(X, 2 - y)  # pairs 01 02 12 become 21 20 10
    assert_array_equal(after.coef_, -before.coef_[::-1])


@given(labelled(), CODINGS, KEEPS, st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_layouts_give_the_same_bits(data, coding, keep, shuffle, dtype):
    X, y = data
    X = X.astype(dtype)
    model = Perceptron(multiclass=coding, keep=keep, shuffle=shuffle, **EXACT)
    expected = model.fit(X, y).coef_.copy()
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    spaced = np.zeros((2 * X.shape[0], X.shape[1] + 3), dtype=dtype)[::2, 1:-2]
    spaced[...] = X
    for other in (np.asfortranarray(X), sparse.csr_array(X), wide, sparse.csc_matrix(X), spaced):
        assert_array_equal(model.fit(other, y).coef_, expected)


@given(labelled(), CODINGS, st.integers(1, 8), st.sampled_from([0.0, 1.0]), st.booleans())
def test_pocket_is_never_worse_than_any_pass_end(data, coding, passes, margin, shuffle):
    X, y = data
    assume(coding != "joint" or margin > 0)
    parameters = dict(multiclass=coding, shuffle=shuffle, tol=None, margin=margin)
    best = Perceptron(keep="best", max_iter=passes, **parameters).fit(X, y)
    kept = min(h["training_errors"] for h in best.history_)
    for end in range(1, passes + 1):
        last = Perceptron(keep="last", max_iter=end, **parameters).fit(X, y)
        if end <= len(best.history_):
            assert best.history_[end - 1]["norm"] == last.history_[-1]["norm"]
        if margin == 0 and coding == "ovr":
            assert np.sum(best.predict(X) != y) <= np.sum(last.predict(X) != y)
    if coding != "ovo":
        assert best.certificate_.training_errors <= kept


@given(labelled(), st.permutations(range(12)), CODINGS, KEEPS)
def test_row_order_does_not_matter_when_shuffled(data, order, coding, keep):
    X, y = data
    assume(len(np.unique(X, axis=0)) == len(X))
    order = np.array([i for i in order if i < len(y)])
    model = Perceptron(multiclass=coding, keep=keep, **EXACT)
    assert_allclose(model.fit(X[order], y[order]).coef_, model.fit(X, y).coef_, rtol=1e-12, atol=1e-12)


@given(labelled(), CODINGS, st.sampled_from(["last", "average"]), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_linear_kernel_is_the_primal_perceptron(data, coding, keep, shuffle, weighted, fit_intercept):
    X, y = data
    s = np.arange(len(y)) % 4 / 2 + 0.5 if weighted else None
    parameters = dict(multiclass=coding, keep=keep, shuffle=shuffle, fit_intercept=fit_intercept, **EXACT)
    primal = Perceptron(**parameters).fit(X, y, sample_weight=s)
    dual = KernelPerceptron(kernel="linear", **parameters).fit(X, y, sample_weight=s)
    assert_allclose(dual.dual_coef_ @ dual.support_vectors_, primal.coef_, rtol=1e-9, atol=1e-9)
    assert_allclose(dual.intercept_, primal.intercept_, rtol=1e-9, atol=1e-9)
    for mine, other in zip(dual.history_, primal.history_, strict=True):
        for key in ("mistakes", "margin_errors"):
            assert mine[key] == other[key]
        assert mine["criterion"] == pytest.approx(other["criterion"])
