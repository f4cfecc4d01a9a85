"""Places to measure in: this directory's disk, a tmpfs, and a disk that is held to a rate."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FS_SCRIPTS = ROOT / "tests" / "fs"
NOT_HERE = 77
MEMORY = "/dev/shm"  # noqa: S108 - a tmpfs is what is wanted
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class NotHereError(Exception):
    """What a case needs is not on this machine; the text says what."""


@dataclass(frozen=True)
class Disk:
    """A directory to measure in. ``limit`` is in bytes/s; ``wrap`` are words before a command
    that the limit is to hold for."""

    name: str
    directory: Path
    limit: int = 0
    wrap: tuple[str, ...] = ()


def script(name: str, *words: str) -> str:
    """Runs a script of tests/fs; one that cannot do it here raises NotHereError."""
    command = [str(FS_SCRIPTS / name), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == NOT_HERE:
        raise NotHereError(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(f"{name} {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def working_disk(name: str) -> Iterator[Disk]:
    """A directory below the build tree: the disk that the project is built on."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="instrument-", dir=ROOT / "build") as directory:
        yield Disk(name, Path(directory))


@contextmanager
def memory_disk(name: str) -> Iterator[Disk]:
    """A directory on the tmpfs that Linux has."""
    if not os.access(MEMORY, os.W_OK):
        raise NotHereError(f"{MEMORY} cannot be written")
    with tempfile.TemporaryDirectory(prefix="instrument-", dir=MEMORY) as directory:
        yield Disk(name, Path(directory))


@contextmanager
def slow_disk(name: str, limit: int, *options: str) -> Iterator[Disk]:
    """An ext4 that is held to ``limit`` bytes/s."""
    with tempfile.TemporaryDirectory(prefix="penstock-slow-") as directory:
        script("slowdisk.sh", "start", directory, "--rate", str(limit), *options)
        wrap = (str(FS_SCRIPTS / "slowdisk.sh"), "run", directory, "--")
        try:
            yield Disk(name, Path(directory) / "mnt", limit, wrap)
        finally:
            script("slowdisk.sh", "stop", directory)


_OWN_MOUNTS = "PENSTOCK_TEST_OWN_MOUNTS"


def own_mounts() -> None:
    """Begins this program again where what it mounts is seen by it alone, and goes when it ends.

    Who may not mount goes on as before: `small_disk` then says that it cannot.
    """
    if os.geteuid() != 0 or os.environ.get(_OWN_MOUNTS) or shutil.which("unshare") is None:
        return
    os.environ[_OWN_MOUNTS] = "1"
    words = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
    os.execvp(words[0], words)  # noqa: S606 - no shell is wanted


@contextmanager
def small_disk(at: Path, size: str, *options: str) -> Iterator[Path]:
    """A tmpfs of ``size`` at ``at``, for a program that called `own_mounts`."""
    if not os.environ.get(_OWN_MOUNTS):
        raise NotHereError("only root can mount a small disk")
    at.mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "none", str(at))
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True, timeout=60)


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotHereError(f"mount {' '.join(words)}: {done.stderr.strip()}")


def warm_memory(size: int) -> None:
    """Touches and releases memory, so that what writes next finds pages that are really there.

    On a virtual machine the host takes back what is free for seconds; then the first touch of a
    page costs several times what writing it does, and whoever writes second looks faster.
    """
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    size = min(size, available // 4) & ~(2 * MIB - 1)
    if not size:
        return
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for offset in range(0, size, mmap.PAGESIZE):
            memory[offset] = 1


def sync() -> None:
    """Everything that waits for any disk is written, so that nothing of it is measured."""
    os.sync()
