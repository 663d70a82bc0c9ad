"""A floor under the speed of each hot loop: instructions executed, which do not depend on a machine's mood.

A child process runs every loop once under valgrind's callgrind, which counts. The counts are compared with
those of ``floor.json``; one that grew by more than 30 % fails.

    python -m benchmarks.floor             compare
    python -m benchmarks.floor --update    keep the new counts, after a change that is meant
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

ALLOWED = 1.3
KEPT = Path(__file__).with_name("floor.json")


def compare(kept: Mapping[str, int], counted: Mapping[str, int]) -> list[str]:
    """What is wrong: loops that execute too many instructions, or that have no kept count."""
    problems = [f"{name}: {count:,} instructions, {count / kept[name]:.2f} times the kept {kept[name]:,}"
                for name, count in counted.items() if name in kept and count > ALLOWED * kept[name]]
    problems += [f"{name}: no count is kept; run python -m benchmarks.floor --update"
                 for name in counted if name not in kept]
    return problems + [f"{name}: kept, but not run any more" for name in kept if name not in counted]


def count() -> dict[str, int]:
    """Instructions of each loop, by name."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "counts")
        command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no",
                   f"--callgrind-out-file={out}", sys.executable, "-m", "benchmarks.floor", "--inside"]
        # One thread, and one BLAS for every machine: what is counted is the loop, not who shares it.
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell"}
        done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"the loops failed under valgrind:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return _read(Path(folder))


def _read(folder: Path) -> dict[str, int]:
    """The total of each dump, by the loop's name in its reason."""
    found = {}
    for path in sorted(folder.iterdir()):
        text = path.read_text()
        name = re.search(r"^desc: Trigger: (.*)$", text, re.M)
        total = re.search(r"^totals: (\d+)", text, re.M)
        if name is not None and total is not None and name[1].startswith("dump "):
            found[name[1].removeprefix("dump ").replace("_", " ")] = int(total[1])
    return found


def _run_inside() -> None:
    """In the child: run each loop twice, the second time counted."""
    from benchmarks.loops import LOOPS

    for name, make in LOOPS.items():
        loop: Callable[[], object] = make()
        loop()
        _control("--instr=on")
        loop()
        _control(f"--dump={name.replace(' ', '_')}")
        _control("--instr=off")


def _control(request: str) -> None:
    subprocess.run(["callgrind_control", request, str(os.getpid())], check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="keep the new counts")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        _run_inside()
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is needed to count instructions: apt install valgrind")
    counted = count()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name, instructions in counted.items():
        known = f"{instructions / kept[name]:6.2f} × kept" if name in kept else "  new"
        print(f"{name:40} {instructions:>14,} {known}")
    if arguments.update:
        KEPT.write_text(json.dumps(counted, indent=1) + "\n")
        return
    problems = compare(kept, counted)
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
