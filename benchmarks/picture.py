"""Results as pictures: all ratios on one logarithmic axis, and the curves of growth."""

from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import growth
from benchmarks.contest import Row
from benchmarks.families import FAMILIES
from benchmarks.verdict import ORDER

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#000000")
_MARKS = "osD^vPX*"


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def library(row: Row) -> str:
    """A peer without the name of its solver or function."""
    name = row["library"] or ""
    return "scikit-learn" if name.startswith("scikit-learn") else name


def draw_ratios(
    path: Path, families: dict[str, list[Row]], judged: list[dict[str, Any]], machine: dict[str, str]
) -> bool:
    """One line for each task and peer, a mark for each data set; False where no ratio was measured."""
    lines: dict[tuple[str, str], list[float]] = {}
    for family in FAMILIES:
        for row in families.get(family, ()):
            if row.get("ratio") is not None and row["reason"] is None:
                lines.setdefault((_task(family, row), library(row)), []).append(row["ratio"])
    if not lines:
        return False
    from matplotlib.ticker import LogLocator, NullLocator

    names = list(dict.fromkeys(name for _, name in lines))
    style = {name: (_COLOURS[i % len(_COLOURS)], _MARKS[i % len(_MARKS)]) for i, name in enumerate(names)}
    figure = _figure(9.0, 1.2 + 0.24 * len(lines))
    ax = figure.subplots()
    ticks, previous = [], None
    for place, ((task, name), ratios) in enumerate(lines.items()):
        colour, mark = style[name]
        ax.plot(
            ratios, [place] * len(ratios), mark, color=colour, markersize=5, alpha=0.75, markeredgewidth=0
        )
        if task != previous:
            ticks.append((place, task))
            ax.axhline(place - 0.5, color="#dddddd", linewidth=0.6)
            previous = task
    ax.axvline(1.0, color="#222222", linewidth=1.0)
    ax.set_xscale("log")
    every = [ratio for ratios in lines.values() for ratio in ratios]
    ax.set_xlim(min(0.5, *every) * 0.8, max(10.0, *every) * 1.3)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=30))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    ax.grid(axis="x", color="#eeeeee", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.set_yticks([place for place, _ in ticks], [task for _, task in ticks], fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlabel(
        "times as fast as the peer, one mark for each data set; left of 1 it is faster than separatrix",
        fontsize=9,
    )
    handles = [ax.plot([], [], style[name][1], color=style[name][0], label=name)[0] for name in names]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8)
    counts = Counter(each["verdict"] for each in judged)
    told = ", ".join(f"{counts[name]} {name}" for name in ORDER if counts[name])
    ax.set_title(
        f"{machine.get('cpu', '')}, {machine.get('cores', '')} cores; targets: {told}",
        fontsize=8,
        loc="left",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True


def _task(family: str, row: Row) -> str:
    if family in ("closed", "small", "startup"):
        return f"{family}: {row['ours']}" if family != "small" else "small data: fit and predict"
    if family == "prediction":
        return f"{row['call']}, linear models"
    return {
        "svm": "SVC fit",
        "svm-predict": "SVC predict",
        "svm-hard": "SVC fit, hard",
        "svr": "SVR fit",
        "perceptron": "Perceptron pass",
        "sgd": "SGD pass",
        "neighbors": "nearest neighbours",
        "linear-svm": "LinearSVC fit",
        "logistic": "LogisticRegression fit",
        "l1": "logistic L1 fit",
        "reading": "reading files",
    }.get(family, family)


def draw_growth(path: Path, points: list[Row]) -> bool:
    """Seconds and megabytes against rows and features, a small picture for each model."""
    curves = growth.curves(points)
    models = list(dict.fromkeys(curve["case"] for curve in curves))
    if not models:
        return False
    columns = (("rows", "seconds"), ("features", "seconds"), ("rows", "megabytes"), ("features", "megabytes"))
    figure = _figure(11.0, 0.8 + 1.6 * len(models))
    axes = figure.subplots(len(models), 4, squeeze=False)
    for line, model in zip(axes, models, strict=True):
        for ax, (axis, what) in zip(line, columns, strict=True):
            told = []
            for curve in curves:
                if curve["case"] == model and curve["axis"] == axis:
                    ours = curve["side"] == "separatrix"
                    exponent = curve["exponent" if what == "seconds" else "memory_exponent"]
                    told.append("–" if exponent is None else f"{exponent:.2f}")
                    pairs = [
                        (size, value)
                        for size, value in zip(curve["sizes"], curve[what], strict=True)
                        if value
                    ]
                    ax.plot(
                        *zip(*pairs, strict=True) if pairs else ((), ()),
                        "o-" if ours else "s--",
                        color=_COLOURS[not ours],
                        markersize=3,
                        linewidth=1.0,
                        label=curve["side"],
                    )
                    ax.set_xscale("log")
                    ax.set_xticks(curve["sizes"], [f"{size:,}" for size in curve["sizes"]])
            ax.set_yscale("log")
            ax.minorticks_off()
            ax.tick_params(labelsize=6)
            ax.set_title(f"{model}\n{what} against {axis}: {' / '.join(told)}", fontsize=7)
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False, fontsize=8
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True
