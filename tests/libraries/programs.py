"""The programs of the libraries: what each is built from, for which MPI libraries, and with what
it is launched. A program is built for the distribution's MPICH or Open MPI and then runs on every
library of the same binary interface, as users' programs do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mpis import ROOT, Mpi

HERE = Path(__file__).resolve().parent
LIBRARIES = Path(os.environ.get("PENSTOCK_TEST_LIBRARIES", ROOT / ".libraries"))
SYSTEM = Path("/usr/lib") / (sysconfig.get_config_var("MULTIARCH") or "")
WARNINGS = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]


class MissingError(Exception):
    """Something that a library's program needs is not here; the text says what installs it."""


@dataclass(frozen=True)
class Installed:
    """Where a library lies for one binary interface."""

    include: Path
    lib: Path
    link: str
    remedy: str

    def flags(self) -> list[str]:
        if not any(self.lib.glob(f"lib{self.link}.so*")):
            raise MissingError(f"no lib{self.link}.so in {self.lib.name}: {self.remedy}")
        paths = [f"-I{self.include}", f"-L{self.lib}"]
        if LIBRARIES in self.lib.parents:
            paths.append(f"-Wl,-rpath,{self.lib}")
        return [*paths, f"-l{self.link}"]


def hdf5(family: str) -> Installed:
    return Installed(
        Path("/usr/include/hdf5") / family,
        SYSTEM / "hdf5" / family,
        "hdf5",
        f"install libhdf5-{family}-dev",
    )


def own(name: str, link: str) -> Installed:
    prefix = LIBRARIES / name
    return Installed(prefix / "include", prefix / "lib", link, f"scripts/get_libraries.sh {name}")


@dataclass(frozen=True)
class Library:
    """One library above MPI-IO and its program of cases."""

    name: str
    title: str
    source: str
    binding: str = "C"
    installed: Mapping[str, Installed] = field(default_factory=dict)  # by family
    # MPI libraries on which what is installed cannot run, and why.
    unsuited: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


NO_CXX = "the distribution's PnetCDF needs Open MPI's C++ interface, which version 5 no longer has"
NO_PREFIX = "Open MPI knows no file names that begin with nfs:"
NO_ABI = "no build of it for the standard ABI is to be had"

LIBRARY_PROGRAMS: Mapping[str, Library] = {
    x.name: x
    for x in (
        Library(
            "hdf5",
            "HDF5",
            "hdf5_cases.c",
            installed={"mpich": hdf5("mpich"), "openmpi": hdf5("openmpi")},
        ),
        Library(
            "visibility",
            "HDF5's rule for NFS",
            "visibility_cases.c",
            unsuited={"openmpi": NO_PREFIX, "openmpi5": NO_PREFIX},
        ),
        Library(
            "visibility_nodes",
            "HDF5's rule for NFS, on two nodes",
            "visibility_cases.c",
            unsuited={"openmpi": NO_PREFIX, "openmpi5": NO_PREFIX},
            environment={"MPIR_CVAR_NUM_CLIQUES": "2"},
        ),
        Library(
            "pnetcdf",
            "PnetCDF",
            "pnetcdf_cases.c",
            installed={
                "mpich": own("pnetcdf", "pnetcdf"),
                "openmpi": Installed(
                    Path("/usr/include"), SYSTEM, "pnetcdf", "install libpnetcdf-dev"
                ),
            },
            unsuited={"openmpi5": NO_CXX},
        ),
        Library(
            "netcdf",
            "netCDF-4",
            "netcdf_cases.c",
            installed={
                "mpich": own("netcdf", "netcdf"),
                "openmpi": Installed(
                    SYSTEM / "netcdf" / "mpi" / "include",
                    SYSTEM,
                    "netcdf_mpi",
                    "install libnetcdf-mpi-dev",
                ),
            },
        ),
        Library("h5py", "h5py", "h5py_cases.py", binding="Python"),
        Library("example", "the mpi4py example", "../../examples/mpi4py/waves.py", "Python"),
        Library("mpi4py", "mpi4py", "mpi4py_cases.py", binding="Python"),
    )
}


def family_of(mpi: Mpi) -> str:
    if mpi.flavour == "abi":
        raise MissingError(NO_ABI)
    return mpi.family


def compiler(family: str) -> str:
    found = shutil.which(f"mpicc.{family}")
    if found is None:
        raise MissingError(
            f"no mpicc.{family}: install the distribution's {family} for development"
        )
    return found


def compiled(build: Path, source: Path, target: str, command: list[str]) -> Path:
    """``target`` of the build tree, made of ``source`` unless it is newer."""
    path = build / "libraries" / target
    made_of = (source, *HERE.glob("*.h"), HERE / "programs.py")
    newest = max(x.stat().st_mtime for x in made_of)
    if path.exists() and path.stat().st_mtime > newest:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = path.with_name(f"{path.name}.{os.getpid()}")  # other libraries' suites may make it too
    whole = [command[0], *WARNINGS, str(source), "-o", str(mine), *command[1:]]
    made = subprocess.run(whole, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise RuntimeError(f"{' '.join(whole)}\n{made.stderr}")
    return mine.replace(path)


def c_program(build: Path, library: Library, mpi: Mpi) -> list[str]:
    family = family_of(mpi)
    if mpi.name in library.unsuited:
        raise MissingError(library.unsuited[mpi.name])
    flags = library.installed[family].flags() if library.installed else []
    source = HERE / library.source
    target = f"{source.stem}.{family}"
    return [str(compiled(build, source, target, [compiler(family), *flags]))]


def own_driver(build: Path, mpi: Mpi) -> list[str]:
    """The stand-in for PnetCDF's own driver: a library of that name, and a program on it."""
    family, source = family_of(mpi), HERE / "pnetcdf_own_driver.c"
    as_library = [compiler(family), "-DLIBRARY", "-shared", "-fPIC"]
    library = compiled(build, source, "own_driver/libpnetcdf.so", as_library)
    linked = [compiler(family), str(library), f"-Wl,-rpath,{library.parent}"]
    return [str(compiled(build, source, f"own_driver/program.{family}", linked))]


# ---- Python ----


def python_program(library: Library, mpi: Mpi) -> list[str]:
    script = str(HERE / library.source)
    family = "" if library.name != "h5py" else family_of(mpi)
    if family == "openmpi":
        if not (Path("/usr/lib/python3/dist-packages") / "h5py" / "_debian_h5py_mpi").exists():
            raise MissingError("no parallel h5py for Open MPI: install python3-h5py-mpi")
        return ["/usr/bin/python3", script]
    python = LIBRARIES / "python" / "bin" / "python"
    if not (LIBRARIES / "python.stamp").exists():
        raise MissingError("no mpi4py: scripts/get_libraries.sh python")
    if library.name != "mpi4py":
        return [str(python), script]
    if not (LIBRARIES / "mpi4py.stamp").exists():
        raise MissingError("no source of mpi4py: scripts/get_libraries.sh mpi4py")
    return [str(python), script, str(LIBRARIES / "mpi4py")]


# ---- what a program needs around it ----


def renamed(build: Path, mpi: Mpi) -> Path | None:
    """A directory in which the MPI library has the names that programs of its binary interface ask
    for: what the distribution's MPICH built asks for libmpich.so.12, everybody else's for
    libmpi.so.12."""
    if mpi.family != "mpich" or mpi.flavour == "abi":
        return None
    directory = build / "libraries" / "names" / mpi.name
    directory.mkdir(parents=True, exist_ok=True)
    real = mpi.root / "lib" if mpi.root is not None else None
    links = {"libmpi.so.12": SYSTEM / "libmpich.so.12"}
    if real is not None:
        # All that lies beside it too, because it looks for that beside itself.
        links = {x.name: x for x in real.iterdir()} | {"libmpich.so.12": real / "libmpi.so.12"}
    for name, to in links.items():
        if not (directory / name).exists():
            (directory / name).unlink(missing_ok=True)
            (directory / name).symlink_to(to)
    return directory


def environment(build: Path, library: Library, mpi: Mpi) -> dict[str, str]:
    found = dict(library.environment)
    paths = [str(x) for x in (renamed(build, mpi),) if x is not None]
    paths += [x for x in (mpi.environment().get("LD_LIBRARY_PATH"),) if x]
    if paths:
        found["LD_LIBRARY_PATH"] = ":".join(paths)
    if library.binding == "Python":
        names = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}
        found["MPI4PY_LIBMPI"] = names[mpi.flavour]
    if library.name == "h5py":
        found["H5PY_ALWAYS_USE_MPI"] = "1"  # the distribution has a serial build besides
    if library.name in ("mpi4py", "example") and mpi.flavour == "abi":
        if not (LIBRARIES / "mpi4py-abi.stamp").exists():
            raise MissingError(
                "no mpi4py for the standard ABI: scripts/get_libraries.sh mpi4py-abi"
            )
        found["PYTHONPATH"] = str(LIBRARIES / "mpi4py-abi")
    return found


def program(build: Path, library: Library, mpi: Mpi) -> list[str]:
    """The words that start it; raises MissingError with the remedy."""
    if library.binding == "Python":
        return python_program(library, mpi)
    return c_program(build, library, mpi)
