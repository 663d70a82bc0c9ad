"""Whether a target is met, decided so that a second run on the same machine decides the same.

Both sides take turns, repeat by repeat. The ratio is that of the medians; its range goes from the lower
quartile of the peer over the upper quartile of ours to the reverse. The range is widened by a margin, 5 %, or
15 % where a side was measured fewer than three times. A target below the whole range is met, one above it is
not met, and one inside is *too close to call*: neither claimed nor conceded. Two runs would have to differ by
more than the range and twice the margin to contradict each other.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MET, CLOSE, MISSED = "met", "too close to call", "not met"
UNCOMPARABLE, UNMEASURED = "not comparable", "not measured"
ORDER = (MISSED, UNCOMPARABLE, CLOSE, UNMEASURED, MET)
"""In which order verdicts are listed: what is not held comes first."""

MARGIN, MARGIN_OF_FEW = 1.05, 1.15
_ENOUGH = 3


@dataclass(frozen=True)
class Range:
    """A number that was measured, and between which two it would be found again."""

    value: float
    low: float
    high: float


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, upper


def range_of(values: Sequence[float]) -> Range:
    margin = MARGIN if len(values) >= _ENOUGH else MARGIN_OF_FEW
    lower, upper = quartiles(values)
    return Range(statistics.median(values), lower / margin, upper * margin)


def ratio_of(theirs: Sequence[float], ours: Sequence[float]) -> Range:
    """How many times as long as ours the peer takes."""
    margin = MARGIN if min(len(theirs), len(ours)) >= _ENOUGH else MARGIN_OF_FEW
    (lower, upper), (least, most) = quartiles(theirs), quartiles(ours)
    return Range(
        statistics.median(theirs) / statistics.median(ours), lower / most / margin, upper / least * margin
    )


def mean_of(ranges: Sequence[Range]) -> Range:
    """Geometric mean; the deviations of its parts are taken as independent."""

    def mean(values: Sequence[float]) -> float:
        return math.exp(statistics.fmean(math.log(value) for value in values))

    value = mean([each.value for each in ranges])
    below = math.sqrt(sum(math.log(each.value / each.low) ** 2 for each in ranges)) / len(ranges)
    above = math.sqrt(sum(math.log(each.high / each.value) ** 2 for each in ranges)) / len(ranges)
    return Range(value, value / math.exp(below), value * math.exp(above))


def at_least(found: Range, bound: float, stopped: bool = False) -> str:
    """Verdict on a lower bound; a peer that was stopped can only have taken longer."""
    if found.low >= bound:
        return MET
    return MISSED if found.high < bound and not stopped else CLOSE


def at_most(found: Range, bound: float) -> str:
    if found.high <= bound:
        return MET
    return MISSED if found.low > bound else CLOSE
