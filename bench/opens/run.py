#!/usr/bin/env python3
"""What does it cost to open and close a file, and to write a little to it in between? The MPI
library, and Penstock of one build or two.

    bench/opens/run.py --new build/release [--old ../before/build/release] [--mpi openmpi]
    bench/opens/run.py --new build/release --ranks 64 --mode rdwr
    bench/opens/run.py --new build/release --access collective --bytes 4194304
    bench/opens/run.py --new build/release --access ordered --bytes 4096
    bench/opens/run.py --new build/release --cold-engine
    tests/fs/nodes.sh start /tmp/n 4 && bench/opens/run.py --new build/release --mpi openmpi \\
        --launcher '/tmp/n/nodes/mpirun -n {ranks}' --ranks 16

Each sample is a job of its own: bench/opens/opens.c, alone and under penstock-exec, by turns.
Prints a line of JSON for each cell and side, and at the end a table: milliseconds of the calls of a
job's first file, and of a later one; medians over the jobs, with the smallest and the largest.
Exit: 0, or 1 when a job failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import small_program  # noqa: E402
from mpis import MPIS  # noqa: E402
from small_program import Sample, Side  # noqa: E402

PIECE_BYTES = 4096
MODES = ["writeonly", "rdwr"]
CALLS = ["open", "write", "close"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--new", type=Path, required=True, help="a build folder")
    parser.add_argument("--old", type=Path, help="another, to compare with")
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    parser.add_argument("--launcher", help="starts {ranks} ranks; default: the library's own")
    parser.add_argument("--ranks", action="append", type=int, help="may be repeated")
    parser.add_argument("--mode", action="append", choices=MODES, help="may be repeated")
    parser.add_argument(
        "--access", choices=["collective", "independent", "ordered"], help="default: no write"
    )
    parser.add_argument(
        "--bytes", type=int, default=4 << 20, help="that each rank writes to a file"
    )
    parser.add_argument("--files", type=int, default=21, help="of a job")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--cold-engine",
        action="store_true",
        help="before each job Penstock's engine is put out of the page cache, as on a machine\n"
        "where no job has run lately",
    )
    parser.add_argument("--dir", type=Path, help="where files are opened; default: --new")
    args = parser.parse_args()
    if args.files < 2:
        parser.error(f"--files must be at least 2, for one is the first, got {args.files}")
    if args.bytes < PIECE_BYTES:
        parser.error(f"--bytes must be at least {PIECE_BYTES}, one piece, got {args.bytes}")
    return args


def columns(args: argparse.Namespace) -> dict[str, str]:
    """Of a sample's figures, those that were measured, and what the table calls them."""
    calls = [call for call in CALLS if call != "write" or args.access is not None]
    first = {f"first_{call}_ms": f"first {call}" for call in calls}
    return first | {f"{call}_ms": call for call in calls}


def launcher(args: argparse.Namespace, ranks: int) -> list[str]:
    if args.launcher is None:
        return MPIS[args.mpi].mpiexec(ranks)
    return [word.format(ranks=ranks) for word in args.launcher.split()]


def forget(file: Path) -> None:
    """What the page cache has of it, where the file system can read it again."""
    fd = os.open(file, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def sample(args: argparse.Namespace, side: Side, ranks: int, mode: str, folder: Path) -> Sample:
    command = [*launcher(args, ranks), *side.words(args.mpi)]
    command += [str(folder / "opens"), str(folder / "data"), mode, str(args.files)]
    if args.access is not None:
        command += [args.access, str(args.bytes)]
    if args.cold_engine and side.build is not None:
        for engine in side.build.rglob(f"penstock-engine-{args.mpi}.so"):
            forget(engine)
    return small_program.told(args.mpi, command)


def measure(args: argparse.Namespace, ranks: int, mode: str, folder: Path) -> Iterator[str]:
    """Prints the cell's lines, and gives its rows of the table."""
    taken = small_program.by_turns(
        small_program.sides(args.old, args.new),
        args.rounds,
        lambda side: sample(args, side, ranks, mode, folder),
    )
    for side, samples in taken.items():
        figures = {key: small_program.spread(samples, key, digits=2) for key in columns(args)}
        known = {"mpi": args.mpi, "ranks": ranks, "mode": mode, "side": side.name}
        print(json.dumps(known | {"n": args.rounds} | figures), flush=True)
        spelt = " | ".join(f"{m:.2f} [{low:.2f}-{high:.2f}]" for m, low, high in figures.values())
        yield f"| {ranks} | {mode} | {side.name} | {spelt} |"


def main() -> int:
    args = parse()
    rows = [
        f"| ranks | mode | side | {' | '.join(columns(args).values())} |",
        "|---" * (3 + len(columns(args))) + "|",
    ]
    with tempfile.TemporaryDirectory(dir=args.dir or args.new) as name:
        folder = Path(name)
        small_program.compiled(args.mpi, Path(__file__).resolve().parent / "opens.c", folder)
        for ranks in args.ranks or [2, 4, 16]:
            for mode in args.mode or MODES:
                rows += measure(args, ranks, mode, folder)
    print(f"\nMilliseconds, {args.mpi}, n={args.rounds}, median [min-max]:\n")
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
