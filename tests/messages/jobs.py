"""Jobs: what is said while a program runs and at its end."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from provocation import ANY, Bench, NotHereError, Provocation, in_path
from start import RUN, wrote

JOB = "mpiexec.mpich -n 2"
WRITER = "writer.mpich"


def only(*names: str) -> Callable[[Bench, Path], None]:
    """A second installation that has no more than these."""

    def arrange(bench: Bench, directory: Path) -> None:
        (directory / "native").mkdir()
        for name in names:
            shutil.copy(bench.native / name, directory / "native" / name)

    return arrange


without_engine = only("penstock-exec", "libpenstock-mpich.so")


def mounts(bench: Bench, directory: Path) -> None:
    del bench
    (directory / "disk").mkdir()
    probe = ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "x", "disk"]
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise NotHereError("only root can mount")
    if subprocess.run(probe, cwd=directory, capture_output=True, check=False).returncode != 0:
        raise NotHereError("mounts are not allowed")


def on_small_disk(command: str) -> str:
    inner = f"mount -t tmpfs -o size=1m none disk && {command}"
    return f"unshare --mount --propagation private sh -c '{inner}'"


JOBS = [
    Provocation("Job", f"{RUN} {JOB} {WRITER} out", 0, ["2.0 MiB by engine", "0 errors", "log "]),
    Provocation("Job", f"penstock run --quiet -- {JOB} {WRITER} out", 0, [], silent=True),
    Provocation("Job", f"penstock run --observe -- {JOB} {WRITER} out", 0, ["2.0 MiB passed"]),
    Provocation("Job", f"penstock run --verify -- {JOB} {WRITER} out", 0, ["2.0 MiB verified"]),
    Provocation("Job", f"{RUN} {JOB} {WRITER} none/out", None, ["writer: open"]),
    Provocation(
        "Job",
        on_small_disk(f"{RUN} {JOB} {WRITER} disk/out"),
        None,
        ["writer: write", "errors"],
        "the disk is full",
        mounts,
    ),
    Provocation(
        "Job",
        on_small_disk("penstock-exec writer.mpich disk/out exits"),
        0,
        ["disk/out", "without MPI_Finalize", "not all that was accepted", "No space left"],
        "the program exits without MPI_Finalize, and the disk is full",
        mounts,
    ),
    Provocation(
        "Job",
        f"penstock run --log-dir file/logs -- {JOB} {WRITER} out",
        0,
        ["log cannot be written", "file", "--log-dir", "by engine"],
        "the log's directory cannot be made",
        wrote("file", ""),
    ),
    Provocation(
        "Job",
        f"{RUN} {JOB} {WRITER} out killed; code=$?; penstock log penstock-*.json; exit $code",
        None,
        ["running, or killed before its end"],
        "a rank is killed; then `penstock log`",
    ),
    Provocation(
        "Job",
        f"{RUN} {JOB} {WRITER} out sleep",
        ANY,
        [],
        "Ctrl-C",
        interrupt_after="out",
        silent=True,
    ),
    Provocation(
        "Job",
        f"{RUN} {JOB} {WRITER} out shared",
        0,
        ["passed through", "write_shared"],
        "a call that Penstock does not take over",
    ),
    Provocation(
        "Job",
        f"penstock run --require -- {JOB} {WRITER} out shared",
        None,
        ["write_shared", "PENSTOCK_REQUIRE", "out"],
        "a call that Penstock does not take over, with `--require`",
        once=False,
    ),
    Provocation(
        "Job",
        f"{RUN} {JOB} {WRITER} out",
        None,
        ["penstock-engine-mpich.so", "cannot be read", "where every node sees it", "--method off"],
        "the engine's file is missing",
        without_engine,
        {"PENSTOCK_NATIVE_DIR": "@/native"},
        once=False,
    ),
    Provocation(
        "Job",
        "mpiexec.mpich -n 1 penstock-exec writer.mpich out"
        " : -n 1 native/penstock-exec writer.mpich out",
        None,
        ["penstock-engine-mpich.so", "cannot be read", "where every node sees it", "--method off"],
        "the engine's file is missing on one node",
        without_engine,
    ),
    Provocation(
        "Job",
        "mpiexec.mpich -n 1 penstock-exec writer.mpich out"
        " : -n 1 native/penstock-exec writer.mpich out",
        None,
        ["the build for MPICH", "libpenstock-mpich.so", "lacks", "compiler wrapper", "--mpi"],
        "the build for its MPI is missing on one node",
        only("penstock-exec"),
    ),
    Provocation(
        "Job",
        f"{RUN} mpiexec.openmpi --oversubscribe --bind-to none -n 2 writer.openmpi out",
        0,
        ["2.0 MiB by engine"],
        "the same job on Open MPI",
        in_path("mpiexec.openmpi"),
    ),
]
