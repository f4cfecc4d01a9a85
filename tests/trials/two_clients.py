#!/usr/bin/env python3
"""Two NFS clients write records of 47001 bytes by turns: what is lost, alone and under Penstock.

A page of the file then often holds bytes of both clients. Each has it in its own cache, and without
locks the one that comes last writes zeros over the other's bytes: write, fsync and close have said
success by then. The clients are two kernels (tests/fs/nfs.sh), the judge reads the server's file.

- alone: the MPI library, told to lock nothing ("ufs:"), loses bytes. Where it does not in any run,
  this machine cannot show what the rest is worth.
- collective and independent writes under Penstock: nothing is lost. What Penstock does not take
  over it says, with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run_mpi import SKIPPED, Bench, Suite, arguments

NFS = Path(__file__).resolve().parent.parent / "fs" / "nfs.sh"
RANKS = 2  # one on each node
RECORD_BYTES = 47001
RECORDS = 40  # of each rank
# Exported to every rank: where its node's own directory is, and the served file.
NOTES, SHARED = "/mnt/own", "/mnt/nfs"


@dataclass(frozen=True)
class Way:
    """How the records are written."""

    name: str
    served: bool
    collective: bool
    prefix: str = ""


WAYS = [
    Way("alone without locks", served=False, collective=False, prefix="ufs:"),
    Way("collective", served=True, collective=True),
    Way("independent", served=True, collective=False),
]


@dataclass
class Tally:
    """Runs of one way."""

    runs: int = 0
    runs_with_losses: int = 0
    bytes_lost: int = 0
    engine_bytes: int = 0
    passed_bytes: int = 0
    reasons: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def line(self, way: Way) -> str:
        text = f"{way.name}: {self.runs} runs, {self.runs_with_losses} lost {self.bytes_lost} bytes"
        if way.served:
            text += f"; by the engine {self.engine_bytes}, passed on {self.passed_bytes}"
        return text + (f" ({'; '.join(sorted(self.reasons))})" if self.reasons else "")


@dataclass(frozen=True)
class Clients:
    """The server and its two nodes, below a directory."""

    bench: Bench
    directory: Path

    def nfs(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(NFS), verb, str(self.directory), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)

    def own(self, rank: int) -> Path:
        return self.directory / f"node.{rank + 1}"

    def run(self, way: Way, tally: Tally) -> None:
        """One file, written and judged."""
        name = f"run-{tally.runs}"
        program = [str(self.bench.program("records")), f"--dir={NOTES}", f"--records={RECORDS}"]
        program += [f"--file={way.prefix}{SHARED}/{name}", f"--bytes={RECORD_BYTES}"]
        program += [f"--slots={RECORDS}", f"--collective={int(way.collective)}"]
        if way.served:
            serve = [str(self.bench.penstock_exec), "--method", "auto", "--log-dir", NOTES, "--"]
            program = [*serve, *program]
        done = self.nfs("run", str(RANKS), *program)
        tally.runs += 1
        if done.returncode != 0:
            tally.problems.append(f"{name} ended with {done.returncode}: {done.stderr[-300:]}")
            return
        self.read_logs(way, tally)
        lost = self.judge(self.directory / "export" / name)
        tally.runs_with_losses += lost > 0
        tally.bytes_lost += lost

    def judge(self, file: Path) -> int:
        with tempfile.TemporaryDirectory(prefix="penstock-notes-") as notes:
            for rank in range(RANKS):
                (self.own(rank) / f"progress.{rank}").rename(Path(notes) / f"progress.{rank}")
            program = [str(self.bench.program("records")), f"--dir={notes}", f"--file={file}"]
            program += [f"--ranks={RANKS}", f"--died-s={time.monotonic()}"]
            env = os.environ | self.bench.mpi.environment()
            done = subprocess.run(program, env=env, capture_output=True, text=True, check=True)
        file.unlink()
        verdict = json.loads(done.stdout)
        return int(verdict["missing"] + verdict["damaged"])

    def read_logs(self, way: Way, tally: Tally) -> None:
        logs = list(self.own(0).glob("penstock-*.json"))
        if way.served and not logs:
            tally.problems.append(f"run-{tally.runs} left no job log")
        for path in logs:
            log = json.loads(path.read_text())
            path.unlink()
            tally.engine_bytes += log["totals"]["engine_bytes"]
            tally.passed_bytes += log["totals"]["passthrough_bytes"]
            tally.reasons |= set(log["totals"]["degraded"])


def problems_of(way: Way, tally: Tally) -> list[str]:
    problems = list(tally.problems)
    if not way.served:
        return problems
    if tally.engine_bytes and tally.runs_with_losses:
        problems.append(f"{tally.runs_with_losses} of {tally.runs} runs lost bytes")
    if tally.engine_bytes + tally.passed_bytes != tally.runs * RANKS * RECORDS * RECORD_BYTES:
        problems.append("the log's bytes are not those that were written")
    if tally.passed_bytes and not tally.reasons:
        problems.append(f"{tally.passed_bytes} bytes passed on without a reason")
    if tally.passed_bytes and way.collective:
        problems.append(f"{tally.passed_bytes} bytes of collective writes passed on")
    return problems


def run_way(suite: Suite, clients: Clients, way: Way, runs: int) -> None:
    tally = Tally()
    for _ in range(runs):
        clients.run(way, tally)
    print(tally.line(way), flush=True)
    if not way.served and tally.runs_with_losses == 0 and not tally.problems:
        suite.skip(way.name, f"in {runs} runs nothing was lost", fails_alone=True)
        return
    suite.check(way.name, problems_of(way, tally))


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--runs", type=int, default=10, help="of each way")
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"two clients {options.mpi}", options.mpi, options.record)
    directory = Path(tempfile.mkdtemp(prefix="penstock-nfs-"))
    clients = Clients(bench, directory)
    try:
        started = clients.nfs("start", "2")
        for way in WAYS:
            if options.only not in way.name:
                continue
            if started.returncode == SKIPPED:
                suite.skip(way.name, started.stderr.strip())
            elif started.returncode != 0:
                suite.check(way.name, [f"no NFS: {started.stderr.strip()}"])
            else:
                run_way(suite, clients, way, options.runs)
    finally:
        clients.nfs("stop")
        shutil.rmtree(directory)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
