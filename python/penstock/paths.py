"""Paths without links."""

from __future__ import annotations

import os
from pathlib import Path


def real(path: Path) -> Path:
    """Where a path leads, as far as its links do: behind links in a loop it ends at one of them.

    ``Path.resolve`` raises RuntimeError there, before Python 3.13.
    """
    return Path(os.path.realpath(path))
