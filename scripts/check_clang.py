#!/usr/bin/env python3
"""Does Clang take what GCC has compiled? Reads it only: nothing is written.

    scripts/check_clang.py [--build build/release] [--compiler clang++] [--together]

Every source of C++ in the build's compile_commands.json, but for tests, is read as -fsyntax-only
with what is defined and included there; warnings are left to `scripts/build.sh tidy`. Each by
itself, though the build may compile many at a time (CMAKE_UNITY_BUILD): what it calls it includes.
With --together as many at a time as the build compiles, which takes a third of the time.
What the build precompiles (PENSTOCK_PCH: the standard's headers) is, once, for Clang too.
The last line is `N passed, N failed`. Exit: 0; 1 when Clang refuses something; 2 when it cannot be
run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A name alone, or with its value in the same word; and with it in the next.
TAKEN = ("-I", "-D", "-std=", "-isystem", "-include")
WITH_NEXT = ("-I", "-D", "-isystem", "-include")
MEMBER = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def taken(words: list[str]) -> list[str]:
    """What of a compiler's command says how a source is read."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.startswith(TAKEN):
            kept.append(word)
            if word in WITH_NEXT:
                kept.append(next(rest))
    return without_precompiled(kept)


def without_precompiled(words: list[str]) -> list[str]:
    """Headers that another compiler has precompiled are read where they are included."""
    return [
        word
        for word, after in zip(words, [*words[1:], ""], strict=True)
        if not (word == "-include" and is_precompiled(after)) and not is_precompiled(word)
    ]


def is_precompiled(word: str) -> bool:
    """Whether it is CMake's header of what is precompiled."""
    return word.endswith("cmake_pch.hxx")


@dataclass(frozen=True)
class Precompiled:
    """A header that Clang has read once, for compilations by one standard."""

    header: str
    standard: str
    output: Path

    def words(self, command: list[str]) -> list[str]:
        """What says so to a compilation that uses it; else nothing."""
        uses = self.header in command and self.standard in command
        return ["-include-pch", str(self.output)] if uses else []


def precompile(compiler: str, entries: list[dict[str, str]], folder: Path) -> list[Precompiled]:
    """Those of the build that Clang takes."""
    made = []
    for entry in entries:
        words = shlex.split(entry["command"])
        headers = [w for w in words if is_precompiled(w) and Path(w).is_file()]
        standards = [w for w in words if w.startswith("-std=")]
        if not headers or not standards or any(m.words(words) for m in made):
            continue
        one = Precompiled(headers[0], standards[-1], folder / f"{len(made)}.pch")
        command = [compiler, "-x", "c++-header", "-w", one.standard, one.header]
        done = subprocess.run([*command, "-o", str(one.output)], capture_output=True, check=False)
        made += [one] if done.returncode == 0 else []
    return made


def sources(entry: dict[str, str]) -> list[str]:
    """What a compilation reads: one file, or those that CMake compiles at a time."""
    file = Path(entry["file"])
    return MEMBER.findall(file.read_text()) if file.name.startswith("unity_") else [str(file)]


def by_themselves(entry: dict[str, str]) -> list[dict[str, str]]:
    """A compilation of each source that this one reads."""
    return [{**entry, "file": file} for file in sources(entry)]


def is_looked_at(file: str, build: Path) -> bool:
    """What is installed or measured with; tests are the second compiler's of `make check-full`.

    One binary interface of MPI stands for all, whose sources are the same.
    """
    left_out = ("cmake_pch", "_test", "mpich5", "abi.dir")
    for root in (build, ROOT):  # not by the name of a folder that the tree happens to lie in
        file = file.removeprefix(f"{root}{os.sep}")
    return file.endswith((".cpp", ".cxx")) and not any(part in file for part in left_out)


def refused(compiler: str, entry: dict[str, str], precompiled: list[Precompiled]) -> str:
    """What Clang says of a source that it does not take; else nothing."""
    given = shlex.split(entry["command"])
    once = next((words for one in precompiled if (words := one.words(given))), [])
    command = [compiler, "-fsyntax-only", "-w", *once, *taken(given), entry["file"]]
    done = subprocess.run(
        command, cwd=entry["directory"], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else f"{entry['file']}\n{done.stderr[-3000:]}"


def main() -> int:
    """Parse, read, say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--compiler", default="clang++")
    parser.add_argument("--together", action="store_true")
    args = parser.parse_args()
    if shutil.which(args.compiler) is None:
        print(f"check_clang: --compiler {args.compiler} is not there: apt-get install clang")
        return 2
    commands = args.build / "compile_commands.json"
    if not commands.is_file():
        print(f"check_clang: {commands} is not there: scripts/build.sh release makes it")
        return 2
    build = args.build.resolve()
    entries = [
        one
        for compiled in json.loads(commands.read_text())
        if is_looked_at(compiled["file"], build)
        for one in ([compiled] if args.together else by_themselves(compiled))
    ]
    if not entries:
        print(f"check_clang: {commands} compiles no C++")
        return 2
    with (
        tempfile.TemporaryDirectory(prefix="penstock-clang-") as folder,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        once = precompile(args.compiler, entries, Path(folder))
        said = [s for s in pool.map(lambda e: refused(args.compiler, e, once), entries) if s]
    print(*said, sep="\n", end="\n" if said else "")
    print(f"{len(entries) - len(said)} passed, {len(said)} failed")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
