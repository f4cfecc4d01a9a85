"""Running a program: what counts, what does not, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.bench.execute import MARK, ProgramResult, end_leftovers, execute

Fake = Callable[..., list[str]]


def run(command: list[str], timeout_s: float = 30.0) -> ProgramResult:
    return execute(command, dict(os.environ), timeout_s)


def test_a_good_run_has_a_result(fake: Fake) -> None:
    done = run(fake("--rate", "5e8"))
    assert done.failed is None
    assert done.result is not None
    assert done.result.application.bytes_per_s == 5e8


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--exit", "1", "--silent"), "exit code 1"),
        (("--exit", "1", "--error", "disk full"), "write of worker 1 failed: MPI_ERR_NO_SPACE"),
        (("--error", "disk full"), "disk full"),
        (("--wrong-bytes", "3"), "3 bytes of the file are wrong"),
        (("--exit", "-11"), "SIGSEGV"),
        (("--silent",), "printed no result"),
        (("--schema", "penstock.measure/2"), "penstock.measure/2"),
    ],
)
def test_a_bad_run_says_why(fake: Fake, words: tuple[str, ...], why: str) -> None:
    assert why in str(run(fake(*words)).failed)


def test_what_cannot_be_started_is_named() -> None:
    done = run(["/nowhere/program"])
    assert done.failed == "/nowhere/program cannot be started: No such file or directory"


def test_a_program_that_hangs_is_ended(fake: Fake) -> None:
    begin_s = time.monotonic()
    done = run(fake("--sleep", "60"), timeout_s=0.3)
    assert "timed out after 0.3 s" in str(done.failed)
    assert time.monotonic() - begin_s < 20


def test_children_of_a_program_that_hangs_are_ended_too() -> None:
    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    child = "import time; time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    # In a session of its own, where the signal to the group does not reach it.
    code = code.replace("])", "], start_new_session=True)")
    execute([sys.executable, "-c", code], dict(os.environ) | {MARK: mark}, 1.0)
    assert end_leftovers(mark) == 0


def test_a_signal_while_a_program_is_started_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    real, started = subprocess.Popen, []

    def interrupted(*words: Any, **options: Any) -> subprocess.Popen[str]:
        started.append(real(*words, **options))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(["sleep", "60"], dict(os.environ), 30.0)
    assert started[0].poll() == -signal.SIGTERM


def test_leftovers_of_a_killed_sweep_are_ended(
    leftover: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    child, other = leftover(f"{mark}-a"), leftover(f"{mark}-b")
    assert end_leftovers(f"{mark}-a") == 1
    assert child.wait(10) == -signal.SIGKILL
    assert other.poll() is None
