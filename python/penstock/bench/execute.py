"""Runs one measuring program in a process group of its own, and judges what it printed.

Whatever a run leaves behind, also ranks that moved to a session of their own, carries a mark in its
environment; `end_leftovers` finds and ends such processes, also those of a sweep that was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from penstock.bench.interruptions import interruptions_wait
from penstock.bench.sample import PROGRAM_SCHEMA, Result
from penstock.strict import first_wrong

MARK = "BENCH_OF_PENSTOCK"  # not PENSTOCK_*: those are settings, and the engine checks them
_GRACE_S = 3.0
_SIGNALLED_TOGETHER_S = 0.5
_STDERR_KEPT = 4000


@dataclass(frozen=True)
class ProgramResult:
    """What a run did. ``failed`` is None for a sample that counts, else why it does not."""

    returncode: int | None
    result: Result | None
    stderr: str
    wall_s: float
    failed: str | None


def execute(command: Sequence[str], env: Mapping[str, str], timeout_s: float) -> ProgramResult:
    """Run a command to its end; on timeout or interrupt the whole of it is ended.

    Parameters
    ----------
    command : words
        The launcher, the program and their options.
    env : mapping
        The whole environment of the run.
    timeout_s : float
        After this many seconds the run is ended and has failed.
    """
    begin_s = time.monotonic()
    process: subprocess.Popen[str] | None = None
    try:
        with interruptions_wait():  # else nobody would know what was started
            process = _start(command, env)
        return _to_its_end(process, env, begin_s, timeout_s)
    except _NotStartedError as error:
        why = f"{command[0]} cannot be started: {error}"
        return ProgramResult(None, None, "", time.monotonic() - begin_s, why)
    except BaseException:
        if process is not None:
            _end(process, env)
        raise


def _to_its_end(
    process: subprocess.Popen[str], env: Mapping[str, str], begin_s: float, timeout_s: float
) -> ProgramResult:
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
        wall_s = time.monotonic() - begin_s
        if process.returncode != 0:
            _await_interruption()
    except subprocess.TimeoutExpired:
        stderr = _end(process, env)
        why = f"timed out after {timeout_s:g} s and was ended{_last_words(stderr)}"
        return ProgramResult(None, None, _tail(stderr), time.monotonic() - begin_s, why)
    result, unreadable = _read(stdout)
    failed = _why_failed(process.returncode, result, stderr) or unreadable
    if result is None and failed is None:
        failed = f"it ended well but printed no result{_last_words(stderr)}"
    return ProgramResult(process.returncode, result, _tail(stderr), wall_s, failed)


class _NotStartedError(Exception):
    pass


def _start(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(  # noqa: S603 - the measured command
            list(command),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )
    except OSError as error:
        raise _NotStartedError(error.strerror) from error


def _await_interruption() -> None:
    """A batch system signals a whole job, and its program may end before the signal comes to us.

    It then did not fail, and is interrupted here, as everything else.
    """
    time.sleep(_SIGNALLED_TOGETHER_S)


def _end(process: subprocess.Popen[str], env: Mapping[str, str]) -> str:
    """End the process group, politely first: launchers then take their ranks with them."""
    _signal_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)  # what ignored the first signal
    if mark := env.get(MARK):
        end_leftovers(mark)  # what left the group, and may hold the pipes
    try:
        return process.communicate(timeout=_GRACE_S)[1]
    except subprocess.TimeoutExpired:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        return ""


def _signal_group(number: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, which)


def told_of_leftovers(ended: int) -> str:
    """What a user is told of them."""
    were = "was" if ended == 1 else "were"
    some = "1 process" if ended == 1 else f"{ended} processes"
    return f"{some} of an earlier run {were} still there and {were} ended"


def end_leftovers(mark: str) -> int:
    """End every process of ours whose environment carries ``mark``; how many there were."""
    ended = set()
    deadline_s = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline_s:
        found = _marked(mark)
        if not found:
            break
        for number in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        ended.update(found)
        time.sleep(0.02)
    return len(ended)


def _marked(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # it ended, or is another user's
            continue
    return found


def _read(stdout: str) -> tuple[Result | None, str | None]:
    """The program's line, which a launcher may have put lines of its own around."""
    for line in reversed(stdout.splitlines()):
        if not line.startswith("{"):
            continue
        try:
            values = json.loads(line)
        except json.JSONDecodeError:
            continue
        schema = values.get("schema")
        if schema != PROGRAM_SCHEMA:
            return None, f"it printed schema {schema!r}, and this penstock reads {PROGRAM_SCHEMA!r}"
        try:
            return Result.model_validate(values), None
        except ValidationError as error:
            return None, f"its result cannot be read: {first_wrong(error)}"
    return None, None


def _why_failed(returncode: int, result: Result | None, stderr: str) -> str | None:
    if returncode < 0:
        return f"ended by {_signal_name(-returncode)}{_last_words(stderr)}"
    if result is not None and (why := _why_wrong(result)):
        return why
    if returncode != 0:
        return f"exit code {returncode}{_last_words(stderr)}"
    return None


def _why_wrong(result: Result) -> str | None:
    """What its own account says against a run."""
    if (error := result.error) is not None:
        worker = "" if error.worker is None else f" of worker {error.worker}"
        return f"{error.where or 'a call'}{worker} failed: {error.error_class} {error.text}".strip()
    if (verified := result.verified) is None:
        return None
    if verified.wrong_bytes:
        first = "" if verified.first_wrong is None else f", the first: {verified.first_wrong}"
        return f"{verified.wrong_bytes} bytes of the file are wrong{first}"
    if verified.bytes < result.bytes and result.parameters.get("verify") != "none":
        return f"only {verified.bytes} of {result.bytes} bytes were verified"
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_words(stderr: str) -> str:
    """The last line with a word in it: Open MPI draws boxes."""
    lines = [line.strip() for line in stderr.splitlines() if re.search(r"\w\w", line)]
    return f": {lines[-1][:300]}" if lines else ""


def _tail(text: str) -> str:
    return text[-_STDERR_KEPT:]
