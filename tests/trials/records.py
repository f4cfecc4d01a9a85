"""A running job of records.cpp: what its ranks note, and what is in its file afterwards."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from run_mpi import Bench, Outcome

RANKS = {"openmpi": 3, "mpich": 2}  # MPICH polls: more ranks than cores are slow
START_S = 15.0
# records.cpp: Shape (ranks, bytes, slots, step), then pid, begun, accepted, synced.
PROGRESS = struct.Struct("<8q")


@dataclass(frozen=True)
class Job:
    """One job. Its ranks note in ``directory`` what they have done."""

    bench: Bench
    directory: Path

    @property
    def ranks(self) -> int:
        return RANKS[self.bench.mpi.family]

    def progress(self, rank: int) -> tuple[int, int, int]:
        """The rank's process, and how many records it has begun and has synced; zeros before it has
        opened the file."""
        with suppress(OSError), (self.directory / f"progress.{rank}").open("rb") as file:
            data = file.read(PROGRESS.size)
            if len(data) == PROGRESS.size:
                _, _, _, _, pid, begun, _, synced = PROGRESS.unpack(data)
                return pid, begun, synced
        return 0, 0, 0

    def pids(self) -> Iterator[int]:
        return (self.progress(rank)[0] for rank in range(self.ranks))

    def wait_until_all_write(self, job: Future[Outcome], *, synced: bool = False) -> bool:
        """Or until a sync has promised something to each of them."""
        what = 2 if synced else 1
        end = time.monotonic() + START_S
        while not all(self.progress(rank)[what] > 0 for rank in range(self.ranks)):
            if job.done() or time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def judge(self, died_s: float, *words: str) -> dict[str, float]:
        program = [str(self.bench.program("records")), f"--dir={self.directory}"]
        program += [f"--ranks={self.ranks}", f"--died-s={died_s}", *words]
        env = os.environ | self.bench.mpi.environment()
        done = subprocess.run(program, env=env, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout))


@dataclass
class Figures:
    """What trials came to, together."""

    trials: int = 0
    synced: int = 0  # records
    accepted: int = 0
    lost: list[int] = field(default_factory=list)  # bytes

    def add(self, verdict: dict[str, float]) -> None:
        self.trials += 1
        self.synced += int(verdict["synced"])
        self.accepted += int(verdict["accepted"])
        self.lost.append(int(verdict["lost"]))

    def line(self) -> str:
        lost = sorted(self.lost)
        return (
            f"{self.trials} trials: {self.accepted} records accepted, {self.synced} synced; "
            f"{sum(n > 0 for n in lost)} trials lost bytes, median {lost[len(lost) // 2]}, "
            f"most {lost[-1]}"
        )
