"""Whatever runs by hand or in the long tier alone can at least be started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAIN = 'if __name__ == "__main__"'
PROGRAMS_OF_RANKS = {"h5py_cases.py", "mpi4py_cases.py"}  # of the MPI libraries that they test


def runners() -> list[str]:
    """The programs of the suites and benchmarks, from the root of the tree."""
    found = [path for folder in ("tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    return sorted(
        str(path.relative_to(ROOT))
        for path in found
        if MAIN in path.read_text() and path.name not in PROGRAMS_OF_RANKS
    )


@pytest.mark.parametrize("runner", runners())
def test_a_runner_says_what_it_is_for(runner: str) -> None:
    done = subprocess.run(
        [sys.executable, runner, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout


def scripts() -> list[Path]:
    """All that are tracked, or would be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.sh"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines()]


def test_what_says_how_it_is_run_can_be_run_so() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in scripts()
        if path.exists() and path.read_bytes().startswith(b"#!") != os.access(path, os.X_OK)
    ]
    assert not wrong, "a first line #! and the permission to execute belong together"
