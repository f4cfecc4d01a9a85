#!/usr/bin/env python3
"""Is every rank told the truth? Faults in each phase of a write, under Penstock.

After each launch the ranks' own evidence (truth.cpp) decides: all ranks of a collective got the
same error class, each count is the longest prefix of the rank's etypes that the file holds, bytes
that nobody wrote are as before, nobody hangs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run_mpi import Bench, Penstock, Suite, arguments
from truth_cases import FAULTS, Evidence, Fault, NotPossibleError, inject

METHODS = [
    "individual",
    "two_phase(writers=1, cycle=64KiB)",
    "two_phase(writers=2, cycle=4KiB)",
    "two_phase(writers=3, cycle=64KiB)",
    "two_phase(writers=2, cycle=64KiB) + shm",
]
# Syncs between writes: what a failed one may have lost is not counted, though it may be there.
SYNCING_METHODS = [
    "individual + none + pwrite + every=64KiB",
    "two_phase(writers=1, cycle=64KiB) + messages + pwrite + coordinated=128KiB",
    "two_phase(writers=2, cycle=64KiB) + messages + pwrite + pulse=64KiB",
]
# Syncs that no write waits for: a failed one is told by sync and close at the latest.
BEHIND_METHODS = [
    "two_phase(writers=1, cycle=64KiB) + messages + pwrite + background=64KiB",
    "individual + none + pwrite + stream=64KiB",
]
RANKS = {"openmpi": 3, "mpich": 2}  # MPICH polls: more ranks than cores are slow


def problems_of(
    evidence: Evidence, fault: Fault, collective: bool, *, longest: bool = True
) -> list[str]:
    if evidence.hung:
        return [f"hangs; told so far: {evidence.text()}"]
    problems = [] if evidence.complete else [f"a rank did not end: {evidence.text()}"]
    problems += evidence.untrue_counts(longest=longest)
    if collective:
        problems += evidence.disagreements()
    if evidence.strangers:
        problems.append(f"{evidence.strangers} bytes are neither old nor written by anyone")
    if evidence.silent_losses:
        problems.append(f"success for bytes that are not in the file: {evidence.silent_losses}")
    return problems + fault.unmet(evidence)


def run_case(
    bench: Bench, suite: Suite, ranks: int, fault: Fault, mode: str, method: str, background: bool
) -> None:
    case = f"{fault.name} {mode} {method}{' on old bytes' if background else ''}"
    try:
        outcome, evidence = inject(
            bench, ranks, fault, mode, background=background, penstock=Penstock(method)
        )
    except NotPossibleError as reason:
        suite.skip(case, str(reason))
        return
    told_at_once = method in SYNCING_METHODS
    syncs = told_at_once or method in BEHIND_METHODS
    problems = problems_of(evidence, fault, mode == "collective", longest=not syncs)
    if (
        told_at_once
        and fault.expected is not None
        and fault.expected not in evidence.write_classes()
    ):
        problems.append(f"write: nobody was told {fault.expected}")
    if outcome.logs and any(log["totals"]["passthrough_bytes"] for log in outcome.logs):
        problems.append("bytes were passed through")
    if not outcome.logs:
        problems.append("no job log")
    suite.check(case, problems, outcome)


def cases(only: str) -> Iterator[tuple[Fault, str, str, bool]]:
    for fault in FAULTS:
        for mode in ("collective", "independent"):
            for method in METHODS if mode == "collective" else METHODS[:1]:
                if only not in f"{fault.name} {mode} {method}":
                    continue
                yield fault, mode, method, False
                # What was there would fill a small disk by itself.
                if method == METHODS[2] and not fault.disk_bytes:
                    yield fault, mode, method, True
    yield from syncing_cases(only)


def syncing_cases(only: str) -> Iterator[tuple[Fault, str, str, bool]]:
    """A sync between writes that fails is told by the write, by sync and by close.

    One behind the writes perhaps by a write, for certain by sync and close.
    """
    for fault in FAULTS:
        for method in [*SYNCING_METHODS, *BEHIND_METHODS]:
            wanted = fault.step == "sync" or fault.expected is None
            if wanted and only in f"{fault.name} collective {method}":
                yield fault, "collective", method, False


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--ranks", type=int, default=0)
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"truth {options.mpi}", options.mpi, options.record)
    for fault, mode, method, background in cases(options.only):
        ranks = options.ranks or RANKS[bench.mpi.family]
        run_case(bench, suite, ranks, fault, mode, method, background)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
