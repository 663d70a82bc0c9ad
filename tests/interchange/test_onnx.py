"""ONNX files against onnxruntime, for every model and kernel that ONNX can express."""

import json
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import separatrix as sx
from separatrix.data.files import read
from separatrix.kernels import RBF, AnovaRBF, Bessel, Laplacian, Linear, Polynomial, Spectrum
from separatrix.persistence import ModelFileError, _onnx_models
from separatrix.persistence.interchange import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")

MODELS = {
    "perceptron": sx.Perceptron(),
    "perceptron ovo": sx.Perceptron(multiclass="ovo"),
    "ridge": sx.RidgeClassifier(),
    "least squares": sx.LeastSquaresClassifier(),
    "logistic": sx.LogisticRegression(),
    "logistic ovr": sx.LogisticRegression(multiclass="ovr"),
    "sgd": sx.SGDClassifier(loss="log_loss", random_state=0),
    "sgd hinge": sx.SGDClassifier(random_state=0),
    "lda": sx.LinearDiscriminantAnalysis(),
    "qda": sx.QuadraticDiscriminantAnalysis(),
    "gaussian": sx.GaussianClassifier(),
    "gaussian full": sx.GaussianClassifier(covariance="full"),
    "linear svc": sx.LinearSVC(),
    "linear svc ovo": sx.LinearSVC(multiclass="ovo"),
    "svc": sx.SVC(),
    "svc ovr": sx.SVC(multiclass="ovr"),
    "svc joint": sx.SVC(multiclass="joint"),
    "nu": sx.NuSVC(nu=0.2),
    "one class": sx.OneClassSVM(),
    "kernel perceptron": sx.KernelPerceptron(),
    "svr": sx.SVR(),
    "nu svr": sx.NuSVR(),
    "linear svr": sx.LinearSVR(),
    "sgd regressor": sx.SGDRegressor(random_state=0),
    "linear kernel": sx.SVC(kernel="linear"),
    "poly": sx.SVC(kernel="poly"),
    "sigmoid": sx.SVC(kernel="sigmoid", gamma=0.01),
    "laplacian": sx.SVC(kernel=Laplacian(0.3)),
    "anova": sx.SVC(kernel=AnovaRBF(0.5, 2)),
    "composed": sx.SVC(kernel=RBF(0.1) + 0.3 * Linear() + 0.7 * Linear() * RBF(0.2) + Polynomial(2) ** 2),
    "bessel": sx.SVC(kernel=Bessel(0.7, 1.0, 1)),
    "bessel far": sx.SVC(kernel=Bessel(400.0, 0.0, 2), C=0.1),
    "neighbours": sx.KNeighborsClassifier(),
    "neighbours by distance": sx.KNeighborsClassifier(9, weights="distance", metric="manhattan"),
    "neighbours, regression": sx.KNeighborsRegressor(3),
    "neighbours, weighted regression": sx.KNeighborsRegressor(4, weights="distance", p=3),
    "scaled": make_pipeline(StandardScaler(), sx.SVC()),
}


def outputs(path, X):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X}), strict=True))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("data", ["heart", "iris"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_onnxruntime_predicts_as_the_model(name, data, request, tmp_path):
    X, y = request.getfixturevalue(data)
    model = clone(MODELS[name]).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx")
    found = outputs(tmp_path / "m.onnx", X)
    if "prediction" in found:
        np.testing.assert_allclose(found["prediction"], model.predict(X), rtol=1e-9, atol=1e-9)
        return
    np.testing.assert_array_equal(found["label"], model.predict(X))
    assert ("scores" in found) == hasattr(model, "decision_function")
    if "scores" in found:
        np.testing.assert_allclose(found["scores"], model.decision_function(X), rtol=1e-8, atol=1e-8)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-9)


def test_labels_of_any_kind_and_single_precision_input(iris, tmp_path):
    X, y = iris
    names = np.array(["one", "two", "three"])[y - 1]
    model = sx.SVC().fit(X, names)
    export_onnx(model, tmp_path / "m.onnx", dtype="float32")
    found = outputs(tmp_path / "m.onnx", X.astype(np.float32))
    assert np.mean(found["label"] == model.predict(X)) > 0.99
    export_onnx(sx.LogisticRegression().fit(X, y == 1), tmp_path / "b.onnx", X=X)
    np.testing.assert_array_equal(outputs(tmp_path / "b.onnx", X)["label"], y == 1)


def test_models_of_the_command_line(root, tmp_path):
    from separatrix.cli import main

    file = root / "tests" / "data" / "iris.csv"
    assert main(["fit", str(file), "--model", "svc", "--save", str(tmp_path / "m.sx"), "--quiet"]) == 0
    assert main(["convert", str(tmp_path / "m.sx"), str(tmp_path / "m.onnx")]) == 0
    X, _, y = read(file, target=file.read_text().splitlines()[0].split(",")[-1])
    assert np.mean(outputs(tmp_path / "m.onnx", X)["label"] == y) > 0.9


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("cls", [sx.SVC, sx.LinearSVC])
@pytest.mark.parametrize("data", ["heart", "iris"])
def test_calibrated_probabilities(cls, multiclass, data, request, tmp_path):
    X, y = request.getfixturevalue(data)
    model = cls(probability=True, multiclass=multiclass).fit(X, y)
    random = np.random.default_rng(0)
    wide = X.mean(axis=0) + 2 * X.std(axis=0) * random.normal(size=(500, X.shape[1]))
    export_onnx(model, tmp_path / "m.onnx", X=wide)
    found = outputs(tmp_path / "m.onnx", wide)["probabilities"]
    np.testing.assert_allclose(found, model.predict_proba(wide), atol=1e-10)


def test_probabilities_that_contradict_the_decision(iris, tmp_path):
    X, y = iris
    model = sx.NuSVC(nu=0.3, probability=True).fit(X, y)
    model._probB += np.array([3.0, -2.0, 4.0])  # the sigmoids now cross 1/2 far from the boundaries
    export_onnx(model, tmp_path / "m.onnx", X=X)
    found = outputs(tmp_path / "m.onnx", X)["probabilities"]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-10)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("break_ties", [False, True])
def test_equal_votes(break_ties, tmp_path):
    random = np.random.default_rng(1)
    X, y, new = random.normal(size=(40, 2)), np.arange(40) % 4, random.normal(size=(400, 2))
    model = sx.SVC(gamma=1.0, break_ties=break_ties, probability=True).fit(X, y)
    assert (model.decision_function(new).argmax(axis=1) == model.predict(new)).all() == break_ties
    export_onnx(model, tmp_path / "m.onnx", X=new)
    found = outputs(tmp_path / "m.onnx", new)
    np.testing.assert_array_equal(found["label"], model.predict(new))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(new), atol=1e-10)


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 7.3])
def test_bessel_functions_near_and_far(order, tmp_path):
    z = np.concatenate([np.linspace(0.0, 260.0, 4001), [1e3, 1e5]])[:, None]
    model = sx.SVC(kernel=Bessel(1.0, order, 1)).fit([[0.0], [1.0]], [0, 1])
    export_onnx(model, tmp_path / "m.onnx", X=z)
    found = outputs(tmp_path / "m.onnx", z)["scores"]
    np.testing.assert_allclose(found, model.decision_function(z), atol=1e-12)


METRICS = [
    dict(metric="chebyshev"),
    dict(metric="sqeuclidean", weights="distance"),
    dict(metric="minkowski", p=1.5, weights="distance"),
    dict(metric="minkowski", p=3, metric_params={"w": np.arange(1.0, 5.0)}),
    dict(metric="cosine", weights="distance"),
    dict(metric=RBF(0.3), weights="distance"),
    dict(metric=Linear(), weights="distance"),
    dict(metric=Laplacian(0.2) + 0.1 * Polynomial(2) + AnovaRBF(0.1, 2), weights="distance"),
    dict(n_neighbors=150),
]


@pytest.mark.parametrize("options", METRICS, ids=lambda options: str(options.get("metric", "all")))
def test_metrics_of_neighbours(options, iris, tmp_path):
    X, y = iris
    X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # no two distances are equal
    model = sx.KNeighborsClassifier(**options).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx")
    found = outputs(tmp_path / "m.onnx", X + 0.01)
    np.testing.assert_array_equal(found["label"], model.predict(X + 0.01))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X + 0.01), atol=1e-7)


def test_equal_distances_go_by_rows_and_equal_votes_by_classes(tmp_path):
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 0.0], [2.0, 2.0]])
    for k in (1, 2, 3, 4):
        model = sx.KNeighborsClassifier(k).fit(X, ["b", "a", "a", "b"])
        export_onnx(model, tmp_path / "m.onnx")
        asked = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
        np.testing.assert_array_equal(outputs(tmp_path / "m.onnx", asked)["label"], model.predict(asked))


def test_precomputed_and_sparse_neighbours(heart, tmp_path):
    X, y = heart
    D = np.abs(X[:, None] - X[None]).sum(axis=2)
    model = sx.KNeighborsClassifier(metric="precomputed").fit(D, y)
    export_onnx(model, tmp_path / "m.onnx")
    np.testing.assert_array_equal(outputs(tmp_path / "m.onnx", D)["label"], model.predict(D))
    model = sx.KNeighborsClassifier().fit(sparse.csr_array(X), y)
    export_onnx(model, tmp_path / "s.onnx", X=sparse.csr_array(X))
    np.testing.assert_array_equal(outputs(tmp_path / "s.onnx", X)["label"], model.predict(X))


def named(path, table):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {}
    for value in session.get_inputs():
        kind = object if value.type == "tensor(string)" else np.float64
        feeds[value.name] = np.asarray(table[value.name]).astype(kind)[:, None]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.parametrize("missing", ["drop", "mean"])
@pytest.mark.parametrize("model", ["logistic", "knn", "gaussian"])
def test_tables_with_text_columns(model, missing, tmp_path):
    from separatrix.cli import main

    random = np.random.default_rng(0)
    rows = ["height,colour,kind of wood,weight,class"]
    for _ in range(120):
        a, b = random.normal(), random.normal() * 1000
        colour, wood = random.choice(["red", "bl\u00fce", "NA"]), random.choice(["oak", "ash"])
        rows.append(f"{a:.3f},{colour},{wood},{b:.1f},{'yes' if a + (wood == 'oak') > 0.3 else 'no'}")
    file, saved, exported = (tmp_path / name for name in ("t.csv", "m.sx", "m.onnx"))
    file.write_text("\n".join(rows) + "\n")
    options = ["--missing", missing, "--model", model, "--save", str(saved), "--quiet"]
    assert main(["fit", str(file), *options]) == 0
    assert main(["convert", str(saved), str(exported)]) == 0
    table, _, _ = read(file, target="class", missing="keep" if missing == "mean" else "drop")
    found, loaded = named(exported, table), sx.load(saved)
    np.testing.assert_array_equal(found["label"], loaded.predict(table))
    np.testing.assert_allclose(found["probabilities"], loaded.predict_proba(table), atol=1e-10)


def test_columns_by_number_and_categories_of_numbers(iris, tmp_path):
    X, y = iris
    X = np.column_stack([X, np.arange(len(X)) % 3])
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), [4]), (StandardScaler(), [0, 2]), ("passthrough", [1])
    )
    model = make_pipeline(columns, sx.LogisticRegression()).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx", X=X)
    np.testing.assert_allclose(
        outputs(tmp_path / "m.onnx", X)["probabilities"], model.predict_proba(X), atol=1e-12
    )


def test_missing_values(iris, tmp_path):
    X, y = iris
    holes = X.copy()
    holes[::7, 1] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), sx.LogisticRegression()).fit(holes, y)
    export_onnx(model, tmp_path / "m.onnx", X=holes)
    found = outputs(tmp_path / "m.onnx", holes)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(holes), atol=1e-12)


def test_one_feature(tmp_path):
    X = np.linspace(0.1, 3.7, 40)[:, None]
    model = make_pipeline(StandardScaler(), sx.LogisticRegression()).fit(X, np.arange(40) > 17)
    export_onnx(model, tmp_path / "m.onnx")
    np.testing.assert_allclose(
        outputs(tmp_path / "m.onnx", X)["probabilities"], model.predict_proba(X), rtol=1e-12
    )


def test_sparse_and_precomputed(heart, tmp_path):
    X, y = heart
    model = sx.SVC().fit(sparse.csr_array(X), y)
    export_onnx(model, tmp_path / "s.onnx")
    np.testing.assert_array_equal(outputs(tmp_path / "s.onnx", X)["label"], model.predict(X))
    K = X @ X.T
    model = sx.SVC(kernel="precomputed").fit(K, y)
    export_onnx(model, tmp_path / "p.onnx")
    np.testing.assert_array_equal(outputs(tmp_path / "p.onnx", K)["label"], model.predict(K))


def test_single_precision_models(heart, tmp_path):
    X, y = heart
    model = sx.LogisticRegression().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    export_onnx(model, tmp_path / "m.onnx", dtype="float32")
    found = outputs(tmp_path / "m.onnx", X.astype(np.float32))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X.astype(np.float32)), atol=1e-5)


def test_what_onnx_cannot_express_is_refused(iris, tmp_path):
    X, y = iris
    texts = ["ab", "abab", "cd", "cdcd"]
    for model, words in [
        (sx.SVC(kernel=Bessel(1.0, 40.0)).fit(X, y), "up to order 12"),
        (sx.SVC(kernel=Spectrum(2)).fit(texts, [0, 0, 1, 1]), "no operators that compare texts"),
        (sx.KNeighborsClassifier(metric="canberra").fit(X, y), "canberra"),
        (sx.KNeighborsClassifier(weights=lambda d: 1 + d).fit(X, y), "weights=function"),
        (sx.KNeighborsRegressor().fit(X, np.c_[y, y]), "several outputs"),
        (make_pipeline(OneHotEncoder(), sx.LinearSVC()).fit(X, y), "handle_unknown='ignore'"),
        (make_pipeline(MinMaxScaler(), sx.LinearSVC()).fit(X, y), "MinMaxScaler"),
    ]:
        with pytest.raises(ModelFileError, match=words):
            export_onnx(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_graph_is_not_written(heart, tmp_path, monkeypatch):
    X, y = heart
    model = sx.LogisticRegression().fit(X, y)
    right = _onnx_models.columns_of
    monkeypatch.setattr(
        _onnx_models, "columns_of", lambda graph, model, X: graph.add("Mul", right(graph, model, X), 1.001)
    )
    with pytest.raises(ModelFileError, match="scores differ by"):
        export_onnx(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra(heart, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"separatrix\[onnx\]"):
        export_onnx(sx.LogisticRegression().fit(*heart), tmp_path / "m.onnx")


def test_convert(heart, tmp_path, capsys):
    from separatrix.cli import main

    X, y = heart
    sx.save(sx.SVC().fit(X, y), tmp_path / "m.sx")
    read, written = str(tmp_path / "m.sx"), str(tmp_path / "m.onnx")
    assert main(["convert", read, written, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"model": "SVC", "read": read, "written": written}
    np.testing.assert_array_equal(
        outputs(tmp_path / "m.onnx", X)["label"], sx.load(tmp_path / "m.sx").predict(X)
    )
    assert main(["convert", str(tmp_path / "m.onnx"), str(tmp_path / "n.sx")]) == 2
