"""The program of bench/btio as a measuring program: only a build of the source tree has it.

It is the build without MPI_File_sync, as BT-IO itself never syncs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock import native
from penstock.bench import programs
from penstock.bench.cases import Programs
from penstock.bench.programs import Program
from penstock.errors import LaunchError

_EDGES = {"S": 12, "W": 24, "A": 64, "B": 102, "C": 162}
_CELL_BYTES = 5 * 8  # five numbers a point
_ARRAYS = 40

_OPTIONS: dict[str, dict[str, Any]] = {
    "class": {"kind": "choice", "choices": ["S", "W", "A", "B", "C"]},
    "subtype": {"kind": "choice", "choices": ["full", "simple", "epio"]},
    "outputs": {"kind": "count"},
    "end": {"kind": "choice", "choices": ["close"]},
    "regime": {"kind": "choice", "choices": ["warm", "cold", "asis"]},
    "verify": {"kind": "choice", "choices": ["all", "none"]},
    "hint": {"kind": "list"},
    "route": {"kind": "choice", "choices": ["mpi"]},  # all it can; a matrix says it for preload
}


class BtioProgram(Program):
    """Knows no other route than MPI-IO, so it has no option for it."""

    def command(
        self,
        parameters: Mapping[str, Any],
        ranks: int = 1,
        preload: Sequence[str] = (),
        launcher_options: Sequence[str] = (),
    ) -> list[str]:
        """As of every program, without the route."""
        own = {name: value for name, value in parameters.items() if name != "route"}
        return super().command(own, ranks, preload, launcher_options)

    def why_refused(self, parameters: Mapping[str, Any]) -> str:
        """Nothing: it cannot be asked, and our experiments alone give it values."""
        del parameters
        return ""


class BtioPrograms(Programs):
    """BT-IO for each MPI library."""

    def of(self, mpi: str) -> Program:
        """The program for a value of ``mpi``.

        Raises
        ------
        LaunchError
            If it is not built.
        """
        if mpi not in self._by_mpi:
            launcher = programs.launcher(mpi, template=self._template)
            self._by_mpi[mpi] = BtioProgram(_path(launcher.flavour), launcher)
        return self._by_mpi[mpi]

    def options(self, program: Program) -> dict[str, dict[str, Any]]:
        """Its options; it describes none itself."""
        del program
        return _OPTIONS


def _path(flavour: str) -> Path:
    name = f"peer-btio-unsynced-{flavour}"
    path = native.directory().parent / "bench" / name
    if not path.is_file():
        raise LaunchError(f"{path} is not there: only a build of the source tree makes it")
    return path


def bytes_of_class(name: str) -> int:
    """What a class writes with all of its arrays."""
    return int(_EDGES[name] ** 3 * _CELL_BYTES * _ARRAYS)
