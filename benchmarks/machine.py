"""The machine and the versions that a result belongs to."""

import os
import platform
import resource
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> dict[str, str]:
    from separatrix import _hot

    found = {
        "cpu": _cpu_name(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "instruction set": _hot.instruction_set(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
    }
    for package in ("separatrix", "scikit-learn", "scikit-learn-intelex", "numpy", "scipy"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def peak_memory() -> float:
    """Most bytes of memory that this process has had so far."""
    status = Path("/proc/self/status")
    if status.exists():  # not ru_maxrss: on Linux a process starts with that of the one that started it
        return 1024.0 * next(int(line.split()[1]) for line in status.read_text().splitlines()
                             if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
