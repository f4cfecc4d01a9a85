"""Where the native files are: penstock-exec, the shims and the engines.

In order: the variable PENSTOCK_NATIVE_DIR, ``_native`` inside the installed package, and
``build/release/native`` of the checkout that this package is imported from.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import LaunchError

FLAVOURS = ("mpich", "openmpi")

# What `mpiexec --version` says, and which shim serves it. Intel MPI has MPICH's binary interface.
_SIGNS = {
    "open mpi": "openmpi",
    "openrte": "openmpi",
    "prte": "openmpi",
    "hydra": "mpich",
    "mpich": "mpich",
    "intel(r) mpi": "mpich",
}


def directory(environ: Mapping[str, str] | None = None) -> Path:
    """The directory of the native files.

    Raises
    ------
    LaunchError
        If there is none; the message lists where it was looked for.
    """
    environ = os.environ if environ is None else environ
    if given := environ.get("PENSTOCK_NATIVE_DIR"):
        if not Path(given).is_dir():
            raise LaunchError(f"PENSTOCK_NATIVE_DIR must be a directory, got {given}")
        return Path(given).resolve()
    places = _places(Path(__file__).resolve().parent)
    for place in places:
        if place.is_dir():
            return place
    raise LaunchError(
        "the native files (penstock-exec, the shims) are not built; looked in "
        f"{', '.join(map(str, places))}. In a checkout run: make build"
    )


def _places(package: Path) -> list[Path]:
    places = [package / "_native"]
    checkout = package.parent.parent
    if (checkout / "CMakeLists.txt").is_file() and (checkout / "bindings").is_dir():
        places.append(checkout / "build" / "release" / "native")
    return places


def executable(where: Path) -> Path:
    """``penstock-exec`` in a native directory."""
    return _required(where / "penstock-exec", "make build")


def shim(where: Path, flavour: str) -> Path:
    """The preload library for an MPI library's flavour: "mpich" or "openmpi"."""
    path = _required(
        where / f"libpenstock-{flavour}.so", f"install {flavour}'s development files and make build"
    )
    if any(letter in str(path) for letter in " :\n"):
        raise LaunchError(
            f"{path} cannot be preloaded: LD_PRELOAD separates its entries by spaces and colons. "
            "Move Penstock to a path without them"
        )
    return path


def _required(path: Path, remedy: str) -> Path:
    if not path.is_file():
        raise LaunchError(f"{path.name} is not in {path.parent}; remedy: {remedy}")
    return path


def detect_mpi() -> tuple[str, str]:
    """The flavour of the ``mpiexec`` in PATH, and the line by which it was known."""
    mpiexec = shutil.which("mpiexec") or shutil.which("mpirun")
    if mpiexec is None:
        raise LaunchError(
            "no mpiexec or mpirun is in PATH, so the MPI library is not known: "
            "give --mpi mpich or --mpi openmpi",
            exit_code=127,
        )
    text = _version_text(mpiexec)
    for line in text.splitlines():
        for sign, flavour in _SIGNS.items():
            if sign in line.lower():
                return flavour, f"{mpiexec}: {line.strip()}"
    raise LaunchError(
        f"{mpiexec} --version names no MPI that is known: give --mpi mpich or openmpi"
    )


def _version_text(mpiexec: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own mpiexec
            [mpiexec, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"{mpiexec} --version failed ({error}): give --mpi") from error
    return done.stdout + done.stderr
