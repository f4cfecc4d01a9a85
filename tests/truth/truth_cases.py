"""The faults, how each is brought about, and the evidence that a launch of truth.cpp leaves."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from run_mpi import Bench, Outcome, Penstock, launch, with_preload

# Independent writes are in the file when they return, and tell their errors themselves.
AT_ONCE = {"PENSTOCK_WRITE_BEHIND": "off"}


class NotPossibleError(Exception):
    """This machine cannot bring the fault about; the text says why."""


@dataclass
class Rank:
    """What one rank was told, and what the file says. Calls: (class, count, prefix, asked)."""

    said: dict[str, str] = field(default_factory=dict)
    told: list[tuple[str, int]] = field(default_factory=list)
    calls: list[tuple[str, int, int, int]] = field(default_factory=list)


def faults_met(directory: Path) -> Path:
    """What libpenstock_fault.so writes as soon as a call was made to fail."""
    return directory / "faults"


class Evidence:
    """The ranks' files together."""

    def __init__(self, directory: Path, ranks: int, hung: bool) -> None:
        self.hung = hung
        self.met = faults_met(directory).exists()
        self.ranks = [_read_rank(directory / f"rank.{r}") for r in range(ranks)]
        self.complete = all(r.said.get("done") == "yes" for r in self.ranks)
        self.strangers = sum(int(r.said.get("strangers", "0")) for r in self.ranks[:1])

    def classes(self, step: str) -> set[str]:
        return {r.said.get(step, "nothing") for r in self.ranks}

    def write_classes(self) -> set[str]:
        return {c for r in self.ranks for c, _ in r.told}

    def all_classes(self) -> set[str]:
        return self.write_classes() | self.classes("sync") | self.classes("close")

    def untrue_counts(self, *, longest: bool) -> list[str]:
        """Counts that exceed what is in the file, or (longest) fall short of it."""
        wrong = []
        for rank, r in enumerate(self.ranks):
            for i, (c, count, prefix, _) in enumerate(r.calls):
                if count > prefix or (longest and count != prefix):
                    wrong.append(f"rank {rank} call {i} ({c}): count {count}, in file {prefix}")
        return wrong

    def disagreements(self) -> list[str]:
        """Collective calls in which ranks were told different classes."""
        wrong = []
        for i in range(max((len(r.told) for r in self.ranks), default=0)):
            said = [r.told[i][0] if i < len(r.told) else "nothing" for r in self.ranks]
            if len(set(said)) > 1:
                wrong.append(f"call {i}: {said}")
        for step in ("open", "view", "sync", "close"):
            if len(self.classes(step)) > 1:
                wrong.append(f"{step}: {[r.said.get(step, 'nothing') for r in self.ranks]}")
        return wrong

    @property
    def silent_losses(self) -> list[str]:
        """Calls that said success, with bytes missing, and no later sync or close that told."""
        lost = []
        for rank, r in enumerate(self.ranks):
            later = {r.said.get("sync"), r.said.get("close")} - {"none", None}
            short = [i for i, c in enumerate(r.calls) if c[0] == "none" and c[2] < c[3]]
            if short and not later:
                lost.append(f"rank {rank} calls {short}")
        return lost

    def text(self) -> str:
        return "; ".join(
            f"rank {i}: writes {[c for c, _ in r.told]}, sync {r.said.get('sync', '-')}, "
            f"close {r.said.get('close', '-')}"
            for i, r in enumerate(self.ranks)
        )


def _read_rank(path: Path) -> Rank:
    rank = Rank()
    for line in path.read_text().splitlines() if path.exists() else []:
        word, *rest = line.split()
        if word == "call":
            rank.calls.append((rest[0], int(rest[1]), int(rest[2]), int(rest[3])))
        elif word == "told":
            rank.told.append((rest[0], int(rest[1])))
        else:
            rank.said[word] = " ".join(rest)
    return rank


@dataclass(frozen=True)
class Fault:
    """Brought about by ``spec`` (for libpenstock_fault.so) or by a disk of ``disk_bytes``.

    ``expected`` is the class that some rank must be told (in a collective then all of them), None
    when nothing may be noticed; ``step`` is where.
    """

    name: str
    meaning: str
    spec: str = ""
    disk_bytes: int = 0
    expected: str | None = None
    step: str = "write"

    def unmet(self, evidence: Evidence) -> list[str]:
        said = {"write": evidence.write_classes, "any": evidence.all_classes}.get(
            self.step, lambda: evidence.classes(self.step)
        )()
        if self.expected is None:
            noticed = evidence.all_classes() - {"none"}
            wrong = [f"harmless, yet the program was told {sorted(noticed)}"] if noticed else []
            return wrong + ["no call was made to fail"] * bool(self.spec and not evidence.met)
        return [] if self.expected in said else [f"{self.step}: nobody was told {self.expected}"]


FAULTS = [
    Fault("none", "nothing fails"),
    Fault("full_disk", "a disk that fills", disk_bytes=448 << 10, expected="no_space"),
    Fault(
        "eio_one_rank",
        "EIO on one rank only",
        spec="call=pwrite,nth=2,errno=EIO,rank=0",
        expected="io",
    ),
    Fault(
        "eio_from_then_on",
        "EIO on one rank from its 2nd write on",
        spec="call=pwrite,nth=2,every=1,errno=EIO,rank=0",
        expected="io",
    ),
    Fault(
        "enospc_third",
        "ENOSPC at the 3rd write",
        spec="call=pwrite,nth=3,errno=ENOSPC,rank=0",
        expected="no_space",
    ),
    Fault(
        "edquot",
        "EDQUOT at the 2nd write",
        spec="call=pwrite,nth=2,errno=EDQUOT,rank=0",
        expected="quota",
    ),
    Fault("short_writes", "every write is short", spec="call=pwrite,nth=1,every=1,short=1000"),
    Fault("eintr", "EINTR at the 2nd write", spec="call=pwrite,nth=2,errno=EINTR"),
    Fault(
        "fsync_fails",
        "fsync fails on one rank",
        spec="call=fsync,nth=1,errno=EIO,rank=0",
        expected="io",
        step="sync",
    ),
    Fault(
        "fsync_no_space",
        "fsync says ENOSPC",
        spec="call=fsync,nth=1,errno=ENOSPC,rank=0",
        expected="no_space",
        step="sync",
    ),
    Fault(
        "close_fails",
        "close fails on one rank",
        spec="call=close,nth=1,every=1,errno=EIO,rank=0",
        expected="io",
        step="close",
    ),
]


@contextlib.contextmanager
def small_disk(size_bytes: int) -> Iterator[Path]:
    """A tmpfs of this size. Only root can mount one."""
    if os.geteuid() != 0:
        raise NotPossibleError("mounting a small disk needs root")
    with tempfile.TemporaryDirectory(prefix="penstock-disk-") as directory:
        options = f"size={size_bytes},mode=0700"
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotPossibleError(f"mount: {done.stderr.strip()}")
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", "-l", directory], check=False, capture_output=True)


@contextlib.contextmanager
def _place(fault: Fault) -> Iterator[Path]:
    if fault.disk_bytes:
        with small_disk(fault.disk_bytes) as directory:
            yield directory
    else:
        with tempfile.TemporaryDirectory(prefix="penstock-truth-") as directory:
            yield Path(directory)


def inject(
    bench: Bench,
    ranks: int,
    fault: Fault,
    mode: str,
    *,
    background: bool = False,
    penstock: Penstock | None = None,
    timeout_s: float = 120,
) -> tuple[Outcome, Evidence]:
    """Run truth.cpp with the fault; raises NotPossibleError."""
    with _place(fault) as place, tempfile.TemporaryDirectory(prefix="penstock-told-") as told:
        file = place / "data"
        program = [str(bench.program("truth")), f"--file={file}", f"--report={told}"]
        program += [f"--mode={mode}", f"--background={int(background)}"]
        wrap: list[str] = []
        if fault.spec:
            library = fault_library(bench)
            wrap = with_preload(library, f"{fault.spec},path={file}", faults_met(Path(told)))
        out = launch(bench, ranks, program, penstock=penstock, wrap=wrap, timeout_s=timeout_s)
        return out, Evidence(Path(told), ranks, out.hung)


def fault_library(bench: Bench) -> Path:
    found = sorted(bench.build.rglob("libpenstock_fault.so"))
    if not found:
        raise FileNotFoundError(f"no libpenstock_fault.so under {bench.build}: build it first")
    return found[0]
