"""``separatrix convert``: model files of one kind into another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from separatrix.cli.options import AsJson
from separatrix.cli.screen import CommandError, print_json, user_errors

_WRITABLE = ".sx, .onnx or, for LIBSVM and LIBLINEAR, .model"


def register(app: typer.Typer, **settings: Any) -> None:
    """Add the command to the program; `settings` go to ``app.command``."""
    app.command("convert", **settings)(convert)


def convert(
    source: Annotated[Path, typer.Argument(metavar="MODEL", help="File to read.", show_default=False)],
    target: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help=f"File to write: {_WRITABLE}.", show_default=False)
    ],
    features: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Number of features, which a LIBSVM model does not say; by default its largest index.",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Convert a model between .sx, LIBSVM's and LIBLINEAR's files, and to ONNX.

    What is read is told by its content, what is written by the name: .sx, .onnx, or .model, which is LIBSVM's
    format for kernel machines and LIBLINEAR's for linear models.

    \b
    Examples:
      separatrix convert heart_scale.model heart.sx --features 13
      separatrix convert heart.sx heart.model
      separatrix convert model.sx model.onnx
    """
    with user_errors("interrupted"):
        run(source, target, features, as_json=json)


def run(source: Path, target: Path, features: int | None, *, as_json: bool) -> None:
    """Read one file and write the other."""
    from separatrix.cli.outputs import check_output
    from separatrix.persistence import interchange as other
    from separatrix.persistence import save

    if target.suffix not in (".sx", ".onnx", ".model"):
        raise CommandError(f"{target}: the name must end in {_WRITABLE}")
    check_output("OUTPUT", target)
    model = _read(source, features)
    if target.suffix == ".sx":
        save(model, target)
    elif target.suffix == ".onnx":
        try:
            other.export_onnx(model, target)
        except ImportError as error:
            raise CommandError(str(error)) from None
    elif hasattr(_last(model), "support_vectors_"):
        other.export_libsvm(model, target)
    else:
        other.export_liblinear(model, target)
    name = type(_last(model)).__name__
    if as_json:
        print_json({"model": name, "read": str(source), "written": str(target)})
    else:
        print(f"{name} from {source} written to {target}")


def _last(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _read(path: Path, features: int | None) -> Any:
    from separatrix.persistence import interchange as other
    from separatrix.persistence import load

    if not path.is_file():
        raise CommandError(f"{path}: no such file; check the path")
    with open(path, "rb") as file:
        begin = file.read(16)
    if path.suffix == ".onnx":
        raise CommandError(
            f"{path}: ONNX files can be written, not read; convert the model they were made from"
        )
    if begin.startswith(b"solver_type"):
        return other.import_liblinear(path)
    if begin.startswith(b"svm_type") or path.suffix == ".model":
        return other.import_libsvm(path, features)
    if features is not None:
        raise CommandError("--features is for LIBSVM model files only: leave it out")
    return load(path)
