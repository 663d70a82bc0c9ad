"""Models changed by hand, damaged and absurd input: a message, never a crash or a fit without end."""

from __future__ import annotations

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import separatrix as sx

RNG = np.random.default_rng(0)
Y = np.arange(30) % 3
X = RNG.standard_normal((30, 4)) + Y[:, None]
MACHINES = {
    "SVC": sx.SVC,
    "SVC, one against the rest": lambda: sx.SVC(multiclass="ovr"),
    "SVC, joint": lambda: sx.SVC(multiclass="joint"),
    "NuSVC": lambda: sx.NuSVC(nu=0.3),
    "SVR": sx.SVR,
    "OneClassSVM": sx.OneClassSVM,
}


def _wrong_shapes(value):
    dense = value.toarray() if sparse.issparse(value) else np.asarray(value)
    larger = np.zeros(tuple(3 * size + 1 for size in dense.shape))
    shapes = [dense[:1], np.concatenate([dense, dense]), larger]
    if dense.ndim == 2:
        shapes += [dense[:, :1], np.hstack([dense, dense]), dense.T]
    wrong = [shape for shape in shapes if shape.shape != dense.shape]
    return [sparse.csr_array(shape) for shape in wrong] if sparse.issparse(value) else wrong


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("make", MACHINES.values(), ids=MACHINES.keys())
@pytest.mark.parametrize("packed", [False, True])
def test_parts_of_a_machine_that_do_not_belong_together(make, container, packed):
    fitted = make().fit(container(X), Y)
    for name in ("support_vectors_", "dual_coef_", "intercept_", "_n_support", "support_"):
        for value in _wrong_shapes(getattr(fitted, name)):
            model = deepcopy(fitted)
            if packed:  # support vectors of an earlier prediction are kept
                model.predict(container(X))
            setattr(model, name, value)
            with pytest.raises(ValueError, match=r"was altered|must be"):
                model.predict(container(X))


def test_classes_of_a_machine_that_are_not_its_own():
    for coding in ("ovo", "ovr", "joint"):
        model = sx.SVC(multiclass=coding).fit(X, Y)
        model.classes_ = np.arange(9)
        with pytest.raises(ValueError, match="was altered"):
            model.decision_function(X)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "make", [sx.LogisticRegression, sx.RidgeClassifier, sx.LinearSVC, sx.SGDClassifier, sx.Perceptron]
)
def test_weights_for_other_features(make, container):
    wide = np.hstack([X, RNG.standard_normal((30, 60))])
    model = make().fit(container(wide), Y)
    coef = model.coef_
    for model.coef_ in (coef[:, :4], coef[:, :-1], np.hstack([coef, coef]), coef.ravel()):
        with pytest.raises(ValueError, match=r"weights for \d+ features, but X has 64"):
            model.predict(container(wide))


@pytest.mark.parametrize("make", [sx.Perceptron, sx.LinearSVC])
def test_pairs_that_are_not_those_of_the_classes(make):
    model = make(multiclass="ovo").fit(X, Y)
    model.classes_ = np.arange(9)
    with pytest.raises(ValueError, match="3 columns are not pairs of 9 classes"):
        model.predict(X)


@pytest.mark.parametrize("name", ["support_vectors_", "dual_coef_"])
def test_sparse_parts_of_a_machine_that_are_damaged(name, tmp_path):
    model = sx.SVC(kernel="linear").fit(sparse.csr_array(X), Y)
    part = getattr(model, name)
    part.indices[0] = 1 << 30
    exports = (partial(export, model, tmp_path / "file") for export in (sx.export_libsvm, sx.export_onnx))
    for use in (partial(model.predict, X), partial(getattr, model, "coef_"), *exports):
        with pytest.raises(ValueError, match="a part of the model is a damaged CSR matrix"):
            use()
    model.dual_coef_ = model.dual_coef_[:, :-1]
    for export in (sx.export_libsvm, sx.export_onnx):
        with pytest.raises(ValueError, match="do not belong together"):
            export(model, tmp_path / "file")


def test_blocks_of_a_sparse_matrix_are_looked_at():
    blocks = sparse.bsr_array(X, blocksize=(2, 2))
    assert (sx.SVC().fit(blocks, Y).predict(blocks) == sx.SVC().fit(X, Y).predict(X)).all()
    blocks.indices[3] = 1 << 30
    with pytest.raises(ValueError, match="damaged BSR matrix"):
        sx.SVC().fit(blocks, Y)


@pytest.mark.parametrize("make", [sx.Perceptron, sx.LogisticRegression, sx.SVC, sx.KNeighborsClassifier])
def test_more_features_than_memory(make):
    """As many as 64-bit indices can declare; no array of this length is ever asked for."""
    at = (np.arange(30), np.arange(30, dtype=np.int64) << 40)
    wide = sparse.csr_array(sparse.coo_array((np.ones(30), at), shape=(30, 1 << 50)))
    with pytest.raises(ValueError, match=r"1,125,899,906,842,624 features.*FeatureHasher"):
        make().fit(wide, Y)


@pytest.mark.parametrize(
    "model",
    [sx.Perceptron(), sx.Perceptron(penalty="l2"), sx.KernelPerceptron()],
    ids=["plain", "penalised", "kernel"],
)
def test_weights_that_ask_for_presentations_without_end(model):
    weights = np.ones(30)
    weights[7] = 1e300
    with pytest.raises(ValueError, match=r"row 7 has the weight 1e\+300.*Divide sample_weight"):
        model.fit(X, Y, sample_weight=weights)
    weights[7] = 1e5
    assert np.isfinite(model.fit(X, Y, sample_weight=weights).decision_function(X)).all()
