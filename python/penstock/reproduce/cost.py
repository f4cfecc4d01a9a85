"""How long a sample of a case will probably take, before any was taken.

Rough, and only for what to begin: what is measured after the warm-ups is chosen by their times.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from penstock import _core
from penstock.bench.cases import Case
from penstock.errors import WriteError
from penstock.reproduce.btio import bytes_of_class
from penstock.reproduce.needs import COLD_S

_PROBE_BYTES = 8 << 20
_READ_BACK = 5e8  # bytes per second of filling and verifying, of all workers
_ALONE_S, _LAUNCH_S, _RANK_S = 0.1, 0.25, 0.06  # a program; a launcher, and each of its ranks
_SETTLE_S = 0.1


def device_bytes_per_s(directory: Path) -> float:
    """What a directory takes, by one file of 8 MiB and its fsync.

    Raises
    ------
    WriteError
        If it does not take them.
    """
    try:
        return _probed(directory)
    except OSError as error:
        raise WriteError(
            error.errno or 0,
            f"--dir {directory} must take a file of {_PROBE_BYTES >> 20} MiB, and does not: "
            f"{error.strerror}; give another, or make room",
        ) from error


def _probed(directory: Path) -> float:
    block = os.urandom(1 << 20)
    with tempfile.TemporaryFile(dir=directory) as file:
        begin_s = time.monotonic()
        for _ in range(_PROBE_BYTES >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return _PROBE_BYTES / max(time.monotonic() - begin_s, 1e-6)


def seconds(case: Case, bytes_per_s: float) -> float:
    """Of one sample where the device takes so much."""
    start_s = _ALONE_S if case.mpi == "none" else _LAUNCH_S + _RANK_S * case.ranks
    n = total_bytes(case)
    took_s = n / bytes_per_s + n / _READ_BACK
    if case.parameters.get("op") == "read":
        took_s += n / bytes_per_s
    if case.parameters.get("regime") == "cold":
        took_s += COLD_S
    return start_s + took_s + float(case.parameters.get("comptime", 0.0)) + _SETTLE_S


def total_bytes(case: Case) -> int:
    """What all workers of a case write."""
    given = case.parameters
    if "class" in given:
        return bytes_of_class(str(given["class"])) * int(given.get("outputs", 40)) // 40
    size = given.get("bufsize", 0)
    each = _core.parse_size(size) if isinstance(size, str) else int(size)
    workers = case.ranks if case.mpi != "none" else int(given.get("threads", 1))
    return each * int(given.get("iters", 1)) * workers
