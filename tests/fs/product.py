#!/usr/bin/env python3
"""Write methods on several file systems: ext4, xfs and btrfs on loop devices, tmpfs and ramfs.

On each the mechanisms' own promises are run, the methods on threads, and programs under MPI.
Without --full only so many methods are that each pair of choices meets; with it, all, on threads
(with every sync policy) and under MPI, and on xfs with blocks larger than a page, too. What a file
system refuses (ramfs direct writes, btrfs windows that no store finds full) must be said.

--network runs them on mounts of servers instead: NFS, GlusterFS in both of its ways to put a
file on several bricks, and CephFS, where each pair of choices meets and programs have one to four
ranks.

A file system that this machine cannot make is a skip with its reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from calling import NotHereError, script
from method_product import dealt, listed, penstock_with, product_problems
from mpis import MPIS
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
OVERLAY = "overlay"  # its upper layer on an ext4
LARGE_BLOCKS = "xfs-16KiB"  # larger than a page; Linux 6.12 and newer
NETWORK: dict[str, tuple[str, ...]] = {  # by which script, how
    "nfs": ("nfs.sh", "--mount"),
    "glusterfs-disperse": ("gluster.sh", "4", "--kind", "disperse"),
    "glusterfs-shard": ("gluster.sh", "4", "--kind", "shard"),
    "ceph-fuse": ("ceph.sh", "3"),
}
MAPPED = ("ext4", "xfs", "tmpfs")
DIRECT = ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse.nfs", "fuse.glusterfs")
STALE = ("fuse.ceph-fuse",)  # takes direct writes, and reads what it had cached before
SIZE = "512MiB"
FEWEST_TESTS = 20
# Of the methods on threads: each with each sync policy, on as many views as where nothing is asked.
WHOLE_PRODUCT = {"PENSTOCK_TEST_SEEDS": "12"}
PAIRS = {"PENSTOCK_TEST_PAIRWISE": "1"}
PRODUCT_CASES = 40  # of a launch
IO_TESTS = "FileSystems.*:*EveryMechanism*:*DirectFiles*:AsyncFiles.*:Mmap.*:MmapOfTheWholeFile.*"
METHODS = (
    "two_phase(writers={writers}, cycle=64KiB) + shm + uring(direct, registered)",
    "two_phase(writers={writers}, cycle=64KiB) + shm + mmap(window=file)",
)
# Mapping is refused there, and then a piece is a write, for which disperse takes 4 ms.
SERVER_METHODS = (METHODS[0], "two_phase(writers={writers}, cycle=64KiB) + shm + pwritev")


# ---- the file systems ----


@contextmanager
def file_system(kind: str, place: Path) -> Iterator[Path]:
    """A directory on a fresh file system; all of it is gone afterwards."""
    if kind in NETWORK:
        made = on_servers(kind, place)
    elif kind == OVERLAY:
        made = overlay(place)
    else:
        made = in_memory(kind, place) if kind in IN_MEMORY else on_loop(kind, place)
    with made as directory:
        directory.chmod(0o1777)
        yield directory


def on_loop(kind: str, place: Path) -> AbstractContextManager[Path]:
    name, _, block = kind.partition("-")
    how = ("--fs", name, "--size", SIZE, "--rate", "0", "--block", block or "0")
    return mounted_by("slowdisk.sh", place, *how)


def on_servers(kind: str, place: Path) -> AbstractContextManager[Path]:
    name, *how = NETWORK[kind]
    return mounted_by(name, place, *how)


@contextmanager
def mounted_by(name: str, place: Path, *how: str) -> Iterator[Path]:
    try:
        started = script(name, "start", place, *how)
        if started.returncode != 0:
            raise RuntimeError(started.stderr.strip())
        yield place / "mnt"
    finally:
        with suppress(NotHereError):
            script(name, "stop", place)


@contextmanager
def overlay(place: Path) -> Iterator[Path]:
    with on_loop("ext4", place) as disk:
        lower, upper, work, merged = (disk / name for name in ("lower", "upper", "work", "merged"))
        for layer in (lower, upper, work, merged):
            layer.mkdir()
        layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
        with mounted(OVERLAY, merged, "-o", layers):
            yield merged


def in_memory(kind: str, place: Path) -> AbstractContextManager[Path]:
    return mounted(kind, place, *(["-o", "size=512m"] if kind == "tmpfs" else []))


@contextmanager
def mounted(kind: str, place: Path, *options: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        raise NotHereError(f"only root can mount a {kind}; run it as root")
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

    @property
    def type(self) -> str:
        """What Penstock has to call it."""
        kind = "glusterfs" if self.kind.startswith("glusterfs") else self.kind
        return f"fuse.{kind}" if self.kind in NETWORK else kind.partition("-")[0]

    def environment(self, full: bool) -> dict[str, str]:
        own = {"PENSTOCK_TEST_DIR": str(self.directory), "PENSTOCK_TEST_FS": self.type}
        return os.environ | own | (WHOLE_PRODUCT if full else PAIRS)


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


@dataclass(frozen=True)
class Depth:
    """How much runs on a file system."""

    all_methods: bool
    methods: Sequence[str]  # of programs
    mpis: Sequence[str]
    ranks: Sequence[int]
    cases: int  # of random views for a program
    product: bool = False  # all methods under MPI, too


QUICK = Depth(False, METHODS, mpis=("openmpi",), ranks=(2,), cases=4)
FULL = Depth(True, METHODS, mpis=("mpich", "openmpi"), ranks=(2,), cases=20, product=True)
ON_SERVERS = Depth(False, SERVER_METHODS, mpis=("mpich", "openmpi"), ranks=(1, 2, 3, 4), cases=4)


def run_programs(suite: Suite, where: Where, build: Path, depth: Depth) -> None:
    """Programs under MPI, by the mechanisms that depend most on the file system."""
    for name in depth.mpis:
        bench = Bench(build, MPIS[name])
        if not bench.program("views").exists():
            suite.skip(f"{where.kind} {name}", f"{bench.program('views')} is not built")
            continue
        for method in depth.methods:
            for ranks in depth.ranks:
                asked = method.format(writers=min(ranks, 2))
                run_views(suite, where, bench, ranks, asked, depth.cases)


def run_product(suite: Suite, where: Where, build: Path) -> None:
    """All methods under MPI, each on a random view of its own."""
    bench = Bench(build, MPIS["openmpi"])
    if not bench.program("views").exists():
        suite.skip(f"{where.kind} openmpi product", f"{bench.program('views')} is not built")
        return
    for number, methods in enumerate(dealt(listed(build, pairs=False), range(PRODUCT_CASES))):
        with tempfile.TemporaryDirectory(prefix="penstock-product-") as directory:
            program = [str(bench.program("views")), f"--dir={where.directory}", "--seed=61"]
            program += [f"--cases={len(methods)}", "--forms=all", "--reads=1"]
            how = penstock_with(methods, Path(directory))
            out = launch(bench, 2, program, penstock=how, timeout_s=300)
        problems = program_problems(out) + served_problems(out, None)
        problems += product_problems(out, methods)
        suite.check(f"{where.kind} openmpi product {number}", problems, out)


def run_views(
    suite: Suite, where: Where, bench: Bench, ranks: int, method: str, cases: int
) -> None:
    program = [str(bench.program("views")), f"--dir={where.directory}"]
    # Of others MPICH's own set_view refuses a view on one rank, and keeps the others waiting.
    program += ["--seed=61", f"--cases={cases}", "--forms=all", "--reads=1"]
    out = launch(bench, ranks, program, penstock=Penstock(method), timeout_s=300)
    problems = program_problems(out) + served_problems(out, "two_phase")
    problems += refusal_problems(where.type, method, out)
    suite.check(f"{where.kind} {bench.mpi.name} {ranks} ranks {method}", problems, out)


def refusal_problems(fs: str, method: str, out: Outcome) -> list[str]:
    """What the file system refuses is in the job log, and nothing else is said to be refused."""
    said = {why for log in out.logs for file in log["files"] for why in file["degraded"]}
    refused = {
        "O_DIRECT is refused": "direct" in method and fs not in (*DIRECT, *STALE),
        "would not see it": "direct" in method and fs in STALE,
        f"a page of {fs} may find no space": "mmap" in method and fs not in MAPPED,
    }
    problems = []
    for words, expected in refused.items():
        if any(words in why for why in said) != expected:
            problems.append(f"{words!r} is {'not said' if expected else 'said'}: {sorted(said)}")
    if "direct" in method and fs in DIRECT and said:
        problems.append(f"said without need: {sorted(said)}")
    return problems


def run_on(suite: Suite, where: Where, build: Path, tests: Path, depth: Depth) -> None:
    chosen = IO_TESTS if depth.all_methods else f"{IO_TESTS}:-*_behind*"
    run_tests(suite, where, tests / "io_tests", chosen, depth.all_methods)
    run_tests(suite, where, tests / "exec_tests", "*Conformance*", depth.all_methods)
    run_programs(suite, where, build, depth)
    if depth.product:
        run_product(suite, where, build)


def main() -> int:
    parser = plain_arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="all methods, on both MPI libraries")
    parser.add_argument("--tests", type=Path, help="where io_tests and exec_tests are [BUILD]")
    parser.add_argument("--network", action="store_true", help="on NFS, GlusterFS and CephFS")
    options = parser.parse_args()
    suite = Suite("fs product")
    build = options.build.resolve()
    tests = (options.tests or options.build).resolve()
    for name in ("io_tests", "exec_tests"):
        if not (tests / name).exists():
            asked = "--tests" if options.tests else "--build"
            parser.error(f"{asked} {tests} has no {name}; remedy: make tests")
    depth = ON_SERVERS if options.network else FULL if options.full else QUICK
    large = [LARGE_BLOCKS] if options.full else []
    for kind in NETWORK if options.network else (*ON_LOOP, *large, OVERLAY, *IN_MEMORY):
        if options.only not in kind:
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-product-") as place:
            Path(place).chmod(0o755)
            try:
                with file_system(kind, Path(place)) as directory:
                    run_on(suite, Where(kind, directory), build, tests, depth)
            except NotHereError as missing:
                suite.skip(kind, str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
