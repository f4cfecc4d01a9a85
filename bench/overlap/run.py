#!/usr/bin/env python3
"""Do non-blocking and split collective writes overlap with computing? On a disk of a known speed.

A program writes v bytes while it computes for c seconds; the disk takes b bytes a second. Alone
the two take c + v/b; overlapped, max(c, v/b). The disk is `tests/fs/slowdisk.sh`'s, and every 4 MiB
are pushed to it (`sync every`), so that the page cache does not hide it. b is what `write_all`
without any computing reaches.

    bench/overlap/run.py --build build/release --mpi mpich [--bound 1.15]
    bench/overlap/run.py --build build/release --nodes 2     a rank each, with a network between

Prints a line for each way, or one of JSON by --json: the median of the whole, and that over
max(c, v/b). `write_all` waits for the disk in each call, and is there to compare. Exit: 0, 1 a
median is above the bound, 2 wrong usage, 77 no disk of known speed here, or no nodes.
"""

from __future__ import annotations

import argparse
import json
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
    parser.add_argument("--json", action="store_true", help="one line of JSON for each way")
    parser.add_argument("--bound", type=float, default=1.15, help="times max(c, v/b)")
    args = parser.parse_args()
    for name in ("ranks", "nodes", "rate", "steps", "step_bytes", "repeat"):
        if (value := getattr(args, name)) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    if args.nodes > 1 and args.mpi != "mpich":
        parser.error(f"--nodes {args.nodes} needs --mpi mpich, got --mpi {args.mpi}")
    return args


def one_run(
    args: argparse.Namespace, place: Place, program: Path, how: str, limit: str, compute_s: float
) -> dict[str, float]:
    method = f"two_phase(cycle=4MiB) + messages + pwrite + every=4MiB + staged(limit={limit})"
    target = place.disk / "mnt" / "file.dat"
    target.unlink(missing_ok=True)
    words = [program, target, how, args.steps, args.step_bytes // args.ranks, compute_s]
    command = [str(SLOWDISK), "run", str(place.disk), "--", *place.launch]
    command += [*small_program.under_penstock(args.build, method), *map(str, words)]
    return small_program.told(args.mpi, command)


def words_of(record: dict[str, Any]) -> str:
    """A record, for people: seconds, and what the bound is about."""
    seconds = record["seconds"]
    said = f"{record['way']:<10} c {record['c']:6.3f} s  {statistics.median(seconds):6.3f} s"
    said += f" [{min(seconds):.3f}-{max(seconds):.3f}]"
    if record["of_max"] is None:
        return said
    verdict = {True: "holds", False: "FAILS", None: "to compare"}[record["holds"]]
    return f"{said}  {record['of_max']:.3f} of max(c, v/b)  {verdict}"


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


def measure(args: argparse.Namespace, place: Place, program: Path) -> bool:
    if not args.json:
        print(opening(args), flush=True)
    alone = [
        one_run(args, place, program, "write_all", "0", 0)["total_s"] for _ in range(args.repeat)
    ]
    write_s = statistics.median(alone)  # v/b
    volume = args.steps * args.step_bytes
    tell(args, {"way": "write_all", "v": volume, "c": 0.0, "seconds": alone, "of_max": None})
    kept = True
    for share in (0.5, 1.0, 1.5):  # c of v/b
        compute_s = share * write_s
        for how, limit in (("write_all", "0"), ("iwrite_all", "256MiB"), ("split", "256MiB")):
            runs = [
                one_run(args, place, program, how, limit, compute_s / args.steps)
                for _ in range(args.repeat)
            ]
            seconds = [run["total_s"] for run in runs]
            ratio = statistics.median(seconds) / max(compute_s, write_s)
            holds = None if how == "write_all" else ratio <= args.bound
            record = {"way": how, "limit": limit, "c": round(compute_s, 3), "v_over_b": write_s}
            record |= {"seconds": seconds, "inside": [run["inside_s"] for run in runs]}
            tell(args, record | {"of_max": round(ratio, 3), "holds": holds})
            kept = kept and holds is not False
    return kept


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
