"""Problems as solvers take them, from samples and labels."""

import numpy as np
from scipy import sparse

from separatrix.data.memory import view_of
from separatrix.multiclass import Coding
from separatrix.problem import Problem


def problem_of(X, y, name="ovr", *, weights=None, fit_intercept=True, n_classes=None):
    """Return samples and labels 0, 1, … as a problem of linear scores."""
    y = np.asarray(y)
    coding = Coding.of(name, n_classes or int(y.max()) + 1)
    X = X if sparse.issparse(X) else np.asarray(X)
    return Problem(
        view_of(X),
        y.astype(np.int32),
        coding.codes,
        joint=coding.joint,
        weights=None if weights is None else np.asarray(weights, dtype=float),
        fit_intercept=fit_intercept,
    )


def three_groups(random):
    """Class 2 is apart, 0 and 1 overlap."""
    X = random.normal(size=(150, 2))
    y = np.repeat([0, 1, 2], 50)
    X[y == 2, 0] += 20.0
    return X, y


def samples(n, d, n_classes=3, seed=0, offset=2.0):
    """Normal samples of classes that differ a little, far from the origin."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return random.normal(size=(n, d)) + offset + 0.5 * np.eye(n_classes, d)[y], y
