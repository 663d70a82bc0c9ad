"""One pass of the perceptron, by the difference of a long and a short fit."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.timing import MakeModel, seconds_per_pass

PEER = "scikit-learn"


@dataclass(frozen=True)
class PassCase:
    """One data set, one peer, several of ours; `target` is the ratio that the project promises, if any."""

    name: str
    data: Callable[[], Dataset | None]
    models: Mapping[str, MakeModel]
    passes: tuple[int, int]
    target: float | None = None


def _peer(**options: Any) -> MakeModel:
    def make(passes: int) -> Any:
        from sklearn.linear_model import Perceptron

        return Perceptron(max_iter=passes, tol=None, random_state=0, **options)

    return make


def _ours(**options: Any) -> MakeModel:
    def make(passes: int) -> Any:
        from separatrix import Perceptron

        return Perceptron(max_iter=passes, tol=None, random_state=0, **options)

    return make


def _perceptrons(classes: int) -> dict[str, MakeModel]:
    models = {PEER: _peer()}
    for multiclass in ("ovr", "joint") if classes > 2 else (None,):
        for keep in ("best", "last"):
            options = {"keep": keep} if multiclass is None else {"keep": keep, "multiclass": multiclass}
            models[", ".join(options.values())] = _ours(**options)
    return models


def perceptron_cases(folder: Path | None, quick: bool) -> list[PassCase]:
    """Passes of the perceptron on dense, sparse and real data, two and more classes."""
    shrink = 10 if quick else 1
    # Smaller data need more passes for a difference of times above the noise.
    few, some = ((2, 22), (1, 9)) if quick else ((2, 6), (1, 4))
    cases = []
    for dtype in ("float64", "float32"):
        for classes in (2, 10):
            cases.append(PassCase(
                f"dense {dtype}, {classes} classes",
                lambda dtype=dtype, classes=classes: datasets.dense(200_000 // shrink, 100, classes, dtype),
                _perceptrons(classes), passes=few, target=5.0))
    for columns in ("zipf", "uniform"):
        for classes in (2, 10):
            cases.append(PassCase(
                f"sparse {columns}, {classes} classes",
                lambda columns=columns, classes=classes: datasets.text_like(
                    50_000 // shrink, 50_000 // shrink, classes, columns),
                _perceptrons(classes), passes=some, target=5.0))
    for name, classes, prepare in (("covtype", 7, datasets.standardised), ("a9a", 2, None),
                                   ("sector", 105, None)):
        if not quick or name == "a9a":
            cases.append(PassCase(
                f"{name}, {classes} classes",
                lambda name=name, prepare=prepare: datasets.real(folder, name, prepare),
                _perceptrons(classes), passes=(2, 10) if name == "a9a" else (1, 5)))
    return cases


def run_case(case: PassCase, repeats: int) -> list[dict[str, Any]]:
    """Measured rows of one case, the peer first; none where its data are not there."""
    data = case.data()
    if data is None:
        return []
    times = seconds_per_pass(case.models, data.X, data.y, case.passes, repeats)
    peer = times[PEER]

    def ratio(theirs: float, ours: float) -> float | None:
        """Times as fast, or None where passes were too short for the clock or not made at all."""
        return theirs / ours if theirs > 0 and ours > 0 else None

    size = f"{data.X.shape[0]:,} × {data.X.shape[1]:,}"
    return [{"case": case.name, "size": size, "about": data.about, "model": label, "is_peer": label == PEER,
             "ratio": ratio(peer.seconds, time.seconds),
             "cpu_ratio": ratio(peer.cpu_seconds, time.cpu_seconds),
             "fit_ratio": ratio(peer.fit_seconds, time.fit_seconds),
             "target": None if label == PEER else case.target, **asdict(time)}
            for label, time in times.items()]
