"""The loops whose instructions are counted: small fits and calls, each dominated by one hot loop."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import separatrix as sx
from benchmarks import datasets, strings
from benchmarks.datasets import Dataset
from separatrix import kernels
from separatrix.data.products import add_products
from separatrix.data.threads import at_most

Loop = Callable[[], object]


@cache
def _dense(classes: int, dtype: str = "float64", rows: int = 800) -> Dataset:
    return datasets.dense(rows, 40, classes, dtype)


@cache
def _text(classes: int, rows: int = 600) -> Dataset:
    return datasets.text_like(rows, 1500, classes, "zipf", entries=30)


def _signs() -> Dataset:
    found = _dense(2, rows=1700)  # enough that kernels of whole numbers are sums of bytes
    return Dataset((found.X > 0).astype(np.float64), found.y, "signs")


def _fit(data: Callable[[], Dataset], name: str, **options: Any) -> Loop:
    found, make = data(), partial(getattr(sx, name), **options)
    return lambda: make().fit(found.X, found.y)


def _predict(data: Callable[[], Dataset], name: str, **options: Any) -> Loop:
    found = data()
    model = getattr(sx, name)(**options).fit(found.X, found.y)
    return lambda: model.predict(found.X)


def _regress(data: Callable[[], Dataset], name: str, **options: Any) -> Loop:
    found = datasets.last_feature(data)
    assert found is not None
    return lambda: getattr(sx, name)(**options).fit(found.X, found.y)


def _gram(kernel: kernels.StringKernel, count: int) -> Loop:
    texts = strings.texts(count, "acgt")

    def loop() -> None:
        kernels._strings._known.clear()
        kernels._strings._recent.cache_clear()
        kernel(texts)

    return loop


def _coarse_products() -> Loop:
    X = datasets.dense(1600, 320, 2, "float32").X
    return lambda: add_products(X, np.zeros((320, 320)), precision="coarse")


def _file(name: str) -> Path:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / name


def _read_svmlight() -> Loop:
    from sklearn.datasets import dump_svmlight_file

    path = _file("text.svm")
    dump_svmlight_file(_text(2).X, _text(2).y, str(path), zero_based=False)
    return lambda: sx.read(path)


def _read_csv() -> Loop:
    path, found = _file("table.csv"), _dense(2)
    names = ",".join(f"x{j}" for j in range(found.X.shape[1]))
    rows = (",".join(map(str, [*row, label])) for row, label in zip(found.X.tolist(), found.y, strict=True))
    path.write_text("\n".join([f"{names},label", *rows]))
    return lambda: sx.read(path, target="label")


_PASSES = {"max_iter": 40, "tol": None, "random_state": 0}
_two, _five, _single = partial(_dense, 2), partial(_dense, 5), partial(_dense, 5, "float32")
_little = partial(_dense, 2, rows=100)
_few, _words, _short = partial(_dense, 3, rows=300), partial(_text, 2), partial(_text, 2, rows=200)

LOOPS: dict[str, Callable[[], Loop]] = {
    "perceptron dense": partial(_fit, _two, "Perceptron", **_PASSES),
    "perceptron sparse": partial(_fit, _words, "Perceptron", **_PASSES),
    "perceptron joint": partial(_fit, _five, "Perceptron", multiclass="joint", **_PASSES),
    "sgd dense": partial(_fit, _two, "SGDClassifier", **_PASSES),
    "sgd sparse": partial(_fit, _words, "SGDClassifier", loss="log_loss", **_PASSES),
    "sweep dense": partial(_fit, _two, "LogisticRegression", solver="newton"),
    "sweep softmax float32": partial(_fit, _single, "LogisticRegression"),
    "softmax dual": partial(_fit, partial(_text, 5), "LogisticRegression"),
    "coordinate sparse": partial(_fit, _words, "LogisticRegression", l1_ratio=1.0, C=2.0),
    "coordinate dense": partial(_fit, _two, "LogisticRegression", l1_ratio=1.0, C=0.1, solver="working-set"),
    "box dual": partial(_fit, _short, "LinearSVC"),
    "box dual hinge": partial(_fit, _short, "LinearSVC", loss="hinge"),
    "hinge dense": partial(_fit, partial(_dense, 2, rows=400), "LinearSVC", loss="hinge"),
    "crammer singer": partial(_fit, partial(_text, 5, rows=200), "LinearSVC", multi_class="crammer_singer"),
    "crammer singer small": partial(
        _fit, partial(_dense, 3, rows=100), "LinearSVC", multi_class="crammer_singer"
    ),
    "logistic small": partial(_fit, _little, "LogisticRegression"),
    "logistic small l1": partial(_fit, _little, "LogisticRegression", l1_ratio=1.0, C=0.1),
    "smo": partial(_fit, partial(_dense, 3), "SVC", C=10.0),
    "smo sparse": partial(_fit, _words, "SVC"),
    "smo whole numbers": partial(_fit, _signs, "SVC"),
    "smo small": partial(_fit, _few, "SVC", C=10.0),
    "smo regression": partial(_regress, _few, "SVR"),
    "smo rounds": partial(_regress, partial(_dense, 2, rows=2_100), "SVR", C=0.1),
    "kernel scores": partial(_predict, _few, "SVC"),
    "neighbors": partial(_predict, _single, "KNeighborsClassifier", algorithm="brute", n_jobs=1),
    "substrings": partial(_gram, kernels.Spectrum(4), 12),
    "subsequences": partial(_gram, kernels.Subsequence(3, 0.5), 4),
    "svmlight": _read_svmlight,
    "delimited": _read_csv,
    "gram": partial(_fit, partial(_dense, 2, rows=4000), "RidgeClassifier"),
    "gram coarse": _coarse_products,
    "gram rows": partial(_fit, partial(_text, 2, rows=1100), "RidgeClassifier", solver="cholesky"),
    "discriminant": partial(_fit, _five, "LinearDiscriminantAnalysis"),
}
"""By name, what prepares a loop and returns it."""


def on_one_thread(loop: Loop) -> None:
    with at_most(1):
        loop()
