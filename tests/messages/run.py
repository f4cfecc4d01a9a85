#!/usr/bin/env python3
"""Every message that a new user can meet in the first ten minutes.

Each is provoked, has to name the thing, its value and the remedy, and is a row of docs/messages.md,
which this suite writes (--write) or compares (--check). Run it by .venv/bin/python. Needs the
distribution's MPICH and Open MPI; what is missing is a skip, and keeps the row that the table has.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

from jobs import JOBS
from provocation import Answer, Bench, NotHereError, Provocation, provoke
from run_mpi import Suite
from settings import SETTINGS
from start import START
from table import PAGE, read_rows, render, row
from tools import TOOLS

HERE = Path(__file__).resolve().parent
ALL = [*START, *SETTINGS, *JOBS, *TOOLS]
AT_ONCE = 2


@contextmanager
def bench(native: Path) -> Iterator[Bench]:
    """Programs by short names, in a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="penstock-messages-") as directory:
        copies = Path(directory)
        (copies / "bin").mkdir()
        (copies / "cases").mkdir()
        penstock = Path(sys.executable).parent / "penstock"
        for name, target in (("penstock", penstock), ("penstock-exec", native / "penstock-exec")):
            (copies / "bin" / name).symlink_to(target)
        for mpi in ("mpich", "openmpi"):
            program = copies / f"writer.{mpi}"
            if compiler := shutil.which(f"mpicc.{mpi}"):
                command = [compiler, str(HERE / "writer.c"), "-o", str(program)]
                subprocess.run(command, check=True, timeout=120)
                (copies / "bin" / program.name).symlink_to(program)
        yield Bench(native, penstock, copies)


def answer(here: Bench, number: int, asked: Provocation) -> Answer | str:
    """A string says why it could not be provoked."""
    directory = here.copies / "cases" / str(number)
    directory.mkdir()
    try:
        return provoke(here, asked, directory)
    except NotHereError as missing:
        return str(missing)


def judge(suite: Suite, asked: list[Provocation], answers: list[Answer | str]) -> dict[str, str]:
    """The rows by what was done; a provocation that was not possible has none."""
    rows = {}
    for one, came in zip(asked, answers, strict=True):
        if isinstance(came, str):
            suite.skip(one.name, came)
            continue
        suite.check(one.name, came.problems(one))
        rows[one.name] = row(one, came)
    return rows


def compare(suite: Suite, asked: list[Provocation], rows: dict[str, str]) -> None:
    there = read_rows(PAGE.read_text()) if PAGE.exists() else {}
    for one in asked:
        if one.name not in rows:
            continue
        have, want = rows[one.name], there.get(one.name, "no such row")
        problems = [f"docs: {want}", f"now:  {have}", "remedy: tests/messages/run.py --write"]
        suite.check(f"docs/messages.md: {one.name}", [] if have == want else problems)
    known = {one.name for one in ALL}
    suite.check("docs/messages.md has no other rows", sorted(set(there) - known))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="the build tree")
    parser.add_argument("--only", default="", help="only those whose text contains this")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--write", action="store_true", help="write docs/messages.md, when none fails"
    )
    what.add_argument("--check", action="store_true", help="fail when docs/messages.md differs")
    options = parser.parse_args()
    asked = [one for one in ALL if options.only in f"{one.section} {one.name}"]
    suite = Suite("messages")
    native = (options.build / "native").resolve()
    with bench(native) as here, ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda pair: answer(here, *pair), enumerate(asked)))
    rows = judge(suite, asked, answers)
    if options.check:
        compare(suite, asked, rows)
    if options.write and not suite.failures:
        kept = read_rows(PAGE.read_text()) if PAGE.exists() else {}
        PAGE.write_text(render(ALL, kept | rows))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
