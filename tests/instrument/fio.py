#!/usr/bin/env python3
"""The measuring program against fio, where both do the same thing: write a file from end to end.

One worker, calls of 1 MiB, POSIX writes: on the working disk, on a tmpfs and on a disk that is held
to a rate, ended by fsync and by close alone. Both run in turns, in random order. They agree when
the interval of the ratio of their rates reaches into a margin around 1, and is so narrow that a
program of 0.7 of the rate would not. On the slow disk the device's rate must be the limit, while
the application's is the memory's.

No time of this machine is asserted: the limit is set here, and everything else is a ratio.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics as plain
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from disks import MIB, Disk, NotHereError, memory_disk, slow_disk, sync, warm_memory, working_disk
from run_mpi import Suite, plain_arguments

from penstock.bench.statistics import compare

MARGIN = 0.10  # of the ratio; the interval has to reach into it
NOTICED = 0.7  # a program of this part of the rate would have to be noticed
LIMIT = 40 * MIB
LIMIT_MARGIN = 0.05
CACHE_SHOWS = 3.0  # application rate over the limit
CALL = MIB
MOST_ROUNDS, MORE_ROUNDS = 30, 5
WARM_FILES = 3  # memory made warm, in files


@dataclass(frozen=True)
class Cell:
    """One place and one ending; ``bytes`` is what a run writes."""

    name: str
    place: Callable[[str], AbstractContextManager[Disk]]
    end: str
    bytes: int


def throttled(name: str) -> AbstractContextManager[Disk]:
    return slow_disk(name, LIMIT)


CELLS = [
    Cell("ext4 sync", working_disk, "sync", 512 * MIB),
    Cell("ext4 close", working_disk, "close", 512 * MIB),
    Cell("tmpfs sync", memory_disk, "sync", 512 * MIB),
    Cell("tmpfs close", memory_disk, "close", 512 * MIB),
    Cell("slow disk sync", throttled, "sync", 80 * MIB),
    Cell("slow disk close", throttled, "close", 80 * MIB),
]


@dataclass
class Rates:
    """What the rounds of a cell came to, in bytes/s; ``wrong`` are runs that failed."""

    fio: list[float] = field(default_factory=list)
    program: list[float] = field(default_factory=list)
    application: list[float] = field(default_factory=list)
    actual: list[float] = field(default_factory=list)
    source: str = ""


class RunError(Exception):
    """A run that gave no figure."""


def run_json(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise RunError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    return dict(json.loads(done.stdout))


def run_fio(disk: Disk, cell: Cell) -> float:
    """Bytes/s as fio tells: to the end of its fsync, or within its calls alone."""
    words = f"--rw=write --bs={CALL} --size={cell.bytes} --ioengine=psync --fallocate=none"
    command = ["fio", "--name=agree", f"--filename={disk.directory}/fio", *words.split()]
    # Buffers as they are: scrambling them would be counted as writing.
    command += ["--scramble_buffers=0", "--thread", "--output-format=json"]
    command += [f"--end_fsync={int(cell.end == 'sync')}"]
    write = run_json([*disk.wrap, *command])["jobs"][0]["write"]
    if write["io_bytes"] != cell.bytes:
        raise RunError(f"fio wrote {write['io_bytes']} of {cell.bytes} bytes")
    in_calls_s = write["lat_ns"]["mean"] * write["total_ios"] / 1e9
    seconds = write["runtime"] / 1e3 if cell.end == "sync" else in_calls_s
    return float(cell.bytes / seconds)


def run_program(program: Path, disk: Disk, cell: Cell, rates: Rates) -> float:
    """Bytes/s of what fio does too: the calls and the fsync, without filling the buffer."""
    command = [str(program), "--file", f"{disk.directory}/program", "--route", "posix"]
    command += ["--threads", "1", "--pattern", "contiguous", "--bufsize", str(CALL)]
    command += ["--iters", str(cell.bytes // CALL), "--end", cell.end, "--regime", "asis"]
    result = run_json([*disk.wrap, *command])
    if result["bytes"] != cell.bytes or result["verified"]["wrong_bytes"] != 0:
        raise RunError(f"the program wrote {result['bytes']} of {cell.bytes} bytes, or wrong ones")
    rates.application.append(result["application"]["bytes_per_s"])
    rates.actual.append(result["actual"]["bytes_per_s"])
    rates.source = result["actual"]["source"]
    phases = result["phases"]
    return float(cell.bytes / (phases["write_s"] + phases["sync_s"]))


def rest(disk: Disk, cell: Cell) -> None:
    """The files of the run before are gone, nothing waits for a disk, and memory is warm."""
    for name in ("fio", "program"):
        with suppress(FileNotFoundError):
            (disk.directory / name).unlink()
    sync()
    warm_memory(WARM_FILES * cell.bytes)


def take_rounds(
    program: Path, disk: Disk, cell: Cell, rounds: int, draws: random.Random, rates: Rates
) -> None:
    """Rounds of both, in random order."""
    for _ in range(rounds):
        for which in draws.sample(["fio", "program"], 2):
            rest(disk, cell)
            if which == "fio":
                rates.fio.append(run_fio(disk, cell))
            else:
                rates.program.append(run_program(program, disk, cell, rates))
    rest(disk, cell)


def too_noisy(rates: Rates) -> bool:
    """Whether a program that is much slower could pass for one that is not."""
    return NOTICED * compare(rates.fio, rates.program, MARGIN).high >= 1 - MARGIN


def measure(program: Path, disk: Disk, cell: Cell, rounds: int, draws: random.Random) -> Rates:
    """After a round that is not counted: rounds, and more while they are too noisy to say."""
    take_rounds(program, disk, cell, 1, draws, Rates())
    rates = Rates()
    take_rounds(program, disk, cell, rounds, draws, rates)
    while too_noisy(rates) and len(rates.fio) < MOST_ROUNDS:
        take_rounds(program, disk, cell, MORE_ROUNDS, draws, rates)
    return rates


def agreement_problems(suite: Suite, cell: Cell, rates: Rates) -> list[str] | None:
    """What is wrong; None where the rounds are too noisy to say."""
    c = compare(rates.fio, rates.program, MARGIN)
    medians = [f"{plain.median(x) / MIB:.0f}" for x in (rates.program, rates.fio)]
    print(
        f"  {cell.name}: program / fio {c.ratio:.3f} [{c.low:.3f}, {c.high:.3f}] "
        f"n={c.n_a}+{c.n_b}, medians {' and '.join(medians)} MiB/s: {c.verdict}"
    )
    if too_noisy(rates):
        why = f"too noisy to say: {NOTICED:g} of the rate would not be noticed"
        suite.skip(f"{cell.name}: agrees", why)
        return None
    if c.high < 1 - MARGIN or c.low > 1 + MARGIN:
        return [f"program / fio is {c.ratio:.3f} [{c.low:.3f}, {c.high:.3f}], beyond {MARGIN:.0%}"]
    return []


def limit_problems(cell: Cell, limit: int, rates: Rates) -> list[str]:
    """The device's rate is the limit; the application's, where nobody syncs, is the cache's."""
    actual, application = plain.median(rates.actual), plain.median(rates.application)
    print(
        f"  {cell.name}: actual {actual / limit:.3f} of the limit "
        f"[{min(rates.actual) / limit:.3f}, {max(rates.actual) / limit:.3f}] "
        f"n={len(rates.actual)} by {rates.source}, application {application / limit:.2f} of it"
    )
    problems = []
    if abs(actual / limit - 1) > LIMIT_MARGIN:
        problems.append(f"the actual rate is {actual / limit:.3f} of the limit that is set")
    if cell.end == "close" and application < CACHE_SHOWS * limit:
        problems.append(f"the application rate is {application / limit:.2f} of the limit")
    return problems


def run_cell(suite: Suite, program: Path, cell: Cell, rounds: int, draws: random.Random) -> None:
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(cell.place(cell.name))
        except NotHereError as missing:
            suite.skip(cell.name, str(missing))
            return
        try:
            rates = measure(program, disk, cell, rounds, draws)
        except RunError as wrong:
            suite.check(cell.name, [str(wrong)])
            return
        problems = agreement_problems(suite, cell, rates)
        if problems is not None:
            suite.check(f"{cell.name}: agrees", problems)
        if disk.limit:
            suite.check(f"{cell.name}: limit", limit_problems(cell, disk.limit, rates))


def overhead_problems(program: Path) -> list[str]:
    """What an iteration of the harness costs where no byte moves; printed, and there."""
    problems = []
    for size in (4096, MIB):
        command = [str(program), "--file", "/dev/shm/penstock-null", "--route", "engine"]  # noqa: S108
        command += ["--method", "individual + none + null", "--threads", "1", "--iters", "2000"]
        command += ["--bufsize", str(size), "--regime", "asis"]
        result = run_json(command)
        of_call = result["phases"]["write_s"] / 2000
        overhead = result["overhead"]["per_iteration_s"]
        print(
            f"  null, {size} bytes an iteration: the harness costs {overhead * 1e6:.2f} us, "
            f"the engine's call {of_call * 1e6:.2f} us"
        )
        if not overhead > 0:
            problems.append(f"overhead.per_iteration_s is {overhead}")
        if result["verified"] is not None and result["verified"].get("bytes"):
            problems.append("claims to have verified bytes that no file has")
    return problems


def main() -> int:
    parser = plain_arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="at least; a warm-up besides")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    suite = Suite("fio")
    program = options.build.resolve() / "native" / "penstock-measure-threads"
    draws = random.Random(options.seed)  # noqa: S311 - the order of runs
    print(f"seed {options.seed}, {options.rounds} rounds")
    if options.only in "overhead":
        suite.check("overhead is told", overhead_problems(program))
    for cell in CELLS:
        if options.only not in cell.name:
            continue
        if shutil.which("fio") is None:
            suite.skip(cell.name, "no fio: apt-get install fio")
        else:
            run_cell(suite, program, cell, options.rounds, draws)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
