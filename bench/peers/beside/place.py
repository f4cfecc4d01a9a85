"""Where programs are, and what starts them on an MPI library, alone or under Penstock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from beside.spec import Library
from penstock import joblog, native
from penstock.bench.execute import ProgramResult
from penstock.bench.programs import engine_wrote_all


class MissingError(Exception):
    """Why a competitor cannot run here."""


@dataclass(frozen=True)
class Site:
    """Where things are: build directories in which programs are looked for, MPIs, the data."""

    builds: tuple[Path, ...]
    mpis: Path
    peers: Path
    scratch: Path
    size: str = "gate"

    def program(self, path: str) -> Path | None:
        """The first build that has it."""
        return next((b / path for b in self.builds if (b / path).is_file()), None)


def start(site: Site, library: Library, ranks: int, mca: Sequence[str]) -> list[str]:
    """The words before a program: the library's launcher, with ``mca`` options behind it."""
    words = [w.format(mpis=site.mpis, ranks=ranks) for w in library.start]
    launcher = shutil.which(words[0])
    if launcher is None:
        raise MissingError(
            f"{library.title}: there is no {words[0]}; scripts/get_mpis.sh builds some"
        )
    return [launcher, *mca, *words[1:]]


def preload(site: Site) -> list[str]:
    """penstock-exec, which stops where a write would pass Penstock by; its log goes to the data."""
    where = next((b for b in site.builds if (b / "native" / "penstock-exec").is_file()), None)
    if where is None:
        raise MissingError("Penstock: penstock-exec is not built: make build")
    executable = native.executable(where / "native")
    fixed = ["--quiet", "--isolated", "--require", "--log-dir", str(site.scratch)]
    return [str(executable), *fixed, "--"]


def wrote_it_all(logs: Path) -> Callable[[ProgramResult], str | None]:
    """Expect of a run under Penstock that its engine wrote every byte, and passed none by."""
    engine = engine_wrote_all(logs)

    def expect(ran: ProgramResult) -> str | None:
        if why := engine(ran):
            return why
        passed = sum(joblog.load(log).totals.passthrough_bytes for log in logs.glob("*.json"))
        return f"{passed} bytes passed Penstock by" if passed else None

    return expect


def environment(site: Site, library: Library) -> dict[str, str]:
    """What a job of a library needs in its environment.

    Raises
    ------
    MissingError
        If a place that it names is not there: the job would run another library, or other hints.
    """
    places = {"mpis": site.mpis, "peers": site.peers, "root": site.mpis.parent}
    found = {k: v.format(**places) for k, v in library.env.items()}
    for value in found.values():
        if value.startswith("/") and not Path(value).exists():
            raise MissingError(
                f"{library.title}: there is no {value}"
                + ("" if "/.mpi/" not in value else "; scripts/get_mpis.sh builds it")
                + ("" if "/.peers/" not in value else "; scripts/get_peers.sh makes it")
            )
    if old := os.environ.get("LD_LIBRARY_PATH"):
        found = {k: f"{v}:{old}" if k == "LD_LIBRARY_PATH" else v for k, v in found.items()}
    return {**(root_environment() if library.flavour == "openmpi" else {}), **found}


def root_environment() -> dict[str, str]:
    """Open MPI asks root twice."""
    if os.geteuid() != 0:
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
