"""Ours against the peers on one data set: the peers' fastest solver is found first, then all take turns."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.checks import CHECKS
from benchmarks.datasets import Dataset
from benchmarks.worker import BrokenError, Spec, SquareProduct, TooSlowError, Worker, Workers

_PATIENCE = 1.5  # a solver that takes so many times the best one's seconds is not the fastest
_COLD = 1.0  # seconds; of a shorter first call, what it loads may be the most


@dataclass(frozen=True)
class Case:
    """One data set; ours and peers by label, each peer with the solvers of which the fastest counts.

    `versus` lists the pairs to compare: label of ours, label of the peer, the ratio that is promised.
    """

    name: str
    data: Callable[[], Dataset | None]
    ours: Mapping[str, Spec]
    peers: Mapping[str, tuple[Spec, ...]]
    versus: tuple[tuple[str, str, float], ...]
    calls: tuple[str, ...] = ("fit",)
    check: str | None = None
    product_rate: bool = False  # compare also with the rate of a large matrix product


@dataclass
class _Entry:
    """One model and its seconds of one call; `limit` stands in for a first call that was stopped."""

    label: str
    spec: Spec
    worker: Worker
    first: float | None = None
    seconds: list[float] = field(default_factory=list)
    limit: float | None = None
    value: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        times = self.seconds or ([] if self.first is None else [self.first])
        return statistics.median(times) if times else self.limit

    @property
    def least(self) -> float | None:
        return min(self.seconds) if self.seconds else self.median

    @property
    def spread(self) -> float:
        return max(self.seconds) - min(self.seconds) if self.seconds else 0.0

    def measure(self, call: str, limit: float) -> float | None:
        """Seconds of one call; None, with a note, where it was stopped or failed."""
        try:
            return self.worker.seconds(self.spec, call, limit)
        except TooSlowError as problem:
            self.limit = limit
            self.notes.append(str(problem))
        except BrokenError as problem:
            self.notes.append(f"failed: {str(problem)[:100]}")
        return None

    def begin(self, call: str, limit: float, check: str | None) -> None:
        """The first call, which pays for caches and threads, and the value of the model."""
        self.first, self.seconds = self.measure(call, limit), []
        if self.first is not None and self.first < _COLD:
            self.first = self.measure(call, limit)
        if self.first is not None and check is not None:
            self.value = self.worker.check(self.spec, check)


def _near(entries: list[_Entry], case: Case, budget: float) -> list[_Entry]:
    """The solvers that may be the fastest, by one run each, and of those that never end the most patient."""
    limit = budget
    for entry in entries:
        entry.begin(case.calls[0], limit, case.check)
        if entry.first is not None:
            limit = min(limit, _PATIENCE * entry.first + 1.0)
    done = [entry for entry in entries if entry.first is not None]
    if not done:
        return [max(entries, key=lambda entry: entry.limit or 0.0)]
    fastest = min(entry.first for entry in done)
    return [entry for entry in done if entry.first <= _PATIENCE * fastest]


def _fastest(entries: list[_Entry], near: list[_Entry]) -> tuple[_Entry, list[str]]:
    """The one with the smallest median, and a note on each of the others."""
    best = min(near, key=lambda entry: entry.median or math.inf)
    said = {entry.label: "".join(entry.notes) if entry.first is None else f"{entry.median:.3g} s"
            for entry in entries if entry is not best}
    return best, [f"{label.split()[-1]} {text}" for label, text in said.items()]


def _take_turns(entries: list[_Entry], call: str, repeats: int, budget: float) -> None:
    """Measure `call` up to `repeats` times for each, one after the other: a slow moment hits all of them.

    The first call of all counts only where it took so much of the budget that it stays the only one.
    """
    for repeat in range(repeats):
        turn = repeat % len(entries)
        for entry in entries[turn:] + entries[:turn]:
            if entry.first is not None and entry.first + sum(entry.seconds) <= budget / 2:
                seconds = entry.measure(call, budget)
                entry.seconds += [] if seconds is None else [seconds]


def run_case(case: Case, workers: Workers, repeats: int, budget: float) -> list[dict[str, Any]]:
    """One row for each pair and call; none where the data are not there.

    A call that takes longer than `budget` seconds is stopped; one that takes more than half is made once.
    """
    def entry(label: str, spec: Spec) -> _Entry:
        return _Entry(label, spec, workers.worker(spec, case.data))

    ours = {label: entry(label, spec) for label, spec in case.ours.items()}
    data = next(iter(ours.values())).worker.describe()
    if data is None:
        return []
    for own in ours.values():
        own.begin(case.calls[0], budget, case.check)
    peers = {label: [entry(f"{label} {spec.options.get('solver', '')}".strip(), spec) for spec in specs]
             for label, specs in case.peers.items()}
    near = {label: _near(tried, case, budget) for label, tried in peers.items()}
    entries = [*ours.values(), *itertools.chain(*near.values())]
    product = entry("product", Spec("benchmarks.worker", "SquareProduct")) if case.product_rate else None
    if product is not None:
        product.begin("fit", budget, None)
        entries.append(product)
    rows = []
    for call in case.calls:
        if call != case.calls[0]:
            for each in entries:
                each.begin(call, budget, None)
        _take_turns(entries, call, repeats, budget)
        rate = SquareProduct.flops / product.median if product is not None and product.median else None
        rows += [_row(case, call, data, ours[mine], *_fastest(peers[theirs], near[theirs]), target, rate)
                 for mine, theirs, target in case.versus]
    return rows


def _row(case: Case, call: str, data: dict[str, Any], ours: _Entry, peer: _Entry, others: list[str],
         target: float, rate: float | None) -> dict[str, Any]:
    """The ratio of a pair; `reason` tells why it does not count, `at_least` that the peer never finished."""
    rows, features = data["shape"]
    at_least = peer.first is None and peer.limit is not None
    reason, excess = None, None
    if ours.first is None or peer.median is None:
        reason = "; ".join((ours if ours.first is None else peer).notes)
    if ours.value is not None and peer.value is not None and case.check is not None:
        excess = CHECKS[case.check].excess(ours.value, peer.value)
        if excess > CHECKS[case.check].allowed:
            reason = f"not comparable: {case.check} higher by {excess:.1e}"
    ratio, best_ratio = ((theirs / mine if theirs and mine and ours.first is not None else None)
                         for theirs, mine in ((peer.median, ours.median), (peer.least, ours.least)))
    share = None
    if rate is not None and ours.first is not None:
        # A symmetric product takes half the work of a general one.
        work = rows * features * (features + 1) + 2 * rows * features * data["classes"]
        share = work / ours.median / rate
    return {"case": case.name, "size": f"{rows:,} × {features:,}", "about": data["about"], "call": call,
            "ours": ours.label, "peer": peer.label, "seconds": ours.median, "spread": ours.spread,
            "peer_seconds": peer.median, "peer_spread": peer.spread, "at_least": at_least, "ratio": ratio,
            "best_ratio": best_ratio,
            "target": target, "met": reason is None and ratio is not None and ratio >= target,
            "reason": reason, "excess": excess, "product_share": share, "notes": others}
