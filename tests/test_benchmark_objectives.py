"""The benchmark's objectives: those of scikit-learn and of the formulas."""

import copy
import itertools

import numpy as np
import pytest
from benchmarks import checks, datasets
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, LinearSVC


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_logistic_objective_is_the_log_loss_plus_the_penalty(classes, as_sparse):
    data = datasets.dense(80, 5, classes, "float64")
    X = sparse.csr_matrix(data.X) if as_sparse else data.X
    model = LogisticRegression(C=0.7).fit(X, data.y)
    expected = 0.7 * log_loss(data.y, model.predict_proba(X), normalize=False) + np.sum(model.coef_**2) / 2
    assert checks.logistic(model, X, data.y) == pytest.approx(expected, rel=1e-12)
    other = LogisticRegression(C=0.7, max_iter=1, tol=1e9).fit(X, data.y)
    other.coef_ = model.coef_ * 1.3
    other.intercept_ = model.intercept_
    assert checks.logistic(other, X, data.y) > checks.logistic(model, X, data.y)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_ridge_objective_is_that_of_the_regression_on_signs(classes):
    data = datasets.dense(80, 5, classes, "float64")
    model = RidgeClassifier(alpha=2.0).fit(data.X, data.y)
    signs = np.where(data.y[:, None] == (np.arange(classes) if classes > 2 else [1]), 1.0, -1.0)
    same = Ridge(alpha=2.0).fit(data.X, signs)
    residuals = signs - same.predict(data.X).reshape(signs.shape)
    expected = np.sum(residuals**2) + 2.0 * np.sum(same.coef_**2)
    assert checks.ridge(model, data.X, data.y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_the_dual_of_a_machine_is_the_sum_over_its_pairs(classes, as_sparse):
    data = datasets.dense(120, 4, classes, "float64")
    X = sparse.csr_matrix(data.X) if as_sparse else data.X
    gamma = 1.0 / (4 * data.X.var())
    expected = 0.0
    for first, second in itertools.combinations(range(classes), 2):
        rows = np.flatnonzero((data.y == first) | (data.y == second))
        model = SVC(C=2.0, gamma=gamma, tol=1e-9).fit(data.X[rows], data.y[rows])
        coef = model.dual_coef_.ravel()
        K = rbf_kernel(model.support_vectors_, gamma=gamma)
        expected += coef @ K @ coef / 2 - np.abs(coef).sum()
    model = SVC(C=2.0, tol=1e-9).fit(X, data.y)
    assert checks.support_vector_dual(model, X, data.y) == pytest.approx(expected, rel=1e-6)


def test_the_dual_of_a_regression_lies_below_its_primal():
    X, y = datasets.dense(90, 4, 2, "float64").X, np.linspace(-1, 1, 90)
    model = SVR(C=2.0, epsilon=0.05, tol=1e-9).fit(X, y)
    coef, K = model.dual_coef_.ravel(), rbf_kernel(X, X[model.support_], gamma=1.0 / (4 * X.var()))
    penalty = coef @ K[model.support_] @ coef / 2
    primal = penalty + 2.0 * np.maximum(np.abs(y - K @ coef - model.intercept_) - 0.05, 0.0).sum()
    assert -checks.regression_dual(model, X, y) == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_hinge_objective_is_least_at_the_solution(loss, classes):
    data = datasets.dense(80, 5, classes, "float64")
    model = LinearSVC(loss=loss, C=0.5, tol=1e-8, max_iter=100_000, random_state=0).fit(data.X, data.y)
    least = checks.CHECKS[f"{loss} objective"].value(model, data.X, data.y)
    for coef in (model.coef_ * 1.02, model.coef_ * 0.98):
        other = copy.copy(model)
        other.coef_ = coef
        assert checks.CHECKS[f"{loss} objective"].value(other, data.X, data.y) > least


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_the_objective_after_passes_is_mean_loss_and_penalty(loss):
    data = datasets.dense(80, 5, 2, "float64")
    model = SGDClassifier(loss=loss, alpha=0.01, random_state=0).fit(data.X, data.y)
    margins = np.where(data.y == 1, 1, -1) * model.decision_function(data.X)
    losses = np.maximum(0, 1 - margins) if loss == "hinge" else np.log1p(np.exp(-margins))
    expected = losses.mean() + 0.005 * np.sum(model.coef_**2)
    assert checks.sgd(loss, model, data.X, data.y) == pytest.approx(expected, rel=1e-12)


def test_the_l1_objective_has_the_norm_instead_of_its_square():
    data = datasets.dense(80, 5, 2, "float64")
    model = LogisticRegression(C=0.7).fit(data.X, data.y)
    loss = 0.7 * log_loss(data.y, model.predict_proba(data.X), normalize=False)
    expected = loss + np.abs(model.coef_).sum()
    assert checks.logistic_l1(model, data.X, data.y) == pytest.approx(expected, rel=1e-12)
