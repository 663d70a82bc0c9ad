"""Factors of models of a Hessian."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from separatrix.models.logistic import LogisticRegression
from separatrix.solvers._factor import Factor


def spread(dependence, d=12, seed=0):
    """Return a Gram matrix of features of very different lengths, the first two of them nearly alike."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, d))
    X[:, 1] = X[:, 0] + dependence * X[:, 1]
    X *= 10.0 ** rng.uniform(-3, 3, d)
    return X.T @ X


@pytest.mark.parametrize("single", [False, True])
def test_the_inverse_is_that_of_the_matrix(single):
    H = spread(1.0)
    right = np.random.default_rng(1).normal(size=(12, 3)) * np.sqrt(np.diag(H))[:, None]
    factor = Factor(H, single)
    assert factor.single == single
    scale = np.sqrt(np.diag(H))[:, None]
    want = scale * np.linalg.solve(H, right)
    rounding = (1e-4 if single else 1e-8) * np.abs(want).max()
    assert_allclose(scale * factor.solve(right), want, rtol=0, atol=rounding)


def test_features_that_nearly_depend_on_each_other_are_factored_in_double():
    H = spread(1e-3)
    factor = Factor(H, single=True)
    assert not factor.single
    scale = np.sqrt(np.diag(H))[:, None]
    right = H @ np.ones((12, 1))
    assert_allclose(factor.solve(right) * scale, scale, rtol=1e-3)


def test_numbers_beyond_single_precision_are_factored_in_double():
    factor = Factor(np.diag([1e80, 1e-80]) + 0.0, single=True)
    assert_allclose(factor.solve(np.array([[1e80], [1e-80]])), 1.0, rtol=1e-6)


@pytest.mark.parametrize("d", [60, 300])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_models_in_single_precision_lead_to_the_same_minimum(d, C):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, d))
    X[:, 1:] += X[:, :1]  # all depend on the first
    X[:, 2] = X[:, 1] + 1e-4 * X[:, 2]
    y = (X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=4000) > 0).astype(int)
    found = LogisticRegression(C=C).fit(X, y).certificate_
    exact = LogisticRegression(C=C, solver="newton", tol=1e-12).fit(X, y).certificate_
    assert found.status == "converged"
    assert exact.primal * (1 - 1e-12) <= found.primal <= exact.primal * (1 + 1e-4)
