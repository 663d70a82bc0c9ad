"""The case table: which models meet on which data, and what is promised. Later families add rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import datasets
from benchmarks.contest import Case
from benchmarks.datasets import Dataset
from benchmarks.worker import Spec

PEER, INTELEX = "scikit-learn", "intelex"
SMALLEST = 1.5
"""What logistic regression promises for each of its cases."""

PEERS = {
    "Perceptron": ("sklearn.linear_model", "Perceptron"),
    "LogisticRegression": ("sklearn.linear_model", "LogisticRegression"),
    "RidgeClassifier": ("sklearn.linear_model", "RidgeClassifier"),
    "LeastSquaresClassifier": ("sklearn.linear_model", "RidgeClassifier"),
    "LinearDiscriminantAnalysis": ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
    "QuadraticDiscriminantAnalysis": ("sklearn.discriminant_analysis", "QuadraticDiscriminantAnalysis"),
    "GaussianClassifier": ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
    "SVC": ("sklearn.svm", "SVC"),
    "SVR": ("sklearn.svm", "SVR"),
    "LinearSVC": ("sklearn.svm", "LinearSVC"),
    "KNeighborsClassifier": ("sklearn.neighbors", "KNeighborsClassifier"),
    "SGDClassifier": ("sklearn.linear_model", "SGDClassifier"),
}
"""Each estimator of ours, and scikit-learn's that does the same or comes nearest."""


def ours(name: str, **options: Any) -> Spec:
    return Spec("separatrix", name, options)


def peer(name: str, **options: Any) -> Spec:
    return Spec(*PEERS[name], options)


def has_intelex() -> bool:
    return find_spec("sklearnex") is not None


@dataclass(frozen=True)
class Source:
    """A data set by name, and what decides which solvers can be tried on it."""

    name: str
    data: Callable[[], Dataset | None]
    features: int
    classes: int
    sparse: bool = False
    full_rank: bool = False  # in each class, as quadratic discriminants need it


def sources(folder: Path | None, quick: bool) -> list[Source]:
    shrink = 10 if quick else 1
    found = [Source(f"dense {dtype}, {classes} classes",
                     partial(datasets.dense, 200_000 // shrink, 100, classes, dtype), 100, classes,
                     full_rank=True)
             for dtype in ("float64", "float32") for classes in (2, 10)]
    found.append(Source("dense wide float32, 10 classes",
                         partial(datasets.dense, 60_000 // shrink, 784, 10, "float32"), 784, 10))
    found += [Source(f"sparse text, {classes} classes",
                      partial(datasets.text_like, 50_000 // shrink, 50_000 // shrink, classes, "zipf"),
                      50_000 // shrink, classes, sparse=True) for classes in (2, 10)]
    for name, features, classes, is_sparse, prepare in (
            ("covtype", 54, 7, False, datasets.standardised),
            ("fashion_mnist", 784, 10, False, datasets.bytes_to_unit),
            ("a9a", 123, 2, True, None),
            ("sector", 55_197, 105, True, None),
            ("newsgroups20_bow", 42_280, 20, True, None)):
        found.append(Source(name, partial(datasets.real, folder, name, prepare, shrink), features, classes,
                             is_sparse))
    return found


def logistic_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Ours as it is against scikit-learn's and Intel's solvers, all at C = 1 and the same tolerance."""
    options = {"C": 1.0, "tol": 1e-4, "max_iter": 1000}
    cases = []
    for source in sources(folder, quick):
        parameters = source.features * (source.classes if source.classes > 2 else 1)
        solvers = ["lbfgs", "newton-cg"]
        if parameters <= 3000:  # the Hessian has so many rows and columns
            solvers.insert(0, "newton-cholesky")  # where it is quick, the others are soon given up
        if source.classes == 2:
            solvers.append("liblinear")
        peers = {PEER: tuple(peer("LogisticRegression", solver=solver, **options) for solver in solvers)}
        if has_intelex():  # the solvers that it has made its own
            peers[INTELEX] = tuple(
                Spec("sklearnex.linear_model", "LogisticRegression", {"solver": solver, **options})
                for solver in ("lbfgs", "newton-cg"))
        cases.append(Case(source.name, source.data, {"logistic": ours("LogisticRegression")}, peers,
                          tuple(("logistic", peer, SMALLEST) for peer in peers), check="objective"))
    return cases


def closed_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Linear discriminants, ridge and least squares; their share of the rate of a matrix product."""
    cases = []

    def case(source: Source, label: str, **parts: Any) -> Case:
        return Case(f"{source.name}: {label}", source.data, product_rate=not source.sparse, **parts)

    for source in sources(folder, quick):
        if not source.sparse:
            svd, fast = f"{PEER} default", f"{PEER} fastest"
            name = "LinearDiscriminantAnalysis"
            cases.append(case(source, "LDA", check="training error", ours={"LDA": ours(name)},
                              peers={svd: (peer(name),),
                                     fast: tuple(peer(name, solver=solver) for solver in ("lsqr", "eigen"))},
                              versus=(("LDA", svd, 10.0), ("LDA", fast, 3.0))))
        # scikit-learn's "auto" is cholesky for dense data and sparse_cg for sparse data with an intercept.
        solvers = ("sparse_cg", "lsqr") if source.sparse else ("cholesky", "lsqr", "sparse_cg")
        peers = {PEER: tuple(peer("RidgeClassifier", solver=solver) for solver in solvers)}
        cases.append(case(source, "ridge", check="ridge objective", ours={"ridge": ours("RidgeClassifier")},
                          peers=peers, versus=(("ridge", PEER, 3.0),)))
        if source.features <= 1000:  # beyond, the problem without a penalty is another one
            cases.append(case(source, "least squares", check="training error",
                              ours={"least squares": ours("LeastSquaresClassifier")}, peers=peers,
                              versus=(("least squares", PEER, 3.0),)))
    return cases


def prediction_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Labels and probabilities of fitted models; how well the peer was fitted does not matter for them."""
    cases = []
    for source in sources(folder, quick):
        for name, applies, probabilities, options in (
                ("LogisticRegression", True, True, {"max_iter": 20}),
                ("RidgeClassifier", True, False, {}),
                ("LinearDiscriminantAnalysis", not source.sparse, True, {}),
                ("QuadraticDiscriminantAnalysis", source.full_rank, True, {})):
            if applies:
                cases.append(Case(f"{source.name}: {name}", source.data, {name: ours(name)},
                                  {PEER: (peer(name, **options),)}, ((name, PEER, 1.0),),
                                  calls=("predict", "predict_proba") if probabilities else ("predict",)))
    return cases


def small_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Where overhead is all there is: a fit and its predictions on iris and wine, all modules loaded."""
    small = {name: partial(datasets.bundled, name) for name in ("iris", "wine")}
    return [Case(f"{source}: {name}", data, {name: ours(name)}, {PEER: (peer(name),)},
                 ((name, PEER, 2.0 if name == "SVC" else 1.0),), calls=("fit + predict",))
            for source, data in small.items() for name in PEERS]
