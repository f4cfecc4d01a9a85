"""The MPI libraries that the suites run on: what launches a job, and what programs it runs.

A library is *present* when its launcher is there. `mpich` and `openmpi` are the distribution's; the
others lie in ``.mpi/NAME`` (``scripts/get_mpis.sh``). A program that was built for one library of a
flavour runs on any other of it, as users' programs do: Intel MPI runs what was built for MPICH 5.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PREFIXES = Path(os.environ.get("PENSTOCK_TEST_MPIS", ROOT / ".mpi"))


@dataclass(frozen=True)
class Mpi:
    """One MPI library under test."""

    name: str
    flavour: str  # the engine's: mpich, openmpi, abi
    programs: str  # test programs are called PROGRAM.<programs>
    title: str
    prefix: str = ""  # below PREFIXES; empty: the distribution's

    @property
    def family(self) -> str:
        """Whose code it is at heart, which is what oracle exceptions go by."""
        return "openmpi" if self.flavour == "openmpi" else "mpich"

    @property
    def root(self) -> Path | None:
        return PREFIXES / self.prefix if self.prefix else None

    def launcher(self) -> str | None:
        """The path of its mpiexec; None when the library is not here."""
        if self.root is None:
            return shutil.which(f"mpiexec.{self.name}") or self._plain_launcher()
        path = self.root / "bin" / "mpiexec"
        return str(path) if path.exists() else None

    def _plain_launcher(self) -> str | None:
        only = shutil.which("mpiexec")  # where one library is installed, it has no suffix
        other = {"mpich": "openmpi", "openmpi": "mpich"}[self.name]
        return None if shutil.which(f"mpiexec.{other}") else only

    def mpiexec(self, ranks: int) -> list[str]:
        """The words before a program."""
        launcher = self.launcher()
        if launcher is None:
            raise FileNotFoundError(f"no mpiexec of {self.title}: {self.remedy()}")
        extra = ["--oversubscribe", "--bind-to", "none"] if self.flavour == "openmpi" else []
        return [launcher, *extra, "-n", str(ranks)]

    def sound_options(self) -> tuple[str, ...]:
        """Of mpiexec, with which the library alone is an oracle: OMPIO's default collective
        component is wrong in many cases, this one is not.
        """
        sound = ("--mca", "io", "ompio", "--mca", "fcoll", "individual")
        return sound if self.flavour == "openmpi" else ()

    def environment(self) -> dict[str, str]:
        """What a job needs besides: where the loader finds the libraries."""
        if self.root is None:
            # By default a job that dies is given a second between two signals.
            return {"OMPI_MCA_odls_base_sigkill_timeout": "0"} if self.name == "openmpi" else {}
        libraries = [str(self.root / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        found = {"LD_LIBRARY_PATH": ":".join(x for x in libraries if x)}
        if self.prefix == "impi":
            # One node: shared memory alone, no network library; ranks outnumber cores here.
            found |= {"I_MPI_ROOT": str(self.root), "I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"}
        return found

    def remedy(self) -> str:
        return f"scripts/get_mpis.sh {self.prefix}" if self.prefix else f"install {self.name}"


MPIS: Mapping[str, Mpi] = {
    mpi.name: mpi
    for mpi in (
        Mpi("mpich", "mpich", "mpich", "MPICH of the distribution"),
        Mpi("openmpi", "openmpi", "openmpi", "Open MPI of the distribution"),
        Mpi("mpich5", "mpich", "mpich5", "MPICH 5", "mpich5"),
        Mpi("mpich5-abi", "abi", "abi", "MPICH 5, standard ABI", "mpich5"),
        Mpi("openmpi5", "openmpi", "openmpi", "Open MPI 5", "openmpi5"),
        Mpi("impi", "mpich", "mpich5", "Intel MPI", "impi"),
        Mpi("impi-abi", "abi", "abi", "Intel MPI, standard ABI", "impi"),
    )
}


def present() -> list[Mpi]:
    """Those that can run here, the distribution's first."""
    return [mpi for mpi in MPIS.values() if mpi.launcher() is not None]
