"""What samples of a variant come to: rates by block, their spread, ratios of blocks in pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Protocol, TypeVar

from beside.values import Spread
from penstock.bench.chance import is_chance
from penstock.bench.sample import Sample
from penstock.bench.statistics import paired_ratio_interval, summarise


class Tried(Protocol):
    """What is known of who takes part."""

    @property
    def rate(self) -> Spread | None:
        """None where no sample counts."""

    @property
    def lost(self) -> int:
        """How many samples failed that would have counted."""

    @property
    def dropped(self) -> bool:
        """Whether it failed so often in a row that it was not tried again."""


Who = TypeVar("Who", bound=Tried)


Block = tuple[int, str]
"""A block, and where it was taken: a session may go on within one on another machine."""


def by_block(samples: Sequence[Sample]) -> dict[Block, float]:
    """The rates of those that count."""
    rated = ((s, s.rate("application")) for s in samples if s.counts)
    return {(s.block, s.provenance): rate for s, rate in rated if rate}


def phases(samples: Sequence[Sample]) -> dict[str, float]:
    """Median seconds of the slowest rank in each phase; empty where no sample tells them."""
    told = [s.more["phases"] for s in samples if s.counts and s.more.get("phases")]
    return {name: median(one[name] for one in told) for name in told[0]} if told else {}


def spread(values: Sequence[float]) -> Spread | None:
    """None of nothing."""
    if not values:
        return None
    s = summarise(values)
    return Spread(median=s.median, low=s.low, high=s.high, confidence=s.confidence, n=s.n)


def not_by_chance(rated: Sequence[Who]) -> Sequence[Who]:
    """Those but for who failed until no interval was left; all, where nobody else is there.

    One lucky sample of who fails otherwise would be the best, and nothing decided against it.
    """
    return [one for one in rated if not by_chance(one)] or rated


def by_chance(one: Tried) -> bool:
    """Whether failures left it so few samples that chance may have made its rate."""
    rate = one.rate
    return rate is not None and is_chance(rate.confidence, rate.n, one.lost, one.dropped)


def paired(other: Mapping[Block, float], ours: Mapping[Block, float]) -> Spread | None:
    """Ours over other, over the blocks that have both of one place."""
    blocks = sorted(other.keys() & ours.keys())
    if not blocks:
        return None
    r = paired_ratio_interval([other[b] for b in blocks], [ours[b] for b in blocks])
    return Spread(median=r.ratio, low=r.low, high=r.high, confidence=r.confidence, n=len(blocks))


_LIBRARY = re.compile(r"(MPICH|Open MPI) ([\d.]+)$")


def another_library(told: str | None, title: str) -> str:
    """What is wrong where a program ran another MPI library than its title says; else empty."""
    named = _LIBRARY.search(title)
    if named is None or told is None:
        return ""
    name, version = named.groups()
    fits = re.search(rf"{name} v?{re.escape(version)}(\.|$)", told)
    return "" if fits else f"ran {told} and not {name} {version}"


def of_its_library(sample: Sample, title: str) -> Sample:
    """The sample; one that does not count where its program ran another library."""
    why = another_library(sample.result.mpi if sample.result else None, title)
    return sample.model_copy(update={"failed": why}) if why and not sample.failed else sample
