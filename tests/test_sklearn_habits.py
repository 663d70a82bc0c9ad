"""What programs written for scikit-learn rely on beyond its common checks: found with its own tests."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import linear_model, neighbors, svm
from sklearn.callback import ProgressBar
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.metrics import DistanceMetric
from sklearn.utils.estimator_checks import (
    check_classifier_data_not_an_array,
    check_classifiers_one_label_sample_weights,
    check_dataframe_column_names_consistency,
    check_estimators_nan_inf,
    check_n_features_in_after_fitting,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

import separatrix
from separatrix.models.discriminant import LinearDiscriminantAnalysis
from separatrix.models.gaussian import GaussianClassifier
from separatrix.models.least_squares import LeastSquaresClassifier
from separatrix.models.linear_svm import LinearSVC
from separatrix.models.logistic import LogisticRegression
from separatrix.models.neighbors import KNeighborsClassifier, KNeighborsRegressor
from separatrix.models.one_class import OneClassSVM
from separatrix.models.perceptron import Perceptron
from separatrix.models.ridge import RidgeClassifier
from separatrix.models.sgd import SGDClassifier
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR

X, Y = load_iris(return_X_y=True)
NOT_DRAWN = "no sample of class .* was drawn"
LOGISTIC = [
    {},
    {"multiclass": "ovr"},
    {"l1_ratio": 1.0},
    {"solver": "quasi-newton"},
    {"dual": True},
    {"fit_intercept": False},
]


def random_problem(n=120, d=4, K=3, seed=0):
    random = np.random.default_rng(seed)
    A = random.normal(size=(n, d))
    y = (A @ random.normal(size=(K, d)).T + random.gumbel(size=(n, K))).argmax(axis=1)
    return A, y, random.integers(0, 4, n).astype(float)


# Counts of a resample


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(l1_ratio=1.0, multiclass="ovr"),
        SVC(probability=True),
        LinearSVC(),
        RidgeClassifier(),
        LeastSquaresClassifier(),
        LinearDiscriminantAnalysis(),
        GaussianClassifier(),
    ],
    ids=str,
)
@pytest.mark.filterwarnings(f"ignore:{NOT_DRAWN}")
def test_bagging_with_a_rare_class(model):
    """Some of the 10 samples miss the class of 2 samples, others have it."""
    y = np.array(["a", "b", "c"])[np.where(np.arange(150) < 2, 0, np.maximum(Y, 1))]
    ensemble = BaggingClassifier(model, n_estimators=10, random_state=0).fit(X, y)
    assert ensemble.score(X, y) > 0.85
    probabilities = ensemble.predict_proba(X)
    assert probabilities.shape == (150, 3)
    assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("parameters", LOGISTIC, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
def test_a_logistic_model_of_the_classes_that_were_drawn(parameters, kind):
    A, y, _ = random_problem(K=4)
    data = {"dense": A, "sparse": sparse.csr_array(A), "float32": A.astype(np.float32)}[kind]
    counts = np.where(y == 1, 0, 1 + np.arange(120) % 3)
    with pytest.warns(UserWarning, match="no sample of class 1 was drawn"):
        model = LogisticRegression(**parameters).fit(data, y, counts)
    rows = np.flatnonzero(counts)
    part = LogisticRegression(**parameters).fit(data[rows], y[rows], counts[rows])
    assert_array_equal(model.classes_, [0, 1, 2, 3])
    assert model.coef_.dtype == part.coef_.dtype
    assert model.coef_.shape == (4, 4)
    far = np.vstack([A, 1e3 * A]).astype(data.dtype)
    assert_array_equal(model.predict(far), part.predict(far))
    found = model.predict_proba(A.astype(data.dtype))
    assert found[:, 1].max() < 1e-4
    assert_allclose(found[:, [0, 2, 3]], part.predict_proba(A.astype(data.dtype)), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("left", [0, 1])
def test_one_class_was_drawn(n_classes, left):
    A, y, _ = random_problem(K=n_classes)
    with pytest.warns(UserWarning, match=NOT_DRAWN):
        model = LogisticRegression().fit(A, y, (y == left).astype(int))
    assert_array_equal(model.classes_, np.arange(n_classes))
    assert_array_equal(model.predict(A), left)
    assert model.predict_proba(A)[:, left].min() > 0.9999
    assert model.certificate_.status == "converged"
    for other in (SVC(), LinearDiscriminantAnalysis(), NuSVC(nu=0.1)):
        with pytest.raises(ValueError, match="belong to the same class"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other.fit(A, y, (y == left).astype(int))


@pytest.mark.parametrize("model", [SVC(), SVC(multiclass="joint"), GaussianClassifier()], ids=str)
def test_models_without_the_classes_that_were_not_drawn(model):
    counts = np.where(Y == 1, 0, 2)
    with pytest.warns(UserWarning, match="no sample of class 1 was drawn"):
        model.fit(X, Y, counts)
    assert_array_equal(model.classes_, [0, 2])
    rows = Y != 1
    other = type(model)(**model.get_params()).fit(X[rows], Y[rows], counts[rows])
    assert_allclose(model.decision_function(X), other.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize("make", [LogisticRegression, RidgeClassifier, SVC, GaussianClassifier])
def test_weights_that_are_no_counts_are_refused_as_before(make):
    for weights in ((Y != 1).astype(float), Y != 1, (Y != 1).tolist()):
        with pytest.raises(ValueError, match="all samples of class 1 have weight 0"):
            make().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("given", [None, 1.0 + np.arange(150.0) % 3])
@pytest.mark.parametrize(
    "make", [LogisticRegression, RidgeClassifier, LeastSquaresClassifier, SVC, LinearSVC]
)
def test_a_class_of_weight_zero_is_left_out_as_asked(make, given):
    names = np.array(["bar", "baz", "foo"])[Y]
    class_weight = {"bar": 1, "baz": 2, "foo": 0}
    model = make(class_weight=class_weight).fit(X, names, sample_weight=given)
    assert set(model.predict(X)) == {"bar", "baz"}
    rows = names != "foo"
    part = make(class_weight=class_weight).fit(X[rows], names[rows], None if given is None else given[rows])
    assert_array_equal(model.predict(X[rows]), part.predict(X[rows]))


def test_a_logistic_model_with_a_class_of_weight_zero_is_that_of_the_others():
    class_weight, rows = {0: 0, 1: 2, 2: 1}, Y != 0
    model = LogisticRegression(class_weight=class_weight).fit(X, Y)
    part = LogisticRegression(class_weight=class_weight).fit(X[rows], Y[rows])
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.predict_proba(X)[:, 0].max() < 1e-4
    assert_allclose(model.predict_proba(X)[:, 1:], part.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("make", [LogisticRegression, RidgeClassifier, LeastSquaresClassifier, SVC])
def test_weights_that_leave_no_class_are_refused(make):
    with pytest.raises(ValueError, match="weight"):
        make(class_weight={0: 0, 1: 0, 2: 0}).fit(X, Y)


# Sparse data that are few


@pytest.mark.parametrize("parameters", [{}, {"l1_ratio": 1.0}, {"C": 10.0, "multiclass": "ovr"}], ids=str)
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_few_sparse_data_have_the_model_of_dense_ones(parameters, layout):
    A, y, weights = random_problem()
    A[np.abs(A) < 0.5] = 0.0
    for dtype in (np.float64, np.float32):
        dense = LogisticRegression(**parameters).fit(A.astype(dtype), y, weights)
        found = LogisticRegression(**parameters).fit(layout(A.astype(dtype)), y, weights)
        assert_array_equal(found.coef_, dense.coef_)
        assert found.coef_.dtype == dtype
    penalised = LogisticRegression(solver="liblinear").fit(layout(A), y == 1)
    assert_array_equal(penalised.coef_, LogisticRegression(solver="liblinear").fit(A, y == 1).coef_)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("make", [SVC, OneClassSVM, SVR])
def test_few_sparse_data_have_the_machine_of_dense_ones(make, kernel):
    """Two flowers of iris are equal: which of them is a support vector must not hang on the layout."""
    dense, found = make(kernel=kernel).fit(X, Y), make(kernel=kernel).fit(sparse.csr_array(X), Y)
    assert_array_equal(found.support_, dense.support_)
    assert_array_equal(found.dual_coef_.toarray(), dense.dual_coef_)


# Class weights


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 3.0, 2: 0.2}, "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"penalty": "l1", "dual": False}], ids=str)
@pytest.mark.parametrize("K", [2, 3])
def test_class_weights_of_linear_machines_are_scikit_learns(class_weight, weighted, options, K):
    A, y, weights = random_problem(K=K)
    given = weights if weighted else None
    ours = LinearSVC(class_weight=class_weight, tol=1e-10, **options).fit(A, y, given)
    peer = svm.LinearSVC(class_weight=class_weight, tol=1e-10, max_iter=1_000_000, **options).fit(A, y, given)
    assert_allclose(ours.coef_, peer.coef_, atol=1e-6)
    assert_allclose(ours.intercept_, peer.intercept_, atol=1e-6)
    assert ours.certificate_.relative_gap <= 1e-10
    assert ours.certificate_.training_errors is not None


@pytest.mark.parametrize("K", [2, 3])
def test_balanced_logistic_classes_are_scikit_learns(K):
    A, y, weights = random_problem(K=K)
    ours = LogisticRegression(class_weight="balanced", tol=1e-10).fit(A, y, weights)
    peer = linear_model.LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=10_000)
    assert_allclose(ours.coef_, peer.fit(A, y, weights).coef_, atol=1e-5)


@pytest.mark.parametrize("model", [LogisticRegression, LinearSVC])
@pytest.mark.filterwarnings("ignore")
def test_balanced_weights_are_repetitions(model):
    for check in (
        check_sample_weight_equivalence_on_dense_data,
        check_sample_weight_equivalence_on_sparse_data,
    ):
        check(model.__name__, model(class_weight="balanced"))


def test_columns_of_their_own_weights_in_other_settings():
    A, y, _ = random_problem()
    model = LinearSVC(class_weight="balanced", warm_start=True, max_time=60.0)
    model.set_callbacks(ProgressBar()).fit(A, y)
    before = model.coef_
    assert_allclose(model.fit(A, y).coef_, before, atol=1e-8)
    with pytest.warns(UserWarning, match="failed to converge"):
        LinearSVC(class_weight="balanced", max_iter=0).fit(A, y)
    assert LinearSVC(class_weight="balanced", probability=True).fit(A, y).predict_proba(A).shape == (120, 3)


# Messages


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "sag", "l1_ratio": 1}, "Solver sag supports only 'l2' or None penalties"),
        ({"solver": "liblinear", "l1_ratio": 0.5}, "Only 'saga' solver supports elasticnet penalty"),
        ({"solver": "liblinear", "C": np.inf}, "penalty=None is not supported for the liblinear solver"),
    ],
)
def test_solvers_of_scikit_learn_refuse_what_they_cannot_do(parameters, message):
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**parameters).fit(X, Y)


@pytest.mark.parametrize("name", ["SGDClassifier", "SGDRegressor", "Perceptron"])
def test_filters_of_warnings_know_a_fit_that_ended_too_early(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Maximum number of iteration reached before convergence")
        theirs = getattr(linear_model, name)(max_iter=1, random_state=0).fit(X, Y)
        ours = getattr(separatrix, name)(max_iter=1, random_state=0).fit(X, Y)
    assert ours.n_iter_ == theirs.n_iter_ == 1
    assert ours.certificate_.status == "max_iter"


def test_an_l1_ratio_without_a_penalty_is_told():
    for make in (linear_model.LogisticRegression, LogisticRegression):
        with pytest.warns(UserWarning, match=r"only used when penalty is 'elasticnet'.*=None\)"):
            make(C=np.inf, l1_ratio=0.5, max_iter=10_000).fit(X[50:], Y[50:])


def test_an_l1_ratio_that_is_not_used_is_told():
    with (
        pytest.warns(UserWarning, match=r"only used when penalty is 'elasticnet'\. Got \(penalty=l1\)"),
        pytest.warns(FutureWarning, match="deprecated"),
        pytest.warns(UserWarning, match="Inconsistent values"),
    ):
        LogisticRegression(penalty="l1", l1_ratio=0.5).fit(X, Y)


@pytest.mark.parametrize("check", [check_n_features_in_after_fitting, check_estimators_nan_inf])
@pytest.mark.parametrize("model", [SVC(kernel="precomputed"), KNeighborsClassifier(metric="precomputed")])
@pytest.mark.filterwarnings("ignore")
def test_precomputed_matrices_are_checked_in_scikit_learns_order(model, check):
    check(type(model).__name__, model)


@pytest.mark.parametrize("model", [SVC(kernel="precomputed"), SVR(kernel="precomputed")])
def test_names_of_the_columns_of_a_kernel_matrix_come_first(model):
    check_dataframe_column_names_consistency(type(model).__name__, model)


def test_a_kernel_matrix_may_be_anything_that_is_an_array():
    check_classifier_data_not_an_array("SVC", SVC(kernel="precomputed"))
    # A matrix that is not symmetric, but what is wrong with the labels is said first.
    check_classifiers_one_label_sample_weights("SVC", SVC(kernel="precomputed"))
    with pytest.raises(ValueError, match="not symmetric"):
        SVC(kernel="precomputed").fit(np.triu(np.ones((150, 150))), Y)
    with pytest.raises(ValueError, match=r"X has 3 features.*150.*number of samples at training time"):
        SVC(kernel="precomputed").fit(X @ X.T, Y).predict(np.ones((2, 3)))


# Samples in unusual forms


@pytest.mark.parametrize("make", [LogisticRegression, SVC, KNeighborsClassifier, RidgeClassifier])
@pytest.mark.parametrize("written", [lambda A: A.astype(str), lambda A: A.astype("S").tolist()])
def test_numbers_may_be_written_as_texts(make, written):
    """As rows of a CSV reader are."""
    model = make().fit(written(X), Y)
    assert_array_equal(model.predict(written(X)), make().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match=r"row 1, column 3 holds '\?'"):
        make().fit(np.where(np.arange(150)[:, None] + np.arange(4) == 4, "?", "1.5"), Y)


@pytest.mark.parametrize("make", [LogisticRegression, SVC, KNeighborsClassifier, LinearDiscriminantAnalysis])
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.coo_array, sparse.dok_array])
def test_sparse_samples_of_one_dimension_are_refused(make, layout):
    with pytest.raises(ValueError, match=r"Expected 2D input, got sparse X with shape \(150,\)"):
        make().fit(layout(X[:, 0]), Y)


@pytest.mark.parametrize("make", [SGDClassifier, Perceptron, GaussianClassifier])
def test_a_batch_without_labels_is_refused(make):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        make().partial_fit(X, None, classes=[0, 1])


@pytest.mark.parametrize("make", [LogisticRegression, SVC, SGDClassifier, LinearDiscriminantAnalysis])
@pytest.mark.parametrize("words", ["needs samples of at least 2 classes", "has to be greater than one"])
def test_one_class_is_refused_in_scikit_learns_words(make, words):
    with pytest.raises(ValueError, match=words):
        make().fit(X, np.ones(150))


@pytest.mark.parametrize("make", [LogisticRegression, LinearSVC])
def test_a_warm_start_from_damaged_weights_is_refused(make):
    model = make(warm_start=True).fit(X, Y)
    model.coef_[0, 0] = np.nan
    with pytest.raises(ValueError, match="Floating-point under-/overflow: warm_start=True goes on from"):
        model.fit(X, Y)


@pytest.mark.parametrize("make", [SVC, NuSVC, LinearSVC])
def test_how_to_ask_for_probabilities_is_told(make):
    model = make().fit(X, Y)
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as refused:
        model.predict_proba(X)
    assert "set probability=True before fit" in str(refused.value.__cause__)


# Metrics


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("euclidean", {}),
        ("chebyshev", {}),
        ("minkowski", {"p": 3}),
        ("canberra", {}),
        ("seuclidean", {"V": [1, 2, 3, 4]}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distance_metric_objects(name, options, dtype):
    metric = DistanceMetric.get_metric(name, dtype=dtype, **options)
    A, y = X[::2].astype(dtype), X[::2, 0] ** 2
    model = KNeighborsRegressor(metric=metric).fit(A, y)
    peer = neighbors.KNeighborsRegressor(metric=metric, algorithm="brute").fit(A, y)
    queries = A[::3] + dtype(0.01) * np.arange(4, dtype=dtype)
    assert_allclose(model.kneighbors(queries)[0], peer.kneighbors(queries)[0], rtol=1e-5, atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(queries), model.predict(queries))


def test_places_on_the_globe_are_not_sparse():
    with pytest.raises(ValueError, match="Metric 'haversine' not valid for sparse input"):
        KNeighborsClassifier(metric="haversine").fit(sparse.csr_array(X[:, :2]), Y)


# Names on classes


@pytest.mark.parametrize("name", ["SGDClassifier", "SGDRegressor"])
def test_losses_can_be_listed(name):
    ours, theirs = getattr(separatrix, name), getattr(linear_model, name)
    assert set(ours.loss_functions) == set(theirs.loss_functions)
    assert ours(epsilon=0.9).loss_functions["huber"][1] == theirs.loss_functions["huber"][1]
    for loss in ours.loss_functions:
        ours(loss=loss, max_iter=5, tol=None).fit(X, Y)


@pytest.mark.parametrize("make", [LogisticRegression, SVC, LinearDiscriminantAnalysis, KNeighborsClassifier])
def test_labels_of_bytes_are_refused_by_fit_as_by_scores(make):
    labels = np.array([b"a", b"b", b"c"])[Y]
    with pytest.raises(TypeError, match=r"bytes is not supported\. Convert the labels"):
        make().fit(X, labels)
    with pytest.raises(TypeError, match="bytes is not supported"):
        make().fit(X, Y).score(X, labels)


# Weights that were never learnt here


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "name", ["LogisticRegression", "SGDClassifier", "Perceptron", "LinearSVC", "RidgeClassifier"]
)
def test_weights_that_are_set_by_hand_decide(name, K):
    """As averages of models that were learnt elsewhere are."""
    options = {"loss": "log_loss"} if name == "SGDClassifier" else {}
    rng = np.random.default_rng(K)
    ours = getattr(separatrix, name)(**options)
    theirs = getattr(svm if name == "LinearSVC" else linear_model, name)(**options)
    weights, intercept = rng.normal(size=(1 if K == 2 else K, 4)), rng.normal(size=1 if K == 2 else K)
    for model in (ours, theirs):
        model.classes_, model.coef_, model.intercept_ = np.arange(K), weights, intercept
    assert_allclose(ours.decision_function(X), theirs.decision_function(X))
    if name != "RidgeClassifier":  # there scikit-learn's needs a fit
        assert_array_equal(ours.predict(X), theirs.predict(X))
    if hasattr(theirs, "predict_proba"):
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
        assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X))


# Subclasses


@pytest.mark.parametrize(
    ("model", "before", "after"),
    [
        (GaussianClassifier, {"covariance": "full"}, {"covariance": "diagonal"}),
        (GaussianClassifier, {"covariance": "shared"}, {"covariance": "spherical"}),
        (LinearDiscriminantAnalysis, {"store_covariance": True}, {"solver": "lsqr"}),
        (LinearDiscriminantAnalysis, {"solver": "eigen"}, {"solver": "svd"}),
        (separatrix.QuadraticDiscriminantAnalysis, {"store_covariance": True}, {}),
        (separatrix.QuadraticDiscriminantAnalysis, {}, {"solver": "eigen", "shrinkage": 0.1}),
    ],
)
def test_a_refit_drops_what_the_last_fit_learnt_and_keeps_what_a_subclass_set(model, before, after):
    class Own(model):
        def fit(self, X, y, sample_weight=None):
            self.origin_ = "set before the fit"
            return super().fit(X, y, sample_weight)

    fresh = model(**after).fit(X, Y)
    refitted = Own(**before).fit(X, Y).set_params(**{**model().get_params(), **after}).fit(X, Y)
    assert refitted.origin_ == "set before the fit"
    assert set(vars(refitted)) == {*vars(fresh), "origin_"}


# Names and types of scikit-learn's linear models and machines that other programs read


def test_liblinear_has_double_weights():
    A, y = X[50:].astype(np.float32), Y[50:]
    for data in (A, sparse.csr_array(A)):
        ours = LogisticRegression(solver="liblinear", tol=1e-9).fit(data, y)
        theirs = linear_model.LogisticRegression(solver="liblinear", tol=1e-9, max_iter=10_000).fit(data, y)
        assert ours.coef_.dtype == theirs.coef_.dtype == np.float64
        assert ours.decision_function(data).dtype == theirs.decision_function(data).dtype
        assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_probabilities_of_classes_by_themselves(n_classes):
    rows = n_classes > Y
    ours = LogisticRegression().fit(X[rows], Y[rows])
    theirs = linear_model.LogisticRegression(max_iter=10_000).fit(X[rows], Y[rows])
    theirs.coef_, theirs.intercept_ = ours.coef_, ours.intercept_
    assert_allclose(ours._predict_proba_lr(X), theirs._predict_proba_lr(X), atol=1e-14)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("name", "n_classes", "sign"), [("SVC", 2, -1), ("NuSVC", 2, -1), ("SVC", 3, 1), ("SVR", 2, 1)]
)
def test_libsvms_coefficients_can_be_read_and_set(name, n_classes, sign, layout):
    rows = n_classes > Y
    A = layout(X[rows])
    parameters = {"kernel": "linear"} | ({} if name == "SVR" else {"decision_function_shape": "ovo"})
    ours = getattr(separatrix, name)(**parameters).fit(A, Y[rows])
    theirs = getattr(svm, name)(**parameters).fit(A, Y[rows])
    for machine in (ours, theirs):
        assert sparse.issparse(machine._dual_coef_) == (layout is sparse.csr_array)
        assert abs(machine._dual_coef_ - sign * machine.dual_coef_).max() == 0
        assert_array_equal(machine._intercept_, sign * machine.intercept_)
    score = ours.predict if name == "SVR" else ours.decision_function
    before = score(A)
    ours._dual_coef_, ours._intercept_ = -1 * ours._dual_coef_, -1 * ours._intercept_
    assert_allclose(score(A), -before)
