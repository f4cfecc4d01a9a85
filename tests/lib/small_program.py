"""For benchmarks that are one C program: compiles it, runs it under Penstock or alone, and reads
the line of JSON that its rank 0 prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mpis import MPIS


def compiled(mpi: str, source: Path, directory: Path) -> Path:
    """The program of one source file, by the compiler wrapper of an MPI library."""
    program = directory / source.stem
    subprocess.run([f"mpicc.{mpi}", "-O2", "-o", program, source], check=True)
    return program


def under_penstock(build: Path, method: str) -> list[str]:
    """The words before a program that put it under Penstock, with no way past it."""
    found = sorted(build.resolve().rglob("penstock-exec"))
    if not found:
        sys.exit(f"no penstock-exec in {build}")
    words = [str(found[0]), "--all-ranks", "--quiet", "--require", "--no-log"]
    return [*words, "--method", method, "--"]


def told(mpi: str, command: Sequence[str], timeout_s: float = 300) -> dict[str, float]:
    """Run a job and return what it printed; a failure ends the benchmark with its output."""
    environment = os.environ | MPIS[mpi].environment()
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=timeout_s
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    line: dict[str, float] = json.loads(done.stdout)
    return line
