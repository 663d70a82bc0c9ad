"""All ratios of a run as one picture of bars."""

from pathlib import Path


def draw(path: Path, bars: list[tuple[str, str, float, float | None]], machine: dict[str, str]) -> None:
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
    ax.set_xlabel("times as fast as the peer "
                  f"(scikit-learn {machine['scikit-learn']} if not named; | = promised)")
    handles = [ax.barh(0, 0, color=colours[label], label=label) for label in models]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8)
    about = f"{machine['cpu']}, {machine['cores']} cores, {machine['instruction set']}"
    ax.set_title(about, fontsize=8, loc="left")
    figure.savefig(path)
