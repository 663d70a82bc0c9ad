"""Compare separatrix with its peers, as ratios measured in one run on one machine.

Rows are written to --save after each part, so a run can be stopped at any time and continued with --resume.
`python -m benchmarks page` makes the page of documentation from all results, `python -m benchmarks agree A B`
compares the verdicts of two runs.
"""

import argparse
import os
import sys
import time
from contextlib import closing
from pathlib import Path

from rich.console import Console

from benchmarks import judge, machine, page, peers, report, results
from benchmarks.families import FAMILIES, Item, items
from benchmarks.tiers import TIERS, Plan
from benchmarks.worker import Workers


def arguments_of(line: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help=f"only these (default: all of {', '.join(FAMILIES)})"
    )
    parser.add_argument(
        "--tier",
        choices=TIERS,
        default="small",
        help="small: bundled and generated data, below 5 minutes; medium: the data that targets "
        "name, peers stopped once they are clearly behind; large: peers are waited for "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="folder with data files: those that targets name by name (covtype.npz …), any other "
        "that the library reads as a case of each family",
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="begin nothing new after so long")
    parser.add_argument("--threads", type=int, metavar="N", help="cores for every library (default: all)")
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FOLDER",
        default=results.FOLDER,
        help="where results are kept (default: %(default)s)",
    )
    parser.add_argument("--resume", action="store_true", help="leave out what --save holds already")
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases whose name contains TEXT")
    parser.add_argument(
        "--page", action="store_true", help="afterwards make docs/benchmarks.md and its pictures"
    )
    arguments = parser.parse_args(line)
    unknown = [name for name in arguments.families if name not in FAMILIES]
    if unknown:
        parser.error(f"no family is called {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    if arguments.data is not None and not arguments.data.is_dir():
        parser.error(f"--data: there is no folder {arguments.data}")
    return arguments


def main(line: list[str] | None = None) -> int:
    line = sys.argv[1:] if line is None else line
    if line[:1] == ["page"]:
        return page.main(line[1:])
    if line[:1] == ["agree"]:
        return agree(*(Path(word) for word in line[1:]))
    run(arguments_of(line))
    return 0


def run(arguments: argparse.Namespace) -> None:
    """Measure, keep each part as soon as it is done, and show everything that the folder holds then."""
    if arguments.threads is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    console = Console()
    if not console.is_terminal:
        console = Console(width=190)  # in files and logs, rows of the tables stay whole
    facts = machine.describe()
    report.print_machine(console, facts)
    if page.busy(facts):
        console.print(f"this machine is busy (load {facts['load']}): times will mean little", style="red")
    for name in peers.missing():
        console.print(f"{name} is left out: it is not installed (make bench tries to; or pip install {name})")
    plan = Plan(TIERS[arguments.tier], arguments.data)
    chosen = arguments.families or FAMILIES
    kept = {family: results.Kept(arguments.save, plan.tier.name, family, facts) for family in chosen}
    start, left_out = time.monotonic(), 0
    try:
        with closing(Workers(stay=plan.small)) as workers:
            for item in items(plan, chosen, arguments.only):
                if arguments.resume and kept[item.family].has(item.name):
                    continue
                if arguments.minutes is not None and time.monotonic() - start > 60 * arguments.minutes:
                    left_out += 1
                    continue
                _measure(item, workers, kept[item.family], console)
    except KeyboardInterrupt:
        console.print("stopped; what was measured is kept, --resume goes on from here")
    if left_out:
        console.print(f"{left_out} parts were not begun, the time is over; --resume measures them")
    _show(console, arguments.save, chosen)
    if arguments.page:
        page.main(["--results", str(arguments.save)])


def _measure(item: Item, workers: Workers, kept: results.Kept, console: Console) -> None:
    begin = time.monotonic()
    with console.status(f"{item.family}: {item.name}"):
        try:
            rows = item.run(workers)
        except Exception as problem:  # one broken part must not lose the others; it stays unmeasured
            workers.close()
            console.print(f"{item.family}: {item.name}: failed: {problem}", style="red", highlight=False)
            return
    spent = time.monotonic() - begin
    if rows:
        kept.add(item.name, rows, spent)
    console.print(report.one_line(f"{item.family}: {item.name}", rows, spent), style="dim", highlight=False)


def _show(console: Console, folder: Path, chosen: tuple[str, ...] | list[str]) -> None:
    found = results.load([folder])
    for family, rows in found["families"].items():
        if family in chosen:
            console.print(report.family_table(family, rows))
    judged = judge.judge(found["families"])
    console.print(report.targets_table(judged))
    console.print(f"wrote {results.write_verdicts(folder, found['machine'], judged)}")


def agree(first: Path, second: Path) -> int:
    """Compare the verdicts of two runs; 1 if one says met where the other says not met."""
    before, after = results.read_verdicts(first), results.read_verdicts(second)
    contradictions = 0
    for key in before.keys() & after.keys():
        if before[key] != after[key]:
            opposed = {before[key], after[key]} == {"met", "not met"}
            contradictions += opposed
            print(
                f"{'CONTRADICTION' if opposed else 'differs'}: {' / '.join(key)}: {before[key]}, {after[key]}"
            )
    same = sum(before[key] == after[key] for key in before.keys() & after.keys())
    print(f"{same} of {len(before.keys() & after.keys())} verdicts are the same, {contradictions} contradict")
    return 1 if contradictions else 0
