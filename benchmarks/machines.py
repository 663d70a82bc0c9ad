"""Case tables of the support vector machines, of nearest neighbours and of stochastic gradients."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import datasets
from benchmarks.cases import INTELEX, PEER, has_intelex, ours, peer, sources
from benchmarks.contest import Case
from benchmarks.datasets import Dataset
from benchmarks.worker import Spec

LIBSVM, LIBLINEAR, FAISS = "LIBSVM", "LIBLINEAR", "faiss"
"""Peers by the library that does their work; scikit-learn calls the first two."""

_CACHE = 2000  # megabytes, for all


def _kernel_sources(folder: Path | None, quick: bool) -> dict[str, Callable[[], Dataset | None]]:
    every = 10 if quick else 1
    real = partial(datasets.real, folder, every=every)
    return {
        "letter": partial(real, "letter", datasets.standardised),
        "satimage": partial(real, "satimage", datasets.standardised),
        "usps": partial(real, "usps"),
        "a9a 15,000": partial(real, "a9a", most=15_000),
        "cod_rna 20,000": partial(real, "cod_rna", datasets.standardised, most=20_000),
        "covtype 20,000": partial(datasets.one_against_rest,
                                  partial(real, "covtype", datasets.standardised, most=20_000), 1),
        "fashion_mnist 10,000": partial(real, "fashion_mnist", datasets.bytes_to_unit, most=10_000),
        "Gaussian 10,000 × 20, 2 classes": partial(datasets.dense, 10_000 // every, 20, 2, "float64"),
        "Gaussian 5,000 × 50, 5 classes": partial(datasets.dense, 5_000 // every, 50, 5, "float32"),
    }


def _kernel_peers(name: str, **options: Any) -> dict[str, tuple[Spec, ...]]:
    peers = {LIBSVM: (peer(name, **options),)}
    if has_intelex():
        peers[INTELEX] = (Spec("sklearnex.svm", name, options),)
    return peers


def _kernel_cases(folder: Path | None, quick: bool, target: float, suffix: str = "",
                  **options: Any) -> list[Case]:
    cases = []
    for name, data in _kernel_sources(folder, quick).items():
        peers = _kernel_peers("SVC", cache_size=_CACHE, **options)
        cases.append(Case(f"{name}{suffix}", data, {"SVC": ours("SVC", cache_size=_CACHE, **options)}, peers,
                          tuple(("SVC", label, target) for label in peers), check="dual objective"))
    return cases


def svm_cases(folder: Path | None, quick: bool) -> list[Case]:
    """RBF machines at scikit-learn's width of the kernel, C = 10 and the usual tolerance."""
    return _kernel_cases(folder, quick, 3.0, C=10.0, tol=1e-3)


def hard_cases(folder: Path | None, quick: bool) -> list[Case]:
    """The same at C = 1000, and at a tight tolerance."""
    return [*_kernel_cases(folder, quick, 1.0, ", C = 1000", C=1000.0, tol=1e-3),
            *_kernel_cases(folder, quick, 1.0, ", tol 1e-6", C=10.0, tol=1e-6)]


def svm_prediction_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Labels of test rows, or of the training rows where a set has no others."""
    options = {"C": 10.0, "cache_size": _CACHE}
    cases = []
    for name, data in _kernel_sources(folder, quick).items():
        peers = _kernel_peers("SVC", **options)
        cases.append(Case(name, data, {"SVC": ours("SVC", **options)}, peers,
                          tuple(("SVC", label, 40.0 if label == LIBSVM else 4.0) for label in peers),
                          calls=("predict",)))
    return cases


def svr_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Regression on the standardised last feature, given the others."""
    options = {"C": 10.0, "epsilon": 0.1, "cache_size": _CACHE}
    cases = []
    for name, data in _kernel_sources(folder, quick).items():
        if name.startswith(("satimage", "cod_rna", "Gaussian 10,000")):
            peers = _kernel_peers("SVR", **options)
            cases.append(Case(name, partial(datasets.last_feature, data), {"SVR": ours("SVR", **options)},
                              peers, tuple(("SVR", label, 3.0) for label in peers), check="regression dual"))
    return cases


def linear_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Squared hinge with the penalised intercept, one class against the rest; hinge where data are tall."""
    cases = []
    for source in sources(folder, quick):
        for loss in ("squared_hinge", "hinge"):
            if loss == "hinge" and (source.sparse or source.classes > 2) and source.name != "a9a":
                continue
            options = {"loss": loss, "C": 1.0}
            # scikit-learn chooses by shape; where a loss has both forms the faster of them counts.
            forms = ("auto",) if loss == "hinge" else (True, False)
            peers = {LIBLINEAR: tuple(peer("LinearSVC", dual=dual, max_iter=2000, **options)
                                      for dual in forms)}
            cases.append(Case(f"{source.name}: {loss}", source.data,
                              {loss: ours("LinearSVC", **options)}, peers,
                              ((loss, LIBLINEAR, 1.5),), check=f"{loss} objective"))
    return cases


def neighbor_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Five neighbours of test rows, or of the training rows where a set has no others."""
    name, options = "KNeighborsClassifier", {"n_neighbors": 5}
    every = 10 if quick else 1
    chosen = {"fashion_mnist": partial(datasets.real, folder, "fashion_mnist", datasets.bytes_to_unit, every),
              "letter": partial(datasets.real, folder, "letter", datasets.standardised, every),
              "Gaussian 20,000 × 50": partial(datasets.dense, 20_000 // every, 50, 5, "float32")}
    cases = []
    for source, data in chosen.items():
        peers = {f"{PEER} brute": (peer(name, algorithm="brute", n_jobs=-1, **options),)}
        versus = [(name, f"{PEER} brute", 4.0)]
        if find_spec("faiss") is not None:
            peers[FAISS] = (Spec("benchmarks.peers", "FlatIndex", options),)
            versus.append((name, FAISS, 2.0))
        cases.append(Case(source, data, {name: ours(name, **options)}, peers, tuple(versus),
                          calls=("predict",), check="training error of some"))
    return cases


def sgd_cases(folder: Path | None, quick: bool) -> list[Case]:
    """Five passes of hinge and logistic loss in their given number, no stopping rule."""
    cases = []
    for source in sources(folder, quick):
        for loss in ("hinge", "log_loss"):
            options = {"loss": loss, "max_iter": 5, "tol": None, "random_state": 0}
            cases.append(Case(f"{source.name}: {loss}", source.data, {loss: ours("SGDClassifier", **options)},
                              {PEER: (peer("SGDClassifier", **options),)}, ((loss, PEER, 3.0),)))
    return cases
