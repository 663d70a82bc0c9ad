"""Pipelines with preprocessing in model files: back to the last bit, and nothing but what was listed."""

import json

import numpy as np
import pyarrow as pa
import pytest
from safetensors import safe_open
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import separatrix as sx
from separatrix.persistence import ModelFileError, _container


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.sx"


@pytest.fixture(scope="module")
def people():
    """Numbers with gaps, texts, and a class."""
    rng = np.random.default_rng(0)
    age = np.where(rng.random(120) < 0.1, np.nan, rng.normal(40, 10, 120))
    pay = rng.normal(size=120)
    city = rng.choice(["Rome", "Oslo", "Lima", "?"], 120)
    job = rng.choice(["baker", "smith"], 120)
    y = np.where(pay + (city == "Oslo") > 0.3, "yes", "no")
    return pa.table({"age": age, "city": city, "pay": pay, "job": job}), y


def columns(impute=True, **options):
    scaler = make_pipeline(SimpleImputer(), StandardScaler()) if impute else StandardScaler()
    numbers = ["age", "pay"] if impute else ["pay"]
    parts = [("numbers", scaler, numbers), ("texts", OneHotEncoder(handle_unknown="ignore"), ["city", "job"])]
    return ColumnTransformer(parts, **options)


def round_trip(model, path, X):
    sx.save(model, path)
    loaded = sx.load(path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    return loaded


@pytest.mark.parametrize("options", [{}, {"sparse_threshold": 0.0}, {"verbose_feature_names_out": False}])
@pytest.mark.parametrize("impute", [True, False])
@pytest.mark.parametrize("final", [sx.LogisticRegression, sx.Perceptron, sx.KernelPerceptron])
def test_columns(people, path, options, impute, final):
    X, y = people
    model = make_pipeline(columns(impute, **options), final()).fit(X, y)
    loaded = round_trip(model, path, X)
    before, after = model[0], loaded[0]
    assert list(after.get_feature_names_out()) == list(before.get_feature_names_out())
    assert after.output_indices_ == before.output_indices_
    assert after._transformer_to_input_indices == before._transformer_to_input_indices
    assert after.sparse_output_ == before.sparse_output_
    assert repr(loaded) == repr(model)
    # Other tables with the same names, unknown categories, columns in another order.
    other = pa.table(
        {"job": ["pilot"], "pay": [0.5], "extra": [1], "city": ["Bonn"], "age": [np.nan if impute else 3.0]}
    )
    np.testing.assert_array_equal(loaded.decision_function(other), model.decision_function(other))
    np.testing.assert_array_equal(loaded.predict(X.to_pandas()), model.predict(X))


def test_a_loaded_pipeline_can_be_fitted_again(people, path):
    X, y = people
    model = make_pipeline(columns(), sx.LogisticRegression()).fit(X, y)
    loaded = round_trip(model, path, X)
    for again in (clone(loaded), loaded):
        np.testing.assert_array_equal(again.fit(X, y).decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="if_binary"),
        OneHotEncoder(drop="first", dtype=np.float32, sparse_output=False),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=30),
        OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist"),
    ],
    ids=repr,
)
def test_encoders(people, path, encoder):
    X, y = people
    texts = X.select(["city", "job"])
    model = make_pipeline(encoder, sx.RidgeClassifier()).fit(texts, y)
    loaded = round_trip(model, path, texts)
    assert list(loaded[0].get_feature_names_out()) == list(model[0].get_feature_names_out())
    assert loaded[0].dtype is model[0].dtype


def test_positions_instead_of_names(path):
    X = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 6.0], [2.0, 1.0, 7.0], [3.0, 0.0, 9.0]])
    model = make_pipeline(ColumnTransformer([("a", StandardScaler(), [2, -3])]), sx.Perceptron())
    model.fit(X, [0, 0, 1, 1])
    loaded = round_trip(model, path, X)
    assert loaded[0].transformers_[-1] == model[0].transformers_[-1]  # the column that is dropped


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_imputers(path, strategy):
    X = np.array([[0.0, 1.0], [1.0, np.nan], [np.nan, 1.0], [5.0, 7.0]])
    model = make_pipeline(SimpleImputer(strategy=strategy), sx.Perceptron()).fit(X, [0, 0, 1, 1])
    round_trip(model, path, X)


@pytest.mark.parametrize(
    ("build", "part"),
    [
        (lambda: columns(remainder="passthrough"), "remainder"),
        (lambda: columns(transformer_weights={"texts": 2.0}), "transformer_weights"),
        (lambda: ColumnTransformer([("a", PowerTransformer(), ["pay"])]), "hold no PowerTransformer"),
        (lambda: ColumnTransformer([("a", StandardScaler(), slice(2, 3))]), "list of names"),
        (lambda: ColumnTransformer([("a", StandardScaler(), ["pay"]), ("b", "drop", ["age"])]), "'drop'"),
        (lambda: ColumnTransformer([("a", "passthrough", ["pay"])]), "FunctionTransformer"),
    ],
)
def test_what_no_file_can_keep(people, path, build, part):
    X, y = people
    X = X.set_column(0, "age", pa.array(np.arange(120.0)))
    model = Pipeline([("columns", build()), ("model", sx.Perceptron(max_iter=2, tol=None))])
    model.fit(X.to_pandas(), y)
    path.write_bytes(b"old")
    with pytest.raises(ModelFileError, match=part):
        sx.save(model, path)
    assert path.read_bytes() == b"old"


def test_unfitted(path):
    with pytest.raises(NotFittedError):
        sx.save(make_pipeline(columns(), sx.Perceptron()), path)
    assert not path.exists()


def rewrite(path, change):
    """Change a file's description and arrays, with a correct checksum, as a hostile writer could."""
    with safe_open(path, framework="np") as container:
        description = json.loads(container.metadata()["separatrix"])
        tensors = {key: container.get_tensor(key) for key in container.keys()}  # noqa: SIM118
    change(description["model"]["steps"][0][1], tensors)
    _container.write_container(str(path), tensors, description)


def texts(node):
    return node["parts"][1][1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda node, t: node.update({"class": "FunctionTransformer"}), "FunctionTransformer"),
        (lambda node, t: node["parts"][0].__setitem__(2, ["age", "nothing"]), "nothing"),
        (lambda node, t: node["parts"][0].__setitem__(2, ["age"]), "does not fit"),
        (lambda node, t: node["parts"][0].__setitem__(2, [0, 99]), "column 99"),
        (lambda node, t: node["parts"][1].__setitem__(0, "numbers"), "does not fit"),
        (lambda node, t: node["parts"][1].__setitem__(0, "remainder"), "does not fit"),
        (lambda node, t: node["features"].pop(), "number"),
        (lambda node, t: node.update(n_features=10**12), "number"),
        (lambda node, t: node["parameters"].update(sparse_threshold=7), "sparse_threshold"),
        (lambda node, t: node["parameters"].clear(), "sparse_threshold"),
        (lambda node, t: node.pop("parts"), "parts"),
        (lambda node, t: texts(node)["fitted"].update(categories_=[]), "categories_"),
        (lambda node, t: texts(node)["fitted"].update(_n_features_outs=[10**9, 1]), "categories_"),
        (lambda node, t: texts(node)["fitted"].update(transform=1), "transform"),
        (lambda node, t: texts(node)["parameters"].update(dtype={"type": "object_"}), "object_"),
        (lambda node, t: texts(node)["parameters"].update(dtype={"type": "os.system"}), "os.system"),
        (lambda node, t: t.update({next(k for k in t if "statistics" in k): np.zeros(7)}), "statistics_"),
    ],
)
def test_hostile_content(people, path, change, message):
    X, y = people
    sx.save(make_pipeline(columns(), sx.Perceptron()).fit(X, y), path)
    rewrite(path, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        sx.load(path)
    assert str(path) in str(caught.value)


def test_every_cut_and_changed_byte_is_noticed(people, path):
    X, y = people
    sx.save(make_pipeline(columns(), sx.Perceptron()).fit(X, y), path)
    whole = path.read_bytes()
    for position in range(0, len(whole), max(1, len(whole) // 60)):
        for damaged in (
            whole[:position],
            whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :],
        ):
            path.write_bytes(damaged)
            with pytest.raises(ModelFileError):
                sx.load(path)


@pytest.mark.parametrize(
    "scaler",
    [
        MinMaxScaler((-1, 2), clip=True),
        MaxAbsScaler(),
        RobustScaler(quantile_range=(10.0, 90.0), unit_variance=True),
        RobustScaler(with_centering=False),
        Normalizer("l1"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_scalers(scaler, form, path):
    if form is not np.asarray and (type(scaler) is MinMaxScaler or getattr(scaler, "with_centering", False)):
        return  # they would fill in the zeros, and refuse
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(90, 3))
    y = (X @ [1.0, -1.0, 0.5] > 1).astype(int)
    model = make_pipeline(clone(scaler), sx.LinearSVC()).fit(form(X), y)
    loaded = round_trip(model, path, form(X))
    assert loaded[0].get_params() == model[0].get_params()
    assert vars(loaded[0]).keys() == vars(model[0]).keys()


def test_steps_that_do_nothing(people, path):
    X = np.column_stack([people[0]["pay"], np.arange(120.0)])
    model = Pipeline([("nothing", "passthrough"), ("scale", StandardScaler()), ("model", sx.SVC())])
    assert [step for step, _ in round_trip(model.fit(X, people[1]), path, X).steps] == ["scale", "model"]


def test_a_search_names_the_remedy(path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    search = GridSearchCV(make_pipeline(StandardScaler(), sx.SVC()), {"svc__C": [1, 10]}).fit(X, X[:, 0] > 0)
    with pytest.raises(ModelFileError, match="best_estimator_"):
        sx.save(search, path)
    round_trip(search.best_estimator_, path, X)
