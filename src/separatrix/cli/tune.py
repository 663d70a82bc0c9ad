"""``separatrix tune``: the main parameters of one model, by cross-validation on a grid or at random."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.cli.families import build_model, family_of, parse_settings, parse_value
from separatrix.cli.inputs import DataOptions, Labelled, load_labelled
from separatrix.cli.outputs import check_output, check_picture, check_seed, write_picture
from separatrix.cli.prepare import fit_steps, prepare
from separatrix.cli.screen import CommandError, facts, note, print_json, progress, table
from separatrix.cli.validation import (
    Outcome,
    Prepared,
    criterion,
    cross_validate,
    make_folds,
    merged,
    plus_minus,
    seconds_text,
)

_SHOWN = 12
_MOST = 10_000


@dataclass(frozen=True)
class TuneRequest:
    """What the user asked for."""

    data: DataOptions
    model: str
    settings: list[str]
    grid: list[str]
    random: int | None
    folds: int
    by: str
    standardize: bool | None
    save: Path | None
    plot: Path | None
    seed: int
    max_time: float | None
    json: bool
    quiet: bool


@dataclass(frozen=True)
class Trial:
    """One choice of parameters and what it was worth."""

    settings: dict[str, Any]
    outcome: Outcome


def run(request: TuneRequest) -> None:
    """Try every choice on the same folds, print the best, save it."""
    check_seed(request.seed)
    check_output("--save", request.save, request.data.path)
    check_picture("--plot", request.plot, request.data.path)
    key, more = criterion(request.by)
    family = family_of(request.model)
    fixed = parse_settings(request.settings)
    grid = parse_grid(request.grid) or {
        name: values for name, values in family.grid.items() if name not in fixed
    }
    if not grid:
        raise CommandError(f"{request.model} has no parameters to try; name some: --grid C=0.1,1,10")
    choices = list(draw(grid, request.random, request.seed))
    estimators = [
        build_model(request.model, fixed | choice, request.seed, request.max_time, "--grid or --set")
        for choice in choices
    ]
    data = load_labelled(request.data, quiet=request.quiet)
    prepared = Prepared(data, make_folds(data, request.folds, request.seed, request.data.path))
    preparation = prepare(
        data.X,
        data.names,
        standardize=request.standardize,
        scale=family.scale,
        impute=request.data.missing == "mean",
    )
    trials: list[Trial] = []
    with progress(len(choices), not (request.json or request.quiet)) as step:
        for choice, estimator in zip(choices, estimators, strict=True):
            step(_text(choice))
            trials.append(Trial(choice, cross_validate(prepared, preparation, estimator)))
    ranked = sorted(trials, key=lambda trial: trial.outcome.place(key, more))
    best = ranked[0]
    if best.outcome.mean(key) is None:
        reason = best.outcome.error or f"the model gives no probabilities, which {request.by} needs"
        raise CommandError(
            f"{request.model}: no choice of parameters could be judged by {request.by}: {reason}"
        )
    if request.save is not None:
        from separatrix.persistence import save

        estimator = build_model(request.model, fixed | best.settings, request.seed, request.max_time)
        save(fit_steps(preparation.steps(), estimator, data.X, data.y, data.names), request.save)
    if request.plot is not None:
        from separatrix.plot._tune import search

        results = [(trial.settings, trial.outcome.mean(key)) for trial in trials]
        title = f"{request.model} on {request.data.path.name}, {request.folds} folds"
        write_picture(
            search(results, list(grid), label=request.by, title=title, best_high=more), request.plot
        )
    if request.json:
        print_json(_report(request, data, ranked))
    elif not request.quiet:
        _print(request, data, ranked, key, list(grid))


def parse_grid(words: list[str]) -> dict[str, tuple[Any, ...]]:
    """Read ``C=0.1,1,10`` and ``C=0.01..100`` (a range by powers of ten) into values to try.

    Examples
    --------
    >>> parse_grid(["C=0.1..10", "loss=hinge,log_loss"])
    {'C': (0.1, 1.0, 10.0), 'loss': ('hinge', 'log_loss')}
    """
    grid: dict[str, tuple[Any, ...]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name.strip() or not values.strip():
            raise CommandError(f"--grid {word!r} is not of the form name=value,value,… or name=low..high")
        low, dots, high = values.partition("..")
        if dots:
            grid[name.strip()] = _decades(word, parse_value(low), parse_value(high))
        else:
            grid[name.strip()] = tuple(parse_value(value) for value in values.split(","))
    return grid


def _decades(word: str, low: Any, high: Any) -> tuple[float, ...]:
    numbers = all(isinstance(value, int | float) and 0 < value < math.inf for value in (low, high))
    if not numbers or not low < high:
        raise CommandError(f"--grid {word!r}: a range goes from a positive number to a larger one")
    count = round(math.log10(high / low)) + 1
    return tuple(float(f"{value:.6g}") for value in np.geomspace(low, high, max(2, count)))


def draw(grid: Mapping[str, tuple[Any, ...]], count: int | None, seed: int) -> list[dict[str, Any]]:
    """Return all combinations, or some at random: numbers between the ends on a log scale, others by lot."""
    if count is None:
        total = math.prod(len(values) for values in grid.values())
        if total > _MOST:
            raise CommandError(f"the grid has {total:,} combinations; use --random 100, or fewer values")
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if not 1 <= count <= _MOST:
        raise CommandError(f"--random must be between 1 and {_MOST:,}; got {count}")
    random = np.random.default_rng(seed)
    return [{name: _one(values, random) for name, values in grid.items()} for _ in range(count)]


def _one(values: tuple[Any, ...], random: np.random.Generator) -> Any:
    floats = all(type(value) is float and 0 < value < math.inf for value in values)
    if floats and len(values) > 1:
        low, high = math.log(min(values)), math.log(max(values))
        return float(f"{math.exp(random.uniform(low, high)):.4g}")
    return values[int(random.integers(len(values)))]


def _text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _report(request: TuneRequest, data: Labelled, ranked: list[Trial]) -> dict[str, Any]:
    return {
        "data": str(request.data.path),
        "target": data.target,
        "rows": len(data.y),
        "model": request.model,
        "folds": request.folds,
        "seed": request.seed,
        "by": request.by,
        "best": ranked[0].settings,
        "trials": [{"settings": trial.settings, **trial.outcome.as_dict()} for trial in ranked],
        "saved": None if request.save is None else str(request.save),
        "picture": None if request.plot is None else str(request.plot),
    }


def _print(request: TuneRequest, data: Labelled, ranked: list[Trial], key: str, names: list[str]) -> None:
    facts(
        [
            ("data", data.sentence(request.data.path, len(data.y), len(np.unique(data.y)))),
            (
                "tried",
                f"{len(ranked)} choices of {', '.join(names)} for {request.model}, {request.folds} folds "
                "each",
            ),
        ]
    )
    print()
    rows: list[tuple[str, ...]] = []
    for trial in ranked[:_SHOWN]:
        settings = [str(trial.settings[name]) for name in names]
        if trial.outcome.error:
            rows.append((*settings, "failed", ""))
            continue
        time = seconds_text(float(np.mean(trial.outcome.seconds)))
        rows.append((*settings, plus_minus(trial.outcome, key), time))
    table((*names, request.by, "time of a fit"), rows)
    if len(ranked) > _SHOWN:
        print(f"… and {len(ranked) - _SHOWN} more (--json has all)")
    failures = [f"failed: {trial.outcome.error}" for trial in ranked if trial.outcome.error]
    for text in merged([*failures, *(text for trial in ranked for text in trial.outcome.notes)]):
        note(text)
    print()
    best = ranked[0].settings
    sets = " ".join(f"--set {name}={value}" for name, value in best.items())
    fit = f"separatrix fit {request.data.words()} --model {request.model} {sets} --save …"
    saved = ("saved", f"{request.save}, fitted on all rows") if request.save else ("keep it", fit)
    lines = [("best", f"{_text(best)} by {request.by}"), saved]
    edges = _at_edge(ranked, names)
    if edges and request.random is None:
        lines.append(
            ("hint", f"the best {' and '.join(edges)} is at the edge of what was tried: widen --grid")
        )
    if request.plot:
        lines.append(("picture", str(request.plot)))
    facts(lines)


def _at_edge(ranked: list[Trial], names: list[str]) -> list[str]:
    """Return the number parameters whose best value is the smallest or largest that was tried."""
    edges = []
    for name in names:
        values = sorted({t.settings[name] for t in ranked if type(t.settings[name]) in (int, float)})
        if len(values) > 2 and ranked[0].settings[name] in (values[0], values[-1]):
            edges.append(name)
    return edges
