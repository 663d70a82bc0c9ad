"""Ours against the peers on one data set: the peers' fastest solver is found first, then all take turns."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.checks import CHECKS
from benchmarks.datasets import Dataset
from benchmarks.tiers import Tier
from benchmarks.verdict import ratio_of
from benchmarks.worker import BrokenError, Spec, SquareProduct, TooSlowError, Worker, Workers

Row = dict[str, Any]
_PATIENCE = 1.5  # a solver that takes so many times the best one's seconds is not the fastest
_COLD = 1.0  # seconds; of a shorter first call, what it loads may be the most
IN_MEAN = 4.0
_FEW_ITERATIONS = 10
_CERTAIN = 1.3  # a peer that takes so many times what its target allows need not be waited for


@dataclass(frozen=True)
class Case:
    """One data set; ours and peers by label, each peer with the solvers of which the fastest counts.

    `versus` lists the pairs to compare: label of ours, label of the peer, the ratio that is worth waiting
    for: what is asked for, and more than that (`IN_MEAN` times) in a geometric mean, in which a peer that is
    stopped counts for no more than where it was stopped.
    """

    name: str
    data: Callable[[], Dataset | None]
    ours: Mapping[str, Spec]
    peers: Mapping[str, tuple[Spec, ...]]
    versus: tuple[tuple[str, str, float], ...]
    calls: tuple[str, ...] = ("fit",)
    check: str | None = None
    product_rate: bool = False  # compare also with the rate of a large matrix product
    held_out: int = 10_000  # rows at most for the accuracy


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
    accuracy: float | None = None
    growth: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        """All that count; the first only where it stayed the only one."""
        first = self.limit if self.first is None else self.first
        return self.seconds or ([] if first is None else [first])

    @property
    def median(self) -> float | None:
        return statistics.median(self.times) if self.times else None

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

    def begin(self, call: str, limit: float, case: Case | None) -> None:
        """The first call, which pays for caches and threads, and what the model is worth."""
        self.first, self.seconds = self.measure(call, limit), []
        if self.first is not None and self.first < _COLD:
            self.first = self.measure(call, limit)
        if self.first is None or case is None:
            return
        try:
            self.growth = self.worker.growth(self.spec)
            if case.check is not None:
                self.value = self.worker.check(self.spec, case.check)
            self.accuracy = self.worker.accuracy(self.spec, case.held_out, 20.0)
        except TooSlowError:
            self.notes.append("held-out rows took too long")
        except BrokenError as problem:
            self.notes.append(f"its value is unknown: {str(problem)[:100]}")

    def value_when_stopped(self, call: str, check: str) -> None:
        """What a stopped model was worth by then: that of a fit with as many iterations as fit in."""
        assert self.limit is not None
        most, count = self.spec.options.get("max_iter"), _FEW_ITERATIONS
        while most is not None and count < most:
            shorter = replace(self.spec, options={**self.spec.options, "max_iter": count})
            try:
                seconds = self.worker.seconds(shorter, call, self.limit)
                self.value = self.worker.check(shorter, check)
            except (TooSlowError, BrokenError):
                return
            self.notes[-1] = f"> {self.limit:.3g} s; its objective: after {count} iterations, {seconds:.3g} s"
            more = int(count * self.limit / seconds)
            count = more if count == _FEW_ITERATIONS and more > 2 * count else most


def _near(entries: list[_Entry], case: Case, limit: float) -> list[_Entry]:
    """The solvers that may be the fastest, by one run each, and of those that never end the most patient."""
    for entry in entries:
        entry.begin(case.calls[0], limit, case)
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
    said = {
        entry.label: "".join(entry.notes) if entry.first is None else f"{entry.median:.3g} s"
        for entry in entries
        if entry is not best
    }
    return best, [f"{label.split()[-1]} {text}" for label, text in said.items()]


def _take_turns(entries: list[_Entry], call: str, tier: Tier) -> None:
    """Measure `call` up to so many times for each, one after the other: a slow moment hits all of them.

    One whose first call took more than the patience of the tier is not called again.
    """
    for repeat in range(tier.repeats):
        turn = repeat % len(entries)
        for entry in entries[turn:] + entries[:turn]:
            if entry.first is not None and entry.first + sum(entry.seconds) <= tier.patience:
                seconds = entry.measure(call, 10 * tier.patience + tier.budget)
                entry.seconds += [] if seconds is None else [seconds]


def run_case(case: Case, workers: Workers, tier: Tier) -> list[Row]:
    """One row for each pair and call; none where the data are not there.

    A peer's call is stopped once it has taken the tier's budget and clearly more than its target needs.
    """

    def entry(label: str, spec: Spec) -> _Entry:
        return _Entry(label, spec, workers.worker(spec, case.data))

    ours = {label: entry(label, spec) for label, spec in case.ours.items()}
    data = next(iter(ours.values())).worker.describe()
    if data is None:
        return []
    for own in ours.values():
        own.begin(case.calls[0], 2 * tier.longest, case)
    slowest = max((own.first or 0.0 for own in ours.values()), default=0.0)
    peers = {
        label: [entry(f"{label} {spec.variant}".strip(), spec) for spec in specs]
        for label, specs in case.peers.items()
    }
    near = {}
    for label, tried in peers.items():
        asked = max((bound for _, theirs, bound in case.versus if theirs == label), default=1.0)
        # What is not a fit begins with one, so that its own seconds do not tell how long to wait.
        fits = case.calls[0].startswith("fit")
        wait = min(_CERTAIN * asked * slowest, tier.longest) if fits else 2 * tier.longest
        near[label] = _near(tried, case, max(tier.budget, wait))
        for stopped in near[label]:
            if stopped.first is None and stopped.limit is not None and case.check is not None:
                stopped.value_when_stopped(case.calls[0], case.check)
    entries = [*ours.values(), *itertools.chain(*near.values())]
    product = entry("product", Spec("benchmarks.worker", "SquareProduct")) if case.product_rate else None
    if product is not None:
        product.begin("fit", tier.budget, None)
        entries.append(product)
    rows = []
    for call in case.calls:
        if call != case.calls[0]:
            for each in entries:
                each.begin(call, tier.budget, None)
        _take_turns(entries, call, tier)
        rate = SquareProduct.flops / product.median if product is not None and product.median else None
        rows += [
            _row(case, call, data, ours[mine], theirs, *_fastest(peers[theirs], near[theirs]), rate)
            for mine, theirs, _ in case.versus
        ]
    return rows


def _row(
    case: Case,
    call: str,
    data: dict[str, Any],
    ours: _Entry,
    library: str,
    peer: _Entry,
    others: list[str],
    rate: float | None,
) -> Row:
    """The ratio of a pair; `reason` tells why it does not count, `stopped` that the peer never finished."""
    rows, features = data["shape"]
    stopped = peer.first is None and peer.limit is not None
    reason, excess = None, None
    if ours.first is None or not peer.times:
        reason = "; ".join((ours if ours.first is None else peer).notes)
    elif stopped and not (call.startswith("fit") or call == "pass"):
        # What it was stopped after is no time of this call.
        reason, stopped = "not comparable: the peer's fit did not end", False
    unknown = case.check is not None and stopped and peer.value is None
    if case.check is not None and not unknown and reason is None:
        if ours.value is None or peer.value is None:
            reason = f"not comparable: {case.check} unknown"
        else:
            excess = CHECKS[case.check].excess(ours.value, peer.value)
            if not excess <= CHECKS[case.check].allowed:
                reason = f"not comparable: {case.check} higher by {excess:.1e}"
    found = None if ours.first is None or not peer.times else ratio_of(peer.times, ours.times)
    share = None
    if rate is not None and ours.first is not None:
        # A symmetric product takes half the work of a general one.
        work = rows * features * (features + 1) + 2 * rows * features * data["classes"]
        share = work / ours.median / rate
    return {
        "case": case.name,
        "about": data["about"],
        "size": f"{rows:,} × {features:,}",
        "call": call,
        "ours": ours.label,
        "library": library,
        "peer": peer.label,
        "seconds": ours.median if ours.first is not None else None,
        "times": ours.seconds,
        "peer_seconds": peer.median,
        "peer_times": peer.seconds,
        "stopped": stopped,
        "ratio": None if found is None else found.value,
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "reason": reason,
        "check": case.check,
        "excess": excess,
        "accuracy": ours.accuracy,
        "peer_accuracy": peer.accuracy,
        "growth": ours.growth,
        "peer_growth": peer.growth,
        "product_share": share,
        "notes": [
            *others,
            *(peer.notes[-1:] if stopped and peer.value is not None else []),
            *(["its objective is not known"] if unknown else []),
        ],
    }
