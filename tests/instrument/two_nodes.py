#!/usr/bin/env python3
"""The measuring program on two nodes that share a file system but no memory (tests/fs/nodes.sh).

What must be right there: who is on which node, one file per node where that is asked for, the
engine's exchange over the network, and every byte.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from disks import FS_SCRIPTS, NotHereError, script, working_disk
from mpis import MPIS
from run_mpi import Suite, plain_arguments

RANKS = 4
TWO_PHASE = "two_phase(writers=2, cycle=1MiB)"
INTERLEAVED = "interleaved:47008"
# Name: the program's words. Every one is run alone; those of route mpi under penstock-exec too.
CASES = {
    "engine, shared file": ["--route", "engine", "--method", TWO_PHASE],
    "engine, node leaders": ["--route", "engine", "--method", f"{TWO_PHASE} + node_leaders"],
    "engine, a file per node": ["--route", "engine", "--files", "per_node"],
    "engine, a file per worker": ["--route", "engine", "--files", "per_worker"],
    "posix, shared file": ["--route", "posix", "--pattern", "contiguous"],
    "MPI-IO, collective": ["--route", "mpi", "--access", "collective"],
    "MPI-IO, independent": ["--route", "mpi", "--access", "independent"],
}
# How independent writes move between the nodes under Penstock: what comes before penstock-exec, and
# what it is told.
PROGRESS = {
    "calls": (["env", "PENSTOCK_WRITE_BEHIND_PROGRESS=calls"], []),
    "thread": (["env", "PENSTOCK_WRITE_BEHIND_PROGRESS=thread"], ["--thread-multiple"]),
    "rma": (["env", "PENSTOCK_WRITE_BEHIND_PROGRESS=rma"], []),
}


@dataclass(frozen=True)
class Nodes:
    """Two nodes, the build tree, and a directory on the working disk."""

    at: str
    native: Path
    directory: Path

    def measure(self, words: list[str], under: list[str]) -> subprocess.CompletedProcess[str]:
        program = str(self.native / "penstock-measure-mpich")
        size = ["--bufsize", "470080", "--iters", "8", "--pattern", INTERLEAVED]
        own = [x for x in size if "--pattern" not in words or x not in ("--pattern", INTERLEAVED)]
        command = [program, "--file", str(self.directory / "file"), *own, *words]
        return subprocess.run(
            [str(FS_SCRIPTS / "nodes.sh"), "run", self.at, str(RANKS), *under, *command],
            env={k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")},
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@contextmanager
def nodes(build: Path) -> Iterator[Nodes]:
    if MPIS["mpich"].launcher() is None:
        raise NotHereError(f"no MPICH: {MPIS['mpich'].remedy()}")
    with working_disk("nodes") as disk, tempfile.TemporaryDirectory(prefix="penstock-nodes-") as at:
        script("nodes.sh", "start", at, "2")
        try:
            yield Nodes(at, build / "native", disk.directory)
        finally:
            script("nodes.sh", "stop", at)


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any] | None:
    lines = [x for x in done.stdout.splitlines() if x.startswith("{")]
    return dict(json.loads(lines[-1])) if lines else None


def problems_of(
    here: Nodes, words: list[str], under: list[str], progress: str | None = None
) -> list[str]:
    """Four ranks, two nodes, all bytes there, as many files as asked for."""
    done = here.measure(words, under)
    result = result_of(done)
    files = sorted(x.name for x in here.directory.iterdir() if x.name.startswith("file"))
    for name in files:
        (here.directory / name).unlink()
    if done.returncode != 0 or result is None:
        return [f"ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-1000:]}"]
    problems = []
    for key, wanted in (("ranks", RANKS), ("nodes", 2), ("bytes", RANKS * 8 * 470080)):
        if result[key] != wanted:
            problems.append(f"{key} is {result[key]}, not {wanted}")
    if result["verified"]["bytes"] != result["bytes"] or result["verified"]["wrong_bytes"]:
        problems.append(f"verified {result['verified']}")
    if files != (wanted_files := files_of(words)):
        problems.append(f"files {files}, not {wanted_files}")
    return problems + (served_problems(here, result, progress) if under else [])


def files_of(words: list[str]) -> list[str]:
    if "per_node" in words:
        return ["file.node0", "file.node1"]
    return [f"file.{rank}" for rank in range(RANKS)] if "per_worker" in words else ["file"]


def served_problems(here: Nodes, result: dict[str, Any], progress: str | None) -> list[str]:
    """The job log must account for every byte, and say how independent writes moved."""
    paths = list(here.directory.glob("penstock-*.json"))
    logs = [json.loads(x.read_text()) for x in paths]
    for path in paths:
        path.unlink()
    written = sum(log["totals"]["engine_bytes"] for log in logs)
    problems = []
    if written != result["bytes"]:
        problems.append(f"the engine wrote {written}: {len(logs)} logs")
    files = [file for log in logs for file in log["files"]]
    for file in files if progress else []:
        if file["write_behind_progress"] != progress or file["degraded"]:
            problems.append(f"moved by {file['write_behind_progress']}: {file['degraded']}")
        if not file["traffic"]["messages"]:
            problems.append("nothing moved between the nodes")
    return problems


def main() -> int:
    options = plain_arguments(__doc__).parse_args()
    suite = Suite("two nodes")
    try:
        with nodes(options.build.resolve()) as here:
            under = [str(here.native / "penstock-exec"), "--require", "--log-dir"]
            under += [str(here.directory), "--"]
            for name, words in CASES.items():
                served = {name: [], f"{name}, under Penstock": under}
                for case, before in served.items():
                    if options.only in case and (not before or "mpi" in words):
                        suite.check(case, problems_of(here, words, before))
            for progress, (before, more) in PROGRESS.items():
                case = f"MPI-IO, independent, under Penstock, by {progress}"
                words = [*before, under[0], *more, *under[1:]]
                if options.only in case:
                    independent = CASES["MPI-IO, independent"]
                    suite.check(case, problems_of(here, independent, words, progress))
    except NotHereError as missing:
        suite.skip("two nodes", str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
