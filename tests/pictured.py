"""What the pictures show: irises, two moons, a wave."""

import numpy as np
from sklearn.datasets import load_iris, make_moons

IRIS = load_iris()
NAMES = IRIS.target_names[IRIS.target]
TWO, THREE = IRIS.data[50:, 2:], IRIS.data[:, :2]


def moons():
    X, y = make_moons(80, noise=0.25, random_state=0)
    return X, y


def regression():
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 6, 60))
    return x[:, None], np.sin(x) + 0.2 * random.normal(size=60)
