"""What of a job went past the page cache as if memory were cold, and where nothing can."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from run_mpi import Outcome

# As stat(1) names those that take no direct write, or do not tell their dirty pages.
KEEP_ALL = ("overlayfs", "ramfs", "zfs")


def cold_bytes(out: Outcome) -> int:
    return sum(file["traffic"]["cold_bytes"] for log in out.logs for file in log["files"])


def why_none(place: Path) -> str:
    """Why no byte of a file there goes past the page cache; empty where some have to."""
    if tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) < (6, 5):
        return "cachestat came with Linux 6.5"
    stat = ["stat", "-f", "-c", "%T", str(place)]
    kind = subprocess.run(stat, capture_output=True, text=True, check=True).stdout.strip()
    return f"nothing goes past the page cache of {kind}" if kind in KEEP_ALL else ""
