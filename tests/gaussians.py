"""Gaussian models of every kind, and samples for them."""

import numpy as np

from separatrix.models.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from separatrix.models.gaussian import GaussianClassifier

FORMS = ("shared", "full", "diagonal", "spherical")
MODELS = [
    *(GaussianClassifier(form) for form in FORMS),
    *(LinearDiscriminantAnalysis(solver=solver) for solver in ("svd", "lsqr", "eigen")),
    *(QuadraticDiscriminantAnalysis(solver=solver) for solver in ("svd", "eigen")),
]


def named(model):
    return str(model)


def make(n_classes, n=240, d=4, seed=0):
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n) % n_classes)
    spread = random.normal(size=(n_classes, d, d)) * 0.3 + np.eye(d)
    noise = np.einsum("ij,ijk->ik", random.normal(size=(n, d)), spread[y])
    return noise + 2 * random.normal(size=(n_classes, d))[y], np.array(list("abcdefgh"))[y]
