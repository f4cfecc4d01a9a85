#!/usr/bin/env python3
"""A program that writes faster than its disk takes: memory stays within its bound, data are right.

The disk is a slow one (tests/fs/slowdisk.sh). While records.cpp writes, the pages that the node's
ranks share are measured from outside: the room that the kernel says their segment takes, and what
each rank has of its own. Both rates are told: of the program's calls, and of the device.
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
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run_mpi import SKIPPED, Bench, Outcome, Penstock, Suite, arguments, launch

SLOWDISK = Path(__file__).resolve().parent.parent / "fs" / "slowdisk.sh"
MIB = 1 << 20
RATE = 20 * MIB  # of the disk
CACHE = 8 * MIB  # what may wait in the kernel's memory
RANKS = 2
RECORD_BYTES = 4000
# A page's bits of what is dirty are an eighth of it; and a table.
OVERHEAD = 1.125
TABLE_BYTES = MIB
SEGMENTS = "/dev/shm/penstock-"  # noqa: S108 - how the kernel names them
OWN_BYTES = 24 * MIB  # that a rank's own memory may grow by: nothing of it follows the file


@dataclass(frozen=True)
class Load:
    """So many records of each rank, and so much memory that they may wait in."""

    name: str
    limit_bytes: int
    records: int

    @property
    def bytes(self) -> int:
        return RANKS * self.records * RECORD_BYTES

    @property
    def allowed_bytes(self) -> float:
        return self.limit_bytes * RANKS * OVERHEAD + TABLE_BYTES


LOADS = [
    Load("ten times what memory holds", 4 * MIB, 10500),
    Load("all that memory holds", 64 * MIB, 3000),
]


@dataclass
class Memory:
    """The most that was seen."""

    shared: int = 0
    own_least: int = 1 << 60
    own_most: int = 0
    looks: int = 0


def slowdisk(verb: str, directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(SLOWDISK), verb, str(directory), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def start(bench: Bench, load: Load, disk: Path) -> Outcome:
    program = [str(bench.program("records")), f"--dir={disk / 'mnt'}", f"--bytes={RECORD_BYTES}"]
    program += [f"--slots={load.records}", f"--records={load.records}"]
    environment = {"PENSTOCK_WRITE_BEHIND_LIMIT": str(load.limit_bytes)}
    how = Penstock("auto", environment=environment)
    wrap = [str(SLOWDISK), "run", str(disk), "--"]
    return launch(bench, RANKS, program, penstock=how, wrap=wrap, timeout_s=120)


def pids_of(disk: Path) -> list[int]:
    """As the ranks note them (records.cpp: Progress): after the four numbers of the shape."""
    pids = []
    for path in (disk / "mnt").glob("progress.*"):
        with suppress(OSError), path.open("rb") as file:
            pids.append(int.from_bytes(file.read(40)[32:], sys.byteorder))
    return [pid for pid in pids if pid > 0]


def look(pid: int, memory: Memory) -> None:
    """A process that ends meanwhile is of no interest."""
    with suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if str(fd.readlink()).startswith(SEGMENTS):
                    memory.shared = max(memory.shared, fd.stat().st_blocks * 512)
        found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
        if found:
            own = int(found.group(1)) * 1024
            memory.own_least, memory.own_most = (
                min(memory.own_least, own),
                max(memory.own_most, own),
            )
            memory.looks += 1


def watch(job: Future[Outcome], disk: Path) -> Memory:
    memory = Memory()
    while not job.done():
        for pid in pids_of(disk):
            look(pid, memory)
        time.sleep(0.02)
    return memory


def judge(bench: Bench, disk: Path) -> dict[str, float]:
    program = [str(bench.program("records")), f"--dir={disk / 'mnt'}"]
    program += [f"--ranks={RANKS}", f"--died-s={time.monotonic()}"]
    env = os.environ | bench.mpi.environment()
    done = subprocess.run(program, env=env, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def rates(out: Outcome) -> tuple[float, float]:
    """Of the program's calls and of the device, bytes a second; 0 where the log does not know."""
    file = out.logs[0]["files"][0] if out.logs else {}
    application = file.get("application_rate_bytes_per_s") or 0.0
    return application, file.get("actual_rate_bytes_per_s") or 0.0


def memory_problems(load: Load, memory: Memory) -> list[str]:
    problems = []
    if memory.shared > load.allowed_bytes:
        problems.append(f"{memory.shared} bytes of shared pages, {load.allowed_bytes:.0f} allowed")
    if memory.shared == 0:
        problems.append(f"no shared pages seen in {memory.looks} looks: nothing was deferred")
    if memory.own_most - memory.own_least > OWN_BYTES:
        problems.append(f"a rank's own memory: {memory.own_least} to {memory.own_most} bytes")
    return problems


def rate_problems(application: float, actual: float) -> list[str]:
    """The device is no faster than the disk; the program is, as far as memory goes."""
    problems = []
    if not 0 < actual <= 1.5 * RATE:
        problems.append(f"actual rate {actual / MIB:.1f} MiB/s, of a disk of {RATE / MIB:.0f}")
    if application < actual:
        problems.append(f"application rate {application / MIB:.1f} MiB/s, less than the actual one")
    return problems


def run_load(bench: Bench, suite: Suite, load: Load, disk: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(start, bench, load, disk)
        memory = watch(job, disk)
    out = job.result()
    application, actual = rates(out)
    problems = [] if out.code == 0 and not out.hung else [f"exit code {out.code}"]
    if out.total("engine_bytes") != load.bytes or out.total("passthrough_bytes"):
        problems.append(f"the engine wrote {out.total('engine_bytes')} of {load.bytes} bytes")
    if not problems:
        verdict = judge(bench, disk)
        problems += [f"{what} {verdict[what]}" for what in ("missing", "damaged") if verdict[what]]
    problems += memory_problems(load, memory) + rate_problems(application, actual)
    print(
        f"{load.name}: {load.bytes / MIB:.0f} MiB, shared pages at most "
        f"{memory.shared / MIB:.1f} of {load.allowed_bytes / MIB:.1f} MiB, application rate "
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
