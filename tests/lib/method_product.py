"""All methods, or so many that each pair of choices meets, over the cases of one launch of `views`:
each case has a file of its own, and each file a method of its own, by a table of penstock.toml.

Which there are says the program `methods` (tests/conformance/methods.cpp).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from run_mpi import Outcome, Penstock

# What stands in a log though every byte went as docs/methods.md says: pages that lie scattered, or
# that the mechanism must have where it has them, are not shared.
AS_ASKED = ("scattered", "fills memory of its own", "has memory of its own")
REFUSE_NOTHING = ("ext4", "xfs")


def listed(build: Path, *, pairs: bool) -> list[str]:
    """The methods that go together and that this machine has, as Penstock spells them."""
    command = [str(build / "suites" / "methods"), *(["--pairs"] if pairs else [])]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def dealt(methods: Sequence[str], cases: Sequence[int]) -> Iterator[dict[int, str]]:
    """Launch by launch: which case has which method. The last may have fewer cases."""
    for first in range(0, len(methods), len(cases)):
        yield dict(zip(cases, methods[first : first + len(cases)], strict=False))


def penstock_with(methods: dict[int, str], directory: Path) -> Penstock:
    """Penstock, with a configuration in `directory` that names each case's method."""
    path = directory / "methods.toml"
    path.touch(mode=0o600)
    path.write_text(
        "".join(
            f'[[file]]\npattern = "views.{case}"\nmethod = {json.dumps(method)}\n'
            for case, method in methods.items()
        )
    )
    return Penstock("", environment={"PENSTOCK_CONFIG": str(path)})


def product_problems(out: Outcome, methods: dict[int, str]) -> list[str]:
    """Each file was written by its method."""
    by_name = {f"views.{case}": method for case, method in methods.items()}
    found = files_of(out)
    problems = [
        problem
        for name, file in found
        for problem in file_problems(file, by_name.get(name, "a method of its own"))
    ]
    unused = by_name.keys() - {name for name, _ in found}
    return problems + [f"{name} is in no log" for name in sorted(unused)]


def files_of(out: Outcome) -> list[tuple[str, dict[str, Any]]]:
    """What the logs say of each open, with the file's name."""
    return [(Path(file["path"]).name, file) for log in out.logs for file in log["files"]]


def file_problems(file: dict[str, Any], method: str) -> list[str]:
    """Of one open."""
    problems = [] if file["method"] == method else [f"{file['method']} ran, not {method}"]
    others = file["algorithms"].keys() - algorithms_of(method)
    return [*problems, f"{method}: calls by {sorted(others)}"] if others else problems


def degraded_problems(out: Outcome) -> list[str]:
    """Nothing was done worse than asked, on a local file system that refuses nothing."""
    return [
        f"{file['method']}: {why}"
        for _, file in files_of(out)
        if file["file_system"] in REFUSE_NOTHING
        for why in file["degraded"]
        if not any(words in why for words in AS_ASKED)
    ]


def algorithms_of(method: str) -> set[str]:
    """Those that may run. What ranks write alone is `individual`; `auto` may take another."""
    name = method.split("(")[0].split(" ")[0]
    if name == "auto":
        return {"individual", "two_phase"}
    return {"individual", "cyclic" if name == "write_behind" else name}
