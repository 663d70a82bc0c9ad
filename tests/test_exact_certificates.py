"""Certificates of kernel machines against values recomputed from the fitted models in extended precision."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from oracles_svm import exact_one_class, exact_regression
from separatrix.models.one_class import OneClassSVM
from separatrix.models.svr import SVR, NuSVR

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long double has no more digits than double"
)


def check(model, primal, dual):
    """What is told of a machine holds for it: its gap, and either value up to the gap."""
    found, size = model.certificate_, max(abs(primal), abs(dual))
    digits = 2.0**-53 * found.samples * size  # of a sum of so many terms in double
    assert (primal - dual) / size <= found.relative_gap * (1 + 1e-9) + 1e-15
    assert abs(primal - found.primal) <= found.gap + digits
    assert abs(dual - found.dual) <= found.gap + digits


def fitted(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


def far(n, d, seed):
    """Samples at 265 with a deviation of 1, and targets that depend on the first feature."""
    random = np.random.default_rng(seed)
    X = random.normal(265, 1, size=(n, d))
    return X, X[:, 0] - 265 + 0.1 * random.normal(size=n)


@pytest.mark.parametrize("n", [300, 800])
def test_the_intercept_of_a_one_class_machine_is_the_one_that_is_certified(n: int) -> None:
    """Single precision moves it by 64 of its last digits, so that samples on the boundary are inliers."""
    X = np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32)
    model = OneClassSVM(nu=0.3).fit(X)
    check(model, *exact_one_class(model, X))
    assert model.certificate_.status == "converged"
    assert model.certificate_.relative_gap < 1e-4


@pytest.mark.parametrize(
    ("model", "n", "d", "seed"),
    [(SVR, 120, 2, 3), (SVR, 30, 2, 5), (SVR, 60, 6, 6), (NuSVR, 30, 2, 5), (NuSVR, 15, 2, 0)],
)
def test_a_polynomial_regression_far_from_0(model: type, n: int, d: int, seed: int) -> None:
    """Sums of kernel values cancel there, and rounding errors of the steps move all scores."""
    X, y = far(n, d, seed)
    machine = fitted(model(kernel="poly", degree=2, C=100.0, max_time=20.0), X, y)
    check(machine, *exact_regression(machine, X, y))


def test_rounding_errors_above_the_tolerance_are_told() -> None:
    X, y = far(60, 6, 6)
    with pytest.warns(ConvergenceWarning, match="rounding errors are larger than tol.*far from 0"):
        model = SVR(kernel="poly", degree=2, C=100.0).fit(X, y)
    assert model.certificate_.status == "max_iter"
    assert model.fit_status_ == 1
    scaled = StandardScaler().fit_transform(X)
    assert SVR(kernel="poly", degree=2, C=100.0).fit(scaled, y).certificate_.status == "converged"


def test_what_steps_did_to_the_sum_of_the_coefficients_is_cured() -> None:
    """Kernel values of 5e9 make much of a sum that is not quite 0: the intercept makes up for it."""
    X, y = far(120, 2, 3)
    model = fitted(SVR(kernel="poly", degree=2, C=100.0), X, y)
    primal, dual = exact_regression(model, X, y)
    assert primal - dual < 5e-3 * primal


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_regressions_on_ordinary_and_on_raw_features(kernel: str, C: float) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = SVR(kernel=kernel, C=C).fit(X, y)
    assert model.certificate_.status == "converged"
    assert model.certificate_.relative_gap < 1e-9
    check(model, *exact_regression(model, X, y))
    X, y = load_breast_cancer(return_X_y=True)
    model = fitted(SVR(kernel=kernel, C=C, max_time=20.0), X, 2.0 * y - 1)
    check(model, *exact_regression(model, X, 2.0 * y - 1))


def test_kernel_rows_in_single_precision_count() -> None:
    random = np.random.default_rng(2)
    X = random.normal(size=(1000, 6))
    y = np.sin(X[:, 0]) + 0.3 * random.normal(size=1000)
    for model in (SVR(C=10.0), SVR(C=1.0, tol=1e-2), NuSVR(C=10.0)):
        check(model.fit(X, y), *exact_regression(model, X, y))
        assert model.certificate_.status == "converged"


@pytest.mark.parametrize("model", [SVR, NuSVR])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("shift", [1e4, 1e6, -1e9])
def test_targets_far_from_0(model: type, C: float, shift: float) -> None:
    """The weights are those of targets near 0; what rounding makes of the intercept is told."""
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / 64  # so that sums with the shift are exact
    y = np.round(y * 2**20) / 2**20
    near, away = model(C=C).fit(X, y), model(C=C).fit(X, y + shift)
    assert away.certificate_.status == "converged"
    assert away.intercept_[0] - shift == pytest.approx(near.intercept_[0], abs=1e-6 + 1e-15 * abs(shift))
    assert_allclose(away.dual_coef_, near.dual_coef_, atol=1e-6 * C)
    check(away, *exact_regression(away, X, y + shift))


@pytest.mark.parametrize(("n", "d", "C"), [(4, 35, 5e5), (21, 19, 4e5), (80, 8, 6e5)])
def test_a_tube_without_width_at_a_large_cost(n: int, d: int, C: float) -> None:
    """Both variables of a sample are large there; their difference, which scores are made of, is not."""
    random = np.random.default_rng(n)
    X = random.normal(size=(n, d))
    t = X @ random.normal(size=d) / np.sqrt(d) + random.normal(size=n)
    model = NuSVR(C=C, nu=0.6, tol=1e-6).fit(X, t)
    check(model, *exact_regression(model, X, t))
    assert model.certificate_.status == "converged"
    assert model.certificate_.relative_gap < 1e-4


def test_samples_on_the_boundary_cost_no_more_than_the_gap_asked_for() -> None:
    X = 2 + np.random.default_rng(0).normal(size=(36, 5)).astype(np.float32)
    model = OneClassSVM(kernel="linear", nu=0.5, tol=1e-6).fit(X)
    check(model, *exact_one_class(model, X))
    assert model.certificate_.relative_gap <= 1e-6
