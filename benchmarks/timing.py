"""Fresh processes and their seconds."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence


def process_seconds(commands: Mapping[str, Sequence[str]], repeats: int) -> dict[str, list[float]]:
    """Wall-clock seconds of fresh processes that take turns; one run of each before does not count."""
    seconds: dict[str, list[float]] = {label: [] for label in commands}
    for repeat in range(repeats + 1):
        for label, command in commands.items():
            start = time.perf_counter()
            run(command)
            if repeat > 0:  # the first run fills the file cache and writes byte code
                seconds[label].append(time.perf_counter() - start)
    return seconds


def run(command: Sequence[str]) -> str:
    """Output of a process; its error text, should it fail."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)[:200]} failed:\n{done.stderr}")
    return done.stdout


def run_python(arguments: Sequence[str]) -> str:
    return run([sys.executable, "-W", "ignore", *arguments])
