"""scikit-learn's own checks of estimators, each a test."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def checked(estimators, excuse=lambda estimator, name: None):
    """Give a test of (estimator, check) every check of every estimator.

    `excuse` tells why a check, known by its name, cannot hold for an estimator; None where it must. An excuse
    that is no longer needed fails.
    """
    found = []
    for made in estimators:
        for number, (estimator, check) in enumerate(estimator_checks_generator(made)):
            name = getattr(check, "func", check).__name__
            why = excuse(estimator, name)
            marks = pytest.mark.xfail(reason=why, strict=True) if why else ()
            found.append(pytest.param(estimator, check, id=f"{estimator}-{name}-{number}", marks=marks))

    every = pytest.mark.parametrize(("estimator", "check"), found)
    return lambda test: every(pytest.mark.filterwarnings("ignore")(test))
