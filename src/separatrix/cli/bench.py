"""``separatrix bench``: the benchmarks of a source checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from separatrix.cli.screen import CommandError


def run(words: list[str]) -> int:
    """Run the benchmarks where their sources are, and return their exit code."""
    import separatrix

    assert separatrix.__file__ is not None
    package = Path(separatrix.__file__).resolve()
    for folder in (Path.cwd(), *package.parents[:4]):
        if (folder / "benchmarks" / "__main__.py").is_file() and (folder / "pyproject.toml").is_file():
            return subprocess.run(
                [sys.executable, "-m", "benchmarks", *words], cwd=folder, check=False
            ).returncode
    raise CommandError(
        "bench runs the benchmarks of a source checkout, and none is here; get one with: git clone, then "
        "make bench"
    )
