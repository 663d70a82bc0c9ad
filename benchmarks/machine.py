"""The machine and the versions that a result belongs to."""

import os
import platform
import resource
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import peers


def describe() -> dict[str, str]:
    from separatrix import _hot

    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {
        "cpu": _cpu_name(),
        "cores": str(os.cpu_count()),
        "threads": f"{threads}, the same for every library",
        "cache": _cache(),
        "memory": _memory(),
        "instruction set": _hot.instruction_set(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "load": f"{os.getloadavg()[0]:.1f} before the run",
        "blas": _blas(),
        "revision": _revision(),
    }
    for package in ("separatrix", "numpy", "scipy", "pyarrow"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return {**found, **peers.versions()}


def peak_memory() -> float:
    """Most bytes of memory that this process has had so far."""
    status = Path("/proc/self/status")
    if status.exists():  # not ru_maxrss: on Linux a process starts with that of the one that started it
        return 1024.0 * next(
            int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM:")
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def forget_peak_memory() -> bool:
    """Let the peak start anew from what is in use now; False where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cache() -> str:
    """Sizes of the levels of the first core's data cache."""
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with suppress(OSError):
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
            if kind != "Instruction":
                found.append(f"L{level} {size}")
    return ", ".join(found) or "unknown"


def _memory() -> str:
    with suppress(OSError, ValueError, AttributeError):
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 1e9:.0f} GB"
    return "unknown"


def _blas() -> str:
    import numpy as np  # noqa: F401  (loads the library that is asked for)
    from threadpoolctl import threadpool_info

    found = {
        f"{each['internal_api']} {each['version']} ({each.get('architecture', '?')})"
        for each in threadpool_info()
        if each["user_api"] == "blas"
    }
    return ", ".join(sorted(found)) or "unknown"


def _revision() -> str:
    """Return the commit, with a mark where the code differs: the results that a run writes do not count."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, check=True, capture_output=True, text=True
        ).stdout.strip()

    with suppress(OSError, subprocess.CalledProcessError):
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude)results")
        return git("describe", "--always") + ("-dirty" if changed else "")
    return "unknown"
