"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_DATA_PANEL = "data"

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Table or matrix: see 'separatrix --help'; - is standard input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL.sx", help="File that fit wrote.", show_default=False)
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column with the classes; by default one called target, class, label or y, else the last.",
        show_default=False,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Column to leave out, such as an identifier; repeatable.", show_default=False
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Column of categories, although it holds numbers; repeatable.",
        show_default=False,
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="refuse|drop|mean",
        help=(
            "Rows with missing values: refuse, leave out, or fill in the column's mean (texts: a category ?)."
        ),
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="csv, svmlight, jsonl, parquet, arrow, npy or npz, where content and name mislead.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="Separator of a text table; found by default.", show_default=False
    ),
]
Quote = Annotated[
    str,
    typer.Option(metavar="CHARACTER|none", help="Quotation mark of a text table; none: marks are text."),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first line is data; columns are called 1, 2, ….")
]
IndexBase = Annotated[
    int | None,
    typer.Option(metavar="0|1", help="First index in LIBSVM text; found by default.", show_default=False),
]
Standardize = Annotated[
    bool | None,
    typer.Option(
        "--standardize/--no-standardize",
        help="Scale numbers to mean 0 and standard deviation 1; by default where the model needs it.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Parameter of the model; repeatable.", show_default=False
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of splits and of the model.")]
MaxTime = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Stop every fit after this time.", show_default=False),
]
TimeOfEach = Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop every fit after this time.")]
Folds = Annotated[int, typer.Option(help="Number of folds.")]
By = Annotated[str, typer.Option(metavar="CRITERION", help="accuracy, balanced-accuracy or log-loss.")]
Save = Annotated[
    Path | None, typer.Option(metavar="MODEL.sx", help="Write the fitted model.", show_default=False)
]
SaveBest = Annotated[
    Path | None,
    typer.Option(metavar="MODEL.sx", help="Fit the best on all rows and write it.", show_default=False),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="PICTURE", help="Draw a picture (png, svg, pdf).", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
