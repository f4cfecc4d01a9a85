#!/usr/bin/env python3
"""Finds the cases in which a library alone is wrong, one launch each, and prints rows for
oracle-exceptions.md. Not part of the checks: run it when the cases change."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from run import SOUND_OPENMPI, batches
from run_mpi import Bench, Outcome, arguments, launch


def reason(out: Outcome) -> str:
    if out.hung:
        return "hangs"
    for line in out.output.splitlines():
        if line.startswith("FAIL"):
            return line.split(": ", 1)[1][:90].replace("|", "/")
    return f"ends with {out.code}"


def main() -> int:
    options = arguments(__doc__ or "").parse_args()
    bench = Bench(options.build.resolve(), options.mpi)
    mpi_options = SOUND_OPENMPI if options.mpi == "openmpi" else ()
    for batch in batches(options.mpi):
        if not batch.alone or options.only not in batch.name:
            continue
        for case in range(batch.options["cases"]):
            with tempfile.TemporaryDirectory(prefix="penstock-survey-") as directory:
                program = [str(bench.program("views")), *batch.arguments(Path(directory))]
                program += ["--holes=undefined", f"--first={case}", "--cases=1"]
                program = [p for p in program if p != f"--cases={batch.options['cases']}"]
                out = launch(bench, batch.ranks, program, mpi_options=mpi_options, timeout_s=15)
            if out.code != 0 or out.hung:
                print(f"| {options.mpi} | {batch.name} | {case} | {reason(out)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
