"""What disturbed a session: found in its samples and in readings of the machine, and named.

A reading is taken right before and right after each sample. Counters are since boot: what one
sample or one pause saw is the difference of two readings.
"""

from __future__ import annotations

import os
import re
import resource
import time
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

_PROC = Path("/proc")


class MachineReading(BaseModel):
    """The machine at one moment. None: this kernel does not tell.

    Attributes
    ----------
    at_s : float
        Unix time.
    cpu_total_s, cpu_busy_s, cpu_steal_s : float
        Since boot, summed over CPUs. Busy is neither idle, waiting for I/O nor stolen.
    own_cpu_s : float
        CPU time of this process and of its children that have ended: no disturbance.
    dirty_bytes, writeback_bytes, memory_available_bytes : int
        Of /proc/meminfo.
    io_stall_s, memory_stall_s : float or None
        Since boot: how long some task waited for I/O or memory (pressure stall information).
    io_pressure : float or None
        Percent of the last 10 s in which some task waited for I/O.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    at_s: float
    cpu_total_s: float
    cpu_busy_s: float
    cpu_steal_s: float
    own_cpu_s: float
    dirty_bytes: int
    writeback_bytes: int
    memory_available_bytes: int
    io_stall_s: float | None = None
    memory_stall_s: float | None = None
    io_pressure: float | None = None

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
