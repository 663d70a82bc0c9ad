"""What ``separatrix --help`` says, without the option parser, which takes longer to load than to read."""

from __future__ import annotations

import textwrap

#: The commands and what they do; the parser and the overview read the same lines.
COMMANDS = {
    "fit": "Fit a model, score it on held-out rows, print its certificate.",
    "predict": "Predict the class of every row.",
    "evaluate": "Judge a saved model on rows whose classes are known.",
    "compare": "Cross-validate every family of models on the same folds.",
    "tune": "Find good values of a model's main parameters by cross-validation.",
    "plot": "Draw a saved model: boundary, margin, convergence, confusion matrix, curves.",
    "trace": "Show every step of a fit: what it saw, and what it did.",
    "separability": "Tell whether a hyperplane separates the classes, with a proof.",
    "info": "Show what a model file holds.",
    "convert": "Convert a model between .sx, LIBSVM's and LIBLINEAR's files, and to ONNX.",
    "svm-train": "Train a kernel machine as LIBSVM's svm-train does, with its flags and its model file.",
    "svm-predict": "Predict as LIBSVM's svm-predict does, from its model files.",
    "svm-scale": "Scale features to a range as LIBSVM's svm-scale does, and print the data.",
    "liblinear-train": "Train a linear model as LIBLINEAR's train does, with its flags and its model file.",
    "liblinear-predict": "Predict as LIBLINEAR's predict does, from its model files.",
    "bench": "Measure speed against the peers.",
}

CODES = (
    "Exit codes: 0 done, 2 bad input (one message on standard error, no file half-written), "
    "130 interrupted before there was a result."
)

_TEXT = """\
Usage: separatrix [OPTIONS] COMMAND [ARGS]...

  Linear and kernel classification: fit models, certify them, predict.

  Data come from CSV, TSV, LIBSVM text, Parquet, Arrow, JSON lines, NPY or NPZ files, text also compressed
  (gzip, zstd, bz2), or from standard input (-). Text columns and missing values are handled as part of the
  saved model.

  Examples:
    separatrix fit flowers.csv --target species --save flowers.sx --plot flowers.png
    separatrix predict flowers.sx new.csv --output species.csv
    separatrix evaluate flowers.sx labelled.csv
    separatrix compare flowers.csv --target species
    separatrix tune flowers.csv --model logistic --save best.sx

Commands:
{commands}

Options:
  --version             Print the version.
  --install-completion  Install completion of commands and options for the current shell.
  --show-completion     Print it, to copy or adapt.
  -h, --help            Show this text; 'separatrix COMMAND --help' shows that of a command.

  {codes}
"""


def overview() -> str:
    """Return the text of ``separatrix --help``."""
    width = max(len(name) for name in available()) + 2
    lines = [f"  {name:<{width}}{text}" for name, text in available().items()]
    codes = textwrap.fill(CODES, 108, subsequent_indent="  ")
    return _TEXT.format(commands="\n".join(lines), codes=codes)


def available() -> dict[str, str]:
    """Return the commands that this version has: separability needs the function of that name."""
    import separatrix

    return {
        name: text for name, text in COMMANDS.items() if name != "separability" or name in separatrix.__all__
    }
