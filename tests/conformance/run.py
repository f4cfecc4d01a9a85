#!/usr/bin/env python3
"""Runs the conformance programs: alone, to see that the oracle is sound, and by every method.

Alone, the MPI library's own writer is compared with the naive expectation; under Penstock the same
cases are. So the files are byte for byte what they would have been. Cases in which a library alone
is wrong are listed in oracle-exceptions.md.
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from run_mpi import (
    Bench,
    Penstock,
    Suite,
    arguments,
    launch,
    program_problems,
    served_problems,
)

HERE = Path(__file__).resolve().parent
METHODS = {
    "individual": "individual",
    "two_phase(writers=1)": "two_phase",
    "two_phase(writers=2, cycle=4KiB)": "two_phase",
    "two_phase(writers=3, cycle=64KiB)": "two_phase",
    "two_phase": "two_phase",
    "auto": None,
}
# OMPIO's default collective component is wrong in many of these cases; this one is not.
SOUND_OPENMPI = ("--mca", "io", "ompio", "--mca", "fcoll", "individual")


@dataclass(frozen=True)
class Batch:
    """Cases of one program in one launch."""

    name: str
    ranks: int
    options: dict[str, int] = field(default_factory=dict)
    alone: bool = True  # the library alone can run these cases

    def arguments(self, directory: Path) -> list[str]:
        return [f"--dir={directory}", *(f"--{k}={v}" for k, v in self.options.items())]


def views(ranks: int, seed: int, cases: int, **more: int) -> Batch:
    kind = "".join(f".{k}" for k in more)
    return Batch(f"views{kind}.{ranks}", ranks, {"seed": seed, "cases": cases, **more})


def batches(flavour: str) -> list[Batch]:
    """More ranks than cores are slow under MPICH, which polls: fewer cases there."""
    slow = flavour == "mpich"
    return [
        views(1, 11, 40),
        views(2, 12, 40),
        views(3, 13, 6 if slow else 30),
        views(4, 14, 4 if slow else 30),
        views(8, 18, 1 if slow else 6),
        views(2, 22, 2, large=1),
        Batch("views.pairs.2", 2, {"seed": 32, "cases": 20, "pairs": 1}, alone=not slow),
    ]


def exceptions(flavour: str, batch: Batch) -> list[str]:
    """Cases of the batch in which this library alone is wrong: `| mpich | views.2 | 3 | why |`."""
    rows = (HERE / "oracle-exceptions.md").read_text().splitlines()
    pattern = re.compile(rf"\| {flavour} \| {re.escape(batch.name)} \| (\d+) \|")
    return [m.group(1) for row in rows if (m := pattern.match(row))]


def run_alone(bench: Bench, suite: Suite, batch: Batch) -> None:
    case = f"alone {batch.name}"
    if not batch.alone:
        suite.skip(case, "MPICH 4.0 aborts on its own pair types: the naive oracle alone decides")
        return
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = [str(bench.program("views")), *batch.arguments(Path(directory))]
        program += ["--holes=undefined", f"--skip={','.join(exceptions(bench.flavour, batch))}"]
        options = SOUND_OPENMPI if bench.flavour == "openmpi" else ()
        out = launch(bench, batch.ranks, program, mpi_options=options, timeout_s=120)
    suite.check(case, program_problems(out), out)


def run_served(bench: Bench, suite: Suite, batch: Batch, method: str) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = [str(bench.program("views")), *batch.arguments(Path(directory))]
        out = launch(bench, batch.ranks, program, penstock=Penstock(method), timeout_s=120)
    problems = program_problems(out) + served_problems(out, METHODS[method])
    suite.check(f"{method} {batch.name}", problems, out)


def run_null(bench: Bench, suite: Suite) -> None:
    """The mechanism that drops everything: the same calls, an untouched file."""
    batch = Batch("views.null.2", 2, {"seed": 42, "cases": 10, "null": 1})
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = [str(bench.program("views")), *batch.arguments(Path(directory))]
        method = "two_phase + messages + null"
        out = launch(bench, 2, program, penstock=Penstock(method), timeout_s=120)
    problems = program_problems(out) + served_problems(out, "two_phase")
    suite.check(f"{method} {batch.name}", problems, out)


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--served-only", action="store_true", help="only under Penstock")
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), options.mpi)
    suite = Suite(f"conformance {options.mpi}")
    for batch in batches(options.mpi):
        if options.only in f"alone {batch.name}" and not options.served_only:
            run_alone(bench, suite, batch)
        if options.alone:
            continue
        for method in METHODS:
            if options.only in f"{method} {batch.name}":
                run_served(bench, suite, batch, method)
    if not options.alone and options.only in "null":
        run_null(bench, suite)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
