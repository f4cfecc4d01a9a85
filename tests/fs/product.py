#!/usr/bin/env python3
"""Write methods on several file systems: ext4, xfs and btrfs on loop devices, tmpfs and ramfs.

On each the mechanisms' own promises are run, the methods on threads, and programs under MPI.
Without --full only so many methods are that each pair of choices meets; with it, all. What a file
system refuses (ramfs direct writes, btrfs windows that no store finds full) must be said.

A file system that this machine cannot make is a skip with its reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from mpis import MPIS
from run import NotHereError, script
from run_mpi import (
    Bench,
    Outcome,
    Penstock,
    Suite,
    launch,
    plain_arguments,
    program_problems,
    served_problems,
)
from skips import read_junit

ON_LOOP, IN_MEMORY = ("ext4", "xfs", "btrfs"), ("tmpfs", "ramfs")
MAPPED, DIRECT = ("ext4", "xfs", "tmpfs"), ("ext4", "xfs", "btrfs", "tmpfs")
SIZE = "512MiB"
FEWEST_TESTS = 20
IO_TESTS = "FileSystems.*:*EveryMechanism*:*DirectFiles*:AsyncFiles.*:Mmap.*:MmapOfTheWholeFile.*"
METHODS = (
    "two_phase(writers=2, cycle=64KiB) + shm + uring(direct, registered)",
    "two_phase(writers=2, cycle=64KiB) + shm + mmap(window=file)",
)


# ---- the file systems ----


@contextmanager
def file_system(kind: str, place: Path) -> Iterator[Path]:
    """A directory on a fresh file system; all of it is gone afterwards."""
    made = on_loop(kind, place) if kind in ON_LOOP else in_memory(kind, place)
    with made as directory:
        directory.chmod(0o1777)
        yield directory


@contextmanager
def on_loop(kind: str, place: Path) -> Iterator[Path]:
    try:
        how = ("--fs", kind, "--size", SIZE, "--rate", "0")
        started = script("slowdisk.sh", "start", place, *how)
        if started.returncode != 0:
            raise RuntimeError(started.stderr.strip())
        yield place / "mnt"
    finally:
        with suppress(NotHereError):
            script("slowdisk.sh", "stop", place)


@contextmanager
def in_memory(kind: str, place: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        raise NotHereError(f"only root can mount a {kind}; run it as root")
    options = ["-o", "size=512m"] if kind == "tmpfs" else []
    done = subprocess.run(
        ["mount", "-t", kind, *options, kind, place], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotHereError(f"a {kind} cannot be mounted: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


# ---- what runs on them ----


@dataclass(frozen=True)
class Where:
    """A file system under test."""

    kind: str
    directory: Path

    def environment(self, full: bool) -> dict[str, str]:
        own = {"PENSTOCK_TEST_DIR": str(self.directory), "PENSTOCK_TEST_FS": self.kind}
        return os.environ | own | ({} if full else {"PENSTOCK_TEST_PAIRWISE": "1"})


def run_tests(suite: Suite, where: Where, program: Path, chosen: str, full: bool) -> None:
    """A test program of ours: what passes is one case, what is skipped one each."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [program, "--gtest_brief=1", f"--gtest_filter={chosen}"]
        done = subprocess.run(
            [*command, f"--gtest_output=xml:{report.name}"],
            env=where.environment(full),
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
        )
        ran = read_junit(Path(report.name))
    problems = [] if done.returncode == 0 else done.stdout.splitlines()[-40:]
    if len(ran) < FEWEST_TESTS:
        problems.append(f"{len(ran)} tests ran: {done.stdout[-400:]}{done.stderr[-400:]}")
    print(f"{where.kind} {program.name}: {len(ran)} tests", flush=True)
    suite.check(f"{where.kind} {program.name}", problems)
    for case in ran:
        if case.state == "skipped":
            suite.skip(f"{where.kind} {case.name}", " ".join(case.reason.split()))


def run_programs(suite: Suite, where: Where, build: Path, full: bool) -> None:
    """Programs under MPI, by the mechanisms that depend most on the file system."""
    for name in ("mpich", "openmpi") if full else ("openmpi",):
        bench = Bench(build, MPIS[name])
        if not bench.program("views").exists():
            suite.skip(f"{where.kind} {name}", f"{bench.program('views')} is not built")
            continue
        for method in METHODS:
            cases = ["--seed=71", f"--cases={20 if full else 4}", "--forms=all", "--reads=1"]
            program = [str(bench.program("views")), f"--dir={where.directory}", *cases]
            out = launch(bench, 2, program, penstock=Penstock(method), timeout_s=300)
            problems = program_problems(out) + served_problems(out, "two_phase")
            problems += refusal_problems(where.kind, method, out)
            suite.check(f"{where.kind} {name} {method}", problems, out)


def refusal_problems(kind: str, method: str, out: Outcome) -> list[str]:
    """What the file system refuses is in the job log, and nothing else is said to be refused."""
    said = {why for log in out.logs for file in log["files"] for why in file["degraded"]}
    refused = {
        "O_DIRECT is refused": "direct" in method and kind not in DIRECT,
        f"a page of {kind} may find no space": "mmap" in method and kind not in MAPPED,
    }
    problems = []
    for words, expected in refused.items():
        if any(words in why for why in said) != expected:
            problems.append(f"{words!r} is {'not said' if expected else 'said'}: {sorted(said)}")
    if "direct" in method and kind in DIRECT and said:
        problems.append(f"said without need: {sorted(said)}")
    return problems


def run_on(suite: Suite, where: Where, build: Path, full: bool) -> None:
    chosen = IO_TESTS if full else f"{IO_TESTS}:-*_behind*"
    run_tests(suite, where, build / "io_tests", chosen, full)
    run_tests(suite, where, build / "exec_tests", "*Conformance*", full)
    run_programs(suite, where, build, full)


def main() -> int:
    parser = plain_arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="all methods, on both MPI libraries")
    options = parser.parse_args()
    suite = Suite("fs product")
    for kind in (*ON_LOOP, *IN_MEMORY):
        if options.only not in kind:
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-product-") as place:
            Path(place).chmod(0o755)
            try:
                with file_system(kind, Path(place)) as directory:
                    run_on(suite, Where(kind, directory), options.build.resolve(), options.full)
            except NotHereError as missing:
                suite.skip(kind, str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
