#!/usr/bin/env python3
"""Two NFS clients that write one file by turns lose bytes in silence; under Penstock they do not.

nfs.sh makes the server and two nodes with the kernel's own client. On these nfs_records.cpp writes
records of 47001 bytes, which end inside pages, without a lock. A run is one file: opened, written,
synced, closed, and then read where the server has it, by plain reads, every byte compared.

The first case is the same without Penstock and must lose something: it shows that the others could.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from calling import HERE, NotHereError, script
from mpis import MPIS
from run_mpi import Bench, Outcome, Suite, plain_arguments, program_problems

# MPICH 4.0 now and then never returns from MPI_Finalize on these slow nodes, without Penstock too.
MPI = MPIS["mpich5"]
FILES_IN_A_JOB = 20
# Of plain writes more than half of the runs lose something; so many that do not are no accident.
RUNS_TO_LOSE_IN = 40
START_S, FILE_S = 60.0, 20.0


@dataclass(frozen=True)
class Case:
    """How the records are written, and which part of their bytes the engine must have written.

    Without ``served`` the program runs alone.
    """

    name: str
    how: str
    served: Fraction | None = None
    together: int = 8
    ranks: int = 2  # by turns on the two nodes
    records: int = 96  # of each rank
    one_in: int = 1  # of the runs asked for, where ranks that poll share a slow core
    words: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def files(self, first: int, files: int) -> list[str]:
        return [f"--records={self.records}", f"--first={first}", f"--files={files}"]

    def runs(self, asked: int) -> int:
        return max(1, asked // self.one_in)


THREAD = {"PENSTOCK_WRITE_BEHIND_PROGRESS": "thread"}
CALLS = {"PENSTOCK_WRITE_BEHIND_PROGRESS": "calls"}
ALL, HALF = Fraction(1), Fraction(1, 2)
MULTIPLE = ("--thread-multiple",)
CONTROL = Case("plain writes, alone", "posix")
CASES = (
    Case("collective", "collective", ALL),
    Case("collective, one record at a time", "collective", ALL, together=1),
    Case("independent, by thread", "independent", ALL, words=MULTIPLE, environment=THREAD),
    Case("mixed, by thread", "mixed", ALL, words=MULTIPLE, environment=THREAD),
    Case(
        "mixed, 4 ranks, by thread",
        "mixed",
        ALL,
        ranks=4,
        records=32,
        one_in=10,
        words=MULTIPLE,
        environment=THREAD,
    ),
    Case("mixed, by calls: half passed through", "mixed", HALF, environment=CALLS),
)


@dataclass(frozen=True)
class Run:
    """What one file holds."""

    file: int
    size: int
    wanted: int
    zero: int
    wrong: int
    first: int

    @property
    def lost(self) -> int:
        return self.zero + self.wrong + abs(self.size - self.wanted)

    def words(self) -> str:
        return (
            f"run {self.file}: {self.zero} bytes are zero and {self.wrong} wrong, the first at "
            f"{self.first}; the file has {self.size} of {self.wanted} bytes"
        )


@dataclass(frozen=True)
class Nodes:
    """Two nodes that mount one server."""

    bench: Bench
    at: Path

    def write(self, case: Case, first: int, files: int) -> Outcome:
        """One job, which writes so many files."""
        program = [str(self.bench.program("nfs_records")), "--dir=/mnt/nfs", f"--how={case.how}"]
        program += [f"--together={case.together}", *case.files(first, files)]
        under = [str(self.bench.penstock_exec), *case.words, "--log-dir", "/mnt/share", "--"]
        command = [str(HERE / "nfs.sh"), "run", str(self.at), str(case.ranks)]
        command += program if case.served is None else [*under, *program]
        return self.watched(command, case.environment, START_S + FILE_S * files)

    def watched(
        self, command: list[str], environment: Mapping[str, str], timeout_s: float
    ) -> Outcome:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        env |= self.bench.mpi.environment() | {"MPIEXEC": self.bench.mpi.launcher() or ""}
        begin = time.monotonic()
        try:
            done = subprocess.run(
                command,
                env=env | dict(environment),
                cwd=self.at,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            return Outcome(124, "", "", timeout_s, hung=True, logs=[])
        seconds = time.monotonic() - begin
        return Outcome(done.returncode, done.stdout, done.stderr, seconds, False, self.take_logs())

    def take_logs(self) -> list[dict[str, object]]:
        paths = sorted(self.at.glob("nfs/node*/penstock-*.json"))
        logs = [json.loads(path.read_text()) for path in paths]
        for path in paths:
            path.unlink()
        return logs

    def take_runs(self, case: Case, first: int, files: int) -> list[Run]:
        """Reads the server's files, and has a client remove them, so that the server knows."""
        program = [str(self.bench.program("nfs_records")), f"--check={self.at / 'export'}"]
        program += [f"--ranks={case.ranks}", *case.files(first, files)]
        env = os.environ | self.bench.mpi.environment()
        done = subprocess.run(program, env=env, capture_output=True, text=True, check=False)
        removed = script("nfs.sh", "on", self.at, "1", "rm -f /mnt/nfs/records.*")
        if removed.returncode != 0:
            raise RuntimeError(removed.stderr)
        return [Run(**json.loads(line)) for line in done.stdout.splitlines()]


@contextmanager
def nodes(bench: Bench) -> Iterator[Nodes]:
    """Fresh ones, so that a job that hangs hurts no other case."""
    if bench.mpi.launcher() is None:
        raise NotHereError(f"no {bench.mpi.title}: {bench.mpi.remedy()}")
    with tempfile.TemporaryDirectory(prefix="penstock-nfs-") as directory:
        at = Path(directory)
        at.chmod(0o755)
        started = script("nfs.sh", "start", at, "2")
        try:
            if started.returncode != 0:
                raise RuntimeError(started.stderr.strip())
            yield Nodes(bench, at)
        finally:
            script("nfs.sh", "stop", at)


@dataclass
class Tally:
    """What the jobs of a case came to."""

    runs: list[Run] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0
    written: int = 0
    engine: int = 0
    passed_through: int = 0
    logs: int = 0
    last: Outcome | None = None

    def add(self, out: Outcome, runs: list[Run]) -> None:
        self.runs += runs
        self.problems += program_problems(out)
        self.seconds += out.seconds
        self.written += out.result().get("bytes", 0)
        self.engine += out.total("engine_bytes")
        self.passed_through += out.total("passthrough_bytes")
        self.logs += len(out.logs)
        self.last = out

    @property
    def lossy(self) -> list[Run]:
        return [run for run in self.runs if run.lost]

    def line(self, case: Case) -> str:
        most = max((run.lost for run in self.runs), default=0)
        by = f"; engine {self.engine}, passed through {self.passed_through} bytes"
        return (
            f"{case.name}: {len(self.lossy)} of {len(self.runs)} runs lost bytes, at most {most}"
            f"{'' if case.served is None else by}; {self.seconds:.0f} s"
        )


def jobs(runs: int) -> Iterator[tuple[int, int]]:
    """The first file and the number of files of each job."""
    for first in range(0, runs, FILES_IN_A_JOB):
        yield first, min(FILES_IN_A_JOB, runs - first)


def control_problems(tally: Tally) -> list[str]:
    """Every call said that all went well, and yet bytes are lost."""
    if tally.lossy:
        return tally.problems
    return [*tally.problems, f"none of {len(tally.runs)} runs lost a byte: the test shows nothing"]


def case_problems(case: Case, tally: Tally, runs: int) -> list[str]:
    """Nothing is lost, and every byte is accounted for by who wrote it."""
    problems = tally.problems + [run.words() for run in tally.lossy]
    if len(tally.runs) != runs:
        problems.append(f"{len(tally.runs)} files are there of {runs}")
    engine = int(tally.written * (case.served or 0))
    if (tally.engine, tally.passed_through) != (engine, tally.written - engine):
        problems.append(
            f"of {tally.written} bytes the engine wrote {tally.engine}, not {engine}, and "
            f"{tally.passed_through} were passed through: {tally.logs} logs"
        )
    return problems


def run_case(suite: Suite, bench: Bench, case: Case, runs: int) -> None:
    tally = Tally()
    with nodes(bench) as here:
        for first, files in jobs(runs):
            out = here.write(case, first, files)
            tally.add(out, here.take_runs(case, first, files) if not out.hung else [])
            if out.hung or (case is CONTROL and tally.lossy):
                break
    print(tally.line(case), flush=True)
    found = control_problems(tally) if case is CONTROL else case_problems(case, tally, runs)
    suite.check(case.name, found, tally.last)


def main() -> int:
    parser = plain_arguments(__doc__)
    parser.add_argument("--runs", type=int, default=10, help="files of each case")
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPI)
    suite = Suite("nfs clients")
    for case in (CONTROL, *CASES):
        if options.only not in case.name:
            continue
        try:
            asked = RUNS_TO_LOSE_IN if case is CONTROL else options.runs
            run_case(suite, bench, case, case.runs(asked))
        except NotHereError as missing:
            suite.skip(case.name, str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
