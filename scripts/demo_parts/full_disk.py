"""A disk that fills: what each rank is told, and whether it is true."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from demo_parts.launch import Finished, job, read_logs, run, with_penstock

RANKS = 4
MIB_PER_RANK = 16
DISK_MIB = 24
BLOCK = 4096
TOLD = re.compile(r"^rank (\d+) told (\S+) after (\d+) calls counted_bytes (\d+)$", re.MULTILINE)
ENDED = re.compile(
    r"^rank (\d+) write (\S+) sync (\S+) close (\S+) calls (\d+) counted_bytes (\d+) "
    r"elapsed_s ([\d.]+)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class RankStory:
    """What one rank was told, and how many of its bytes, from the first, the file really holds."""

    rank: int
    write: str
    sync: str  # "-" when the rank never came back from it
    close: str
    counted_bytes: int
    true_bytes: int
    elapsed_s: float | None


@dataclass(frozen=True)
class Story:
    """One run of the program against the small disk."""

    job: Finished
    ranks: list[RankStory]

    @property
    def classes(self) -> set[str]:
        """The error classes of the writes."""
        return {rank.write for rank in self.ranks}

    @property
    def counts_true(self) -> bool:
        """Whether the bytes that every rank was told are in the file, are in the file."""
        return all(rank.counted_bytes <= rank.true_bytes for rank in self.ranks)


@contextlib.contextmanager
def small_disk(where: Path) -> Iterator[Path]:
    """A file system of DISK_MIB in memory. REQUIRES the right to mount."""
    where.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(where)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
        yield where
    finally:
        unmount(where)


def unmount(where: Path) -> None:
    """Takes away what is mounted there, if anything is."""
    while where.is_mount():
        subprocess.run(["umount", "--lazy", str(where)], check=True, capture_output=True)


def fresh_directory(scratch: Path) -> None:
    """Empties `scratch`, also of the small disk of a demo that was killed."""
    try:
        unmount(scratch / "disk")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(
            f"{scratch} is left over from another demo and cannot be removed ({error}); as root:\n"
            f"  umount --lazy {scratch / 'disk'}; rm -rf {scratch}"
        ) from error


def can_mount(where: Path) -> bool:
    """Whether small_disk() works here: it is tried."""
    try:
        with small_disk(where):
            return True
    except (subprocess.CalledProcessError, OSError):
        return False


def true_prefix(path: Path, rank: int) -> int:
    """How many bytes of a rank's own stream, from its beginning, the file holds."""
    expected = bytes([ord("a") + rank % 26]) * BLOCK
    blocks = MIB_PER_RANK * 1024 * 1024 // BLOCK
    with path.open("rb") as file:
        for block in range(blocks):
            held = os.pread(file.fileno(), BLOCK, (block * RANKS + rank) * BLOCK)
            if held != expected:
                same = next((i for i, byte in enumerate(held) if byte != expected[0]), len(held))
                return block * BLOCK + same
    return blocks * BLOCK


def read_story(finished: Finished, path: Path) -> Story:
    """Reads what the ranks printed; a rank that only told its writes hung in sync or close."""
    ended = {int(match[0]): match for match in ENDED.findall(finished.output)}
    ranks = []
    for told in sorted(TOLD.findall(finished.output)):
        rank = int(told[0])
        last = ended.get(rank)
        sync, close, elapsed = (last[2], last[3], float(last[6])) if last else ("-", "-", None)
        truth = true_prefix(path, rank)
        ranks.append(RankStory(rank, told[1], sync, close, int(told[3]), truth, elapsed))
    return Story(finished, ranks)


def tell(scratch: Path, *, penstock: bool, timeout_s: float = 10) -> Story:
    """Runs the program against a fresh small disk, alone or with Penstock."""
    logs = scratch / "logs"
    with small_disk(scratch / "disk") as disk:
        path = disk / "full.dat"
        command = job("openmpi", RANKS, "full_disk", str(path), str(MIB_PER_RANK))
        if penstock:
            command = with_penstock(command, logs)
        story = read_story(run(command, timeout_s, scratch), path)
    if penstock:
        read_logs(logs)  # raises when it did not really run
    return story
