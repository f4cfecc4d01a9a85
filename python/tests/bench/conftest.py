"""What the tests of sessions share: a stand-in for a measuring program, and a machine at rest."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from peers_bench import Bench
from penstock.bench.execute import MARK
from penstock.bench.session import Measurement, Observer, Session
from penstock.bench.settle import Settle
from penstock.bench.statistics import Stopping
from penstock.bench.store import Store

FAKE = Path(__file__).resolve().parent / "fake_program.py"


@pytest.fixture
def fake() -> Callable[..., list[str]]:
    """The command line of the stand-in."""

    def command(*words: str) -> list[str]:
        # -I: no site of the tester slows the hundreds of starts
        return [sys.executable, "-IS", str(FAKE), *words]

    return command


@pytest.fixture
def leftover() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts a process that a run with this mark has left."""
    started: list[subprocess.Popen[bytes]] = []

    def start(mark: str) -> subprocess.Popen[bytes]:
        left = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: mark})
        started.append(left)
        # A program that has just begun has no environment yet.
        while mark.encode() not in Path(f"/proc/{left.pid}/environ").read_bytes():
            time.sleep(0.001)
        return left

    yield start
    for left in started:
        left.kill()
        left.wait()


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """A native directory whose measuring program for threads is the stand-in."""
    where = tmp_path / "native-with-measure"
    where.mkdir()
    for name in ("penstock-exec", "penstock-measure-threads"):
        program = where / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {FAKE} "$@"\n')
        program.chmod(0o755)
    return where


@pytest.fixture
def measurement(fake: Callable[..., list[str]]) -> Callable[..., Measurement]:
    def make(cell: str, variant: str, *words: str, **more: object) -> Measurement:
        return Measurement(cell, variant, fake(*words), **more)  # type: ignore[arg-type]

    return make


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., Session]:
    """A session of few blocks in an empty directory, on a machine that is always at rest."""

    def make(measurements: list[Measurement], **more: object) -> Session:
        given: dict[str, object] = {
            "stopping": Stopping(minimum=2, maximum=2, checks=(2,)),
            "seed": 7,
            "directory": tmp_path / "scratch",
            "settle": Settle(waiting=lambda: 0),
            "observer": Observer(),
        } | more
        store = given.pop("store", None) or Store(tmp_path / "results")
        return Session(measurements, store=store, **given)  # type: ignore[arg-type]

    return make


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """bench/peers on stand-ins."""
    return Bench(tmp_path)
