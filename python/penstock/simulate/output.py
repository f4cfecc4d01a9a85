"""One output through an I/O system with buffers and virtual memory, played block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from penstock import _core
from penstock._core import Moment, Outcome

Mapping = Literal["cyclic", "blocked"]
Paging = Literal["demand", "early"]
Order = Literal["memory", "file"]

MAX_BLOCKS = 10_000_000  # of an output; kMostBlocks in src/model/system.hpp


@dataclass(frozen=True)
class System:
    """The parameters of gotwals-1995's third model (section 3.3), in bytes and bytes per second.

    Memory, buffer and disks are those of each I/O node; one network serves all of them. The ratios
    are to one output disk, by default the paper's (figure 3). The block size is no parameter of the
    paper; a fifth of the memory comes nearest to its figure 4 (docs/models.md).
    """

    memory_bytes: int = 5 << 20
    disk_bytes_per_s: float = float(1 << 20)
    network_ratio: float = 5.0
    paging_ratio: float = 0.5
    block_bytes: int | None = None
    """By default a fifth of the memory."""
    buffer_bytes: int | None = None
    """What may wait on a node, in memory and paged out. By default without a bound; 0: nothing."""
    nodes: int = 1
    mapping: Mapping = "cyclic"
    """Which node has a block: the next one's turn, or as many consecutive blocks for each."""
    order: Order = "memory"
    """What the output disk writes next: what is in memory, or what is next in the file."""
    startup_s: float = 0.0

    @property
    def block(self) -> int:
        """The block size that counts, in bytes."""
        return max(1, self.memory_bytes // 5) if self.block_bytes is None else self.block_bytes

    @property
    def memory(self) -> int:
        """The memory that counts, in bytes: whole default blocks, as a scrap would take a frame."""
        if self.block_bytes is not None:
            return self.memory_bytes
        return self.memory_bytes // self.block * self.block

    @property
    def all_memory_bytes(self) -> int:
        """Of all I/O nodes."""
        return self.nodes * self.memory

    @property
    def all_disks_bytes_per_s(self) -> float:
        """The raw rate that actual rates are held against."""
        return self.nodes * self.disk_bytes_per_s

    def without_virtual_memory(self) -> System:
        """The same with a buffer that memory holds: the second model."""
        buffer = self.memory if self.buffer_bytes is None else self.buffer_bytes
        return replace(self, buffer_bytes=min(buffer, self.memory))


def simulate(
    system: System, n_bytes: int, paging: Paging = "demand", *, timeline_points: int = 256
) -> Outcome:
    """Play one output of ``n_bytes``.

    Parameters
    ----------
    system : System
        What it goes through.
    n_bytes : int
        At least 1, and at most ``MAX_BLOCKS`` blocks.
    paging : "demand" or "early"
        When a block that was paged out comes back: when the output disk has nothing else to
        write, or as soon as the application has sent all and memory is unused.
    timeline_points : int
        At most so many moments are kept, at least 2.

    Returns
    -------
    Outcome
        ``times`` (seconds), bytes paged out and in, and ``timeline``: at each moment the bytes
        sent, in memory, paged out and on disk, where sent is the sum of the others.

    Raises
    ------
    ArgumentError
        If a value is out of its range; the message names it.
    """
    return _core.simulate_output(
        n_bytes,
        network_bytes_per_s=system.network_ratio * system.disk_bytes_per_s,
        disk_bytes_per_s=system.disk_bytes_per_s,
        paging_bytes_per_s=system.paging_ratio * system.disk_bytes_per_s,
        memory_bytes=system.memory,
        block_bytes=system.block,
        buffer_bytes=system.buffer_bytes,
        nodes=system.nodes,
        mapping=system.mapping,
        order=system.order,
        paging=paging,
        startup_s=system.startup_s,
        timeline_points=timeline_points,
    )


def timeline(outcome: Outcome) -> list[dict[str, Any]]:
    """The moments of an outcome as JSON values, in seconds and bytes."""
    return [_moment(moment) for moment in outcome.timeline]


def _moment(moment: Moment) -> dict[str, Any]:
    names = ("time_s", "sent_bytes", "memory_bytes", "paged_bytes", "disk_bytes")
    return {name: getattr(moment, name) for name in names}
