"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.errors import WriteError


def write(path: Path, data: bytes, remedy: str) -> None:
    """Write a file; ``remedy`` ends the message where that fails.

    Raises
    ------
    WriteError
        If that fails; what was there before is as it was.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe, a device: nothing takes its place
            path.write_bytes(data)  # as it is called: one without a name resolves to no file
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        why = f"{path} cannot be written: {error.strerror}; {remedy}"
        raise WriteError(error.errno, why) from error


def _replace(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f".{path.name[:80]}.{os.getpid()}")
    try:
        with unfinished.open("xb") as file:
            file.write(data)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
