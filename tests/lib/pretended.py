"""One machine that pretends to be two nodes, and how independent writes move between them.

Only MPICH can be told to; elsewhere, and with one rank, it is one node.
"""

from __future__ import annotations

from run_mpi import Bench, Outcome

TWO_NODES = {"MPIR_CVAR_NUM_CLIQUES": "2"}
# What a mode of write_behind_progress needs besides.
PROGRESS: dict[str, dict[str, str]] = {
    "calls": {},
    "thread": {"MPIR_CVAR_DEFAULT_THREAD_LEVEL": "MPI_THREAD_MULTIPLE"},
    "rma": {},
}


def two_nodes_by(progress: str) -> dict[str, str]:
    """The environment of a job on two nodes whose independent writes move so."""
    return TWO_NODES | {"PENSTOCK_WRITE_BEHIND_PROGRESS": progress} | PROGRESS[progress]


def can_pretend(bench: Bench) -> bool:
    return bench.mpi.name == "mpich"


def progress_problems(out: Outcome, wanted: str) -> list[str]:
    """Independent writes have to have moved between the nodes, and as they were to."""
    files = [file for log in out.logs for file in log["files"] if file["write_behind_progress"]]
    ways = {file["write_behind_progress"] for file in files}
    problems = [] if ways == {wanted} else [f"moved by {sorted(ways)}, not {wanted}"]
    moved = sum(file["traffic"]["messages"] for file in files)
    return problems if moved else [*problems, "nothing moved between the nodes"]
