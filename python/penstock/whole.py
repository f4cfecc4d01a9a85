"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from penstock.errors import WriteError
from penstock.paths import real


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
            _replace(_behind_links(path), data)
    except OSError as error:
        why = f"{path} cannot be written: {error.strerror}; {remedy}"
        raise WriteError(error.errno, why) from error


def _behind_links(path: Path) -> Path:
    """The file itself, or where one can come to be; links in a loop lead to none."""
    with suppress(FileNotFoundError):
        path.stat()
    return real(path)


def _replace(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f".{path.name[:80]}.{os.getpid()}")
    try:
        with unfinished.open("xb") as file:
            file.write(data)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
