"""Where results go: checks before any work is done, and pictures written all or nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from separatrix.cli.screen import CommandError
from separatrix.persistence import check_writable

PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg")


def check_output(option: str, path: Path | None, *inputs: Path) -> None:
    """Refuse a path that cannot be written, or that would overwrite an input."""
    if path is None:
        return
    try:
        check_writable(path)
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror}") from None
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise CommandError(f"{option} {path}: would overwrite an input file; choose another path")


def check_picture(option: str, path: Path | None, *inputs: Path) -> None:
    """Refuse a picture that cannot be drawn."""
    if path is None:
        return
    check_output(option, path, *inputs)
    if path.suffix.lower() not in PICTURES:
        raise CommandError(f"{option} {path}: the name must end in one of {', '.join(PICTURES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise CommandError(f"{option} needs matplotlib; install it with: pip install 'separatrix[plot]'")


def check_seed(seed: int) -> None:
    """Refuse a seed that no generator takes."""
    if not 0 <= seed < 2**32:
        raise CommandError(f"--seed must be between 0 and 4294967295; got {seed}")


def write_picture(axes: Any, path: Path) -> None:
    """Write the figure of some Axes to a file."""
    from separatrix.persistence import atomic_write

    with atomic_write(path) as temporary:
        axes.figure.savefig(temporary, dpi=150, bbox_inches="tight")
