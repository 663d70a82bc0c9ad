"""``separatrix trace``: the steps of a fit as a table, and as a moving picture.

``register(app)`` adds the command; nothing heavy is imported before it runs.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import options as o
from separatrix.cli.screen import CommandError, note, plain, user_errors

if TYPE_CHECKING:
    from separatrix.cli.inputs import DataOptions
    from separatrix.traces import Trace, TraceStep

_MOVIES = (".gif", ".html", ".mp4")
_COLUMNS = ("step", "pass", "samples", "saw", "did", "objective")
_UNITS = {"pass": "pass", "iteration": "iter."}


def register(app: typer.Typer, **settings: Any) -> None:
    """Add the command to the program; `settings` go to ``app.command``."""
    app.command(name="trace", **settings)(trace)


def trace(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table of numbers and classes.", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Option(
            help="Column to predict; by default one called target, class, label or y, else the last.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="perceptron, kernel-perceptron, sgd, logistic or svc.")
    ] = "perceptron",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Parameter of the model; repeatable.", show_default=False
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column to leave out; repeatable.", show_default=False),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="For logistic: newton (default) or gradient.", show_default=False),
    ] = None,
    steps: Annotated[
        int, typer.Option(help="Most steps to print: the first ones, and the last; 0 for all.")
    ] = 20,
    changes: Annotated[bool, typer.Option("--changes", help="Only steps that changed something.")] = False,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize/--no-standardize", help="Scale features to mean 0 and standard deviation 1."
        ),
    ] = True,
    missing: o.Missing = "refuse",
    seed: o.Seed = 0,
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    animate: Annotated[
        Path | None,
        typer.Option(
            metavar="MOVIE.gif", help="Write a moving picture (gif, html, mp4).", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document per step.")] = False,
) -> None:
    """Show every step of a fit: what it saw, and what it did.

    \b
    Examples:
      separatrix trace banknote.csv --target class --model perceptron
      separatrix trace banknote.csv --target class --changes --steps 0 --animate perceptron.gif
      separatrix trace banknote.csv --target class --model logistic --method gradient
    """
    with user_errors("interrupted"):
        if steps < 0:
            raise CommandError(f"--steps must not be negative; got {steps}")
        if animate is not None:
            _check_movie(animate)
        from separatrix.cli.inputs import DataOptions

        left = tuple(ignore or ())
        chosen = DataOptions(data, target, left, (), missing, format, delimiter, quote, not no_header)
        found, names = _trace(chosen, model, settings or [], method, standardize, seed)
        if animate is not None and len(names) < 2:
            raise CommandError(f"--animate needs two features or more, and {data} has one; leave it out")
        _print(found, steps, changes, json)
        if animate is not None:
            from separatrix.plot import animate as write

            write(found, animate, names=names)
            if not json:
                print(f"\nmoving picture: {animate}")


def _check_movie(path: Path) -> None:
    import importlib.util

    if path.suffix.lower() not in _MOVIES:
        raise CommandError(f"--animate {path}: the name must end in one of {', '.join(_MOVIES)}")
    if not path.resolve().parent.is_dir():
        folder = path.resolve().parent
        raise CommandError(f"--animate {path}: there is no directory {folder}; create it first")
    if importlib.util.find_spec("matplotlib") is None:
        raise CommandError("--animate needs matplotlib; install it with: pip install 'separatrix[plot]'")
    if path.suffix.lower() == ".mp4":
        from separatrix.plot._animate import find_ffmpeg

        if find_ffmpeg() is None:
            raise CommandError(
                f"--animate {path}: .mp4 needs the program ffmpeg: install it, or pip install "
                "'separatrix[video]'; or write a .gif or .html instead"
            )


def _trace(
    data: DataOptions, model: str, settings: list[str], method: str | None, standardize: bool, seed: int
) -> tuple[Trace, list[str]]:
    from sklearn.pipeline import Pipeline

    from separatrix.cli.families import build_model, parse_settings
    from separatrix.cli.inputs import load_labelled
    from separatrix.cli.outputs import check_seed
    from separatrix.cli.prepare import prepare
    from separatrix.traces import trace as follow

    check_seed(seed)
    estimator: Any = build_model(model, parse_settings(settings), seed)
    rows = load_labelled(data)
    if not rows.chosen and rows.names is not None:
        note(f"no --target given: column {rows.target!r} holds the classes")
    if hasattr(rows.X, "schema") or hasattr(rows.X, "indptr"):
        raise CommandError("trace reads tables of numbers; leave text columns out with --ignore")
    impute = data.missing == "mean"
    steps = prepare(rows.X, rows.names, standardize=standardize, scale=True, impute=impute).steps()
    if steps:
        estimator = Pipeline([*steps, ("model", estimator)])
    names = rows.names or [f"feature {k}" for k in range(rows.features)]
    try:
        return follow(estimator, rows.X, rows.y, method=method), names
    except (TypeError, ValueError) as error:
        raise CommandError(f"{model}: {error}") from None


def _print(found: Trace, most: int, changes: bool, as_json: bool) -> None:
    """Print the first steps and the closing one as they come; none has to be kept."""
    shown, hidden = 0, 0
    width = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120
    if not as_json:
        print(f"{found!r}\n")
        _line({name: name for name in _COLUMNS} | {"pass": _UNITS[found.unit]}, width)
    for step in found:
        if changes and not step.changed and not step.end:
            continue
        if most == 0 or step.end or shown < most:
            if hidden and step.end and not as_json:
                print(f"{'…':>6}  {hidden:,} more steps; --steps 0 shows them all")
            shown += 1
            _show(step, width, as_json)
        else:
            hidden += 1


def _show(step: TraceStep, width: int, as_json: bool) -> None:
    if as_json:
        import json

        content = {
            "step": step.number,
            step.unit: step.iteration,
            "samples": list(step.samples),
            "changed": step.changed,
            "saw": step.why,
            "did": step.what,
            "coef": step.coef,
            "intercept": step.intercept,
            "objective": step.objective,
            "end": step.end,
            **step.facts,
        }
        print(json.dumps(plain(content), ensure_ascii=False, allow_nan=False))
        return
    rows = [f"{row} {name}".strip() for row, name in zip(step.samples, step.names, strict=True)]
    _line(
        {
            "step": "end" if step.end else f"{step.number}",
            "pass": f"{step.iteration}",
            "samples": ", ".join(rows),
            "saw": step.why,
            "did": step.what,
            "objective": "" if step.objective is None else f"{step.objective:.6g}",
        },
        width,
    )


def _line(cells: dict[str, str], width: int) -> None:
    """Print one row of the table; long words go on in the next line of their column."""
    rest = max(40, width - 6 - 5 - 16 - 11 - 10)
    widths = {"step": 6, "pass": 5, "samples": 16, "saw": rest // 2, "did": rest - rest // 2, "objective": 11}
    folded = {name: wrap(text, widths[name]) or [""] for name, text in cells.items()}
    for index in range(max(map(len, folded.values()))):
        parts = []
        for name, lines in folded.items():
            text = lines[index] if index < len(lines) else ""
            right = name in ("step", "pass", "objective")
            parts.append(text.rjust(widths[name]) if right else text.ljust(widths[name]))
        print("  ".join(parts).rstrip())
