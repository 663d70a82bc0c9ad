"""Sparse matrices whose indices lead out of them are refused by every model and kernel before any use."""

import numpy as np
import pytest
from scipy import sparse

import separatrix as sx
from separatrix.data.memory import check_structure

MODELS = (
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KernelPerceptron",
    "LeastSquaresClassifier",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "NuSVC",
    "OneClassSVM",
    "Perceptron",
    "RidgeClassifier",
    "SGDClassifier",
    "SGDRegressor",
    "SVC",
    "SVR",
)
Y = np.arange(30) % 2


def sound(seed=0):
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.standard_normal((30, 8)) * (rng.random((30, 8)) < 0.5))


def damaged(name):
    X = sound()
    if name.startswith("64-bit"):
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    if name == "CSC":
        X = X.tocsc()
        X.indices[3] = 30
    elif name == "COO":
        X = X.tocoo()
        X.coords[0][3] = 30
    elif name == "short":
        X.data = X.data[:4]
    else:
        array, place, value = {
            "wide": (X.indices, 5, 8),
            "negative": (X.indices, 5, -1),
            "64-bit": (X.indices, 5, 1 << 40),
            "falls": (X.indptr, 10, 0),
            "beyond": (X.indptr, 15, 1_000_000),
            "64-bit end": (X.indptr, -1, 1 << 40),
            "begin": (X.indptr, 0, -5),
        }[name]
        array[place] = value
    return X


DAMAGES = ("wide", "negative", "64-bit", "falls", "beyond", "64-bit end", "begin", "short", "CSC", "COO")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", MODELS)
def test_fit_and_predict_refuse_them(name, damage):
    with pytest.raises(ValueError, match="X is a damaged"):
        getattr(sx, name)().fit(damaged(damage), Y)
    model = getattr(sx, name)().fit(sound(), Y)
    with pytest.raises(ValueError, match="X is a damaged"):
        model.predict(damaged(damage))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kernel", [sx.kernels.RBF(0.1), sx.kernels.Laplacian(0.1), sx.kernels.Linear()])
def test_kernels_refuse_them(kernel, damage):
    with pytest.raises(ValueError, match="A is a damaged"):
        kernel(damaged(damage), sound())
    with pytest.raises(ValueError, match="B is a damaged"):
        kernel(sound(), damaged(damage))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_sound_ones_pass(form):
    check_structure(sound().asformat(form))
    check_structure(sparse.csr_array((3, 4)).asformat(form))
