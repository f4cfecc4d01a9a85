"""What the tests share: an empty directory, a stand-in for penstock-exec, and the command line."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import Cli

PYTHON_DIR = Path(__file__).resolve().parents[1]

# Does what penstock-exec promises a launcher: shows its options, runs the program.
FAKE_EXEC = """#!/bin/sh
while [ "$1" != -- ]; do printf 'option %s\\n' "$1"; shift; done
shift
exec "$@"
"""


# With one of these set, what is printed for people has colours, whoever reads it.
_COLOURS = ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS", "TTY_COMPATIBLE")


@pytest.fixture(autouse=True, scope="session")
def files_that_only_their_owner_may_write() -> None:
    """A tester's umask may say otherwise, and configuration files would be refused."""
    os.umask(0o022)


@pytest.fixture(autouse=True, scope="session")
def signals_that_are_heeded() -> None:
    """Behind ``nohup`` or ``&`` a tester's are ignored, and sessions leave ignored ones alone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No room: writes past 100 bytes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def native_dir(tmp_path: Path) -> Path:
    """A native directory with a stand-in for penstock-exec and empty shims."""
    where = tmp_path / "native"
    where.mkdir()
    program = where / "penstock-exec"
    program.write_text(FAKE_EXEC)
    program.chmod(0o755)
    for flavour in ("mpich", "openmpi"):
        (where / f"libpenstock-{flavour}.so").touch()
    return where


@pytest.fixture
def clean_environment(native_dir: Path, tmp_path: Path) -> dict[str, str]:
    """This process's variables without any of Penstock's or an MPI launcher's, in an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    others = ("PENSTOCK_", "LD_PRELOAD", *_COLOURS)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(others)}
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": "",
        "PYTHONPATH": str(PYTHON_DIR),
        "PENSTOCK_NATIVE_DIR": str(native_dir),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "COLUMNS": "100",
        "PYTHONWARNINGS": "error",
    }


@pytest.fixture
def cli(tmp_path: Path, clean_environment: dict[str, str]) -> Cli:
    """Runs ``penstock`` with arguments in an empty directory, as a user would."""
    empty = tmp_path / "empty"
    empty.mkdir()

    def call(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "penstock", *words],
            cwd=empty,
            env=clean_environment | variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return call
