"""Several file systems in one session: a place is a named directory that a cell's name begins with.

Measured in the same blocks, two places are compared like two variants. What a conclusion needs of a
file system is its type, looked at in the run; a place's name decides nothing but which is *raw*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import ArgumentError
from penstock.reproduce import conclusions as c
from penstock.reproduce import needs
from penstock.reproduce.evidence import NOT_MEASURED, Evidence

ALONE = ""  # the place of a run with one directory
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)=(.+)")
_RAW = ("raw", "slow")  # the disk without a server in front of it, the better name first


@dataclass(frozen=True)
class Place:
    """A directory of the session, and what was seen in it: cells without the place's name."""

    name: str
    evidence: Evidence


@dataclass(frozen=True)
class Places:
    """All of them, and the whole session's evidence, in which cells begin with the place.

    ``unseen`` are those that have no sample, where others have.
    """

    whole: Evidence
    each: tuple[Place, ...]
    unseen: tuple[Place, ...] = ()

    def measured(self) -> Places:
        """Without those that have no sample, unless none has one."""
        seen = tuple(place for place in self.each if place.evidence.samples)
        unseen = tuple(place for place in self.each if not place.evidence.samples)
        return replace(self, each=seen, unseen=unseen) if seen else self

    def of_role(self, role: str) -> Place | None:
        """The first place that plays a role: of that kind of file system, or the raw disk."""
        return _playing(role, self.each) or _playing(role, self.unseen)


def _playing(role: str, places: Sequence[Place]) -> Place | None:
    if role == "raw":
        named = {place.name: place for place in places}
        return next((named[name] for name in _RAW if name in named), None)
    need = needs.NEEDS[role]
    return next((p for p in places if not need(p.evidence, p.evidence.samples)), None)


def at(place: str, cell: str) -> str:
    """The name of a place's cell in the session."""
    return f"{place}: {cell}" if place else cell


def split(name: str, places: Sequence[str]) -> tuple[str, str]:
    """The place and the cell of a name in the session."""
    place, colon, cell = name.partition(": ")
    return (place, cell) if colon and place in places else (ALONE, name)


def directories(texts: Sequence[str]) -> dict[str, Path]:
    """Of ``--dir``: one directory, or several with names.

    Raises
    ------
    ArgumentError
        If several are given and not all have a name of their own.
    """
    named = [_NAMED.fullmatch(text) for text in texts]
    if len(texts) < 2 and not any(named):
        return {ALONE: Path(texts[0] if texts else ".")}
    found: dict[str, Path] = {}
    for text, match in zip(texts, named, strict=True):
        if match is None:
            raise ArgumentError(f"--dir must be NAME=DIR where there are several, got {text}")
        if match[1] in found:
            raise ArgumentError(f"--dir names {match[1]} twice: give each directory its own name")
        found[match[1]] = Path(match[2])
    return found


def of(whole: Evidence, names: Sequence[str]) -> Places:
    """The places of a session's evidence."""
    if not names:
        return Places(whole, (Place(ALONE, whole),))
    return Places(whole, tuple(Place(name, _at_place(whole, name, names)) for name in names))


def _at_place(whole: Evidence, name: str, names: Sequence[str]) -> Evidence:
    def own(cell: str) -> str | None:
        place, inner = split(cell, names)
        return inner if place == name else None

    def of_here(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((cell, v) for full, v in pairs if (cell := own(full)) is not None)

    samples = tuple(
        s.model_copy(update={"cell": cell})
        for s in whole.samples
        if (cell := own(s.cell)) is not None
    )
    aside = (s for s in whole.aside if own(s.cell) is not None)
    used = {s.provenance for s in (*samples, *aside)}
    provenances = tuple(p for p in whole.provenances if p.id in used)
    invalid = {
        (cell, v): why
        for (full, v), why in whole.invalid.items()
        if (cell := own(full)) is not None
    }
    return replace(
        whole,
        planned=of_here(whole.planned),
        samples=samples,
        provenances=provenances,
        left_out=of_here(whole.left_out),
        to_come=of_here(whole.to_come),
        invalid=invalid,
    )


def across(claim: c.Claim, places: Places) -> c.Claim | str:
    """A claim about several places as one about the session's cells, or why that cannot be."""
    playing: dict[str, Place] = {}
    for role in claim.roles():
        place = places.of_role(role)
        if place is None:
            return f"needs {_WORDS[role]} among the directories of the session (--dir NAME=DIR)"
        playing[role] = place
    match claim:
        case c.Pair():
            return _pair(claim, playing)
        case c.NoneBest():
            return _none_best(claim, playing)
        case c.ScalesBetter():
            return _scales(claim, playing)
    raise AssertionError(f"{type(claim).__name__} has no roles")


_WORDS = {
    "nfs": "NFS",
    "parallel": "a parallel file system",
    "raw": "the server's disk, named raw or slow,",
}


def _pair(claim: c.Pair, playing: Mapping[str, Place]) -> c.Claim | str:
    of, over = playing[claim.on], playing[claim.over_on]
    cells = of.evidence.cells(claim.cells)
    over_cells = over.evidence.cells(claim.over_cells) if claim.over_cells else cells
    if not cells or len(cells) != len(over_cells):
        return NOT_MEASURED
    update = {
        "cells": [at(of.name, cell) for cell in cells],
        "over_cells": [at(over.name, cell) for cell in over_cells],
    }
    return claim.model_copy(update=update)


def _none_best(claim: c.NoneBest, playing: Mapping[str, Place]) -> c.Claim | str:
    cells = [at(p.name, cell) for p in playing.values() for cell in p.evidence.cells(claim.cells)]
    return claim.model_copy(update={"cells": cells}) if cells else NOT_MEASURED


def _scales(claim: c.ScalesBetter, playing: Mapping[str, Place]) -> c.Claim:
    names = [playing[role].name for role in claim.on]
    over_cells = claim.over_cells or claim.along_cells
    update = {
        "along_cells": [at(n, cell) for n, cell in zip(names, claim.along_cells, strict=True)],
        "over_cells": [at(n, cell) for n, cell in zip(names, over_cells, strict=True)],
    }
    return claim.model_copy(update=update)
