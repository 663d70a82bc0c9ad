"""Paths of C, and their picture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer

from separatrix import LogisticRegression, plot
from separatrix.models.linear_svm import LinearSVC

DATA = load_breast_cancer(as_frame=True)
X = ((DATA.data - DATA.data.mean()) / DATA.data.std()).iloc[:, :9]
Y = DATA.target
CS = [1e-3, 1e-1, 10.0]


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (LinearSVC, {}),
        (LinearSVC, {"loss": "hinge"}),
        (LinearSVC, {"penalty": "l1"}),
        (LogisticRegression, {}),
    ],
)
def test_every_point_is_a_fit(cls, settings):
    path = cls.path(X, Y, CS[::-1], **settings)
    assert path.Cs.tolist() == CS
    assert path.coefs.shape == (3, 1, 9)
    assert path.features == tuple(X.columns)
    for C, coef, objective, certificate in zip(
        path.Cs, path.coefs, path.objectives, path.certificates, strict=True
    ):
        alone = cls(C=C, **settings).fit(X, Y)
        assert certificate.status == "converged"
        assert certificate.relative_gap <= 1e-4
        assert_allclose(objective, alone.certificate_.primal, rtol=1e-6)
        assert_allclose(coef, alone.coef_, atol=1e-2 * np.abs(coef).max() + 1e-6)
    if "penalty" not in settings:
        assert np.all(np.diff(path.margins[:, 0]) < 0)
        assert_allclose(path.margins[:, 0], 2 / np.linalg.norm(path.coefs[:, 0], axis=1))
    assert "3 converged" in str(path)


def test_a_model_keeps_its_parameters():
    model = LogisticRegression(C=3.0, l1_ratio=1.0, tol=1e-9)
    found, expected = model.path(X, Y, CS), LogisticRegression.path(X, Y, CS, l1_ratio=1.0, tol=1e-9)
    assert np.any(found.coefs == 0)
    assert_allclose(found.coefs, expected.coefs, rtol=1e-12)
    assert np.all(model.path(X, Y, CS, l1_ratio=0.0).coefs != 0)  # the call has the last word
    assert model.C == 3.0
    assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="path sets C itself"):
        model.path(X, Y, CS, C=1.0)


def test_number_of_values_and_weights():
    path = LinearSVC.path(X, Y, 3, sample_weight=np.ones(len(Y)))
    assert_allclose(path.Cs, [1e-4, 1.0, 1e4])


@pytest.mark.parametrize("wrong", [[], [0.0, 1.0], [np.inf], 0])
def test_bad_values_are_refused(wrong):
    with pytest.raises(ValueError, match="Cs must be"):
        LinearSVC.path(X, Y, wrong)
    with pytest.raises(ValueError, match="itself"):
        LinearSVC.path(X, Y, CS, C=3.0)


def test_picture():
    path = LinearSVC.path(X, Y, CS)
    ax = plot.path(path)
    assert len(ax.figure.axes) == 2
    assert ax.get_xscale() == "log"
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    assert_allclose(drawn["mean radius"], path.coefs[:, 0, 0])
    assert "2 others" in drawn
    lower = ax.figure.axes[1]
    assert_allclose(lower.get_lines()[0].get_ydata(), path.margins[:, 0])
    twin = plot.path(path, ax=ax.figure.add_subplot())
    assert twin.get_ylabel() == "weight"
    with pytest.raises(ValueError, match="column=1"):
        plot.path(path, column=1)
