"""The perceptron against a hand-worked example, slow references, scikit-learn and theory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as PeerPerceptron

from oracles import SlowPerceptron, codes_of, margin_errors
from separatrix import Perceptron

CODINGS = ["ovr", "ovo", "joint"]
IRIS = load_iris(return_X_y=True)

# Three classes in the plane, rate 1/2, margin 1, followed on paper. Each row: the sample (1, x), its
# class, and the three weight vectors (b, w1, w2) after it. In the first pass the third sample meets its
# margin exactly (0 + 1 > 1 is false) and changes nothing.
PAPER = [
    ((2, 0), 0, [(0.5, 1, 0), (-0.5, -1, 0), (-0.5, -1, 0)]),
    ((0, 2), 1, [(0, 1, -1), (0, -1, 1), (-1, -1, -1)]),
    ((-1, -1), 2, [(0, 1, -1), (0, -1, 1), (-1, -1, -1)]),
    ((1, 1), 2, [(-0.5, 0.5, -1.5), (-0.5, -1.5, 0.5), (-0.5, -0.5, -0.5)]),
    ((2, 0), 0, [(-0.5, 0.5, -1.5), (-0.5, -1.5, 0.5), (-0.5, -0.5, -0.5)]),
    ((0, 2), 1, [(-0.5, 0.5, -1.5), (-0.5, -1.5, 0.5), (-0.5, -0.5, -0.5)]),
    ((-1, -1), 2, [(-1, 1, -1), (-1, -1, 1), (0, -1, -1)]),
    ((1, 1), 2, [(-1.5, 0.5, -1.5), (-1.5, -1.5, 0.5), (0.5, -0.5, -0.5)]),
]


@pytest.mark.parametrize("container", [np.array, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_paper_sample_by_sample(container, dtype):
    model = Perceptron(multiclass="joint", eta0=0.5, margin=1.0, shuffle=False, keep="last")
    for x, c, weights in PAPER:
        model.partial_fit(container(np.array([x], dtype=dtype)), [c], classes=[0, 1, 2])
        expected = np.array(weights)
        assert_array_equal(model.intercept_, expected[:, 0])
        assert_array_equal(model.coef_, expected[:, 1:])


def test_paper_two_passes():
    X, y = np.array([row[0] for row in PAPER[:4]], float), [row[1] for row in PAPER[:4]]
    parameters = dict(multiclass="joint", eta0=0.5, margin=1.0, shuffle=False, tol=None, keep="last")
    model = Perceptron(max_iter=2, **parameters).fit(X, y)
    expected = np.array(PAPER[-1][2])
    assert_array_equal(model.class_intercept_, expected[:, 0])
    assert_array_equal(model.class_coef_, expected[:, 1:])
    # Pass 1: samples 1, 2, 4 fall short by 1, 2, 4; pass 2: samples 3, 4 by 1 and 2.
    assert [h["margin_errors"] for h in model.history_] == [3, 2]
    assert [h["criterion"] for h in model.history_] == [1 + 2 + 4, 1 + 2]
    assert [h["mistakes"] for h in model.history_] == [2, 2]
    assert_allclose(model.history_[-1]["norm"], np.linalg.norm(expected))


def random_problem(seed, n=40, d=5, n_classes=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    # Quarters are exact in binary, so that any order of summation gives the same decisions.
    X = (rng.integers(-8, 9, size=(n, d)) / 4).astype(dtype)
    return X, rng.integers(0, n_classes, size=n), rng.integers(0, 7, size=n) / 2


@pytest.mark.parametrize("name", CODINGS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.75])
@pytest.mark.parametrize("keep", ["last", "best", "average"])
def test_against_slow_reference(name, n_classes, weighted, margin, keep):
    X, classes, s = random_problem(seed=n_classes, n_classes=n_classes)
    weights = s if weighted else None
    if name == "joint" and margin == 0.0:
        margin = 0.25  # margin 0 never leaves zero weights, see test_joint_zero_margin
    slow = SlowPerceptron(n_classes, X.shape[1], name=name, eta=0.5, margin=margin)
    ends = []
    for _ in range(6):
        slow.run_pass(X, classes, weights)
        ends.append(slow.a.copy())
    model = Perceptron(
        multiclass=name, eta0=0.5, margin=margin, shuffle=False, tol=None, max_iter=6, keep=keep
    ).fit(X, classes, sample_weight=weights)
    expected = ends[-1]
    if keep == "average":
        expected = slow.average()
    elif keep == "best":
        errors = np.array([margin_errors(a, X, classes, weights, margin, name, slow.codes) for a in ends])
        winner = len(ends) - 1 - np.argmin(errors[::-1], axis=0)  # of equals the later
        expected = np.array([ends[winner[min(k, len(winner) - 1)]][k] for k in range(slow.codes.shape[1])])
        assert_allclose([h["training_errors"] for h in model.history_], errors.sum(axis=1))
    coef = getattr(model, "class_coef_", model.coef_)
    intercept = getattr(model, "class_intercept_", model.intercept_)
    assert_allclose(np.column_stack([intercept, coef]), expected, atol=1e-12)
    if name == "joint" and n_classes == 2:
        assert_array_equal(model.coef_, model.class_coef_[1:] - model.class_coef_[:1])
    assert sum(h["mistakes"] for h in model.history_) == slow.mistakes


def test_joint_zero_margin():
    X, y = IRIS
    with pytest.warns(ConvergenceWarning, match="margin > 0 or coef_init"):
        stuck = Perceptron(multiclass="joint", margin=0.0).fit(X, y)
    assert not stuck.coef_.any()
    assert stuck.certificate_.separable is None
    assert Perceptron(multiclass="joint").fit(X, y).score(X, y) > 0.9
    assert Perceptron(multiclass="joint", margin=0.0).fit(X, y, coef_init="random").score(X, y) > 0.9


def test_binary_follows_scikit_learn():
    X, y = IRIS
    y = y == 1
    ours = Perceptron(max_iter=7, tol=None, shuffle=False, keep="last").fit(X, y)
    peer = PeerPerceptron(max_iter=7, tol=None, shuffle=False).fit(X, y)
    assert_allclose(ours.coef_, peer.coef_, rtol=1e-12)
    assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-12)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize("eta0", [0.1, 1.0])
def test_penalties_follow_scikit_learn(penalty, eta0):
    X, y = IRIS
    parameters = dict(
        penalty=penalty, alpha=0.01, l1_ratio=0.4, eta0=eta0, max_iter=5, tol=None, shuffle=False
    )
    ours = Perceptron(keep="last", **parameters).fit(X, y)
    peer = PeerPerceptron(**parameters).fit(X, y)
    assert_allclose(ours.coef_, peer.coef_, rtol=1e-9, atol=1e-9)
    assert_allclose(
        Perceptron(keep="last", **parameters).fit(sparse.csr_array(X), y).coef_, ours.coef_, rtol=1e-9
    )


def test_strong_decay_underflows_to_zero_safely():
    X, y = IRIS
    model = Perceptron(penalty="l2", alpha=2.0, max_iter=3, tol=None).fit(X, y)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize("name", CODINGS)
def test_certificate_of_separable_data(name):
    X, y = IRIS
    keep = np.flatnonzero(np.arange(150) % 3 != 3)
    X, y = X[y != 2], y[y != 2]
    model = Perceptron(multiclass=name).fit(X[keep[keep < 100]], y[keep[keep < 100]])
    certificate = model.certificate_
    assert certificate.status == "separable"
    assert certificate.separable is True
    assert certificate.training_errors == 0
    assert certificate.primal == 0
    assert certificate.margin == pytest.approx(model.geometric_margin(X, y))
    assert certificate.margin > 0
    assert "separates the classes" in str(certificate)
    assert str(certificate).count("\n") == 1
    assert "<table>" in certificate._repr_html_()


def test_inseparable_data_are_never_called_separable():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = Perceptron(max_iter=50, tol=None).fit(X, [0, 1, 0, 1])
    assert model.certificate_.separable is None
    assert model.certificate_.training_errors >= 1


def test_contradictory_points_touch_the_boundary_only():
    # Both classes at one point: zero weights make no sign, so nothing may be called separable.
    model = Perceptron(max_iter=20, tol=None).fit([[1.0], [1.0]], [0, 1])
    assert model.certificate_.separable is None


def test_warm_start_and_initial_weights():
    X, y = IRIS
    first = Perceptron(max_iter=3, tol=None, shuffle=False, keep="last").fit(X, y)
    given = Perceptron(max_iter=3, tol=None, shuffle=False, keep="last").fit(
        X, y, coef_init=first.coef_, intercept_init=first.intercept_
    )
    warm = Perceptron(max_iter=3, tol=None, shuffle=False, keep="last", warm_start=True).fit(X, y).fit(X, y)
    assert_array_equal(warm.coef_, given.coef_)
    whole = Perceptron(max_iter=6, tol=None, shuffle=False, keep="last", multiclass="ovo")
    whole.fit(X, y, coef_init=np.zeros((3, 4)), intercept_init=np.zeros(3))
    with pytest.raises(ValueError, match=r"coef_init.*\(2, 4\).*need \(3, 4\)"):
        whole.fit(X, y, coef_init=np.zeros((2, 4)))


def test_pocket_keeps_good_initial_weights():
    X, y = IRIS
    good = Perceptron(multiclass="joint", max_iter=200, tol=None).fit(X, y)
    again = Perceptron(multiclass="joint", max_iter=1, tol=None).fit(
        X, y, coef_init=good.class_coef_, intercept_init=good.class_intercept_
    )
    assert again.certificate_.training_errors <= good.certificate_.training_errors


@pytest.mark.parametrize("name", CODINGS)
@pytest.mark.parametrize("keep", ["last", "average"])
def test_partial_fit_is_a_pass(name, keep):
    X, y = IRIS
    X, y = X[::3], y[::3]
    whole = Perceptron(multiclass=name, keep=keep, max_iter=1, tol=None, shuffle=False).fit(X, y)
    batches = Perceptron(multiclass=name, keep=keep, shuffle=False)
    for part in np.array_split(np.arange(len(y)), 4):
        batches.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert_allclose(batches.coef_, whole.coef_, rtol=1e-12)
    assert batches.t_ == whole.t_
    assert batches.certificate_.separable is None


def test_partial_fit_of_unknown_label():
    model = Perceptron().partial_fit([[0.0], [1.0]], ["a", "b"], classes=["a", "b"])
    with pytest.raises(ValueError, match="label 'c'"):
        model.partial_fit([[0.0]], ["c"])


def test_early_stopping_holds_samples_out():
    X, y = IRIS
    model = Perceptron(early_stopping=True, n_iter_no_change=3, validation_fraction=0.2).fit(X, y)
    assert all(0 <= h["validation_score"] <= 1 for h in model.history_)
    assert model.certificate_.samples == 120
    assert model.n_iter_ < 1000


def test_class_weights_multiply_sample_weights():
    X, y = IRIS
    s = np.linspace(0.5, 2, 150)
    both = Perceptron(class_weight={0: 1.0, 1: 2.0, 2: 0.5}).fit(X, y, sample_weight=s)
    product = Perceptron().fit(X, y, sample_weight=s * np.array([1.0, 2.0, 0.5])[y])
    assert_array_equal(both.coef_, product.coef_)


def test_margin_centres_the_boundary():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0]])
    y = [0, 0, 1, 1]
    margins = [Perceptron(margin=b, max_iter=10_000, tol=None).fit(X, y).training_margin_ for b in (0, 100)]
    assert margins[1] > margins[0]
    assert margins[1] > 1.0  # at least half of the widest, which is 2


def test_float32_stays_float32():
    X, y = IRIS
    model = Perceptron().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    assert model.intercept_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32


def test_huge_weight_is_bounded_by_time():
    X = np.array([[1e-6], [2e-6], [-1.0]])
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = Perceptron(max_time=0.3, fit_intercept=False, tol=None, margin=1.0).fit(
            X, [1, 0, 1], sample_weight=[1e14, 1e14, 1.0]
        )
    assert model.certificate_.status == "max_time"
    assert model.certificate_.seconds < 2


def test_sparsify_and_back():
    X, y = IRIS
    model = Perceptron(penalty="l1", alpha=0.1).fit(X, y)
    before = model.decision_function(X)
    assert sparse.issparse(model.sparsify().coef_)
    assert_allclose(model.decision_function(X), before)
    assert isinstance(model.densify().coef_, np.ndarray)


def test_codes_of_both_agree():
    from separatrix.multiclass import Coding

    for name in CODINGS:
        for n_classes in (2, 3, 4):
            assert_array_equal(Coding.of(name, n_classes).codes, codes_of(name, n_classes))


def test_judging_many_classes_stays_within_its_blocks(monkeypatch):
    X, y = IRIS
    whole = Perceptron(max_iter=5, tol=None).fit(X, y)
    monkeypatch.setattr("separatrix.solvers._judge.BLOCK_BYTES", 8 * 3 * 7)  # seven rows of scores at a time
    parts = Perceptron(max_iter=5, tol=None).fit(X, y)
    assert parts.certificate_.training_errors == whole.certificate_.training_errors
    assert parts.certificate_.margin == whole.certificate_.margin
    assert Perceptron().fit(sparse.csr_array(X), y == 0).certificate_.separable is True


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("keep", ["best", "last"])
def test_sparse_rows_of_all_scales_decide_as_dense_ones(dtype, n_classes, keep):
    # One large weight makes the bound of every sparse score wide: decisions must not depend on it.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.3) * np.logspace(-4, 4, 40)
    X = X.astype(dtype)
    y = rng.integers(n_classes, size=300)
    options = {"keep": keep, "max_iter": 6, "tol": None, "shuffle": False, "fit_intercept": False}
    dense = Perceptron(**options).fit(X, y)
    stored = Perceptron(**options).fit(sparse.csr_matrix(X), y)
    assert_array_equal(dense.coef_, stored.coef_)
    again = {"coef_init": 10 * dense.coef_}
    assert_array_equal(
        Perceptron(**options).fit(X, y, **again).coef_,
        Perceptron(**options).fit(sparse.csr_matrix(X), y, **again).coef_,
    )
