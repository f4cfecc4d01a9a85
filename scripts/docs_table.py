#!/usr/bin/env python3
"""Puts tables into pages of docs/: the write methods, out of the descriptors in the code, the file
systems that are known, and the members of logs and results, out of their schemas.

`make docs-table` writes them; with --check nothing is written, and a stale table is exit code 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import schema_table

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TABLE = re.compile(r"(?<=<!-- table begins -->\n).*?(?=<!-- table ends -->)", re.DOTALL)


def methods() -> str:
    """The table as the built package prints it."""
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "penstock", "list", "--markdown"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def members(schema: str, heading: str = "##") -> Callable[[], str]:
    """What makes the tables of a schema in docs/reference."""
    path = DOCS / "reference" / schema
    return lambda: f"\n{schema_table.tables(json.loads(path.read_text()), heading=heading)}\n"


KINDS = {
    "kLocal": "local",
    "kLocked": "shared, caches take locks",
    "kShared": "shared, caches know nothing of each other",
}


def file_systems() -> str:
    """Those that the probe knows, by how they share a unit."""
    source = (ROOT / "src" / "io" / "probe.cpp").read_text()
    known = re.findall(r'Known\{\w+, "(\w+)", (\w+)\}', source)
    if not known or {kind for _, kind in known} - KINDS.keys():
        raise SystemExit(
            "src/io/probe.cpp has no table that could be read: Known{MAGIC, NAME, KIND}"
        )
    rows = (
        f"| {text} (`{kind}`) | {', '.join(f'`{name}`' for name, of in known if of == kind)} |\n"
        for kind, text in KINDS.items()
    )
    return "| Kind | File systems |\n|---|---|\n" + "".join(rows)


PAGES: dict[str, Callable[[], str]] = {
    "methods.md": methods,
    "adding-a-file-system.md": file_systems,
    "reference/job-log.md": members("job-log.schema.json"),
    "reference/bench-results.md": members("bench-results.schema.json"),
    "reference/measure.md": members("measure-sample.schema.json"),
}


def with_table(page: str, table: str, name: str) -> str:
    """The page with its table exchanged. A page without the marks is an error."""
    if len(TABLE.findall(page)) != 1:
        raise SystemExit(f"{name} has no place for the table: <!-- table begins -->, ... ends")
    return TABLE.sub(lambda _: table, page)


def main(arguments: list[str]) -> int:
    """Writes or checks."""
    stale = []
    for name, table in PAGES.items():
        old = (DOCS / name).read_text()
        new = with_table(old, table(), name)
        if new == old:
            continue
        stale.append(name)
        if arguments != ["--check"]:
            (DOCS / name).write_text(new)
    if arguments == ["--check"]:
        print(f"stale: {', '.join(stale)}; run: make docs-table" if stale else "up to date")
        return 1 if stale else 0
    print(f"written: {', '.join(stale)}" if stale else "unchanged")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
