"""ONNX files against onnxruntime, for every model and kernel that ONNX can express."""

import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import separatrix as sx
from separatrix.data.files import read
from separatrix.kernels import RBF, AnovaRBF, Laplacian, Linear, Polynomial, Spectrum
from separatrix.persistence import ModelFileError, _onnx
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
    np.testing.assert_allclose(found["scores"], model.decision_function(X), rtol=1e-8, atol=1e-8)
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


@pytest.mark.parametrize("cls", [sx.SVC, sx.NuSVC, sx.LinearSVC])
def test_calibrated_probabilities_of_two_classes(cls, heart, iris, tmp_path):
    X, y = heart
    model = cls(probability=True).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx")
    found = outputs(tmp_path / "m.onnx", X)["probabilities"]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)
    export_onnx(cls(probability=True).fit(*iris), tmp_path / "m.onnx")
    assert set(outputs(tmp_path / "m.onnx", iris[0])) == {"label", "scores"}


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
        (sx.SVC(kernel="bessel").fit(X, y), "Bessel"),
        (sx.SVC(kernel=Spectrum(2)).fit(texts, [0, 0, 1, 1]), "Spectrum"),
        (sx.KNeighborsClassifier().fit(X, y), "KNeighborsClassifier"),
        (make_pipeline(MinMaxScaler(), sx.LinearSVC()).fit(X, y), "MinMaxScaler"),
    ]:
        with pytest.raises(ModelFileError, match=words):
            export_onnx(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_graph_is_not_written(heart, tmp_path, monkeypatch):
    X, y = heart
    model = sx.LogisticRegression().fit(X, y)
    right = _onnx._columns
    monkeypatch.setattr(
        _onnx, "_columns", lambda graph, model, X: graph.add("Mul", right(graph, model, X), 1.001)
    )
    with pytest.raises(ModelFileError, match="scores differ by"):
        export_onnx(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra(heart, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"separatrix\[onnx\]"):
        export_onnx(sx.LogisticRegression().fit(*heart), tmp_path / "m.onnx")


def test_convert(heart, tmp_path):
    from separatrix.cli import main

    X, y = heart
    sx.save(sx.SVC().fit(X, y), tmp_path / "m.sx")
    assert main(["convert", str(tmp_path / "m.sx"), str(tmp_path / "m.onnx")]) == 0
    np.testing.assert_array_equal(
        outputs(tmp_path / "m.onnx", X)["label"], sx.load(tmp_path / "m.sx").predict(X)
    )
    assert main(["convert", str(tmp_path / "m.onnx"), str(tmp_path / "n.sx")]) == 2
