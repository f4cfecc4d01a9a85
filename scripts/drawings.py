#!/usr/bin/env python3
"""Draws the pictures of docs/algorithms.md and docs/models.md, by the commands in these pages.

`make drawings` draws them; with --check nothing is written, and a stale picture, an algorithm
without one, or one that nobody shows is exit code 1.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = {"algorithms.md": "plan-*.svg", "models.md": "model-*.svg"}  # and their own pictures
IMAGES = DOCS / "images"
COMMAND = re.compile(
    r"^penstock ((?:explain|simulate) .*--draw docs/images/(\S+\.svg))$", re.MULTILINE
)
SHOWN = re.compile(r"!\[[^\]]*\]\(images/([^)]+)\)")
HEADING = re.compile(r"^## `(\w+)`$", re.MULTILINE)


def penstock(*arguments: str) -> str:
    """What the built package prints."""
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "penstock", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def algorithms() -> list[str]:
    """Those that this version has."""
    families = json.loads(penstock("list", "--json"))["families"]
    entries = next(f["entries"] for f in families if f["name"] == "algorithm")
    return [e["name"] for e in entries if e["unavailable"] != "not in this version"]


def drawn_by(page: str) -> dict[str, str]:
    """By picture, the arguments of the command in the page that draws it."""
    return {name: arguments for arguments, name in COMMAND.findall(page)}


def complaints(page: str, names: list[str], there: list[str]) -> list[str]:
    """What the page lacks, given the algorithms it must have and its pictures in docs/images."""
    drawn, shown = set(drawn_by(page)), set(SHOWN.findall(page))
    sections = HEADING.split(page)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    return [
        *(
            f"{n} has no section with a picture"
            for n in names
            if not COMMAND.search(texts.get(n, ""))
        ),
        *(f"{n} is a section, but no algorithm" for n in texts if n not in names),
        *(f"{n} is shown, but no command draws it" for n in sorted(shown - drawn)),
        *(f"{n} is drawn, but not shown" for n in sorted(drawn - shown)),
        *(f"{n} is in docs/images, but no command draws it" for n in sorted(set(there) - drawn)),
    ]


def draw(arguments: str) -> str:
    """The picture as the command draws it."""
    return penstock(*shlex.split(arguments)[:-1], "-")


def lacking() -> list[str]:
    """What the pages lack, each line with its page."""
    return [
        f"docs/{page}: {line}"
        for page, own in PAGES.items()
        for line in complaints(
            (DOCS / page).read_text(),
            algorithms() if page == "algorithms.md" else [],
            [p.name for p in IMAGES.glob(own)],
        )
    ]


def main(options: list[str]) -> int:
    """Draws or checks."""
    drawn = {k: v for page in PAGES for k, v in drawn_by((DOCS / page).read_text()).items()}
    pictures = {IMAGES / name: draw(arguments) for name, arguments in drawn.items()}
    stale = [p for p, now in pictures.items() if not p.exists() or p.read_text() != now]
    if options != ["--check"]:
        for path in stale:
            path.write_text(pictures[path])
        print(f"docs/images: {len(stale)} of {len(pictures)} pictures written")
    else:
        for path in stale:
            print(f"{path.name} is stale; run: make drawings")
    complained = lacking()
    for line in complained:
        print(line)
    if complained or (stale and options == ["--check"]):
        return 1
    print(f"{len(pictures)} pictures are up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
