"""What disturbed a session: found in its samples and in readings of the machine, and named.

A reading is taken right before and right after each sample. Counters are since boot: what one
sample or one pause saw is the difference of two readings.
"""

from __future__ import annotations

import math
import os
import re
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from penstock.bench.sample import RateKind, Reading, Sample
from penstock.bench.statistics import (
    MARGIN,
    Floats,
    Ratio,
    paired_ratio_interval,
    summarise,
)

_PROC = Path("/proc")

# A quiet session meets each of the checks below by chance in at most 1 of 100 (docs/statistics.md).
_CONFIDENCE = 0.99
_Z = 2.58  # of a normal distribution, two-sided
_LEAST_CANARIES = 8  # fewer pairs have no interval of 99 %
_LEAST_IN_ORDER = 20  # samples of a session, for drift and neighbours
_LEAST_FOR_MODES = 10
_BUSY = 0.1  # of the CPUs, by others, between samples
_STOLEN = 0.02
_STALLED = 0.02
_MEMORY_MOVES = 0.1

Name = Literal[
    "canary-disagrees",
    "drift",
    "neighbours-alike",
    "two-modes",
    "outliers",
    "cpu-busy",
    "cpu-steal",
    "memory-pressure",
    "memory-moves",
    "unsettled",
]


class Finding(BaseModel):
    """A disturbance: what it is called, where, the evidence, and what to do about it.

    ``cell`` and ``variant`` are None where the whole session is meant.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: Name
    evidence: str
    remedy: str
    cell: str | None = None
    variant: str | None = None


class MachineReading(Reading):
    """One that this process takes."""

    @classmethod
    def read(cls, proc: Path = _PROC) -> Self:
        """Read the machine now; a fraction of a millisecond, and nothing is changed."""
        total_s, busy_s, steal_s = _cpu_times(proc)
        memory = _memory(proc)
        io_stall_s, io_pressure = _pressure(proc, "io")
        return cls(
            at_s=time.time(),
            cpu_total_s=total_s,
            cpu_busy_s=busy_s,
            cpu_steal_s=steal_s,
            own_cpu_s=_own_cpu_s(),
            dirty_bytes=memory["Dirty"],
            writeback_bytes=memory["Writeback"],
            memory_available_bytes=memory["MemAvailable"],
            io_stall_s=io_stall_s,
            memory_stall_s=_pressure(proc, "memory")[0],
            io_pressure=io_pressure,
        )


def _cpu_times(proc: Path) -> tuple[float, float, float]:
    """Seconds since boot: all, busy, stolen. Guests' time is within user time (proc_stat(5))."""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    words = (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, idle, iowait, irq, softirq, steal = (int(w) / ticks_per_s for w in words)
    busy = user + nice + system + irq + softirq
    return busy + idle + iowait + steal, busy, steal


def _own_cpu_s() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in usages)


def _memory(proc: Path) -> dict[str, int]:
    lines = re.findall(r"^(\w+):\s+(\d+) kB$", (proc / "meminfo").read_text(), re.MULTILINE)
    return {name: int(kib) * 1024 for name, kib in lines}


def _pressure(proc: Path, what: str) -> tuple[float | None, float | None]:
    """Seconds of stall since boot, and percent of the last 10 s."""
    try:
        text = (proc / "pressure" / what).read_text()
    except OSError:  # not compiled in, or switched off: opening or reading fails
        return None, None
    found = re.search(r"^some avg10=([\d.]+) .*total=(\d+)", text, re.MULTILINE)
    return (int(found[2]) / 1e6, float(found[1])) if found else (None, None)


@dataclass(frozen=True)
class _Taken:
    """A sample that has a rate, and the logarithm of that over its variant's median."""

    sample: Sample
    rate: float
    residual: float


def find(
    samples: Sequence[Sample], rate: RateKind = "application", left_out: Sequence[Sample] = ()
) -> list[Finding]:
    """Name what disturbed a session; nothing is corrected or left out because of it.

    Parameters
    ----------
    samples : sequence of Sample
        All samples of the session, warm-ups and canaries too.
    rate : {"application", "actual"}
        Which rate to look at.
    left_out : sequence of Sample, optional
        Others of the session, which are not looked at: the machine was not idle while they ran.
    """
    in_order = sorted(samples, key=_began_s)
    taken = _taken(in_order, rate)
    return [
        *_canary(in_order, rate),
        *_drift(taken),
        *_neighbours(taken),
        *_per_variant(taken),
        *_cpus(in_order, left_out),
        *_memory_pressure(in_order),
        *_memory_moves(in_order),
        *_unsettled(in_order),
    ]


def _began_s(sample: Sample) -> float:
    """Unix time. The text is of local time, which goes back an hour once a year.

    What is no time comes first, in the order of the file.
    """
    try:
        return datetime.fromisoformat(sample.started).timestamp()
    except (ValueError, OverflowError):
        return -math.inf


def by_variant(samples: Iterable[Sample]) -> dict[tuple[str, str], list[Sample]]:
    """The samples that count of each (cell, variant)."""
    found: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        if sample.counts:
            found.setdefault((sample.cell, sample.variant), []).append(sample)
    return found


def _taken(samples: Sequence[Sample], rate: RateKind) -> list[_Taken]:
    found = []
    for own in by_variant(samples).values():
        rated = [(s, r) for s in own if (r := s.rate(rate)) is not None and r > 0.0]
        if rated:
            median = float(np.median([r for _, r in rated]))
            found += [_Taken(s, r, math.log(r) - math.log(median)) for s, r in rated]
    return sorted(found, key=lambda t: _began_s(t.sample))


def canary_ratio(samples: Iterable[Sample], rate: RateKind = "application") -> tuple[Ratio, int]:
    """Each canary's rate over that of its twin in the same block, and how many pairs there are.

    Both did the same, so the ratio is 1 but for noise. Where a session went on within a block, on
    another machine or with another version, is no pair.
    """
    pairs: dict[tuple[str, str, int, str], dict[bool, float]] = {}
    for s in samples:
        r = s.rate(rate)
        if r is not None and r > 0.0 and not s.warm_up:
            pairs.setdefault((s.cell, s.variant, s.block, s.provenance), {})[s.canary] = r
    both = [p for p in pairs.values() if len(p) == 2]
    if not both:
        return Ratio(1.0, 0.0, math.inf, 0.0), 0
    twins, canaries = [p[False] for p in both], [p[True] for p in both]
    return paired_ratio_interval(twins, canaries, confidence=_CONFIDENCE), len(both)


def _canary(samples: Sequence[Sample], rate: RateKind) -> Iterator[Finding]:
    ratio, n = canary_ratio(samples, rate)
    if n >= _LEAST_CANARIES and not ratio.low <= 1.0 <= ratio.high:
        yield Finding(
            name="canary-disagrees",
            evidence=f"the same thing measured twice in a block differs by "
            f"{ratio.ratio:.3f} [{ratio.low:.3f}-{ratio.high:.3f}] in {n} blocks",
            remedy="trust no difference of this size; find what differs between a first and a "
            "second run (caches, leftover files, clocks), and measure again",
        )


def _drift(taken: Sequence[_Taken]) -> Iterator[Finding]:
    if len(taken) < _LEAST_IN_ORDER:
        return
    from scipy import stats  # a second to import: only when used

    y = np.asarray([t.residual for t in taken])
    if np.ptp(y) == 0.0:
        return
    third = y.size // 3
    moved = float(np.exp(np.median(y[-third:]) - np.median(y[:third])))
    p = float(stats.spearmanr(np.arange(y.size), y).pvalue)
    if p < 1.0 - _CONFIDENCE and abs(math.log(moved)) > math.log1p(MARGIN):
        yield Finding(
            name="drift",
            evidence=f"the last third of the samples ran at {100 * moved:.0f} % of the rate of the "
            f"first third (Spearman p = {p:.1g}, n = {y.size})",
            remedy="comparisons within this session stay fair, for its variants are interleaved; "
            "do not compare its rates with another session's. A disk that fills or a machine "
            "that warms up does this: measure again later, or longer",
        )


def _neighbours(taken: Sequence[_Taken]) -> Iterator[Finding]:
    """Lag-1 autocorrelation of ranks, after a line through them is taken off."""
    n = len(taken)
    if n < _LEAST_IN_ORDER or len({t.residual for t in taken}) < n / 2:
        return
    ranks = np.argsort(np.argsort([t.residual for t in taken])).astype(np.float64)
    x = np.arange(n)
    rest = ranks - np.polyval(np.polyfit(x, ranks, 1), x)
    r = float(np.corrcoef(rest[:-1], rest[1:])[0, 1])
    if r > 0.2 and r * math.sqrt(n - 1) > _Z:
        yield Finding(
            name="neighbours-alike",
            evidence=f"a sample resembles the one before it (correlation {r:.2f}, n = {n})",
            remedy="what disturbs lasts longer than a sample, so that the intervals are too "
            "narrow: measure more blocks over a longer time, on a quieter machine",
        )


def _per_variant(taken: Sequence[_Taken]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[float]] = {}
    for t in taken:
        groups.setdefault((t.sample.cell, t.sample.variant), []).append(t.rate)
    for (cell, variant), rates in groups.items():
        if modes := two_modes(np.asarray(rates)):
            yield _modes_found(cell, variant, modes)
        if outliers := summarise(rates).outliers:
            yield Finding(
                name="outliers",
                cell=cell,
                variant=variant,
                evidence=f"{len(outliers)} of {len(rates)} samples are further than 14.8 MAD from "
                f"the median, the furthest {_furthest(rates):.2f} times as fast",
                remedy="they are kept; the median and the trimmed mean bear them. Look at the "
                "samples for what happened then",
            )


def _furthest(rates: Sequence[float]) -> float:
    median = float(np.median(rates))
    return max(rates, key=lambda r: abs(math.log(r) - math.log(median))) / median


@dataclass(frozen=True)
class Modes:
    """Two groups of samples with little between them: how many, and their mean rates."""

    slow_n: int
    slow: float
    fast_n: int
    fast: float


def two_modes(rates: Floats) -> Modes | None:
    """The two modes of samples, if they have two.

    The logarithms are cut where that explains most of their variance, a fifth of the samples or 3
    on each side at least. Two modes are said when it explains more than 0.85 + 1/n of it: of one
    mode, be it exponential, it does so in less than 1 of 100.
    """
    n = rates.size
    if n < _LEAST_FOR_MODES or np.ptp(rates) == 0.0:
        return None
    logs = np.sort(np.log(rates))
    left = np.arange(1, n)
    sums = np.cumsum(logs)
    low, high = sums[:-1] / left, (sums[-1] - sums[:-1]) / (n - left)
    between = left * (n - left) / n * (high - low) ** 2
    between[np.minimum(left, n - left) < max(3.0, 0.2 * n)] = 0.0
    cut = int(between.argmax())
    explained = float(between[cut] / ((logs - logs.mean()) ** 2).sum())
    if explained < 0.85 + 1.0 / n or high[cut] - low[cut] < math.log1p(MARGIN):
        return None
    return Modes(cut + 1, math.exp(low[cut]), n - cut - 1, math.exp(high[cut]))


def _modes_found(cell: str, variant: str, modes: Modes) -> Finding:
    mib = 2.0**20
    return Finding(
        name="two-modes",
        cell=cell,
        variant=variant,
        evidence=f"{modes.slow_n} samples near {modes.slow / mib:.0f} MiB/s and {modes.fast_n} "
        f"near {modes.fast / mib:.0f} MiB/s, few between",
        remedy="the median is one of them or between: two things were measured. Fix what switches "
        "(memory regime, placement of ranks, a cache of the device) and measure each",
    )


def _readings(sample: Sample) -> tuple[MachineReading, MachineReading] | None:
    if sample.machine_before is None or sample.machine_after is None:
        return None
    return (
        MachineReading.model_validate(sample.machine_before),
        MachineReading.model_validate(sample.machine_after),
    )


def _pauses(
    samples: Sequence[Sample], left_out: Sequence[Sample]
) -> Iterator[tuple[MachineReading, MachineReading]]:
    """What one process read at the beginning and the end of each pause between its samples.

    Another process of a resumed session, a machine that was started anew and another node count
    from other beginnings: their differences say nothing. Nor do those of two samples between which
    one ran that is left out.
    """
    told = [(s, _readings(s)) for s in samples] + [(s, None) for s in left_out]
    told.sort(key=lambda one: _began_s(one[0]))
    for (one, first), (other, second) in pairwise(told):
        if first is None or second is None or one.provenance != other.provenance:
            continue
        a, b = first[1], second[0]
        if b.own_cpu_s >= a.own_cpu_s and b.cpu_total_s >= a.cpu_total_s:
            yield a, b


def _cpus(samples: Sequence[Sample], left_out: Sequence[Sample]) -> Iterator[Finding]:
    pauses = list(_pauses(samples, left_out))
    total = sum(b.cpu_total_s - a.cpu_total_s for a, b in pauses)
    busy = sum((b.cpu_busy_s - a.cpu_busy_s) - (b.own_cpu_s - a.own_cpu_s) for a, b in pauses)
    if total > 1.0 and busy / total > _BUSY:
        yield Finding(
            name="cpu-busy",
            evidence=f"between samples others kept {100 * busy / total:.0f} % of the CPU time busy",
            remedy="stop what else runs on this machine, or measure in an allocation of your own",
        )
    readings = [r for s in samples if (r := _readings(s)) is not None]
    ran = sum(b.cpu_total_s - a.cpu_total_s for a, b in readings)
    stolen = sum(b.cpu_steal_s - a.cpu_steal_s for a, b in readings)
    if ran > 0.0 and stolen / ran > _STOLEN:
        yield Finding(
            name="cpu-steal",
            evidence=f"the hypervisor gave {100 * stolen / ran:.1f} % of the samples' CPU time to "
            "other machines",
            remedy="measure on a machine that is not shared, or take more samples",
        )


def _memory_pressure(samples: Sequence[Sample]) -> Iterator[Finding]:
    stalled = [
        (after.memory_stall_s or 0.0) - (before.memory_stall_s or 0.0)
        for before, after in filter(None, map(_readings, samples))
    ]
    wall_s = sum(s.wall_s for s in samples)
    short = [s for s in stalled if s > 0.0]
    if wall_s > 0.0 and sum(short) / wall_s > _STALLED:
        yield Finding(
            name="memory-pressure",
            evidence=f"in {len(short)} of {len(stalled)} samples a task waited for memory, "
            f"{sum(short):.1f} s of {wall_s:.1f} s",
            remedy="give the job more memory, or measure fewer bytes: reclaim is measured too",
        )


def _memory_moves(samples: Sequence[Sample]) -> Iterator[Finding]:
    """On the machine where it moved most: another machine has other memory."""
    available: dict[str, list[int]] = {}
    for s in samples:
        if s.machine_before is not None:
            before = MachineReading.model_validate(s.machine_before)
            available.setdefault(s.provenance, []).append(before.memory_available_bytes)
    most = max(available.values(), key=_moved, default=[])
    if most and _moved(most) > _MEMORY_MOVES:
        gib = 2.0**30
        yield Finding(
            name="memory-moves",
            evidence=f"available memory was between {min(most) / gib:.1f} and "
            f"{max(most) / gib:.1f} GiB, and with it what the page cache takes before it throttles",
            remedy="stop what else takes memory; rates that end before a sync are not comparable",
        )


def _moved(sizes: Sequence[int]) -> float:
    """From the least to the most, as a part of the median."""
    return (max(sizes) - min(sizes)) / max(float(np.median(sizes)), 1.0)


def _unsettled(samples: Sequence[Sample]) -> Iterator[Finding]:
    exceeded = [s for s in samples if s.settled is not None and s.settled.exceeded]
    if exceeded:
        most = max(s.settled.dirty_bytes for s in exceeded if s.settled is not None)
        yield Finding(
            name="unsettled",
            evidence=f"before {len(exceeded)} of {len(samples)} samples others' data were still "
            f"being written, up to {most / 2**20:.0f} MiB",
            remedy="something else writes on this machine: stop it, or measure in its pauses",
        )
