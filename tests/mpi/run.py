#!/usr/bin/env python3
"""Runs the program `workers`: communicators and pipeline on ranks and on ranks x threads."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    ("kept", 2, 1),
    ("slots", 2, 1),
    ("slots", 4, 1),
]
# (case, ranks, threads, nodes). Only MPICH can pretend that one machine is several nodes.
ON_NODES = [("nodes", 2, 2, 1)]
PRETENDING = ("mpich", "mpich5", "mpich5-abi")
PRETENDED_NODES = [("nodes", 2, 2, 2), ("nodes", 4, 1, 2), ("counts", 4, 1, 2)]
PRETENDED_NODES += [("slots", 4, 1, 2), ("kept", 4, 1, 2)]
PRETENDED_NODES += [("conformance", 2, 2, 2), ("conformance", 3, 2, 3), ("conformance", 3, 1, 2)]
IN_TURN = [("nodes", 4), ("counts", 8), ("conformance", 4)]  # ranks dealt to two nodes
# (case, ranks) by what Open MPI has for one-sided communication between nodes without RMA, which it
# can be told to use on one; and by what cannot do without.
TCP = {"OMPI_MCA_btl": "tcp,self"}
EMULATED = {
    "openmpi": [("slots", 4, {**TCP, "OMPI_MCA_osc": "pt2pt"})],
    "openmpi5": [("slots", 4, {**TCP, "OMPI_MCA_osc": "rdma"})],
}
EMULATED["openmpi"] += [("no_slots", 4, {**TCP, "OMPI_MCA_osc": "rdma"})]
# Only in the full tier: far more ranks than cores.
MANY = [("counts", 4, 1), ("counts", 8, 1)]
# Of random views; each run has others, and in the full tier all have all.
SEEDS, ALL_SEEDS = 3, 10


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--full", action="store_true", help="on many ranks too, and more views")
    given = parser.parse_args()
    bench = Bench(given.build.resolve(), MPIS[given.mpi])
    suite = Suite("mpi", given.mpi, given.record)
    for number, one in enumerate(runs(bench.mpi.name, full=given.full)):
        if given.only in one.label:
            run(bench, suite, one, 0 if given.full else number * SEEDS % ALL_SEEDS, given.full)
    return suite.finish()


@dataclass(frozen=True)
class Run:
    """A case of the program, and how it is started."""

    case: str
    ranks: int
    threads: int
    nodes: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    how: str = ""

    @property
    def label(self) -> str:
        return f"{self.case}.{self.ranks}x{self.threads} on {self.nodes}{self.how}"


def runs(mpi: str, *, full: bool) -> Iterator[Run]:
    yield from (Run(*words) for words in [*RUNS, *(MANY if full else [])])
    for case, ranks, threads, nodes in ON_NODES + (PRETENDED_NODES if mpi in PRETENDING else []):
        pretend = {"MPIR_CVAR_NUM_CLIQUES": str(nodes)} if nodes > 1 else {}
        yield Run(case, ranks, threads, nodes, pretend)
    for case, ranks, component in EMULATED.get(mpi, []):
        yield Run(case, ranks, 1, 1, component, " over TCP")
    for case, ranks in IN_TURN if mpi in PRETENDING else []:
        yield Run(case, ranks, 1, 2, {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}, " in turn")


def run(bench: Bench, suite: Suite, one: Run, first_seed: int, full: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-workers-") as directory:
        program = [str(bench.program("workers")), one.case, f"--dir={directory}"]
        program += [f"--threads={one.threads}", f"--nodes={one.nodes}"]
        program += [f"--first-seed={first_seed}", f"--seeds={ALL_SEEDS if full else SEEDS}"]
        out = launch(bench, one.ranks, program, environment=one.environment, timeout_s=300)
    for case, why in re.findall(r"^SKIPPED (\S+): (.*)$", out.output, re.MULTILINE):
        suite.skip(f"{one.label} {case}", why)
    suite.check(one.label, program_problems(out), out)


if __name__ == "__main__":
    sys.exit(main())
