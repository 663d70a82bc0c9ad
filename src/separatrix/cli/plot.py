"""``separatrix plot``: pictures of a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.cli import evaluate
from separatrix.cli.inputs import DataOptions, model_blocks, noted
from separatrix.cli.outputs import check_picture, write_picture
from separatrix.cli.prepare import final_step, nameless, plan_of
from separatrix.cli.screen import CommandError, print_json
from separatrix.persistence import load

_PLANE = ("boundary", "margin")
KINDS = (*_PLANE, "convergence", *evaluate.KINDS)


@dataclass(frozen=True)
class PlotRequest:
    """What the user asked for."""

    model: Path
    data: DataOptions | None
    output: Path
    kind: str


def run(request: PlotRequest, *, as_json: bool) -> None:
    """Draw one picture and say where it is."""
    _draw(request)
    if as_json:
        print_json({"model": str(request.model), "kind": request.kind, "picture": str(request.output)})
    else:
        print(f"{request.kind} of {request.model} drawn in {request.output}")


def _draw(request: PlotRequest) -> None:
    if request.kind not in KINDS:
        raise CommandError(f"--kind must be one of {', '.join(KINDS)}; got {request.kind!r}")
    inputs = (request.model,) if request.data is None else (request.model, request.data.path)
    check_picture("--output", request.output, *inputs)
    if request.kind == "convergence":
        from separatrix.plot import convergence

        try:
            axes = convergence(load(request.model))
        except ValueError as error:
            raise CommandError(f"--kind convergence: {error}") from None
        write_picture(axes, request.output)
        return
    if request.data is None:
        raise CommandError(
            f"--kind {request.kind} needs rows with their classes: name a data file after the model"
        )
    if request.kind not in _PLANE:
        chosen = evaluate.EvaluateRequest(request.model, request.data, request.output, request.kind, True)
        evaluate.draw(chosen)
        return
    _in_the_plane(load(request.model), request.data, request.output, request.kind)


def _in_the_plane(model: Any, data: DataOptions, output: Path, kind: str) -> None:
    from separatrix import plot
    from separatrix.cli import metrics

    plan = plan_of(model)
    if plan is not None and plan.texts:
        raise CommandError(
            "a boundary is drawn in the plane of two number columns, and this model reads text columns"
        )
    with noted():
        blocks, _ = model_blocks(model, data, labelled=True)
        parts = [(block.X, metrics.match_labels(block.y, model.classes_)) for block in blocks]
    if hasattr(parts[0][0], "indptr"):
        raise CommandError("a boundary of sparse data cannot be drawn; use --kind confusion")
    X, codes = np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    if X.shape[1] < 2:
        raise CommandError("a boundary needs two features or more")
    if (codes < 0).any():
        raise CommandError(
            f"{int((codes < 0).sum()):,} rows have a class that the model does not know; remove them"
        )
    draw = plot.boundary if kind == "boundary" else plot.margin
    with nameless():
        try:
            axes = draw(model, X, model.classes_[codes], names=None if plan is None else list(plan.names))
        except ValueError as error:
            raise CommandError(f"--kind {kind}: {error}") from None
        title = f"{type(final_step(model)).__name__}, {len(X):,} rows of {data.path.name}"
        axes.set_title(title, fontsize="medium")
        write_picture(axes, output)
