"""Rows of results that come from other than a contest, in the same form."""

from collections.abc import Sequence
from typing import Any

from benchmarks.contest import Row
from benchmarks.verdict import ratio_of


def timed(
    case: str,
    call: str,
    ours: str,
    times: Sequence[float],
    peer: str | None = None,
    peer_times: Sequence[float] = (),
    **more: Any,
) -> Row:
    """Seconds of ours, and of a peer if there is one, measured in turns."""
    found = ratio_of(peer_times, times) if peer_times else None
    middle = sorted(times)[len(times) // 2]
    return {
        "case": case,
        "about": "",
        "size": "",
        "call": call,
        "ours": ours,
        "library": peer,
        "peer": peer,
        "seconds": middle,
        "times": list(times),
        "peer_seconds": sorted(peer_times)[len(peer_times) // 2] if peer_times else None,
        "peer_times": list(peer_times),
        "stopped": False,
        "ratio": None if found is None else found.value,
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "reason": None,
        "check": None,
        "excess": None,
        "accuracy": None,
        "peer_accuracy": None,
        "growth": None,
        "peer_growth": None,
        "product_share": None,
        "notes": [],
        **more,
    }
