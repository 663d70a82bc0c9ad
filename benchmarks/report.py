"""Results as tables in the terminal."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import growth
from benchmarks.contest import Row
from benchmarks.families import ABOUT
from benchmarks.judge import grouped
from benchmarks.verdict import ORDER

Rows = list[Row]


def print_machine(console: Console, machine: dict[str, str]) -> None:
    console.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim", highlight=False)


def one_line(name: str, rows: Rows, seconds: float) -> str:
    """What an item came to, for the log of a long run."""
    parts = []
    for row in rows:
        if row.get("reason"):
            parts.append(row["reason"])
        elif row.get("ratio") is not None:
            parts.append(f"{'>' if row['stopped'] else ''}{times(row['ratio'])}× {row['library']}")
        elif row["call"] == "memory":
            parts.append(f"{row['growth'] / 1e6:,.0f} MB")
        elif row["call"] != "growth":
            parts.append(f"{row['seconds']:.3g} s")
    told = ", ".join(parts) or f"{len(rows)} measured" if rows else "left out, its data are not in --data"
    return f"{name}: {told}  [{seconds:.0f} s]"


def _table(title: str, caption: str, left: Iterable[str], right: Iterable[str]) -> Table:
    table = Table(title=title, caption=caption)
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def targets_table(judged: list[dict[str, Any]]) -> Table:
    """All that was promised; what is not met first."""
    counts = Counter(each["verdict"] for each in judged)
    table = _table(
        "Targets",
        ", ".join(f"{counts[name]} {name}" for name in ORDER if counts[name]),
        ("verdict", "target", "case", "peer"),
        ("asked", "found"),
    )
    styles = dict(zip(ORDER, ("red", "red", "yellow", "dim", "green"), strict=True))
    for each in grouped(judged):
        table.add_row(
            each["verdict"],
            each["text"],
            each["case"],
            each["peer"],
            each["asked"],
            each["found"],
            style=styles[each["verdict"]],
        )
    return table


def family_table(family: str, rows: Rows) -> Table:
    """All rows of a family, the slowest against their peers first."""
    if family == "growth":
        return growth_table(rows)
    if family == "memory":
        return memory_table(rows)
    rated = any(row["product_share"] is not None for row in rows)
    table = _table(
        ABOUT[family],
        "seconds: median of the repeats; × = peer's / ours, > where the peer was stopped, "
        "with its range; value = how much worse ours is than the peer's, of objective or error; right = "
        "held-out accuracy, ours and the peer's; MB = growth of the process in the fit, ours and the "
        "peer's" + ("; rate = share of the machine's matrix-product rate" if rated else ""),
        ("data", "ours", "peer"),
        ("seconds", "peer's", "×", "range", "value", "right", "MB", *(("rate",) if rated else ()), "notes"),
    )
    for row in sorted_rows(rows):
        table.add_row(*cells(row, rated))
    return table


def sorted_rows(rows: Rows) -> Rows:
    """What does not count first, then the smallest ratios."""
    return sorted(rows, key=lambda row: (row["reason"] is None, row["ratio"] or 0.0))


def cells(row: Row, rated: bool) -> list[str]:
    call = "" if row["call"] in ("fit", "pass") else f", {row['call']}"
    mark = ">" if row["stopped"] else ""
    found = [
        f"{row['case'].partition(': ')[0]}" + (f" ({row['size']})" if row["size"] else ""),
        row["ours"] + call,
        row["peer"] or "",
        _seconds(row["seconds"]),
        mark + _seconds(row["peer_seconds"]),
        mark + times(row["ratio"]),
        "–" if row["low"] is None or row["stopped"] else f"{times(row['low'])}–{times(row['high'])}",
        "–" if row["excess"] is None else f"{row['excess']:+.0e}",
        _both(row["accuracy"], row["peer_accuracy"], "{:.3f}"),
        _both(_megabytes(row["growth"]), _megabytes(row["peer_growth"]), "{:.0f}"),
    ]
    if rated:
        found.append("–" if row["product_share"] is None else f"{row['product_share']:.0%}")
    return [*found, row["reason"] or "; ".join(row["notes"])]


def _megabytes(value: float | None) -> float | None:
    return None if value is None else value / 1e6


def _both(mine: float | None, theirs: float | None, form: str) -> str:
    if mine is None and theirs is None:
        return "–"
    return " / ".join("–" if value is None else form.format(value) for value in (mine, theirs))


def times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3g}" if ratio < 100 else f"{ratio:,.0f}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def memory_table(rows: Rows) -> Table:
    table = _table(
        ABOUT["memory"],
        "share = growth / size of the input",
        ("data", "model"),
        ("input MB", "growth MB", "share", "peer's MB"),
    )
    for row in rows:
        table.add_row(*memory_cells(row))
    return table


def memory_cells(row: Row) -> list[str]:
    return [
        row["case"],
        row["ours"],
        f"{row['input'] / 1e6:,.0f}",
        f"{row['growth'] / 1e6:,.1f}",
        f"{row['growth'] / row['input']:.1%}",
        "–" if row["peer_growth"] is None else f"{row['peer_growth'] / 1e6:,.1f}",
    ]


def growth_table(rows: Rows) -> Table:
    table = _table(
        ABOUT["growth"],
        "the exponent p of time or memory ~ size^p, by least squares",
        ("model", "grows", "side"),
        ("sizes", "seconds", "p", "megabytes", "p of memory"),
    )
    for curve in growth.curves(rows):
        table.add_row(*growth_cells(curve))
    return table


def growth_cells(curve: dict[str, Any]) -> list[str]:
    return [
        curve["case"],
        curve["axis"],
        curve["side"],
        " ".join(f"{size:,}" for size in curve["sizes"]),
        " ".join("–" if value is None else f"{value:.2g}" for value in curve["seconds"]),
        times(curve["exponent"]),
        " ".join("–" if value is None else f"{value:.0f}" for value in curve["megabytes"]),
        times(curve["memory_exponent"]),
    ]
