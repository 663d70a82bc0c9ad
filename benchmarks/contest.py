"""Ours against the peers on one data set: the peers' fastest solver is found first, then all take turns."""

import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from benchmarks.checks import CHECKS
from benchmarks.datasets import Dataset
from benchmarks.worker import BrokenError, Spec, SquareProduct, TooSlowError, Worker

_PATIENCE = 1.5  # a solver that takes so many times the best one's seconds is not the fastest: it is stopped
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
    """One process and its seconds of one call; `limit` stands in for a first call that was stopped."""

    label: str
    worker: Worker | None
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
    def spread(self) -> float:
        return max(self.seconds) - min(self.seconds) if self.seconds else 0.0

    def measure(self, call: str, limit: float) -> float | None:
        """Seconds of one call; None, with a note, where there is no process, or none any more."""
        if self.worker is None:
            return None
        try:
            return self.worker.seconds(call, limit)
        except TooSlowError as problem:
            self.limit = limit
            self.stop(str(problem))
        except BrokenError as problem:
            self.stop(f"failed: {str(problem)[:200]}")
        return None

    def stop(self, note: str) -> None:
        self.notes.append(note)
        if self.worker is not None:
            self.worker.close()
            self.worker = None


def _enter(label: str, spec: Spec, case: Case, limit: float, stack: ExitStack) -> _Entry:
    """A process for `spec`, with its first call made and its model checked."""
    worker = stack.enter_context(closing(Worker(spec, case.data)))
    entry = _Entry(label, worker)
    worker.describe()  # data are made before the clock starts
    entry.first = entry.measure(case.calls[0], limit)
    if entry.first is not None and entry.first < _COLD:
        entry.first = entry.measure(case.calls[0], limit)
    if entry.worker is not None and case.check is not None:
        entry.value = worker.check(case.check)
    return entry


def _fastest(label: str, specs: tuple[Spec, ...], case: Case, budget: float, stack: ExitStack) -> _Entry:
    """The quickest of the solvers by one run each; the others end up in its notes."""
    entries: list[_Entry] = []
    limit = budget
    for spec in specs:
        name = f"{label} {spec.options.get('solver', '')}".strip()
        entries.append(_enter(name, spec, case, limit, stack))
        if entries[-1].first is not None:
            limit = min(limit, _PATIENCE * entries[-1].first + 1.0)
    best = min(entries, key=lambda entry: (entry.first is None, entry.first or -(entry.limit or 0.0)))
    for entry in entries:
        if entry is not best:
            entry.stop("" if entry.first is None else f"{entry.first:.3g} s")
            best.notes.append(f"{entry.label.removeprefix(label).strip()} {''.join(entry.notes)}")
    return best


def _take_turns(entries: list[_Entry], call: str, repeats: int, budget: float) -> None:
    """Measure `call` up to `repeats` times for each, one after the other: a slow moment hits all of them.

    The first call of all pays for caches and threads. It counts only where it took so much of the budget that
    it stays the only one.
    """
    for repeat in range(repeats):
        turn = repeat % len(entries)
        for entry in entries[turn:] + entries[:turn]:
            if entry.first is not None and entry.first + sum(entry.seconds) <= budget / 2:
                seconds = entry.measure(call, budget)
                entry.seconds += [] if seconds is None else [seconds]


def run_case(case: Case, repeats: int, budget: float) -> list[dict[str, Any]]:
    """One row for each pair and call; none where the data are not there.

    A call that takes longer than `budget` seconds is stopped; one that takes more than half is made once.
    """
    with ExitStack() as stack:
        square = Spec("benchmarks.worker", "SquareProduct")
        reference = stack.enter_context(closing(Worker(square, case.data)))
        about = reference.describe()
        if about is None:
            return []
        ours = {label: _enter(label, spec, case, budget, stack)
                for label, spec in case.ours.items()}
        peers = {label: _fastest(label, specs, case, budget, stack) for label, specs in case.peers.items()}
        product = None
        if case.product_rate:
            product = _Entry("product", reference, first=reference.seconds("fit", budget))
        entries = [*ours.values(), *peers.values(), *([] if product is None else [product])]
        rows = []
        for call in case.calls:
            if call != case.calls[0]:
                for entry in entries:
                    entry.first, entry.seconds = entry.measure(call, budget), []
            _take_turns(entries, call, repeats, budget)
            rate = SquareProduct.flops / product.median if product is not None and product.median else None
            rows += [_row(case, call, about, ours[mine], peers[theirs], target, rate)
                     for mine, theirs, target in case.versus]
        return rows


def _row(case: Case, call: str, data: dict[str, Any], ours: _Entry, peer: _Entry, target: float,
         rate: float | None) -> dict[str, Any]:
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
    ratio = peer.median / ours.median if peer.median and ours.median and ours.first is not None else None
    share = None
    if rate is not None and ours.first is not None:
        # A symmetric product takes half the work of a general one.
        work = rows * features * (features + 1) + 2 * rows * features * data["classes"]
        share = work / ours.median / rate
    return {"case": case.name, "size": f"{rows:,} × {features:,}", "about": data["about"], "call": call,
            "ours": ours.label, "peer": peer.label, "seconds": ours.median, "spread": ours.spread,
            "peer_seconds": peer.median, "peer_spread": peer.spread, "at_least": at_least, "ratio": ratio,
            "target": target, "met": reason is None and ratio is not None and ratio >= target,
            "reason": reason, "excess": excess, "product_share": share, "notes": peer.notes}
