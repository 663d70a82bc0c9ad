"""What commands share towards the user: errors, tables, notes and JSON."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class CommandError(Exception):
    """Ends a command with one message and an exit code."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def user_errors(interrupted: str, code: int = 2) -> Iterator[None]:
    """Turn errors that a user can correct into `CommandError`; other errors are bugs and pass through.

    `code` is what the program ends with then: 2, or 1 where it stands in for LIBSVM's and LIBLINEAR's.
    """
    try:
        yield
    except CommandError as error:
        raise CommandError(str(error), code if error.code == 2 else error.code) from None
    except KeyboardInterrupt:
        raise CommandError(interrupted, code=130) from None
    except BrokenPipeError:
        # The reader of a pipe (such as `head`) has seen enough. Python would complain again when it flushes
        # standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise CommandError(_os_message(error), code) from None
    except ValueError as error:
        from separatrix.data.files import DataFileError
        from separatrix.persistence import ModelFileError

        if isinstance(error, DataFileError | ModelFileError):
            raise CommandError(str(error), code) from None
        raise


def _os_message(error: OSError) -> str:
    if error.strerror:
        place = error.filename or "output"  # a file that is written to has no name in the error
        return f"{place}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def note(text: str) -> None:
    """Print a remark where it does not mix with results."""
    print(f"separatrix: note: {text}", file=sys.stderr)


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns; a value of several lines stays in its column."""
    width = max(len(name) for name, _ in pairs) + 2
    for name, value in pairs:
        for number, line in enumerate(value.splitlines() or [""]):
            print(f"{name if number == 0 else '':<{width}}{line}")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, drawn by rich on a terminal, plain and aligned in a pipe; the first column is text."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        drawn = Table()
        for position, column in enumerate(columns):
            drawn.add_column(column, justify="left" if position == 0 else "right")
        for row in rows:
            drawn.add_row(*(Text(cell) for cell in row))
        Console().print(drawn)
        return
    widths = [max(len(line[position]) for line in (columns, *rows)) for position in range(len(columns))]
    for line in (columns, *rows):
        cells = [
            cell.ljust(width) if position == 0 else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def class_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print how each class fared."""
    shares = ("precision", "recall", "f1")
    table(
        ("class", "rows", "predicted", "correct", *shares),
        [
            (
                str(row["class"]),
                *(f"{row[name]:,}" for name in ("rows", "predicted", "correct")),
                *("-" if row[name] is None else f"{row[name]:.4f}" for name in shares),
            )
            for row in rows
        ],
    )


@contextlib.contextmanager
def progress(total: int, show: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that says what is done now, one step further each time; a bar if somebody looks."""
    if not show or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        done = -1

        def step(text: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, completed=done, description=text)

        yield step


def plain(value: Any) -> Any:
    """Return `value` in JSON's types: NumPy numbers as numbers, infinities as text, other objects as text."""
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON document."""
    print(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False))


def counted(number: int, thing: str) -> str:
    """Return a number of things for people."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def megabytes(size: int) -> str:
    """Return a file size for people."""
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= divisor:
            return f"{size / divisor:.3g} {unit}"
    return f"{size} bytes"


def available_memory() -> int | None:
    """Return how many bytes programs can still have, where the system tells (Linux)."""
    with contextlib.suppress(OSError, StopIteration), open("/proc/meminfo", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    return None
