#!/usr/bin/env python3
"""Prints the rows of oracle-exceptions.md: cases in which a library alone is wrong.

One launch each. With --served: which of the listed cases also fail under Penstock. Not part of
the checks: run it when the cases change.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run import Batch, batches, brief_batches, exceptions, served_oracle
from run_mpi import Bench, Outcome, Penstock, arguments, launch


def reason(out: Outcome) -> str:
    if out.hung:
        return "hangs"
    for line in out.output.splitlines():
        if line.startswith("FAIL"):
            return line.split(": ", 1)[1][:90].replace("|", "/")
    return f"ends with {out.code}"


def one_case(bench: Bench, batch: Batch, case: int, penstock: Penstock | None) -> Outcome:
    mpi_options = bench.mpi.sound_options() if penstock is None else ()
    with tempfile.TemporaryDirectory(prefix="penstock-survey-") as directory:
        program = [str(bench.program(batch.program)), *batch.arguments(Path(directory))]
        program = [p for p in program if not p.startswith("--cases=")]
        program += [f"--first={case}", "--cases=1"]
        if penstock is None:
            program.append("--holes=undefined")
        else:
            program.append("--forms=all")
        return launch(
            bench, batch.ranks, program, penstock=penstock, mpi_options=mpi_options, timeout_s=15
        )


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--served", action="store_true")
    parser.add_argument("--brief", action="store_true", help="the batches of run.py --brief")
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    penstock = Penstock("two_phase(writers=2, cycle=4KiB)") if options.served else None
    library = served_oracle(bench) if options.served else bench.mpi.family
    for batch in brief_batches() if options.brief else batches(bench.mpi.family):
        if not batch.alone or batch.program != "views" or options.only not in batch.name:
            continue
        every = range(batch.options["cases"])
        listed = map(int, exceptions(bench.mpi.family, batch))
        for case in listed if options.served and not options.brief else every:
            out = one_case(bench, batch, case, penstock)
            if out.code != 0 or out.hung:
                print(f"| {library} | {batch.name} | {case} | {reason(out)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
