#!/usr/bin/env python3
"""What does one small write cost? The MPI library, and Penstock of one build or two.

    bench/calls/run.py --new build/release [--old ../before/build/release] [--mpi openmpi]
    bench/calls/run.py --new build/release --ranks 4 --way view --bytes 1280
    bench/calls/run.py --new build/release --old ../before/build/release --count

Each sample is a job of its own: bench/calls/calls.c, alone and under penstock-exec, by turns.
--count counts instructions outside the kernel instead, by valgrind's callgrind with one rank: those
of a job less those of a shorter one, so that they hardly depend on what else the machine does.
Prints a line of JSON for each cell and side, and at the end a table: medians, with the smallest and
the largest sample. Exit: 0, 1 when a job failed, 77 when there is no valgrind for --count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import small_program  # noqa: E402
from mpis import MPIS  # noqa: E402
from small_program import Sample, Side  # noqa: E402

SKIPPED = 77
INDEPENDENT = ["at", "view", "pointer"]
WAYS = [*INDEPENDENT, "step"]  # the last one of all ranks, and three calls: HDF5's
SIZES = [64, 512, 4096]
MOST_BYTES = 64 << 20  # of a rank, of a sample
COUNTED_CALLS = (1000, 3000)  # a shorter job and a longer one; calls.c makes twice as many


@dataclass(frozen=True)
class Cell:
    """What a job writes."""

    way: str
    bytes: int
    readable: bool
    inside: bool


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--new", type=Path, required=True, help="a build folder")
    parser.add_argument("--old", type=Path, help="another, to compare with")
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--way", action="append", choices=WAYS, help="may be repeated")
    parser.add_argument("--bytes", action="append", type=int, help="of a call; may be repeated")
    parser.add_argument("--calls", type=int, default=100_000, help="fewer where they are large")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rdwr", action="store_true", help="files that may be read, too")
    parser.add_argument(
        "--inside", action="store_true", help="as --rdwr, of their full size before"
    )
    parser.add_argument("--count", action="store_true", help="instructions, by callgrind")
    parser.add_argument("--dir", type=Path, help="where the file is written; default: --new")
    args = parser.parse_args()
    if args.count and args.ranks != 1:
        parser.error(f"--count counts one rank, got --ranks {args.ranks}")
    return args


def job(cell: Cell, calls: int, folder: Path) -> list[str]:
    """The program and its words, on a file that is not there."""
    target = folder / "data"
    target.unlink(missing_ok=True)
    words = [str(folder / "calls"), str(target), cell.way, str(cell.bytes), str(calls)]
    if cell.inside:
        return [*words, "inside"]
    return [*words, "rdwr"] if cell.readable else words


def timed(args: argparse.Namespace, side: Side, cell: Cell, folder: Path) -> Sample:
    calls = min(args.calls, MOST_BYTES // cell.bytes)
    command = [*MPIS[args.mpi].mpiexec(args.ranks), *side.words(args.mpi)]
    return small_program.told(args.mpi, command + job(cell, calls, folder))


def instructions(args: argparse.Namespace, side: Side, command: list[str], folder: Path) -> int:
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind'}"]
    done = subprocess.run(
        [*side.words(args.mpi), *valgrind, *command],
        env=os.environ | MPIS[args.mpi].environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"{' '.join(command)} failed under callgrind:\n{done.stdout}{done.stderr}")
    return int(found[1])


def counted(args: argparse.Namespace, side: Side, cell: Cell, folder: Path) -> Sample:
    few, many = COUNTED_CALLS
    of_few, of_many = (
        instructions(args, side, job(cell, calls, folder), folder) for calls in (few, many)
    )
    return {"instructions": (of_many - of_few) / (2 * (many - few))}


def measure(args: argparse.Namespace, cell: Cell, folder: Path) -> Iterator[str]:
    """Prints the cell's lines, and gives its rows of the table."""
    sample = counted if args.count else timed
    taken = small_program.by_turns(
        small_program.sides(args.old, args.new),
        args.rounds,
        lambda side: sample(args, side, cell, folder),
    )
    for side, samples in taken.items():
        figures = {key: small_program.spread(samples, key) for key in samples[0]}
        known = {"mpi": args.mpi, "ranks": args.ranks, "way": cell.way, "bytes": cell.bytes}
        print(json.dumps(known | {"side": side.name, "n": args.rounds} | figures), flush=True)
        spelt = " | ".join(f"{m:.0f} [{low:.0f}-{high:.0f}]" for m, low, high in figures.values())
        yield f"| {cell.way} | {cell.bytes} B | {side.name} | {spelt} |"


def main() -> int:
    args = parse()
    if args.count and shutil.which("valgrind") is None:
        print("--count needs valgrind", file=sys.stderr)
        return SKIPPED
    columns = ["instructions"] if args.count else ["ns", "ns until synced"]
    rows = [f"| way | call | side | {' | '.join(columns)} |", "|---" * (3 + len(columns)) + "|"]
    with tempfile.TemporaryDirectory(dir=args.dir or args.new) as name:
        folder = Path(name)
        small_program.compiled(args.mpi, Path(__file__).resolve().parent / "calls.c", folder)
        for way in args.way or INDEPENDENT:
            for size in args.bytes or SIZES:
                rows += measure(args, Cell(way, size, args.rdwr, args.inside), folder)
    print(f"\nOf a call, {args.mpi}, ranks: {args.ranks}, n={args.rounds}, median [min-max]:\n")
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
