#!/usr/bin/env python3
"""Who may include whom: reads every #include and import and compares with the layers.

The C++ layers and their order are taken from the ``penstock_layer(NAME needs...)`` lines of
CMakeLists.txt, so that linking and including cannot disagree. Rules that linking does not know
stand below. Prints one line per violation and exits 1 when there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = {".c", ".h", ".cpp", ".hpp", ".def"}
PURE = {"layout", "plan", "model"}
MPI_HEADERS = {"mpi.h", "penstock/penstock_mpi.h"}  # the second includes the first
FILE_HEADERS = re.compile(r"^(fcntl\.h|unistd\.h|sys/.*|fstream|filesystem|cstdio|stdio\.h)$")
# The few headers of a layer below that a layer is meant to see, when it may not see all of it.
ONLY = {("io", "layout"): {"layout/geometry.hpp"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
LAYER = re.compile(r"^penstock_layer\(([a-z_ ]+)\)", re.MULTILINE)
COMMANDS_IMPORT = re.compile(r"^\s*(?:from|import)\s+penstock\.cli\b")


def layers(cmake: str) -> dict[str, set[str]]:
    """Each layer and all that it may include: itself, what it links, and what that links."""
    allowed: dict[str, set[str]] = {}
    for match in LAYER.finditer(cmake):
        name, *needs = match.group(1).split()
        allowed[name] = {name}.union(*(allowed[need] for need in needs))
    everything = set(allowed)
    for name in ("capi", "pmpi"):  # above all of them, and built elsewhere
        allowed.setdefault(name, everything | {name, "capi"})
    return allowed


def may_include_mpi(layer: str, name: str) -> bool:
    return layer == "pmpi" or (layer in ("comm", "capi") and name.startswith("mpi_"))


def complaint(layer: str, name: str, quoted: str, system: str, allowed: set[str]) -> str:
    """What is wrong with one #include of a file of a layer; empty when nothing is."""
    if MPI_HEADERS & {system, quoted}:
        allowed_here = may_include_mpi(layer, name)
        return "" if allowed_here else "only pmpi, comm/mpi_* and capi/mpi_* may include mpi.h"
    if system and layer in PURE and "_test." not in name and FILE_HEADERS.match(system):
        return f"layer {layer} is pure: it knows no files"
    target = quoted.split("/")[0] if "/" in quoted else layer
    if not quoted or target == layer:
        return ""
    if target not in allowed:
        return f"layer {layer} may not include layer {target}"
    only = ONLY.get((layer, target))
    return f"layer {layer} may include only {sorted(only)}" if only and quoted not in only else ""


def cxx_violations(root: Path) -> Iterator[str]:
    allowed = layers((root / "CMakeLists.txt").read_text())
    for path in sorted((root / "src").rglob("*")):
        layer = path.relative_to(root / "src").parts[0]
        if path.suffix not in SOURCES or path.is_dir():
            continue
        if layer not in allowed:
            yield f"{path.relative_to(root)}: {layer} is not a layer of CMakeLists.txt"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                quoted, system = match.group(1) or "", match.group(2) or ""
                if wrong := complaint(layer, path.name, quoted, system, allowed[layer]):
                    yield f"{path.relative_to(root)}:{number}: {wrong}: {quoted or system}"


def python_violations(root: Path) -> Iterator[str]:
    """Commands call library functions, never the other way round."""
    package = root / "python" / "penstock"
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] == "cli" or inside.name == "__main__.py":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if COMMANDS_IMPORT.match(line):
                where = f"{path.relative_to(root)}:{number}"
                yield f"{where}: a library module may not import a command"


def main(root: Path) -> int:
    violations = [*cxx_violations(root), *python_violations(root)]
    for violation in violations:
        print(violation)
    print(f"includes: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent))
