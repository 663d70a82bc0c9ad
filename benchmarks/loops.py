"""The loops whose instructions are counted: small fits and calls, each dominated by one hot loop."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import separatrix as sx
from benchmarks import datasets
from benchmarks.datasets import Dataset
from separatrix.data.threads import at_most


@cache
def _dense(classes: int, dtype: str = "float64", rows: int = 2000) -> Dataset:
    return datasets.dense(rows, 40, classes, dtype)


@cache
def _text(classes: int) -> Dataset:
    return datasets.text_like(1500, 3000, classes, "zipf")


def _fit(data: Callable[[], Dataset], name: str, **options: Any) -> Callable[[], object]:
    found, make = data(), partial(getattr(sx, name), **options)

    def loop() -> None:
        with at_most(1):
            make().fit(found.X, found.y)

    return loop


_PASSES = {"max_iter": 5, "tol": None, "random_state": 0}

LOOPS: dict[str, Callable[[], Callable[[], object]]] = {
    "perceptron dense": partial(_fit, partial(_dense, 2), "Perceptron", **_PASSES),
    "perceptron sparse": partial(_fit, partial(_text, 2), "Perceptron", **_PASSES),
    "perceptron joint": partial(_fit, partial(_dense, 5), "Perceptron", multiclass="joint", **_PASSES),
    "sgd dense": partial(_fit, partial(_dense, 2), "SGDClassifier", **_PASSES),
    "sgd sparse": partial(_fit, partial(_text, 2), "SGDClassifier", **_PASSES),
    "logistic dense": partial(_fit, partial(_dense, 2), "LogisticRegression"),
    "softmax dense float32": partial(_fit, partial(_dense, 5, "float32"), "LogisticRegression"),
    "softmax sparse": partial(_fit, partial(_text, 5), "LogisticRegression"),
    "logistic l1": partial(_fit, partial(_text, 2), "LogisticRegression", l1_ratio=1.0, C=5.0),
    "discriminant": partial(_fit, partial(_dense, 5), "LinearDiscriminantAnalysis"),
}
"""By name, what prepares a loop and returns it."""
