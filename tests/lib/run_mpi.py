"""Launches MPI programs under a watchdog, alone or under penstock-exec, and reads the job logs.

Standard library only, so that the suites run before anything of Python is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matrix_record import Record, Recorder
from mpis import MPIS, Mpi

MARK = "PENSTOCK_SUITE_RUN"
SKIPPED = 77


@dataclass(frozen=True)
class Penstock:
    """How a program is started under Penstock. ``method`` as on the command line; empty: it is
    configured otherwise. Without ``log_dir`` the log goes where a user's goes who says nothing:
    into the job's directory.
    """

    method: str
    require: bool = True
    log_dir: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a launch did: exit code, output, and the job logs that it left."""

    code: int
    output: str
    errors: str
    seconds: float
    hung: bool
    logs: list[dict[str, Any]]

    def result(self) -> dict[str, int]:
        """The program's closing ``result {...}`` line; empty when it did not get that far."""
        for line in reversed(self.output.splitlines()):
            if line.startswith("result "):
                return dict(json.loads(line.removeprefix("result ")))
        return {}

    def total(self, key: str) -> int:
        return sum(int(log["totals"][key]) for log in self.logs)

    def algorithms(self) -> dict[str, int]:
        """Calls by the algorithm that ran them, over all files of all logs."""
        ran: dict[str, int] = {}
        for log in self.logs:
            for file in log["files"]:
                for name, calls in file["algorithms"].items():
                    ran[name] = ran.get(name, 0) + int(calls)
        return ran

    def tail(self, lines: int = 12) -> str:
        failed = [x for x in self.output.splitlines() if x.startswith(("FAIL", "  "))][:40]
        last = (self.output.splitlines() + self.errors.splitlines())[-lines:]
        return "\n".join("    " + x[:400] for x in [*failed, "...", *last])


@dataclass(frozen=True)
class Bench:
    """Where things are: the build tree and the MPI library under test."""

    build: Path
    mpi: Mpi

    @property
    def flavour(self) -> str:
        return self.mpi.flavour

    @property
    def penstock_exec(self) -> Path:
        return self.build / "native" / "penstock-exec"

    def program(self, name: str) -> Path:
        return self.build / "suites" / f"{name}.{self.mpi.programs}"


# What a whole suite runs with: a fault that check_the_checks.py sows, and what ctest gives a suite
# that runs once more (tests/conformance/CMakeLists.txt).
HANDED_ON = (
    "PENSTOCK_SEEDED_FAULT",
    "PENSTOCK_TEST_CHAPTER",
    "PENSTOCK_TEST_COLD",
    "PENSTOCK_TEST_VIEW_BLOCKS",
)


def with_preload(library: Path, fault: str, met: Path) -> list[str]:
    """The program alone gets the fault library, not the launcher before it. The file ``met`` will
    have a line for each call that was made to fail."""
    told = [f"PENSTOCK_TEST_FAULT={fault}", f"PENSTOCK_TEST_FAULT_LOG={met}"]
    return ["env", f"LD_PRELOAD={library}", *told]


def launch(
    bench: Bench,
    ranks: int,
    program: Sequence[str],
    *,
    penstock: Penstock | None = None,
    before: Sequence[str] = (),
    wrap: Sequence[str] = (),
    mpi_options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    timeout_s: float = 60,
) -> Outcome:
    """Run ``program`` on ``ranks`` ranks, in ``directory``.

    ``before`` comes before mpiexec, ``wrap`` between it and penstock-exec.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-log-") as log_dir:
        command = [*before, *bench.mpi.mpiexec(ranks), *mpi_options, *wrap]
        if penstock is not None:
            command += [str(bench.penstock_exec)]
            command += ["--method", penstock.method] if penstock.method else []
            command += ["--log-dir", log_dir] if penstock.log_dir else []
            command += [*(["--require"] if penstock.require else []), "--"]
        command += program
        env = _environment(penstock, bench.mpi.environment() | dict(environment or {}))
        code, output, errors, seconds, hung = _watched(command, env, directory, timeout_s)
        given = penstock is None or penstock.log_dir
        place = Path(log_dir) if given else directory or Path()
        logs = [json.loads(p.read_text()) for p in sorted(place.glob("penstock-*.json"))]
    return Outcome(code, output, errors, seconds, hung, logs)


def _environment(penstock: Penstock | None, extra: Mapping[str, str] | None) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_") or k in HANDED_ON}
    env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    env[MARK] = uuid.uuid4().hex
    if penstock is not None:
        env |= penstock.environment
    return env | dict(extra or {})


def _watched(
    command: Sequence[str], env: dict[str, str], directory: Path | None, timeout_s: float
) -> tuple[int, str, str, float, bool]:
    """Files instead of pipes: a rank that outlives its launcher must not keep us waiting."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        hung = False
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            hung = True
        seconds = time.monotonic() - start
        _end(process, env[MARK])
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return process.returncode, texts[0], texts[1], seconds, hung


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End what this launch started and nothing else: processes that carry its mark."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
    for pid in _marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _marked(mark: str) -> Iterator[int]:
    needle = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if needle in (entry / "environ").read_bytes():
                yield int(entry.name)


class Suite:
    """Counts what held and what did not; every failure is printed when it happens.

    With ``mpi`` and ``record`` each case is also a line for the support matrix, as a C++ program
    that calls MPI-IO itself.
    """

    def __init__(self, name: str, mpi: str = "", record: Path | None = None) -> None:
        self.name = name
        self.mpi = mpi
        self._recorder = Recorder(record)
        self.passed = 0
        self.failures: list[str] = []
        self.skips: list[str] = []
        self.excused = 0
        self.start = time.monotonic()

    def check(self, case: str, problems: Sequence[str], outcome: Outcome | None = None) -> bool:
        self._record(case, "failed" if problems else "passed", "; ".join(problems)[:300], outcome)
        if not problems:
            self.passed += 1
            return True
        self.failures.append(case)
        print(f"FAILED {case}")
        for problem in problems:
            print(f"  {problem}")
        if outcome is not None:
            print(outcome.tail())
        sys.stdout.flush()
        return False

    def skip(self, case: str, reason: str, *, fails_alone: bool = False) -> None:
        """``fails_alone``: not for want of something, but because it fails without Penstock too."""
        if fails_alone:
            self.excused += 1
        else:
            self.skips.append(f"{case}: {reason}")
        self._record(case, "expected_failure" if fails_alone else "skipped", reason, None)
        print(f"{'FAILS ALONE' if fails_alone else 'SKIPPED'} {case}: {reason}")

    def _record(self, case: str, outcome: str, reason: str, out: Outcome | None) -> None:
        passed_through = out.total("passthrough_bytes") if out is not None else 0
        if outcome == "passed" and passed_through:
            reasons = {why for log in out.logs for file in log["files"] for why in file["degraded"]}
            outcome, reason = "passed_through", "; ".join(sorted(reasons)) or "as expected"
        record = Record(
            suite=self.name.split()[0],
            mpi=self.mpi,
            binding="C++",
            library="MPI-IO",
            case=case,
            ranks=max((log["ranks"] for log in out.logs), default=1) if out is not None else 1,
            outcome=outcome,
            engine_bytes=out.total("engine_bytes") if out is not None else 0,
            passthrough_bytes=passed_through,
            reason=reason,
        )
        self._recorder.add(record)

    def finish(self) -> int:
        seconds = time.monotonic() - self.start
        print(
            f"{self.name}: {self.passed} passed, {len(self.failures)} failed, "
            f"{len(self.skips)} skipped, {self.excused} fail alone, {seconds:.0f} s"
        )
        if self.failures:
            return 1
        if not self.passed and not self.skips and not self.excused:
            print("no case ran: --only matches none")
            return 2
        return 0 if self.passed else SKIPPED


def served_problems(outcome: Outcome, algorithm: str | None) -> list[str]:
    """The log must say that the method asked for ran in every call, and took every byte.

    ``algorithm`` is what collective calls had to run; None leaves the choice to the engine.
    Independent calls are each rank's own: ``individual``.
    """
    if not outcome.logs:
        return ["no job log"]
    result = outcome.result()
    problems = []
    if outcome.total("engine_bytes") != result.get("bytes"):
        engine = outcome.total("engine_bytes")
        problems.append(f"engine_bytes {engine}, written {result.get('bytes')}")
    if outcome.total("passthrough_bytes") != 0:
        problems.append(f"passthrough_bytes {outcome.total('passthrough_bytes')}")
    problems += _algorithm_problems(outcome.algorithms(), result, algorithm)
    if any(log["state"] != "finished" for log in outcome.logs):
        problems.append("a log does not say finished")
    return problems


def _algorithm_problems(
    ran: dict[str, int], result: dict[str, int], algorithm: str | None
) -> list[str]:
    together, alone = result.get("collective", 0), result.get("independent", 0)
    wanted: dict[str, int] = {}
    if algorithm is None:
        calls = sum(ran.values())
        return [] if calls == together + alone else [f"{calls} calls ran, {together + alone} made"]
    for name, calls in ((algorithm, together), ("individual", alone)):
        if calls:
            wanted[name] = wanted.get(name, 0) + calls
    return [] if ran == wanted else [f"ran {ran}, asked for {wanted}"]


def read_problems(outcome: Outcome) -> list[str]:
    """Every byte of a collective read was the engine's."""
    engine, read = outcome.total("engine_read_bytes"), outcome.result().get("read", 0)
    return [] if engine == read else [f"the engine read {engine} bytes, of {read}"]


def program_problems(outcome: Outcome) -> list[str]:
    """The program ended by itself, reached its end, and none of its own checks failed."""
    if outcome.hung:
        return [f"hangs (stopped after {outcome.seconds:.0f} s)"]
    result = outcome.result()
    problems = [] if outcome.code == 0 else [f"exit code {outcome.code}"]
    if not result:
        return [*problems, "no closing result"]
    if result["failed"]:
        problems.append(f"{result['failed']} of {result['checks']} checks failed")
    return problems


def plain_arguments(description: str | None) -> argparse.ArgumentParser:
    """What every suite takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=Path, required=True, help="the build tree")
    parser.add_argument("--only", default="", help="run only cases whose name contains this")
    return parser


def arguments(description: str) -> argparse.ArgumentParser:
    """What a suite takes that runs on one MPI library at a time."""
    parser = plain_arguments(description)
    parser.add_argument("--mpi", required=True, choices=list(MPIS))
    parser.add_argument("--alone", action="store_true", help="without Penstock")
    parser.add_argument(
        "--record", type=Path, help="a line of JSON per case, for the support matrix"
    )
    return parser
