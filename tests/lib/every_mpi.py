#!/usr/bin/env python3
"""That tests were made for every MPI library and binding, so that none drops out in silence.

Where CMake does not find a library, a compiler wrapper or a stamp, it leaves their tests out, and
there is nothing to be skipped.

  every_mpi.py --build build/release
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mpis import MPIS
from run_mpi import Suite, plain_arguments

SUITES = ("conformance", "histories", "legal.full", "libraries.full", "mpi.full")
DISTRIBUTION = ("mpich", "openmpi")
SUITES_ALONE = ("impi-abi",)  # the program of the standard ABI by Intel MPI: suites, no pmpi tests


def wanted() -> Iterator[str]:
    """The names, or what they begin with and a dot."""
    for mpi in MPIS:
        yield from (f"{suite}.{mpi}" for suite in SUITES)
        if mpi not in SUITES_ALONE:
            yield f"pmpi.{mpi}"
    for mpi in DISTRIBUTION:
        yield from (f"pmpi.{mpi}.fortran_{binding}" for binding in ("MPIF", "MPI", "F08"))
        yield from (f"conformance.{way}.{mpi}" for way in ("held", "cold"))


def names(build: Path) -> list[str]:
    """Of all tests of the build tree."""
    command = ["ctest", "--test-dir", str(build), "--show-only=json-v1"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [test["name"] for test in json.loads(told)["tests"]]


def main() -> int:
    options = plain_arguments(__doc__).parse_args()
    suite = Suite("every MPI")
    there = names(options.build)
    for name in (name for name in wanted() if options.only in name):
        found = any(test == name or test.startswith(f"{name}.") for test in there)
        suite.check(name, [] if found else ["no such test in the build: see what CMake found"])
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
