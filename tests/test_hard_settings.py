"""Settings in which machines are hard to train: each fit ends by a rule, and its certificate is true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from separatrix.data.memory import view_of
from separatrix.kernels import RBF, Linear, Sigmoid
from separatrix.models.linear_svm import LinearSVC
from separatrix.models.linear_svr import LinearSVR
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import choose_precision

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((800, 4))
Y = np.where(X[:, 0] + 0.5 * RANDOM.standard_normal(800) > 0, 1, -1)
NOISE = RANDOM.integers(0, 2, 800)


def fit(samples, labels, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SVC(**settings).fit(samples, labels)


def violation(model, K, labels, C):
    """The KKT violation of a machine of two classes, from its dual coefficients."""
    beta = np.zeros(len(labels))
    beta[model.support_] = np.asarray(model.dual_coef_).ravel()
    s, a = np.where(labels == model.classes_[1], 1.0, -1.0), np.abs(beta)
    E = K @ beta - s
    up, low = np.where(s > 0, a < C, a > 0), np.where(s > 0, a > 0, a < C)
    return max(0.0, E[low].max() - E[up].min())


@pytest.mark.parametrize(
    ("samples", "labels", "settings"),
    [
        (X[:200] * 1e30, NOISE[:200], {"kernel": "linear"}),
        (X * 1e20, NOISE, {"kernel": "linear"}),
        (X * 1e150, NOISE, {"kernel": "linear"}),
        (X * 1e6, Y, {"kernel": "linear"}),
        (np.column_stack([X, 1e12 * RANDOM.standard_normal(800)]), Y, {"kernel": "linear"}),
        (X * 10, Y, {"kernel": "poly", "degree": 10, "gamma": 1.0}),
    ],
)
def test_a_tolerance_below_rounding_errors_ends_the_fit(samples, labels, settings):
    model = fit(samples, labels, **settings)
    found = model.certificate_
    assert found.status == "max_iter"
    assert found.kkt_violation > model.tol or found.relative_gap > 0.1
    assert found.dual <= len(labels)  # the value of no weights at all
    assert found.iterations < 1_000_000
    if settings["kernel"] == "linear":
        assert "standardise" in found.message


def test_wide_features_that_separate_converge():
    model = fit(X[:40] * 1e30, Y[:40], kernel="linear", C=1e-50)
    assert model.certificate_.status == "converged"
    assert model.certificate_.kkt_violation <= model.tol


@pytest.mark.parametrize("factor", [1e-40, 1e-25, 1e15])
def test_values_that_single_precision_cannot_hold(factor):
    """Single precision would make kernel values 0 or infinite, and any point optimal."""
    samples = (X * factor).astype(np.float32)
    matrix = KernelMatrix(Linear(), view_of(samples), cache_bytes=1e8)
    double = samples.astype(np.float64)
    np.testing.assert_allclose(matrix.diag, (double**2).sum(axis=1), rtol=1e-12)
    C = 1e-2 / factor**2
    model = fit(samples, Y, kernel="linear", C=C, max_iter=20_000)
    found = model.certificate_
    assert found.status in ("converged", "max_iter")
    truth = violation(model, double @ double.T, Y, C)
    np.testing.assert_allclose(found.kkt_violation, truth, atol=1e-3 + 1e-2 * truth)


def test_precision_by_the_size_of_kernel_values():
    for factor, precision in ((1.0, "float32"), (1e16, "float64"), (1e-16, "float64")):
        matrix = KernelMatrix(Linear(), view_of(X * factor), cache_bytes=1e8)
        assert choose_precision(matrix) == precision


def test_an_indefinite_kernel_with_negative_diagonal_ends_at_a_local_optimum():
    model = fit(X, Y, kernel="sigmoid", gamma=2.0, coef0=-3.0)
    K = np.asarray(Sigmoid(gamma=2.0, coef0=-3.0)(X))
    assert (np.diagonal(K) < 0).any()
    assert model.certificate_.status == "nonconvex"
    assert model.certificate_.kkt_violation <= model.tol
    assert violation(model, K, Y, 1.0) <= 2 * model.tol


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (SVC(kernel="sigmoid", C=10, gamma=0.1), load_wine),
        (SVC(kernel="sigmoid", C=100, gamma=0.1), load_breast_cancer),
        (NuSVC(kernel="sigmoid", nu=0.1, gamma=0.3, coef0=0.5), load_wine),
        (NuSVC(kernel="sigmoid", nu=0.1, gamma=0.3, coef0=0.5), load_breast_cancer),
    ],
    ids=lambda value: str(getattr(value, "__name__", value)),
)
def test_an_indefinite_kernel_is_told_from_rounding_errors(model, data):
    """``w'w`` far below 0 is no rounding error, and no gap or vanishing margin follows from it."""
    samples, labels = data(return_X_y=True)
    model.fit(StandardScaler().fit_transform(samples), labels)
    assert model.certificate_.status == "nonconvex"
    assert model.certificate_.gap is None
    assert model.certificate_.kkt_violation <= model.tol


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_duplicated_points_of_opposite_labels(kernel):
    model = fit(np.concatenate([X, X]), np.repeat([1, -1], 800), C=1e8, kernel=kernel)
    assert model.certificate_.status == "converged"
    assert model.certificate_.relative_gap <= 1e-2


@pytest.mark.parametrize("machine", [SVC, NuSVR])
def test_noise_that_a_smooth_kernel_is_to_follow(machine):
    """A kernel matrix of half rank: pairs of samples alone take more steps than the limit."""
    random = np.random.default_rng(100)
    samples = np.tile(random.standard_normal((400, 3)), (2, 1))
    model = machine(C=1e6).fit(samples, np.where(random.random(800) < 0.5, 1, -1))
    found = model.certificate_
    assert found.status == "converged"
    assert found.relative_gap <= 1e-3
    assert found.iterations < 2_000_000


@pytest.mark.parametrize("C", [1e100, 1e200, 1e300])
@pytest.mark.parametrize("machine", [LinearSVC, LinearSVR, SVC, SVR, NuSVR])
def test_costs_near_the_largest_number_warn_of_convergence_alone(machine, C):
    settings = {} if machine in (LinearSVC, LinearSVR) else {"kernel": "linear"}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = machine(C=C, **settings)
        try:
            status = model.fit(X[:200], NOISE[:200]).certificate_.status
        except ValueError as refused:
            status = str(refused)
    assert status == "max_iter" or "StandardScaler" in status
    assert {warning.category for warning in heard} <= {ConvergenceWarning}


@pytest.mark.parametrize(
    ("digit", "C", "loss", "penalised"),
    [
        (1, 1e4, "squared_hinge", True),
        (4, 1e2, "squared_hinge", False),
        (4, 1e6, "squared_hinge", True),
        (2, 1e4, "hinge", False),
        (0, 1e6, "hinge", True),
        (7, 1e6, "hinge", False),
    ],
)
def test_a_large_c_on_grey_values_is_solved(digit, C, loss, penalised):
    # Objectives ended up to a million times above the minimum, at points where next to no sample had a loss.
    samples, digits = load_digits(return_X_y=True)
    labels = np.where(digits == digit, 1.0, -1.0)
    model = LinearSVC(C=C, loss=loss, penalize_intercept=penalised).fit(samples, labels)
    assert model.certificate_.status == "converged"
    slacks = np.maximum(0.0, 1.0 - labels * model.decision_function(samples))
    penalty = (np.square(model.coef_).sum() + penalised * model.intercept_[0] ** 2) / 2
    primal = penalty + C * (slacks if loss == "hinge" else slacks**2).sum()
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    # By an independent way, that of a kernel machine, whose intercept is free.
    if not penalised and loss == "hinge":
        exact = SVC(C=C, kernel="linear").fit(samples, labels).certificate_
        assert exact.dual <= primal * (1 + 1e-9)
        assert primal <= exact.primal * (1 + 1e-4)


def test_steps_that_single_precision_leads_astray_go_on_in_double():
    """With variables of 1e8 kernel rows in single precision tell nothing of E, and steps led up for ever."""
    samples, gamma = np.random.default_rng(0).standard_normal((800, 1)), 5.0
    assert choose_precision(KernelMatrix(RBF(gamma), view_of(samples), cache_bytes=1e8)) == "float32"
    model = SVC(C=1e8, gamma=gamma).fit(samples, NOISE)
    assert model.certificate_.status == "converged"
    assert model.certificate_.relative_gap < 1e-3
    assert model.n_iter_.sum() < 1_000_000
    assert violation(model, RBF(gamma)(samples), NOISE, 1e8) <= 2 * model.tol
