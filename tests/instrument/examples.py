#!/usr/bin/env python3
"""The sweeps of examples/bench: what they name is there, and the time view can be printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from disks import ROOT, working_disk
from mpis import MPIS
from run_mpi import Suite, plain_arguments

EXAMPLES = ROOT / "examples" / "bench"
NEEDS = {"chaarawi": "openmpi", "loads": "openmpi", "time-view": ""}  # the others: mpich
Done = subprocess.CompletedProcess[str]


def run(build: Path, directory: Path, *words: str) -> Done:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    env |= {"PENSTOCK_NATIVE_DIR": str(build / "native"), "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [sys.executable, *words],
        env=env,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def ended(done: Done, *says: str) -> list[str]:
    """What is wrong with how a command ended."""
    problems = [] if done.returncode == 0 else [f"ended with {done.returncode}"]
    problems += [f"does not say {words!r}" for words in says if words not in done.stdout]
    return [f"{problem}: {done.stdout[-1500:]}{done.stderr[-1500:]}" for problem in problems]


def a_sweep_can_be_run(build: Path, directory: Path, matrix: Path) -> list[str]:
    """Every parameter and method of it is known; a pilot of it runs."""
    words = ("bench", ".", "--matrix", str(matrix), "--out", "out", "--dry-run")
    return ended(run(build, directory, "-m", "penstock", *words), "measurements,")


def the_time_view_is_printed(build: Path, directory: Path) -> list[str]:
    """Of both variants: a row for every stretch, and what was on the device as time went."""
    matrix = str(EXAMPLES / "time-view.toml")
    words = ("bench", ".", "--matrix", matrix, "--out", "out", "--rounds", "2")
    problems = ended(run(build, directory, "-m", "penstock", *words))
    shown = run(build, directory, str(EXAMPLES / "time_view.py"), "out")
    problems += ended(shown, "no pulse, n=2", "a sync every 3 MB, n=2", "on the device", "40.0")
    return problems


def main() -> int:
    options = plain_arguments(__doc__).parse_args()
    build = options.build.resolve()
    suite = Suite("bench examples")
    for matrix in sorted(EXAMPLES.glob("*.toml")):
        mpi = NEEDS.get(matrix.stem, "mpich")
        if options.only not in matrix.stem:
            continue
        if mpi and MPIS[mpi].launcher() is None:
            suite.skip(matrix.stem, f"no {MPIS[mpi].title}: {MPIS[mpi].remedy()}")
            continue
        with working_disk(matrix.stem) as disk:
            suite.check(matrix.stem, a_sweep_can_be_run(build, disk.directory, matrix))
    if options.only in "time view is printed":
        with working_disk("time view") as disk:
            suite.check("time view is printed", the_time_view_is_printed(build, disk.directory))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
