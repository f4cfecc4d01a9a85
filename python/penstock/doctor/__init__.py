"""What this machine offers a run, and what to mend: ``penstock doctor`` as a library.

Nothing here needs an MPI library, rights, or a directory that can be written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock import _core
from penstock.doctor import configuration, machine, mpis, storage
from penstock.doctor.finding import Finding

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Report:
    """All findings about one directory, in the order in which a person would ask."""

    directory: Path
    findings: tuple[Finding, ...]

    @property
    def good(self) -> bool:
        """Nothing has to be mended before a run."""
        return all(f.level != "problem" for f in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "version": _core.VERSION,
            "directory": str(self.directory),
            "good": self.good,
            "findings": [asdict(f) for f in self.findings],
        }


def examine(directory: Path, environ: Mapping[str, str] | None = None) -> Report:
    """Look at the MPI libraries, a directory, the kernel, the memory and the configuration.

    The last is that of a job which is started in the working directory, wherever it writes.

    Parameters
    ----------
    directory : Path
        Where a program would write. That it cannot is a finding.
    environ : mapping
        Variables; by default this process's.

    Raises
    ------
    ArgumentError
        If there is no such directory.
    """
    environ = os.environ if environ is None else environ
    storage.require_there(directory)
    directory = directory.resolve()
    found = [
        *mpis.examine(environ),
        *storage.examine(directory),
        *machine.examine(),
        *configuration.examine(environ),
    ]
    return Report(directory, tuple(found))
