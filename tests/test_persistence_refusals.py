"""Model files: what cannot be saved, and what must not be loaded."""

import json
import struct

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer
from sklearn.tree import DecisionTreeClassifier

import separatrix as sx
from separatrix.persistence import ModelFileError, _container

# ------------------------------------------------------------------------------------------ refused at saving


class Subclass(sx.Perceptron):
    pass


def dot(first, second):
    return first @ second.T


@pytest.mark.parametrize(
    ("build", "parts"),
    [
        (lambda: sx.KernelPerceptron(kernel=dot), ["'kernel'", "KernelPerceptron", "separatrix.kernels"]),
        (lambda: sx.Perceptron(random_state=np.random.RandomState(0)), ["'random_state'", "set_params"]),
        (lambda: Subclass(), ["Subclass"]),
        (lambda: DecisionTreeClassifier(), ["DecisionTreeClassifier", "estimators of separatrix", "pickle"]),
        (lambda: make_pipeline(PowerTransformer(), sx.Perceptron()), ["PowerTransformer", "before the fit"]),
        (lambda: make_pipeline(sx.Perceptron(), memory="cache"), ["memory"]),
    ],
)
def test_what_no_file_can_keep(separable, path, build, parts, monkeypatch):
    monkeypatch.chdir(path.parent)  # a pipeline with a memory makes its folder when it is fitted
    model = build().fit(*separable)
    path.write_bytes(b"old")
    with pytest.raises(ModelFileError) as caught:
        sx.save(model, path)
    for part in [str(path), *parts]:
        assert part in str(caught.value)
    assert path.read_bytes() == b"old"


def test_unfitted_models_are_refused(path):
    with pytest.raises(NotFittedError):
        sx.save(sx.Perceptron(), path)
    assert not path.exists()


# ----------------------------------------------------------------------------------------- refused at loading


@pytest.fixture
def saved(separable, path):
    sx.save(sx.KernelPerceptron().fit(*separable), path)
    return path


def rewrite(path, change):
    """Change a file's description and arrays, with a correct checksum, as a hostile writer could."""
    with safe_open(path, framework="np") as container:
        description = json.loads(container.metadata()["separatrix"])
        tensors = {key: container.get_tensor(key) for key in container.keys()}  # noqa: SIM118
    change(description, tensors)
    _container.write_container(str(path), tensors, description)


def test_every_cut_is_noticed(saved):
    whole = saved.read_bytes()
    for length in [*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"model\.sx"):
            sx.load(saved)
    saved.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError):
        sx.load(saved)


def test_every_changed_byte_is_noticed(saved):
    whole = saved.read_bytes()
    for position in range(0, len(whole), max(1, len(whole) // 200)):
        saved.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        with pytest.raises(ModelFileError, match=r"model\.sx"):
            sx.load(saved)


def test_a_header_that_promises_too_much(saved):
    header = json.dumps({"t": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}}).encode()
    saved.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ModelFileError):
        sx.load(saved)
    saved.write_bytes(struct.pack("<Q", 2**63) + header)
    with pytest.raises(ModelFileError):
        sx.load(saved)


def test_foreign_safetensors(path):
    save_file({"weights": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="not of separatrix"):
        sx.load(path)


def test_no_such_file(path):
    with pytest.raises(FileNotFoundError, match=r"model\.sx"):
        sx.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: d.update(format=99), "pip install --upgrade"),
        (lambda d, t: d.pop("format"), "description"),
        (lambda d, t: d.pop("model"), "model"),
        (lambda d, t: d["model"].update({"class": "Popen"}), "'Popen'"),
        (lambda d, t: d["model"]["parameters"].update(later=1), "later"),
        (lambda d, t: d["model"]["parameters"].update(kernel={"kernel": ["Kernel", {"map": {}}]}), "load"),
        (
            lambda d, t: d["model"]["parameters"].update(kernel={"kernel": ["resolve_kernel", {"map": {}}]}),
            "kernel",
        ),
        (lambda d, t: d["model"]["parameters"].update(kernel={"pickle": "gASV"}), "'pickle'"),
        (lambda d, t: d["model"]["parameters"].update(kernel={}), "unknown kind"),
        (lambda d, t: d["model"]["fitted"].update(__class__=1), "__class__"),
        (lambda d, t: d["model"]["fitted"].update(predict=1), "'predict'"),
        (lambda d, t: d["model"]["fitted"].update(_secret_=1), "_secret_"),
        (lambda d, t: d["model"]["fitted"].pop("n_features_in_"), "n_features_in_"),
        (lambda d, t: d["model"]["fitted"].update(n_features_in_=50), "columns"),
        (
            lambda d, t: d["model"]["fitted"].update(certificate_={"certificate": {"map": {"status": "x"}}}),
            "status",
        ),
        (lambda d, t: t.update({"model.dual_coef_": t["model.dual_coef_"][:, 1:]}), "dual_coef_"),
        (lambda d, t: t.pop("model.dual_coef_"), "dual_coef_"),
        (
            lambda d, t: d["model"]["fitted"].update(
                classes_={"strings": {"values": ["a"] * 9, "width": 10**9, "shape": [9]}}
            ),
            "too large",
        ),
    ],
)
def test_hostile_or_newer_content(saved, change, message):
    rewrite(saved, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        sx.load(saved)
    assert str(saved) in str(caught.value)


def test_hidden_state_is_checked(separable, path):
    sx.save(sx.Perceptron(keep="average").fit(*separable), path)
    rewrite(path, lambda d, t: t.update({"model._average_state.drift_intercepts": np.zeros(0)}))
    with pytest.raises(ModelFileError, match="_average_state"):
        sx.load(path)


def test_sparse_support_vectors_are_checked(separable, path):
    X, y = separable
    sx.save(sx.KernelPerceptron().fit(sparse.csr_matrix(X), y), path)
    rewrite(path, lambda d, t: t["model.support_vectors_.indices"].fill(10**6))
    with pytest.raises(ModelFileError):
        sx.load(path)
