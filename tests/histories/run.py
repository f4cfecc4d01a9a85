#!/usr/bin/env python3
"""Random histories of MPI-IO calls, under Penstock and by the MPI library alone.

Writes, reads, seeks, syncs, sizes, views, collective and independent, two files, two handles on one
file, of all ranks or each rank's own. What the standard says of each is worked out by a model
(model.hpp); the library alone says whether the model is right, and then Penstock has to be: every
byte by the engine, none passed on.
Between two nodes too, which MPICH can pretend, by each way in which bytes move there.
A history that fails is cut until nothing more can be left out, printed, and kept in
BUILD/histories, from where `--history FILE` plays it again.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from pretended import PROGRESS, can_pretend, progress_problems, two_nodes_by
from run_mpi import (
    Bench,
    Outcome,
    Penstock,
    Suite,
    arguments,
    launch,
    program_problems,
    read_problems,
    served_problems,
)
from share import Share, add_share
from shrink import Lines, shrink

RELAXED = {"PENSTOCK_VISIBILITY": "relaxed"}
SMALL_PAGES = {"PENSTOCK_WRITE_BEHIND_PAGE": "4KiB", "PENSTOCK_WRITE_BEHIND_LIMIT": "1MiB"}
# Four of them are all there are, so that they make room for each other.
FEW_PAGES = {"PENSTOCK_WRITE_BEHIND_PAGE": "1MiB", "PENSTOCK_WRITE_BEHIND_LIMIT": "1MiB"}
WAYS = {
    "deferred": Penstock("auto", environment=SMALL_PAGES),
    "deferred, relaxed": Penstock("auto", environment=RELAXED | SMALL_PAGES),
    "deferred, relaxed, few pages": Penstock("auto", environment=RELAXED | FEW_PAGES),
    "at once": Penstock("auto", environment={"PENSTOCK_WRITE_BEHIND": "off"}),
    "two_phase, relaxed": Penstock(
        "two_phase(writers=2, cycle=4KiB) + shm", environment=RELAXED | SMALL_PAGES
    ),
    "cyclic, relaxed": Penstock(
        "cyclic(writers=2, stripe=12KiB, cycle=4KiB) + messages", environment=RELAXED | SMALL_PAGES
    ),
    "staged(limit=0)": Penstock("auto + shm + pwrite + none + staged(limit=0)"),
}
TWO_NODES = {
    f"deferred, two nodes by {progress}": Penstock(
        "auto",
        environment=RELAXED
        | SMALL_PAGES
        | {"PENSTOCK_WRITE_BEHIND_SUBBUFFER": "4KiB"}
        | two_nodes_by(progress),
    )
    for progress in PROGRESS
}
QUICK = ("deferred", "deferred, relaxed", "deferred, relaxed, few pages")
QUICK_NODES = (2, 3)  # ranks; with three, two share a node
# Seeds by ranks. More ranks than cores are slow under MPICH, which polls.
SEEDS = {"mpich": {1: 35, 2: 46, 3: 9, 4: 5}, "openmpi": {1: 20, 2: 30, 3: 30, 4: 20}}
# A library that is wrong alone in nearly every history, and how.
WRONG = {"impi-abi": "Intel MPI 2021.19 takes MPI_SEEK_SET of the standard ABI for MPI_SEEK_CUR"}
BRIEF = {1: 6, 2: 6, 3: 6}
CHUNK = 50  # seeds of one launch
MOST_SHRUNK = 2  # of a launch: the others are named
SHRINK_S = 90.0


@dataclass(frozen=True)
class Job:
    """How histories are played: on how many ranks, by the library alone or under Penstock."""

    bench: Bench
    ranks: int
    way: str  # empty: alone

    def play(self, *words: str, timeout_s: float = 120) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="penstock-histories-") as directory:
            program = [str(self.bench.program("histories")), f"--dir={directory}", *words]
            alone = not self.way
            if alone:
                program.append("--holes=undefined")
            return launch(
                self.bench,
                self.ranks,
                program,
                penstock=None if alone else (WAYS | TWO_NODES)[self.way],
                mpi_options=self.bench.mpi.sound_options() if alone else (),
                timeout_s=timeout_s,
            )

    def text_of(self, seed: int) -> Lines:
        return Job(self.bench, self.ranks, "").play(f"--print={seed}").output.splitlines()


def problems_of(job: Job, out: Outcome) -> list[str]:
    problems = program_problems(out)
    return problems if not job.way else problems + served_problems(out, None) + read_problems(out)


def deferral_problems(job: Job, out: Outcome) -> list[str]:
    """Seeds of a way that defers have to have brought bytes into pages."""
    files = [file for log in out.logs for file in log["files"]]
    deferred = sum(file["traffic"]["shared_bytes"] for file in files)
    wrong = job.way.startswith("deferred") and not out.hung and deferred == 0
    return ["no byte went behind"] if wrong else []


def moved_problems(job: Job, out: Outcome) -> list[str]:
    """Between nodes bytes have to have moved, and as they were to."""
    if job.way not in TWO_NODES or out.hung:
        return []
    wanted = TWO_NODES[job.way].environment["PENSTOCK_WRITE_BEHIND_PROGRESS"]
    return progress_problems(out, wanted)


def failed_seeds(out: Outcome) -> list[int]:
    """Those that say so; where the job broke off, the one that it was in."""
    seeds = {int(n) for n in re.findall(r"^FAIL .*?, seed (\d+): ", out.output, re.MULTILINE)}
    begun = re.findall(r"^begin seed (\d+)$", out.output, re.MULTILINE)
    if begun and not out.result():
        seeds.add(int(begun[-1]))
    return sorted(seeds)


# ---- a failure, cut short ----


def fails(job: Job, history: Lines, repeat: int) -> bool:
    """Repeated, because some failures need an accident of time. A history that opens no file leaves
    no log, which is no failure.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".history") as file:
        file.write("\n".join(history) + "\n")
        file.flush()
        ranks = int(history[0].split()[1])
        words = [f"--history={file.name}", f"--repeat={repeat}"]
        job = Job(job.bench, ranks, job.way)
        out = job.play(*words, timeout_s=20)
    problems = problems_of(job, out) if out.logs else program_problems(out)
    return bool(problems)


def shortest(job: Job, seed: int) -> tuple[Lines, int]:
    """And how often it has to be repeated to fail; 0 where it did not fail again."""
    history = job.text_of(seed)
    repeat = next((n for n in (1, 10, 100) if fails(job, history, n)), 0)
    if repeat == 0:
        return history, 0
    end = time.monotonic() + SHRINK_S
    return (
        shrink(history, lambda h: fails(job, h, repeat), lambda: time.monotonic() < end),
        repeat,
    )


def keep_shortest(job: Job, seed: int) -> list[str]:
    """Prints it, keeps it, and says where."""
    history, repeat = shortest(job, seed)
    name = re.sub(r"\W+", "-", f"{job.bench.mpi.name}-{job.way or 'alone'}-{job.ranks}-{seed}")
    path = job.bench.build / "histories" / f"{name}.history"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(history) + "\n")
    again = f"repeated {repeat} times" if repeat else "which did not fail again, uncut"
    return [f"seed {seed}, {again}, kept in {path}:", *("  " + line for line in history)]


# ---- the suite ----


def run_seeds(job: Job, suite: Suite, first: int, count: int, *, uncut: bool) -> None:
    case = f"{job.way or 'alone'}, {job.ranks} ranks, seeds {first} to {first + count - 1}"
    out = job.play(f"--first-seed={first}", f"--seeds={count}")
    problems = problems_of(job, out) + deferral_problems(job, out) + moved_problems(job, out)
    wrong = failed_seeds(out) if problems else []
    if not job.way and problems and 2 * len(wrong) < count and not out.hung:
        suite.skip(case, f"the library alone is wrong in seeds {wrong}", fails_alone=True)
        return
    for seed in [] if uncut else wrong[:MOST_SHRUNK]:
        problems += keep_shortest(job, seed)
    suite.check(case, problems, out)


def run_history(job: Job, suite: Suite, path: Path, repeat: int) -> None:
    out = job.play(f"--history={path}", f"--repeat={repeat}")
    suite.check(f"{job.way or 'alone'} {path.name}", problems_of(job, out), out)


def ranks_of(path: Path) -> int:
    return int(path.read_text().split()[1])


def ways(names: Sequence[str], only: str) -> list[str]:
    return [way for way in ("", *names) if only in (way or "alone")]


def dealt(
    ranks: Sequence[int], names: Sequence[str], only: str, share: Share
) -> Iterator[tuple[int, str]]:
    """On how many ranks and in which way: each part plays on every number and in every way."""
    for number, count in enumerate(ranks):
        for place, way in enumerate(ways(names, only)):
            if share.takes(number, place):
                yield count, way


def between_nodes(only: str, first: int, many: int, *, whole: bool) -> Iterator[tuple[str, range]]:
    """The ways between nodes, and each one's seeds: all of them, or its part. One library runs all
    parts: no other could run what it leaves out.
    """
    parts = 1 if whole else len(TWO_NODES)
    for place, way in enumerate(TWO_NODES):
        part = place % parts
        mine = range(first + part * many // parts, first + (part + 1) * many // parts)
        if mine and only in way:
            yield way, mine


def play_seeds(job: Job, suite: Suite, seeds: range, *, uncut: bool) -> None:
    """Some at a time."""
    for first in range(seeds.start, seeds.stop, CHUNK):
        run_seeds(job, suite, first, min(CHUNK, seeds.stop - first), uncut=uncut)


def seeds_by_ranks(bench: Bench, options: argparse.Namespace) -> dict[int, int]:
    """How many, on each number of ranks."""
    seeds = BRIEF if options.brief else SEEDS[bench.mpi.family]
    return {
        ranks: options.seeds or many * (10 if options.full else 1)
        for ranks, many in seeds.items()
        if options.ranks in (None, ranks)
    }


def play_all(bench: Bench, suite: Suite, names: Sequence[str], options: argparse.Namespace) -> None:
    """Seeds in every way that is asked for, on every number of ranks."""
    asked = seeds_by_ranks(bench, options)
    for ranks, way in dealt(list(asked), names, options.only, options.share):
        mine = range(options.first_seed, options.first_seed + asked[ranks])
        play_seeds(Job(bench, ranks, way), suite, mine, uncut=options.uncut)


def play_between_nodes(bench: Bench, suite: Suite, options: argparse.Namespace) -> None:
    """Likewise on two nodes."""
    whole = bool(options.full or options.seeds)
    for ranks, many in seeds_by_ranks(bench, options).items():
        if ranks == 1 or not (whole or ranks in QUICK_NODES):
            continue
        for way, mine in between_nodes(options.only, options.first_seed, many, whole=whole):
            play_seeds(Job(bench, ranks, way), suite, mine, uncut=options.uncut)


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--seeds", type=int, help="how many, for each number of ranks")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, help="only on so many")
    parser.add_argument("--full", action="store_true", help="ten times the seeds, in every way")
    parser.add_argument("--brief", action="store_true", help="few seeds, in one way")
    parser.add_argument("--uncut", action="store_true", help="do not shorten what fails")
    parser.add_argument("--history", type=Path, help="play this one instead of seeds")
    parser.add_argument("--repeat", type=int, default=1, help="how often; with --history")
    add_share(parser)
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"histories {options.mpi}", options.mpi, options.record)
    if options.mpi in WRONG and not options.alone and not options.history:
        suite.skip("all histories", WRONG[options.mpi])
        return suite.finish()
    names = list(WAYS) if options.full or options.only or options.history else QUICK
    names = [] if options.alone else names[:1] if options.brief else names
    nodes = TWO_NODES if can_pretend(bench) and not options.alone else {}
    if not options.history:
        play_all(bench, suite, names, options)
        if nodes and not options.brief:
            play_between_nodes(bench, suite, options)
        return suite.finish()
    for way in ways([*names, *nodes], options.only):
        job = Job(bench, ranks_of(options.history), way)
        run_history(job, suite, options.history.resolve(), options.repeat)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
