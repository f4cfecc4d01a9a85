"""Brings the machine to rest before a sample: the old file gone, nothing waiting for write-back."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from penstock.bench.sample import Settled
from penstock.errors import ArgumentError, WriteError

_MARKER = ".penstock-scratch"
_TOLERANCE_BYTES = 8 * 2**20  # what a desktop or a daemon dirties at any time
_STEP_S = 0.02
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
# Since Linux 5.8 Writeback covers what NFS has sent and not committed; before it was of its own.
_WAITING = ("Dirty:", "Writeback:", "NFS_Unstable:")


def waiting_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes of the page cache that no device has yet: dirty, and on their way."""
    total = 0
    for line in meminfo.read_text(encoding="ascii").splitlines():
        if line.startswith(_WAITING):
            total += int(line.split()[1]) * 1024
    return total


class Scratch:
    """A directory of the session's own, empty before each sample and gone at the end.

    It carries a marker, so that no directory of somebody else is ever emptied; the marker is
    locked, so that two sessions never empty each other's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marker = -1

    def make(self) -> None:
        """Make it, or take over the one that a killed session left.

        Raises
        ------
        ArgumentError
            If something else is there, or another session that still runs.
        WriteError
            If the operating system refuses.
        """
        try:
            self.path.mkdir(parents=False, exist_ok=True)
            if not (self.path / _MARKER).exists():
                if any(self.path.iterdir()):
                    raise ArgumentError(
                        f"{self.path} is not empty and was not made by penstock bench: "
                        "move it away, or measure in another directory"
                    )
                (self.path / _MARKER).touch()
            self._lock()
        except OSError as error:
            raise _refused("makes its files in", self.path, error) from error

    def _lock(self) -> None:
        if self._marker >= 0:
            return
        marker = os.open(self.path / _MARKER, os.O_RDWR)  # NFS locks nothing else exclusively
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(marker)
            raise ArgumentError(
                f"{self.path} is in use by another penstock bench: wait for its end, or measure in "
                "another directory"
            ) from error
        except OSError as error:
            # A mount without locks: the lock on the results keeps others off.
            if error.errno not in _NO_LOCKS:
                os.close(marker)
                raise
        self._marker = marker

    def empty(self) -> None:
        """Remove every file but the marker."""
        try:
            for entry in self._entries():
                _take_away(entry)
        except OSError as error:
            raise _refused("empties", self.path, error) from error

    def remove(self) -> None:
        """Remove it whole. Only what bears this session's marker is removed."""
        if self._marker < 0:
            return
        # The marker last: what an interruption leaves is still known for this session's.
        with contextlib.suppress(OSError):
            for entry in self._entries():
                with contextlib.suppress(OSError):
                    _take_away(entry)
            if not self._entries():
                (self.path / _MARKER).unlink()
        os.close(self._marker)
        self._marker = -1
        with contextlib.suppress(OSError):
            self.path.rmdir()  # NFS keeps a name in it for as long as the file is open

    def _entries(self) -> list[Path]:
        """What is in it but the marker."""
        return [entry for entry in self.path.iterdir() if entry.name != _MARKER]


def _take_away(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()


class Settle:
    """Waits until the machine's waiting bytes are back at the baseline.

    Parameters
    ----------
    limit_s : float
        Longest wait before a sample. When it is exceeded the sample is taken all the same, marked,
        and the baseline rises to the least that was seen: somebody else is writing.
    tolerance_bytes : int
        How far above the baseline is still at rest.
    waiting : callable
        What is watched; for tests.
    """

    def __init__(
        self,
        limit_s: float = 30.0,
        tolerance_bytes: int = _TOLERANCE_BYTES,
        waiting: Callable[[], int] = waiting_bytes,
    ) -> None:
        self.limit_s = limit_s
        self._tolerance_bytes = tolerance_bytes
        self._waiting = waiting
        self.baseline_bytes: int | None = None

    def __call__(self, directory: Path) -> Settled:
        """Wait. ``directory``'s file system is asked to write back what it holds."""
        begin_s = time.monotonic()
        now = least = self._waiting()
        if self.baseline_bytes is None or now > self.baseline_bytes + self._tolerance_bytes:
            _sync_file_system(directory)
            now = least = self._waiting()
        if self.baseline_bytes is None:
            self.baseline_bytes = now
        while now > self.baseline_bytes + self._tolerance_bytes:
            if time.monotonic() - begin_s > self.limit_s:
                self.baseline_bytes = least
                return Settled(waited_s=time.monotonic() - begin_s, dirty_bytes=now, exceeded=True)
            time.sleep(_STEP_S)
            now = self._waiting()
            least = min(least, now)
        self.baseline_bytes = min(self.baseline_bytes, now)
        return Settled(waited_s=time.monotonic() - begin_s, dirty_bytes=now)


def _sync_file_system(directory: Path) -> None:
    """syncfs(2), which Python does not have; a failure is the samples' to report."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        libc.syncfs(descriptor)
    finally:
        os.close(descriptor)


def _refused(what: str, path: Path, error: OSError) -> WriteError:
    number = error.errno or 0
    return WriteError(
        number,
        f"penstock bench {what} {path}, and the system refuses: {os.strerror(number)}. "
        "Measure in a directory where you may write and where there is room",
    )
