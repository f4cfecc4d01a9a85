#!/usr/bin/env python3
"""Ranks killed at random moments: what was synced is in the file, and losses are within bounds.

Each trial starts records.cpp under Penstock, with independent writes that are deferred, and kills
one rank, or all, with SIGKILL. Then plain reads compare the file with what the ranks had noted:

- what a sync had returned of is there, intact;
- every other byte is one that the program wrote there, or a hole;
- what writes had accepted and is lost is not more than `write_behind_limit` for each rank, and no
  older than `write_behind_seconds`;
- the job ends.

With `--nodes 2` each rank is on a node of its own, as MPICH can pretend, so that bytes go to pages
of the other one, in each of the ways in turn: what waits to be moved, and what has moved and is in
the owner's memory, is lost within the same bounds.

A machine that loses power is another matter (crashed.py): what reached only the page cache survives
these kills.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from pretended import PROGRESS, two_nodes_by
from records import RANKS, START_S, Figures, Job
from run_mpi import Bench, Outcome, Penstock, Suite, arguments, launch

MIB = 1 << 20
LIMIT_BYTES = MIB  # the least that can be asked for
SECONDS = 1
# The I/O thread looks twice a second, and may have to wait for a core.
SLACK_S = 1.0
BEHIND = {
    "PENSTOCK_WRITE_BEHIND_PAGE": "64KiB",
    "PENSTOCK_WRITE_BEHIND_SECONDS": str(SECONDS),
}
SLOW_ONE_IN = 12  # trials that last long enough for the bound in seconds to matter


@dataclass
class FiguresWithAges(Figures):
    """And how long the oldest of what was lost had been accepted."""

    oldest_lost_s: list[float] = field(default_factory=list)

    def add(self, verdict: dict[str, float]) -> None:
        super().add(verdict)
        self.oldest_lost_s.append(verdict["oldest_lost_s"])

    def line(self) -> str:
        return f"{super().line()}, oldest {max(self.oldest_lost_s):.2f} s"


@dataclass(frozen=True)
class Trial(Job):
    """One job and when it is killed."""

    number: int
    dice: random.Random
    nodes: int

    @property
    def moves_by(self) -> str:
        """Slow ones come in each way."""
        if self.nodes == 1:
            return ""
        return list(PROGRESS)[(self.number + self.number // SLOW_ONE_IN) % len(PROGRESS)]

    @property
    def name(self) -> str:
        by = f", by {self.moves_by}" if self.moves_by else ""
        return f"trial {self.number}{by}"

    @property
    def limit_bytes(self) -> int:
        """For each rank. What is to leave for its age alone needs room for the whole file, in the
        half of it that is for pages."""
        return 4 * LIMIT_BYTES if self.is_slow and self.nodes > 1 else LIMIT_BYTES

    @property
    def environment(self) -> dict[str, str]:
        limit = {"PENSTOCK_WRITE_BEHIND_LIMIT": str(self.limit_bytes)}
        return BEHIND | limit | (two_nodes_by(self.moves_by) if self.nodes > 1 else {})

    @property
    def is_slow(self) -> bool:
        return self.number % SLOW_ONE_IN == SLOW_ONE_IN - 1

    def start(self) -> Outcome:
        pause_us = 40000 if self.is_slow else self.dice.choice([0, 0, 500])
        # Where nothing is synced and no page becomes full, only the bound in seconds brings bytes
        # into the file.
        sync_every = 1 << 40 if self.is_slow else self.dice.choice([40, 400, 4000])
        program = [str(self.bench.program("records")), f"--dir={self.directory}"]
        program += [f"--seed={self.number}", f"--pause-us={pause_us}", f"--sync-every={sync_every}"]
        program += [f"--step={601 if self.is_slow else 1}"]
        how = Penstock("auto", environment=self.environment)
        return launch(self.bench, self.ranks, program, penstock=how, timeout_s=START_S + 15)

    def kill(self) -> float:
        """When. As soon as one is gone the launcher ends the others, sometimes before this does."""
        pids = list(self.pids())
        first, *others = pids if self.dice.random() < 0.5 else [self.dice.choice(pids)]
        os.kill(first, signal.SIGKILL)
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return time.monotonic()


def problems_of(trial: Trial, out: Outcome, verdict: dict[str, float]) -> list[str]:
    problems = ["the job did not end"] if out.hung else []
    if out.code == 0:
        problems.append("the launcher says that all is well")
    for what in ("missing", "damaged"):
        if verdict[what]:
            problems.append(f"{int(verdict[what])} bytes {what}")
    allowed = trial.limit_bytes * trial.ranks
    if verdict["lost"] > allowed:
        problems.append(f"{int(verdict['lost'])} bytes lost, {allowed} allowed")
    if verdict["oldest_lost_s"] > SECONDS + SLACK_S:
        problems.append(f"lost bytes were accepted {verdict['oldest_lost_s']} s before")
    return problems


def run_whole(suite: Suite, bench: Bench, progress: str) -> None:
    """A job that is not killed: only that one's log says how its bytes moved, and that they did."""
    with tempfile.TemporaryDirectory(prefix="penstock-killed-") as directory:
        program = [str(bench.program("records")), f"--dir={directory}", "--records=500"]
        how = Penstock("auto", environment=BEHIND | two_nodes_by(progress))
        out = launch(bench, RANKS[bench.mpi.family], program, penstock=how)
    files = [file for log in out.logs for file in log["files"]]
    told = [(file["write_behind_progress"], file["traffic"]["messages"] > 0) for file in files]
    problems = [] if told == [(progress, True)] else [f"how files moved, and whether: {told}"]
    suite.check(f"bytes move by {progress}", problems, out)


def run_trial(
    suite: Suite, trial: Trial, pool: ThreadPoolExecutor, figures: FiguresWithAges
) -> None:
    job = pool.submit(trial.start)
    case = trial.name
    if not trial.wait_until_all_write(job):
        suite.check(case, ["not all ranks began to write"], job.result())
        return
    time.sleep(trial.dice.uniform(1.0, 2.6) if trial.is_slow else trial.dice.uniform(0, 0.25))
    if job.done():
        suite.check(case, ["the job ended before it was killed"], job.result())
        return
    died_s = trial.kill()
    out = job.result()
    verdict = trial.judge(died_s)
    figures.add(verdict)
    suite.check(case, problems_of(trial, out, verdict), out)


TELLING = 20  # trials of which it would be one in a million that none loses anything


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first trial")
    parser.add_argument("--nodes", type=int, default=1, choices=[1, 2], help="2: needs --mpi mpich")
    options = parser.parse_args()
    if options.nodes > 1 and options.mpi != "mpich":
        parser.error(f"--nodes {options.nodes} needs --mpi mpich, got --mpi {options.mpi}")
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"killed {options.mpi}", options.mpi, options.record)
    figures = FiguresWithAges()
    for progress in PROGRESS if options.nodes > 1 else ():
        run_whole(suite, bench, progress)
    with ThreadPoolExecutor(1) as pool:
        for number in range(options.seed, options.seed + options.trials):
            with tempfile.TemporaryDirectory(prefix="penstock-killed-") as directory:
                dice = random.Random(number)  # noqa: S311 - moments, not secrets
                trial = Trial(bench, Path(directory), number, dice, options.nodes)
                run_trial(suite, trial, pool, figures)
    if figures.trials:
        print(figures.line())
        # Where nothing is ever lost nothing was deferred, and the trials show nothing. About half
        # of them lose something; a few trials may all miss it.
        deferred = any(figures.lost) or figures.trials < TELLING
        problems = [] if deferred else [f"none of {figures.trials} trials lost anything"]
        problems += [] if figures.synced else ["nothing was synced"]
        suite.check("the trials show something", problems)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
