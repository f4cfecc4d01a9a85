"""Who takes part in a cell, and the command that takes a sample of it.

A competitor that cannot run here (a library or a program is missing, or too old) is named with the
reason, once; the others of its cell are measured.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from beside.place import (
    MissingError,
    Site,
    environment,
    preload,
    root_environment,
    start,
    wrote_it_all,
)
from beside.samples import another_library
from beside.spec import Beside, Cell, Library, Setting, Specification, Work
from penstock.bench.execute import ProgramResult
from penstock.bench.programs import options
from penstock.bench.session import Measurement
from penstock.errors import ArgumentError

Kind = Literal["library", "penstock", "ceiling", "instead"]
SIZES = {"gate": 1, "small": 8, "tiny": 64}  # what bufsize is divided by
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "": 1}
_PROBE_S = 20.0


@dataclass(frozen=True)
class Competitor:
    """One variant of a cell."""

    name: str
    title: str
    kind: Kind
    library: str
    program: str
    setting: Setting = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    same_file: bool = True
    is_best: bool = False
    least_version: str | None = None


def of_cell(spec: Specification, cell: Cell, full: bool = False) -> list[Competitor]:
    """Everybody who takes part in a cell, whether it can run here or not.

    Parameters
    ----------
    spec : Specification
        The three files.
    cell : Cell
        The cell.
    full : bool
        Use the libraries' ``full_ranks``.
    """
    work = spec.cells.work[cell.work]
    found: list[Competitor] = []
    for key, library in spec.peers.library.items():
        here = cell.ranks in (library.full_ranks if full else library.ranks)
        if here and cell.peers != "none":
            found += _settings(spec, cell, work, key, library)
    ours = spec.peers.penstock
    found.append(Competitor("penstock", ours.title, "penstock", ours.on[cell.ranks], work.program))
    if work.program == "measure":
        found.append(_beside("ceiling", spec.peers.ceiling, "ceiling", cell))
    if cell.peers == "both":
        names = [*(["file-per-process"] if work.file_per_process else []), *work.beside]
        found += [_beside(name, spec.peers.instead[name], "instead", cell) for name in names]
    return found


def _settings(
    spec: Specification, cell: Cell, work: Work, key: str, library: Library
) -> Iterator[Competitor]:
    """A library at its default, at its best, or both; once where they are the same."""
    best = spec.bests.of(work.family, cell.access, cell.ranks, key)
    wanted: list[tuple[str, Setting, bool]] = []
    if cell.peers == "both" or not best:
        wanted.append((key, {}, best == {}))
    if best:
        wanted.append((f"{key}-best", best, True))
    for name, setting, is_best in wanted:
        yield Competitor(
            name, library.title, "library", key, work.program, setting, {}, True, is_best
        )


def _beside(name: str, one: Beside, kind: Kind, cell: Cell) -> Competitor:
    return Competitor(
        name, one.title, kind, one.on[cell.ranks], one.program,
        options=one.options, same_file=one.same_file, least_version=one.least_version,
    )  # fmt: skip


def measurement(spec: Specification, site: Site, cell: Cell, competitor: Competitor) -> Measurement:
    """The command of a competitor.

    Raises
    ------
    MissingError
        If it cannot run here.
    """
    library = spec.peers.library[competitor.library]
    ours = competitor.kind == "penstock"
    command = [
        *start(site, library, cell.ranks, _mca(spec, competitor)),
        *(preload(site) if ours else []),
        str(_program(spec, site, cell, competitor, library)),
        *options(_parameters(spec, site, cell, competitor)),
    ]
    extra: dict[str, Any] = {"expect": wrote_it_all(site.scratch)} if ours else {}
    if competitor.kind == "library":
        extra = {"expect": functools.partial(_ran_another, competitor.title)}
    relaxed = ours and cell.visibility == "relaxed"
    asked = {"PENSTOCK_VISIBILITY": "relaxed"} if relaxed else {}
    return Measurement(
        cell.name,
        competitor.name,
        command,
        env={**environment(site, library), **asked},
        timeout_s=spec.cells.design.timeout_s,
        parameters=_facts(spec, cell, competitor),
        **extra,
    )


def _ran_another(title: str, ran: ProgramResult) -> str | None:
    return another_library(ran.result.mpi if ran.result else None, title) or None


def _facts(spec: Specification, cell: Cell, competitor: Competitor) -> dict[str, Any]:
    """What a table made of the results needs to know of a variant."""
    return {
        "family": spec.family(cell),
        **cell.model_dump(mode="json", exclude={"peers"}),
        "title": competitor.title,
        "kind": competitor.kind,
        "library": competitor.library,
        "setting": dict(competitor.setting),
        "is_best": competitor.is_best,
        "same_file": competitor.same_file,
    }


def _mca(spec: Specification, competitor: Competitor) -> list[str]:
    if not competitor.setting or _how(spec, competitor) != "mca":
        return []
    return [word for k, v in competitor.setting.items() for word in ("--mca", k, v)]


def _how(spec: Specification, competitor: Competitor) -> str:
    return spec.peers.grid[spec.peers.library[competitor.library].grid].how


def _program(
    spec: Specification, site: Site, cell: Cell, competitor: Competitor, library: Library
) -> Path:
    program = spec.peers.program[competitor.program]
    template = program.unsynced if cell.end == "close" and program.unsynced else program.path
    path = template.format(flavour=library.flavour)
    found = site.program(path)
    if found is None:
        raise MissingError(f"{competitor.title}: {Path(path).name} is not built (make build)")
    if competitor.least_version:
        version = _version(found, tuple(start(site, library, 1, [])))
        if _numbers(version) < _numbers(competitor.least_version):
            raise MissingError(
                f"{competitor.title}: needs {competitor.least_version}, and here is {version}"
            )
    return found


@functools.cache
def _version(program: Path, launch: tuple[str, ...]) -> str:
    """What a program says it measures, by a run as small as can be."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--file", f"{folder}/probe", "--iters", "1", "--bufsize", "64KiB"]
        try:
            done = subprocess.run(
                [*launch, str(program), *words, "--regime", "asis"],
                env={**os.environ, **root_environment()},
                capture_output=True,
                text=True,
                timeout=_PROBE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"one that says nothing within {_PROBE_S:g} s"
    lines = [x for x in done.stdout.splitlines() if x.startswith("{")]
    return str(json.loads(lines[-1])["version"]) if lines else "one that does not run"


def _numbers(version: str) -> tuple[int, ...]:
    last = version.split()[-1]
    return tuple(int(x) if x.isdigit() else 0 for x in last.split("."))


def _parameters(
    spec: Specification, site: Site, cell: Cell, competitor: Competitor
) -> dict[str, Any]:
    program = spec.peers.program[competitor.program]
    work = spec.cells.work[cell.work]
    properties = {
        "pattern": work.pattern,
        "access": cell.access,
        "ranks": cell.ranks,
        "iters": work.iters if site.size == "gate" else min(work.iters, 2),
        "bufsize": _bytes(work.bufsize[cell.ranks]) // SIZES[site.size],
        "len": work.len,
        "stride": work.stride,
        "slab": work.slab,
        "end": cell.end,
        "regime": cell.regime,
    }
    taken = {k: v for k, v in properties.items() if k in program.takes and v is not None}
    hints = []
    if competitor.setting and _how(spec, competitor) == "hint":
        hints = [f"{k}={v}" for k, v in competitor.setting.items()]
    return {
        "file": site.scratch / "data",
        **taken,
        **program.options,
        **competitor.options,
        **({"hint": hints} if hints else {}),
    }


def _bytes(text: str) -> int:
    number = text.rstrip("KMGiB")
    unit = text[len(number) :]
    if not number.isdigit() or unit not in _UNITS:
        raise ArgumentError(f"bufsize must be like 16MiB or 47008, got {text}")
    return int(number) * _UNITS[unit]


@dataclass
class Lineup:
    """What can be measured here, and what cannot with the reason."""

    measurements: list[Measurement] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  # "cell: variant" -> why

    @property
    def reasons(self) -> list[str]:
        """Each reason once, with the number of variants that it costs."""
        why = list(self.missing.values())
        return [f"{reason} ({why.count(reason)} variants)" for reason in dict.fromkeys(why)]


def lineup(
    spec: Specification, site: Site, cells: Sequence[Cell], full: Sequence[str] = ()
) -> Lineup:
    """Everybody of some cells; ``full`` names those that are of the full design."""
    found = Lineup()
    for cell in cells:
        for competitor in of_cell(spec, cell, full=cell.name in full):
            try:
                found.measurements.append(measurement(spec, site, cell, competitor))
            except MissingError as why:
                found.missing[f"{cell.name}: {competitor.name}"] = str(why)
    return found


def unsearched(spec: Specification, cells: Sequence[Cell]) -> list[str]:
    """Where libraries are measured at their default only, since no grid was searched: one line."""
    found: dict[str, None] = {}
    for cell in (cell for cell in cells if cell.peers != "none"):
        family = spec.family(cell)
        for key, library in spec.peers.library.items():
            known = spec.bests.of(family, cell.access, cell.ranks, key)
            if known is None and cell.ranks in library.ranks:
                found[f"{family} {cell.access} at {cell.ranks} ranks"] = None
    if not found:
        return []
    return [f"best settings of some libraries, not searched (--search): {', '.join(found)}"]
