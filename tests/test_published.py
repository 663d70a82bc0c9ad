"""Values that other programs print in their documentation, on data that everyone has.

R with its packages ``stats`` (``glm``), ``MASS`` (``lda``, ``qda``) and ``e1071`` (``svm``), on ``iris``
and ``mtcars``; glmnet on the example of its maintainers' comparison with scikit-learn.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from separatrix.models.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from separatrix.models.logistic import LogisticRegression
from separatrix.models.svc import SVC

IRIS, SPECIES = load_iris(return_X_y=True)

# mtcars (Henderson and Velleman 1981): weight in 1000 lbs, horsepower, and whether the gearbox is manual
WT = [2.62, 2.875, 2.32, 3.215, 3.44, 3.46, 3.57, 3.19, 3.15, 3.44, 3.44, 4.07, 3.73, 3.78, 5.25, 5.424]
WT += [5.345, 2.2, 1.615, 1.835, 2.465, 3.52, 3.435, 3.84, 3.845, 1.935, 2.14, 1.513, 3.17, 2.77, 3.57, 2.78]
HP = [110, 110, 93, 110, 175, 105, 245, 62, 95, 123, 123, 180, 180, 180, 205, 215]
HP += [230, 66, 52, 65, 97, 150, 150, 245, 175, 66, 91, 113, 264, 175, 335, 109]
AM = [1, 1, 1] + 14 * [0] + [1, 1, 1] + 5 * [0] + 7 * [1]


@pytest.mark.parametrize(
    ("X", "y", "coef", "deviance"),
    [
        (np.c_[WT], AM, [12.040, -4.024], 19.176),  # glm(am ~ wt, binomial, mtcars)
        (np.c_[HP, WT], AM, [18.86630, 0.03626, -8.08348], 10.059),  # glm(am ~ hp + wt)
        (IRIS[50:], SPECIES[50:], [-42.638, -2.465, -6.681, 9.429, 18.286], 11.899),  # two species of iris
    ],
    ids=["wt", "hp+wt", "iris"],
)
def test_glm(X, y, coef, deviance):
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    found = np.concatenate([model.intercept_, model.coef_[0]])
    assert_allclose(found, coef, atol=6e-4, rtol=0)
    assert_allclose(2 * model.certificate_.primal, deviance, atol=6e-4)


def test_lda_of_mass():
    """MASS divides by n − K, scikit-learn and this library by n: directions are √((n − K)/n) times ours."""
    model = LinearDiscriminantAnalysis().fit(IRIS, SPECIES)
    printed = [
        [0.8293776, 0.02410215],
        [1.5344731, 2.16452123],
        [-2.2012117, -0.93192121],
        [-2.8104603, 2.83918785],
    ]
    assert_allclose(np.abs(model.scalings_) * np.sqrt(147 / 150), np.abs(printed), atol=1e-7)
    assert_array_equal(np.sign(model.scalings_[:, 0] * model.scalings_[0, 0]), np.sign(printed)[:, 0])
    assert_array_equal(np.sign(model.scalings_[:, 1] * model.scalings_[0, 1]), np.sign(printed)[:, 1])
    assert_allclose(model.explained_variance_ratio_, [0.9912, 0.0088], atol=5e-5)
    assert_array_equal(np.sum(model.predict(IRIS) != SPECIES), 3)


def test_qda_of_mass():
    assert np.sum(QuadraticDiscriminantAnalysis().fit(IRIS, SPECIES).predict(IRIS) != SPECIES) == 3


def test_svm_of_e1071():
    """``svm(Species ~ ., data = iris)``: standardised (n − 1), gamma 1/4, cost 1, 51 vectors ( 8 22 21 )."""
    X = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0, ddof=1)
    model = SVC(gamma=0.25).fit(X, SPECIES)
    assert_array_equal(model.n_support_, [8, 22, 21])
    confusion = np.zeros((3, 3), dtype=int)
    np.add.at(confusion, (model.predict(X), SPECIES), 1)
    assert_array_equal(confusion, [[50, 0, 0], [0, 48, 2], [0, 2, 48]])


def test_glmnet():
    """``glmnet(x, y, alpha=0, lambda=1, standardize=F)``: its loss is a mean, so C is 1/n."""
    X = np.array([[-4, -3, -2, -1, 0, 1, 2, 3, 4], [0, 0, 1, 0, 1, 1, 1, 0, 0]], dtype=float).T
    two = LogisticRegression(C=1 / 9, tol=1e-12).fit(X, [0, 0, 0, 1, 1, 1, 1, 1, 1])
    assert_allclose(two.intercept_, 0.89230405539, atol=1e-8)
    assert_allclose(two.coef_, [[0.44464569182, 0.01457563448]], atol=1e-8)
    three = LogisticRegression(C=1 / 9, tol=1e-12).fit(X, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert_allclose(three.coef_[0], [-0.38023389305, -0.01226499932], atol=1e-7)
    assert_allclose(three.coef_[1], [-8.164030176e-05, 4.734548012e-02], atol=1e-7)
    shares = [-0.12004759652, 0.2251747383, -0.1051271418]
    assert_allclose(three.intercept_ - three.intercept_.mean(), shares, atol=1e-7)
