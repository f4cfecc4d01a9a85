#!/usr/bin/env python3
"""Safety at a shared site: a job under Penstock leaves its process, its files, its children and its
node as it does alone, and works where room, rights and memory are short. docs/safety.md tells what
is promised; each case here is a sentence of it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from file_cases import FILE_CASES
from mpis import MPIS
from place import NotHereError, run_case, site
from process_cases import PROCESS_CASES
from room_cases import ROOM_CASES
from run_mpi import Suite, arguments


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    options = parser.parse_args()
    cases = [*PROCESS_CASES, *FILE_CASES, *ROOM_CASES]
    if options.list:
        print(*(case.__name__ for case in cases), sep="\n")
        return 0
    mpi = MPIS[options.mpi]
    suite = Suite(f"site {options.mpi}", options.mpi, options.record)
    if mpi.launcher() is None:
        suite.skip("site", f"no mpiexec of {mpi.title}: {mpi.remedy()}")
        return suite.finish()
    try:
        with site(options.build.resolve(), mpi, suite, options.only) as here:
            for case in cases:
                run_case(here, case.__name__, case)
    except NotHereError as missing:
        suite.skip("site", str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
