"""Studies (cells.toml, own.toml) as values, and the commands that take samples of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from beside import spec
from beside.place import MissingError, Site, environment, preload, start, wrote_it_all
from beside.spec import Access, End, Setting, Verdict
from pydantic import BaseModel, ConfigDict, Field

from penstock.bench.programs import options
from penstock.bench.session import Measurement

HERE = Path(__file__).resolve().parent.parent
PEERS = HERE.parent / "peers" / "peers.toml"
SUBTYPE: dict[Access, str] = {"collective": "full", "independent": "simple"}
OWN_FILES = "file-per-process"
Kind = Literal["penstock", "peer", "own files"]
ENDS: tuple[End, ...] = ("close", "sync")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Design(_Model):
    """Its page's title; how often, in which order, from which memory, on which library Penstock
    runs, and which cells are measured where nobody says it."""

    title: str
    rounds: int
    seed: int
    timeout_s: float
    warm_memory: str
    page_reports: Literal["asis", "wait"]
    penstock: str
    ranks: list[int]
    usual: list[str]


class Class(_Model):
    """How many of a class's outputs are written, and whether as a file per process too."""

    outputs: int
    of: int
    own_files: bool = False


class Peer(_Model):
    """An MPI library's own path, at one setting; with so many ranks, or with any."""

    library: str
    access: Access
    setting: Setting = {}
    ranks: list[int] = []
    extra: bool = False


class Conclusion(_Model):
    """What the cells are to decide."""

    name: str
    says: str
    predicted: Verdict
    gate: bool
    ours: Access = "independent"
    against: Literal["penstock collective", "best collective", "best independent"] = (
        "penstock collective"
    )
    at_least: float = 0.0
    every_sample: bool = False


class Study(_Model):
    """A file of cells, competitors and conclusions."""

    design: Design
    classes: dict[str, Class] = Field(alias="class")
    peer: list[Peer] = Field(default_factory=list)
    conclusion: list[Conclusion]


@dataclass(frozen=True)
class Cell:
    """A class, a number of ranks, and how it ends."""

    class_name: str
    ranks: int
    end: End = "close"

    @property
    def name(self) -> str:
        """As on the command line: A-4, A-4-synced."""
        synced = "-synced" if self.end == "sync" else ""
        return f"{self.class_name}-{self.ranks}{synced}"


@dataclass(frozen=True)
class Work:
    """What ``run.py`` chose of the study."""

    cells: list[Cell]
    classes: dict[str, Class]
    peers: list[Peer]


@dataclass
class Lineup:
    """What can be measured here, and what cannot with the reason."""

    measurements: list[Measurement] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)  # reason -> variants

    @property
    def reasons(self) -> list[str]:
        """Each reason once."""
        return [f"{why} ({n} variants)" for why, n in self.missing.items()]


def names() -> list[str]:
    """The studies there are."""
    return sorted(path.stem for path in HERE.glob("*.toml"))


def path_of(name: str) -> Path:
    """The file of a study."""
    return HERE / f"{name}.toml"


def load(path: Path = HERE / "cells.toml") -> Study:
    """Read a study.

    Raises
    ------
    ArgumentError
        If it cannot be read or a key is wrong.
    """
    return spec.read(path, Study)


def cells_of(study: Study) -> list[Cell]:
    """All cells, the smallest first."""
    return [
        Cell(name, ranks, end)
        for end in ENDS
        for name in study.classes
        for ranks in study.design.ranks
    ]


def lineup(study: Study, work: Work, site: Site) -> Lineup:
    """Everybody in every cell."""
    libraries = spec.read(PEERS, spec.Peers)
    found = Lineup()
    for cell in work.cells:
        for one in _variants(study, work, libraries, cell):
            try:
                found.measurements.append(_measurement(study, work, site, libraries, cell, one))
            except MissingError as why:
                found.missing[str(why)] = found.missing.get(str(why), 0) + 1
    return found


@dataclass(frozen=True)
class _Variant:
    name: str
    title: str
    kind: Kind
    library: str
    subtype: str
    access: Access | None = None
    setting: Setting = field(default_factory=dict)


def _variants(study: Study, work: Work, libraries: spec.Peers, cell: Cell) -> list[_Variant]:
    on = study.design.penstock
    found = [
        _Variant(f"penstock-{access}", f"Penstock, {access}", "penstock", on, subtype, access)
        for access, subtype in SUBTYPE.items()
    ]
    for peer in work.peers:
        if peer.ranks and cell.ranks not in peer.ranks:
            continue
        title = f"{libraries.library[peer.library].title}, {peer.access}"
        name, subtype = f"{peer.library}-{peer.access}", SUBTYPE[peer.access]
        found.append(
            _Variant(name, title, "peer", peer.library, subtype, peer.access, peer.setting)
        )
    if work.classes[cell.class_name].own_files:
        found.append(_Variant(OWN_FILES, "a file per process, write(2)", "own files", on, "epio"))
    return found


def _measurement(
    study: Study, work: Work, site: Site, libraries: spec.Peers, cell: Cell, one: _Variant
) -> Measurement:
    library = libraries.library[one.library]
    program = _program(site, cell.end, library.flavour)
    ours = one.kind == "penstock"
    mca, hints = _setting(one.setting, libraries.grid[library.grid].how)
    size = work.classes[cell.class_name]
    command = [
        *start(site, library, cell.ranks, mca),
        *(preload(site) if ours else []),
        str(program),
        *options(_options(study.design, site, cell, one, size, hints)),
    ]
    extra: dict[str, Any] = {"expect": wrote_it_all(site.scratch)} if ours else {}
    return Measurement(
        cell.name,
        one.name,
        command,
        env=environment(site, library),
        timeout_s=study.design.timeout_s,
        parameters=_facts(cell, one, size),
        **extra,
    )


def _program(site: Site, end: End, flavour: str) -> Path:
    """A program that never syncs has no MPI_File_sync in it, and Penstock looks at that."""
    name = f"peer-btio-{flavour}" if end == "sync" else f"peer-btio-unsynced-{flavour}"
    if (found := site.program(f"bench/{name}")) is None:
        raise MissingError(f"{name} is not built (make build)")
    return found


def _setting(setting: Setting, how: str) -> tuple[list[str], list[str]]:
    """Words of the launcher, and hints of the program."""
    if how == "mca":
        return [word for k, v in setting.items() for word in ("--mca", k, v)], []
    return [], [f"{k}={v}" for k, v in setting.items()]


def _options(
    design: Design, site: Site, cell: Cell, one: _Variant, size: Class, hints: list[str]
) -> dict[str, Any]:
    return {
        "file": site.scratch / "data",
        "class": cell.class_name,
        "subtype": one.subtype,
        "outputs": size.outputs,
        "end": cell.end,
        "regime": "warm",
        "warm_memory": design.warm_memory,
        "page_reports": design.page_reports,
        "hint": hints,
    }


def _facts(cell: Cell, one: _Variant, size: Class) -> dict[str, Any]:
    """What a table made of the results needs to know of a variant."""
    return {
        "class": cell.class_name,
        "ranks": cell.ranks,
        "outputs": size.outputs,
        "of": size.of,
        "end": cell.end,
        "title": one.title,
        "kind": one.kind,
        "access": one.access,
        "setting": dict(one.setting),
    }
