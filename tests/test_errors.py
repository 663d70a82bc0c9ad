"""Bad input: one message that names what, where and the remedy; nothing half done."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils import all_estimators

import separatrix as sx
from separatrix import KernelPerceptron, Perceptron

X, Y = load_iris(return_X_y=True)
PEERS = dict(all_estimators())
BOTH = pytest.mark.parametrize("make", [Perceptron, KernelPerceptron])


@BOTH
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array, np.asfortranarray])
def test_not_finite(make, value, word, container):
    bad = X.copy()
    bad[87, 2] = value
    with pytest.raises(ValueError, match=rf"X contains {word}.*row 87, column 2\. Drop such rows") as told:
        make().fit(container(bad), Y)
    assert ("SimpleImputer" in str(told.value)) == (word == "NaN"), "imputers refuse infinity"
    model = make().fit(X, Y)
    with pytest.raises(ValueError, match="row 87, column 2"):
        model.predict(container(bad))


@pytest.mark.parametrize("name", ["SVR", "LogisticRegression", "KNeighborsClassifier", "RidgeClassifier"])
def test_what_scikit_learn_says_of_values_that_are_not_finite_is_said_too(name):
    for value, words in ((np.nan, f"\n{name} does not accept missing values encoded as NaN"), (np.inf, "")):
        bad = X.copy()
        bad[3, 1] = value
        with pytest.raises(ValueError, match=r"Input X contains") as theirs:
            PEERS[name]().fit(bad, Y)
        with pytest.raises(ValueError, match=r": row 3, column 1\.") as ours:
            getattr(sx, name)().fit(bad, Y)
        what, _, advice = str(theirs.value).partition(".")
        assert str(ours.value).startswith(what)
        assert str(ours.value).endswith(advice)
        assert advice.startswith(words)


THREADED = ["SGDClassifier", "Perceptron", "KNeighborsClassifier", "LogisticRegression", "LinearSVC"]


@pytest.mark.parametrize("name", THREADED)
def test_no_threads_at_all_are_refused(name):
    with pytest.raises(ValueError, match=r"'n_jobs' parameter of \w+ must be.*Got 0 instead"):
        getattr(sx, name)(n_jobs=0).fit(X, Y)
    getattr(sx, name)(n_jobs=-2).fit(X, Y)


@pytest.mark.parametrize(
    "make", [Perceptron, KernelPerceptron, sx.SVC, sx.LogisticRegression, sx.KNeighborsClassifier, sx.SVR]
)
def test_a_list_with_a_hole(make):
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, None]]
    with pytest.raises(ValueError, match=r"Input X contains NaN.*row 2, column 1.*SimpleImputer"):
        make().fit(rows, [0, 1, 1])
    with pytest.raises(ValueError, match="row 2, column 1"):
        make().fit(X[:, :2], Y % 2).predict(rows)
    with pytest.raises(TypeError, match=r"row 2, column 1 holds {}.*must hold numbers"):
        make().fit([[1.0, 2.0], [3.0, 4.0], [5.0, {}]], [0, 1, 1])


@BOTH
def test_not_finite_names_the_column(make):
    table = pd.DataFrame(X, columns=list("abcd"))
    table.loc[3, "c"] = np.nan
    with pytest.raises(ValueError, match=r"row 3, column 2 \('c'\)"):
        make().fit(table, Y)


@BOTH
def test_large_values_are_not_mistaken_for_infinity(make):
    big = np.full((4, 2), 1e308)
    big[:2] = -1e308
    model = KernelPerceptron(kernel="linear") if make is KernelPerceptron else Perceptron()
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match=r"overflow.*StandardScaler"),
    ):
        model.fit(big, [0, 0, 1, 1])


@BOTH
def test_one_class(make):
    with pytest.raises(ValueError, match="only one class: 1"):
        make().fit(X, np.ones(150, dtype=int))


@BOTH
def test_lengths(make):
    with pytest.raises(ValueError, match=r"\[150, 149\]"):
        make().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        make().fit(X, Y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="sample_weight"):
        make().fit(X, Y, sample_weight=-np.ones(150))


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("margin", -1),
        ("margin", np.nan),
        ("eta0", 0),
        ("eta0", -1),
        ("max_iter", 0),
        ("tol", -1e-3),
        ("max_time", 0),
        ("multiclass", "all"),
        ("keep", "first"),
        ("shuffle", "yes"),
        ("class_weight", "heavy"),
    ],
)
def test_parameters(make, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {make.__name__} must be"):
        make(**{name: value}).fit(X, Y)


def test_parameters_of_one_kind():
    with pytest.raises(ValueError, match="'penalty' parameter"):
        Perceptron(penalty="l3").fit(X, Y)
    with pytest.raises(ValueError, match=r"keep='average'.*penalty='l2'.*choose penalty=None"):
        Perceptron(penalty="l2", keep="average").fit(X, Y)
    with pytest.raises(ValueError, match="'kernel' parameter"):
        KernelPerceptron(kernel="rbff").fit(X, Y)
    with pytest.raises(ValueError, match="coef_init must be an array, 'random' or None"):
        Perceptron().fit(X, Y, coef_init="zeros")
    with pytest.raises(TypeError, match="unexpected keyword"):
        Perceptron(margn=1)


@BOTH
def test_number_of_features(make):
    model = make().fit(X, Y)
    for method in ("predict", "decision_function"):
        with pytest.raises(ValueError, match=r"3 features, but .* is expecting 4"):
            getattr(model, method)(X[:, :3])


@BOTH
def test_not_fitted(make):
    with pytest.raises(NotFittedError):
        make().predict(X)


@BOTH
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.empty((0, 4)), "0 sample"),
        (np.empty((150, 0)), r"0 feature\(s\)"),
        (X.astype(complex), "Complex data not supported"),
        (X[:, 0], "Expected 2D array"),
        (X[None], "Found array with dim 3"),
    ],
)
def test_shapes_and_types(make, data, message):
    with pytest.raises(ValueError, match=message):
        make().fit(data, Y[: len(data)])


@BOTH
def test_text_among_numbers(make):
    bad = X.astype(object)
    bad[123, 1] = "n/a"
    with pytest.raises(ValueError, match=r"row 123, column 1 holds 'n/a'.*OneHotEncoder"):
        make().fit(bad, Y)
    bad[123, 1] = None
    with pytest.raises((TypeError, ValueError)):
        make().fit(bad, Y)


@BOTH
def test_a_failed_fit_leaves_the_old_model(make):
    model = make().fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), Y)
    assert (model.predict(X) == before).all()


def test_partial_fit():
    with pytest.raises(ValueError, match="classes must be passed"):
        Perceptron().partial_fit(X, Y)
    with pytest.raises(ValueError, match="'balanced' is not supported"):
        Perceptron(class_weight="balanced").partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="early_stopping should be False"):
        Perceptron(early_stopping=True).partial_fit(X, Y, classes=[0, 1, 2])


def test_regression_target():
    with pytest.raises(ValueError, match="Unknown label type"):
        Perceptron().fit(X, np.linspace(0, 1.5, 150))


CLASSIFIERS = pytest.mark.parametrize(
    "make",
    [Perceptron, sx.SVC, sx.LogisticRegression, sx.KNeighborsClassifier, sx.LinearDiscriminantAnalysis],
)


@CLASSIFIERS
@pytest.mark.parametrize("hole", [None, np.nan, pd.NA], ids=str)
@pytest.mark.parametrize("container", [np.asarray, pd.Series, list])
def test_missing_labels(make, hole, container):
    labels = np.array(["a", "b", "c"], dtype=object)[Y]
    labels[[7, 90]] = hole
    with pytest.raises(ValueError, match=r"in row 7: leave out samples without a target.*notna\(y\)"):
        make().fit(X, container(labels))


@pytest.mark.parametrize("make", [sx.SVC, sx.SVR, sx.KNeighborsRegressor, sx.LinearSVR])
def test_missing_targets(make):
    numbers = Y.astype(float)
    numbers[7] = np.nan
    with pytest.raises(ValueError, match=r"Input y contains NaN\. The first is nan in row 7"):
        make().fit(X, numbers)


@pytest.mark.parametrize("make", [sx.SVC, sx.SVR, sx.KNeighborsRegressor, sx.LinearSVR, sx.RidgeClassifier])
def test_infinite_targets(make):
    numbers = Y.astype(float)
    numbers[[7, 90]] = np.inf
    with pytest.raises(ValueError, match=r"Input y contains infinity .*The first is in row 7: leave such"):
        make().fit(X, numbers)


@pytest.mark.parametrize(
    ("make", "classifier"),
    [
        (sx.SVR, "SVC"),
        (sx.NuSVR, "NuSVC"),
        (sx.LinearSVR, "LinearSVC"),
        (sx.SGDRegressor, "SGDClassifier"),
        (sx.KNeighborsRegressor, "KNeighborsClassifier"),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, pd.Series])
def test_classes_given_to_regression(make, classifier, container):
    with pytest.raises(ValueError, match=rf"predicts numbers.*such as 'a'.*use {classifier} for classes"):
        make().fit(X, container(np.repeat(["a", "b", "c"], 50)))


@CLASSIFIERS
def test_columns_are_named(make):
    table = pd.DataFrame(X[:, :2], columns=["length", "width"])
    with pytest.raises(ValueError, match=r"row 0, column 2 \('colour'\) holds 'red'.*OneHotEncoder"):
        make().fit(table.assign(colour="red"), Y)
    with pytest.raises(TypeError, match=r"dates or durations \(column 'day', datetime64.*days since"):
        make().fit(table.assign(day=pd.Timestamp("2020-01-01")), Y)


@CLASSIFIERS
def test_ragged_lists(make):
    with pytest.raises(ValueError, match=r"X\[0\] has 2 value\(s\), X\[2\] has 1 value\(s\)"):
        make().fit([[1.0, 2.0], [3.0, 4.0], [5.0]], [0, 1, 1])


def test_names_and_texts_instead_of_samples():
    with pytest.raises(ValueError, match=r"X is a name, not samples.*separatrix\.read"):
        sx.LogisticRegression().fit("iris.csv", Y)
    with pytest.raises(ValueError, match=r"X holds texts.*TfidfVectorizer"):
        sx.LogisticRegression().fit(["one text", "another"], [0, 1])


def test_a_misspelt_name_is_suggested():
    with pytest.raises(AttributeError, match="no attribute 'LogisticRegresion'") as refused:
        _ = sx.LogisticRegresion
    assert refused.value.name == "LogisticRegresion"
    assert refused.value.obj is sx


WEIGHTED = [
    name for name in sx.__all__ if "class_weight" in getattr(getattr(sx, name), "_parameter_constraints", ())
]


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, None, "heavy"])
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_classes_without_a_meaning(name, weight):
    model = getattr(sx, name)(class_weight={1: weight})
    message = f"class_weight gives class 1 the weight {weight!r}: .*must be finite numbers"
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, Y, classes=np.unique(Y))


def test_every_classifier_with_class_weight_is_tried():
    assert {"SVC", "LinearSVC", "LogisticRegression", "Perceptron", "SGDClassifier"} <= set(WEIGHTED)
