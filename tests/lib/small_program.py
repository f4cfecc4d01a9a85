"""For benchmarks that are one C program: compiles it, runs it under Penstock or alone by turns, and
reads the line of JSON that its rank 0 prints."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpis import MPIS

Sample = dict[str, float]


@dataclass(frozen=True)
class Side:
    """The MPI library alone, or a build of Penstock."""

    name: str
    build: Path | None

    def words(self, mpi: str) -> list[str]:
        """Those before the program."""
        if self.build is None:
            return []
        words = under_penstock(self.build, "auto")
        return [words[0], "--mpi", mpi, *words[1:]]


def sides(old: Path | None, new: Path) -> list[Side]:
    builds = {"alone": None, "old": old, "new": new}
    return [Side(name, b) for name, b in builds.items() if name == "alone" or b is not None]


def by_turns(
    of: Sequence[Side], rounds: int, sample: Callable[[Side], Sample]
) -> dict[Side, list[Sample]]:
    """In another order each round: what a side leaves to the disk is the next one's burden."""
    taken: dict[Side, list[Sample]] = {side: [] for side in of}
    for order in itertools.islice(itertools.cycle(itertools.permutations(of)), rounds):
        for side in order:
            taken[side].append(sample(side))
    return taken


def spread(samples: Sequence[Sample], key: str, digits: int = 1) -> list[float]:
    """Median, smallest and largest."""
    values = [s[key] for s in samples]
    return [round(x, digits) for x in (statistics.median(values), min(values), max(values))]


def compiled(mpi: str, source: Path, directory: Path) -> Path:
    """The program of one source file, by the compiler wrapper of an MPI library."""
    program = directory / source.stem
    subprocess.run([f"mpicc.{mpi}", "-O2", "-o", program, source], check=True)
    return program


def under_penstock(build: Path, method: str) -> list[str]:
    """The words before a program that put it under Penstock, with no way past it."""
    found = sorted(build.resolve().rglob("penstock-exec"))
    if not found:
        print(
            f"{build} has no penstock-exec: make it by `make build`, or name another",
            file=sys.stderr,
        )
        sys.exit(2)
    words = [str(found[0]), "--all-ranks", "--quiet", "--require", "--no-log"]
    return [*words, "--method", method, "--"]


def told(mpi: str, command: Sequence[str], timeout_s: float = 300) -> Sample:
    """Run a job and return what it printed; a failure ends the benchmark with its output."""
    environment = os.environ | MPIS[mpi].environment()
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=timeout_s
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    line: Sample = json.loads(done.stdout)
    return line
