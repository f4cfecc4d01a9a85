#!/usr/bin/env python3
"""Tests the tests: every fault sown into the engine must turn at least one suite red.

Needs a build with PENSTOCK_SEEDED_FAULTS (preset `faulty`), whose engine obeys the variable
PENSTOCK_SEEDED_FAULT. With no fault every suite has to be green; with each fault one must not be.
What --verify promises to users it is asked by itself: faults between a program's memory and the
file it has to see alone.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent


@dataclass(frozen=True)
class Look:
    """A part of a suite, chosen because it is quick and looks at every promise."""

    suite: str
    mpi: str
    only: str
    more: tuple[str, ...] = ()
    script: str = "run.py"

    def command(self, build: Path) -> list[str]:
        script = str(TESTS / self.suite / self.script)
        arguments = ["--build", str(build), "--mpi", self.mpi, "--only", self.only, *self.more]
        return [sys.executable, script, *arguments]


@dataclass(frozen=True)
class Promise:
    """Tests of one promise among a layer's own, for what no program can see in its file."""

    suite: str
    only: str

    def command(self, build: Path) -> list[str]:
        return [str(build / self.suite), f"--gtest_filter={self.only}"]


LOOKS: list[Look | Promise] = [
    Promise("exec_tests", "AgreeOrAbandon.WhatRanks*"),
    Promise("exec_tests", "*Introduced*"),
    Promise("exec_tests", "ReadTogether.ARank*"),
    Promise("io_tests", "AsyncFiles.WhatComesBack*:AsyncFiles.OfSeveralFailed*"),
    Promise("engine_tests", "FileStages.AnAcceptedByte*"),
    Look("conformance", "openmpi", "two_phase(writers=2, cycle=4KiB) views.2", ("--served-only",)),
    Look("conformance", "openmpi", "individual views.2", ("--served-only",)),
    Look("conformance", "mpich", "auto, two nodes, writes behind views.2", ("--served-only",)),
    Look(
        "conformance", "mpich", "auto, two nodes by rma, writes behind views.2", ("--served-only",)
    ),
    Look("truth", "openmpi", "short_writes collective two_phase(writers=2"),
    Look("truth", "openmpi", "eio_one_rank collective two_phase(writers=2"),
    Look("truth", "openmpi", "fsync_fails collective two_phase(writers=2"),
    Look("truth", "openmpi", "close_fails collective two_phase(writers=2"),
    Promise("exec_tests", "*HasOneWriter*"),
    Promise("exec_tests", "PageGuests.*"),
    Promise("io_tests", "CrumbFiles.*:TrailFiles.*:ColdFiles.*"),
    Promise("io_tests", "Pwritev.ShortWrites*"),
    Look("histories", "openmpi", "deferred", ("--ranks=2", "--seeds=15", "--uncut")),
    Look("trials", "openmpi", "ext4 independent, auto", ("--trials=5",), "crashed.py"),
]


def sown() -> list[str]:
    """Every name the sources ask for, so that a new fault is never forgotten here."""
    names: set[str] = set()
    for source in (ROOT / "src").rglob("*.[ch]pp"):
        names |= set(re.findall(r'seeded_fault\("(\w+)"\)', source.read_text()))
    return sorted(names)


REQUIRED = {
    "byte_flipped",
    "cycle_skipped",
    "extent_shifted",
    "holes_zero_filled",
    "short_write_ignored",
    "short_vector_ignored",
    "chapter_forgotten",
    "error_swallowed",
    "agreement_swallowed",
    "page_forgotten",
    "page_of_another",
    "load_lost",
    "put_load_lost",
    "crumb_forgotten",
    "trail_forgotten",
    "bounce_forgotten",
    "range_shared",
    "guest_forgotten",
    "segment_not_cleared",
    "sync_forgotten",
    "read_shifted",
    "completion_error_dropped",
    "loss_untold",
}


VERIFY = Promise("engine_tests", "Verify.ReadsBack*")
SEEN_BY_VERIFY = {
    "byte_flipped",
    "cycle_skipped",
    "extent_shifted",
    "page_forgotten",
    "load_lost",
    "put_load_lost",
    "crumb_forgotten",
    "trail_forgotten",
    "bounce_forgotten",
}


def run(look: Look | Promise, build: Path, fault: str) -> bool:
    """Whether the suite is green."""
    environment = {k: v for k, v in os.environ.items() if k != "PENSTOCK_SEEDED_FAULT"}
    if fault:
        environment["PENSTOCK_SEEDED_FAULT"] = fault
    done = subprocess.run(
        look.command(build), env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{look.suite} could not run ({done.returncode}): {done.stderr[-800:]}")
    if not fault and done.returncode != 0:
        print(done.stdout[-3000:])
    return done.returncode == 0


def first_red(build: Path, fault: str) -> Look | Promise | None:
    return next((look for look in LOOKS if not run(look, build, fault)), None)


def verify_is_wrong(build: Path, fault: str) -> bool:
    """Whether --verify is silent about a fault that it has to see, or loud about none."""
    asked = not fault or fault in SEEN_BY_VERIFY
    return asked and run(VERIFY, build, fault) == bool(fault)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "faulty")
    parser.add_argument("--fault", default="", help="only this one")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("needs root, as tests/trials/crashed.py does: it cuts off a disk")
    build = options.build.resolve()
    bad = sorted(REQUIRED - set(sown()))
    for name in bad:
        print(f"{name:<24} NOT SOWN  no source asks for it")
    for fault in [options.fault] if options.fault else ["", *sown()]:
        start = time.monotonic()
        red = first_red(build, fault)
        good = (red is not None) == bool(fault)
        seen = "all green" if red is None else f"red: {red.suite} {red.only}"
        seconds = time.monotonic() - start
        print(
            f"{fault or '(no fault)':<24} {'ok' if good else 'WRONG':<9} {seen} ({seconds:.0f} s)"
        )
        sys.stdout.flush()
        if not good:
            bad.append(fault or "(no fault)")
        if verify_is_wrong(build, fault):
            print(f"{fault or '(no fault)':<24} WRONG     {VERIFY.suite} {VERIFY.only}")
            bad.append(f"{fault or '(no fault)'} by --verify")
    print(f"check-the-checks: {len(bad)} wrong" if bad else "check-the-checks: every fault is seen")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
