"""A floor under the speed of each hot loop: instructions executed, which do not depend on a machine's mood.

Child processes run every loop once under valgrind's callgrind, which counts the instructions of the compiled
core and of BLAS; those of Python do not count. The counts are compared with those of ``floor.json``; one that
grew by more than 20 % fails.

    python -m benchmarks.floor             compare
    python -m benchmarks.floor --update    keep the new counts, after a change that is meant
"""

import argparse
import ctypes
import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ALLOWED = 1.2  # a loop is most of its count, not all: 30 % more of it must show
KEPT = Path(__file__).with_name("floor.json")
INSTRUCTION_SET = "v3"
"""What every machine of the last ten years has, and valgrind knows; counts of another would be others."""

_COUNTED = ("_hot", "openblas")  # objects by part of their name
_PROCESSES = 2  # loading the library takes longer than most loops


def compare(kept: Mapping[str, int], counted: Mapping[str, int]) -> list[str]:
    """What is wrong: loops that execute too many instructions, or that have no kept count."""
    problems = [
        f"{name}: {count:,} instructions, {count / kept[name]:.2f} times the kept {kept[name]:,}"
        for name, count in counted.items()
        if name in kept and count > ALLOWED * kept[name]
    ]
    problems += [
        f"{name}: no count is kept; run python -m benchmarks.floor --update"
        for name in counted
        if name not in kept
    ]
    return problems + [f"{name}: kept, but not run any more" for name in kept if name not in counted]


def obstacle() -> str | None:
    """Why the kept counts mean nothing on this machine, if they do not."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return f"the kept counts are those of x86-64, this is {platform.machine()}"
    from separatrix import _hot

    if INSTRUCTION_SET not in _hot.instruction_sets():
        return f"the kept counts are those of x86-64-{INSTRUCTION_SET} (AVX2), which this processor lacks"
    return None


def count(names: list[str]) -> dict[str, int]:
    """Instructions of each loop, by name; every process runs a part of them."""
    # One thread, one BLAS and one order of hashes: what is counted is the loop, not who shares it.
    fixed = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Haswell",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for part in range(min(_PROCESSES, len(names))):
            command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
            command += ["--dump-line=no", f"--callgrind-out-file={Path(folder, str(part))}"]
            command += [sys.executable]
            command += ["-m", "benchmarks.floor", "--inside", *names[part::_PROCESSES]]
            running.append(
                subprocess.Popen(
                    command,
                    env={**os.environ, **fixed},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        for process in running:
            said = process.communicate()[0]
            if process.returncode != 0:
                raise SystemExit(f"the loops failed under valgrind:\n{said[-3000:]}")
        return read_dumps(Path(folder))


def read_dumps(folder: Path) -> dict[str, int]:
    """Instructions in the counted objects for each dump that a loop has asked for."""
    found = {}
    for path in folder.iterdir():
        text = path.read_text()
        name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
        if name is not None:
            found[name[1].strip()] = _own_instructions(text)
    return found


def _own_instructions(text: str) -> int:
    """Sum of the lines of cost that belong to counted objects; those of calls repeat what the callee has."""
    objects: dict[str, bool] = {}
    total, counts, of_call = 0, False, False
    for line in text.splitlines():
        if line.startswith("ob="):
            number, _, path = line[3:].partition(" ")
            if path:  # the first time a name is given with its number, later the number alone
                objects[number] = any(part in Path(path).name for part in _COUNTED)
            counts = objects[number]
        elif line.startswith("cob=") and " " in line:
            number, _, path = line[4:].partition(" ")
            objects[number] = any(part in Path(path).name for part in _COUNTED)
        elif line.startswith("calls="):
            of_call = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if counts and not of_call:
                total += int(line.split()[1])
            of_call = False
    return total


def _run_inside(names: list[str]) -> None:
    """In the child: run each loop twice, the second time counted.

    All first runs come before: to start counting costs seconds, since valgrind then translates all code anew.
    """
    from benchmarks.loops import LOOPS, on_one_thread
    from separatrix import _hot

    _hot.use_instruction_set(INSTRUCTION_SET)
    made = {name: LOOPS[name]() for name in names}
    for loop in made.values():
        on_one_thread(loop)
    valgrind = _Valgrind()
    valgrind.start()
    for name, loop in made.items():
        valgrind.forget()
        on_one_thread(loop)
        valgrind.dump(name)


class _Valgrind:
    """Requests to the valgrind that this process runs in: the instructions that its headers document."""

    # rax: the request; rolling rdi by 128 bits in all and exchanging rbx with itself mean nothing elsewhere.
    _CODE = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
    _TOOL = (ord("C") << 24) | (ord("T") << 16)

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._page.write(self._CODE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._ask = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))(address)

    def _request(self, code: int, argument: int = 0) -> None:
        self._ask((ctypes.c_uint64 * 6)(self._TOOL + code, argument, 0, 0, 0, 0))

    def dump(self, name: str) -> None:
        text = ctypes.create_string_buffer(name.encode())
        self._request(3, ctypes.addressof(text))

    def start(self) -> None:
        self._request(4)

    def forget(self) -> None:
        """Let the counts of all threads begin at zero."""
        self._request(1)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.floor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--update", action="store_true", help="keep the new counts")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        _run_inside(arguments.inside)
        return
    missing = None if shutil.which("valgrind") else "valgrind counts instructions: apt install valgrind"
    hindrance = missing or obstacle()
    if hindrance is not None:
        print(f"the speed floor is left out: {hindrance}")
        return
    from benchmarks.loops import LOOPS

    counted = count(list(LOOPS))
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in LOOPS:
        known = f"{counted[name] / kept[name]:6.2f} × kept" if name in kept else "  new"
        print(f"{name:30} {counted[name]:>14,} {known}")
    if arguments.update:
        KEPT.write_text(json.dumps({name: counted[name] for name in LOOPS}, indent=1) + "\n")
        return
    problems = compare(kept, counted)
    if problems:
        raise SystemExit("\n".join(problems))
    print(f"no loop takes more than {ALLOWED:g} times the instructions that are kept")


if __name__ == "__main__":
    main()
