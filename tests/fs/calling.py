"""Calling the scripts of this folder, and what is wrong with how they ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from run_mpi import SKIPPED

HERE = Path(__file__).resolve().parent
MIB = 1 << 20
HANGS_S = 120


class NotHereError(Exception):
    """This machine cannot; the text says why."""


def script(name: str, verb: str, directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a script of this folder; one that cannot here ends the case as a skip."""
    done = called([str(HERE / name), verb, str(directory), *words])
    if done.returncode == SKIPPED:
        raise NotHereError(done.stderr.strip())
    return done


def called(command: list[str]) -> subprocess.CompletedProcess[str]:
    """One that hangs is ended, with the code of coreutils' timeout: a failed case."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S)
    except subprocess.TimeoutExpired:
        said = f"no end after {HANGS_S} s"
        return subprocess.CompletedProcess(command, 124, "", said)


def must(done: subprocess.CompletedProcess[str], *, code: int = 0, says: str = "") -> list[str]:
    """What is wrong with how a command ended."""
    problems = [] if done.returncode == code else [f"{done.args} ended with {done.returncode}"]
    output = done.stdout + done.stderr
    if says not in output:
        problems.append(f"{done.args} does not say {says!r}")
    return [f"{problem}: {output.strip()}" for problem in problems]


def type_problems(directory: Path, wanted: str) -> list[str]:
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    types = [words.split()[2] for words in mounts if words.split()[1] == str(directory)]
    return [] if types == [wanted] else [f"{directory} is {types}, not {wanted}"]


def rate_problems(what: str, bytes_per_s: float, limit: float) -> list[str]:
    """A limit is kept from above; how far below it is, a busy machine decides."""
    if bytes_per_s <= 1.1 * limit:
        return []
    return [f"{what}: {bytes_per_s / MIB:.1f} MiB/s where the limit is {limit / MIB:.1f}"]
