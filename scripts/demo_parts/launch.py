"""Starts MPI programs, alone and through `penstock run`, and reads the logs that Penstock left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from penstock import native
from penstock.errors import LaunchError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "build" / "release" / "examples"
PENSTOCK = ROOT / ".venv" / "bin" / "penstock"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LIBRARIES = {"mpich": "MPICH", "openmpi": "Open MPI"}


@dataclass(frozen=True)
class Finished:
    """How a job ended. `code` is None when it had to be stopped."""

    code: int | None
    output: str
    errors: str
    elapsed_s: float


def flavours() -> list[str]:
    """The MPI libraries that examples were built for and that can launch here."""
    return [name for name in LIBRARIES if (EXAMPLES / name).is_dir() and launcher(name)]


def launcher(flavour: str) -> str | None:
    """The mpiexec of a flavour: mpiexec.FLAVOUR, else a plain mpiexec of this flavour."""
    if named := shutil.which(f"mpiexec.{flavour}"):
        return named
    try:
        return shutil.which("mpiexec") if native.detect_mpi()[0] == flavour else None
    except LaunchError:
        return None


def job(flavour: str, ranks: int, program: str, *arguments: str) -> list[str]:
    """The command line that starts an example under one MPI."""
    crowd = ["--oversubscribe"] if flavour == "openmpi" else []
    path = str(EXAMPLES / flavour / program)
    return [str(launcher(flavour)), "-n", str(ranks), *crowd, path, *arguments]


def with_penstock(command: list[str], logs: Path, *options: str) -> list[str]:
    """The same job through `penstock run`."""
    return [str(PENSTOCK), "run", "--quiet", "--log-dir", str(logs), *options, "--", *command]


def run(command: list[str], timeout_s: float, where: Path) -> Finished:
    """Runs a job; one that is not done in time is stopped, whatever it hangs in."""
    start = time.monotonic()
    files = (where / "stdout.txt", where / "stderr.txt")
    with files[0].open("w") as output, files[1].open("w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=os.environ | AS_ROOT,
            start_new_session=True,
        )
        code = wait(process, timeout_s)
    elapsed_s = time.monotonic() - start
    said = [file.read_text(errors="replace") for file in files]
    return Finished(code, said[0], said[1], elapsed_s)


def wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit code, or None for a job that had to be stopped. No job outlives an exception."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        stop(process)
    except BaseException:  # Ctrl-C, for one, which does not reach the job's own session
        stop(process)
        raise
    return None


def stop(process: subprocess.Popen[bytes], patience_s: float = 5) -> None:
    """Asks first, then kills: at once when this is broken off, by a second Ctrl-C."""
    process.send_signal(signal.SIGTERM)  # launchers then stop their ranks
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass(frozen=True)
class Logged:
    """What the logs of a job say, summed over its files."""

    engine_bytes: int
    passthrough_bytes: int
    algorithms: tuple[str, ...]


def read_logs(directory: Path) -> Logged:
    """Sums the job logs in a directory. No log at all is an error, not zero bytes."""
    logs = [json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))]
    if not logs:
        raise FileNotFoundError(f"Penstock left no job log in {directory}")
    files = [file for log in logs for file in log["files"]]
    ran = {name for file in files for name in file["algorithms"]}
    return Logged(
        sum(log["totals"]["engine_bytes"] for log in logs),
        sum(log["totals"]["passthrough_bytes"] for log in logs),
        tuple(sorted(ran)),
    )
