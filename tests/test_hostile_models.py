"""Model files with a correct checksum that ask for too much, or hold anything anywhere."""

import contextlib
import copy
import json
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import separatrix as sx
from separatrix.models._records import Columns
from separatrix.persistence import ModelFileError, _container

TABLE = {"table": {"map": {"iteration": {"tensor": "long"}}}}
PADDED = {"strings": {"values": ["x" * 4000, *[""] * 4000], "width": 4000, "shape": [4001]}}
CHARACTERS = {"characters": "codes"}
WIDE = {"strings": {"values": [], "width": 10**9, "shape": [0]}}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Description and arrays of some models."""
    folder = tmp_path_factory.mktemp("sound")
    rng = np.random.default_rng(0)
    y = np.repeat(["ant", "bee", "cicada"], 10)
    X = rng.normal(size=(30, 3)) + np.repeat(np.eye(3), 10, axis=0)
    models = [
        sx.LogisticRegression(),
        sx.Perceptron(keep="average"),
        sx.SVC(probability=True),
        sx.KNeighborsClassifier(),
        sx.LinearDiscriminantAnalysis(),
    ]
    found = []
    for number, model in enumerate(models):
        sx.save(model.fit(X, y), folder / f"{number}.sx")
        found.append(_container.read_container(str(folder / f"{number}.sx")))
    return X, found


def test_lists_of_nothing_are_refused_before_they_cost_memory(tmp_path, monkeypatch, sound):
    description, tensors = copy.deepcopy(sound[1][0])
    description["model"]["fitted"]["history_"] = [[] for _ in range(200_000)]
    path = tmp_path / "model.sx"
    with pytest.raises(ModelFileError, match="more than 10,000 lists"):
        _container.write_container(str(path), tensors, description)
    with monkeypatch.context() as free:
        free.setattr(_container, "_check_size", lambda name, text: None)
        _container.write_container(str(path), tensors, description)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="more than 10,000 lists"):
        sx.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * path.stat().st_size  # the lists themselves would take 16 times as much and more


def test_names_may_hold_brackets(tmp_path):
    names = [f'pixel[{k}] {{"a"}}' for k in range(12_000)]
    model = sx.Perceptron(max_iter=1, tol=None).fit(np.eye(12_000)[:2], [0, 1])
    model.feature_names_in_ = np.array(names, dtype=object)
    sx.save(model, tmp_path / "model.sx")
    assert sx.load(tmp_path / "model.sx").feature_names_in_.tolist() == names


@pytest.mark.parametrize(
    ("value", "arrays", "message"),
    [
        ([TABLE] * 200, {"long": np.arange(100_000)}, "names the array 'long' twice"),
        (TABLE, {"long": np.zeros((10**12, 0))}, "no rows of numbers"),
        (CHARACTERS, {"codes": np.full((1000, 1000), 2**31, dtype=np.uint32)}, "something else"),
        (CHARACTERS, {"codes": np.zeros((1000, 0), dtype=np.uint32)}, "something else"),
        ({"table": {"map": {"iteration": None}}}, {}, "no rows of numbers"),
        (PADDED, {}, "4,001 texts of 4,000 characters"),
        (WIDE, {}, "0 texts of 1,000,000,000 characters"),
    ],
    ids=["table twice", "rows of nothing", "no characters", "no width", "no rows", "padding", "width"],
)
def test_what_a_file_asks_for_is_in_proportion_to_its_size(sound, tmp_path, value, arrays, message):
    description, tensors = copy.deepcopy(sound[1][0])
    description["model"]["fitted"]["history_"] = value
    path = tmp_path / "model.sx"
    _container.write_container(str(path), {**tensors, **arrays}, description)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=message):
        sx.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * path.stat().st_size + 2e6


@pytest.mark.parametrize("dtype", [np.float64, np.uint8])
def test_a_long_history_is_no_larger_than_its_file_until_someone_looks(sound, tmp_path, dtype):
    description, tensors = copy.deepcopy(sound[1][0])
    description["model"]["fitted"]["history_"] = TABLE
    path = tmp_path / "model.sx"
    numbers = (np.arange(1_000_000) % 200).astype(dtype)
    _container.write_container(str(path), {**tensors, "long": numbers}, description)
    tracemalloc.start()
    model = sx.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * path.stat().st_size + 1e6
    sx.save(model, tmp_path / "again.sx")  # as it was, with no rows made
    assert isinstance(vars(model)["history_"], Columns)
    assert sx.load(tmp_path / "again.sx").history_ == model.history_
    assert model.history_[:2] == [{"iteration": 0}, {"iteration": 1}]
    assert type(model.history_) is list


def places(node, before=()):
    """Yield the way to every value of a description but the whole."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from places(value, (*before, key))


ODD = [
    None, True, 0, 1, -1, 7, 2**31, 2**64, 0.5, 1e308, "", "x", "ovr", [], {}, [[]], {"map": {}},
    {"tuple": []}, {"float": "nan"}, {"scalar": ["float64", 1]}, {"type": "float64"}, {"csr": {}}, TABLE,
    PADDED, WIDE, {"strings": {"values": ["a"] * 3, "width": 1, "shape": [3]}},
    {"kernel": ["Linear", {"map": {}}]},
    {"objects": {"values": [None, 1, "a"], "shape": [3]}}, {"table": {"map": {}}},
    {"pairs": [[[], 1]]},
]  # fmt: skip
ARRAYS = [
    lambda a: a[: len(a) // 2],
    lambda a: np.concatenate([a, a]),
    lambda a: a.reshape(-1),
    lambda a: a[None],
    lambda a: np.ascontiguousarray(a.T),
    lambda a: np.zeros((0, *a.shape[1:]), dtype=a.dtype),
    lambda a: a.astype(np.int8),
    lambda a: a.astype(np.float32),
    lambda a: np.full_like(a, -1 if a.dtype.kind in "fi" else 1),
    lambda a: np.full(a.shape, np.inf) if a.dtype.kind == "f" else np.full_like(a, np.iinfo(a.dtype).max),
]


MESSAGES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@settings(max_examples=300)
@given(data=st.data())
def test_any_change_is_refused_or_gives_a_model_that_crashes_nothing(sound, tmp_path_factory, data):
    X, models = sound
    description, tensors = copy.deepcopy(data.draw(st.sampled_from(models)))
    for _ in range(data.draw(st.integers(1, 3))):
        if tensors and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(tensors)))
            if tensors[key].ndim and tensors[key].dtype != bool:
                with np.errstate(all="ignore"):
                    tensors[key] = data.draw(st.sampled_from(ARRAYS))(tensors[key])
            continue
        *way, last = data.draw(st.sampled_from(sorted(places(description["model"]), key=repr)))
        node = description["model"]
        for key in way:
            node = node[key]
        node[last] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    path = tmp_path_factory.mktemp("changed") / "model.sx"
    _container.write_container(str(path), tensors, json.loads(json.dumps(description)))
    try:
        model = sx.load(path)
    except ModelFileError:
        return
    for method in ("predict", "predict_proba", "decision_function"):
        # Any message will do, and values that overflow; what counts is that the interpreter lives.
        with contextlib.suppress(*MESSAGES), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(model, method)(X)
