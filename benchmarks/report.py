"""Results as tables in the terminal, as JSON and as a picture."""

import json
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
    return f"{row['target']:g} {'✓' if (row['ratio'] or 0) >= row['target'] else '✗'}"


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"


def startup_table(rows: Rows) -> Table:
    table = Table(title="First fit on iris in a fresh process",
                  caption="whole process, median; × = scikit-learn / this")
    table.add_column("program")
    for heading in ("seconds", "±", "×"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row["model"], f"{row['seconds']:.3f}", f"{row['spread']:.3f}", f"{row['ratio']:.2f}")
    return table


def memory_table(rows: Rows) -> Table:
    table = Table(title="Growth of peak memory during fit", caption="share = growth / size of the input")
    for heading in ("data", "model"):
        table.add_column(heading)
    for heading in ("input MB", "growth MB", "share"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row["case"], row["model"], f"{row['input'] / 1e6:,.0f}", f"{row['growth'] / 1e6:,.1f}",
                      f"{row['share']:.1%}")
    return table


def save(folder: Path, results: dict[str, Any]) -> list[Path]:
    """Write ``benchmarks.json`` and, where speeds were measured, ``benchmarks.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "benchmarks.json"]
    written[0].write_text(json.dumps(results, indent=1) + "\n")
    bars = _bars(results)
    if bars:
        written.append(folder / "benchmarks.png")
        _draw(written[1], bars, results["machine"])
    return written


def _bars(results: dict[str, Any]) -> list[tuple[str, str, float, float | None]]:
    """(group, label, ratio, promise) of everything of ours that has a ratio of times."""
    bars = []
    for family in results["families"].values():
        bars += [(row["case"], row["model"], row["ratio"], row["target"])
                 for row in family if not row["is_peer"] and row["ratio"] is not None]
    bars += [(row["case"], "process", row["ratio"], 1.0) for row in results.get("import", ())
             if row["model"] == "separatrix"]
    return bars


def _draw(path: Path, bars: list[tuple[str, str, float, float | None]], machine: dict[str, str]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    models = list(dict.fromkeys(label for _, label, _, _ in bars))
    palette = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
    colours = {label: palette[index % len(palette)] for index, label in enumerate(models)}
    height = 0.0
    places, ticks, previous = [], [], None
    for group, *_ in bars:
        if group != previous:
            height += 0.6
            ticks.append((height, group))
            previous = group
        places.append(height)
        height += 1.0
    figure = Figure(figsize=(9.0, 1.3 + 0.2 * height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    for place, (_, label, ratio, promise) in zip(places, bars, strict=True):
        ax.barh(place, ratio - 1.0, left=1.0, height=0.85, color=colours[label])
        ax.text(max(ratio, 1.0) * 1.04, place, f"{ratio:.1f}", va="center", fontsize=7)
        if promise is not None and promise > 1:
            ax.plot([promise, promise], [place - 0.5, place + 0.5], color="#222222", linewidth=1.0)
    ax.axvline(1.0, color="#222222", linewidth=0.8)
    ax.set_xscale("log")
    ratios = [ratio for _, _, ratio, _ in bars]
    ax.set_xlim(max(min([0.8, *ratios]) * 0.9, 0.05), max(6.0, *ratios) * 1.4)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_ylim(height + 0.2, -0.4)
    ax.set_yticks([place for place, _ in ticks], [group for _, group in ticks], fontsize=8)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    ax.set_xlabel(f"times as fast as scikit-learn {machine['scikit-learn']} (per pass; | = promised)")
    handles = [ax.barh(0, 0, color=colours[label], label=label) for label in models]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8)
    about = f"{machine['cpu']}, {machine['cores']} cores, {machine['instruction set']}"
    ax.set_title(about, fontsize=8, loc="left")
    figure.savefig(path)
