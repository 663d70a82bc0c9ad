"""Pictures of decision regions: what is drawn, for which input, and what is said about it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from separatrix import KernelPerceptron, Perceptron, plot


class RidgeWithMargin(RidgeClassifier):
    """A classifier with the two attributes that the plots read besides predictions."""

    margin = 0.5
    multiclass = "ovr"


@pytest.fixture(scope="module")
def iris():
    return load_iris(as_frame=True)


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def points(ax):
    """Drawn points by label: class or "misclassified"."""
    return {
        mark.get_label(): mark
        for mark in ax.collections
        if len(mark.get_offsets()) and not mark.get_label().startswith("_")
    }


def test_two_classes(iris, tmp_path):
    X, y = iris.data.iloc[50:, [2, 3]], iris.target_names[iris.target[50:]]
    model = make_pipeline(StandardScaler(), RidgeWithMargin()).fit(X, y)
    ax = plot.boundary(model, X, y)
    wrong = int((model.predict(X) != y).sum())
    assert wrong > 0
    assert legend_texts(ax) == [
        "versicolor",
        "virginica",
        f"misclassified ({wrong} of 100)",
        "boundary",
        "score = ±0.5 (margin)",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("petal length (cm)", "petal width (cm)")
    drawn = points(ax)
    assert len(drawn["versicolor"].get_offsets()) == len(drawn["virginica"].get_offsets()) == 50
    ringed = {tuple(point) for point in np.asarray(drawn["misclassified"].get_offsets())}
    assert ringed == {tuple(row) for row in X.to_numpy()[model.predict(X) != y]}
    (image,) = ax.images
    assert set(np.unique(image.get_array())) == {0, 1}
    path = tmp_path / "two.png"
    ax.figure.savefig(path)
    assert path.stat().st_size > 20_000


def test_regions_are_the_predictions(iris):
    X, y = iris.data.to_numpy()[:, :2], iris.target.to_numpy()
    model = SVC(gamma=2.0).fit(X, y)
    ax = plot.boundary(model, X, y, resolution=30)
    (image,) = ax.images
    left, right, bottom, top = image.get_extent()
    u, v = np.linspace(left, right, 30), np.linspace(bottom, top, 30)
    for row, column in [(0, 0), (7, 22), (15, 15), (29, 3)]:
        assert image.get_array()[row, column] == model.predict([[u[column], v[row]]])[0]


def test_boundary_line_is_where_the_score_is_zero():
    X, y = np.array([[0.0, 0.0], [1.0, 3.0], [4.0, 1.0], [5.0, 4.0]]), np.array([0, 0, 1, 1])
    model = RidgeWithMargin().fit(X, y)
    ax = plot.boundary(model, X, y)
    lines = [mark for mark in ax.collections if hasattr(mark, "levels")]
    levels = sorted(level for mark in lines for level in mark.levels)
    assert levels == [-0.5, 0.0, 0.5]
    for mark in lines:
        for level, path in zip(mark.levels, mark.get_paths(), strict=True):
            assert len(path.vertices) > 1
            np.testing.assert_allclose(model.decision_function(path.vertices), level, atol=1e-9)


def test_three_classes_show_disputed_ground(iris):
    X, y = iris.data.to_numpy()[:, :2], iris.target_names[iris.target]
    ax = plot.boundary(RidgeWithMargin().fit(X, y), X, y, names=["sepal length", "sepal width"])
    texts = legend_texts(ax)
    assert texts[:3] == ["setosa", "versicolor", "virginica"]
    assert texts[-2:] == ["boundary", "claimed by none or several"]
    assert ax.get_xlabel() == "sepal length"
    markers = {
        mark.get_paths()[0].vertices.tobytes() for name, mark in points(ax).items() if name != "misclassified"
    }
    colours = {tuple(mark.get_facecolor()[0]) for name, mark in points(ax).items() if name != "misclassified"}
    assert len(markers) == len(colours) == 3


def test_joint_models_and_models_without_scores_have_no_disputed_ground(iris):
    X, y = iris.data.to_numpy()[:, :2], iris.target.to_numpy()
    joint = RidgeWithMargin().fit(X, y)
    joint.multiclass = "joint"
    for model in (joint, KNeighborsClassifier().fit(X, y)):
        texts = legend_texts(plot.boundary(model, X, y, resolution=60))
        assert "boundary" in texts
        assert "claimed by none or several" not in texts


def test_more_features_use_the_principal_plane(iris):
    X, y = iris.data.to_numpy(), iris.target.to_numpy()
    model = make_pipeline(StandardScaler(), RidgeClassifier()).fit(X, y)
    ax = plot.boundary(model, X, y, resolution=40)
    centred = X - X.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    shares = singular**2 / (singular**2).sum()
    assert ax.get_xlabel() == f"principal direction 1 ({shares[0]:.1%} of variance)"
    assert ax.get_ylabel() == f"principal direction 2 ({shares[1]:.1%} of variance)"
    drawn = np.asarray(points(ax)["0"].get_offsets())
    np.testing.assert_allclose(np.abs(drawn), np.abs((centred @ directions[:2].T)[y == 0]), atol=1e-9)
    # The corner of the picture is the prediction for that point of the plane in the space of the features.
    (image,) = ax.images
    left, _, bottom, _ = image.get_extent()
    signs = np.sign(directions[[0, 1], np.abs(directions[:2]).argmax(axis=1)])
    corner = X.mean(axis=0) + np.array([left, bottom]) @ (directions[:2] * signs[:, None])
    assert image.get_array()[0, 0] == model.predict(corner[None])[0]


def test_wide_data_sparse_and_dense_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1200)) * (rng.random((60, 1200)) < 0.05)
    X[:, 0] += 30 * rng.normal(size=60)
    X[:, 7] += 10 * rng.normal(size=60)
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = KNeighborsClassifier(algorithm="brute").fit(X, y)
    dense = plot.boundary(model, X, y, resolution=20)
    from_sparse = plot.boundary(model, sparse.csr_matrix(X), y, resolution=20)
    narrower = KNeighborsClassifier(algorithm="brute").fit(X[:, :900], y)
    narrow = plot.boundary(narrower, X[:, :900], y, resolution=20)
    assert dense.get_xlabel() == from_sparse.get_xlabel()
    np.testing.assert_array_equal(dense.images[0].get_array(), from_sparse.images[0].get_array())
    np.testing.assert_allclose(dense.get_xlim(), narrow.get_xlim(), rtol=0.01)


def test_many_points_are_thinned_and_it_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=12_000) > 0).astype(int)
    model = RidgeClassifier().fit(X, y)
    ax = plot.boundary(model, X, y, resolution=20)
    assert [text.get_text() for text in ax.texts] == [
        "5,000 of 12,000 points drawn, marks on 300 of each kind"
    ]
    assert len(points(ax)["misclassified"].get_offsets()) == 300
    drawn = {name: len(mark.get_offsets()) for name, mark in points(ax).items()}
    assert drawn["0"] + drawn["1"] == 5000
    wrong = (model.predict(X) != y).sum()
    assert f"misclassified ({wrong:,} of 12,000)" in legend_texts(ax)


def test_few_points_need_no_note(iris):
    X, y = iris.data.to_numpy()[:, :2], iris.target.to_numpy()
    assert not plot.boundary(RidgeClassifier().fit(X, y), X, y, resolution=10).texts


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame,
        lambda frame: pl.DataFrame(frame.to_dict("list")),
        pa.Table.from_pandas,
        np.asarray,
        lambda frame: frame.to_numpy(np.float32),
        lambda frame: frame.to_numpy().tolist(),
    ],
    ids=["pandas", "polars", "arrow", "numpy", "float32", "list"],
)
def test_tables_and_arrays_draw_the_same(iris, table):
    frame = iris.data.iloc[:, [0, 2]]

    class Spy(RidgeClassifier):
        seen = []  # noqa: RUF012 (shared on purpose: the kinds of input that predict got)

        def predict(self, X):
            self.seen.append(type(X))
            return super().predict(np.asarray(X) if not isinstance(X, pa.Table) else X.to_pandas().to_numpy())

        def decision_function(self, X):
            if isinstance(X, pa.Table):
                X = X.to_pandas()
            return super().decision_function(np.asarray(X))

    model = Spy().fit(frame.to_numpy(), iris.target)
    given = table(frame)
    ax = plot.boundary(model, given, iris.target, resolution=15)
    reference = plot.boundary(model, frame.to_numpy(), iris.target, resolution=15)
    np.testing.assert_array_equal(ax.images[0].get_array(), reference.images[0].get_array())
    if hasattr(given, "columns"):
        assert model.seen[1] is type(given)  # the grid comes in the kind of table that the user gave
        assert ax.get_xlabel() == "sepal length (cm)"
    else:
        assert ax.get_xlabel() == "feature 0"


def test_draws_into_given_axes_and_leaves_pyplot_alone(iris):
    import matplotlib.pyplot as plt

    X, y = iris.data.to_numpy()[:, :2], iris.target.to_numpy()
    own = Figure().subplots()
    assert plot.boundary(RidgeClassifier().fit(X, y), X, y, ax=own, resolution=10) is own
    plot.boundary(RidgeClassifier().fit(X, y), X, y, resolution=10)
    assert plt.get_fignums() == []


def test_classes_the_model_never_saw_are_drawn_as_wrong(iris):
    X, y = iris.data.to_numpy()[:, :2], iris.target.to_numpy()
    model = RidgeClassifier().fit(X[:100], y[:100])
    texts = legend_texts(plot.boundary(model, X, y, resolution=10))
    assert texts[:3] == ["0", "1", "2"]
    wrong = (model.predict(X) != y).sum()
    assert wrong >= 50
    assert f"misclassified ({wrong} of 150)" in texts


def test_constant_features_and_one_sided_models_still_draw():
    X = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 4.0]])
    y = np.array([0, 1, 1])

    class AlwaysOne:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.ones(len(X), dtype=int)

    ax = plot.boundary(AlwaysOne(), X, y, resolution=10)
    assert legend_texts(ax) == ["0", "1", "misclassified (1 of 3)"]


def test_legend_is_outside_the_data(iris):
    X, y = iris.data.to_numpy()[:, :2], iris.target.to_numpy()
    ax = plot.boundary(RidgeClassifier().fit(X, y), X, y, resolution=10)
    ax.figure.canvas.draw()
    legend, data, page = ax.get_legend().get_window_extent(), ax.get_window_extent(), ax.figure.bbox
    assert legend.x0 >= data.x1
    assert legend.x1 <= page.x1


def test_bad_input():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    model = RidgeClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"y must have one class per row of X: shape \(20,\), not \(5,\)"):
        plot.boundary(model, X, y[:5])
    with pytest.raises(ValueError, match="names must name each of the 3 features; it has 2"):
        plot.boundary(model, X, y, names=["a", "b"])
    with pytest.raises(ValueError, match="at least two features"):
        plot.boundary(RidgeClassifier().fit(X[:, :1], y), X[:, :1], y)
    with pytest.raises(ValueError, match="no samples"):
        plot.boundary(model, X[:0], y[:0])
    with pytest.raises(ValueError, match="resolution must be at least 2"):
        plot.boundary(model, X, y, resolution=1)
    with pytest.raises(ValueError, match="two dimensions"):
        plot.boundary(model, X[0], y)
    with pytest.raises(TypeError, match="leave out or encode columns of text"):
        plot.boundary(model, pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), [0, 1])
    with pytest.raises(NotFittedError):
        plot.boundary(RidgeClassifier(), X, y)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "joint"])
def test_perceptrons_of_every_coding(iris, multiclass):
    X, y = iris.data.iloc[:, [2, 3]], iris.target_names[iris.target]
    perceptron = Perceptron(multiclass=multiclass, margin=0.5, max_iter=20, tol=None)
    model = make_pipeline(StandardScaler(), perceptron)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    ax = plot.boundary(model, X, y, resolution=80)
    assert "boundary" in legend_texts(ax)
    assert set(np.unique(ax.images[0].get_array())) == {0, 1, 2}
    assert ("claimed by none or several" in legend_texts(ax)) == (multiclass == "ovr")


def test_binary_perceptron_with_a_margin_shows_it(iris):
    X, y = iris.data.to_numpy()[:100, :2], iris.target.to_numpy()[:100]
    model = Perceptron(margin=2.0).fit(X, y)
    texts = legend_texts(plot.boundary(model, X, y, resolution=50))
    assert texts[-2:] == ["boundary", "score = ±2 (margin)"]


def test_kernel_perceptron_bends_its_boundary():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.where((X**2).sum(axis=1) > 1.2, "outside", "inside")
    model = KernelPerceptron(kernel="rbf", gamma=1.0).fit(X, y)
    ax = plot.boundary(model, X, y, resolution=60)
    (line,) = [mark for mark in ax.collections if hasattr(mark, "levels")]
    radii = np.linalg.norm(line.get_paths()[0].vertices, axis=1)
    assert radii.min() > 0.6
    assert radii[radii < 2].size > 30


def test_a_flat_boundary_is_seen_from_the_side():
    """Two classes, a linear score, more than two features: the first axis is the score itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) * [1, 2, 3, 10, 0.1, 5]
    y = (X[:, 0] + X[:, 4] > 0).astype(int)
    model = make_pipeline(StandardScaler(), Perceptron(max_iter=20, tol=None)).fit(X, y)
    ax = plot.boundary(model, X, y, resolution=40)
    assert ax.get_xlabel() == "across the boundary"
    assert ax.get_ylabel().startswith("main direction along the boundary")
    across = np.concatenate([np.asarray(points(ax)[name].get_offsets())[:, 0] for name in ("0", "1")])
    scores = np.concatenate([model.decision_function(X[y == k]) for k in (0, 1)])
    assert np.corrcoef(across, scores)[0, 1] == pytest.approx(1.0)
    curved = KernelPerceptron().fit(X, y)
    assert plot.boundary(curved, X, y, resolution=40).get_xlabel().startswith("principal direction 1")
