"""Values that other programs print, on data that everyone has.

R with its packages ``stats`` (``glm``), ``MASS`` (``lda``, ``qda``) and ``e1071`` (``svm``), on ``iris``
and ``mtcars``; glmnet on the example of its maintainers' comparison with scikit-learn. Values with nine
digits and more were computed with R 4.2.2, e1071 1.7.13, glmnet 4.1.6, kernlab 0.9.32, MASS 7.3.58.2 and
nnet 7.3.18.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from separatrix import GaussianClassifier, NuSVC, NuSVR, OneClassSVM, RidgeClassifier, kernels
from separatrix.models.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from separatrix.models.logistic import LogisticRegression
from separatrix.models.svc import SVC
from separatrix.models.svr import SVR

IRIS, SPECIES = load_iris(return_X_y=True)
#: ``scale(iris[, 1:4])``
SCALED = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0, ddof=1)

# mtcars (Henderson and Velleman 1981): weight in 1000 lbs, horsepower, and whether the gearbox is manual
WT = [2.62, 2.875, 2.32, 3.215, 3.44, 3.46, 3.57, 3.19, 3.15, 3.44, 3.44, 4.07, 3.73, 3.78, 5.25, 5.424]
WT += [5.345, 2.2, 1.615, 1.835, 2.465, 3.52, 3.435, 3.84, 3.845, 1.935, 2.14, 1.513, 3.17, 2.77, 3.57, 2.78]
HP = [110, 110, 93, 110, 175, 105, 245, 62, 95, 123, 123, 180, 180, 180, 205, 215]
HP += [230, 66, 52, 65, 97, 150, 150, 245, 175, 66, 91, 113, 264, 175, 335, 109]
MPG = [21, 21, 22.8, 21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2, 10.4, 10.4]
MPG += [14.7, 32.4, 30.4, 33.9, 21.5, 15.5, 15.2, 13.3, 19.2, 27.3, 26, 30.4, 15.8, 19.7, 15, 21.4]
QSEC = [16.46, 17.02, 18.61, 19.44, 17.02, 20.22, 15.84, 20, 22.9, 18.3, 18.9, 17.4, 17.6, 18, 17.98, 17.82]
QSEC += [17.42, 19.47, 18.52, 19.9, 20.01, 16.87, 17.3, 15.41, 17.05, 18.9, 16.7, 16.9, 14.5, 15.5]
QSEC += [14.6, 18.6]
GEAR = [4, 4, 4, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 4, 4, 4, 3, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5, 4]
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
    model = SVC(gamma=0.25).fit(SCALED, SPECIES)
    assert_array_equal(model.n_support_, [8, 22, 21])
    confusion = np.zeros((3, 3), dtype=int)
    np.add.at(confusion, (model.predict(SCALED), SPECIES), 1)
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


def test_class_weights_of_e1071():
    """``svm(Species ~ ., iris, class.weights = c(1, 2, 5), tolerance = 1e-8)``: nSV, rho, three rows."""
    model = SVC(gamma=0.25, class_weight={0: 1, 1: 2, 2: 5}, tol=1e-8, decision_function_shape="ovo")
    model.fit(SCALED, SPECIES)
    assert_array_equal(model.n_support_, [8, 22, 13])
    assert_allclose(-model.intercept_, [-0.0204497665799, 0.131093897623, 0.0819757372219], atol=1e-7)
    rows = [
        [1.19703466, 1.09162903, 0.917816465],
        [-1.13274139, -0.903671052, 0.00539462503],
        [-1.1922365, -0.999999991, -1.00000009],
    ]
    assert_allclose(model.decision_function(SCALED[[0, 70, 106]]), rows, atol=1e-6)


def test_one_class_of_e1071():
    """``svm(scale(iris[, 1:4]), type = "one-classification", nu = 0.2, gamma = 0.1)``."""
    model = OneClassSVM(nu=0.2, gamma=0.1, tol=1e-8).fit(SCALED)
    found = [-model.intercept_[0], *model.decision_function(SCALED[[0, 70, 106]])]
    assert_allclose(found, [12.2388312, 0.701486432, 1.57017183, -0.561544905], atol=1e-6)


def test_regression_of_e1071():
    """``svm(scale(mtcars[, c("wt", "hp")]), mtcars$mpg, kernel = "linear", epsilon = 1)``."""
    X = np.c_[WT, HP]
    model = SVR(kernel="linear", epsilon=1.0, tol=1e-10)
    model.fit((X - X.mean(axis=0)) / X.std(axis=0, ddof=1), MPG)
    assert_allclose(model.coef_, [[-3.45319032, -2.07167493]], rtol=1e-7)
    assert_allclose(model.intercept_, [19.5155123], rtol=1e-7)
    assert model.n_support_[0] == 20


def test_posteriors_of_mass():
    """Flowers 71, 84 and 134 of iris; ``lda`` and ``qda`` divide by n − K and n_k − 1, ``"mle"`` by n_k."""
    rows = [70, 83, 133]
    shared = GaussianClassifier(covariance="shared", divisor="unbiased").fit(IRIS, SPECIES)
    lda = [[0.253228225, 0.746771775], [0.143391908, 0.856608092], [0.729388128, 0.270611872]]
    assert_allclose(shared.predict_proba(IRIS[rows])[:, 1:], lda, atol=1e-8)
    full = GaussianClassifier(covariance="full", divisor="unbiased").fit(IRIS, SPECIES)
    qda = [[0.335944183, 0.664055817], [0.154348331, 0.845651669], [0.604961132, 0.395038868]]
    assert_allclose(full.predict_proba(IRIS[rows])[:, 1:], qda, atol=1e-8)
    mle = [[0.328451334, 0.671548666], [0.147357616, 0.852642384], [0.602287982, 0.397712018]]
    model = QuadraticDiscriminantAnalysis().fit(IRIS, SPECIES)
    assert_allclose(model.predict_proba(IRIS[rows])[:, 1:], mle, atol=1e-8)


def test_naive_bayes_of_e1071():
    """``naiveBayes(iris[, 1:4], iris[, 5])``: one variance for each class and feature, divided by n_k − 1."""
    model = GaussianClassifier(covariance="diagonal", divisor="unbiased").fit(IRIS, SPECIES)
    expected = [[0.160936052482, 0.839063947518], [0.613435476699, 0.386564523301]]
    assert_allclose(model.predict_proba(IRIS[[70, 83]])[:, 1:], expected, atol=1e-11)


def test_ridge_of_mass():
    """``lm.ridge((Species == "versicolor") ~ ., iris, lambda = 3)``: standardised with divisor n."""
    deviations = IRIS.std(axis=0)
    model = RidgeClassifier(alpha=3.0).fit(IRIS / deviations, SPECIES == 1)
    expected = [0.0346623378637, -0.4896996023953, 0.113472033923, -0.3070598034159]
    assert_allclose(model.coef_.ravel() / deviations / 2, expected, rtol=1e-9)
    assert_allclose((model.intercept_ + 1) / 2, [1.5698038108871], rtol=1e-9)


@pytest.mark.parametrize(
    ("alpha", "coef"),
    [
        (1.0, [[0, 0, -2.85422814446, 0], [0, 0, 0, 0], [0, 0, 3.14917131023, 1.31971504297]]),
        (
            0.3,
            [
                [-0.114373693809, 0.461721528723, -2.032937333717, -0.588754589989],
                [0.1189403224423, -0.0987813022779, 0, -0.3590466699532],
                [0, 0, 2.05698010543, 1.37637268851],
            ],
        ),
    ],
    ids=["lasso", "elastic net"],
)
def test_penalties_of_glmnet(alpha, coef):
    """``glmnet(x, Species, "multinomial", alpha, lambda = 0.02, standardize = FALSE, thresh = 1e-16)``."""
    model = LogisticRegression(C=1 / (150 * 0.02), l1_ratio=alpha, tol=1e-10).fit(IRIS, SPECIES)
    assert_allclose(model.coef_, coef, atol=1e-6)
    assert_array_equal(model.coef_ == 0, np.array(coef) == 0)


def test_weights_of_glmnet():
    """The same with two species, ``alpha = 0.5, lambda = 0.05, weights = rep(c(1, 2), 50)``."""
    model = LogisticRegression(C=1 / (150 * 0.05), l1_ratio=0.5, tol=1e-10)
    model.fit(IRIS[50:], SPECIES[50:], sample_weight=np.tile([1.0, 2.0], 50))
    assert_allclose(model.coef_, [[0, 0, 1.870648737, 1.051863511]], atol=1e-7)
    assert_allclose(model.intercept_, [-10.876830614], atol=1e-6)


def test_weights_of_glm():
    """``glm(Species == "virginica" ~ Petal.Length, binomial, weights = c(rep(1, 50), rep(2, 50)))``."""
    model = LogisticRegression(C=np.inf, tol=1e-12)
    model.fit(IRIS[50:, 2:3], SPECIES[50:], sample_weight=np.repeat([1.0, 2.0], 50))
    assert_allclose([model.intercept_[0], model.coef_[0, 0]], [-42.21868431565, 8.82144226957], rtol=1e-9)
    assert_allclose(2 * model.certificate_.primal, 47.361885946, rtol=1e-10)


def _euclidean_laplacian(A, B):
    return np.exp(-0.5 * np.linalg.norm(A[:, None] - B[None], axis=2))


@pytest.mark.parametrize(
    ("kernel", "objective", "b", "decision"),
    [
        (kernels.RBF(0.25), 38.2393041, 0.0752349555, [-0.172979023, 0.367452678, -0.153652151]),
        (_euclidean_laplacian, 31.3167988, -0.081412368, [-0.352494221, 0.178462926, 0.219478706]),
        (kernels.Bessel(1, 1, 1), 45.052242, -0.00288601433, [-0.0602251112, 0.167018542, -0.232851939]),
        (kernels.AnovaRBF(0.5, 1), 27.2545926, -0.798948767, [0.159993763, 0.779842491, 0.0606554916]),
        (kernels.Polynomial(2, 0.5, 1), 20.66838, 2.76761713, [-0.0685438929, 0.763710637, 0.0321686578]),
    ],
    ids=["rbfdot", "laplacedot", "besseldot", "anovadot", "polydot"],
)
def test_machines_of_kernlab(kernel, objective, b, decision):
    """``ksvm`` of two species, ``C = 2, tol = 1e-9, scaled = FALSE``: flowers 71, 84 and 134 of iris."""
    model = SVC(C=2.0, kernel=kernel, tol=1e-9).fit(SCALED[50:], SPECIES[50:])
    assert_allclose(model.certificate_.primal, objective, rtol=1e-6)
    assert_allclose(-model.intercept_, [b], atol=5e-6)
    assert_allclose(model.decision_function(SCALED[[70, 83, 133]]), decision, atol=5e-6)


def test_nu_machines_of_kernlab_and_e1071():
    """``ksvm(type = "nu-svc", nu = 0.3)``; ``svm`` with ``"nu-classification"`` and ``"nu-regression"``."""
    two = NuSVC(nu=0.3, gamma=0.25, tol=1e-9).fit(SCALED[50:], SPECIES[50:])
    expected = [-0.186196692, 0.257633408, -0.171301854]
    assert_allclose(two.decision_function(SCALED[[70, 83, 133]]), expected, atol=1e-6)
    three = NuSVC(nu=0.2, gamma=0.25, tol=1e-9).fit(SCALED, SPECIES)
    assert_array_equal(three.n_support_, [16, 22, 20])
    assert_allclose(-three.intercept_, [0.0326310466, 0.1302868942, -0.0088004498], atol=1e-6)
    X = np.c_[WT, HP]
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    numbers = NuSVR(nu=0.4, C=5.0, gamma=0.25, tol=1e-10).fit(X, MPG)
    assert_allclose(numbers.intercept_, [19.8953234632], rtol=1e-7)
    assert_allclose(numbers.predict(X[:3]), [22.8520069375, 21.6721782096, 25.1195350099], rtol=1e-7)
    assert_allclose(numbers.certificate_.primal, 261.119463401, rtol=1e-7)


def test_signs_of_e1071():
    """``svm`` of two species: there a positive value means the first class, here the second."""
    model = SVC(gamma=0.25, tol=1e-9).fit(SCALED[50:], SPECIES[50:])
    assert_allclose(model.intercept_, [-0.062363974774], atol=1e-7)  # rho, not its opposite
    assert_allclose(-model.dual_coef_[0, :3], [1.0, 1.0, 0.649628257383], atol=5e-6)
    values = [0.136392219783, -0.191590385192, 0.217557247674]
    assert_allclose(-model.decision_function(SCALED[[70, 83, 133]]), values, atol=5e-7)


def test_multinom_of_nnet():
    """``multinom(factor(gear) ~ qsec, mtcars)``: coefficients against the first class, deviance."""
    model = LogisticRegression(C=np.inf, tol=1e-12).fit(np.c_[QSEC], GEAR)
    found = np.c_[model.intercept_, model.coef_]
    expected = [[-12.3556037, 0.663940444], [24.2504657, -1.52489091]]
    assert_allclose(found[1:] - found[0], expected, rtol=1e-5)
    assert_allclose(2 * model.certificate_.primal, 46.7616545, rtol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (kernels.RBF(0.3), [0.00815601163267, 0.000229639470144, 0.360594940173]),  # rbfdot(0.3)
        (kernels.Polynomial(3, 0.2, 1.5), [1839.16614701, 1734.9212201, 6615.02723565]),  # polydot
        (kernels.Sigmoid(0.01, 0.2), [0.627692948157, 0.620489106822, 0.787037803324]),  # tanhdot(0.01, 0.2)
        (kernels.Bessel(1, 1, 1), [-0.0337028931985, -0.13084991947, 0.631119795454]),  # besseldot(1, 1, 1)
        (kernels.Bessel(0.7, 1, 2), [0.085120672281, 0.000854628371024, 0.649175987057]),
        (kernels.Bessel(1, 2, 3), [0.00595518239046, -2.90558928464e-06, 0.413699972602]),
        (kernels.AnovaRBF(1, 1), [1.17792943456, 1.20275895874, 2.08539303136]),  # anovadot(1, 1)
        (kernels.AnovaRBF(0.5, 2), [2.59706772857, 2.36538771677, 7.58092962704]),
    ],
    ids=str,
)
def test_kernels_of_kernlab(kernel, values):
    """The three pairs among flowers 1, 51 and 101 of iris."""
    K = np.asarray(kernel(IRIS[[0, 50, 100]]))
    assert_allclose(K[[0, 0, 1], [1, 2, 2]], values, rtol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "raw", "normalised"),
    [
        (kernels.Spectrum(2), [10, 8, 7, 2, 2, 3], [0.956182887468, 0.36514837167, 0.436435780472]),
        (kernels.BoundedRange(3), [40, 33, 33, 9, 10, 9], [0.908295106229, 0.474341649025, 0.580258853186]),
        (kernels.ConstantSubstring(), [61, 36, 48, 9, 10, 10], [0.66529914386, 0.36439934858, 0.45643546459]),
        (
            kernels.ExponentialSubstring(1.1),
            [46.7899271265, 30.6946867762, 37.5598289301, 8.01652892562, 8.76784372652, 8.30134553651],
            [0.732192403573, 0.406757841332, 0.496542872272],
        ),
        (
            kernels.Subsequence(2, decay=0.5),
            [1.10255432129, 0.822326660156, 0.766174316406, 0.125, 0.17578125, 0.140625],
            [0.894706469857, 0.317452496954, 0.535522208399],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_string_kernels_of_kernlab(kernel, raw, normalised):
    """``stringdot``: a line feed ends each text and counts as its last character, but not in "sequence"."""
    end = "" if isinstance(kernel, kernels.Subsequence) else "\n"
    texts = [text + end for text in ("gatagaca", "acataga", "cat")]
    K, bare = np.asarray(kernel(texts)), np.asarray(replace(kernel, normalize=False)(texts))
    assert_allclose(bare[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]], raw, rtol=1e-11)
    assert_allclose(K[[0, 0, 1], [1, 2, 2]], normalised, rtol=1e-11)


def test_more_string_kernels_of_kernlab():
    """``stringdot("string", length = 2, lambda = 0.5)`` and ``"fullstring"`` of length 3, not normalised."""
    texts = ["gatagaca", "acataga", "cat"]
    one, two, three = (kernels.Spectrum(length, normalize=False) for length in (1, 2, 3))
    string = [[0.140625, 0.109375, 0.03125], [0.109375, 0.09375, 0.03125], [0.03125, 0.03125, 0.03125]]
    assert_allclose(0.5**6 * two(texts), string, rtol=1e-14)
    full = [[6.15625, 5.5, 1.625], [5.5, 5.203125, 1.640625], [1.625, 1.640625, 0.890625]]
    assert_allclose((0.5**2 * one + 0.5**4 * two + 0.5**6 * three)(texts), full, rtol=1e-14)
