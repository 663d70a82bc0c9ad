"""How time and memory grow with rows and features, ours beside the peer's, with the fitted exponents."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import datasets
from benchmarks.cases import PEER, ours, peer
from benchmarks.contest import Row
from benchmarks.datasets import Dataset
from benchmarks.tiers import Plan, Tier
from benchmarks.worker import BrokenError, Spec, TooSlowError, Worker, Workers

_QUICK = 0.2  # seconds; a shorter call is made again, and the shortest counts


@dataclass(frozen=True)
class Group:
    """Models followed along the same sizes: one grows, the other stays at the middle of its range."""

    name: str
    models: dict[str, tuple[Spec, Spec]]
    rows: tuple[int, ...]
    features: tuple[int, ...]
    data: Callable[[int, int], Dataset]

    def sizes(self) -> list[tuple[int, int]]:
        n, d = self.rows[len(self.rows) // 2], self.features[len(self.features) // 2]
        return list(
            dict.fromkeys([*((count, d) for count in self.rows), *((n, count) for count in self.features)])
        )


def _pair(name: str, *, theirs: dict[str, Any] | None = None, **options: Any) -> tuple[Spec, Spec]:
    return ours(name, **options), peer(name, **(options if theirs is None else theirs))


def groups(plan: Plan) -> list[Group]:
    """One curve for each solver."""
    passes = {"max_iter": 5, "tol": None, "random_state": 0}
    hinge = {"loss": "hinge", "max_iter": 2000}
    tall = {
        "Perceptron, 5 passes": _pair("Perceptron", **passes),
        "SGDClassifier, 5 passes": _pair("SGDClassifier", **passes),
        "LogisticRegression": _pair("LogisticRegression"),
        "LogisticRegression, L1": _pair(
            "LogisticRegression", l1_ratio=1.0, theirs={"l1_ratio": 1.0, "solver": "liblinear"}
        ),
        "LinearDiscriminantAnalysis": _pair("LinearDiscriminantAnalysis"),
        "QuadraticDiscriminantAnalysis": _pair("QuadraticDiscriminantAnalysis"),
        "RidgeClassifier": _pair("RidgeClassifier"),
        "LinearSVC, squared hinge": _pair("LinearSVC"),
        "LinearSVC, hinge": _pair("LinearSVC", loss="hinge", theirs=hinge),
    }
    few = {
        "SVC": _pair("SVC"),
        "KNeighborsClassifier": _pair("KNeighborsClassifier", theirs={"algorithm": "brute", "n_jobs": -1}),
    }
    words = {"LogisticRegression, text": _pair("LogisticRegression"), "LinearSVC, text": _pair("LinearSVC")}
    if plan.small:
        return [
            Group("tall", tall, (1_000, 4_000), (20, 80), _dense),
            Group("few", few, (500, 2_000), (10, 40), _dense),
        ]
    more = plan.large
    return [
        Group(
            "tall",
            tall,
            (25_000, 50_000, 100_000, 200_000) if more else (25_000, 50_000, 100_000),
            (25, 50, 100, 200) if more else (25, 50, 100),
            _dense,
        ),
        Group(
            "few",
            few,
            (2_000, 4_000, 8_000, 16_000) if more else (2_000, 4_000, 8_000),
            (10, 20, 40, 80) if more else (10, 20, 40),
            _dense,
        ),
        Group("text", words, (10_000, 20_000, 40_000), (10_000, 20_000, 40_000), _text),
    ]


def _dense(rows: int, features: int) -> Dataset:
    return datasets.dense(rows, features, 2, "float32")


def _text(rows: int, features: int) -> Dataset:
    return datasets.text_like(rows, features, 2, "zipf")


def items(plan: Plan) -> list[tuple[str, Callable[[Workers], list[Row]]]]:
    """One item for each size: every model on the same data."""
    return [
        (f"{group.name} {n:,} × {d:,}", partial(_points, group, n, d, plan.tier))
        for group in groups(plan)
        for n, d in group.sizes()
    ]


def _points(group: Group, n: int, d: int, tier: Tier, workers: Workers) -> list[Row]:
    """Seconds and megabytes of a fit with its predictions, for each model and side."""
    data = partial(group.data, n, d)
    found = []
    for name, (own, other) in group.models.items():
        for side, spec in (("separatrix", own), (PEER, other)):
            seconds, megabytes = _one(workers.worker(spec, data), spec, tier)
            found.append(
                {
                    "case": name,
                    "call": "growth",
                    "group": group.name,
                    "rows": n,
                    "features": d,
                    "side": side,
                    "seconds": seconds,
                    "megabytes": megabytes,
                }
            )
    return found


def _one(worker: Worker, spec: Spec, tier: Tier) -> tuple[float | None, float | None]:
    """Shortest seconds, and by how much the process grew beyond its data."""
    try:
        worker.seconds(spec, "warm up", tier.budget)
        times = [worker.seconds(spec, "fit + predict", tier.budget)]
        if times[0] < _QUICK:
            times += [worker.seconds(spec, "fit + predict", tier.budget) for _ in range(tier.repeats // 2)]
        growth = worker.growth(spec)
        return min(times), None if growth is None else max(growth / 1e6, 0.1)
    except (TooSlowError, BrokenError):
        return None, None


def exponent(sizes: Sequence[int], values: Sequence[float | None]) -> float | None:
    """Slope of the logarithms by least squares; None for fewer than two values."""
    pairs = [(math.log(size), math.log(value)) for size, value in zip(sizes, values, strict=True) if value]
    if len(pairs) < 2:
        return None
    x, y = ([pair[i] for pair in pairs] for i in (0, 1))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in pairs) / sum((a - mean_x) ** 2 for a in x)


def curves(points: Iterable[Row]) -> list[dict[str, Any]]:
    """Points as curves: for each model, axis and side the sizes, values and exponents."""
    by_model: dict[tuple[str, str], list[Row]] = {}
    for point in points:
        by_model.setdefault((point["case"], point["side"]), []).append(point)
    found = []
    for (case, side), of_model in by_model.items():
        for axis, other in (("rows", "features"), ("features", "rows")):
            # Along an axis the other stays at the value that most points share.
            counts = [point[other] for point in of_model]
            fixed = max(sorted(set(counts)), key=counts.count)
            line = sorted(
                (point for point in of_model if point[other] == fixed), key=lambda point: point[axis]
            )
            sizes = [point[axis] for point in line]
            seconds, megabytes = [p["seconds"] for p in line], [p["megabytes"] for p in line]
            found.append(
                {
                    "case": case,
                    "side": side,
                    "axis": axis,
                    "sizes": sizes,
                    "at": fixed,
                    "seconds": seconds,
                    "exponent": exponent(sizes, seconds),
                    "megabytes": megabytes,
                    "memory_exponent": exponent(sizes, megabytes),
                }
            )
    return found
