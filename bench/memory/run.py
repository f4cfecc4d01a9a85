#!/usr/bin/env python3
"""How much memory does one collective write of very many small blocks take?

Each rank writes so many blocks of 8 bytes through a file view: `vector`, whose loop tree is a few
dozen bytes, and `irregular`, whose loop tree is the list of its blocks and cannot be less. Measured
is what the resident memory of the rank that needs most grew by at the peak, without its buffer and
without the datatype; beside Penstock what the MPI library's own path takes.

    bench/memory/run.py --build build/release --mpi mpich [--blocks 10000000]

Prints one line of JSON for each. Exit: 0; 1 Penstock's job needs more than its buffers, what it
needs anyway and, for an irregular view, the lists of its blocks; or more than the library's job.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import small_program  # noqa: E402
from mpis import MPIS  # noqa: E402

MIB = 1 << 20
RANKS = 2
CYCLE = 4 * MIB
# Two pages of each writer, which shared memory shows to both ranks; 16 chunks of 256 KiB for
# messages; and the engine itself, with the library's state of an open file.
BOUND = 2 * RANKS * CYCLE + 4 * MIB + 12 * MIB
# For each block of an irregular view: what is kept of it (8), the same on its way to a writer (8),
# and what a writer receives and keeps of the other rank (16). While the datatype is taken apart it
# is the library's answer (4) and what is kept.
BLOCK_BOUND = 32
METHOD = "two_phase(writers=2, cycle=4MiB) + {exchange} + pwrite + none + written"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi"])
    parser.add_argument("--blocks", type=int, default=10_000_000, help="of each rank")
    parser.add_argument(
        "--bounded-only", action="store_true", help="without the library's own path"
    )
    parser.add_argument("--directory", type=Path, help="where files are written; default: TMPDIR")
    return parser.parse_args()


def under_penstock(args: argparse.Namespace, exchange: str) -> list[str]:
    return small_program.under_penstock(args.build, METHOD.format(exchange=exchange))


def one_run(
    args: argparse.Namespace, program: Path, before: list[str], view: str
) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        target = Path(directory) / "file.dat"
        words = [*before, str(program), str(target), view, str(args.blocks)]
        return small_program.told(args.mpi, [*MPIS[args.mpi].mpiexec(RANKS), *words], 900)


def measure(args: argparse.Namespace, program: Path, view: str) -> bool:
    """One view each way; whether Penstock kept to its bounds."""
    bound = BOUND + (BLOCK_BOUND * args.blocks if view == "irregular" else 0)
    ways: dict[str, list[str]] = {} if args.bounded_only else {f"{args.mpi} itself": []}
    ways |= {f"penstock {e}": under_penstock(args, e) for e in ("shm", "messages")}
    kept = True
    for way, before in ways.items():
        told = one_run(args, program, before, view)
        record = {"mpi": args.mpi, "view": view, "way": way, "blocks": args.blocks}
        if not before:
            bound = min(bound, int(told["peak_bytes"]))
        else:
            told["bound_bytes"] = bound
            kept = kept and told["peak_bytes"] <= bound
        print(json.dumps(record | told), flush=True)
    return kept


def main() -> int:
    args = parse()
    with tempfile.TemporaryDirectory() as name:
        source = Path(__file__).resolve().parent / "blocks.c"
        program = small_program.compiled(args.mpi, source, Path(name))
        kept = [measure(args, program, view) for view in ("vector", "irregular")]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
