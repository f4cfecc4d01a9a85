"""expectations.toml: which cases fail without Penstock too, and what is meant to pass through."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "expectations.toml"


@dataclass(frozen=True)
class FailsAlone:
    """A case that fails on the MPI library itself."""

    reason: str
    cured: bool


def _table(name: str) -> list[dict[str, Any]]:
    return list(tomllib.loads(FILE.read_text(encoding="utf-8")).get(name, []))


def fails_alone(library: str, mpi: str, case: str, ranks: int) -> FailsAlone | None:
    for row in _table("fails_alone"):
        listed = row["library"] == library and mpi in row["mpis"]
        at = ranks in row.get("ranks", [ranks])
        if listed and at and any(fnmatch.fnmatchcase(case, x) for x in row["cases"]):
            return FailsAlone(row["reason"], bool(row.get("cured", False)))
    return None


def left_out(library: str, mpi: str) -> str:
    """Why nothing of this library can be judged on this MPI library; empty when it can."""
    for row in _table("left_out"):
        if row["library"] == library and mpi in row["mpis"]:
            return str(row["reason"])
    return ""


def _passes_through(library: str, mpi: str) -> list[dict[str, Any]]:
    return [
        row
        for row in _table("passes_through")
        if library in row["libraries"] and mpi in row.get("mpis", [mpi])
    ]


def unforeseen(library: str, mpi: str, reasons: Iterable[str]) -> list[str]:
    """Those of the job log's reasons for which nothing was meant to pass through."""
    meant = [row["why"] for row in _passes_through(library, mpi)]
    return [why for why in reasons if not any(why.startswith(x) for x in meant)]


def foreseen(library: str, mpi: str, reasons: Iterable[str]) -> list[str]:
    """Why what the job log says is meant to be so, each once."""
    rows = _passes_through(library, mpi)
    return sorted({x["reason"] for why in reasons for x in rows if why.startswith(x["why"])})
