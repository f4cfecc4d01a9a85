#!/usr/bin/env python3
"""Which glibc the sources need: no function that came after 2.28 may be called.

Looks at the objects that were compiled from Penstock's own sources (a build directory's static
layers, and the objects of the shims, the engines, the measuring program and the Python module), not
at the linked libraries: those contain the compiler's libstdc++, which takes newer functions where
the machine that builds has them. A name counts by the oldest version of it that this machine's
libc.so.6 exports: dlopen has one of 2.34 here because the C library was merged then, and one of
2.2.5 from the beginning.

    scripts/check_glibc.py BUILD_DIRECTORY
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

OLDEST = (2, 28)
# Names without an old version here that older headers do without, or serve under another one.
RENAMED = {
    "__libc_single_threaded": "asked by libstdc++'s headers where sys/single_threaded.h is",
    "stat": "an inline call of __xstat before 2.33",
    "lstat": "an inline call of __lxstat before 2.33",
    "fstat": "an inline call of __fxstat before 2.33",
    "fstatat": "an inline call of __fxstatat before 2.33",
    "pthread_cond_clockwait": "libstdc++'s headers take pthread_cond_timedwait before 2.30",
}
RENAMED |= {f"{name}64": why for name, why in RENAMED.items()}
RENAMED |= {
    f"__isoc23_{name}": f"{name} before 2.38"
    for name in ("strtol", "strtoul", "strtoll", "strtoull", "sscanf", "fscanf")
}


def dotted(version: tuple[int, ...]) -> str:
    """2.28 of (2, 28)."""
    return ".".join(map(str, version))


def said_by(*command: str) -> str:
    """What a command prints; it must succeed."""
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def first_versions(library: Path) -> dict[str, tuple[int, ...]]:
    """Of every name that a C library exports, the oldest version."""
    found: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for name, version in re.findall(
        r" (\w+)@@?GLIBC_([0-9.]+)$",
        said_by("nm", "-D", "--defined-only", str(library)),
        re.MULTILINE,
    ):
        found[name].append(tuple(int(part) for part in version.split(".")))
    return {name: min(versions) for name, versions in found.items()}


def c_libraries() -> list[Path]:
    """The libraries of this machine's glibc: libc, libm, and those that are empty shells by now."""
    found = re.search(r"=> (/\S*/libc\.so\.\d+)", said_by("ldd", "/bin/sh"))
    if found is None:
        raise SystemExit("check_glibc: ldd /bin/sh names no libc.so: is this machine's libc glibc?")
    where = Path(found.group(1)).parent
    names = ("c", "m", "dl", "pthread", "rt")
    return [path for name in names for path in where.glob(f"lib{name}.so.[0-9]")]


def called_names(build: Path) -> dict[str, set[str]]:
    """Every undefined name of our objects, with the objects that name it."""
    objects = [
        path
        for path in build.rglob("*.o")
        if not re.search(r"_test\.|(^|/)tests/|nanobind", str(path.relative_to(build)))
    ]
    if not objects:
        raise SystemExit(f"check_glibc: no objects in {build}; build it first")
    found: dict[str, set[str]] = defaultdict(set)
    for path in objects:
        for name in re.findall(r"^ +U (\w+)$", said_by("nm", "-u", str(path)), re.MULTILINE):
            found[name].add(path.name)
    return found


def main() -> int:
    """Prints the newest names and those that are too new; 1 when there are such."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: scripts/check_glibc.py BUILD_DIRECTORY")
    versions: dict[str, tuple[int, ...]] = {}
    for library in c_libraries():
        versions |= first_versions(library)
    called = {
        name: where for name, where in called_names(Path(sys.argv[1])).items() if name in versions
    }
    bad = 0
    for name, where in sorted(called.items(), key=lambda item: (versions[item[0]], item[0])):
        if versions[name] <= OLDEST:
            continue
        if name in RENAMED:
            print(f"{name} of {dotted(versions[name])}: {RENAMED[name]}")
        else:
            bad += 1
            print(f"{name} came with glibc {dotted(versions[name])}; called in:", *sorted(where))
    newest = max((versions[name] for name in called if name not in RENAMED), default=(0,))
    print(
        f"{len(called)} functions of glibc are called; the newest came with "
        f"{dotted(newest)}; {bad} are newer than {dotted(OLDEST)}"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
