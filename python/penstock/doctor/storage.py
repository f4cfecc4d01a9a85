"""The directory that a program would write into: file system, geometry, space, direct I/O."""

from __future__ import annotations

import errno
import mmap
import os
import shlex
import tempfile
from pathlib import Path

from penstock import _core
from penstock.doctor.finding import Finding
from penstock.errors import ArgumentError
from penstock.launch.request import is_utf8

_BLOCK_BYTES = 4096
_LITTLE_BYTES = 2**30


def require_directory(directory: Path) -> None:
    """Raise ArgumentError unless there is such a directory, and results can name it."""
    require_there(directory)
    if not is_utf8(str(directory.resolve())):
        raise ArgumentError(
            f"DIR must have a name that is UTF-8, for results hold it, got {directory.resolve()}: "
            "give another directory, or rename it"
        )


def require_there(directory: Path) -> None:
    """Raise ArgumentError unless there is such a directory."""
    try:
        is_directory = directory.is_dir()
    except OSError as error:
        raise ArgumentError(f"DIR {directory} cannot be looked at: {error.strerror}") from error
    if directory.exists() and not is_directory:
        raise ArgumentError(f"DIR must be a directory, got the file {directory}")
    if not is_directory:
        raise ArgumentError(
            f"DIR must be a directory, and there is no {directory}: give one that is there, "
            f"or make it with mkdir -p {shlex.quote(str(directory))}"
        )


def examine(directory: Path) -> list[Finding]:
    """The file system under ``directory`` and what it can do."""
    return [_file_system(directory), _space(directory), *_writing(directory)]


def probe(directory: Path) -> _core.FileSystem:
    """Its file system; by a descriptor, for _core takes only names that are UTF-8."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return _core.probe_directory(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _file_system(directory: Path) -> Finding:
    try:
        fs = probe(directory)
    except OSError as error:
        return Finding("warn", "directory", f"{directory} cannot be opened: {error.strerror}")
    geometry = fs.geometry
    shared = geometry.sharing != _core.Sharing.any
    values = {
        "type": fs.type,
        "page_bytes": geometry.page_bytes,
        "block_bytes": geometry.block_bytes,
        "stripe_bytes": geometry.stripe_bytes,
        "unit_bytes": geometry.unit_bytes,
        "shared": shared,
    }
    rule = "one node alone writes a unit" if shared else "any rank may write any byte"
    text = f"{directory} is {fs.type}: units of {_core.human_size(geometry.unit_bytes)}, {rule}"
    if fs.type in ("tmpfs", "ramfs"):
        return Finding("note", "directory", f"{text}; it is memory, not a disk", "", values)
    if fs.type.startswith("0x"):
        return Finding(
            "note", "directory", f"{text} (type not known, taken for shared)", "", values
        )
    return Finding("ok", "directory", text, "", values)


def _space(directory: Path) -> Finding:
    volume = os.statvfs(directory)
    free = volume.f_bavail * volume.f_frsize
    text = f"{_core.human_size(free)} free for you"
    values = {"free_bytes": free}
    if free == 0:
        return Finding("problem", "directory", text, "free some space, or write elsewhere", values)
    if free < _LITTLE_BYTES:
        return Finding("warn", "directory", text, "check that your files fit", values)
    return Finding("ok", "directory", text, "", values)


def _writing(directory: Path) -> list[Finding]:
    """Makes a file, writes a block through the page cache and around it, removes the file."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=".penstock-doctor-", dir=directory)
    except OSError as error:
        why = f"no file can be made in {directory} ({error.strerror}), so no program can write here"
        remedy = "give the directory that your programs write into; or have this one made writable"
        return [Finding("problem", "directory", why, remedy, {"errno": error.errno})]
    try:
        return [_refusal(descriptor, directory) or _direct(name)]
    finally:
        Path(name).unlink(missing_ok=True)


def _refusal(descriptor: int, directory: Path) -> Finding | None:
    """Why no byte is stored (a quota, a full disk): no word about direct I/O, which fails too."""
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(bytes(_BLOCK_BYTES))
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        why = f"no file can be written in {directory} ({error.strerror})"
        remedy = (
            "free some space, or have your quota or limit (ulimit -f) raised; or write elsewhere"
        )
        return Finding("problem", "directory", why, remedy, {"errno": error.errno})
    return None


def _direct(name: str) -> Finding:
    try:
        seen = [_write_and_read(name, byte) for byte in b"ab"]
    except OSError as error:
        text = f"direct I/O is refused: {error.strerror}"
        normal = error.errno in (errno.EINVAL, errno.EOPNOTSUPP)
        remedy = "" if normal else "see the kernel's log"
        return Finding("note" if normal else "warn", "direct I/O", text, remedy)
    if not all(seen):
        text = "direct writes are stored, but reads on this mount do not see them"
        return Finding("note", "direct I/O", text + "; Penstock writes through the page cache here")
    return Finding("ok", "direct I/O", f"works (O_DIRECT, {_BLOCK_BYTES} bytes written)")


def _write_and_read(name: str, byte: int) -> bool:
    """Around the page cache; whether a read through it sees that."""
    block = mmap.mmap(-1, _BLOCK_BYTES)  # aligned to a page
    try:
        block.write(bytes([byte]) * _BLOCK_BYTES)
        descriptor = os.open(name, os.O_WRONLY | os.O_DIRECT)
        try:
            os.write(descriptor, block)
        finally:
            os.close(descriptor)
        return Path(name).read_bytes() == block[:]
    finally:
        block.close()
