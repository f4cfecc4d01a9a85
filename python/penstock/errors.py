"""The exceptions of Penstock.

The C++ side reports an error as a class, an errno, an operation and a detail; `from_core` gives it
the Python class that a caller would catch. What the operating system refused is also an `OSError`
with its ``errno``.
"""

from __future__ import annotations

import os


class PenstockError(Exception):
    """Whatever Penstock reports. ``error_class`` is spelt as in logs: ``"no_space"``."""

    error_class = "internal"


class ArgumentError(PenstockError, ValueError):
    """A value is wrong; the message names it and the nearest valid one."""

    error_class = "argument"


class UnsupportedError(PenstockError, NotImplementedError):
    """Legal, but nothing here can serve it."""

    error_class = "unsupported"


class WriteError(PenstockError, OSError):
    """The operating system refused; ``errno`` and ``strerror`` say how."""

    error_class = "io"


class OutOfMemoryError(PenstockError, MemoryError):
    """An allocation failed."""

    error_class = "no_memory"


class CommunicationError(PenstockError, ConnectionError):
    """MPI or a peer failed."""

    error_class = "communication"


class LaunchError(PenstockError):
    """A command line that cannot be launched; ``exit_code`` is what a shell would give."""

    error_class = "argument"

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


_BY_CLASS: dict[str, type[PenstockError]] = {
    "argument": ArgumentError,
    "unsupported": UnsupportedError,
    "no_memory": OutOfMemoryError,
    "communication": CommunicationError,
    "internal": PenstockError,
}


def from_core(
    error_class: str, sys_errno: int, operation: str, detail: str, message: str
) -> PenstockError:
    """Make the exception for an error of the C++ side (which calls this by name)."""
    error: PenstockError
    if sys_errno and error_class not in ("no_memory", "communication"):
        error = WriteError(sys_errno, f"{operation}: {os.strerror(sys_errno)} ({detail})")
    else:
        error = _BY_CLASS.get(error_class, WriteError)(message)
    error.error_class = error_class
    return error
