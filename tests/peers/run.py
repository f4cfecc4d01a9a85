#!/usr/bin/env python3
"""Do the peers' programs measure what they say? Small runs of each, on any MPI library.

Every byte is read back; a byte that is written wrong must be found; a full disk must be told by
the exit code; the line of JSON must be one line; under Penstock the bytes must go through it.

  run.py --build build/release --mpi mpich [--only hdf5]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "truth"))
from mpis import MPIS, ROOT
from run_mpi import Bench, Outcome, Penstock, Suite, arguments, launch
from truth_cases import NotPossibleError, small_disk

RANKS = (1, 2, 3, 4)
SMALL = ("--regime", "asis", "--iters", "3", "--bufsize", "300kB", "--warm-disk", "64KiB")
KEYS = {"schema", "program", "version", "mpi", "parameters", "workers", "ranks", "bytes"}
KEYS |= {"application", "actual", "verified", "error", "engine", "phases", "nodes"}


@dataclass(frozen=True)
class Program:
    name: str  # peer-NAME-FLAVOUR
    says: str  # the line's "program"
    variants: tuple[tuple[str, ...], ...]  # options; all ranks' numbers: the first
    square: tuple[tuple[str, ...], ...] = ()  # on 4 ranks
    wrong: tuple[str, ...] = ()  # one wrong usage
    on_full_disk: tuple[str, ...] = ()  # options with which the library comes back from it
    mpi_io: bool = False  # writes through MPI-IO: Penstock can serve it


PATTERNS: tuple[str, ...] = (
    "contiguous",
    "interleaved:47008",
    "interleaved:8",
    "slabs3d",
    "cubes3d",
)
PATTERNS += ("irregular", "irregular:100", "particles")
PROGRAMS = (
    Program(
        "page-ring",
        "page-ring",
        (
            *(("--pattern", pattern) for pattern in PATTERNS),
            ("--pattern", "interleaved:1000", "--len", "24", "--stride", "100", "--writers", "1"),
            ("--pattern", "contiguous", "--len", "8", "--stride", "32", "--page", "4MiB"),
            ("--pattern", "cubes3d", "--page", "4KiB", "--pages", "1", "--method", "plain"),
            ("--pattern", "interleaved:5000", "--page", "64KiB", "--method", "direct"),
            ("--pattern", "contiguous", "--method", "direct", "--end", "close"),
        ),
        square=(("--pattern", "btio"), ("--pattern", "btio", "--page", "4KiB")),
        wrong=("--page", "5000"),
    ),
    Program(
        "hdf5",
        "peer-hdf5",
        (
            ("--access", "collective"),
            ("--access", "independent", "--alignment", "4KiB"),
            ("--datasets", "chunked", "--chunk", "10kB"),
            ("--datasets", "2d", "--end", "close", "--hint", "cb_nodes=1"),
            ("--slab", "3kB", "--access", "independent", "--end", "close"),
            ("--slab", "8", "--datasets", "chunked", "--chunk", "10kB"),
        ),
        wrong=("--datasets", "4d"),
        mpi_io=True,
    ),
    Program(
        "pnetcdf",
        "peer-pnetcdf",
        (
            ("--access", "collective"),
            ("--access", "independent", "--end", "close"),
            ("--calls", "nonblocking", "--variables", "7"),
            ("--calls", "nonblocking", "--access", "independent", "--hint", "cb_nodes=1"),
            ("--slab", "3kB", "--access", "independent"),
            ("--slab", "8", "--end", "close"),
        ),
        wrong=("--slab", "1kB", "--calls", "nonblocking"),
        mpi_io=True,
    ),
    Program(
        "adios2",
        "peer-adios2",
        (
            ("--pattern", "cubes3d"),
            ("--pattern", "particles"),
            ("--pattern", "particles", "--hint", "AggregationType=EveryoneWrites"),
            ("--pattern", "cubes3d", "--hint", "NumAggregators=2", "--end", "close"),
        ),
        wrong=("--hint", "NumberOfAggregators=2"),
        # The default, TwoLevelShm, never returns from EndStep when a rank's write fails.
        on_full_disk=("--hint", "AggregationType=EveryoneWritesSerial"),
    ),
)


@dataclass(frozen=True)
class Place:
    bench: Bench
    program: Program

    @property
    def executable(self) -> Path:
        family = self.bench.mpi.family
        path: Path = self.bench.build / "bench" / f"peer-{self.program.name}-{family}"
        return path

    def run(
        self,
        ranks: int,
        directory: Path,
        *options: str,
        penstock: Penstock | None = None,
        timeout_s: float = 60,
    ) -> Outcome:
        # A name that ADIOS2 may use for its directory.
        words = [str(self.executable), "--file", str(directory / "out.bp"), *options]
        environment = self.bench.mpi.environment()
        if self.bench.mpi.name == "mpich5":
            environment["LD_LIBRARY_PATH"] = str(ROOT / ".peers" / "mpich5")
        return launch(
            self.bench,
            ranks,
            words,
            penstock=penstock,
            environment=environment,
            timeout_s=timeout_s,
        )


# ---- what a line must say ----


def line_of(outcome: Outcome) -> dict[str, Any] | None:
    lines = outcome.output.splitlines()
    if len(lines) != 1:
        return None
    try:
        line = json.loads(lines[0])
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def line_problems(line: dict[str, Any] | None, program: Program, ranks: int) -> list[str]:
    if line is None:
        return ["stdout is not one line of JSON"]
    problems = [f"{key} is missing" for key in sorted(KEYS - line.keys())]
    if line.get("schema") != "penstock.measure/1" or line.get("program") != program.says:
        problems.append(f"schema {line.get('schema')}, program {line.get('program')}")
    if line.get("ranks") != ranks:
        problems.append(f"ranks {line.get('ranks')} of {ranks}")
    return problems


def success_problems(outcome: Outcome, program: Program, ranks: int) -> list[str]:
    if outcome.hung:
        return ["hangs"]
    line = line_of(outcome)
    problems = line_problems(line, program, ranks)
    if outcome.code != 0:
        problems.append(f"exit code {outcome.code}")
    if problems or line is None:
        return problems
    if line["error"] is not None:
        problems.append(f"error {line['error']}")
    if line["bytes"] < ranks * 3 * 100_000:
        problems.append(f"only {line['bytes']} bytes")
    if line["verified"] != {"bytes": line["bytes"], "wrong_bytes": 0, "first_wrong": None}:
        problems.append(f"verified {line['verified']}")
    if not 0 < line["application"]["seconds"] <= line["actual"]["seconds"]:
        problems.append(f"application {line['application']}, actual {line['actual']}")
    return problems


def slab_problems(outcome: Outcome, options: Sequence[str]) -> list[str]:
    """With --slab a rank's three blocks go by many calls, of at most so much or a row."""
    line = line_of(outcome)
    if "--slab" not in options or line is None or line.get("calls", 0) > 30:
        return []
    return [f"only {line.get('calls')} calls: the blocks were not cut"]


def failure_problems(outcome: Outcome, program: Program, ranks: int, where: set[str]) -> list[str]:
    if outcome.hung:
        return ["hangs"]
    line = line_of(outcome)
    problems = line_problems(line, program, ranks)
    if outcome.code != 1:
        problems.append(f"exit code {outcome.code}, not 1")
    if line is None:
        return problems
    error = line.get("error")
    if error is None:
        problems.append("the line tells no error")
    elif where and error["where"] not in where:
        problems.append(f"the error is at {error['where']}, not at {sorted(where)}")
    return problems


# ---- the cases ----


def _runs(program: Program) -> list[tuple[int, tuple[str, ...]]]:
    """The first variant on every number of ranks, the others each on another one."""
    first, *others = program.variants
    runs = [(n, first) for n in RANKS]
    runs += [(RANKS[(i + 1) % len(RANKS)], options) for i, options in enumerate(others)]
    return runs + [(4, options) for options in program.square]


def every_byte(place: Place, suite: Suite) -> None:
    runs = _runs(place.program)
    with tempfile.TemporaryDirectory(prefix="penstock-peers-") as directory:
        for ranks, options in runs:
            outcome = place.run(ranks, Path(directory), *SMALL, *options)
            case = f"{place.program.name} {ranks} ranks {' '.join(options)}"
            problems = success_problems(outcome, place.program, ranks)
            problems += slab_problems(outcome, options)
            suite.check(case, problems, outcome)


def wrong_byte(place: Place, suite: Suite) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-peers-") as directory:
        for spoilt in ("0", "131071"):
            outcome = place.run(2, Path(directory), *SMALL, "--spoil", spoilt)
            problems = failure_problems(outcome, place.program, 2, {"verify"})
            line = line_of(outcome)
            if line is not None and not line["verified"]["wrong_bytes"]:
                problems.append("no wrong byte was found")
            suite.check(f"{place.program.name} finds spoilt byte {spoilt}", problems, outcome)


def wrong_usage(place: Place, suite: Suite) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-peers-") as directory:
        for options in (
            place.program.wrong,
            ("--bufsize", "4XB"),
            ("--no-such-option", "1"),
            ("--end", "sync|close"),
        ):
            outcome = place.run(2, Path(directory), *options)
            problems = [] if outcome.code == 2 else [f"exit code {outcome.code}, not 2"]
            problems += ["there is a line on stdout"] if outcome.output.strip() else []
            if options[0].strip("-") not in outcome.errors:
                problems.append(f"stderr does not name {options[0]}")
            suite.check(f"{place.program.name} refuses {' '.join(options)}", problems, outcome)
        outcome = place.run(1, Path(directory), "--help")
        problems = [] if outcome.code == 0 else [f"exit code {outcome.code}"]
        problems += [] if "--bufsize" in outcome.output else ["--bufsize is not listed"]
        suite.check(f"{place.program.name} --help", problems, outcome)
        outcome = place.run(1, Path(directory), "--version")
        problems = [] if outcome.code == 0 else [f"exit code {outcome.code}"]
        problems += [] if outcome.output.startswith(place.program.says) else ["no version"]
        suite.check(f"{place.program.name} --version", problems, outcome)


def no_directory(place: Place, suite: Suite) -> None:
    with tempfile.NamedTemporaryFile(prefix="penstock-peers-") as file:
        outcome = place.run(2, Path(file.name), *SMALL)
        problems = failure_problems(outcome, place.program, 2, {"open"})
    suite.check(f"{place.program.name} tells that there is no directory", problems, outcome)


def fifo_stays(place: Place, suite: Suite) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-peers-") as directory:
        fifo = Path(directory) / "out.bp"
        os.mkfifo(fifo)
        outcome = place.run(2, Path(directory), *SMALL)
        problems = failure_problems(outcome, place.program, 2, {"unlink"})
        problems += [] if fifo.is_fifo() else ["it was removed"]
    suite.check(f"{place.program.name} removes no fifo", problems, outcome)


def full_disk(place: Place, suite: Suite, penstock: Penstock | None) -> None:
    case = f"{place.program.name} on a full disk{' under Penstock' if penstock else ''}"
    try:
        with small_disk(2 << 20) as directory:
            options = ("--regime", "asis", "--iters", "4", "--bufsize", "1MiB")
            words = [*options, *place.program.on_full_disk]
            outcome = place.run(2, directory, *words, penstock=penstock, timeout_s=20)
    except NotPossibleError as reason:
        suite.skip(case, str(reason))
        return
    problems = failure_problems(outcome, place.program, 2, set())
    if problems and place.program.mpi_io and penstock is None:
        suite.skip(case, "; ".join(problems), fails_alone=True)  # the MPI library's own doing
        return
    suite.check(case, problems, outcome)


def same_bytes(place: Place, suite: Suite) -> None:
    """The ceiling is of the measuring program's file: the same bytes at the same places."""
    measure = place.bench.build / "native" / f"penstock-measure-{place.bench.mpi.family}"
    for pattern in (*PATTERNS, "btio"):
        case = f"the measuring program writes the same file: {pattern}"
        if not measure.exists():
            suite.skip(case, f"no {measure.name} in this build")
            continue
        ranks = 4 if pattern == "btio" else 3
        with tempfile.TemporaryDirectory(prefix="penstock-peers-") as directory:
            words = [*SMALL, "--pattern", pattern, "--seed", "7"]
            other = Path(directory) / "measured"
            ring = place.run(ranks, Path(directory), *words)
            command = [str(measure), "--file", str(other), "--route", "posix", *words]
            environment = place.bench.mpi.environment()
            outcome = launch(place.bench, ranks, command, environment=environment)
            problems = success_problems(ring, place.program, ranks)
            if outcome.code != 0:
                problems.append(f"the measuring program ends with {outcome.code}")
            elif (Path(directory) / "out.bp").read_bytes() != other.read_bytes():
                problems.append("the files differ")
            suite.check(case, problems, outcome)


def under_penstock(place: Place, suite: Suite) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-peers-") as directory:
        for ranks in (1, 2):
            penstock = Penstock("two_phase(writers=1, cycle=64KiB)", require=False)
            outcome = place.run(ranks, Path(directory), *SMALL, penstock=penstock)
            problems = success_problems(outcome, place.program, ranks)
            line = line_of(outcome)
            if line is not None and outcome.total("engine_bytes") < line["bytes"]:
                problems.append(f"Penstock wrote {outcome.total('engine_bytes')} bytes")
            suite.check(f"{place.program.name} {ranks} ranks under Penstock", problems, outcome)


def cases(place: Place, suite: Suite) -> None:
    every_byte(place, suite)
    wrong_byte(place, suite)
    wrong_usage(place, suite)
    no_directory(place, suite)
    fifo_stays(place, suite)
    full_disk(place, suite, None)
    if place.program.name == "page-ring":
        same_bytes(place, suite)
    if place.program.mpi_io:
        under_penstock(place, suite)
        full_disk(place, suite, Penstock("two_phase", require=False))


def wanted(only: str) -> Iterator[Program]:
    for program in PROGRAMS:
        if only in program.name:
            yield program


def main(argv: Sequence[str]) -> int:
    options = arguments(__doc__ or "").parse_args(argv)
    mpi = MPIS[options.mpi]
    suite = Suite(f"peers {mpi.name}", mpi.name, options.record)
    for program in wanted(options.only):
        place = Place(Bench(options.build.resolve(), mpi), program)
        if mpi.launcher() is None:
            suite.skip(program.name, f"no {mpi.title}: {mpi.remedy()}")
        elif mpi.flavour == "abi" or not place.executable.exists():
            suite.skip(program.name, f"not built for {mpi.name}: scripts/get_peers.sh, then build")
        else:
            cases(place, suite)
    code: int = suite.finish()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
