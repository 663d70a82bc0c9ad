"""Values of R's packages on data that scikit-learn brings: wine, diabetes, breast cancer.

Computed with R 4.2.2, e1071 1.7.13, glmnet 4.1.6, kernlab 0.9.32, MASS 7.3.58.2 and class 7.3.21; each test
says the call. ``test_published`` has those on iris and mtcars.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from separatrix import (
    SVC,
    SVR,
    GaussianClassifier,
    KNeighborsClassifier,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    kernels,
)

WINE, GROWER = load_wine(return_X_y=True)
#: The wines whose values are compared: rows 1, 62, 84, 122 and 131 there.
SOME = [0, 61, 83, 121, 130]
#: Alcohol and ash, by which the classes overlap.
TWO = WINE[:, [0, 2]]
CELLS, BENIGN = load_breast_cancer(return_X_y=True)


def standardised(X):
    """``scale(X)``."""
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


SCALED = standardised(WINE)
PATIENTS, PROGRESS = load_diabetes(return_X_y=True, scaled=False)
PATIENTS = standardised(PATIENTS)


@pytest.mark.parametrize(
    ("covariance", "errors", "first", "second"),
    [
        (
            "shared",
            52,
            [0.876818987870715, 0.019836365600561, 0.231905428454247, 0.007784976495094, 0.129826750243755],
            [0.000638036855275, 0.840491016938275, 0.245558909824379, 0.704201062170091, 0.429630939411655],
        ),
        (
            "full",
            46,
            [0.851357404202, 0.00723343579943, 0.195050006139, 0.000179923292751, 0.0948236504945],
            [0.000599111892414, 0.880781755361, 0.185695276524, 0.999812533330, 0.330088224652],
        ),
    ],
    ids=["lda", "qda"],
)
def test_leaving_one_out_in_mass(covariance, errors, first, second):
    """``lda(x, y, CV = TRUE)`` and ``qda``: the prior stays that of all samples."""
    shares = np.bincount(GROWER) / GROWER.size
    model = GaussianClassifier(covariance=covariance, divisor="unbiased", priors=shares)
    found = cross_val_predict(model, TWO, GROWER, cv=LeaveOneOut(), method="predict_proba")
    assert_allclose(found[SOME, :2], np.c_[first, second], rtol=1e-10)
    assert np.sum(found.argmax(axis=1) != GROWER) == errors


@pytest.mark.parametrize(
    ("covariance", "first", "second"),
    [
        (
            "shared",
            [0.936383558935999, 0.037708021273895, 0.378033753089758, 0.012815705691874, 0.229843751882514],
            [0.000332138264703, 0.829935966087014, 0.207126732667105, 0.769112778775398, 0.380226238693882],
        ),
        (
            "full",
            [0.922958843508, 0.0141890811249, 0.326463695508, 0.000145788943532, 0.172634567376],
            [0.000314874105851, 0.877806998717, 0.163936780861, 0.999851205854, 0.299630511248],
        ),
    ],
    ids=["lda", "qda"],
)
def test_given_priors_in_mass(covariance, first, second):
    """``lda(x, y, prior = c(.5, .3, .2))`` and ``qda``."""
    model = GaussianClassifier(covariance=covariance, divisor="unbiased", priors=[0.5, 0.3, 0.2])
    found = model.fit(TWO, GROWER).predict_proba(TWO[SOME])
    assert_allclose(found[:, :2], np.c_[first, second], rtol=1e-10)


@pytest.mark.parametrize(("k", "errors"), [(1, 8), (3, 8), (5, 5)])
def test_neighbours_of_class(k, errors):
    """``knn.cv(scale(wine), y, k)``, where no vote is equal."""
    found = cross_val_predict(KNeighborsClassifier(k), SCALED, GROWER, cv=LeaveOneOut())
    assert np.sum(found != GROWER) == errors


def test_joint_machine_of_kernlab():
    """``ksvm(scale(wine), y, type = "spoc-svc", kernel = rbfdot(0.05), C = 10, tol = 1e-7)``."""
    scores = [
        [1.207891997583, -0.890060044340, -0.317831953243],
        [-0.689844368881, 0.844922038610, -0.155077669729],
        [-0.570403484251, 0.785201676971, -0.214798192720],
        [-0.333333274556, 0.666666583244, -0.333333308688],
        [-0.333333310497, -0.333333445156, 0.666666755653],
    ]
    model = SVC(C=10.0, kernel=kernels.RBF(0.05), multiclass="joint", tol=1e-10).fit(SCALED, GROWER)
    assert_allclose(model.decision_function(SCALED[SOME]), scores, atol=1e-6)
    assert_array_equal(model.intercept_, 0.0)


def test_three_classes_of_kernlab():
    """``ksvm(type = "nu-svc", nu = 0.2, kernel = polydot(2, 0.1, 1))``: pairs with the opposite sign."""
    kernel = kernels.Polynomial(2, 0.1, 1)
    model = NuSVC(nu=0.2, kernel=kernel, tol=1e-10, decision_function_shape="ovo").fit(SCALED, GROWER)
    assert_allclose(model.intercept_, [-0.030896677159, 0.332747304002, 0.585331597008], atol=1e-5)
    values = [
        [-2.2818269723217, -1.5164254729825, -0.7863570327444],
        [1.5384146052121, 0.5937133778198, -0.3378245189837],
        [1.0191614886017, 0.6634201055565, -0.0450151391477],
        [0.9999998235397, -1.1082752353115, -1.3433691985678],
        [0.7900774359849, 0.6922314951762, 0.4023188314812],
    ]
    assert_allclose(-model.decision_function(SCALED[SOME]), values, atol=1e-5)


def test_anova_machine_of_kernlab():
    """``ksvm(kernel = anovadot(0.2, 2), C = 0.01)``: its fit, since its ``predict`` is wrong."""
    model = SVC(C=0.01, kernel=kernels.AnovaRBF(0.2, 2), tol=1e-10).fit(SCALED, GROWER)
    assert_allclose(model.certificate_.primal, 0.1395571164777 + 0.0342988090131 + 0.1197336922790, rtol=1e-6)
    assert_allclose(model.intercept_, [-0.965242455697, -0.275305514033, 0.390345436464], atol=1e-5)


def test_bessel_machine_of_kernlab():
    """``ksvm`` of two growers, ``kernel = besseldot(0.3, 6, 2), C = 1``."""
    two = GROWER > 0
    model = SVC(kernel=kernels.Bessel(0.3, 6, 2), tol=1e-10).fit(SCALED[two], GROWER[two])
    assert_allclose(model.certificate_.primal, 30.1243063217, rtol=1e-7)
    assert_allclose(-model.intercept_, [0.335812591637], atol=1e-6)
    values = [-0.919989946854, -0.110390666052, 0.140605002955, -1.194212881321, 0.441016921055]
    assert_allclose(model.decision_function(SCALED[SOME]), values, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "b", "predictions", "vectors"),
    [
        (SVR(C=20, epsilon=10), -175.138651138, [194.5393234867, 71.9794528476, 167.9185365919], 385),
        (NuSVR(C=20, nu=0.4), -177.912906782, [194.9577076493, 95.7894649456, 173.7149490573], 184),
    ],
    ids=["eps-svr", "nu-svr"],
)
def test_regressions_of_kernlab(model, b, predictions, vectors):
    """``ksvm(scale(diabetes), target, type, kernel = rbfdot(0.02), C = 20, scaled = FALSE, tol = 1e-9)``."""
    model.set_params(gamma=0.02, tol=1e-9).fit(PATIENTS, PROGRESS)
    assert_allclose(-model.intercept_, [b], rtol=1e-7)
    assert_allclose(model.predict(PATIENTS[:3]), predictions, rtol=1e-7)
    assert model.support_.size == vectors


def test_one_class_of_kernlab():
    """``ksvm(scale(diabetes), type = "one-svc", kernel = rbfdot(0.02), nu = 0.15)``."""
    model = OneClassSVM(nu=0.15, gamma=0.02, tol=1e-9).fit(PATIENTS)
    assert_allclose(-model.intercept_, [35.0465800372], rtol=1e-8)
    values = [4.41737616813, 2.06956798150, 2.96858359280, 4.60574490600]
    assert_allclose(model.decision_function(PATIENTS[:4]), values, rtol=1e-7)
    assert model.support_.size == 70


def test_path_of_glmnet():
    """``glmnet(wdbc, y, "binomial", lambda = c(.1, .03, .01))``, features standardised there."""
    deviations = CELLS.std(axis=0)
    Cs = 1 / (CELLS.shape[0] * np.array([0.1, 0.03, 0.01]))
    path = LogisticRegression(l1_ratio=1, tol=1e-11).path(CELLS / deviations, BENIGN, Cs)
    kept = ([7, 20, 21, 27], [7, 20, 21, 24, 27, 28], [1, 7, 10, 20, 21, 24, 26, 27, 28])
    values = (
        [-0.85035053371481, -0.17231368562259, -0.00198560916004, -14.73638169906132],
        [-13.377286382517, -0.3601165642242, -0.0876002310423, -1.5602757213174, -16.566302318133,
         -1.1624683636829],
        [-0.00772388084527, -12.122524043636, -2.6757995526754, -0.59721908078124, -0.14833230561337,
         -15.885389821616, -0.65461007855823, -16.507663128014, -3.9740192669918],
    )  # fmt: skip
    assert_allclose(path.intercepts.ravel(), [5.24935011285, 11.93892852677, 21.29334128716], rtol=1e-6)
    for weights, where, expected in zip(path.coefs, kept, values, strict=True):
        assert_array_equal(np.flatnonzero(weights), where)
        assert_allclose((weights.ravel() / deviations)[where], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("penalty", "coef", "deviance"),
    [
        (0.1, [13.1060351057011, -0.0763908801517, -0.0571209335723, -0.0109126751005], 154.6689080014),
        (0.01, [23.2483452231406, -0.1181652915505, -0.1058766030028, -0.0166385186353], 82.8842800645),
    ],
)
def test_ridge_of_glmnet(penalty, coef, deviance):
    """The same with ``alpha = 0``: the intercept, the first three coefficients, the deviance."""
    deviations = CELLS.std(axis=0)
    model = LogisticRegression(C=1 / (CELLS.shape[0] * penalty), tol=1e-12).fit(CELLS / deviations, BENIGN)
    found = np.concatenate([model.intercept_, model.coef_[0] / deviations])
    assert_allclose(found[:4], coef, rtol=1e-6)
    losses = np.logaddexp(0, -np.where(BENIGN, 1, -1) * model.decision_function(CELLS / deviations))
    assert_allclose(2 * losses.sum(), deviance, rtol=1e-7)


def test_likelihood_of_glm():
    """``glm(y ~ radius + texture + smoothness, binomial, epsilon = 1e-14)``."""
    model = LogisticRegression(C=np.inf, tol=1e-13).fit(CELLS[:, [0, 1, 4]], BENIGN)
    found = [*model.intercept_, *model.coef_[0]]
    assert_allclose(found, [42.019407644916, -1.396992408096, -0.380558926266, -144.674227115], rtol=1e-8)
    assert_allclose(2 * model.certificate_.primal, 187.290222718, rtol=1e-10)


def test_naive_bayes_of_e1071():
    """``naiveBayes(wine, y)``: probabilities of the second grower."""
    model = GaussianClassifier(covariance="diagonal", divisor="unbiased").fit(WINE, GROWER)
    expected = [1.77863763526e-10, 0.737013888396, 0.0339785859486, 0.999999998594, 0.0171672207008]
    assert_allclose(model.predict_proba(WINE[SOME])[:, 1], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "raw", "normalised"),
    [
        (
            kernels.Spectrum(3),
            [13, 8, 16, 5, 18, 9],
            [0.545948683236, 0.397523196, 0.615840287136, 0.28171808491, 0.78558440485, 0.464758001545],
        ),
        (
            kernels.BoundedRange(4),
            [109, 84, 125, 68, 123, 87],
            [0.754763672282, 0.682048292585, 0.796194494758, 0.604068696341, 0.857148060257, 0.710920989876],
        ),
        (
            kernels.ConstantSubstring(),
            [114, 85, 141, 68, 152, 88],
            [0.3619868544, 0.333202691222, 0.40634174498, 0.294554511842, 0.484042068905, 0.345958351873],
        ),
        (
            kernels.ExponentialSubstring(1.5),
            [59.8491083676, 47.5390946502, 68.5383325713, 39.9259259259, 65.8569436683, 48.7242798354],
            [0.773608385222, 0.7250979761, 0.819300983103, 0.659081136729, 0.852019652763, 0.743833565181],
        ),
        (
            kernels.Subsequence(3, decay=0.6),
            [2.11270088604, 1.71795914286, 2.55105699581, 1.05220198585, 2.56693996083, 1.66408539023],
            [0.635999886575, 0.551203855926, 0.68141233963, 0.379130681804, 0.770009249246, 0.532030133561],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sentences_of_kernlab(kernel, raw, normalised):
    """``stringdot`` of length 3, 4, all, all (``lambda = 1.5``) and 3 (``"sequence", lambda = 0.6``)."""
    texts = ["the cat sat on the mat", "a cat is on that mat", "rats eat the hat", "that hat is on the cat"]
    if not isinstance(kernel, kernels.Subsequence):
        texts = [text + "\n" for text in texts]
    pairs = np.triu_indices(4, 1)
    assert_allclose(np.asarray(kernel(texts))[pairs], normalised, rtol=1e-10)
    assert_allclose(np.asarray(replace(kernel, normalize=False)(texts))[pairs], raw, rtol=1e-10)
