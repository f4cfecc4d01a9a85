"""Where samples were taken: versions, kernel, memory, file system, mount, device, limits."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.bench.flat import flat
from penstock.bench.sample import Provenance
from penstock.doctor import machine, storage

_SYS = Path("/sys")
_PROC = Path("/proc")
_WRITE_BACK = (
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
)
_QUEUE = ("rotational", "scheduler", "nr_requests", "max_sectors_kb", "write_cache")


def collect(directory: Path, *, mpi: Any = None, native: str = "") -> Provenance:
    """The provenance of samples that are taken in ``directory``.

    Parameters
    ----------
    directory : Path
        A directory on the file system that is measured.
    mpi : JSON value
        The MPI libraries and launchers that the plan uses.
    native : str
        The native files that are used: their directory.
    """
    facts: dict[str, Any] = {
        "host": platform.node(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_model": _cpu_model(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "memory_limit_bytes": machine.memory_limit(_PROC, _SYS / "fs/cgroup"),
        "write_back": {name: _text(_PROC / "sys/vm" / name) for name in _WRITE_BACK},
        "huge_pages": _text(_SYS / "kernel/mm/transparent_hugepage/enabled"),
        "file_system": file_system(directory),
        "mpi": mpi,
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "penstock": __version__,
        "penstock_commit": _commit(),
        "native": native,
        "native_digest": _digest(native),
        "python": platform.python_version(),
    }
    text = json.dumps(facts, sort_keys=True)
    return Provenance(id=hashlib.sha256(text.encode()).hexdigest()[:16], **facts)


def changes(before: Provenance, now: Provenance) -> str:
    """What differs between two, for a person: ``kernel 6.1 -> 6.18, file_system.options ..``."""
    old, new = flat(before.model_dump()), flat(now.model_dump())
    differing = [
        f"{name} {old.get(name)} -> {new.get(name)}"
        for name in sorted({*old, *new} - {"id"})
        if old.get(name) != new.get(name)
    ]
    return ", ".join(differing)


def file_system(directory: Path) -> dict[str, Any]:
    """The file system of a directory: type, mount, options, source, geometry and device."""
    found: dict[str, Any] = _mount(directory.resolve())
    try:
        probed = storage.probe(directory)
    except OSError as error:
        found["geometry"] = {"unknown": error.strerror}
    else:
        found["type"] = probed.type
        geometry = probed.geometry
        found["geometry"] = {
            "page_bytes": geometry.page_bytes,
            "block_bytes": geometry.block_bytes,
            "stripe_bytes": geometry.stripe_bytes,
            "unit_bytes": geometry.unit_bytes,
            "sharing": geometry.sharing.name,
        }
    found["device"] = _device(directory)
    return found


def _mount(directory: Path) -> dict[str, Any]:
    """The line of /proc/self/mountinfo with the longest mount point above the directory."""
    best: tuple[int, dict[str, Any]] = (-1, {})
    for line in (_text(_PROC / "self/mountinfo") or "").split("\n"):
        fields, _, rest = line.partition(" - ")
        words, behind = fields.split(" "), rest.split(" ")
        if len(words) < 6 or len(behind) < 3:
            continue
        point = Path(_unescaped(words[4]))
        if directory.is_relative_to(point) and len(point.parts) >= best[0]:
            options = ",".join(dict.fromkeys([*words[5].split(","), *behind[2].split(",")]))
            facts = {"type": behind[0], "mount": str(point), "options": options}
            best = (len(point.parts), {**facts, "source": behind[1]})
    return best[1]


def _unescaped(field: str) -> str:
    """Of mountinfo, which has blanks, newlines, backslashes and # as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


def _device(directory: Path) -> dict[str, Any] | None:
    """The block device below, as sysfs tells it; None where there is none (NFS, tmpfs)."""
    try:
        number = directory.stat().st_dev
    except OSError:
        return None
    where = _SYS / "dev/block" / f"{os.major(number)}:{os.minor(number)}"
    if not where.exists():
        return None
    where = where.resolve()
    queue = where / "queue"
    if not queue.exists():  # a partition's is its disk's
        queue = where.parent / "queue"
    facts: dict[str, Any] = {"name": where.name}
    if (image := _text(where / "loop" / "backing_file")) is not None:
        facts["image_on"] = _mount(Path(image)).get("type")
    return facts | {name: _text(queue / name) for name in _QUEUE}


def place_of(file_system: dict[str, Any]) -> str:
    """A file system and its disk, for a person: ``ext4``, ``xfs on a loop device in tmpfs``."""
    kind = file_system.get("type", "an unknown file system")
    device = file_system.get("device") or {}
    if not str(device.get("name", "")).startswith("loop"):
        return str(kind)
    image_on = device.get("image_on")
    return f"{kind} on a loop device" + (f" in {image_on}" if image_on else "")


def _cpu_model() -> str:
    for line in (_text(_PROC / "cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return platform.processor()


def _digest(native: str) -> str | None:
    """Of the engines and measuring programs: two builds of one commit may differ."""
    if not native:
        return None
    found = hashlib.blake2b(digest_size=8)
    for pattern in ("penstock-engine-*", "penstock-measure-*"):
        for file in sorted(Path(native).glob(pattern)):
            found.update(file.name.encode())
            found.update(file.read_bytes())
    return found.hexdigest()


def _commit() -> str | None:
    """The commit of the checkout that this is imported from; None when it was installed."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
