"""The MPI libraries and launchers of this machine, and the build of Penstock for each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock import native
from penstock.doctor import ask, tools
from penstock.doctor.finding import Finding
from penstock.errors import LaunchError

# MPICH's binary interface is also that of Intel MPI, MVAPICH and Cray MPICH; Debian renames its
# library, and Cray has one per compiler.
_FAMILY_OF_SONAME = {
    r"libmpi\.so\.40": "openmpi",
    r"libmpi(_\w+)?\.so\.12|libmpich\.so\.12": "mpich",
    r"libmpi_abi\.so\.[01]": "abi",
}
# With another number it has another binary interface, whatever it calls itself, and penstock-exec
# leaves its programs alone.
_OF_ANOTHER_INTERFACE = re.compile(r"libmpi\.so\.\d")
# As programs name it (no "libmpi.so" for linking, no "libmpi.so.12.1.8" behind a link).
_LIBRARY = re.compile(r"lib(mpi|mpich|mpi_abi|mpi_cray|mpi_gnu\w*|mpi_intel\w*)\.so\.\d+")

_ASK_VERSION = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
library.MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace"))
"""


@dataclass(frozen=True)
class Library:
    """An MPI library: its file, what it calls itself, and its binary interface ("" unknown)."""

    path: Path
    version: str
    family: str


def examine(environ: Mapping[str, str]) -> list[Finding]:
    """Native files, libraries with the build for each, launchers."""
    where, findings = _native_files(environ)
    libraries = find_libraries(environ)
    findings += [_about(library, where) for library in libraries]
    if libraries and not any(f.values.get("served") for f in findings):
        remedy = "build Penstock with the compiler wrapper of your MPI library in PATH"
        text = "none of these libraries is served by a build of Penstock"
        findings.append(Finding("problem", "mpi", text, remedy))
    if not libraries:
        findings.append(
            Finding(
                "problem",
                "mpi",
                "no MPI library is in LD_LIBRARY_PATH, the system's library directories or beside "
                "an mpiexec in PATH",
                "install one (Debian: apt-get install libopenmpi-dev openmpi-bin) or load its "
                "module",
            )
        )
    return findings + tools.examine(environ)


def find_libraries(environ: Mapping[str, str]) -> list[Library]:
    """Every MPI library that a program started from here could load, once each."""
    found: dict[Path, Library] = {}
    for path in _library_files(environ):
        if path not in found:
            version = _version(path, environ)
            found[path] = Library(path, version, _family(path, version))
    return list(found.values())


def _library_files(environ: Mapping[str, str]) -> Iterator[Path]:
    for directory in dict.fromkeys(_library_directories(environ)):
        try:
            names = sorted(p for p in directory.iterdir() if _LIBRARY.fullmatch(p.name))
        except OSError:
            continue
        yield from dict.fromkeys(p.resolve() for p in names if p.is_file())


def _library_directories(environ: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(d) for d in environ.get("LD_LIBRARY_PATH", "").split(":") if d)
    for tool in tools.files(environ):
        prefix = tool.resolve().parent.parent
        yield from (prefix / "lib", prefix / "lib64", prefix / "lib" / "release")
    listed = ask.output(["/sbin/ldconfig", "-p"], environ)
    for line in listed.splitlines():
        name, _, path = line.strip().partition(" => ")
        if path and _LIBRARY.fullmatch(name.split(" ")[0]):
            yield Path(path).parent


def _version(path: Path, environ: Mapping[str, str]) -> str:
    """Asked in another process: loading an MPI library may do anything.

    Isolated, since a program given by ``-c`` finds its modules in the working directory first.
    """
    text = ask.output([sys.executable, "-I", "-c", _ASK_VERSION, str(path)], environ)
    line = next((" ".join(part.split()) for part in text.splitlines() if part.strip()), "")
    return "" if line.startswith(("Traceback", "OSError")) else line.partition(", package:")[0]


def _family(path: Path, version: str) -> str:
    for pattern, family in _FAMILY_OF_SONAME.items():
        if re.match(rf"({pattern})(\.|$)", path.name):
            return family
    if _OF_ANOTHER_INTERFACE.match(path.name):
        return ""
    return next((f for sign, f in tools.FAMILY_OF_TEXT.items() if sign in version.lower()), "")


def _native_files(environ: Mapping[str, str]) -> tuple[Path | None, list[Finding]]:
    try:
        where = native.directory(environ)
        native.executable(where)
    except LaunchError as error:
        return None, [Finding("problem", "penstock", str(error), "build Penstock: make build")]
    return where, [Finding("ok", "penstock", f"native files in {where}")]


def _about(library: Library, where: Path | None) -> Finding:
    name = library.version or "an MPI library that does not tell its version"
    text = f"{name} ({library.path})"
    values: dict[str, str | bool] = {
        "path": str(library.path),
        "version": library.version,
        "family": library.family,
    }
    if not library.family:
        known = ", ".join(dict.fromkeys(_FAMILY_OF_SONAME.values()))
        remedy = f"Penstock serves the binary interfaces {known}"
        return Finding("warn", "mpi", f"{text}: its binary interface is not known", remedy, values)
    missing = [f for f in _files_for(library.family) if where is None or not (where / f).is_file()]
    values["served"] = not missing
    if not missing:
        return Finding("ok", "mpi", f"{text}: served by the {library.family} build", "", values)
    return Finding(
        "warn",
        "mpi",
        f"{text}: there is no {library.family} build of Penstock ({missing[0]} is missing)",
        "put its compiler wrapper (mpicc) in PATH when Penstock is built, and build again",
        values,
    )


def _files_for(family: str) -> tuple[str, str]:
    return f"libpenstock-{family}.so", f"penstock-engine-{family}.so"
