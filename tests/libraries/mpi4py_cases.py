"""Runs mpi4py's own tests of files on every rank, and says on rank 0 how each of them ended.

A test has failed when it failed on any rank. Files are named for their tests, so that the job's
log tells what each of them wrote. ``mpi4py_cases.py SOURCE [TEST]``, where SOURCE is the unpacked
source distribution.
"""

from __future__ import annotations

import importlib
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

import mpi4py
from mpi4py import MPI

MODULES = ("test_file", "test_io")


def flattened(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flattened(item)
        elif isinstance(item, unittest.TestCase):
            yield item


def tests(source: Path, only: str) -> Iterator[unittest.TestCase]:
    sys.path.insert(0, str(source / "test"))
    for name in MODULES:
        module = importlib.import_module(name)
        for test in flattened(unittest.defaultTestLoader.loadTestsFromModule(module)):
            if only in name_of(test):
                yield test


def name_of(test: unittest.TestCase) -> str:
    """``test_io.TestIOBasicSelf.testReadWrite``."""
    return test.id()


def run(test: unittest.TestCase) -> tuple[int, str]:
    """0, 1 or 2 for passed, skipped and failed, and why. Never raises."""
    result = unittest.TestResult()
    test.run(result)
    failures = [text for _, text in result.failures + result.errors]
    if failures:
        return 2, failures[0].strip().splitlines()[-1]
    if result.skipped:
        return 1, str(result.skipped[0][1])
    return 0, ""


def main() -> int:
    """One line a test; the exit code says whether all went well."""
    world = MPI.COMM_WORLD
    ran = failed = 0
    if world.rank == 0:
        print(f"library mpi4py {mpi4py.__version__}", flush=True)
    for test in tests(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""):
        name = name_of(test)
        # What the file of this test is called; the tests ask for it in setUp.
        test.prefix = f"mpi4py-{name}-"
        if world.rank == 0:
            print(f"begin {name}", flush=True)
        mine, why = run(test)
        worst, reason = max(world.allgather((mine, why)))
        word = ("ok", "skipped", "failed")[worst]
        if world.rank == 0:
            print(f"case {name} {word} {reason}".rstrip(), flush=True)
        ran += 1
        failed += worst == 2
    if world.rank == 0:
        print(f'result {{"checks": {ran}, "failed": {failed}}}', flush=True)
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
