"""The verdicts on all pairs of classes, where time was over before all of them had been asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from separatrix.models._pair_separability import Separability

Pair = tuple[Any, Any]


class AskedPairs(Mapping[Pair, Separability]):
    """Every pair of labels, in order; that nothing is known of one is said only when somebody looks.

    A thousand classes have half a million pairs: so many answers would take longer to write than max_time.

    Parameters
    ----------
    names : list
        The labels, in order.
    asked : dict
        What is known.
    unknown : Separability
        The answer to any other pair, but for its classes.
    """

    def __init__(self, names: list[Any], asked: dict[Pair, Separability], unknown: Separability) -> None:
        self.asked = asked
        self._names, self._unknown = names, unknown
        self._place = {name: k for k, name in enumerate(names)}

    def __getitem__(self, pair: Pair) -> Separability:
        if pair in self.asked:
            return self.asked[pair]
        first, second = pair
        if not self._place[first] < self._place[second]:
            raise KeyError(pair)
        return replace(self._unknown, classes=((first,), (second,)))

    def __iter__(self) -> Iterator[Pair]:
        return combinations(self._names, 2)

    def __len__(self) -> int:
        return len(self._names) * (len(self._names) - 1) // 2


def known(pairs: Mapping[Pair, Separability]) -> Mapping[Pair, Separability]:
    """Return the pairs that have been asked about."""
    return pairs.asked if isinstance(pairs, AskedPairs) else pairs
