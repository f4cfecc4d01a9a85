#!/usr/bin/env python3
"""Runs the checks: `make check` (quick) and `make check-full` (everything, resumable).

Each step is a command with its own runner. A line per step says how it ended; the runner's whole
output is in build/check/STEP.log, and the end of it is shown when a step fails. Test runners are
read from their JUnit reports, so that a skip is counted and its reason known. A skip that
scripts/expected-skips.txt does not foresee fails the step that it happened in.

A step that is marked `aside` takes what the steps after it leave idle: many of those wait, for
launchers, disks and each other. It runs at the lowest priority, so that no time limit hangs on it;
unless it waits itself, for its daemons, browser or disks, and fills what others leave.

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
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from skips import Case, Foreseen, read_foreseen, read_junit, read_suite

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "check"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
MPI = "mpi"  # the ctest label of what needs an MPI library
LAYER = "layer"  # ... and of the layers' own tests
OTHER_THAN_LAYERS = ["-E", "_NOT_BUILT$"]  # what ctest calls the programs of these where not built
JOBS = str(os.cpu_count() or 1)
ONE_MORE = str(int(JOBS) + 1)  # of jobs that wait for launchers, disks and each other


@dataclass(frozen=True)
class Step:
    """One command. Without a report it counts as one test."""

    name: str
    command: list[str]
    _: KW_ONLY
    junit: Path | None = None
    is_suite: bool = False  # it prints its cases as tests/lib/run_mpi.py's Suite does
    needs: Path | None = None  # a path without which the step cannot be
    timeout_s: int = 1200
    aside: bool = False  # beside the steps that follow
    waits: bool = False  # of a step aside: it mostly does, and keeps its priority
    after: str = ""  # the step aside that has to have ended before


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


# ---- the steps ----


def tracked(*patterns: str) -> list[str]:
    """Files that git knows and that are there, by pattern."""
    command = ["git", "ls-files", "-z", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.split("\0") if name and (ROOT / name).exists()]


def pytest_step(name: str, *arguments: str) -> Step:
    """A run of pytest with a JUnit report. Tests of `-n` processes must not meet in one place."""
    junit = OUT / f"{name.replace(' ', '-')}.xml"
    command = [PYTHON, "-m", "pytest", "-q", f"--junitxml={junit}", *arguments]
    return Step(name, command, junit=junit, needs=ROOT / arguments[0])


def ctest_step(name: str, preset: str, *arguments: str, timeout_s: int = 1200) -> Step:
    """A run of ctest in a preset's build directory, with a JUnit report."""
    junit = OUT / f"{name.replace(' ', '-')}.xml"
    command = ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--no-tests=error"]
    # Whole outputs, because suites name in them what they skip.
    command += ["--output-junit", str(junit), "--test-output-size-passed", "1000000", *arguments]
    return Step(name, command, junit=junit, timeout_s=timeout_s)


def layers_step(name: str, preset: str, *selection: str) -> Step:
    """The layers' tests of a preset, many cases in a process."""
    junit = OUT / f"{name.replace(' ', '-')}.xml"
    command = [PYTHON, "scripts/layers.py", "--test-dir", f"build/{preset}", "-j", JOBS]
    command += ["--junit", str(junit), "--", *selection]
    return Step(name, command, junit=junit)


def asan_steps() -> list[Step]:
    """What runs under AddressSanitizer and UndefinedBehaviorSanitizer."""
    steps = [
        layers_step("layers under asan", "asan", "-LE", "full"),
        suite_step("file systems pairs", "tests/fs/product.py", "--tests", "build/asan"),
    ]
    return [replace(step, after="build asan") for step in steps]


def build_tests(name: str, preset: str) -> Step:
    """Everything of a preset, the layers' tests included."""
    command = ["scripts/build.sh", preset, "all", "layer_tests"]
    return Step(name, command, timeout_s=2400)


def suite_step(name: str, script: str, *arguments: str, timeout_s: int = 1200) -> Step:
    """A runner of ours that is no ctest case."""
    command = [PYTHON, script, "--build", "build/release", *arguments]
    return Step(name, command, is_suite=True, timeout_s=timeout_s)


def source_steps() -> list[Step]:
    """What is read and not run; beside the build, which waits for its linkers."""
    sources = tracked("*.cpp", "*.hpp", "*.c", "*.h")
    steps = [
        Step("includes", [PYTHON, "scripts/check_includes.py"]),
        Step("clang-format", ["clang-format", "--dry-run", "--Werror", *sources]),
        Step("ruff", [PYTHON, "-m", "ruff", "check", "."]),
        Step("ruff format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
        Step("codespell", [PYTHON, "-m", "codespell_lib", *tracked("*.md", "*.py", "src/*")]),
        Step("mypy", [PYTHON, "-m", "mypy"], needs=ROOT / "pyproject.toml"),
    ]
    return [replace(step, aside=True) for step in steps]


def waiting_steps() -> list[Step]:
    """What mostly waits: for daemons, browsers, full disks, launchers of pretended nodes."""
    steps = [
        suite_step("measure examples", "tests/instrument/examples.py"),
        suite_step("measure slurm", "tests/instrument/slurm.py"),
        suite_step("measure two nodes", "tests/instrument/two_nodes.py"),
        suite_step("measure full disk", "tests/instrument/full_disk.py"),
        suite_step("site openmpi", "tests/site/run.py", "--mpi", "openmpi"),
        suite_step("site mpich", "tests/site/run.py", "--mpi", "mpich"),
        suite_step("messages", "tests/messages/run.py", "--check"),
        pytest_step("docs site", "tests/docs_site"),
        pytest_step("install", "tests/install"),
    ]
    return [replace(step, aside=True, waits=True) for step in steps]


def instrument_steps() -> list[Step]:
    """What is held to times or takes the machine's devices; the ceiling."""
    return [
        suite_step("file systems", "tests/fs/run.py"),
        killed_sweeps(6),
        suite_step("page ring", "tests/peers/run.py", "--mpi", "mpich", "--only", "page"),
    ]


def killed_sweeps(kills: int) -> Step:
    """A sweep killed so many times has the samples of an undisturbed one."""
    command = [PYTHON, "tests/bench/kill.py", "--kills", str(kills)]
    return Step(f"killed sweeps {kills}", command, is_suite=True, timeout_s=3600)


def killed_ranks() -> Step:
    """What was synced survives a rank that is killed, whenever that is; a thousand times."""
    return suite_step(
        "killed ranks 1000",
        "tests/trials/killed.py",
        "--mpi",
        "openmpi",
        "--trials",
        "1000",
        timeout_s=3600,
    )


def nfs_clients() -> Step:
    """Two nodes of a real NFS lose nothing, a hundred files in each of the ways to write them."""
    return suite_step("nfs clients 100", "tests/fs/nfs_clients.py", "--runs", "100", timeout_s=3600)


def beside_fio() -> Step:
    """The measuring program and fio agree where both do the same."""
    command = [PYTHON, "tests/instrument/fio.py", "--build", "build/release"]
    return Step("measure beside fio", command, is_suite=True, timeout_s=2400)


def quick_steps() -> list[Step]:
    """`make check`. The layers' tests run once, where most is checked: under the sanitizers."""
    return [
        *source_steps(),
        Step("build release", ["scripts/build.sh", "release"], timeout_s=2400),
        replace(build_tests("build asan", "asan"), aside=True),
        Step("build examples", ["make", "-C", "examples", f"OUT={ROOT}/build/release/examples"]),
        layers_step("programs", "release", *OTHER_THAN_LAYERS, "-LE", f"^({MPI}|full|{LAYER})$"),
        *waiting_steps(),
        ctest_step(
            "mpi", "release", "-L", f"^{MPI}$", "-LE", "full", "-j", ONE_MORE, timeout_s=2400
        ),
        pytest_step("python", "python/tests", "-n", JOBS),
        pytest_step("scripts", "scripts/tests"),
        Step("docs table", [PYTHON, "scripts/docs_table.py", "--check"]),
        Step("docs drawings", [PYTHON, "scripts/drawings.py", "--check"]),
        pytest_step("tutorial", "tests/tutorial", "-m", "not slow"),
        *instrument_steps(),
        *asan_steps(),
    ]


def many_views() -> Step:
    """The method product on threads, on far more random views than the quick tier draws."""
    junit = OUT / "many-views.xml"
    program = ["build/release/exec_tests", "--gtest_brief=1", "--gtest_filter=*Conformance*"]
    command = ["env", "PENSTOCK_TEST_SEEDS=200", *program, f"--gtest_output=xml:{junit}"]
    return Step("many views", command, junit=junit, timeout_s=7200)


def file_system_product() -> Step:
    """All methods on every file system that can be made here."""
    command = [PYTHON, "tests/fs/product.py", "--build", "build/release", "--full"]
    return Step("file systems product", command, is_suite=True, timeout_s=7200)


def network_file_systems() -> Step:
    """Methods in pairs on mounts of NFS and GlusterFS."""
    name = "file systems on servers"
    return suite_step(name, "tests/fs/product.py", "--network", timeout_s=3600)


def full_steps() -> list[Step]:
    """`make check-full`: the quick steps and the long ones."""
    return [
        *quick_steps(),
        build_tests("build layer tests", "release"),
        layers_step("layers", "release", "-L", f"^{LAYER}$", "-LE", "full"),
        pytest_step("tutorial built", "tests/tutorial", "-m", "slow"),
        ctest_step("long tests", "release", "-L", "full", "-j", JOBS, timeout_s=14400),
        many_views(),
        file_system_product(),
        network_file_systems(),
        killed_sweeps(50),
        killed_ranks(),
        suite_step("bound", "tests/trials/bound.py", "--mpi", "openmpi"),
        nfs_clients(),
        beside_fio(),
        suite_step("peers mpich", "tests/peers/run.py", "--mpi", "mpich"),
        suite_step("peers openmpi", "tests/peers/run.py", "--mpi", "openmpi"),
        build_tests("build tsan", "tsan"),
        layers_step("layers under tsan", "tsan", "-LE", "full"),
        build_tests("build clang", "clang"),
        layers_step("clang", "clang", "-LE", f"^({MPI}|full)$"),
        replace(build_tests("tidy", "tidy"), timeout_s=7200),
        Step("check-the-checks", ["make", "check-the-checks"], timeout_s=7200),
        Step("fuzz", ["scripts/fuzz.sh", "1000000"], timeout_s=7200),
        Step("wheel", ["scripts/check_wheel.sh"], timeout_s=2400),
        Step("installation", ["scripts/check_install.sh"], timeout_s=3600),
        Step("compilers", ["scripts/check_compilers.sh"], timeout_s=3600),
        Step("fresh Debian", ["scripts/check_fresh.sh"], timeout_s=7200),
        Step("demo", ["make", "demo"], timeout_s=900),
    ]


# ---- running them ----


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
    command = ["nice", "-n", "19", *step.command] if step.aside and not step.waits else step.command
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
            outcome.complaints.append(f"failed: {case.name}")
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


def tree_digest() -> str:
    """Names the state of the working tree: a passed step need not run again on the same one."""
    digest = hashlib.sha256()
    for name in sorted(tracked(".")):
        path = ROOT / name
        if path.is_file():
            digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def resumable(run: Callable[[Step], Outcome]) -> Callable[[Step], Outcome]:
    """Wraps `run`: a step that passed on this very tree before is not run again."""
    stamps = ROOT / "build" / "check-full" / tree_digest()
    stamps.mkdir(parents=True, exist_ok=True)

    def once(step: Step) -> Outcome:
        stamp = stamps / step.name.replace(" ", "-")
        if stamp.exists():
            passed, skipped = (int(word) for word in stamp.read_text().split())
            return Outcome(passed=passed, skipped=skipped)
        outcome = run(step)
        if outcome.failed == 0:
            stamp.write_text(f"{outcome.passed} {outcome.skipped}")
        return outcome

    return once


def main() -> int:
    """Runs a tier, or the steps named."""
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
    """One step after the other, and beside them, one after the other too, those aside."""
    beside = ThreadPoolExecutor(1)
    begun: dict[str, Future[None]] = {}
    try:
        for step in steps:
            if step.aside:
                begun[step.name] = beside.submit(one, step)
                continue
            if step.after in begun:
                begun[step.after].result()
            one(step)
        for step_aside in begun.values():
            step_aside.result()
    except BaseException:
        beside.shutdown(wait=False, cancel_futures=True)
        RUNNING.stop()
        raise
    beside.shutdown()


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
