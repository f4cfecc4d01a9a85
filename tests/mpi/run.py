#!/usr/bin/env python3
"""Runs the program `workers`: communicators and pipeline on ranks and on ranks x threads."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run_mpi import Bench, Suite, arguments, launch, program_problems

# (case, ranks, threads). More workers than cores starve under MPICH, which polls: few of those.
RUNS = [
    ("contract", 1, 3),
    ("contract", 2, 1),
    ("contract", 2, 2),
    ("contract", 3, 2),
    ("conformance", 1, 4),
    ("conformance", 2, 1),
    ("conformance", 2, 2),
    ("counts", 2, 1),
    ("counts", 2, 2),
    ("turns", 2, 1),
    ("turns", 2, 2),
    ("refusals", 2, 2),
    ("single", 2, 2),
]
# (case, ranks, threads, nodes). Only MPICH can pretend that one machine is several nodes.
ON_NODES = [("nodes", 2, 2, 1)]
PRETENDING = ("mpich", "mpich5", "mpich5-abi")
PRETENDED_NODES = [("nodes", 2, 2, 2), ("nodes", 4, 1, 2), ("counts", 4, 1, 2)]
PRETENDED_NODES += [("conformance", 2, 2, 2), ("conformance", 3, 2, 3), ("conformance", 3, 1, 2)]
# Only in the full tier: far more ranks than cores.
MANY = [("counts", 4, 1), ("counts", 8, 1)]


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--many", action="store_true", help="on many ranks, and nothing else")
    given = parser.parse_args()
    bench = Bench(given.build.resolve(), MPIS[given.mpi])
    suite = Suite("mpi", given.mpi, given.record)
    for case, ranks, threads in MANY if given.many else RUNS:
        run(bench, suite, given.only, case, ranks, threads, {})
    if given.many:
        return suite.finish()
    pretended = PRETENDED_NODES if bench.mpi.name in PRETENDING else []
    for case, ranks, threads, nodes in ON_NODES + pretended:
        pretend = {"MPIR_CVAR_NUM_CLIQUES": str(nodes)} if nodes > 1 else {}
        run(bench, suite, given.only, case, ranks, threads, pretend, nodes)
    if bench.mpi.name in PRETENDING:  # ranks dealt to two nodes in turn
        in_turn = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
        run(bench, suite, given.only, "conformance", 4, 1, in_turn, 2)
    return suite.finish()


def run(
    bench: Bench,
    suite: Suite,
    only: str,
    case: str,
    ranks: int,
    threads: int,
    environment: dict[str, str],
    nodes: int = 1,
) -> None:
    label = f"{case}.{ranks}x{threads} on {nodes}"
    if only not in label:
        return
    with tempfile.TemporaryDirectory(prefix="penstock-workers-") as directory:
        program = [str(bench.program("workers")), case, f"--dir={directory}"]
        program += [f"--threads={threads}", f"--nodes={nodes}"]
        out = launch(bench, ranks, program, environment=environment, timeout_s=120)
    suite.check(label, program_problems(out), out)


if __name__ == "__main__":
    sys.exit(main())
