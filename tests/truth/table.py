#!/usr/bin/env python3
"""Writes docs/truth-table.md from live runs: what programs are told when something fails.

    tests/truth/table.py --build build/release

Every row is one launch of truth.cpp on 3 ranks, alone and under Penstock.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run_mpi import Bench, Penstock
from truth_cases import AT_ONCE, FAULTS, Evidence, Fault, inject

ROOT = Path(__file__).resolve().parent.parent.parent
RANKS = 3
METHOD = "two_phase(writers=2, cycle=64KiB)"
NAMES = {"mpich": "MPICH 4.0.2", "openmpi": "Open MPI 4.1.4"}
HEAD = """# Who is told the truth

Made by `tests/truth/table.py` from live runs on {ranks} ranks, {version}.
Every rank writes 4 times 64 kB in interleaved blocks with holes, then calls `MPI_File_sync` and
`MPI_File_close`; the error handler returns codes. *Told*: the error classes that ranks got from
writes / sync / close (`none` is success). *Counts*: whether no status counts a byte that is missing
from the file. *Lost in silence*: bytes are missing, and neither the write nor sync nor close said
so to that rank. *Others' bytes*: the file was there before, and bytes that nobody wrote are as they
were. Faults are injected by `tests/faults/penstock_fault.c`, except the disk that fills, which is a
small tmpfs and a new file.

With Penstock the method is `{method}`, and independent writes are not deferred (`write_behind =
"off"`): they tell their errors themselves. Where they go behind, as those to files that are opened
for writing alone do by default, sync and close tell every rank
([methods](methods.md#independent-writes)).
"""


def told(evidence: Evidence) -> str:
    parts = []
    for said in (
        evidence.write_classes(),
        evidence.classes("sync"),
        evidence.classes("close"),
    ):
        parts.append(", ".join(sorted(said)) or "nothing")
    return " / ".join(parts)


def row(bench: Bench, fault: Fault, mode: str, penstock: Penstock | None) -> str:
    old_bytes = not fault.disk_bytes  # they would fill a small disk by themselves
    out, evidence = inject(
        bench, RANKS, fault, mode, background=old_bytes, penstock=penstock, timeout_s=10
    )
    if out.hung:
        counts = lost = others = "-"
    else:
        counts = "true" if not evidence.untrue_counts(longest=False) else "**false**"
        lost = "**yes**" if evidence.silent_losses else "no"
        others = "intact" if evidence.strangers == 0 else f"**{evidence.strangers} spoilt**"
    agreed = "yes" if not evidence.disagreements() else "no"
    ended = f"{out.seconds:.1f} s" if not out.hung else "**hangs**"
    if not out.hung and not evidence.complete:
        ended = f"**dies ({out.code})**"
    who = "with Penstock" if penstock else "alone"
    cells = [NAMES[bench.mpi.name], who, told(evidence), agreed, counts, lost, others, ended]
    return "| " + " | ".join(cells) + " |"


def section(build: Path, fault: Fault, mode: str) -> list[str]:
    lines = [
        f"### {fault.meaning[0].upper()}{fault.meaning[1:]}, {mode} writes",
        "",
        "| MPI | | Told: writes / sync / close | All ranks alike | Counts | Lost in silence "
        "| Others' bytes | Ends |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in NAMES:
        for penstock in (None, Penstock(METHOD, environment=AT_ONCE)):
            lines.append(row(Bench(build, MPIS[name]), fault, mode, penstock))
            print(f"{fault.name} {mode}: {lines[-1]}", flush=True)
    return [*lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="the build tree")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "truth-table.md")
    options = parser.parse_args()
    lines = [HEAD.format(ranks=RANKS, version=" and ".join(NAMES.values()), method=METHOD)]
    for mode in ("collective", "independent"):
        for fault in FAULTS:
            if fault.expected is not None or fault.name == "short_writes":
                lines += section(options.build.resolve(), fault, mode)
    options.out.write_text("\n".join(lines).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
