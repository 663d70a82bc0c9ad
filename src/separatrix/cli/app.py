"""The commands and their options; what they do lives in the modules beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli.screen import user_errors

_CODES = (
    "Exit codes: 0 done, 2 bad input (one message on standard error, no file half-written), "
    "130 interrupted before there was a model."
)

app = typer.Typer(
    name="separatrix",
    add_completion=False,
    rich_markup_mode=None,  # plain help keeps the examples' lines as they are, and loads faster
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataFile = Annotated[
    Path, typer.Argument(metavar="DATA.csv", help="Table with a header line.", show_default=False)
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL.sx", help="File that fit wrote.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def _show_version(asked: bool) -> None:
    if asked:
        from separatrix import __version__

        print(f"separatrix {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=_CODES)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Linear and kernel classification: fit models, certify them, predict.

    \b
    Examples:
      separatrix fit flowers.csv --target species --save flowers.sx --plot flowers.png
      separatrix predict flowers.sx new.csv --output species.csv
      separatrix info flowers.sx
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog=_CODES)
def fit(
    data: DataFile,
    target: Annotated[
        str, typer.Option(help="Column to predict; its values are the classes.", show_default=False)
    ],
    model: Annotated[str, typer.Option(help="perceptron or kernel-perceptron.")] = "perceptron",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Parameter of the model; repeatable.", show_default=False
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Column to leave out, such as an identifier; repeatable.", show_default=False
        ),
    ] = None,
    test_size: Annotated[
        float, typer.Option(help="Share of rows held out, the same share of every class; 0 for none.")
    ] = 0.25,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize/--no-standardize", help="Scale features to mean 0 and standard deviation 1."
        ),
    ] = True,
    save: Annotated[
        Path | None, typer.Option(metavar="MODEL.sx", help="Write the fitted model.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE.png", help="Draw classes and boundary (png, svg, pdf).", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the model.")] = 0,
    max_time: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Stop fitting after this time.", show_default=False),
    ] = None,
    json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Fit a model, score it on held-out rows, print its certificate.

    Ctrl-C ends the fit early; the model reached so far is scored and saved.

    \b
    Examples:
      separatrix fit banknote.csv --target class
      separatrix fit banknote.csv --target class --model kernel-perceptron --set gamma=0.5
      separatrix fit banknote.csv --target class --set margin=1.0 --set multiclass=joint \\
          --max-time 60 --save model.sx --plot boundary.png
    """
    with user_errors("interrupted before there was a model"):
        from separatrix.cli.fit import FitRequest, run

        run(
            FitRequest(
                data=data,
                target=target,
                model=model,
                settings=settings or [],
                ignore=ignore or [],
                test_size=test_size,
                standardize=standardize,
                save=save,
                plot=plot,
                seed=seed,
                max_time=max_time,
                json=json,
                quiet=quiet,
            )
        )


@app.command(epilog=_CODES)
def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option(metavar="OUT.csv", help="Write here instead of the screen.", show_default=False),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Add the decision function's values.")] = False,
    json: AsJson = False,
) -> None:
    """Predict the class of every row.

    Columns are found by their names, in any order; others are ignored.

    \b
    Examples:
      separatrix predict model.sx new.csv
      separatrix predict model.sx new.csv --scores --output classes.csv
    """
    with user_errors("interrupted; nothing was written"):
        from separatrix.cli.predict import run

        run(model, data, output=output, scores=scores, as_json=json)


@app.command(epilog=_CODES)
def info(model: ModelFile, json: AsJson = False) -> None:
    """Show what a model file holds.

    \b
    Examples:
      separatrix info model.sx
      separatrix info model.sx --json
    """
    with user_errors("interrupted"):
        from separatrix.cli.info import run

        run(model, as_json=json)
