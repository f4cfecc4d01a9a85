"""Kernel and memory: io_uring, what may be dirty, the memory cgroup, shared memory."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from penstock import _core
from penstock.doctor.finding import Finding

_SHM = "/dev/shm"  # noqa: S108 - its size is the question
_IO_URING_SETUP = 425  # the same number on every architecture
_PARAMETERS_BYTES = 120
_LITTLE_MEMORY_BYTES = 512 * 2**20
_LITTLE_SHM_BYTES = 64 * 2**20
_NO_LIMIT_BYTES = 2**60  # cgroup v1 writes "no limit" as a huge number


def examine(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> list[Finding]:
    """What kernel and memory offer."""
    available = _meminfo(proc).get("MemAvailable")
    return [_io_uring(proc), *_memory(available, proc, cgroups), *_dirty(available, proc), _shm()]


def _io_uring(proc: Path) -> Finding:
    sysctl = _text(proc / "sys/kernel/io_uring_disabled")
    result, number = _try_io_uring()
    values = {"errno": number, "io_uring_disabled": sysctl}
    if result:
        return Finding("ok", "io_uring", "available", "", values)
    why = os.strerror(number)
    if number == errno.EPERM and sysctl not in (None, "0"):
        remedy = "sysctl -w kernel.io_uring_disabled=0 as root, if your site wants it"
        text = f"switched off by sysctl kernel.io_uring_disabled={sysctl}"
        return Finding("note", "io_uring", text, remedy, values)
    if number == errno.EPERM:
        return Finding("note", "io_uring", f"refused ({why}): a container's filter", "", values)
    if number == errno.ENOSYS:
        return Finding("note", "io_uring", "this kernel does not have it", "", values)
    return Finding("note", "io_uring", f"cannot be set up: {why}", "", values)


def _try_io_uring() -> tuple[bool, int]:
    """Whether a ring of one entry can be set up, and the errno when not."""
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(_PARAMETERS_BYTES)
    descriptor = libc.syscall(ctypes.c_long(_IO_URING_SETUP), ctypes.c_uint(1), parameters)
    if descriptor < 0:
        return False, ctypes.get_errno()
    os.close(descriptor)
    return True, 0


def _memory(available: int | None, proc: Path, cgroups: Path) -> list[Finding]:
    limit = memory_limit(proc, cgroups)
    values = {"available_bytes": available, "cgroup_limit_bytes": limit}
    text = "not known" if available is None else f"{_core.human_size(available)} available"
    if limit is not None:
        text += f", limited to {_core.human_size(limit)} by the memory cgroup"
    usable = min((n for n in (available, limit) if n is not None), default=None)
    if usable is not None and usable < _LITTLE_MEMORY_BYTES:
        remedy = "each writer holds a collective buffer: --cycle 4MiB or --writers make them fewer"
        return [Finding("warn", "memory", text, remedy, values)]
    return [Finding("ok", "memory", text, "", values)]


def memory_limit(proc: Path, cgroups: Path) -> int | None:
    """The least limit of this process's memory cgroup and its parents, in bytes."""
    limits = []
    for line in (_text(proc / "self/cgroup") or "").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0":
            limits += _limits(cgroups, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits(cgroups / "memory", path, "memory.limit_in_bytes")
    return min(limits, default=None)


def _limits(root: Path, path: str, name: str) -> list[int]:
    """Of the group and all above it; a container may not see its own path, but its root."""
    here = root / path.strip("/")
    found = []
    for group in [here, *here.parents]:
        text = _text(group / name)
        if text is not None and text.isdigit() and int(text) < _NO_LIMIT_BYTES:
            found.append(int(text))
        if group == root:
            break
    return found


def _dirty(available: int | None, proc: Path) -> list[Finding]:
    """How much may wait in the page cache before writers are made to wait."""
    limit, start = (_dirty_bytes(available, proc, which) for which in ("", "background_"))
    if limit is None or start is None:
        return []
    text = (
        f"up to {_core.human_size(limit)} may be dirty before writers wait; "
        f"write-back starts at {_core.human_size(start)}"
    )
    return [
        Finding("ok", "write-back", text, "", {"dirty_bytes": limit, "background_bytes": start})
    ]


def _dirty_bytes(available: int | None, proc: Path, which: str) -> int | None:
    fixed = _text(proc / f"sys/vm/dirty_{which}bytes")
    ratio = _text(proc / f"sys/vm/dirty_{which}ratio")
    if fixed and fixed != "0":
        return int(fixed)
    return None if available is None or not ratio else available * int(ratio) // 100


def _shm() -> Finding:
    try:
        volume = os.statvfs(_SHM)
    except OSError as error:
        return Finding("warn", _SHM, f"not there: {error.strerror}", "mount a tmpfs on it")
    size, free = volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize
    text = f"{_core.human_size(free)} free of {_core.human_size(size)}"
    values = {"size_bytes": size, "free_bytes": free}
    if free < _LITTLE_SHM_BYTES:
        remedy = (
            "MPI libraries keep their own segments there: enlarge it (docker run --shm-size=1g)"
        )
        return Finding("warn", _SHM, text, remedy, values)
    return Finding("ok", _SHM, text, "", values)


def _meminfo(proc: Path) -> dict[str, int]:
    found = {}
    for line in (_text(proc / "meminfo") or "").splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
