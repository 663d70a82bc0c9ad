"""The commands and their options; what they do lives in the modules beside this one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from separatrix.cli import convert, liblinear, libsvm
from separatrix.cli import options as o
from separatrix.cli.families import families
from separatrix.cli.overview import CODES, available, overview
from separatrix.cli.screen import user_errors
from separatrix.cli.trace import register as register_trace

if TYPE_CHECKING:
    from separatrix.cli.inputs import DataOptions

Function = TypeVar("Function", bound=Callable[..., Any])

app = typer.Typer(
    name="separatrix",
    rich_markup_mode=None,  # plain help keeps the examples' lines as they are, and loads faster
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from separatrix import __version__

        print(f"separatrix {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=CODES)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Linear and kernel classification: fit models, certify them, predict."""
    if context.invoked_subcommand is None:
        print(overview(), end="")


def _command(name: str) -> Callable[[Function], Function]:
    """Register a command if this version has what it needs."""

    def register(function: Function) -> Function:
        return app.command(name, epilog=CODES)(function) if name in available() else function

    return register


def _data(
    path: Path,
    target: str | None = None,
    ignore: list[str] | None = None,
    categorical: list[str] | None = None,
    missing: str = "refuse",
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    quote: str = '"',
    no_header: bool = False,
    index_base: int | None = None,
) -> DataOptions:
    from separatrix.cli.inputs import DataOptions

    left, texts = tuple(ignore or ()), tuple(categorical or ())
    return DataOptions(
        path, target, left, texts, missing, format, delimiter, quote, not no_header, index_base
    )


@_command("fit")
def fit(
    data: o.DataFile,
    target: o.Target = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help=f"Family of the model: {', '.join(families())}.")
    ] = "logistic",
    settings: o.Settings = None,
    ignore: o.Ignore = None,
    categorical: o.Categorical = None,
    missing: o.Missing = "refuse",
    test_size: Annotated[
        float, typer.Option(help="Share of rows held out, the same share of every class; 0 for none.")
    ] = 0.25,
    standardize: o.Standardize = None,
    save: o.Save = None,
    plot: o.Plot = None,
    seed: o.Seed = 0,
    max_time: o.MaxTime = None,
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    index_base: o.IndexBase = None,
    json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit a model, score it on held-out rows, print its certificate.

    Text columns are one-hot encoded and numbers standardised as part of the saved model. Ctrl-C ends the fit
    early; the model reached so far is scored and saved.

    \b
    Examples:
      separatrix fit banknote.csv --target class --save model.sx
      separatrix fit adult.csv --target income --missing drop --model ridge --save income.sx
      separatrix fit banknote.csv --target class --model svc --set gamma=0.5 \\
          --max-time 60 --save svc.sx --plot boundary.png
    """
    with user_errors("interrupted before there was a model"):
        from separatrix.cli.fit import FitRequest, run

        chosen = _data(
            data, target, ignore, categorical, missing, format, delimiter, quote, no_header, index_base
        )
        run(
            FitRequest(
                chosen, model, settings or [], test_size, standardize, save, plot, seed, max_time, json, quiet
            )
        )


@_command("predict")
def predict(
    model: o.ModelFile,
    data: o.DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write here instead of the screen: .csv, .tsv, .jsonl or .parquet.",
            show_default=False,
        ),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Add the decision function's values.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add the probability of every class.")
    ] = False,
    missing: o.Missing = "refuse",
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    index_base: o.IndexBase = None,
    json: o.AsJson = False,
) -> None:
    """Predict the class of every row.

    Columns are found by their names, in any order; others are ignored. Rows are read, predicted and written
    block by block, so that a file may be larger than the memory. With --missing drop, rows with missing
    values are left out, and a first column tells the number of each row in the data.

    \b
    Examples:
      separatrix predict model.sx new.csv
      separatrix predict model.sx new.parquet --probabilities --output classes.parquet
      zcat new.csv.gz | separatrix predict model.sx - --scores
    """
    with user_errors("interrupted; nothing was written"):
        from separatrix.cli.predict import PredictRequest, run

        chosen = _data(data, None, None, None, missing, format, delimiter, quote, no_header, index_base)
        run(PredictRequest(model, chosen, output, scores, probabilities, json))


@_command("evaluate")
def evaluate(
    model: o.ModelFile,
    data: o.DataFile,
    target: o.Target = None,
    missing: o.Missing = "refuse",
    plot: o.Plot = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Picture: roc, precision-recall, calibration or confusion; auto: roc for two classes.",
        ),
    ] = "auto",
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    index_base: o.IndexBase = None,
    json: o.AsJson = False,
) -> None:
    """Judge a saved model on rows whose classes are known.

    Prints accuracy, balanced accuracy, log-loss (if the model gives probabilities), precision and recall of
    every class and the confusion matrix.

    \b
    Examples:
      separatrix evaluate model.sx test.csv
      separatrix evaluate income.sx people.csv --target income --missing drop --plot roc.png
    """
    with user_errors("interrupted"):
        from separatrix.cli.evaluate import EvaluateRequest, run

        chosen = _data(data, target, None, None, missing, format, delimiter, quote, no_header, index_base)
        run(EvaluateRequest(model, chosen, plot, kind, json))


@_command("compare")
def compare(
    data: o.DataFile,
    target: o.Target = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this family; repeatable. Default: all.", show_default=False),
    ] = None,
    folds: o.Folds = 5,
    by: o.By = "accuracy",
    ignore: o.Ignore = None,
    categorical: o.Categorical = None,
    missing: o.Missing = "refuse",
    standardize: o.Standardize = None,
    save: o.SaveBest = None,
    plot: o.Plot = None,
    seed: o.Seed = 0,
    max_time: o.TimeOfEach = 2.0,
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    index_base: o.IndexBase = None,
    json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Cross-validate every family of models on the same folds.

    One table: mean and standard deviation over the folds, and the time of a fit.

    \b
    Examples:
      separatrix compare banknote.csv --target class
      separatrix compare adult.csv --missing mean --by log-loss --save best.sx --plot families.png
      separatrix compare banknote.csv --model logistic --model lda --folds 10
    """
    with user_errors("interrupted before there was a result"):
        from separatrix.cli.compare import CompareRequest, run

        chosen = _data(
            data, target, ignore, categorical, missing, format, delimiter, quote, no_header, index_base
        )
        run(
            CompareRequest(
                chosen, model or [], folds, by, standardize, save, plot, seed, max_time, json, quiet
            )
        )


@_command("tune")
def tune(
    data: o.DataFile,
    target: o.Target = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="Family of the model, as in fit.")] = "logistic",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help=(
                "Values to try: C=0.1,1,10 or C=0.001..1000; repeatable. Default: the model's main "
                "parameters."
            ),
            show_default=False,
        ),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Try N choices at random instead of all: between the ends on a log scale.",
            show_default=False,
        ),
    ] = None,
    settings: o.Settings = None,
    folds: o.Folds = 5,
    by: o.By = "accuracy",
    ignore: o.Ignore = None,
    categorical: o.Categorical = None,
    missing: o.Missing = "refuse",
    standardize: o.Standardize = None,
    save: o.SaveBest = None,
    plot: o.Plot = None,
    seed: o.Seed = 0,
    max_time: o.TimeOfEach = 2.0,
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    index_base: o.IndexBase = None,
    json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Find good values of a model's main parameters by cross-validation.

    Tries every combination of a grid, or some at random, on the same folds.

    \b
    Examples:
      separatrix tune banknote.csv --target class
      separatrix tune banknote.csv --model svc --grid gamma=0.01..10 --plot gamma.png
      separatrix tune adult.csv --missing drop --model sgd --random 20 --save best.sx
    """
    with user_errors("interrupted before there was a result"):
        from separatrix.cli.tune import TuneRequest, run

        chosen = _data(
            data, target, ignore, categorical, missing, format, delimiter, quote, no_header, index_base
        )
        run(
            TuneRequest(
                chosen,
                model,
                settings or [],
                grid or [],
                random,
                folds,
                by,
                standardize,
                save,
                plot,
                seed,
                max_time,
                json,
                quiet,
            )
        )


@_command("plot")
def plot(
    model: o.ModelFile,
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Rows with their classes.", show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PICTURE", help="Where to draw (png, svg, pdf).")
    ] = Path("model.png"),
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="boundary, margin, convergence, confusion, roc, precision-recall or calibration.",
        ),
    ] = "boundary",
    target: o.Target = None,
    missing: o.Missing = "refuse",
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    index_base: o.IndexBase = None,
    json: o.AsJson = False,
) -> None:
    """Draw a saved model: boundary, margin, convergence, confusion matrix, curves.

    Convergence needs the model only; the other kinds need rows with their classes.

    \b
    Examples:
      separatrix plot model.sx banknote.csv --output boundary.png
      separatrix plot model.sx --kind convergence --output convergence.svg
      separatrix plot model.sx test.csv --kind roc --output roc.pdf
    """
    with user_errors("interrupted"):
        from separatrix.cli.plot import PlotRequest, run

        chosen = None
        if data is not None:
            chosen = _data(data, target, None, None, missing, format, delimiter, quote, no_header, index_base)
        run(PlotRequest(model, chosen, output, kind), as_json=json)


register_trace(app, epilog=CODES)


@_command("separability")
def separability(
    data: o.DataFile,
    target: o.Target = None,
    ignore: o.Ignore = None,
    categorical: o.Categorical = None,
    missing: o.Missing = "refuse",
    max_time: o.MaxTime = None,
    format: o.Format = None,  # noqa: A002
    delimiter: o.Delimiter = None,
    quote: o.Quote = '"',
    no_header: o.NoHeader = False,
    index_base: o.IndexBase = None,
    json: o.AsJson = False,
) -> None:
    """Tell whether a hyperplane separates the classes, with a proof.

    Text columns are one-hot encoded first.

    \b
    Examples:
      separatrix separability banknote.csv --target class
      separatrix separability banknote.csv --json
    """
    with user_errors("interrupted"):
        from separatrix.cli.separability import run

        chosen = _data(
            data, target, ignore, categorical, missing, format, delimiter, quote, no_header, index_base
        )
        run(chosen, max_time=max_time, as_json=json)


@_command("info")
def info(model: o.ModelFile, json: o.AsJson = False) -> None:
    """Show what a model file holds.

    Class, steps, parameters, columns, classes, sizes, certificate and versions.

    \b
    Examples:
      separatrix info model.sx
      separatrix info model.sx --json
    """
    with user_errors("interrupted"):
        from separatrix.cli.info import run

        run(model, as_json=json)


for _part in (convert, libsvm, liblinear):
    _part.register(app, epilog=CODES)


@_command("bench")
def bench(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ARGUMENTS]...", help="For the benchmarks; put -- before options.", show_default=False
        ),
    ] = None,
) -> None:
    """Measure speed against the peers.

    Ratios in one run at an equal objective, to scikit-learn, scikit-learn-intelex, LIBSVM, LIBLINEAR, skglm
    and faiss. The peers are installed into an environment of their own when first needed (--here: this
    environment is used as it is). Small data take some minutes; separatrix bench -- --help tells the rest.

    \b
    Examples:
      separatrix bench
      separatrix bench -- --tier medium --data folder
      separatrix bench -- --here logistic svm
    """
    with user_errors("interrupted"):
        from separatrix.cli.bench import run

        raise typer.Exit(run(words or []))
