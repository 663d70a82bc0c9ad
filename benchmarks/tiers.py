"""How much a run measures: the sizes of its data, how often, and how long it waits."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tier:
    """One size of run. Targets are stated for full data: `small` shows the same families, and judges few."""

    name: str
    shrink: int  # one in so many rows of generated data
    most: int | None  # rows of a file at most
    repeats: int
    budget: float  # seconds; a peer's call is stopped after so long, unless a target asks for more
    longest: float  # seconds that a peer may take in any case, and half of what ours may
    patience: float  # seconds that the repeats of one call may take in all


TIERS = {
    tier.name: tier
    for tier in (
        Tier("small", shrink=20, most=2_000, repeats=3, budget=0.8, longest=1.2, patience=0.2),
        Tier("medium", shrink=1, most=100_000, repeats=5, budget=8.0, longest=150.0, patience=2.0),
        Tier("large", shrink=1, most=None, repeats=7, budget=120.0, longest=600.0, patience=30.0),
    )
}


@dataclass(frozen=True)
class Plan:
    """A tier, and the folder with data files, if there is one."""

    tier: Tier
    folder: Path | None = None

    @property
    def small(self) -> bool:
        return self.tier.name == "small"

    @property
    def large(self) -> bool:
        return self.tier.name == "large"
