"""What a search over parameters found: a heat map of two, a curve of one, a strip each for more."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.plot._canvas import INK, PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Trials = Sequence[tuple[Mapping[str, Any], float | None]]


def search(trials: Trials, names: Sequence[str], *, label: str, title: str, best_high: bool = True) -> "Axes":
    """Draw the values of a criterion over the parameters that were tried.

    Parameters
    ----------
    trials : sequence of (settings, value)
        What was tried, and what it was worth (None: it failed).
    names : sequence of str
        The parameters.
    label : str
        What the values are.
    title : str
        What the picture is about.
    best_high : bool
        Whether larger values are better.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> trials = [({"C": C, "gamma": g}, C * g) for C in (0.1, 1.0) for g in (0.01, 0.1, 1.0)]
    >>> search(trials, ["C", "gamma"], label="accuracy", title="demo").get_xlabel()
    'gamma'
    """
    varied = [name for name in names if len(_levels(trials, name)) > 1] or list(names)[:1]
    known = [(settings, value) for settings, value in trials if value is not None]
    pick = max if best_high else min
    best = pick(known, key=lambda trial: trial[1])[0]
    whole = len(varied) == 2 and len(trials) == len(_levels(trials, varied[0])) * len(
        _levels(trials, varied[1])
    )
    if whole:
        return _heat_map(trials, varied, best, label, title, best_high)
    return _strips(known, varied, best, label, title)


def _levels(trials: Trials, name: str) -> list[Any]:
    """Return the different values of a parameter: numbers in order, others as they came."""
    values = list(dict.fromkeys(settings[name] for settings, _ in trials))
    numbers = sorted(value for value in values if _is_number(value))
    return [value for value in values if not _is_number(value)] + numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return f"{value:g}" if _is_number(value) else str(value)


def _heat_map(
    trials: Trials, names: Sequence[str], best: Mapping[str, Any], label: str, title: str, best_high: bool
) -> "Axes":
    down, across = sorted(names, key=lambda name: len(_levels(trials, name)))
    rows, columns = _levels(trials, down), _levels(trials, across)
    values = np.full((len(rows), len(columns)), np.nan)
    for settings, value in trials:
        values[rows.index(settings[down]), columns.index(settings[across])] = (
            np.nan if value is None else value
        )
    figure = new_figure(2.4 + 0.8 * len(columns), 1.8 + 0.55 * len(rows))
    ax = figure.subplots()
    # Dark is good in both cases; cividis reads the same with every common colour blindness.
    image = ax.imshow(values, cmap="cividis_r" if best_high else "cividis", aspect="auto", origin="lower")
    low, high = np.nanmin(values), np.nanmax(values)
    middle = (low + high) / 2
    for row in range(len(rows)):
        for column in range(len(columns)):
            value = values[row, column]
            dark = (value > middle) == best_high and np.isfinite(value)
            text = f"{value:.3f}" if np.isfinite(value) else "failed"
            ax.text(
                column, row, text, ha="center", va="center", fontsize="small", color="white" if dark else INK
            )
    from matplotlib.patches import Rectangle

    corner = (columns.index(best[across]) - 0.5, rows.index(best[down]) - 0.5)
    ax.add_patch(
        Rectangle(corner, 1, 1, fill=False, edgecolor=PALETTE[5], linewidth=2.5, zorder=3, clip_on=False)
    )
    ax.set_xticks(range(len(columns)), [_text(value) for value in columns])
    ax.set_yticks(range(len(rows)), [_text(value) for value in rows])
    ax.set_xlabel(across)
    ax.set_ylabel(down)
    figure.colorbar(image, ax=ax, label=label)
    ax.set_title(
        f"{title}\nbest (framed): {', '.join(f'{k}={_text(v)}' for k, v in best.items())}", fontsize="medium"
    )
    axes: Axes = ax
    return axes


def _strips(
    trials: Sequence[tuple[Mapping[str, Any], float]],
    names: Sequence[str],
    best: Mapping[str, Any],
    label: str,
    title: str,
) -> "Axes":
    figure = new_figure(max(4.8, 3.4 * len(names)), 3.4)
    panels = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
    for ax, name in zip(panels, names, strict=True):
        levels = _levels(trials, name)
        numeric = all(_is_number(value) and value > 0 for value in levels) and len(levels) > 2
        position = (lambda value: value) if numeric else levels.index
        points = sorted(((position(s[name]), value) for s, value in trials), key=lambda point: point[0])
        x, y = zip(*points, strict=True)
        style = "o-" if len(names) == 1 else "o"
        ax.plot(
            x, y, style, color=PALETTE[0], markersize=5, linewidth=1.2, alpha=1.0 if len(names) == 1 else 0.7
        )
        value = next(value for settings, value in trials if settings is best)
        ax.plot(position(best[name]), value, "*", color=PALETTE[5], markersize=15, mec="white", zorder=3)
        if numeric:
            ax.set_xscale("log")
        else:
            ax.set_xticks(range(len(levels)), [_text(value) for value in levels])
            ax.set_xlim(-0.5, len(levels) - 0.5)
        ax.set_xlabel(name)
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(label)
    figure.suptitle(
        f"{title}\nbest (star): {', '.join(f'{k}={_text(v)}' for k, v in best.items())}", fontsize="medium"
    )
    axes: Axes = panels[0]
    return axes
