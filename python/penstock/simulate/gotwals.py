"""The experiment of gotwals-1995's figures 3 and 4: rates against the size of an output.

Each size is played three times: with a buffer that is all in memory (the second model), and with
virtual memory by either paging algorithm (the third).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from penstock import _core
from penstock._core import Times
from penstock.errors import ArgumentError
from penstock.simulate.output import MAX_BLOCKS, Mapping, Paging, System, simulate, timeline

SCHEMA_VERSION = 1
RATIOS = (0.2, 0.6, 1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0)
# Figure 4: the actual rate at five times the memory, as a part of the raw disk's.
PAPER_AT = 5.0
PAPER: dict[Paging, float] = {"demand": 0.60, "early": 0.85}

Over = Literal["block", "paging-disk", "nodes"]
BLOCKS_IN_MEMORY = (3, 4, 5, 6, 8, 16, 64, 256, 1024)
PAGING_RATIOS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
NODES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Pair:
    """Rates as parts of the raw rate of the output disks."""

    application: float
    actual: float


@dataclass(frozen=True)
class Point:
    """One size: ``ratio`` times the memory of all I/O nodes."""

    ratio: float
    n_bytes: int
    without: Pair
    demand: Pair
    early: Pair
    paged_out_bytes: int
    """Under demand paging."""


@dataclass(frozen=True)
class Step:
    """One value of what a sweep varies, at one size."""

    value: str
    demand: Pair
    early: Pair


def curves(system: System, ratios: Sequence[float] = RATIOS) -> list[Point]:
    """Play every size, ``ratios`` times the memory.

    Raises
    ------
    ArgumentError
        If a ratio is not positive, an output is too large to play, or a parameter of the system
        is out of its range.
    """
    # The largest first: it takes as long as all others, or is refused at once.
    played = {ratio: _point(system, ratio) for ratio in sorted(ratios, reverse=True)}
    return [played[ratio] for ratio in ratios]


def sweep(system: System, ratio: float, over: Over) -> list[Step]:
    """Vary one thing at one size: the block, the paging disk's rate, or the number of I/O nodes.

    Steps that are too large to play are left out. The last step of the first is the limit of small
    blocks, by the closed form.
    """
    played = [step for step in systems(system, over) if fits(step[1], ratio)]
    steps = [_step(value, varied, ratio) for value, varied in played]
    if over == "block" and has_limit(system):
        steps.append(Step("limit", limit(system, ratio, "demand"), limit(system, ratio, "early")))
    return steps


def systems(system: System, over: Over) -> list[tuple[str, System]]:
    """What a sweep plays: the value of what it varies, and the system that has it."""
    if over == "block":
        return _of_blocks(system)
    if over == "paging-disk":
        return [(f"{r:g}", replace(system, paging_ratio=r)) for r in PAGING_RATIOS]
    mappings: tuple[Mapping, ...] = ("cyclic", "blocked")
    return [
        (f"{n} {mapping}", replace(system, nodes=n, mapping=mapping))
        for n in NODES
        for mapping in mappings[: 1 if n == 1 else 2]
    ]


def bytes_of(system: System, ratio: float) -> int:
    """The bytes of an output of ``ratio`` times the memory.

    Raises
    ------
    ArgumentError
        If the ratio is not positive, or the output is too large for 64 bits.
    """
    if not 0 < ratio < float("inf"):
        raise ArgumentError(f"a size must be a positive multiple of the memory, got {ratio}")
    if ratio * system.all_memory_bytes >= 2**63:
        memory = _core.human_size(system.memory_bytes)
        raise ArgumentError(
            f"a size must fit into 64 bits, got {ratio:g} times the memory, {memory} on each of "
            f"{system.nodes} I/O nodes: give smaller sizes or less memory"
        )
    return max(1, round(ratio * system.all_memory_bytes))


def fits(system: System, ratio: float) -> bool:
    """Whether an output of ``ratio`` times the memory has no more blocks than can be played."""
    return bytes_of(system, ratio) <= MAX_BLOCKS * system.block


def has_limit(system: System) -> bool:
    """There is a closed form: one I/O node, in the order of memory, whose buffer may page."""
    may_page = system.buffer_bytes is None or system.buffer_bytes >= system.memory
    return system.nodes == 1 and system.order == "memory" and may_page


def limit(system: System, ratio: float, paging: Paging) -> Pair:
    """The closed form of the third model, to which smaller blocks tend; for one I/O node."""
    n = bytes_of(system, ratio)
    times = _core.paged_times(
        n,
        network_bytes_per_s=system.network_ratio * system.disk_bytes_per_s,
        disk_bytes_per_s=system.disk_bytes_per_s,
        memory_bytes=system.memory,
        paging_bytes_per_s=system.paging_ratio * system.disk_bytes_per_s,
        buffer_bytes=system.buffer_bytes,
        paging=paging,
        startup_s=system.startup_s,
    )
    return _pair(system, n, times)


def is_the_papers(system: System) -> bool:
    """What figures 3 and 4 were made with, as far as the paper says."""
    same = System(block_bytes=system.block_bytes, startup_s=0)
    scaled = replace(system, memory_bytes=same.memory_bytes, disk_bytes_per_s=same.disk_bytes_per_s)
    return scaled == same


def as_json(
    name: str, system: System, points: Sequence[Point], over: Over, steps: Sequence[Step]
) -> dict[str, Any]:
    """Everything as JSON values, with the timelines of the largest size; bytes and seconds."""
    largest = max(points, key=lambda p: p.ratio)
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "system": asdict(replace(system, memory_bytes=system.memory, block_bytes=system.block)),
        "raw_disk_bytes_per_s": system.all_disks_bytes_per_s,
        "paper": {"ratio": PAPER_AT, "actual": PAPER} if is_the_papers(system) else None,
        "curves": [asdict(point) for point in points],
        "sweep": {"over": over, "ratio": largest.ratio, "steps": [asdict(s) for s in steps]},
        "timelines": {
            paging: timeline(simulate(system, largest.n_bytes, paging)) for paging in PAPER
        },
    }


def _pair(system: System, n_bytes: int, times: Times) -> Pair:
    raw = system.all_disks_bytes_per_s
    return Pair(n_bytes / times.application_s / raw, n_bytes / times.actual_s / raw)


def _point(system: System, ratio: float) -> Point:
    n = bytes_of(system, ratio)
    without = simulate(system.without_virtual_memory(), n)
    demand, early = simulate(system, n, "demand"), simulate(system, n, "early")
    return Point(
        ratio=ratio,
        n_bytes=n,
        without=_pair(system, n, without.times),
        demand=_pair(system, n, demand.times),
        early=_pair(system, n, early.times),
        paged_out_bytes=demand.paged_out_bytes,
    )


def _step(value: str, system: System, ratio: float) -> Step:
    n = bytes_of(system, ratio)
    demand, early = (simulate(system, n, paging).times for paging in PAPER)
    return Step(value, _pair(system, n, demand), _pair(system, n, early))


def _of_blocks(system: System) -> list[tuple[str, System]]:
    room = min(system.memory_bytes, system.buffer_bytes or system.memory_bytes)
    varied = []
    for blocks in BLOCKS_IN_MEMORY:
        block = system.memory_bytes // blocks
        if 0 < block <= room:  # memory and output of whole blocks, or a scrap would take a frame
            whole = replace(system, block_bytes=block, memory_bytes=blocks * block)
            varied.append((f"1/{blocks}", whole))
    return varied
