#!/usr/bin/env python3
"""Runs the checks: `make check` (quick) and `make check-full` (everything, resumable).

Each step is a command with its own runner. A line per step says how it ended; the runner's whole
output is in build/check/STEP.log, and the end of it is shown when a step fails. Test runners are
read from their JUnit reports, so that a skip is counted and its reason known. A skip that
scripts/expected-skips.txt does not foresee fails the step that it happened in.

A step that is marked `aside` takes what the steps after it leave idle: many of those wait, for
launchers, disks and each other. It runs at a low priority; unless it waits itself, for its
daemons, browser or disks: such steps have a lane of their own, and keep their priority.

Python's standard library only. The last line is "N passed, N failed, N skipped".
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_steps import OUT, ROOT, Step, full_steps, quick_steps
from endings import exit_on_signals
from skips import CONDITIONS, Case, Foreseen, read_foreseen, read_junit, read_suite


@dataclass
class Outcome:
    """What a step came to."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """The step's closing line."""
        mark = "FAILED" if self.failed else "ok"
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        return f"{name:<28} {mark:<6} {counts} in {self.seconds:.0f} s"

    def named(self) -> list[str]:
        """The complaints that name a case."""
        return [one for one in self.complaints if one.startswith(("failed: ", "unforeseen skip: "))]


class Running:
    """The processes of steps, so that none outlives a check that is broken off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stopped = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """One that begins too late is ended at once."""
        with self._lock:
            self._processes.append(process)
            if self._stopped:
                end_group(process)

    def stop(self) -> None:
        """Ends all of them, and those to come."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """A step's process with all that it started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


RUNNING = Running()


def run_command(step: Step, log: Path) -> tuple[bool, float]:
    """Runs a step without stdin; a step that outlives its time has failed."""
    start = time.monotonic()
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["nice", "-n", "10", *step.command] if step.aside and not step.waits else step.command
    with log.open("w") as sink:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=os.environ | as_root,
            start_new_session=True,
        )
        RUNNING.add(process)
        try:
            code = process.wait(step.timeout_s)
        except subprocess.TimeoutExpired:
            end_group(process)
            process.wait()
            sink.write(f"\nstopped after {step.timeout_s} s\n")
            code = 124
    # A suite that could do nothing here says so; whether that was foreseen is judged by its skips.
    good = code == 0 or (step.is_suite and code == 77)
    return good, time.monotonic() - start


def judge(step: Step, good: bool, cases: list[Case], foreseen: list[Foreseen]) -> Outcome:
    """Counts cases; a runner that failed without a failed case is one failure."""
    outcome = Outcome()
    for case in cases:
        if case.state == "skipped":
            outcome.skipped += 1
            if not any(one.covers(step.name, case) for one in foreseen):
                outcome.failed += 1
                outcome.complaints.append(f"unforeseen skip: {case.name}: {case.reason}")
        elif case.state == "failed":
            outcome.failed += 1
            outcome.complaints.append(
                "\n  ".join([f"failed: {case.name}", *case.reason.splitlines()])
            )
        else:
            outcome.passed += 1
    if not good and outcome.failed == 0:
        outcome.failed = 1
    return outcome


def run_step(step: Step, foreseen: list[Foreseen]) -> Outcome:
    """Runs one step and tells how it went."""
    log = OUT / f"{step.name.replace(' ', '-')}.log"
    if shutil.which(step.command[0], path=f"{os.environ['PATH']}:{ROOT}") is None:
        return Outcome(failed=1, complaints=[f"{step.command[0]} is not there"])
    if step.needs is not None and not step.needs.exists():
        return Outcome(failed=1, complaints=[f"{step.needs.relative_to(ROOT)} is not there"])
    if step.is_suite:
        good, seconds = run_command(step, log)
        cases = read_suite(log.read_text(errors="replace"))
        good = good and bool(cases)
    elif step.junit is None:
        good, seconds = run_command(step, log)
        cases = [Case(step.name, "passed" if good else "failed")]
    else:
        step.junit.unlink(missing_ok=True)
        good, seconds = run_command(step, log)
        cases = read_junit(step.junit)
        good = good and bool(cases)  # a suite of no tests has not passed
    outcome = judge(step, good, cases, foreseen)
    outcome.seconds = seconds
    if outcome.failed:
        outcome.complaints += [f"the end of {log.relative_to(ROOT)}:", *tail(log)]
    return outcome


def tail(log: Path, lines: int = 25) -> list[str]:
    """The last lines of a log."""
    return ["  " + line for line in log.read_text(errors="replace").splitlines()[-lines:]]


def git(*words: str) -> str:
    """What git says here."""
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def tree_digest() -> str:
    """Names the state of the working tree, and what of it git tracks and has committed, which is
    all that some steps look at: a passed step need not run again on the same one."""
    digest = hashlib.sha256()
    tracked = git("ls-files", "-z", "--cached")
    digest.update(git("rev-parse", "HEAD^{tree}").encode() + tracked.encode())
    others = git("ls-files", "-z", "--others", "--exclude-standard")
    for name in sorted(set((tracked + others).split("\0"))):
        path = ROOT / name
        if name and path.is_file():
            digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def builds(step: Step) -> bool:
    """Whether others run what it leaves, which somebody may have built anew from another tree."""
    return step.name.startswith("build ") or step.command[0] == "scripts/build.sh"


def machine_digest() -> str:
    """Names what skips hang on, who runs the check above all: of what a user had to skip root runs
    all."""
    held = [name for name, holds in CONDITIONS.items() if holds()]
    return hashlib.sha256(" ".join(held).encode()).hexdigest()[:8]


def resumable(run: Callable[[Step], Outcome]) -> Callable[[Step], Outcome]:
    """Wraps `run`: a step that passed on this very tree before is not run again where it would skip
    the same, but builds are. Behind a build that failed nothing is kept: what runs then are
    programs of before."""
    digest = tree_digest()
    unbuilt = threading.Event()
    stamps = ROOT / "build" / "check-full" / f"{digest}-{machine_digest()}"
    stamps.mkdir(parents=True, exist_ok=True)

    def once(step: Step) -> Outcome:
        stamp = stamps / step.name.replace(" ", "-")
        if stamp.exists() and not builds(step):
            passed, skipped = (int(word) for word in stamp.read_text().split())
            return Outcome(passed=passed, skipped=skipped)
        outcome = run(step)
        if builds(step) and outcome.failed:
            unbuilt.set()
        shown = outcome.passed > 0 and outcome.failed == 0 and not unbuilt.is_set()
        if shown and tree_digest() == digest:  # nobody has changed it meanwhile
            stamp.write_text(f"{outcome.passed} {outcome.skipped}")
        return outcome

    return once


def main() -> int:
    """Runs a tier, or the steps named."""
    exit_on_signals()  # run_in_order() then ends the steps
    parser = argparse.ArgumentParser(description="Run Penstock's checks.")
    parser.add_argument("tier", choices=["quick", "full"])
    parser.add_argument("--only", action="append", help="run only this step (may be repeated)")
    parser.add_argument("--list", action="store_true", help="print the steps and stop")
    arguments = parser.parse_args()
    steps = full_steps() if arguments.tier == "full" else quick_steps()
    names = [step.name for step in steps]
    for name in arguments.only or []:
        if name not in names:
            parser.error(f"no step is called {name!r}; the steps are: {', '.join(names)}")
    if arguments.only:
        steps = [step for step in steps if step.name in arguments.only]
    if arguments.list:
        print("\n".join(names))
        return 0
    return run_all(steps, resume=arguments.tier == "full" and not arguments.only)


class Tally:
    """Prints how steps end, each in one piece, and adds them up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.total = Outcome()
        self.wrong: list[str] = []

    def add(self, name: str, outcome: Outcome) -> None:
        """One step's end."""
        with self._lock:
            print(outcome.line(name), *outcome.complaints, sep="\n", flush=True)
            if outcome.failed:
                self.wrong += [outcome.line(name), *outcome.named()]
            self.total.passed += outcome.passed
            self.total.failed += outcome.failed
            self.total.skipped += outcome.skipped

    def closing(self) -> str:
        """The last line."""
        total = self.total
        return f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped"


def run_in_order(steps: list[Step], one: Callable[[Step], None]) -> None:
    """One step after the other, and beside them, one after the other too, those aside; and those
    of these that wait."""
    busy, waiting = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
    begun: dict[str, Future[None]] = {}

    def in_its_turn(step: Step) -> None:
        if step.after in begun:
            begun[step.after].result()
        one(step)

    try:
        for step in steps:
            if step.aside:
                lane = waiting if step.waits else busy
                begun[step.name] = lane.submit(in_its_turn, step)
            else:
                in_its_turn(step)
        for step_aside in begun.values():
            step_aside.result()
    except BaseException:
        for lane in (busy, waiting):
            lane.shutdown(wait=False, cancel_futures=True)
        RUNNING.stop()
        raise
    busy.shutdown()
    waiting.shutdown()


def run_all(steps: list[Step], *, resume: bool) -> int:
    """Runs steps, all of them, and prints the total."""
    OUT.mkdir(parents=True, exist_ok=True)
    foreseen = read_foreseen(ROOT / "scripts" / "expected-skips.txt")

    def plain(step: Step) -> Outcome:
        return run_step(step, foreseen)

    run = resumable(plain) if resume else plain
    tally = Tally()
    run_in_order(steps, lambda step: tally.add(step.name, run(step)))
    if tally.wrong:  # again at the end: what is above may be long
        print("what failed:", *tally.wrong, sep="\n")
    (OUT / "total.txt").write_text(tally.closing() + "\n")
    print(tally.closing())
    return 1 if tally.total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
