#!/usr/bin/env python3
"""Which system calls a cycle makes, of all that there are: strace counts those of one collective
write of few cycles and of one of many, by the same method.

What takes a page into the file is as many calls as pages are more. Waiting calls (futexes) are as
many as they are. Before a write the process is asked for its limit of file sizes, and a queue of
its own for who it is (ASKS); they touch nothing. Of every other call there are no more than in the
short one, but for a handful: none is made once a cycle.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from disks import KIB, MIB, NotHereError
from run_mpi import Suite, plain_arguments

CYCLE = 64 * KIB
THREADS = 2
FEW, MANY = 2 * MIB, 14 * MIB  # of each thread
MORE_CYCLES = THREADS * (MANY - FEW) // CYCLE
HANDFUL = MORE_CYCLES // 12  # what an allocator may take from the system, once for all
ASKS = {"prlimit64": 1, "getpid": 2}  # of a page, at most
WAITS = {"futex", "sched_yield", "nanosleep", "clock_nanosleep", "restart_syscall"}


@dataclass(frozen=True)
class Way:
    """A method, and the calls that put its pages into the file: one a page; or so many where one
    waits, and one for so many pages that go together.
    """

    method: str
    writes: frozenset[str]
    most: int = 1


WAYS = [
    *(
        Way(f"{algorithm} + {exchange} + pwrite + none", frozenset({"pwrite64"}))
        for algorithm in (
            "two_phase(writers=1, cycle=64KiB)",
            "designated_writer(cycle=64KiB)",
            "dedicated_writer(cycle=64KiB)",
        )
        for exchange in ("messages", "shm", "node_leaders")
    ),
    Way("two_phase(writers=1, cycle=64KiB) + shm + pwritev + none", frozenset({"pwritev"})),
    Way(
        "two_phase(writers=1, cycle=64KiB) + shm + uring + none",
        frozenset({"io_uring_enter"}),
        most=2,
    ),
]


def counted(build: Path, method: str, size: int, directory: Path) -> Counter[str]:
    """The calls of all threads, by name. Raises NotHereError where nothing may be traced."""
    told = directory / "calls"
    program = [str(build / "native" / "penstock-measure-threads"), "--file", str(directory / "f")]
    program += ["--threads", str(THREADS), "--iters", "1", "--bufsize", str(size)]
    program += ["--pattern", "interleaved:4KiB", "--method", method, "--regime", "asis"]
    program += ["--warm-disk", "0", "--verify", "none", "--bins", "0", "--end", "close"]
    try:
        done = subprocess.run(
            ["strace", "-f", "-c", "-U", "name,calls", "-o", told, *program],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    except FileNotFoundError:
        raise NotHereError("strace is not installed: apt-get install strace") from None
    if "ptrace" in done.stderr and done.returncode != 0:
        raise NotHereError(f"nothing may be traced here: {done.stderr.strip().splitlines()[0]}")
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}{done.stdout}")
    return parsed(told.read_text())


def parsed(table: str) -> Counter[str]:
    """The rows `NAME CALLS` of a summary."""
    rows = (line.split() for line in table.splitlines())
    return Counter({row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()})


def problems(way: Way, few: Counter[str], many: Counter[str]) -> list[str]:
    """What there is more of than its cycles are, or less."""
    more = Counter(many)
    more.subtract(few)
    more.pop("total", None)
    writes = sum(more[name] for name in way.writes)
    wrong = []
    if not MORE_CYCLES / way.most <= writes <= way.most * MORE_CYCLES:
        wrong.append(f"{writes} more writes of {MORE_CYCLES} more pages")
    wrong += [
        f"{times} more {name} in {MORE_CYCLES} more cycles"
        for name, times in sorted(more.items())
        if name not in WAITS | way.writes and times > HANDFUL + ASKS.get(name, 0) * MORE_CYCLES
    ]
    return wrong


def run(suite: Suite, build: Path, way: Way) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-calls-") as name:
        try:
            few, many = (counted(build, way.method, size, Path(name)) for size in (FEW, MANY))
        except NotHereError as missing:
            suite.skip(way.method, str(missing))
            return
    waits = sum(many[name] for name in WAITS)
    print(f"{way.method}: {many.total() - many['total'] - waits} calls, {waits} waits", flush=True)
    suite.check(way.method, problems(way, few, many))


def main() -> int:
    options = plain_arguments(__doc__).parse_args()
    suite = Suite("system calls")
    for way in WAYS:
        if options.only in way.method:
            run(suite, options.build.resolve(), way)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
