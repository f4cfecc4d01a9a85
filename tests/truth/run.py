#!/usr/bin/env python3
"""Is every rank told the truth? Faults in each phase of a write, under Penstock.

After each launch the ranks' own evidence (truth.cpp) decides: all ranks of a collective got the
same error class, each count is the longest prefix of the rank's etypes that the file holds, bytes
that nobody wrote are as before, nobody hangs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from pretended import PROGRESS, TWO_NODES, can_pretend, progress_problems, two_nodes_by
from run_mpi import Bench, Outcome, Penstock, Suite, arguments
from share import Share, add_share
from truth_cases import AT_ONCE, FAULTS, Evidence, Fault, NotPossibleError, inject

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
# Independent writes that are accepted first: what is lost is told by sync and close to every rank.
DEFERRED = "individual, deferred"
# Many pages, so that many writes can fail.
SMALL_PAGES = {"PENSTOCK_WRITE_BEHIND_PAGE": "4KiB"}
# The same where half of a rank's bytes go to pages of the other node, and how.
DEFERRED_BETWEEN_NODES = {f"{DEFERRED}, two nodes by {progress}": progress for progress in PROGRESS}
LEADERS = "two_phase(writers=2, cycle=64KiB) + node_leaders"
RANKS = {"openmpi": 3, "mpich": 2}  # MPICH polls: more ranks than cores are slow
MANY_RANKS = 4


def problems_of(
    evidence: Evidence, fault: Fault, collective: bool, *, longest: bool = True
) -> list[str]:
    problems = losses(evidence)
    if evidence.hung:
        return problems
    problems += evidence.untrue_counts(longest=longest)
    if collective:
        problems += evidence.disagreements()
    return problems + fault.unmet(evidence)


def losses(evidence: Evidence) -> list[str]:
    """What no way to write may do."""
    if evidence.hung:
        return [f"hangs; told so far: {evidence.text()}"]
    problems = [] if evidence.complete else [f"a rank did not end: {evidence.text()}"]
    if evidence.strangers:
        problems.append(f"{evidence.strangers} bytes are neither old nor written by anyone")
    if evidence.silent_losses:
        problems.append(f"success for bytes that are not in the file: {evidence.silent_losses}")
    return problems


def problems_of_deferred(evidence: Evidence, fault: Fault) -> list[str]:
    """A count says what was accepted; the steps that leave nothing behind tell what was lost."""
    problems = losses(evidence)
    if evidence.hung or fault.expected is None or fault.step != "write":
        return problems + fault.unmet(evidence)
    return problems + [
        f"{step}: {said}, not {fault.expected} on every rank"
        for step in ("sync", "close")
        if (said := evidence.classes(step)) != {fault.expected}
    ]


def run_case(
    bench: Bench, suite: Suite, ranks: int, fault: Fault, mode: str, method: str, background: bool
) -> None:
    case = f"{fault.name} {mode} {method}{' on old bytes' if background else ''} of {ranks}"
    try:
        outcome, evidence = inject(
            bench, ranks, fault, mode, background=background, penstock=how_to_run(method, mode)
        )
    except NotPossibleError as reason:
        suite.skip(case, str(reason))
        return
    told_at_once = method in SYNCING_METHODS
    syncs = told_at_once or method in BEHIND_METHODS
    if method.startswith(DEFERRED):
        problems = problems_of_deferred(evidence, fault)
    else:
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
    if fault.name == "none":
        problems += nodes_problems(outcome, method)
    suite.check(case, problems, outcome)


def nodes_problems(outcome: Outcome, method: str) -> list[str]:
    """There were two nodes, and bytes went from one to the other as they were to."""
    if method in DEFERRED_BETWEEN_NODES:
        return progress_problems(outcome, DEFERRED_BETWEEN_NODES[method])
    files = [file for log in outcome.logs for file in log["files"]]
    degraded = [why for file in files for why in file["degraded"]]
    sent = sum(file["traffic"]["messages"] for file in files)
    return [] if method != LEADERS or (sent and not degraded) else [f"{sent} sent: {degraded}"]


def how_to_run(method: str, mode: str) -> Penstock:
    if method.startswith(DEFERRED):
        progress = DEFERRED_BETWEEN_NODES.get(method)
        nodes = two_nodes_by(progress) if progress else {}
        return Penstock("individual", environment=SMALL_PAGES | nodes)
    if method == LEADERS:
        return Penstock(method, environment=TWO_NODES)
    return Penstock(method, environment=AT_ONCE if mode == "independent" else {})


def on_any_rank(fault: Fault) -> Fault:
    """The same wherever a page leaves: who writes it follows from who came last."""
    return replace(fault, spec=fault.spec.replace(",rank=0", ""))


def ways(fault: Fault) -> list[tuple[str, str, bool]]:
    """How a fault is met: mode, method, and whether old bytes lie in the file.

    A sync between writes that fails is told by the write, by sync and by close. One behind the
    writes perhaps by a write, for certain by sync and close.
    """
    found = [("collective", method, False) for method in METHODS]
    found += [("independent", METHODS[0], False), ("independent", DEFERRED, False)]
    if not fault.disk_bytes:  # what was there would fill a small disk by itself
        found.append(("collective", METHODS[2], True))
    if fault.step == "sync" or fault.expected is None:
        found += [("collective", method, False) for method in [*SYNCING_METHODS, *BEHIND_METHODS]]
    return found


def cases(only: str, share: Share) -> Iterator[tuple[Fault, str, str, bool]]:
    for number, fault in enumerate(FAULTS):
        for place, (mode, method, background) in enumerate(ways(fault)):
            if share.takes(number, place) and only in f"{fault.name} {mode} {method}":
                here = on_any_rank(fault) if method == DEFERRED else fault
                yield here, mode, method, background


def cases_between_nodes(only: str) -> Iterator[tuple[Fault, str, str, bool]]:
    """One library has all of them: no other could run what it leaves out."""
    for fault in FAULTS:
        if only in f"{fault.name} collective {LEADERS}":
            yield fault, "collective", LEADERS, False
        for method in DEFERRED_BETWEEN_NODES:
            if only in f"{fault.name} independent {method}":
                yield on_any_rank(fault), "independent", method, False


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--ranks", type=int, help="on so many")
    parser.add_argument("--full", action="store_true", help=f"on {MANY_RANKS} ranks, too")
    add_share(parser)
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"truth {options.mpi}", options.mpi, options.record)
    usual = options.ranks or RANKS[bench.mpi.family]
    for ranks in (usual, MANY_RANKS) if options.full else (usual,):
        some = list(cases(options.only, options.share))
        some += cases_between_nodes(options.only) if can_pretend(bench) else []
        for fault, mode, method, background in some:
            run_case(bench, suite, ranks, fault, mode, method, background)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
