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
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
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


def build_program(args: argparse.Namespace, directory: Path) -> Path:
    program = directory / "blocks"
    source = Path(__file__).resolve().parent / "blocks.c"
    subprocess.run([f"mpicc.{args.mpi}", "-O2", "-o", program, source], check=True)
    return program


def find_exec(build: Path) -> Path:
    found = sorted(build.resolve().rglob("penstock-exec"))
    if not found:
        sys.exit(f"no penstock-exec in {build}")
    return found[0]


def under_penstock(args: argparse.Namespace, exchange: str) -> list[str]:
    words = [str(find_exec(args.build)), "--all-ranks", "--quiet", "--require", "--no-log"]
    return [*words, "--method", METHOD.format(exchange=exchange), "--"]


def one_run(
    args: argparse.Namespace, program: Path, before: list[str], view: str
) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        target = Path(directory) / "file.dat"
        command = [*MPIS[args.mpi].mpiexec(RANKS), *before, str(program), str(target), view]
        environment = os.environ | MPIS[args.mpi].environment()
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(
            [*command, str(args.blocks)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    told: dict[str, float] = json.loads(done.stdout)
    return told


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
        program = build_program(args, Path(name))
        kept = [measure(args, program, view) for view in ("vector", "irregular")]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
