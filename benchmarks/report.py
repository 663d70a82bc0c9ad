"""Results as tables in the terminal, as JSON and as a picture."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Rows = list[dict[str, Any]]


def print_machine(console: Console, machine: dict[str, str]) -> None:
    console.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim")


def passes_table(rows: Rows, title: str) -> Table:
    table = Table(title=title,
                  caption="× = peer's time / ours, of one pass by the clock, of one pass in CPU time, of the "
                  "whole longer fit; ± = range over repeats; error = training error after that fit")
    for heading in ("data", "size", "model"):
        table.add_column(heading, no_wrap=True)
    for heading in ("ms / pass", "±", "×", "× CPU", "× fit", "promised", "error"):
        table.add_column(heading, justify="right")
    for index, row in enumerate(rows):
        fresh = index == 0 or rows[index - 1]["case"] != row["case"]
        if fresh and index > 0:
            table.add_section()
        table.add_row(*((row["case"], row["size"]) if fresh else ("", "")), row["model"],
                      f"{row['seconds'] * 1e3:,.2f}", f"{row['spread'] * 1e3:,.2f}", _times(row["ratio"]),
                      _times(row["cpu_ratio"]), _times(row["fit_ratio"]), _promised(row),
                      f"{row['training_error']:.4f}")
    return table


def _promised(row: dict[str, Any]) -> str:
    if row["target"] is None:
        return ""
    met = row.get("met", (row["ratio"] or 0) >= row["target"])
    return f"{row['target']:g} {'✓' if met else '✗'}"


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"


def sorted_rows(rows: Rows) -> Rows:
    """What is not met first, and there the farthest from its target."""
    return sorted(rows, key=lambda row: (row["met"], (row.get("ratio") or 0.0) / (row["target"] or 1.0)))


def one_line(name: str, rows: Rows) -> str:
    """What a case came to, for the log of a long run."""
    if not rows:
        return f"{name}: left out, its data are not in --data"
    return f"{name}: " + ", ".join(row.get("reason") or f"{_times(row['ratio'])}×" for row in rows)


def summary(rows: Rows, mean_target: float, smallest_target: float) -> list[str]:
    """Geometric mean and smallest of the ratios to the better peer of each case, against the targets."""
    worst: dict[str, Any] = {}
    for row in rows:
        if row["case"] not in worst or _counts(row) < _counts(worst[row["case"]]):
            worst[row["case"]] = row
    counted = [row for row in worst.values() if row["reason"] is None]
    if not counted:
        return ["no case is comparable"]
    mean = statistics.geometric_mean(row["ratio"] for row in counted)
    smallest = min(counted, key=lambda row: row["ratio"])
    left_out = f", {len(worst) - len(counted)} not comparable" if len(worst) > len(counted) else ""

    def line(text: str, value: float, target: float) -> str:
        return f"{text}: {value:.2f}×, target {target:g}: {'met' if value >= target else 'NOT met'}"

    return [line(f"geometric mean over {len(counted)} cases{left_out}, to the better peer of each", mean,
                 mean_target),
            line(f"smallest, {smallest['case']} to {smallest['peer']}", smallest["ratio"], smallest_target)]


def _counts(row: dict[str, Any]) -> float:
    """Order of the peers of a case: one that is not comparable decides, then the fastest."""
    return -1.0 if row["reason"] is not None else row["ratio"]


def _table(title: str, caption: str, left: Iterable[str], right: Iterable[str]) -> Table:
    table = Table(title=title, caption=caption)
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def contest_table(rows: Rows, title: str) -> Table:
    rated = any(row["product_share"] is not None for row in rows)
    table = _table(title, "seconds: median ± range over repeats; × = peer's / ours, > where the peer was "
                   "stopped; × best = of the shortest times; "
                   "value = how much worse ours is than the peer's, of objective or training error"
                   + ("; rate = share of the machine's matrix-product rate" if rated else ""),
                   ("data", "ours", "peer"),
                   ("seconds", "peer's", "×", "× best", "promised", "value",
                    *(("rate",) if rated else ()), "notes"))
    for row in rows:
        call = "" if row["call"] == "fit" else f", {row['call']}"
        share = "–" if row["product_share"] is None else f"{row['product_share']:.0%}"
        table.add_row(f"{row['case'].partition(':')[0]} ({row['size']})", row["ours"] + call, row["peer"],
                      _seconds(row["seconds"], row["spread"]),
                      (">" if row["at_least"] else "") + _seconds(row["peer_seconds"], row["peer_spread"]),
                      (">" if row["at_least"] else "") + _times(row["ratio"]),
                      _times(row["best_ratio"]), _promised(row),
                      "–" if row["excess"] is None else f"{row['excess']:+.0e}",
                      *((share,) if rated else ()), row["reason"] or "; ".join(row["notes"]))
    return table


def _seconds(value: float | None, spread: float) -> str:
    return "–" if value is None else f"{value:.3g} ± {spread:.1g}"


def startup_table(rows: Rows) -> Table:
    bare = f"; import numpy alone takes {rows[0]['numpy_seconds']:.3f}" if rows else ""
    table = _table("First fit on iris in a fresh process",
                   f"seconds of the whole process, median ± range{bare}",
                   ("ours", "peer"), ("seconds", "peer's", "×", "promised"))
    for row in rows:
        table.add_row(row["model"], row["peer"], _seconds(row["seconds"], row["spread"]),
                      _seconds(row["peer_seconds"], row["peer_spread"]), _times(row["ratio"]), _promised(row))
    return table


def memory_table(rows: Rows) -> Table:
    table = _table("Growth of peak memory during fit", "share = growth / size of the input",
                   ("data", "model"), ("input MB", "growth MB", "share", "promised MB"))
    for row in rows:
        mark = "✓" if row["met"] else "✗"
        promised = "" if row["target"] is None else f"< {row['target'] / 1e6:,.0f} {mark}"
        table.add_row(row["case"], row["model"], f"{row['input'] / 1e6:,.0f}", f"{row['growth'] / 1e6:,.1f}",
                      f"{row['share']:.1%}", promised)
    return table


def growth_table(rows: Rows) -> Table:
    table = _table("Growth of a fit and its predictions",
                   "the exponent p of time or memory ~ size^p, by least squares", ("model", "grows", "side"),
                   ("sizes", "seconds", "exponent", "megabytes", "exponent of memory"))
    for row in rows:
        table.add_row(row["case"], row["axis"], row["side"], " ".join(f"{size:,}" for size in row["sizes"]),
                      " ".join("–" if value is None else f"{value:.3g}" for value in row["seconds"]),
                      _times(row["exponent"]),
                      " ".join("–" if value is None else f"{value:.0f}" for value in row["megabytes"]),
                      _times(row["memory_exponent"]))
    return table


def save(path: Path, results: dict[str, Any]) -> list[Path]:
    """Write results as JSON and, where speeds were measured, a picture beside it."""
    file = path if path.suffix == ".json" else path / "benchmarks.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    bars = bars_of(results)
    if not bars:
        return [file]
    from benchmarks.picture import draw

    draw(file.with_suffix(".png"), bars, results["machine"])
    return [file, file.with_suffix(".png")]


def bars_of(results: dict[str, Any]) -> list[tuple[str, str, float, float | None]]:
    """(group, label, ratio, promise) of everything of ours that has a ratio of times."""
    bars = []
    for family in results["families"].values():
        for row in family:
            if row["ratio"] is not None and not row.get("is_peer"):
                label = row["model"] if "model" in row else f"{row['ours']} {row['call']} / {row['peer']}"
                bars.append((row["case"].partition(":")[0], label, row["ratio"], row["target"]))
    bars += [(row["case"], row["model"], row["ratio"], row["target"]) for row in results.get("import", ())]
    return sorted(bars, key=lambda bar: bar[0])
