"""Where the native files are: penstock-exec, the shims and the engines.

In order: the variable PENSTOCK_NATIVE_DIR, ``_native`` inside the installed package (a wheel),
``lib/penstock`` of the prefix that the package was installed into, ``build/release/native`` of the
checkout that it is imported from, and the prefix of the ``penstock-exec`` in PATH (a Python side
installed by pip beside a site's module).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from penstock import _core
from penstock.errors import ArgumentError, LaunchError

FLAVOURS = ("mpich", "openmpi", "abi")

# What `mpiexec --version` says, and which shim serves it. Intel MPI has MPICH's binary interface.
SIGNS = {
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
    for place in [*places, *_places_by_path(environ)]:
        if (place / "penstock-exec").is_file():
            return place
    raise LaunchError(
        "the native files (penstock-exec, the shims) are not built; looked in "
        f"{', '.join(map(str, places))} and for penstock-exec in PATH. "
        "In a checkout run: make build; elsewhere load Penstock's module, "
        "or set PENSTOCK_NATIVE_DIR to PREFIX/lib/penstock"
    )


def _places(package: Path) -> list[Path]:
    places = [package / "_native"]
    above = package.parent.parent
    # PREFIX/lib/penstock/python/penstock, or PREFIX/lib/python3.x/site-packages/penstock
    places.append(above if above.name == "penstock" else above.parent / "penstock")
    if (above / "CMakeLists.txt").is_file() and (above / "bindings").is_dir():
        places.append(above / "build" / "release" / "native")
    return places


def _places_by_path(environ: Mapping[str, str]) -> list[Path]:
    """Where the shims of the ``penstock-exec`` in PATH may lie: beside it, or in its prefix."""
    found = shutil.which("penstock-exec", path=environ.get("PATH"))
    if found is None:
        return []
    beside = Path(found).resolve().parent
    installed = (*beside.parent.glob("lib*/penstock"), *beside.parent.glob("lib/*/penstock"))
    return [place for place in (beside, *installed) if any(place.glob("libpenstock-*.so"))]


def executable(where: Path) -> Path:
    """``penstock-exec`` in a native directory."""
    return _required(where / "penstock-exec", "make build")


def shim(where: Path, flavour: str) -> Path:
    """The preload library for an MPI library's flavour: "mpich", "openmpi" or "abi"."""
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


def require_flavour(mpi: str | None) -> None:
    """Raise ArgumentError unless the MPI library that ``--mpi`` names, if any, has a build."""
    if mpi is not None and mpi not in FLAVOURS:
        near = _core.nearest(mpi, FLAVOURS)
        hint = f"; did you mean {near}?" if near else ""
        raise ArgumentError(f"--mpi must be {' or '.join(FLAVOURS)}, got {mpi}{hint}")


def detect_mpi() -> tuple[str, str]:
    """The flavour of the ``mpiexec`` in PATH, and the line by which it was known."""
    mpiexec = shutil.which("mpiexec") or shutil.which("mpirun")
    if mpiexec is None:
        raise LaunchError(
            "no mpiexec or mpirun is in PATH, so the MPI library is not known: "
            "give --mpi mpich, --mpi openmpi or --mpi abi",
            exit_code=127,
        )
    text = _version_text(mpiexec)
    for line in text.splitlines():
        for sign, flavour in SIGNS.items():
            if sign in line.lower():
                return flavour, f"{mpiexec}: {line.strip()}"
    raise LaunchError(
        f"{mpiexec} --version names no MPI that is known: give --mpi mpich, openmpi or abi"
    )


def _version_text(mpiexec: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own mpiexec
            [mpiexec, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"{mpiexec} --version failed ({error}): give --mpi") from error
    return done.stdout + done.stderr
