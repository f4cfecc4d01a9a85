"""examples/Makefile: which compiler wrapper it builds with, by what is in PATH."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
OPENMPI, MPICH = "exit 0", "exit 1"  # to --showme:version


def asked(where: Path, wrappers: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What make would do, were these the wrappers in PATH."""
    for name, answer in wrappers.items():
        (where / name).write_text(f"#!/bin/sh\n{answer}\n")
        (where / name).chmod(0o755)
    command = [str(shutil.which("make")), "-n", "-C", str(EXAMPLES), "OUT=/out"]
    return subprocess.run(
        command, env={"PATH": str(where)}, capture_output=True, text=True, timeout=20, check=False
    )


def compilers(output: str) -> set[tuple[str, str]]:
    """Wrappers, each with the flavour's directory that its programs go to."""
    return set(re.findall(r"(?m)^(mpi\S+) .*-o /out/(\w+)/", output))


@pytest.mark.parametrize(("answer", "flavour"), [(OPENMPI, "openmpi"), (MPICH, "mpich")])
def test_a_plain_wrapper_is_taken(tmp_path: Path, answer: str, flavour: str) -> None:
    done = asked(tmp_path, {"mpicc": answer, "mpifort": answer})
    assert done.returncode == 0, done.stderr
    assert compilers(done.stdout) == {("mpicc", flavour), ("mpifort", flavour)}


def test_a_plain_wrapper_stands_beside_one_that_is_named(tmp_path: Path) -> None:
    named = {"mpicc.mpich": MPICH, "mpifort.mpich": MPICH}
    done = asked(tmp_path, {"mpicc": OPENMPI, "mpifort": OPENMPI, **named})
    of_mpich = {("mpicc.mpich", "mpich"), ("mpifort.mpich", "mpich")}
    assert compilers(done.stdout) == of_mpich | {("mpicc", "openmpi"), ("mpifort", "openmpi")}


def test_no_wrapper_at_all_is_told_with_the_remedy(tmp_path: Path) -> None:
    done = asked(tmp_path, {})
    assert done.returncode == 2
    assert "no MPI compiler (mpicc, mpicc.mpich or mpicc.openmpi) in PATH" in done.stderr
