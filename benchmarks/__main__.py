"""Compare separatrix with its peers, as ratios measured in one run on one machine."""

import argparse
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import cases, contest, growth, machine, memory, perceptron, report, startup
from benchmarks.families import FAMILIES, PROMISES
from benchmarks.worker import Workers

SUITES = (*FAMILIES, "perceptron", "import", "memory", "growth")


def arguments_of(line: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suite", nargs="?", choices=SUITES, help="only this one (default: all)")
    parser.add_argument("--data", type=Path, metavar="FOLDER",
                        help="folder with covtype, fashion_mnist, a9a, sector, newsgroups20_bow (.npz)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer repeats")
    parser.add_argument("--budget", type=float, default=120.0, metavar="SECONDS",
                        help="stop a fit after so long; one that takes more than half of it is run once "
                        "(default: %(default)g)")
    parser.add_argument("--save", type=Path, metavar="PATH",
                        help="write results as JSON and a picture: a file name in .json, or a folder")
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases whose name contains TEXT")
    return parser.parse_args(line)


def main(line: list[str] | None = None) -> None:
    arguments = arguments_of(line)
    chosen = SUITES if arguments.suite is None else (arguments.suite,)
    repeats = 3 if arguments.quick else 5
    console = Console()
    if not console.is_terminal:
        console = Console(width=170)  # in files and logs, rows of the tables stay whole
    found: dict[str, Any] = {"machine": machine.describe(), "families": {}, "summary": {}}
    report.print_machine(console, found["machine"])
    if not cases.has_intelex():
        console.print("scikit-learn-intelex is left out: it is not installed (make bench tries to)")

    def rows_of(table: Any, run: Any) -> list[dict[str, Any]]:
        """Rows of all chosen cases of a table; each case is told when it is done."""
        rows: list[dict[str, Any]] = []
        for case in table(arguments.data, arguments.quick):
            if arguments.only not in case.name:
                continue
            with console.status(case.name):
                measured = run(case)
            console.print(report.one_line(case.name, measured), style="dim", highlight=False)
            rows += measured
        return rows

    for suite in chosen:
        if suite in FAMILIES:
            with closing(Workers()) as workers:
                run = partial(contest.run_case, workers=workers, repeats=repeats, budget=arguments.budget)
                rows = rows_of(FAMILIES[suite], run)
            found["families"][suite] = report.sorted_rows(rows)
            console.print(report.contest_table(found["families"][suite], suite))
        elif suite == "perceptron":
            found["families"][suite] = rows_of(perceptron.perceptron_cases,
                                               partial(perceptron.run_case, repeats=repeats))
            console.print(report.passes_table(found["families"][suite], "perceptron: one pass"))
        elif suite == "import":
            found[suite] = report.sorted_rows(startup.measure(arguments.quick, arguments.only))
            console.print(report.startup_table(found[suite]))
        elif suite == "growth":
            found[suite] = growth.measure(arguments.quick, arguments.only, arguments.budget)
            console.print(report.growth_table(found[suite]))
        else:
            found[suite] = report.sorted_rows(memory.measure(arguments.quick, arguments.only))
            console.print(report.memory_table(found[suite]))
        if suite in PROMISES:
            found["summary"][suite] = report.summary(found["families"][suite], *PROMISES[suite])
            for text in found["summary"][suite]:
                console.print(text)
    if arguments.save is not None:
        for path in report.save(arguments.save, found):
            console.print(f"wrote {path}")


if __name__ == "__main__":
    main()
