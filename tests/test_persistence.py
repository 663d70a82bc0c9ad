"""Model files: what is saved comes back the same, and nothing else comes back at all."""

import json
import os

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import separatrix as sx
from separatrix import kernels, persistence
from separatrix.models._records import Columns
from separatrix.persistence import atomic_write
from separatrix.persistence._values import Store, decode, encode


def final_step(model):
    return model.steps[-1][1] if hasattr(model, "steps") else model


def assert_same(first, second):
    """Equal in value, type, dtype and memory order."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        assert first.shape == second.shape
        assert first.flags.f_contiguous == second.flags.f_contiguous
        assert second.flags.writeable
        np.testing.assert_array_equal(first, second)
    elif sparse.issparse(first):
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(first, part), getattr(second, part))
        assert first.shape == second.shape
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for left, right in zip(first, second, strict=True):
            assert_same(left, right)
    elif isinstance(first, dict):
        assert_same(list(first.items()), list(second.items()))
    else:
        assert first == second or (first != first and second != second)


def assert_round_trip(model, X, path):
    """Save, load, and compare everything a user can see."""
    sx.save(model, path)
    loaded = sx.load(path)
    assert type(loaded) is type(model)
    before, after = final_step(model), final_step(loaded)
    assert_same(before.get_params(deep=False), after.get_params(deep=False))
    public = {name for name in vars(before) if name.endswith("_") and not name.startswith("_")}
    assert public == {name for name in vars(after) if name.endswith("_")}
    for name in public:
        assert_same(getattr(before, name), getattr(after, name))
    assert str(before.certificate_) == str(after.certificate_)
    assert_same(model.predict(X), loaded.predict(X))
    assert_same(model.decision_function(X), loaded.decision_function(X))
    return loaded


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "joint"])
@pytest.mark.parametrize("keep", ["best", "last", "average"])
@pytest.mark.parametrize("cls", [sx.Perceptron, sx.KernelPerceptron])
def test_every_mode(three_classes, path, cls, multiclass, keep):
    X, y = three_classes
    model = cls(multiclass=multiclass, keep=keep, margin=0.5, max_iter=20, tol=None).fit(X, y)
    assert_round_trip(model, X, path)


@pytest.mark.parametrize("cls", [sx.Perceptron, sx.KernelPerceptron])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "make", [np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix, sparse.csr_array]
)
def test_every_kind_of_data(separable, path, cls, dtype, make):
    X, y = separable
    X = make(X.astype(dtype))
    assert_round_trip(cls().fit(X, y), X, path)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes, «ja»\n"], dtype=object),
        np.array([-1.0, 1.0], dtype=np.float32),
        np.array([False, True]),
        np.array([3, 2**40]),
        np.array([1, 2], dtype=np.uint8),
    ],
    ids=["text", "objects", "float32", "bool", "int64", "uint8"],
)
def test_every_kind_of_label(separable, path, labels):
    X, y = separable
    assert_round_trip(sx.Perceptron().fit(X, labels[y]), X, path)


@pytest.mark.parametrize(
    "weights", ["balanced", {0: 1.0, 1: 2.5}, {np.int64(0): 1, np.int64(1): np.float32(2)}], ids=str
)
def test_class_weights_keep_the_types_of_their_keys(separable, path, weights):
    X, y = separable
    assert_round_trip(sx.Perceptron(class_weight=weights).fit(X, y), X, path)


@pytest.mark.parametrize(
    "kernel",
    [
        "rbf",
        "linear",
        "poly",
        kernels.RBF(gamma=0.5),
        kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0),
        kernels.Linear(),
    ],
    ids=str,
)
def test_every_kernel(separable, path, kernel):
    X, y = separable
    assert_round_trip(sx.KernelPerceptron(kernel=kernel).fit(X, y), X, path)


def test_pipeline_and_names(three_classes, path):
    pandas = pytest.importorskip("pandas")
    X, y = three_classes
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    model = make_pipeline(StandardScaler(), sx.Perceptron(margin=1.0)).fit(frame, y)
    loaded = assert_round_trip(model, frame, path)
    assert_same(model[0].scale_, loaded[0].scale_)
    assert list(loaded.feature_names_in_) == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        float("-inf"),
        float("nan"),
        (1, 2.5, None),
        [{"a": [1, (2,)]}, {1: "b", "1": "c", None: True}],
        [
            {"pass": 1, "loss": 0.5, "none": None, "ok": True},
            {"pass": 2, "loss": 0.25, "none": None, "ok": False},
        ],
        [{"pass": 1}, {"pass": 2.0}],
        [{"none": None}, {"none": None}],
        [{}, {}],
        [],
        np.float32(0.1),
        np.float64("inf"),
        np.array(3.0),
        np.zeros((0, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([["a", "bcd"], ["", "e"]]),
        np.array([["a", "\U0001f41d" * 3000], *[["", "e"]] * 100]),
        np.array(["text", 1, None, 2.5, (1, 2)], dtype=object),
        10**30,
    ],
    ids=repr,
)
def test_every_kind_of_value(value):
    tensors = {}
    described = json.dumps(encode(value, "key", tensors), allow_nan=False)
    found = decode(json.loads(described), Store(tensors))
    assert_same(value, found.rows() if isinstance(found, Columns) else found)


@pytest.mark.parametrize("keep", ["last", "average"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_loaded_model_learns_on(three_classes, path, method, keep):
    X, y = three_classes
    model = sx.Perceptron(warm_start=True, keep=keep, max_iter=5, tol=None).fit(X, y)
    sx.save(model, path)
    loaded = sx.load(path)
    getattr(model, method)(X[::-1], y[::-1])
    getattr(loaded, method)(X[::-1], y[::-1])
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


def test_a_long_history_stays_small(separable, path):
    X, y = separable
    model = sx.Perceptron().fit(X, y)
    model.history_ = [{**model.history_[0], "iteration": number} for number in range(100_000)]
    sx.save(model, path)
    assert path.stat().st_size < 100_000 * (8 * len(model.history_[0]) + 1)
    assert sx.load(path).history_ == model.history_


def test_sparsified_weights(three_classes, path):
    X, y = three_classes
    model = sx.Perceptron(max_iter=5, tol=None).fit(X, y).sparsify()
    assert sparse.issparse(assert_round_trip(model, X, path).coef_)


LATER_FAMILIES = [
    lambda: sx.GaussianClassifier(),
    lambda: sx.GaussianClassifier(covariance="diagonal", shrinkage=0.1),
    lambda: sx.LeastSquaresClassifier(),
    lambda: sx.LinearDiscriminantAnalysis(),
    lambda: sx.LogisticRegression(),
    lambda: sx.LogisticRegression(C=np.inf),
    lambda: sx.LogisticRegression(l1_ratio=1.0, multiclass="ovr"),
    lambda: sx.QuadraticDiscriminantAnalysis(),
    lambda: sx.RidgeClassifier(),
    lambda: sx.SGDClassifier(),
    lambda: sx.SGDClassifier(loss="log_loss", average=True),
    lambda: sx.LinearSVC(),
    lambda: sx.LinearSVC(loss="hinge", multiclass="ovo", C=0.5),
    lambda: sx.SVC(),
    lambda: sx.SVC(kernel="linear", multiclass="joint"),
    lambda: sx.SVC(kernel=kernels.RBF(0.1) + 0.5 * kernels.Polynomial(3), multiclass="ovr"),
    lambda: sx.NuSVC(nu=0.2),
]


@pytest.mark.parametrize("build", LATER_FAMILIES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_family_comes_back_to_the_last_bit(build, n_classes, path):
    rng = np.random.default_rng(n_classes)
    y = np.arange(60) % n_classes
    X = 4.0 * rng.standard_normal((n_classes, 3))[y] + rng.standard_normal((60, 3))
    labels = np.array(["ash", "beech", "cedar"])[y]
    model = build().fit(X, labels)
    sx.save(model, path)
    again = sx.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_.as_dict() == model.certificate_.as_dict()
    assert again.get_params() == model.get_params()
    if getattr(model, "separation_", None) is not None:
        assert again.separation_.message(again.classes_) == model.separation_.message(model.classes_)
        np.testing.assert_array_equal(again.separation_.coef, model.separation_.coef)


@pytest.mark.parametrize(
    "build",
    [
        lambda: sx.KNeighborsClassifier(3),
        lambda: sx.KNeighborsRegressor(3, weights="distance"),
        lambda: sx.LinearSVR(),
        lambda: sx.NuSVR(),
        lambda: sx.OneClassSVM(nu=0.2),
        lambda: sx.SGDRegressor(),
        lambda: sx.SVR(epsilon=0.2),
    ],
)
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_no_classes_comes_back_too(build, as_sparse, path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(float)
    X = sparse.csr_matrix(X) if as_sparse else X
    model = build().fit(X, y)
    sx.save(model, path)
    again = sx.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()


def test_machines_on_four_classes_on_texts_and_on_a_matrix_come_back(path):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    X = 2.0 * rng.standard_normal((4, 3))[y] + rng.standard_normal((80, 3))
    texts = ["".join(rng.choice(list("ab" if label < 2 else "bc"), 12)) for label in y]
    for model, samples in (
        (sx.SVC(), X),
        (sx.SVC(decision_function_shape="ovo"), X),
        (sx.SVC(kernel="precomputed"), X @ X.T),
        (sx.SVC(kernel=kernels.Spectrum(2)), texts),
    ):
        model.fit(samples, y)
        sx.save(model, path)
        again = sx.load(path)
        np.testing.assert_array_equal(again.decision_function(samples), model.decision_function(samples))
        np.testing.assert_array_equal(again.n_support_, model.n_support_)


# ------------------------------------------------------------------------------------------- writing files


def test_a_failing_write_leaves_the_old_file(separable, path, monkeypatch):
    def full(tensors, name, metadata):
        with open(name, "wb") as file:
            file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="No space"):
        sx.save(sx.Perceptron().fit(*separable), path)
    assert path.read_bytes() == b"old"


def test_interrupted_write(path):
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as temporary:
        with open(temporary, "w") as file:
            file.write("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"


def test_permissions_and_links(path, tmp_path):
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.sx"
    link.symlink_to(path)
    with atomic_write(link) as temporary, open(temporary, "w") as file:
        file.write("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_devices_are_not_replaced(separable):
    with pytest.raises(OSError, match="regular file"):
        sx.save(sx.Perceptron().fit(*separable), "/dev/null")


def test_no_directory(separable, tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        sx.save(sx.Perceptron().fit(*separable), tmp_path / "none" / "model.sx")


def test_every_public_model_can_be_saved():
    """A new family is not complete before it is listed here."""
    from sklearn.base import ClassifierMixin

    public = [getattr(sx, name) for name in sx.__all__]
    models = {
        item.__name__ for item in public if isinstance(item, type) and issubclass(item, ClassifierMixin)
    }
    assert models
    assert models <= set(persistence.MODELS)


def test_permissions_are_those_of_the_umask_or_of_the_replaced_file(tmp_path):
    model = sx.Perceptron().fit([[0.0], [1.0]], [0, 1])
    path = tmp_path / "model.sx"
    before = os.umask(0o027)
    try:
        sx.save(model, path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    sx.save(model, path)
    assert path.stat().st_mode & 0o777 == 0o604
