"""Which support vector machines and nearest neighbours meet on which data."""

from functools import partial
from typing import Any

from benchmarks import datasets, peers
from benchmarks.cases import INTELEX, PEER, ours, peer
from benchmarks.contest import IN_MEAN, Case
from benchmarks.sources import KNOWN, kernel_sources, sources
from benchmarks.tiers import Plan
from benchmarks.worker import Spec

LIBSVM, LIBLINEAR, FAISS = "LIBSVM", "LIBLINEAR", "faiss"
"""Peers by the library that does their work; scikit-learn calls the first two."""
OFFICIAL_SVM, OFFICIAL_LINEAR = "LIBSVM itself", "LIBLINEAR itself"
"""The same libraries through their own Python modules."""

_USUAL = {"C": 10.0, "tol": 1e-3, "cache_size": 2000}
_HELD_OUT = 1000  # rows: LIBSVM is slow to predict


def _kernel_peers(name: str, official: bool, **options: Any) -> dict[str, tuple[Spec, ...]]:
    found = {LIBSVM: (peer(name, **options),)}
    if peers.has("scikit-learn-intelex"):
        found[INTELEX] = (Spec("sklearnex.svm", name, options),)
    if official and peers.has("libsvm-official"):
        found[OFFICIAL_SVM] = tuple(
            Spec("benchmarks.peers", f"Libsvm{name}", {**options, "threads": threads})
            for threads in (1, None)
        )
    return found


def _kernel_cases(
    plan: Plan, asked: float, suffix: str = "", official: bool = False, **changed: Any
) -> list[Case]:
    options = {**_USUAL, **changed}
    cases = []
    for source in kernel_sources(plan):
        against = _kernel_peers("SVC", official, **options)
        cases.append(
            Case(
                f"{source.name}{suffix}",
                source.data,
                {"SVC": ours("SVC", **options)},
                against,
                tuple(("SVC", label, asked) for label in against),
                check="dual objective",
                held_out=_HELD_OUT,
            )
        )
    return cases


def svm_cases(plan: Plan) -> list[Case]:
    """RBF machines at scikit-learn's width of the kernel, C = 10 and the usual tolerance."""
    return _kernel_cases(plan, 6.0 * IN_MEAN, official=True)


def hard_cases(plan: Plan) -> list[Case]:
    """The same at C = 1000, and at a tight tolerance."""
    return [
        *_kernel_cases(plan, 1.0, ", C = 1000", C=1000.0),
        *_kernel_cases(plan, 1.0, ", tol 1e-6", tol=1e-6),
    ]


def svm_prediction_cases(plan: Plan) -> list[Case]:
    """Labels of test rows, or of the training rows where a set has no others."""
    cases = []
    for source in kernel_sources(plan):
        against = _kernel_peers("SVC", False, **_USUAL)
        cases.append(
            Case(
                source.name,
                source.data,
                {"SVC": ours("SVC", **_USUAL)},
                against,
                tuple(("SVC", label, 40.0 if label == LIBSVM else 4.0) for label in against),
                calls=("predict",),
                held_out=_HELD_OUT,
            )
        )
    return cases


def svr_cases(plan: Plan) -> list[Case]:
    """Regression on the standardised last feature, given the others."""
    options = {"C": 10.0, "epsilon": 0.1, "cache_size": 2000}
    cases = []
    for source in kernel_sources(plan):
        if source.name.startswith(("satimage", "cod_rna", "digits")) or source.name.endswith("20, 2 classes"):
            against = _kernel_peers("SVR", True, **options)
            cases.append(
                Case(
                    source.name,
                    partial(datasets.last_feature, source.data),
                    {"SVR": ours("SVR", **options)},
                    against,
                    tuple(("SVR", label, 6.0 * IN_MEAN) for label in against),
                    check="regression dual",
                    held_out=_HELD_OUT,
                )
            )
    return cases


def linear_cases(plan: Plan) -> list[Case]:
    """Squared hinge with the penalised intercept, one class against the rest; hinge where data are tall."""
    cases = []
    for source in sources(plan):
        if plan.small and source.features > 500 and not source.sparse:
            continue  # LIBLINEAR takes too long there for a run of minutes
        tight = not plan.small and (source.name in KNOWN or "float64" in source.name)
        for loss, tol in (
            ("squared_hinge", None),
            ("hinge", None),
            *((("squared_hinge", 1e-6),) if tight else ()),
        ):
            if loss == "hinge" and (source.sparse or source.classes > 2) and source.name != "a9a":
                continue
            options = {"loss": loss, "C": 1.0, **({} if tol is None else {"tol": tol})}
            # scikit-learn chooses by shape; where a loss has both forms the faster of them counts.
            forms = ("auto",) if loss == "hinge" else (True, False)
            against = {
                LIBLINEAR: tuple(peer("LinearSVC", dual=dual, max_iter=2000, **options) for dual in forms)
            }
            if peers.has("liblinear-official") and tol is None:
                against[OFFICIAL_LINEAR] = tuple(
                    Spec("benchmarks.peers", "LiblinearSVC", {"dual": dual, **options})
                    for dual in ((True,) if loss == "hinge" else (True, False))
                )
            asked = 50.0 if loss == "hinge" else 8.0 * IN_MEAN if tol is None else 1.0
            cases.append(
                Case(
                    f"{source.name}: {loss}" + ("" if tol is None else f", tol {tol:g}"),
                    source.data,
                    {loss: ours("LinearSVC", **options)},
                    against,
                    tuple((loss, label, asked if label == LIBLINEAR else 1.0) for label in against),
                    check=f"{loss} objective",
                )
            )
    return cases


def neighbor_cases(plan: Plan) -> list[Case]:
    """Five neighbours of test rows, or of the training rows where a set has no others."""
    name, options = "KNeighborsClassifier", {"n_neighbors": 5}
    rows = 20_000 // plan.tier.shrink
    chosen = {f"Gaussian {rows:,} × 50": partial(datasets.dense, rows, 50, 5, "float32")}
    chosen |= {
        source.name: source.data
        for source in (*sources(plan), *kernel_sources(plan))
        if source.name in ("fashion_mnist", "letter", "digits") or (source.of_user and not source.sparse)
    }
    cases = []
    for source, data in chosen.items():
        brute = f"{PEER} brute"
        against = {brute: (peer(name, algorithm="brute", n_jobs=-1, **options),)}
        asked = {brute: 4.0, FAISS: 2.0, INTELEX: 1.0}
        if peers.has("faiss-cpu"):
            against[FAISS] = (Spec("benchmarks.peers", "FlatIndex", options),)
        if peers.has("scikit-learn-intelex"):
            against[INTELEX] = (Spec("sklearnex.neighbors", name, {"algorithm": "brute", **options}),)
        cases.append(
            Case(
                source,
                data,
                {name: ours(name, **options)},
                against,
                tuple((name, label, asked[label]) for label in against),
                calls=("predict",),
                check="training error of some",
                held_out=_HELD_OUT,
            )
        )
    return cases
