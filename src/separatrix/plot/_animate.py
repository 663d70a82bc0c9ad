"""A trace as a moving picture."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, PALETTE, label_axes, new_figure, outside_legend
from separatrix.plot._field import Field, draw_edges, draw_regions, grid_lines
from separatrix.plot._page import PageWriter
from separatrix.plot._plane import Plane, Samples, find_plane, on_grid, read_samples
from separatrix.plot._points import choose_points, draw_points, point_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = (".gif", ".html", ".mp4")
_RESOLUTION = 120
_DPI = 100
_TITLE_WIDTH = 92
_TITLE_LINES = 3


def animate(
    trace: Any,
    path: Any,
    *,
    max_frames: int = 100,
    fps: float = 4.0,
    names: Sequence[str] | None = None,
    directions: Any = None,
    only_changes: bool = True,
) -> Path:
    """Write the steps of a trace as a moving picture: regions, samples, and what each step did.

    The sample that a step looked at is ringed, its words stand above, and the objective (of a perceptron, the
    mistakes so far) runs below. Where there are more steps than frames, frames are steps at equal distances.

    Parameters
    ----------
    trace : Trace
        From `separatrix.trace`.
    path : str or path
        File to write: ``.gif``, ``.html`` (one page with buttons that needs no network) or ``.mp4``, which
        needs the program ffmpeg or the extra ``video``.
    max_frames : int, default=100
        Most frames.
    fps : float, default=4
        Frames per second.
    names : sequence of str, optional
        Names of the features.
    directions : "principal", pair of features, or array of shape (2, d), optional
        The plane to show, as in `boundary`; by default the two features, or the two directions of largest
        variance.
    only_changes : bool, default=True
        Leave out steps that changed nothing.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> from separatrix import Perceptron, plot
    >>> from separatrix.traces import trace
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 2.0]], [0, 1, 0, 1]
    >>> plot.animate(trace(Perceptron(), X, y), "perceptron.gif", max_frames=2).name
    'perceptron.gif'
    """
    target = Path(path)
    if target.suffix.lower() not in _KINDS:
        raise ValueError(f"animate writes {', '.join(_KINDS)}; the name {target.name} ends in none of them")
    if not hasattr(trace, "decision"):
        raise TypeError(f"animate needs a Trace, as separatrix.trace returns it, not {type(trace).__name__}")
    if max_frames < 1 or not fps > 0:
        raise ValueError(f"max_frames and fps must be positive, not {max_frames!r} and {fps!r}")
    samples = read_samples(trace.X)
    plane = find_plane(samples, names, None, directions)
    # Made first: a missing matplotlib or ffmpeg is said before the work.
    scene = _Scene(trace, samples, plane)
    writer = _writer(target, f"{type(trace.model).__name__}, step by step", fps)
    picked, numbers, heights, height_name = _pick(trace, max_frames, only_changes)
    scene.prepare(numbers, heights, height_name)
    # A picture that ends half-way must not take the place of an older whole one.
    unfinished = target.with_name(f".unfinished-{os.getpid()}-{target.name}")
    try:
        with writer.saving(scene.figure, str(unfinished), dpi=_DPI):
            for at, step in picked():
                scene.show(step, at)
                writer.grab_frame()
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def _writer(target: Path, title: str, fps: Any) -> Any:
    from matplotlib import animation

    kind = target.suffix.lower()
    if kind == ".gif":
        return animation.PillowWriter(fps=fps)
    if kind == ".html":
        return PageWriter(title, fps)
    program = find_ffmpeg()
    if program is None:
        raise RuntimeError(
            ".mp4 needs the program ffmpeg, which is not installed: install it, or "
            "pip install 'separatrix[video]'; or write a .gif or .html instead"
        )
    # Players and browsers know this way of storing colours, and only it; it needs even numbers of pixels.
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white"
    return _Films(program)(fps=fps, codec="libx264", extra_args=["-vf", even, "-pix_fmt", "yuv420p"])


def find_ffmpeg() -> str | None:
    """Return the program that writes films: the installed one, else that of the package imageio-ffmpeg."""
    import shutil

    from matplotlib import rcParams

    found = shutil.which(str(rcParams["animation.ffmpeg_path"]))
    if found is None:
        try:
            from imageio_ffmpeg import get_ffmpeg_exe

            found = str(get_ffmpeg_exe())
        except (ImportError, RuntimeError):
            return None
    return found


def _Films(program: str) -> Any:  # noqa: N802
    """Return matplotlib's writer of films with this program, without changing its settings for others."""
    from matplotlib import animation

    return type("Films", (animation.FFMpegWriter,), {"bin_path": classmethod(lambda cls: program)})


Picked = Callable[[], Any]


def _pick(trace: Any, most: int, only_changes: bool) -> tuple[Picked, list[int], list[float], str]:
    """Choose the steps to show; the trace runs twice, since its steps may be too many to keep."""
    kept, numbers, heights, name = [], [], [], ""
    for position, step in enumerate(trace):
        if step.end or step.changed or not only_changes:
            kept.append(position)
        value = step.objective if step.objective is not None else step.facts.get("mistakes")
        if value is not None:
            name = "objective" if step.objective is not None else "mistakes"
            numbers.append(position + 1)
            heights.append(float(value))
    kept = kept or [position]
    chosen = set(np.array(kept)[np.unique(np.linspace(0, len(kept) - 1, most).round().astype(int))].tolist())

    def picked() -> Any:
        for position, step in enumerate(trace):
            if position in chosen:
                yield position, step

    return picked, numbers, heights, name


class _Scene:
    """The figure, and how a step is shown in it."""

    def __init__(self, trace: Any, samples: Samples, plane: Plane) -> None:
        self.trace, self.samples, self.plane = trace, samples, plane
        self.classes = list(trace.classes)
        self.flat = plane.coordinates(samples.rows)
        self.u, self.v = grid_lines(self.flat, _RESOLUTION)
        self.coordinates = np.stack(np.meshgrid(self.u, self.v), axis=-1).reshape(-1, 2)
        self.figure = new_figure(6.6, 5.0)
        self.figure.set_dpi(_DPI)  # of the film, for which the places are fixed: texts are wider at few dots
        self.moving: list[Any] = []
        self.lower: Axes | None = None

    def prepare(self, numbers: list[int], heights: list[float], name: str) -> None:
        """Draw what stays, and fix the places, so that nothing jumps between frames."""
        from matplotlib.ticker import MaxNLocator

        if len(heights) > 1:
            self.ax, self.lower = self.figure.subplots(2, 1, height_ratios=(4, 1))
            self.lower.plot(numbers, heights, color=PALETTE[0], linewidth=1.4)
            self.lower.set_xlabel("step")
            for axis in (self.lower.xaxis, self.lower.yaxis):
                axis.set_major_locator(MaxNLocator(4, integer=axis is self.lower.xaxis or name == "mistakes"))
            self.lower.set_ylabel(name, fontsize="small")
        else:
            self.ax = self.figure.subplots()
        drawn = choose_points(self.trace.y, len(self.flat), 2000)
        self.size = point_size(len(drawn))
        handles = draw_points(self.ax, self.flat, self.trace.y, drawn, self.classes)
        label_axes(self.ax, self.plane.labels, 40)
        self.ax.set_xlim(self.u[0], self.u[-1])
        self.ax.set_ylim(self.v[0], self.v[-1])
        self.ax.set_title("\n" * (_TITLE_LINES - 1) + " ", fontsize="small", loc="left")
        outside_legend(self.ax, handles, regions=True)
        self.figure.canvas.draw()
        self.figure.set_layout_engine("none")

    def show(self, step: Any, position: int) -> None:
        """Replace the regions, the ring and the words by those of a step."""
        for piece in self.moving:
            piece.remove()
        before = {id(piece) for piece in (*self.ax.collections, *self.ax.images)}
        field = self._field(step)
        draw_regions(self.ax, field, len(self.classes))
        draw_edges(self.ax, field)
        rows = list(step.samples)
        if rows:
            self.ax.scatter(
                *self.flat[rows].T,
                s=self.size * 5,
                facecolors="none",
                edgecolors=INK,
                linewidths=2.0,
                zorder=5,
            )
        self.moving = [piece for piece in (*self.ax.collections, *self.ax.images) if id(piece) not in before]
        if self.lower is not None:
            self.moving.append(self.lower.axvline(position + 1, color=PALETTE[5], linewidth=1.6))
        words = fill(str(step), _TITLE_WIDTH, max_lines=_TITLE_LINES, placeholder=" …")
        missing = _TITLE_LINES - 1 - words.count("\n")
        self.ax.set_title("\n" * missing + words, fontsize="small", loc="left")

    def _field(self, step: Any) -> Field:
        def decision(points: Any) -> NDArray[Any]:
            scores: NDArray[Any] = self.trace.decision(step, points)
            return scores

        plain = Samples(self.samples.rows, None, lambda points: points)
        scores = on_grid(decision, self.plane, plain, self.coordinates)
        shape = len(self.v), len(self.u)
        region = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=-1)
        return Field(self.u, self.v, region.reshape(shape), scores.reshape(*shape, *scores.shape[1:]))
