"""Distances, projections, margins of linear models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris

from separatrix import Perceptron

X, Y = load_iris(return_X_y=True)


def test_a_boundary_known_by_hand():
    model = Perceptron().fit([[0.0, 0.0], [4.0, 4.0]], [0, 1])
    model.coef_, model.intercept_ = np.array([[3.0, 4.0]]), np.array([-10.0])
    assert_allclose(model.signed_distance([[2.0, 1.0], [0.0, 0.0], [6.0, 3.0]]), [0.0, -2.0, 4.0])
    assert_allclose(model.boundary_offset(), [2.0])
    assert_allclose(model.project([[0.0, 0.0], [6.0, 3.0]]), [[1.2, 1.6], [3.6, -0.2]])
    assert model.geometric_margin([[0.0, 0.0], [6.0, 3.0]], [0, 1]) == pytest.approx(2.0)
    assert model.geometric_margin([[0.0, 0.0], [6.0, 3.0]], [1, 1]) == pytest.approx(-2.0)
    assert model.boundaries() == [(1, 0)]
    # f = 0 belongs to the positive class.
    assert_array_equal(model.predict([[2.0, 1.0]]), [1])


@pytest.mark.parametrize(
    ("name", "boundaries"),
    [
        ("ovr", [(0, None), (1, None), (2, None)]),
        ("ovo", [(0, 1), (0, 2), (1, 2)]),
        ("joint", [(0, 1), (0, 2), (1, 2)]),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_three_classes(name, boundaries, container):
    data = container(X)
    model = Perceptron(multiclass=name).fit(data, Y)
    assert model.boundaries() == boundaries
    distances = model.signed_distance(data)
    assert distances.shape == (150, 3)
    for number in range(3):
        flat = model.project(data, boundary=number)
        assert_allclose(model.signed_distance(flat)[:, number], 0, atol=1e-9)
        assert_allclose(np.linalg.norm(flat - X, axis=1), np.abs(distances[:, number]), atol=1e-9)
    with pytest.raises(ValueError, match="there are 3 boundaries; choose one"):
        model.project(data)
    with pytest.raises(ValueError, match="boundary=7 does not exist"):
        model.project(data, boundary=7)
    assert model.training_margin_ == pytest.approx(model.geometric_margin(data, Y))


def test_margin_of_several_classes_is_that_of_the_decision():
    model = Perceptron(multiclass="joint").fit(X, Y)
    scores, W = model.decision_function(X), model.coef_
    expected = min(
        (scores[i, c] - scores[i, k]) / np.linalg.norm(W[c] - W[k])
        for i, c in enumerate(Y)
        for k in range(3)
        if k != c
    )
    assert model.geometric_margin(X, Y) == pytest.approx(expected)


def test_boundary_without_direction():
    model = Perceptron().fit(X, Y == 0)
    model.coef_ = np.zeros((1, 4))
    assert np.isnan(model.signed_distance(X)).all()
    with pytest.raises(ValueError, match="only zero weights"):
        model.project(X)


def test_votes_and_ties():
    from separatrix.multiclass import Coding

    ovo = Coding.of("ovo", 3)
    # 0 beats 1, 1 beats 2, 2 beats 0: one vote each; the sum of pairwise scores decides.
    assert ovo.decide(np.array([[1.0, -5.0, 2.0]])).tolist() == [2]
    assert ovo.decide(np.array([[3.0, -1.0, 2.0]])).tolist() == [0]
    # A full tie goes to the first class; votes count more than any sum.
    assert ovo.decide(np.array([[1.0, -1.0, 1.0]])).tolist() == [0]
    assert ovo.decide(np.array([[0.1, 0.1, 1e9]])).tolist() == [0]
    joint = Coding.of("joint", 3)
    assert joint.decide(np.array([[1.0, 2.0, 2.0]])).tolist() == [1]
