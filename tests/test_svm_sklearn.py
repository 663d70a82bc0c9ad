"""The kernel machines under scikit-learn's own checks and conventions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from separatrix.models.one_class import OneClassSVM
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR

X, Y = load_iris(return_X_y=True)
MODELS = {"SVC": SVC, "NuSVC": NuSVC, "SVR": SVR, "NuSVR": NuSVR, "OneClassSVM": OneClassSVM}
ESTIMATORS = [
    SVC(),
    SVC(kernel="linear", multiclass="ovr"),
    SVC(probability=True),
    NuSVC(),
    SVR(),
    SVR(kernel="poly", coef0=1.0),
    NuSVR(),
    OneClassSVM(),
]
CHECKS = [
    pytest.param(estimator, check, id=f"{estimator}-{getattr(check, 'func', check).__name__}-{number}")
    for estimator in ESTIMATORS
    for number, (estimator, check) in enumerate(estimator_checks_generator(estimator))
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(estimator, check):
    """Every check of scikit-learn."""
    check(estimator)
