#!/usr/bin/env python3
"""BT-IO's independent writes behind leave no stripe of the file to two ranks: strace shows every
call of every rank that puts bytes into it, with its place and length.

A stripe is a page of write-behind. The calls must make up the whole file, and the program reads
every byte back. On two nodes (MPICH pretends them) loads move by the I/O threads. Controls, without
write-behind and by loads that only move in collective calls, must find stripes of several ranks.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from disks import KIB, MIB, NotHereError
from mpis import MPIS
from run_mpi import Bench, Outcome, Penstock, Suite, launch, plain_arguments

EDGES = {"S": 12, "W": 24}
POINT_BYTES = 40
STRIPES = {"S": 4 * KIB, "W": 64 * KIB}  # 68 and 34 of them
MANY_PAGES, FEW_PAGES = 64 * MIB, MIB  # for each rank; of few they leave while the program writes
OUTPUTS = {MANY_PAGES: 4, FEW_PAGES: 16}  # by the room
RANKS = {1: (4, 9, 16), 2: (4, 9)}  # by nodes
OFF = {"PENSTOCK_WRITE_BEHIND": "off"}
TWO_NODES = {
    "MPIR_CVAR_NUM_CLIQUES": "2",
    "MPIR_CVAR_DEFAULT_THREAD_LEVEL": "MPI_THREAD_MULTIPLE",
}
# Every rank's calls into files of its own, one for each of its threads: PROCESS.THREAD.
TRACED = "write,writev,pwrite64,pwritev,pwritev2,mmap"
TRACER = 'exec strace -ff --seccomp-bpf -y -s 0 -e trace="$0" -o "$1/$$" "${@:2}"'
CALL = re.compile(r"(?P<name>\w+)\((?P<words>.*)\) += (?P<result>\d+|0x[0-9a-f]+)$")


class Extent(NamedTuple):
    """Bytes that a call has put into the file; of a mapping, all that it may have."""

    begin: int
    end: int


@dataclass(frozen=True)
class Case:
    """A job, and whether it is one that must share stripes."""

    mpi: str
    ranks: int
    kind: str
    nodes: int = 1
    room: int = MANY_PAGES
    control: str = ""  # what it writes by instead
    quick: bool = False

    @property
    def name(self) -> str:
        few = ", few pages" if self.room == FEW_PAGES else ""
        control = f", control: {self.control}" if self.control else ""
        where = f"{self.ranks} ranks of {self.nodes} nodes"
        return f"{self.mpi}, class {self.kind}, {where}{few}{control}"

    @property
    def stripe(self) -> int:
        return STRIPES[self.kind]

    @property
    def size(self) -> int:
        return int(EDGES[self.kind] ** 3 * POINT_BYTES * OUTPUTS[self.room])

    @property
    def penstock(self) -> Penstock:
        pages = f"page={self.stripe // KIB}KiB, limit={self.room // MIB}MiB"
        if self.control == "off":  # each row by a call: the C library's threads map nothing
            return Penstock("individual + none + posix_aio", environment=OFF)
        between = TWO_NODES | {"PENSTOCK_WRITE_BEHIND_PROGRESS": self.control or "thread"}
        environment = between if self.nodes == 2 else {}
        return Penstock(f"write_behind(stages=2, {pages})", environment=environment)


def cases() -> Iterator[Case]:
    for mpi in ("mpich", "openmpi"):
        for kind in EDGES:
            for ranks in RANKS[1]:
                yield Case(mpi, ranks, kind, quick=kind == "W" and ranks == 4)
        yield Case(mpi, 4, "W", room=FEW_PAGES)
        yield Case(mpi, 4, "W", control="off", quick=mpi == "openmpi")
    for kind in EDGES:
        for ranks in RANKS[2]:
            yield Case("mpich", ranks, kind, nodes=2, quick=kind == "W" and ranks == 4)
    yield Case("mpich", 4, "W", nodes=2, room=FEW_PAGES)
    yield Case("mpich", 4, "W", nodes=2, room=FEW_PAGES, control="calls")


# ---- what the ranks have done ----


def traces(directory: Path, file: Path) -> dict[str, list[Extent]]:
    """By rank (its tracer's process): what its threads have put into the file."""
    found: dict[str, list[Extent]] = defaultdict(list)
    for trace in directory.iterdir():
        found[trace.stem] += extents(trace.read_text().splitlines(), f"<{file}>")
    return found


def extents(lines: Iterable[str], file: str) -> Iterator[Extent]:
    """Of the calls on ``file`` those that can change it. What failed has changed nothing."""
    for line in lines:
        match = CALL.match(line) if file in line else None
        if match is not None and (one := extent(match["name"], match["words"], match["result"])):
            yield one


def extent(name: str, words: str, result: str) -> Extent | None:
    last = words.split(", ")
    if name == "mmap":
        if "PROT_WRITE" not in words or "MAP_SHARED" not in words:
            return None
        begin = int(last[-1], 0)
        return Extent(begin, begin + int(last[1], 0))
    if name in ("write", "writev"):
        raise ValueError(f"where does it write? {name}({words})")
    begin = int(last[-2 if name == "pwritev2" else -1])
    return Extent(begin, begin + int(result))


def shared_stripes(ranks: dict[str, list[Extent]], stripe: int) -> list[int]:
    """Those that more than one rank has written."""
    writers: dict[int, set[str]] = defaultdict(set)
    for rank, written in ranks.items():
        for begin, end in written:
            for one in range(begin // stripe, (end - 1) // stripe + 1):
                writers[one].add(rank)
    return sorted(one for one, of in writers.items() if len(of) > 1)


def untraced(ranks: dict[str, list[Extent]], size: int) -> int:
    """How many bytes of the file no call has written: ways into it that nobody saw."""
    missing = reached = 0
    for begin, end in sorted(x for written in ranks.values() for x in written):
        missing += max(0, begin - reached)
        reached = max(reached, end)
    return missing + max(0, size - reached)


# ---- what must be so ----


def served_problems(case: Case, out: Outcome) -> list[str]:
    """Every byte is right, and went the way that the case is about."""
    line = dict(json.loads(out.output)) if out.output.startswith("{") else {}
    if out.code != 0 or out.hung or not line:
        return [f"exit code {out.code}"]
    wanted = {"bytes": case.size, "wrong_bytes": 0, "first_wrong": None}
    problems = [] if line["verified"] == wanted else [f"verified {line['verified']}"]
    if line["nodes"] != case.nodes:
        problems.append(f"{line['nodes']} nodes")
    if out.total("engine_bytes") != case.size:
        problems.append(f"the engine wrote {out.total('engine_bytes')} bytes of {case.size}")
    files = [file for log in out.logs for file in log["files"]]
    behind = sum(file["traffic"]["staged_bytes"] for file in files)
    if behind != (0 if case.control == "off" else case.size):
        problems.append(f"{behind} bytes went behind")
    moved = {file["write_behind_progress"] for file in files}
    if case.nodes == 2 and moved != {case.control or "thread"}:
        problems.append(f"moved by {moved}")
    return problems + [f"degraded: {file['degraded']}" for file in files if file["degraded"]]


def stripe_problems(case: Case, ranks: dict[str, list[Extent]]) -> list[str]:
    problems = [] if len(ranks) == case.ranks else [f"{len(ranks)} ranks were traced"]
    if missing := untraced(ranks, case.size):
        problems.append(f"of {missing} bytes no call was seen")
    shared, stripes = shared_stripes(ranks, case.stripe), -(-case.size // case.stripe)
    print(f"{case.name}: stripes written by more than one rank: {len(shared)} of {stripes}")
    if bool(shared) != bool(case.control):
        problems.append(f"stripes written by more than one rank: {shared}")
    return problems


def run(suite: Suite, build: Path, case: Case) -> None:
    bench = Bench(build, MPIS[case.mpi])
    program = str(build / "bench" / f"peer-btio-unsynced-{case.mpi}")
    with tempfile.TemporaryDirectory(prefix="penstock-stripes-") as name:
        directory, file = Path(name).resolve() / "traces", Path(name).resolve() / "file"
        directory.mkdir()
        words = [program, "--file", str(file), "--class", case.kind, "--subtype", "simple"]
        words += ["--outputs", str(OUTPUTS[case.room]), "--end", "close"]
        words += ["--regime", "asis", "--warm-disk", "64KiB"]
        out = launch(
            bench,
            case.ranks,
            words,
            penstock=case.penstock,
            wrap=["bash", "-c", TRACER, TRACED, str(directory)],
        )
        problems = served_problems(case, out)
        if not problems:
            problems = stripe_problems(case, traces(directory, file))
    suite.check(case.name, problems, out)


def must_be_here(case: Case) -> None:
    if MPIS[case.mpi].launcher() is None:
        raise NotHereError(MPIS[case.mpi].remedy())
    if shutil.which("strace") is None:
        raise NotHereError("strace is not installed: apt-get install strace")


def main() -> int:
    parser = plain_arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="on 4 ranks, one class")
    options = parser.parse_args()
    suite = Suite("stripes")
    for case in cases():
        if options.only not in case.name or (options.quick and not case.quick):
            continue
        try:
            must_be_here(case)
            run(suite, options.build.resolve(), case)
        except NotHereError as missing:
            suite.skip(case.name, str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
