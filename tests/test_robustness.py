"""Unusual input: every estimator gives an answer or one clear message, without warnings on the way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import discriminant_analysis
from sklearn.exceptions import ConvergenceWarning

import separatrix as sx
from separatrix.certificate import Certificate

RNG = np.random.default_rng(0)
Y = np.arange(40) % 2
X = RNG.standard_normal((40, 4)) + Y[:, None]

CLASSIFIERS = {
    "Perceptron": sx.Perceptron,
    "KernelPerceptron": sx.KernelPerceptron,
    "LogisticRegression": sx.LogisticRegression,
    "LogisticRegression, L1": lambda: sx.LogisticRegression(l1_ratio=1.0, solver="saga"),
    "LogisticRegression, dual": lambda: sx.LogisticRegression(dual=True),
    "LogisticRegression, C=inf": lambda: sx.LogisticRegression(C=np.inf),
    "RidgeClassifier": sx.RidgeClassifier,
    "LeastSquaresClassifier": sx.LeastSquaresClassifier,
    "LinearDiscriminantAnalysis": sx.LinearDiscriminantAnalysis,
    "QuadraticDiscriminantAnalysis": sx.QuadraticDiscriminantAnalysis,
    "GaussianClassifier": sx.GaussianClassifier,
    "GaussianClassifier, diagonal": lambda: sx.GaussianClassifier(covariance="diagonal"),
    "KNeighborsClassifier": sx.KNeighborsClassifier,
    "SGDClassifier": lambda: sx.SGDClassifier(loss="log_loss", random_state=0),
    "LinearSVC": sx.LinearSVC,
    "LinearSVC, hinge": lambda: sx.LinearSVC(loss="hinge"),
    "LinearSVC, joint": lambda: sx.LinearSVC(multi_class="crammer_singer"),
    "SVC": sx.SVC,
    "SVC, linear": lambda: sx.SVC(kernel="linear"),
    "SVC, joint": lambda: sx.SVC(multiclass="joint"),
    "NuSVC": lambda: sx.NuSVC(nu=0.3),
}
REGRESSORS = {
    "LinearSVR": sx.LinearSVR,
    "SVR": sx.SVR,
    "NuSVR": sx.NuSVR,
    "SGDRegressor": sx.SGDRegressor,
    "KNeighborsRegressor": sx.KNeighborsRegressor,
}
TOO_FEW = (
    sx.LinearDiscriminantAnalysis,
    sx.QuadraticDiscriminantAnalysis,
    sx.GaussianClassifier,
    sx.KNeighborsClassifier,
)
EVERY = pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS.keys())
ALL = pytest.mark.parametrize(
    "make", [*CLASSIFIERS.values(), *REGRESSORS.values()], ids=[*CLASSIFIERS.keys(), *REGRESSORS.keys()]
)


@ALL
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_whose_squares_overflow(make, dtype):
    """Neighbours are found all the same; models that sum products in this precision refuse them."""
    size = 0.9 * np.finfo(dtype).max
    large = (X / np.abs(X).max() * size).astype(dtype)
    model = make()
    double = isinstance(model, sx.SVC | sx.NuSVC | sx.SVR | sx.NuSVR) and model.kernel == "rbf"
    neighbors = isinstance(model, sx.KNeighborsClassifier | sx.KNeighborsRegressor)
    if neighbors or (double and dtype == np.float32):
        assert np.isfinite(model.fit(large, Y).predict(large)).all()
        return
    if isinstance(model, sx.SVC) and dtype == np.float32:  # few samples: a linear kernel in double, too
        with pytest.warns(ConvergenceWarning, match="StandardScaler"):
            model.fit(large, Y)
        assert np.isfinite(model.decision_function(large)).all()
        return
    with pytest.raises(ValueError, match=r"(?s)(overflow|large values).*Scal|StandardScaler"):
        model.fit(large, Y)


@pytest.mark.parametrize(
    "container",
    [np.asarray, np.asfortranarray, sparse.csr_array, lambda A: np.repeat(A, 2, axis=1)[:, ::2]],
    ids=["rows", "columns", "csr", "strided"],
)
def test_the_largest_value_is_named(container):
    large = X.copy()
    large[7, 2], large[9, 1] = 1e200, -1e210
    with pytest.raises(ValueError, match=r"row 9, column 1 has absolute value 1e\+210"):
        sx.RidgeClassifier().fit(container(large), Y)
    frame = pd.DataFrame(large, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"row 9, column 1 \('b'\)"):
        sx.LogisticRegression().fit(frame, Y)
    with pytest.raises(ValueError, match="float64"):
        sx.RidgeClassifier().fit(np.where(X > 2, 1e30, X).astype(np.float32), Y)


def test_a_value_that_is_not_finite_is_named_first():
    large = X.copy()
    large[3, 0], large[9, 1] = np.nan, 1e210
    for A in (large, large[:, ::-1][:, ::-1], sparse.csr_array(large)):
        with pytest.raises(ValueError, match="NaN: row 3, column 0"):
            sx.RidgeClassifier().fit(A, Y)


def test_large_values_that_can_be_squared_are_taken():
    model = sx.LogisticRegression().fit(1e100 * X, Y)
    assert_array_equal(model.predict(1e100 * X), sx.LogisticRegression(C=np.inf).fit(X, Y).predict(X))


@EVERY
def test_labels_that_cannot_be_ordered(make):
    labels = np.array([("a", 1)[k] for k in Y], dtype=object)
    with pytest.raises(TypeError, match=r"cannot be ordered \(of types int, str\).*astype\(str\)"):
        make().fit(X, labels)


@ALL
def test_dates_are_no_features(make):
    frame = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=40)})
    with pytest.raises(TypeError, match="dates or durations"):
        make().fit(frame, Y)


@pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS.keys())
def test_texts_are_no_numbers(make):
    with pytest.raises((ValueError, TypeError), match=r"number|could not convert|numeric"):
        make().fit(X, np.array(["no", "yes"])[Y])


def test_gamma_that_overflows():
    with pytest.raises(ValueError, match=r"gamma='scale'.*overflows.*StandardScaler"):
        sx.SVC().fit(1e-160 * X, Y)


def test_tiny_features_in_single_precision():
    """Weights of 1e40 and more do not fit float32."""
    for model in (sx.LinearDiscriminantAnalysis(), sx.GaussianClassifier()):
        with pytest.raises(ValueError, match=r"overflows float32.*float64"):
            model.fit((1e-40 * X).astype(np.float32), Y)
        assert np.isfinite(model.fit(1e-40 * X, Y).predict_proba(1e-40 * X)).all()


def test_stochastic_gradients_of_large_features_keep_a_certificate():
    with pytest.warns(UserWarning, match="before convergence"):
        model = sx.SGDRegressor(random_state=0).fit(1e100 * X, Y)
    assert "objective" in str(model.certificate_)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_certificates_show_what_is_not_finite(value):
    shown = Certificate(status="max_iter", message="over", primal=value)
    assert str(value) in str(shown)
    assert str(value) in shown._repr_html_()


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_discriminants_of_few_samples_and_many_features(solver):
    """The covariance has rank 38 of 400: the decisions are those of its pseudo-inverse."""
    wide = np.random.default_rng(1).standard_normal((40, 400)) * np.linspace(1, 3, 400) + 0.2 * Y[:, None]
    model = sx.LinearDiscriminantAnalysis(solver=solver).fit(wide, Y)
    assert model.whitening_.shape[1] == len(wide) - 2
    means = np.array([wide[k::2].mean(axis=0) for k in (0, 1)])
    centred = wide - means[Y]
    scale = centred.std(axis=0) if solver == "svd" else np.ones(400)
    centred /= scale
    inverse = np.linalg.pinv(centred.T @ centred / 40, rcond=1e-10) / scale / scale[:, None]
    assert_allclose(model.coef_[0], inverse @ (means[1] - means[0]), rtol=1e-7, atol=1e-9)
    if solver == "svd":
        peer = discriminant_analysis.LinearDiscriminantAnalysis().fit(wide, Y)
        assert_allclose(model.decision_function(wide), peer.decision_function(wide), rtol=1e-7)


def test_quadratic_discriminants_of_few_samples_say_so_at_once():
    wide = RNG.standard_normal((40, 2000))
    with pytest.raises(np.linalg.LinAlgError, match="class 0 has 20 samples and 2000 features"):
        sx.QuadraticDiscriminantAnalysis().fit(wide, Y)


@EVERY
@pytest.mark.parametrize(
    "container",
    [
        np.asfortranarray,
        lambda A: np.repeat(np.repeat(A, 2, axis=0), 2, axis=1)[::2, ::2],
        lambda A: A.astype(">f8"),
        lambda A: A.astype(np.longdouble),
        lambda A: A.astype(object),
        lambda A: A.tolist(),
        sparse.csc_array,
        sparse.coo_array,
        sparse.csr_matrix,
    ],
    ids=["fortran", "strided", "big-endian", "long double", "object", "list", "csc", "coo", "csr"],
)
def test_layouts_give_the_same_model(make, container):
    rounded = np.round(X, 3)
    expected = make().fit(rounded, Y).predict(rounded)
    given = container(rounded)
    if isinstance(make(), sx.SGDClassifier) and sparse.issparse(given):
        return  # as in scikit-learn, sparse data slow the steps of the intercept down
    assert np.mean(make().fit(given, Y).predict(given) == expected) > 0.9


@EVERY
@pytest.mark.filterwarnings("ignore:a hyperplane separates")
def test_two_samples(make):
    model = make()
    try:
        decided = model.fit(X[:2], Y[:2]).predict(X[:2])
    except ValueError:  # (LinAlgError is one) too few samples for a covariance or for so many neighbours
        assert isinstance(model, TOO_FEW)
    else:
        assert set(decided) <= {0, 1}


@pytest.mark.filterwarnings("ignore:a hyperplane separates")
def test_tiny_features_have_finite_models_or_a_message():
    tiny = 1e-160 * X
    model = sx.LeastSquaresClassifier().fit(tiny, Y)
    assert np.isfinite(model.certificate_.primal)
    assert_array_equal(model.predict(tiny), sx.LeastSquaresClassifier().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="variances of features are too small for float64"):
        sx.GaussianClassifier(covariance="diagonal").fit(tiny, Y)


def three_classes():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 90)
    return rng.standard_normal((90, 6)) + 1.6 * np.eye(3, 6)[y], y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("make", "scale"),
    [
        (lambda: sx.SVC(C=1e8, multiclass="joint"), 1.0),
        (lambda: sx.SVC(C=1e12, multiclass="joint", tol=1e-7), 1.0),
        (lambda: sx.LinearSVC(C=1e6, multi_class="crammer_singer", max_time=1.0), 1e8),
        (lambda: sx.LinearSVC(C=1e30, multi_class="crammer_singer", max_time=1.0), 1.0),
        (lambda: sx.LinearSVC(C=1e300, max_time=1.0), 1.0),
        (lambda: sx.LinearSVC(C=1e300, penalty="l1", dual=False, max_time=1.0), 1.0),
    ],
    ids=["joint", "joint, tight", "Crammer-Singer, large features", "Crammer-Singer", "linear", "linear, L1"],
)
def test_no_fit_is_called_converged_that_overflow_or_rounding_ended(make, scale):
    X, y = three_classes()
    model = make().fit(scale * X, y)
    found = model.certificate_
    proven = found.relative_gap is not None and found.relative_gap <= model.tol and np.isfinite(found.primal)
    assert proven or found.status != "converged"
    assert not found.gap <= model.tol * found.primal or found.dual <= found.primal < np.inf


@pytest.mark.parametrize("solver", ["auto", "quasi-newton"])
def test_a_tolerance_of_zero_ends_by_rounding(solver):
    X, y = three_classes()
    model = sx.LogisticRegression(tol=0, solver=solver).fit(X, y)
    assert model.certificate_.kkt_violation < 1e-12


@pytest.mark.parametrize("make", [sx.RidgeClassifier, sx.LinearDiscriminantAnalysis])
@pytest.mark.parametrize("tol", [0, 1e-300, 1e300])
def test_any_tolerance_has_an_answer(make, tol):
    X, y = three_classes()
    assert np.isfinite(make(tol=tol).fit(X, y).decision_function(X)).all()


@pytest.mark.parametrize("make", [sx.LogisticRegression, sx.RidgeClassifier, sx.LinearSVC])
@pytest.mark.parametrize("weight", [5e-324, 1e308])
def test_weights_without_a_sum_are_refused(make, weight):
    with pytest.raises(ValueError, match=r"sample_weight sums to .* multiply all weights"):
        make().fit(X, Y, sample_weight=np.full(len(Y), weight))


@pytest.mark.parametrize("make", [sx.SVC, sx.NuSVC, sx.SVR, sx.OneClassSVM, sx.KernelPerceptron])
def test_a_fit_that_fails_leaves_the_model_as_it_was(make):
    """Neither a new kernel beside old support vectors, nor new labels beside old samples."""
    calls = []

    def breaks(A, B):
        calls.append(0)
        if len(calls) > 1:
            raise ZeroDivisionError("in the kernel")
        return A @ B.T

    model = make(kernel="linear").fit(X, Y)
    before = model.predict(X)
    model.set_params(kernel=breaks)
    with pytest.raises(ZeroDivisionError, match="in the kernel"):
        model.fit(X[:, :2], Y)
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("make", [sx.KNeighborsClassifier, sx.KNeighborsRegressor])
def test_neighbours_that_were_not_kept_bring_no_labels(make):
    model = make().fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="not valid"):
        model.set_params(algorithm="kd_tree", metric="cosine").fit(X, 5 - Y)
    assert_array_equal(model.set_params(algorithm="auto", metric="minkowski").predict(X), before)
