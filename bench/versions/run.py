#!/usr/bin/env python3
"""Did a change make Penstock faster? Two builds, or two methods, write the same by turns.

    bench/versions/run.py --old ../before/build/release --new build/release
    bench/versions/run.py --new build/release --cell openmpi,4,interleaved:64 --rounds 12
    bench/versions/run.py --new build/release --old-method auto --new-method 'two_phase + shm'

Each sample is a job of its own: penstock-measure of --new under penstock-exec of either build. Its
time is from before the open to after the close; its parts, each of the rank that took longest, do
not add up to it. Rounds alternate which build comes first; one round before the first is not
counted. Prints a line of JSON for each cell: times in ms, and old/new as the median of the rounds'
ratios with its 95 % interval. Exit: 0, or 1 when a job failed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "python")]
import small_program  # noqa: E402
from mpis import MPIS  # noqa: E402

from penstock.bench.statistics import paired_ratio_interval  # noqa: E402

CELLS = ["mpich,2,contiguous", "openmpi,4,contiguous", "openmpi,4,interleaved:64"]
CELLS += ["openmpi,16,interleaved:64", "openmpi,4,interleaved:47008"]
PHASES = ["open_s", "write_s", "sync_s", "close_s"]


@dataclass(frozen=True)
class Cell:
    """One job: an MPI library of the distribution, its ranks, and what each writes."""

    mpi: str
    ranks: int
    pattern: str

    @classmethod
    def of(cls, text: str) -> Cell:
        words = text.split(",")
        if len(words) != 3 or words[0] not in ("mpich", "openmpi") or not words[1].isdigit():
            raise argparse.ArgumentTypeError(
                f"a cell is mpich|openmpi,RANKS,PATTERN, got {text!r}; such as {CELLS[0]}"
            )
        return cls(words[0], int(words[1]), words[2])


@dataclass(frozen=True)
class Side:
    """A build with a method."""

    build: Path
    method: str


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--new", type=Path, required=True, help="a build folder")
    parser.add_argument("--old", type=Path, help="another; left out: the same")
    parser.add_argument("--new-method", default="auto")
    parser.add_argument("--old-method", default="auto")
    parser.add_argument("--cell", type=Cell.of, action="append", help="may be repeated")
    parser.add_argument("--access", default="collective", choices=["collective", "independent"])
    parser.add_argument("--end", default="sync", choices=["sync", "close"])
    parser.add_argument("--bytes", type=int, default=256 << 20, help="of the file")
    parser.add_argument("--iters", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--dir", type=Path, help="where the file is written; default: --new")
    args = parser.parse_args()
    if args.old is None and args.old_method == args.new_method:
        parser.error("both sides are the same: give --old, or another --old-method")
    return args


def program_of(mpi: str, end: str) -> str:
    """One that cannot sync, where nobody does: Penstock goes by what a program is linked to."""
    return f"peer-unsynced-{mpi}" if end == "close" else f"penstock-measure-{mpi}"


def sample(args: argparse.Namespace, cell: Cell, side: Side, target: Path) -> dict[str, float]:
    """One job's time, and its parts: of each the rank's that took longest."""
    name = program_of(cell.mpi, args.end)
    found = sorted(args.new.resolve().rglob(name))
    if not found:
        sys.exit(f"no {name} in {args.new}: scripts/build.sh release")
    written = args.bytes // (cell.ranks * args.iters)
    command = [*MPIS[cell.mpi].mpiexec(cell.ranks)]
    command += [*small_program.under_penstock(side.build, side.method), str(found[0])]
    command += ["--route", "mpi", "--pattern", cell.pattern, "--access", args.access]
    command += ["--iters", str(args.iters), "--bufsize", str(written), "--end", args.end]
    command += ["--bins", "0", "-o", str(target)]
    told = small_program.told(cell.mpi, command)
    return {"total_s": told["application"]["seconds"]} | {p: told["phases"][p] for p in PHASES}


def measure(args: argparse.Namespace, cell: Cell, target: Path) -> None:
    sides = {
        "old": Side(args.old or args.new, args.old_method),
        "new": Side(args.new, args.new_method),
    }
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for round_ in range(args.rounds + 1):
        for name in sorted(sides, reverse=round_ % 2 == 0):
            got = sample(args, cell, sides[name], target)
            if round_ > 0:
                taken[name].append(got)
    totals = {name: [s["total_s"] for s in samples] for name, samples in taken.items()}
    ratio = paired_ratio_interval(totals["old"], totals["new"], of="time")
    line = {"cell": f"{cell.mpi},{cell.ranks},{cell.pattern}", "rounds": args.rounds}
    for name, samples in taken.items():
        line[name] = {"min_ms": in_ms(min(totals[name])), "max_ms": in_ms(max(totals[name]))}
        for part in ["total_s", *PHASES]:
            line[name][part.removesuffix("s") + "ms"] = in_ms(
                statistics.median(s[part] for s in samples)
            )
    line["old_over_new"] = [round(x, 3) for x in (ratio.ratio, ratio.low, ratio.high)]
    print(json.dumps(line), flush=True)


def in_ms(seconds: float) -> float:
    return round(1000 * seconds, 2)


def main() -> int:
    args = parse()
    with tempfile.TemporaryDirectory(dir=args.dir or args.new) as folder:
        for cell in args.cell or map(Cell.of, CELLS):
            measure(args, cell, Path(folder) / "data")
    return 0


if __name__ == "__main__":
    sys.exit(main())
