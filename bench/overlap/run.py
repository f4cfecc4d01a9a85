#!/usr/bin/env python3
"""Do non-blocking and split collective writes overlap with computing? On a disk of a known speed.

A program writes v bytes while it computes for c seconds; the disk takes b bytes a second. Alone
the two take c + v/b; overlapped, max(c, v/b). The disk is `tests/fs/slowdisk.sh`'s, and every 4 MiB
are pushed to it (`sync every`), so that the page cache does not hide it. b is the rate that the
disk is held to, or what `write_all` without any computing reaches, if that is more: a build that
writes more slowly than the disk takes is not its own measure.

    bench/overlap/run.py --build build/release --mpi mpich [--bound 1.15]
    bench/overlap/run.py --build build/release --nodes 2     a rank each, with a network between

Five cases (CASES): a rank's bytes of a step in one piece; by turns, in small blocks; in one piece
where not all that is written fits into memory, so that calls wait for room; and in one piece by
Penstock's default, which pushes nothing by itself every 4 MiB. With memory for a
step or more the disk has work for as long as the program computes: the bound is max(c, v/b). With L
of the V bytes that a step writes each call waits until V - L are written: w = (1 - L/V) * v/b in
all, and the bound is max(c + w, v/b). That is asked of split writes, which wait for room with less
than a step alone, since the bytes of each step are in the file at its end. It is not asked of
`iwrite_all`: a rank that is alone on its node writes there itself where it waits for room, and may
wait for as much as is pushed at once. Buffers are smaller where memory is: it is some of them.

Between nodes small blocks of `iwrite_all` move by the I/O thread (`write_behind_progress=thread`):
by the program's calls they would wait for its sync, and there is nothing to overlap with behind it.

Prints a line for each way, or one of JSON by --json: the median of the whole, and that over
max(c + w, v/b). `write_all` waits for the disk in each call, and is there to compare. Exit: 0, 1 a
median is above the bound, 2 wrong usage, 77 no disk of known speed here, or no nodes.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import small_program  # noqa: E402
from mpis import MPIS  # noqa: E402

SKIPPED = 77
SLOWDISK = ROOT / "tests" / "fs" / "slowdisk.sh"
NODES = ROOT / "tests" / "fs" / "nodes.sh"
MIB = 1 << 20
PLENTY = 256 * MIB  # of memory, for each process
OVERLAPPING = ("iwrite_all", "split")
SHARES = (0.5, 1.0, 1.5)  # c of v/b


@dataclass(frozen=True)
class Case:
    """How the ranks' bytes lie in the file, and for how much of a step there is memory."""

    name: str
    ways: tuple[str, ...] = OVERLAPPING
    block: int = 0  # bytes that the ranks write by turns; 0: each has its share of a step at once
    memory: float | None = None  # None: for all
    default: bool = False  # Penstock's own method, to which nobody has said anything


CASES = (
    Case("one piece", ("write_all", *OVERLAPPING)),
    Case("by turns", block=1024),
    Case("default", default=True),
    Case("1.1 steps", ("iwrite_all",), memory=1.1),
    Case("0.6 steps", ("split",), memory=0.6),
)


@dataclass(frozen=True)
class Place:
    """Where it runs: the slow disk, and the words that start the ranks."""

    disk: Path
    launch: list[str]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=1, help="by tests/fs/nodes.sh; MPICH")
    parser.add_argument("--rate", type=int, default=40 * MIB, help="of the disk, bytes per second")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--step-bytes", type=int, default=20 * MIB, help="of all ranks together")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--case", choices=[c.name for c in CASES], help="this one alone")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each way")
    parser.add_argument("--bound", type=float, default=1.15, help="times max(c + w, v/b)")
    args = parser.parse_args()
    for name in ("ranks", "nodes", "rate", "steps", "step_bytes", "repeat"):
        if (value := getattr(args, name)) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    if args.nodes > 1 and args.mpi != "mpich":
        parser.error(f"--nodes {args.nodes} needs --mpi mpich, got --mpi {args.mpi}")
    return args


def limit_of(args: argparse.Namespace, case: Case, how: str) -> int:
    """Of a process's memory for what is not yet written; 0: calls return when all is."""
    if how not in OVERLAPPING:
        return 0
    if case.memory is None:
        return PLENTY
    step_bytes: float = args.step_bytes / args.ranks
    return math.ceil(case.memory * step_bytes / MIB) * MIB


def least_s(
    args: argparse.Namespace, case: Case, how: str, compute_s: float, write_s: float
) -> float:
    """What the whole takes where writing overlaps as far as there is memory: max(c + w, v/b)."""
    short = 1 - limit_of(args, case, how) * args.ranks / args.step_bytes
    waits_s = max(0.0, short) * write_s if how in OVERLAPPING else 0.0
    return max(compute_s + waits_s, write_s)


def settings(args: argparse.Namespace, case: Case, limit: int) -> list[str]:
    """The words before Penstock's. Of several nodes half of the limit is for what moves."""
    words = []
    if case.memory is not None:
        words.append(f"PENSTOCK_WRITE_BEHIND_LIMIT={limit * min(args.nodes, 2)}")
    if case.block and args.nodes > 1:
        words.append("PENSTOCK_WRITE_BEHIND_PROGRESS=thread")
        words.append("MPIR_CVAR_DEFAULT_THREAD_LEVEL=MPI_THREAD_MULTIPLE")
    return ["env", *words] if words else []


def one_run(
    args: argparse.Namespace, place: Place, program: Path, case: Case, how: str, compute_s: float
) -> dict[str, float]:
    """Seconds, of a job that computes for so many in each step."""
    limit = limit_of(args, case, how)
    cycle = "4MiB" if case.memory is None else "1MiB"
    method = f"two_phase(cycle={cycle}) + messages + pwrite + every=4MiB + staged(limit={limit})"
    if case.default:
        method = "auto"
    target = place.disk / "mnt" / "file.dat"
    target.unlink(missing_ok=True)
    words = [program, target, how, args.steps, args.step_bytes // args.ranks, compute_s, case.block]
    command = [str(SLOWDISK), "run", str(place.disk), "--", *place.launch]
    command += settings(args, case, limit)
    command += [*small_program.under_penstock(args.build, method), *map(str, words)]
    return small_program.told(args.mpi, command)


def words_of(record: dict[str, Any]) -> str:
    """A record, for people: seconds, and what the bound is about."""
    seconds = record["seconds"]
    said = f"{record['case']:<9}  {record['way']:<10} c {record['c']:6.3f} s"
    said += f"  {statistics.median(seconds):6.3f} s [{min(seconds):.3f}-{max(seconds):.3f}]"
    if record["of_max"] is None:
        return said
    verdict = {True: "holds", False: "FAILS", None: "to compare"}[record["holds"]]
    return f"{said}  {record['of_max']:.3f} of max(c + w, v/b)  {verdict}"


def tell(args: argparse.Namespace, record: dict[str, Any]) -> None:
    """One line, at once."""
    place = {"mpi": args.mpi, "ranks": args.ranks, "nodes": args.nodes}
    print(json.dumps(place | record) if args.json else words_of(record), flush=True)


def opening(args: argparse.Namespace) -> str:
    """What the lines are of."""
    nodes = "one node" if args.nodes == 1 else f"{args.nodes} nodes"
    volume = args.steps * args.step_bytes
    return (
        f"{args.mpi}, {args.ranks} ranks on {nodes}, {volume / MIB:g} MiB in {args.steps} steps, a "
        f"disk of {args.rate / MIB:g} MiB/s; n={args.repeat}, asked: at most {args.bound:g}"
    )


def measure_way(
    args: argparse.Namespace,
    place: Place,
    program: Path,
    case: Case,
    how: str,
    *,
    compute_s: float,
    write_s: float,
) -> bool:
    """Tells one line; whether it keeps the bound, where one is asked for."""
    runs = [
        one_run(args, place, program, case, how, compute_s / args.steps) for _ in range(args.repeat)
    ]
    seconds = [run["total_s"] for run in runs]
    least = least_s(args, case, how, compute_s, write_s)
    ratio = statistics.median(seconds) / least
    holds = ratio <= args.bound if how in OVERLAPPING else None
    record = {"case": case.name, "way": how, "limit": limit_of(args, case, how)}
    record |= {"c": round(compute_s, 3), "v_over_b": write_s, "least": round(least, 3)}
    record |= {"seconds": seconds, "inside": [run["inside_s"] for run in runs]}
    tell(args, record | {"of_max": round(ratio, 3), "holds": holds})
    return holds is not False


def measure(args: argparse.Namespace, place: Place, program: Path) -> bool:
    """Whether all ways that overlap keep the bound."""
    if not args.json:
        print(opening(args), flush=True)
    first = CASES[0]
    alone = [
        one_run(args, place, program, first, "write_all", 0)["total_s"] for _ in range(args.repeat)
    ]
    volume = args.steps * args.step_bytes
    write_s = min(statistics.median(alone), volume / args.rate)  # v/b
    record = {"case": first.name, "way": "write_all", "v": volume, "c": 0.0, "seconds": alone}
    tell(args, record | {"v_over_b": write_s, "of_max": None})
    kept = [
        measure_way(args, place, program, case, how, compute_s=share * write_s, write_s=write_s)
        for case in CASES
        if args.case in (None, case.name)
        for share in SHARES
        for how in case.ways
    ]
    return all(kept)


class NotHereError(Exception):
    """What is needed cannot be had here: a script's words, and its exit code."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        super().__init__(done.stderr.strip())
        self.code = done.returncode


@contextmanager
def started(script: Path, at: Path, *words: str) -> Iterator[Path]:
    """What a script of tests/fs makes in a new directory."""
    at.mkdir()
    done = subprocess.run(
        [str(script), "start", str(at), *words], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotHereError(done)
    try:
        yield at
    finally:
        subprocess.run([str(script), "stop", str(at)], check=False)


@contextmanager
def place_of(args: argparse.Namespace, folder: Path) -> Iterator[Place]:
    room = max(512 * MIB, 2 * args.steps * args.step_bytes)
    size = ["--rate", str(args.rate), "--size", str(room)]
    with started(SLOWDISK, folder / "disk", *size) as disk:
        if args.nodes == 1:
            yield Place(disk, MPIS[args.mpi].mpiexec(args.ranks))
            return
        with started(NODES, folder / "nodes", str(args.nodes)) as nodes:
            yield Place(disk, [str(NODES), "run", str(nodes), str(args.ranks)])


def main() -> int:
    args = parse()
    with tempfile.TemporaryDirectory() as name:
        try:
            source = Path(__file__).resolve().parent / "steps.c"
            program = small_program.compiled(args.mpi, source, Path(name))
            with place_of(args, Path(name)) as place:
                kept = measure(args, place, program)
        except NotHereError as missing:
            print(missing, file=sys.stderr)
            return missing.code
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
