#!/usr/bin/env python3
"""Puts the table of write methods into docs/methods.md, out of the descriptors in the code.

`make docs-table` writes it; with --check nothing is written, and a stale table is exit code 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "methods.md"
TABLE = re.compile(r"(?<=<!-- table begins -->\n).*?(?=<!-- table ends -->)", re.DOTALL)


def current_table() -> str:
    """The table as the built package prints it."""
    command = [str(ROOT / ".venv" / "bin" / "penstock"), "list", "--markdown"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def with_table(page: str, table: str) -> str:
    """The page with its table exchanged. A page without the marks is an error."""
    if len(TABLE.findall(page)) != 1:
        raise SystemExit(f"{PAGE.name} has no place for the table: <!-- table begins -->, ... ends")
    return TABLE.sub(lambda _: table, page)


def main(arguments: list[str]) -> int:
    """Writes or checks."""
    old = PAGE.read_text()
    new = with_table(old, current_table())
    if arguments == ["--check"]:
        print("the table is up to date" if new == old else "stale; run: make docs-table")
        return 0 if new == old else 1
    PAGE.write_text(new)
    print(f"{PAGE.relative_to(ROOT)}: {'unchanged' if new == old else 'written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
