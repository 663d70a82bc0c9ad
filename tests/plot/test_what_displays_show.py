"""The pictures of margins, tubes, scores, kernels and codings show what they say."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LinearRegression
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVR

from pictured import IRIS, NAMES, THREE, TWO, moons, regression
from separatrix import GaussianClassifier, KernelPerceptron, LinearSVC, LogisticRegression, Perceptron, plot
from separatrix.kernels import RBF, Linear
from separatrix.plot import _points


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def marks(ax):
    return {mark.get_label(): mark for mark in ax.collections if not mark.get_label().startswith("_")}


def test_margin_of_a_linear_machine():
    random = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = random.normal(size=(60, 2)) + np.where(y, 1.4, -1.4)[:, None]
    model = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    display = plot.MarginDisplay.from_estimator(model, X, y, resolution=50)
    assert display.width == pytest.approx(2 / np.linalg.norm(model.coef_))
    codes = 2 * y - 1
    np.testing.assert_allclose(display.slacks, np.maximum(0, 1 - codes * model.decision_function(X)))
    ringed = np.asarray(marks(display.ax_)["support vectors"].get_offsets())
    assert {tuple(row) for row in ringed} == {tuple(row) for row in X[model.support_]}
    assert f"support vectors ({len(model.support_)})" in texts(display.ax_)
    # Each way leads from its point straight to its own margin.
    missing = display.slacks > 1e-3
    ways = np.array(marks(display.ax_)["slack"].get_segments())
    np.testing.assert_array_equal(ways[:, 0], X[missing])
    np.testing.assert_allclose(model.decision_function(ways[:, 1]), codes[missing], atol=1e-6)
    along = ways[:, 1] - ways[:, 0]
    cross = along[:, 0] * model.coef_[0, 1] - along[:, 1] * model.coef_[0, 0]
    np.testing.assert_allclose(cross, 0.0, atol=1e-6)


def test_margin_of_a_curved_boundary_and_of_a_pipeline():
    X, y = moons()
    model = make_pipeline(StandardScaler(), SVC(C=1.0)).fit(X, y)
    display = plot.MarginDisplay.from_estimator(model, X, y, resolution=120)
    assert display.width is None
    np.testing.assert_array_equal(display.support, model[-1].support_)
    ways = np.array(marks(display.ax_)["slack"].get_segments())
    codes = (2 * y - 1)[display.slacks > 1e-3]
    np.testing.assert_allclose(model.decision_function(ways[:, 1]), codes, atol=0.05)


def test_margin_without_support_vectors_rings_what_is_within():
    model = LogisticRegression(C=10.0).fit(TWO, NAMES[50:])
    display = plot.MarginDisplay.from_estimator(model, TWO, NAMES[50:], level=2.0, resolution=40)
    codes = np.where(NAMES[50:] == "virginica", 1, -1)
    within = int((codes * model.decision_function(TWO) <= 2.0 * (1 + 1e-3)).sum())
    assert f"on or within the margin ({within})" in texts(display.ax_)
    assert display.level == 2.0
    assert display.width == pytest.approx(4 / np.linalg.norm(model.coef_))
    perceptron = Perceptron(margin=3.0).fit(IRIS.data[:100, :2], IRIS.target[:100])
    trained = plot.MarginDisplay.from_estimator(perceptron, IRIS.data[:100, :2], IRIS.target[:100])
    assert trained.level == 3.0


def test_support_vectors_are_marked_only_on_the_training_set():
    X, y = moons()
    model = SVC().fit(X, y)
    other = plot.MarginDisplay.from_estimator(model, X[::-1], y[::-1], resolution=20)
    assert other.support is None
    sparse_model = SVC(kernel="linear").fit(sparse.csr_matrix(X), y)
    display = plot.MarginDisplay.from_estimator(sparse_model, sparse.csr_matrix(X), y, resolution=20)
    np.testing.assert_array_equal(display.support, sparse_model.support_)


def test_margin_in_more_dimensions_keeps_every_distance():
    model = SVC(kernel="linear", C=0.1).fit(IRIS.data[50:], NAMES[50:])
    display = plot.MarginDisplay.from_estimator(model, IRIS.data[50:], NAMES[50:], resolution=20)
    assert display.width == pytest.approx(2 / np.linalg.norm(model.coef_), rel=1e-6)
    assert display.ax_.get_xlabel() == "across the boundary"
    side = plot.MarginDisplay.from_estimator(
        model, IRIS.data[50:], NAMES[50:], directions=(0, 1), resolution=20
    )
    assert side.width is None
    assert "slack" not in marks(side.ax_)


def test_margin_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match="LogisticRegression has 3 classes: fit it to two"):
        plot.margin(LogisticRegression().fit(THREE, NAMES), THREE, NAMES)
    model = SVC().fit(*moons())
    with pytest.raises(ValueError, match="level must be a positive score"):
        plot.margin(model, *moons(), level=0.0)
    with pytest.raises(ValueError, match="y holds 7"):
        plot.margin(model, moons()[0], np.full(80, 7))


def test_tube_of_one_feature():
    X, y = regression()
    model = SVR(epsilon=0.2, C=10.0).fit(X, y)
    display = plot.TubeDisplay.from_estimator(model, X, y, names=["time"])
    np.testing.assert_allclose(display.slacks, np.maximum(0, np.abs(y - model.predict(X)) - 0.2))
    np.testing.assert_array_equal(display.support, model.support_)
    lines = display.ax_.get_lines()
    u = lines[0].get_xdata()
    np.testing.assert_allclose(lines[0].get_ydata(), model.predict(u[:, None]) - 0.2)
    np.testing.assert_allclose(lines[1].get_ydata(), model.predict(u[:, None]) + 0.2)
    ways = np.array(marks(display.ax_)["slack"].get_segments())
    lengths = np.abs(ways[:, 1, 1] - ways[:, 0, 1])
    np.testing.assert_allclose(lengths, display.slacks[display.slacks > 2e-4], atol=1e-12)
    assert display.ax_.get_xlabel() == "time"


def test_tube_of_many_features_stands_over_the_predictions():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(100, 3)), columns=["a", "b", "c"])
    y = X.to_numpy() @ [1.0, 2.0, 0.0] + 0.5 * random.normal(size=100)
    model = LinearRegression().fit(X, y)
    display = plot.TubeDisplay.from_estimator(model, X, y, epsilon=0.4)
    places = np.asarray(marks(display.ax_)["samples"].get_offsets())[:, 0]
    np.testing.assert_allclose(places, model.predict(X))
    outside = (np.abs(y - model.predict(X)) >= 0.4 * (1 - 1e-3)).sum()
    assert f"on or outside the tube ({outside})" in texts(display.ax_)
    with pytest.raises(ValueError, match="LinearRegression has no epsilon"):
        plot.tube(model, X, y)
    with pytest.raises(ValueError, match="NuSVR has no epsilon"):
        plot.tube(NuSVR().fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"one number per row of X: shape \(100,\), not \(3,\)"):
        plot.tube(model, X, y[:3], epsilon=0.1)
    with pytest.raises(ValueError, match="must not be negative"):
        plot.tube(model, X, y, epsilon=-1.0)


def test_convergence_against_time():
    records = [{"seconds": k / 10, "objective": 1.0 / k, "relative_gap": 0.1**k} for k in (1, 2)]
    ax = plot.convergence(SimpleNamespace(history_=records), against="seconds")
    assert ax.get_lines()[0].get_xdata().tolist() == [0.1, 0.2]
    assert ax.figure.axes[1].get_xlabel() == "seconds"
    pairs = [{"dual": float(k), "violation": 0.1**k} for k in (1, 2)]
    ax = plot.convergence(SimpleNamespace(history_=pairs))
    assert texts(ax) == ["dual objective"]
    assert ax.figure.axes[1].get_ylabel() == "violation (log scale)"
    alone = plot.convergence(SimpleNamespace(history_=[{"residual": 1.0}, {"residual": 0.1}]))
    assert len(alone.figure.axes) == 1
    assert alone.get_yscale() == "log"
    with pytest.raises(ValueError, match="has no times"):
        plot.convergence(SimpleNamespace(history_=[{"objective": 1.0}]), against="seconds")
    with pytest.raises(ValueError, match="'iteration' or 'seconds'"):
        plot.convergence(SimpleNamespace(history_=records), against="hours")


@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
def test_confusion_counts_as_scikit_learn(normalize):
    model = LogisticRegression().fit(THREE, NAMES)
    weights = np.random.default_rng(0).random(150)
    display = plot.ConfusionMatrixDisplay.from_estimator(
        model, THREE, NAMES, normalize=normalize, sample_weight=weights
    )
    expected = confusion_matrix(NAMES, model.predict(THREE), normalize=normalize, sample_weight=weights)
    np.testing.assert_allclose(display.confusion_matrix, expected)
    cells = [text.get_text() for text in display.ax_.texts]
    assert len(cells) == 9
    assert cells[0] == (f"{expected[0, 0]:.2f}" if normalize else f"{expected[0, 0]:.3g}")


def test_confusion_of_strange_classes():
    model = LogisticRegression().fit(THREE[:100], NAMES[:100])
    display = plot.ConfusionMatrixDisplay.from_estimator(model, THREE, NAMES)
    assert display.display_labels == ["setosa", "versicolor", "virginica"]
    assert display.confusion_matrix[2].sum() == 50
    many = plot.ConfusionMatrixDisplay.from_predictions(np.arange(60), np.arange(60)[::-1])
    assert not many.ax_.texts  # too small to read
    with pytest.raises(ValueError, match="does not name the class 'b'"):
        plot.ConfusionMatrixDisplay.from_predictions(["a", "b"], ["a", "a"], labels=["a"])
    with pytest.raises(ValueError, match="normalize must be"):
        plot.confusion(model, THREE, NAMES, normalize="rows")


def test_curves_of_joint_machines_go_by_the_lead_over_the_best_other_class():
    model = LinearSVC(multi_class="crammer_singer").fit(IRIS.data, NAMES)
    scores = model.decision_function(IRIS.data)
    curves = plot.RocCurveDisplay.from_estimator(model, IRIS.data, NAMES).curves
    for k, curve in enumerate(curves):
        lead = [row[k] - max(np.delete(row, k)) for row in scores]
        assert curve.summary == pytest.approx(roc_auc_score(curve.name == NAMES, lead))
        assert curve.summary > 0.99  # by the score alone the class in the middle is at chance


def test_curves_agree_with_scikit_learn():
    model = LogisticRegression().fit(TWO, NAMES[50:])
    f = model.decision_function(TWO)
    second, first = NAMES[50:] == "virginica", NAMES[50:] == "versicolor"
    roc = plot.RocCurveDisplay.from_estimator(model, TWO, NAMES[50:])
    assert [curve.name for curve in roc.curves] == ["virginica"]
    assert roc.curves[0].summary == pytest.approx(roc_auc_score(second, f))
    swapped = plot.PrecisionRecallDisplay.from_estimator(model, TWO, NAMES[50:], pos_label="versicolor")
    assert swapped.curves[0].summary == pytest.approx(average_precision_score(first, -f))
    assert swapped.prevalence == [0.5]
    three = LogisticRegression().fit(THREE, NAMES)
    display = plot.RocCurveDisplay.from_estimator(three, THREE, NAMES)
    for k, curve in enumerate(display.curves):
        expected = roc_auc_score(curve.name == NAMES, three.predict_proba(THREE)[:, k])
        assert curve.summary == pytest.approx(expected)
    mean = roc_auc_score(NAMES, three.predict_proba(THREE), multi_class="ovr")
    assert np.mean([curve.summary for curve in display.curves]) == pytest.approx(mean)
    machine = LinearSVC().fit(THREE, NAMES)
    for k, curve in enumerate(plot.RocCurveDisplay.from_estimator(machine, THREE, NAMES).curves):
        expected = roc_auc_score(curve.name == NAMES, machine.decision_function(THREE)[:, k])
        assert curve.summary == pytest.approx(expected)
    styles = {(line.get_color(), line.get_linestyle()) for line in display.ax_.get_lines()}
    assert len(styles) >= 3
    neighbours = KNeighborsClassifier().fit(TWO, NAMES[50:])
    probability = plot.RocCurveDisplay.from_estimator(neighbours, TWO, NAMES[50:])
    assert probability.curves[0].summary == pytest.approx(
        roc_auc_score(second, neighbours.predict_proba(TWO)[:, 1])
    )


def test_curves_of_many_samples_stay_light():
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 1))
    y = (X[:, 0] + random.normal(size=20_000) > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    for draw in (plot.roc, plot.precision_recall):
        line = draw(model, X, y).get_lines()[0]
        assert len(line.get_xdata()) <= 2000
        assert sorted((line.get_xdata()[0], line.get_xdata()[-1])) == [0.0, 1.0]


def test_curves_refuse_what_has_no_curve():
    model = LogisticRegression().fit(THREE, NAMES)
    with pytest.raises(ValueError, match="class virginica needs samples of it"):
        plot.roc(model, THREE[:100], NAMES[:100])
    with pytest.raises(ValueError, match="pos_label='rose' is not among the classes setosa"):
        plot.roc(model, THREE, NAMES, pos_label="rose")
    with pytest.raises(ValueError, match="neither decision_function nor predict_proba"):
        plot.roc(SimpleNamespace(predict=None), THREE, NAMES)
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 4
        plot.roc(SVC(decision_function_shape="ovo").fit(X, y), X, y)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_agrees_with_scikit_learn(strategy):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 2))
    y = (X.sum(axis=1) + random.logistic(size=500) > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    display = plot.CalibrationDisplay.from_estimator(model, X, y, n_bins=6, strategy=strategy)
    share, mean = calibration_curve(y, model.predict_proba(X)[:, 1], n_bins=6, strategy=strategy)
    (one,) = display.classes
    np.testing.assert_allclose(one.share, share)
    np.testing.assert_allclose(one.probability, mean)
    assert one.count.sum() == 500
    low, high = one.intervals()
    assert (one.share - low >= 0).all()
    assert (one.share + high <= 1).all()
    assert texts(display.ax_)[1] == f"1: mean error {one.error:.3f}"


def test_calibration_of_several_classes_and_of_none():
    display = plot.CalibrationDisplay.from_estimator(GaussianClassifier().fit(THREE, NAMES), THREE, NAMES)
    assert [one.name for one in display.classes] == ["setosa", "versicolor", "virginica"]
    with pytest.raises(ValueError, match="Perceptron has no predict_proba; wrap it"):
        plot.calibration(Perceptron().fit(THREE, NAMES), THREE, NAMES)


def test_kernel_matrix_is_ordered_by_class():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 3)), random.choice(["b", "a", "c"], 40)
    display = plot.KernelMatrixDisplay.from_kernel(RBF(gamma=0.3), X, y)
    np.testing.assert_array_equal(display.labels, np.sort(y))
    rows = display.rows
    assert sorted(rows) == list(range(40))
    np.testing.assert_allclose(display.matrix, RBF(gamma=0.3)(X[rows]))
    assert display.ax_.get_title() == "RBF(gamma=0.3)"
    model = make_pipeline(StandardScaler(), KernelPerceptron(gamma=0.5)).fit(X, y)
    scaled = plot.KernelMatrixDisplay.from_estimator(model, X, y)
    np.testing.assert_allclose(scaled.matrix, RBF(gamma=0.5)(StandardScaler().fit_transform(X)[scaled.rows]))
    given = plot.KernelMatrixDisplay.from_kernel("precomputed", Linear()(X), y)
    np.testing.assert_allclose(given.matrix, Linear()(X[given.rows]))
    from_sparse = plot.KernelMatrixDisplay.from_kernel("linear", sparse.csr_matrix(X), y)
    np.testing.assert_allclose(from_sparse.matrix, given.matrix)


def test_kernel_matrix_of_many_samples_and_outliers():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(3000, 2)), np.arange(3000) % 3
    X[0] *= 1000
    display = plot.KernelMatrixDisplay.from_kernel(Linear(), X, y)
    assert display.matrix.shape == (800, 800)
    assert display.ax_.get_xlabel() == "800 of 3,000 samples, ordered by class"
    assert np.abs(display.ax_.images[0].get_clim()).max() < 100
    with pytest.raises(ValueError, match="Perceptron has no kernel"):
        plot.kernel_matrix(Perceptron(), X, y)
    with pytest.raises(ValueError, match="must be square"):
        plot.kernel_matrix("precomputed", X, y)


def test_codings_side_by_side():
    display = plot.CodingsDisplay.from_estimator(Perceptron(margin=1.0), THREE, NAMES, resolution=40)
    assert [panel.name for panel in display.panels] == ["ovr", "ovo", "joint"]
    for panel, ax in zip(display.panels, display.axes_, strict=True):
        expected = Perceptron(margin=1.0, multiclass=panel.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected.fit(THREE, NAMES)
        np.testing.assert_array_equal(panel.model.coef_, expected.coef_)
        assert f"{expected.score(THREE, NAMES):.1%} right" in ax.get_title()
        v, u = panel.field.v[11], panel.field.u[7]
        scores = expected._new_scores([[u, v]])[0]
        if panel.name == "ovr":
            assert panel.disputed[11, 7] == ((scores > 0).sum() != 1)
        elif panel.name == "ovo":
            wins = np.where(scores >= 0, [0, 0, 1], [1, 2, 2])
            assert panel.disputed[11, 7] == (len(set(wins)) == 3)
        else:
            assert panel.disputed is None
    assert display.panels[0].disputed.mean() > 0.05


def test_codings_refusals():
    with pytest.raises(ValueError, match="SVC has no parameter multiclass"):
        plot.codings(SVC(), THREE, NAMES)
    with pytest.raises(ValueError, match="from three classes on; y holds 2"):
        plot.codings(Perceptron(), TWO, NAMES[50:])
    with pytest.raises(ValueError, match="codings must be among ovr, ovo, joint"):
        plot.codings(Perceptron(), THREE, NAMES, codings=["ecoc"])
    with pytest.raises(ValueError, match="ovo"):
        plot.codings(LogisticRegression(), THREE, NAMES, codings=["ovo"])
    assert len(plot.codings(LogisticRegression(), THREE, NAMES, resolution=10)) == 2  # it has no votes


def test_boundary_along_chosen_directions():
    model = LogisticRegression().fit(IRIS.data, NAMES)
    names = [name.removesuffix(" (cm)") for name in IRIS.feature_names]
    ax = plot.boundary(
        model, IRIS.data, NAMES, names=names, directions=("sepal width", "petal width"), resolution=20
    )
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sepal width", "petal width")
    places = np.asarray(marks(ax)["setosa"].get_offsets())
    np.testing.assert_allclose(places, IRIS.data[:50][:, [1, 3]])
    (image,) = ax.images
    left, _, bottom, _ = image.get_extent()
    corner = IRIS.data.mean(axis=0)
    corner[[1, 3]] = left, bottom
    assert model.classes_[image.get_array()[0, 0]] == model.predict(corner[None])[0]
    ways = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]])
    vectors = plot.BoundaryDisplay.from_estimator(model, IRIS.data, NAMES, directions=ways, resolution=10)
    np.testing.assert_allclose(vectors.plane.directions @ vectors.plane.directions.T, np.eye(2), atol=1e-12)
    flat = plot.boundary(
        LogisticRegression().fit(IRIS.data[50:], NAMES[50:]), IRIS.data[50:], NAMES[50:],
        directions="principal", resolution=10,
    )  # fmt: skip
    assert flat.get_xlabel().startswith("principal direction 1")


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        ("main", "directions must be 'principal'"),
        ((0, 9), "there is no feature 9; X has 4"),
        ((0, 0), "two different features"),
        (("feature 0", "height"), "there is no feature 'height'"),
        ((0, 1, 2), "two features or two vectors; got 3"),
        (np.ones((2, 3)), "two finite vectors of 4 numbers"),
        (np.ones((2, 4)), "do not point along one line"),
    ],
)
def test_boundary_refuses_other_directions(directions, message):
    model = LogisticRegression().fit(IRIS.data, NAMES)
    with pytest.raises(ValueError, match=re.escape(message)):
        plot.boundary(model, IRIS.data, NAMES, directions=directions)


def test_boundary_contours():
    model = LogisticRegression().fit(TWO, NAMES[50:])
    ax = plot.boundary(model, TWO, NAMES[50:], contours=[-2.0, 2.0], resolution=60)
    levels = sorted(level for mark in ax.collections if hasattr(mark, "levels") for level in mark.levels)
    assert levels == [-2.0, 0.0, 2.0]
    assert "equal score" in texts(ax)
    with pytest.raises(ValueError, match="needs a model with decision_function"):
        plot.boundary(KNeighborsClassifier().fit(TWO, NAMES[50:]), TWO, NAMES[50:], contours=True)


def test_rare_classes_stay_in_a_thinned_picture():
    truth = np.zeros(100_000, dtype=int)
    truth[:30] = 1
    truth[30:33] = 2
    rows = _points.choose_points(truth, len(truth))
    assert len(rows) == len(np.unique(rows)) == 5000
    assert np.bincount(truth[rows]).tolist() == [4972, 25, 3]


def test_paths_and_losses_have_displays():
    model = LogisticRegression(C=3.0, fit_intercept=False)
    display = plot.PathDisplay.from_estimator(model, THREE, NAMES == "setosa", Cs=[0.1, 10.0])
    alone = LogisticRegression(C=10.0, fit_intercept=False).fit(THREE, NAMES == "setosa")
    np.testing.assert_allclose(display.path.coefs[-1], alone.coef_, rtol=1e-2)
    assert model.C == 3.0
    assert not hasattr(model, "coef_")
    ax = Figure().subplots()
    assert display.plot(ax).ax_ is ax
    with pytest.raises(TypeError, match="transform the data before"):
        plot.PathDisplay.from_estimator(make_pipeline(StandardScaler(), model), THREE, NAMES)
    losses = plot.LossesDisplay.from_table(["hinge", "squared_hinge"])
    np.testing.assert_allclose(losses.values["hinge"], np.maximum(0.0, 1.0 - losses.margins))
    assert len(losses.plot(Figure().subplots()).ax_.get_legend().get_texts()) == 2
    with pytest.raises(ValueError, match="no loss of the margin is called 'huge'"):
        plot.LossesDisplay.from_table(["huge"])
