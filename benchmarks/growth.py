"""How time and memory grow with rows and features, ours beside the peer's, with the fitted exponents."""

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import datasets
from benchmarks.cases import PEER, ours, peer
from benchmarks.datasets import Dataset
from benchmarks.worker import BrokenError, Spec, TooSlowError, Workers


@dataclass(frozen=True)
class Curve:
    """A model and its peer, and the sizes along which they are followed."""

    name: str
    ours: Spec
    peer: Spec
    rows: tuple[int, ...]
    features: tuple[int, ...]
    data: Callable[[int, int], Dataset]

    def sizes(self) -> dict[str, list[tuple[int, int]]]:
        """Pairs of rows and features: one grows, the other stays at the middle of its range."""
        middle = self.rows[len(self.rows) // 2], self.features[len(self.features) // 2]
        return {"rows": [(n, middle[1]) for n in self.rows],
                "features": [(middle[0], d) for d in self.features]}


def curves(quick: bool) -> list[Curve]:
    """One curve for each solver; a tenth of the rows where it is to be quick."""
    def rows(*counts: int) -> tuple[int, ...]:
        return tuple(count // 10 for count in counts) if quick else counts

    tall, few = rows(25_000, 50_000, 100_000, 200_000), rows(2_500, 5_000, 10_000, 20_000)
    dense = partial(_dense, classes=2)
    found = [Curve(name, ours(name), peer(name), tall, (25, 50, 100, 200), dense)
             for name in ("LogisticRegression", "LinearDiscriminantAnalysis", "RidgeClassifier", "LinearSVC",
                          "SGDClassifier")]
    found.append(Curve("SVC", ours("SVC"), peer("SVC"), few, (10, 20, 40, 80), dense))
    found.append(Curve("KNeighborsClassifier", ours("KNeighborsClassifier"),
                       peer("KNeighborsClassifier", algorithm="brute"), few, (25, 50, 100, 200), dense))
    return found


def _dense(rows: int, features: int, classes: int) -> Dataset:
    return datasets.dense(rows, features, classes, "float32")


def exponent(sizes: Sequence[int], values: Sequence[float | None]) -> float | None:
    """Slope of the logarithms by least squares; None for fewer than two values."""
    pairs = [(math.log(size), math.log(value)) for size, value in zip(sizes, values, strict=True) if value]
    if len(pairs) < 2:
        return None
    x, y = ([pair[i] for pair in pairs] for i in (0, 1))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in pairs) / sum((a - mean_x) ** 2 for a in x)


def measure(quick: bool, only: str, budget: float) -> list[dict[str, Any]]:
    """One row for each curve, axis and side: sizes, seconds and megabytes of a fit and its predictions."""
    results = []
    for curve in curves(quick):
        if only not in curve.name:
            continue
        for axis, sizes in curve.sizes().items():
            along = [size[0 if axis == "rows" else 1] for size in sizes]
            for label, spec in (("separatrix", curve.ours), (PEER, curve.peer)):
                seconds, megabytes = zip(*(_one(spec, partial(curve.data, *size), budget) for size in sizes),
                                         strict=True)
                results.append({"case": curve.name, "axis": axis, "side": label, "sizes": along,
                                "seconds": seconds, "exponent": exponent(along, seconds),
                                "megabytes": megabytes, "memory_exponent": exponent(along, megabytes)})
    return results


def _one(spec: Spec, data: Callable[[], Dataset], budget: float) -> tuple[float | None, float | None]:
    """Shortest seconds of two fits with predictions, and how much the process grew beyond its data."""
    with closing(Workers()) as workers:
        worker = workers.worker(spec, data)
        try:
            worker.seconds(spec, "warm up", budget)
            before = worker.peak()
            times = [worker.seconds(spec, "fit + predict", budget) for _ in range(2)]
            return min(times), max((worker.peak() - before) / 1e6, 0.1)
        except (TooSlowError, BrokenError):
            return None, None
