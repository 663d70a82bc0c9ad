"""Targets against results: what was found, and the verdict."""

import math
from typing import Any

from benchmarks import verdict
from benchmarks.contest import Row
from benchmarks.reasons import explanation
from benchmarks.targets import TARGETS, Target
from benchmarks.verdict import MISSED, ORDER, UNCOMPARABLE, UNMEASURED, Range


def judge(families: dict[str, list[Row]]) -> list[dict[str, Any]]:
    """Every target with every case that it names: what was found, and the verdict. The unmet come first."""
    found = []
    for target in TARGETS:
        rows = families.get(target.family, [])
        by_case = {
            case: _counted(target, [row for row in rows if row["case"] == case]) for case in target.cases
        }
        if target.kind == "mean":
            found.append(_mean(target, by_case))
        else:
            found += [_single(target, case, row) for case, row in by_case.items()]
    return sorted(found, key=lambda each: (ORDER.index(each["verdict"]), each["shortfall"]))


def grouped(judged: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with one line for all that was not measured of a target."""
    found: list[dict[str, Any]] = []
    for each in judged:
        same = each["verdict"] == UNMEASURED and found and found[-1]["verdict"] == UNMEASURED
        if same and found[-1]["target"] == each["target"]:
            count = int(found[-1]["several"]) + 1
            found[-1] = {**found[-1], "several": count, "case": f"{count} cases"}
        else:
            found.append({**each, "several": 1})
    return found


def _counted(target: Target, rows: list[Row]) -> Row | None:
    """The row that decides: one that is not comparable before all, then the better peer's."""
    if target.kind in ("ratio", "mean", "share"):
        rows = [row for row in rows if not target.libraries or row["library"] in target.libraries]
        return min(rows, key=lambda row: -1.0 if row["reason"] is not None else row["ratio"], default=None)
    return rows[-1] if rows else None


def _single(target: Target, case: str, row: Row | None) -> dict[str, Any]:
    if row is None:
        return _judged(target, case, "", UNMEASURED)
    peer = row.get("peer") or ""
    if row.get("reason") is not None:
        return _judged(target, case, peer, UNCOMPARABLE, shown=row["reason"])
    if target.kind == "told":
        return _judged(
            target, case, peer, verdict.MET, shown=f"{row['rate'] / 1e9:.1f}·10⁹ per second and core"
        )
    if target.kind == "ratio":
        found = Range(row["ratio"], row["low"], row["high"])
        shown = f"{'> ' if row['stopped'] else ''}{_number(found.value)}×"
        if not row["stopped"]:
            shown += f" ({_number(found.low)} to {_number(found.high)})"
        return _judged(
            target, case, peer, verdict.at_least(found, target.bound, row["stopped"]), found.value, shown
        )
    if target.kind == "share":
        found = Range(1 / row["ratio"], 1 / row["high"], 1 / row["low"])
        shown = f"{_number(found.value)} times ({_number(found.low)} to {_number(found.high)})"
    elif target.kind == "seconds":
        found = verdict.range_of(row["times"])
        shown = f"{found.value:.3g} s"
    else:
        value = row["growth"] / (row["input"] if target.kind == "copies" else 1)
        found = Range(value, value / verdict.MARGIN, value * verdict.MARGIN)
        shown = f"{value:.1%} of the input" if target.kind == "copies" else f"{value / 1e6:,.0f} MB"
    return _judged(target, case, peer, verdict.at_most(found, target.bound), found.value, shown)


def _mean(target: Target, by_case: dict[str, Row | None]) -> dict[str, Any]:
    measured = [row for row in by_case.values() if row is not None]
    counted = [row for row in measured if row["reason"] is None]
    case = f"{len(counted)} of {len(by_case)} sets"
    if 2 * len(counted) < len(by_case):
        return _judged(target, case, "the better one of each", UNCOMPARABLE if measured else UNMEASURED)
    found = verdict.mean_of([Range(row["ratio"], row["low"], row["high"]) for row in counted])
    stopped = any(row["stopped"] for row in counted)
    decided = verdict.at_least(found, target.bound, stopped)
    if decided == verdict.MET and len(counted) < len(by_case):
        decided = verdict.CLOSE  # the sets that are missing might undo it
    shown = (
        f"{'> ' if stopped else ''}{_number(found.value)}× ({_number(found.low)} to {_number(found.high)})"
    )
    return _judged(target, case, "the better one of each", decided, found.value, shown)


def _judged(
    target: Target, case: str, peer: str, decided: str, value: float | None = None, shown: str = "–"
) -> dict[str, Any]:
    """One line of the list; `shortfall` is the part of the bound that was reached, or its inverse."""
    asked = {
        "ratio": f"≥ {target.bound:g}×",
        "mean": f"≥ {target.bound:g}×",
        "share": f"≤ {target.bound:g} times",
        "seconds": f"≤ {target.bound:g} s",
        "bytes": f"< {target.bound / 1e6:,.0f} MB",
        "copies": f"< {target.bound:.0%} of the input",
        "told": "reported",
    }[target.kind]
    reached = 0.0 if value is None else value / target.bound
    if target.kind not in ("ratio", "mean") and reached > 0:
        reached = 1 / reached
    return {
        "target": target.key,
        "text": target.text,
        "family": target.family,
        "case": case,
        "peer": peer,
        "asked": asked,
        "value": value,
        "found": shown,
        "verdict": decided,
        "shortfall": reached if math.isfinite(reached) else 0.0,
        "why": explanation(target.key, case) if decided == MISSED else "",
    }


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
