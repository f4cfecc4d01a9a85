#!/usr/bin/env python3
"""A program that writes faster than its disk takes: memory stays within its bound, data are right.

The disk is a slow one (tests/fs/slowdisk.sh). While records.cpp writes, what Penstock takes is
measured from outside: the room that the kernel says the segments take which the node's ranks share,
and what each rank has of its own, beyond the most of the same program without Penstock and beyond
what it has when it writes a quarter as much. Both rates are told: of the program's calls, and of
the device.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run_mpi import SKIPPED, Bench, Outcome, Penstock, Suite, arguments, launch

SLOWDISK = Path(__file__).resolve().parent.parent / "fs" / "slowdisk.sh"
MIB = 1 << 20
RATE = 20 * MIB  # of the disk
CACHE = 8 * MIB  # what may wait in the kernel's memory
RECORD_BYTES = 4000
# A page's bits of what is dirty are an eighth of it; and a table.
OVERHEAD = 1.125
TABLE_BYTES = MIB
SEGMENTS = "/dev/shm/penstock-"  # noqa: S108 - how the kernel names them
OWN_BYTES = 24 * MIB  # of each rank, the engine and its thread
# What a rank has more of its own when it writes four times as much: nothing of it follows the file.
# A load is so large that a copy of all that is written more would be several times this.
GROWTH_BYTES = 2 * MIB
ALONE_RECORDS = 500  # what the program and its library take does not follow the file either


@dataclass(frozen=True)
class Load:
    """So many records of each rank, and so much memory for each that they may wait in."""

    what: str
    ranks: int
    limit_bytes: int
    records: int

    @property
    def name(self) -> str:
        return f"{self.what}, {self.ranks} ranks"

    @property
    def bytes(self) -> int:
        return self.ranks * self.records * RECORD_BYTES

    @property
    def quarter(self) -> Load:
        return replace(self, records=self.records // 4)

    @property
    def allowed_bytes(self) -> float:
        return self.limit_bytes * self.ranks * OVERHEAD + TABLE_BYTES


LOADS = [
    Load("ten times what memory holds", 2, 4 * MIB, 10500),
    Load("ten times what memory holds", 4, 2 * MIB, 5250),
    Load("all that memory holds", 2, 64 * MIB, 10500),
    Load("all that memory holds", 4, 64 * MIB, 5250),
]


@dataclass
class Memory:
    """The most that was seen."""

    shared: int = 0
    own: dict[int, int] = field(default_factory=dict)  # by process
    looks: int = 0


def slowdisk(verb: str, directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(SLOWDISK), verb, str(directory), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def start(bench: Bench, load: Load, disk: Path, how: Penstock | None) -> Outcome:
    records = load.records if how else ALONE_RECORDS
    program = [str(bench.program("records")), f"--dir={disk / 'mnt'}", f"--bytes={RECORD_BYTES}"]
    program += [f"--slots={records}", f"--records={records}"]
    wrap = [str(SLOWDISK), "run", str(disk), "--"]
    return launch(bench, load.ranks, program, penstock=how, wrap=wrap, timeout_s=120)


def pids_of(disk: Path) -> list[int]:
    """As the ranks note them (records.cpp: Progress): after the four numbers of the shape."""
    pids = []
    for path in (disk / "mnt").glob("progress.*"):
        with suppress(OSError), path.open("rb") as file:
            pids.append(int.from_bytes(file.read(40)[32:], sys.byteorder))
    return [pid for pid in pids if pid > 0]


def look(pids: list[int], memory: Memory) -> None:
    """A process that ends meanwhile is of no interest."""
    mapped = 0
    for pid in pids:
        with suppress(OSError):
            for fd in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(fd.readlink()).startswith(SEGMENTS):
                        memory.shared = max(memory.shared, fd.stat().st_blocks * 512)
            mapped += share_of(Path(f"/proc/{pid}/smaps").read_text())
            found = re.search(
                r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M
            )
            if found:
                memory.own[pid] = max(memory.own.get(pid, 0), int(found.group(1)) * 1024)
                memory.looks += 1
    memory.shared = max(memory.shared, mapped)


def share_of(smaps: str) -> int:
    """A process's share of segments that it has mapped, also those that have no name any more."""
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps, flags=re.M)
    found = (re.search(r"^Pss:\s+(\d+) kB", part, re.M) for part in parts if SEGMENTS in part)
    return sum(int(one.group(1)) * 1024 for one in found if one)


def watch(job: Future[Outcome], disk: Path) -> Memory:
    memory = Memory()
    while not job.done():
        look(pids_of(disk), memory)
        time.sleep(0.02)
    return memory


def watched(
    bench: Bench, load: Load, disk: Path, how: Penstock | None = None
) -> tuple[Outcome, Memory]:
    for left in (disk / "mnt").iterdir():
        if left.is_file():
            left.unlink()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(start, bench, load, disk, how)
        memory = watch(job, disk)
    return job.result(), memory


def judge(bench: Bench, load: Load, disk: Path) -> dict[str, float]:
    program = [str(bench.program("records")), f"--dir={disk / 'mnt'}"]
    program += [f"--ranks={load.ranks}", f"--died-s={time.monotonic()}"]
    env = os.environ | bench.mpi.environment()
    done = subprocess.run(program, env=env, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def rates(out: Outcome) -> tuple[float, float]:
    """Of the program's calls and of the device, bytes a second; 0 where the log does not know."""
    file = out.logs[0]["files"][0] if out.logs else {}
    application = file.get("application_rate_bytes_per_s") or 0.0
    return application, file.get("actual_rate_bytes_per_s") or 0.0


def memory_problems(load: Load, memory: Memory, alone: Memory, quarter: Memory) -> list[str]:
    problems = []
    if memory.shared > load.allowed_bytes:
        problems.append(f"{memory.shared} bytes of segments, {load.allowed_bytes:.0f} allowed")
    if memory.shared == 0:
        problems.append(f"no segment seen in {memory.looks} looks: nothing was deferred")
    for name, other, most in (
        ("alone", alone, OWN_BYTES),
        ("with a quarter of the records", quarter, GROWTH_BYTES),
    ):
        if not other.own:
            problems.append(f"the program {name} was not seen")
        elif own_bytes(memory, other) > most:
            problems.append(f"a rank's own memory: {memory.own} bytes, {name} {other.own}")
    return problems


def own_bytes(memory: Memory, other: Memory) -> int:
    """What a rank has at most of its own, beyond that of another job."""
    return max(memory.own.values(), default=0) - max(other.own.values(), default=0)


def rate_problems(application: float, actual: float) -> list[str]:
    """The device is no faster than the disk; the program is, as far as memory goes."""
    problems = []
    if not 0 < actual <= 1.5 * RATE:
        problems.append(f"actual rate {actual / MIB:.1f} MiB/s, of a disk of {RATE / MIB:.0f}")
    if application < actual:
        problems.append(f"application rate {application / MIB:.1f} MiB/s, less than the actual one")
    return problems


def run_load(bench: Bench, suite: Suite, load: Load, disk: Path) -> None:
    _, alone = watched(bench, load, disk)
    how = Penstock("auto", environment={"PENSTOCK_WRITE_BEHIND_LIMIT": str(load.limit_bytes)})
    _, quarter = watched(bench, load.quarter, disk, how)
    out, memory = watched(bench, load, disk, how)
    application, actual = rates(out)
    problems = [] if out.code == 0 and not out.hung else [f"exit code {out.code}"]
    if out.total("engine_bytes") != load.bytes or out.total("passthrough_bytes"):
        problems.append(f"the engine wrote {out.total('engine_bytes')} of {load.bytes} bytes")
    if not problems:
        verdict = judge(bench, load, disk)
        problems += [f"{what} {verdict[what]}" for what in ("missing", "damaged") if verdict[what]]
    problems += memory_problems(load, memory, alone, quarter) + rate_problems(application, actual)
    print(
        f"{load.name}: {load.bytes / MIB:.0f} MiB, segments at most "
        f"{memory.shared / MIB:.1f} of {load.allowed_bytes / MIB:.1f} MiB, a rank's own memory "
        f"{own_bytes(memory, alone) / MIB:.1f} MiB more than alone and "
        f"{own_bytes(memory, quarter) / MIB:.1f} MiB more than with a quarter, application rate "
        f"{application / MIB:.1f} MiB/s, actual rate {actual / MIB:.1f} MiB/s"
    )
    suite.check(load.name, problems, out)


def main() -> int:
    options = arguments(__doc__ or "").parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"bound {options.mpi}", options.mpi, options.record)
    for load in LOADS:
        if options.only not in load.name:
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-bound-") as directory:
            disk = Path(directory)
            made = slowdisk("start", disk, "--rate", str(RATE), "--cache", str(CACHE))
            try:
                if made.returncode == SKIPPED:
                    suite.skip(load.name, made.stderr.strip())
                elif made.returncode != 0:
                    suite.check(load.name, [f"no slow disk: {made.stderr.strip()}"])
                else:
                    run_load(bench, suite, load, disk)
            finally:
                slowdisk("stop", disk)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
