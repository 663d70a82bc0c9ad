"""The page of documentation, made from the results: nothing on it is written by hand but the rules.

The table in the README beside the documentation is made at the same time.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import growth, judge, picture, readme, report, results
from benchmarks.families import ABOUT, FAMILIES
from benchmarks.verdict import CLOSE, MARGIN, MARGIN_OF_FEW, MET, MISSED, ORDER, UNCOMPARABLE, UNMEASURED

_DOCS = Path("docs")
_HEADINGS = {
    MISSED: "Not met",
    UNCOMPARABLE: "Not comparable",
    CLOSE: "Too close to call",
    UNMEASURED: "Not measured",
    MET: "Met",
}

_RULES = f"""\
## How it is measured

Every claim of speed here can be repeated with `make bench` (small data, below five minutes) or `make bench
BENCH_ARGS="--tier medium --data FOLDER"`; `separatrix bench` does the same for an installed package. The
rules are part of the code:

- Same data, same precision where the peer can, the same mathematical problem, the same cores for every
  library. Each library runs in a process of its own. LIBSVM and LIBLINEAR are measured as scikit-learn
  calls them and through their own modules ("itself"; putting data into their format is not counted).
- Models take turns, repeat by repeat, so that a slow moment of the machine hits all of them; none begins
  before the threads of the last one are at rest (idle workers of a BLAS spin for a while). A ratio is
  that of the median times, the peer's over ours: above 1 separatrix is faster. Where a peer has several
  solvers, its fastest counts. A peer that has clearly taken longer than its target allows is stopped, and
  the ratio is marked with >; its objective is then that of as many iterations as end in that time.
- The objective of each fitted model is computed by one function of no library, in double precision, from
  the coefficients that the library returned. If ours is higher than the peer's by more than 1e-4 of it, the
  row says "not comparable" and does not count. Closed forms and neighbours are compared by their errors.
  Stochastic passes in a different order end at different points: there, ours may be at most 5 % higher
  after the same passes (perceptrons: 2 points of training error), both in the mean of five random orders,
  of more where these differ much.
- Held-out accuracy stands beside every time (at most 10,000 rows that no fit has seen; 1,000 for kernel
  machines), and the growth of the process during the fit. First calls are whole processes, import included.

A verdict must come out the same when the benchmark is run twice. The range of a ratio goes from the lower
quartile of the peer's times over the upper quartile of ours to the reverse, widened by {MARGIN - 1:.0%}
({MARGIN_OF_FEW - 1:.0%} for fewer than three repeats). A target below that whole range is met, one above it
is not met, one inside is too close to call. `python -m benchmarks agree FOLDER FOLDER` compares two runs.
"""


def markdown(found: dict[str, Any], judged: list[dict[str, Any]], pictures: Sequence[str]) -> str:
    """The whole page."""
    parts = [
        "# Benchmarks",
        "<!-- made by `python -m benchmarks page`; changes made here are lost -->",
        _summary(found, judged),
    ]
    if "ratios" in pictures:
        parts.append("![Times as fast as each peer, for each task](figures/benchmarks/ratios.png)")
    parts += [_targets(judged), _RULES.strip(), _machines(found), "## All rows"]
    for family in FAMILIES:
        rows = found["families"].get(family)
        if rows:
            parts.append(f"### {ABOUT[family]}")
            parts.append(_family(family, rows))
            if family == "growth" and "growth" in pictures:
                parts.append("![Time and memory against rows and features](figures/benchmarks/growth.png)")
    return "\n\n".join(parts) + "\n"


def _summary(found: dict[str, Any], judged: list[dict[str, Any]]) -> str:
    counts = Counter(each["verdict"] for each in judged)
    tiers = sorted({row["tier"] for rows in found["families"].values() for row in rows})
    told = ", ".join(f"{counts[name]} {name}" for name in ORDER if counts[name])
    text = (
        "Speed and memory of separatrix beside its peers, measured on "
        f"{found['machine'].get('date', 'no date')} (tier {', '.join(tiers) or 'none'}). "
        f"Of {len(judged)} targets: {told}. What is not met comes first."
    )
    if busy(found["machine"]):
        text += (
            "\n\n**The machine was busy with other work (load "
            f"{found['machine']['load']}, {found['machine']['cores']} cores): do not rely on these numbers.**"
        )
    if len(found["revisions"]) > 1:
        text += f" The rows come from {len(found['revisions'])} revisions of the code."
    return text


def busy(machine: dict[str, str]) -> bool:
    """Whether others wanted the cores when the run began; the family before leaves some load of its own."""
    try:
        return float(machine["load"].split()[0]) > 0.8 * int(machine["cores"])
    except (KeyError, ValueError):
        return False


def _targets(judged: list[dict[str, Any]]) -> str:
    parts = ["## Targets"]
    for name in ORDER:
        chosen = judge.grouped([each for each in judged if each["verdict"] == name])
        if not chosen:
            continue
        parts.append(f"### {_HEADINGS[name]}")
        last = {MISSED: ("why",)}.get(name, ())
        parts.append(
            _table(
                ("target", "case", "peer", "asked", "found", *last),
                (
                    [
                        each["text"],
                        each["case"],
                        each["peer"],
                        each["asked"],
                        each["found"],
                        *(each[key] for key in last),
                    ]
                    for each in chosen
                ),
            )
        )
    return "\n\n".join(parts)


def _machines(found: dict[str, Any]) -> str:
    names = list(dict.fromkeys(key for machine in found["machines"] for key in machine))
    values = {
        name: list(dict.fromkeys(machine.get(name, "–") for machine in found["machines"])) for name in names
    }
    return "## Machine and versions\n\n" + _table(
        ("what", "value"),
        (
            [name, "; ".join(several[:4]) + (" …" if len(several) > 4 else "")]
            for name, several in values.items()
        ),
    )


def _family(family: str, rows: list[dict[str, Any]]) -> str:
    if family == "growth":
        return _table(
            ("model", "grows", "side", "sizes", "seconds", "exponent", "MB", "exponent of memory"),
            (report.growth_cells(curve) for curve in growth.curves(rows)),
        )
    if family == "memory":
        return _table(
            ("data", "model", "input MB", "growth MB", "share", "peer's MB"),
            (report.memory_cells(row) for row in rows),
        )
    rated = any(row["product_share"] is not None for row in rows)
    headings = (
        "data",
        "ours",
        "peer",
        "seconds",
        "peer's",
        "times as fast",
        "range",
        "value",
        "right",
        "MB",
        *(("product rate",) if rated else ()),
        "notes",
    )
    return _table(headings, (report.cells(row, rated) for row in report.sorted_rows(rows)))


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Text that does not end its cell or start a mark of Markdown."""
    return (
        " ".join(text.split())
        .replace("|", "\\|")
        .replace("<", "&lt;")
        .replace("*", "\\*")
        .replace("_", "\\_")
    )


def main(line: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks page", description=__doc__)
    parser.add_argument(
        "--results",
        type=Path,
        nargs="+",
        default=[results.FOLDER],
        help="files or folders, merged: the latest of each part counts (default: %(default)s)",
    )
    parser.add_argument("--docs", type=Path, default=_DOCS, help="folder of the page (default: %(default)s)")
    arguments = parser.parse_args(line)
    found = results.load(arguments.results)
    if not found["families"]:
        raise SystemExit(f"no results in {', '.join(map(str, arguments.results))}; run make bench first")
    judged = judge.judge(found["families"])
    figures = arguments.docs / "figures" / "benchmarks"
    drawn = []
    if picture.draw_ratios(figures / "ratios.png", found["families"], judged, found["machine"]):
        drawn.append("ratios")
    if picture.draw_growth(figures / "growth.png", found["families"].get("growth", [])):
        drawn.append("growth")
    (arguments.docs / "benchmarks.md").write_text(markdown(found, judged, drawn), encoding="utf-8")
    print(f"wrote {arguments.docs / 'benchmarks.md'}")
    beside = arguments.docs.absolute().parent / "README.md"
    if readme.renew(beside, judged):
        print(f"wrote the speeds of {beside}")
    return 0
