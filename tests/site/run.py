#!/usr/bin/env python3
"""Safety at a shared site.

A job under Penstock leaves its process, its files, its children and its node as it does alone, and
works where room, rights and memory are short. docs/safety.md tells what is promised; each case here
is a sentence of it. With --spoiled a library does what Penstock must not do, and the cases that are
about that have to fail.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from file_cases import FILE_CASES, modes_are_the_library_s
from mpis import MPIS, Mpi
from place import NotHereError, run_case, site
from process_cases import (
    PROCESS_CASES,
    children_get_no_descriptor,
    decimal_comma,
    descriptors_are_given_back,
    state_is_left_alone,
)
from room_cases import ROOM_CASES, no_segment_is_left
from run_mpi import Suite, arguments

# What spoiler.c does, these have to notice.
SPOILED = (
    state_is_left_alone,
    decimal_comma,
    children_get_no_descriptor,
    descriptors_are_given_back,
    modes_are_the_library_s,
    no_segment_is_left,
)


def run_spoiled(build: Path, mpi: Mpi, suite: Suite) -> None:
    """Each case has to fail, and one that cannot be judged is no proof."""
    for case in SPOILED:
        silent = Suite("site")
        with site(build, mpi, silent, "", spoiled=True) as here, redirect_stdout(StringIO()):
            run_case(here, case.__name__, case)
        if silent.skips:
            suite.skip(case.__name__, silent.skips[0])
        else:
            unseen = [] if silent.failures else ["does not notice what spoiler.c does"]
            suite.check(f"spoiled {case.__name__}", unseen)
    Path("/dev/shm/penstock-left").unlink(missing_ok=True)  # noqa: S108 - spoiler.c's


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--spoiled", action="store_true", help="test the tests")
    options = parser.parse_args()
    cases = [*PROCESS_CASES, *FILE_CASES, *ROOM_CASES]
    if options.list:
        print(*(case.__name__ for case in cases), sep="\n")
        return 0
    mpi, build = MPIS[options.mpi], options.build.resolve()
    suite = Suite(f"site {options.mpi}", options.mpi, options.record)
    if mpi.launcher() is None:
        suite.skip("site", f"no mpiexec of {mpi.title}: {mpi.remedy()}")
        return suite.finish()
    try:
        if options.spoiled:
            run_spoiled(build, mpi, suite)
            return suite.finish()
        with site(build, mpi, suite, options.only, spoiled=False) as here:
            for case in cases:
                run_case(here, case.__name__, case)
    except NotHereError as missing:
        suite.skip("site", str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
