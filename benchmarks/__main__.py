"""Compare separatrix with its peers, as ratios measured in one run on one machine."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import machine, memory, report, startup
from benchmarks.cases import FAMILIES, PEER, Case
from benchmarks.timing import seconds_per_pass


def run_case(case: Case, repeats: int) -> list[dict[str, Any]]:
    """Measured rows of one case, the peer first; none where its data are not there."""
    data = case.data()
    if data is None:
        return []
    times = seconds_per_pass(case.models, data.X, data.y, case.passes, repeats)
    peer = times[PEER]

    def ratio(theirs: float, ours: float) -> float | None:
        """Times as fast, or None where passes were too short for the clock or not made at all."""
        return theirs / ours if theirs > 0 and ours > 0 else None

    size = f"{data.X.shape[0]:,} × {data.X.shape[1]:,}"
    return [{"case": case.name, "size": size, "about": data.about, "model": label, "is_peer": label == PEER,
             "ratio": ratio(peer.seconds, time.seconds),
             "cpu_ratio": ratio(peer.cpu_seconds, time.cpu_seconds),
             "fit_ratio": ratio(peer.fit_seconds, time.fit_seconds),
             "target": None if label == PEER else case.target, **asdict(time)}
            for label, time in times.items()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    suites = (*FAMILIES, "import", "memory")
    parser.add_argument("suite", nargs="?", choices=suites, help="only this one (default: all)")
    parser.add_argument("--data", type=Path, help="folder with covtype.npz, a9a.npz, sector.npz")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer repeats")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write benchmarks.json and .png there")
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases whose name contains TEXT")
    arguments = parser.parse_args()
    chosen = suites if arguments.suite is None else (arguments.suite,)

    console = Console()
    if not console.is_terminal:
        console = Console(width=130)  # in files and logs, rows of the tables stay whole
    found: dict[str, Any] = {"machine": machine.describe(), "families": {}}
    report.print_machine(console, found["machine"])
    for name, cases in FAMILIES.items():
        if name not in chosen:
            continue
        rows: list[dict[str, Any]] = []
        for case in cases(arguments.data, arguments.quick):
            if arguments.only not in case.name:
                continue
            with console.status(case.name):
                measured = run_case(case, repeats=3 if arguments.quick else 5)
            if not measured:
                console.print(f"{case.name}: left out, its data are not in --data", style="dim")
            rows += measured
        found["families"][name] = rows
        console.print(report.passes_table(rows, f"{name}: one pass"))
    if "import" in chosen:
        found["import"] = startup.measure(arguments.quick)
        console.print(report.startup_table(found["import"]))
    if "memory" in chosen:
        found["memory"] = memory.measure(arguments.quick)
        console.print(report.memory_table(found["memory"]))
    if arguments.save is not None:
        for path in report.save(arguments.save, found):
            console.print(f"wrote {path}")


if __name__ == "__main__":
    main()
