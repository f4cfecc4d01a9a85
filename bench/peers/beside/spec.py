"""cells.toml, peers.toml and best.toml as values: what is measured, by whom, what is decided.

Each key is checked; a message names the file, the key and its value.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from penstock.errors import ArgumentError

HERE = Path(__file__).resolve().parent.parent
Access = Literal["collective", "independent"]
End = Literal["sync", "close"]
Regime = Literal["warm", "cold"]
Visibility = Literal["immediate", "relaxed"]
Verdict = Literal["holds", "fails", "undecided", "not measured"]
Setting = dict[str, str]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Design(_Model):
    """How often, in which order, and how many cells ``--full`` adds."""

    rounds: int
    seed: int
    full_cells: int
    timeout_s: float = 60.0


class Work(_Model):
    """What is written. ``bufsize`` by number of ranks, in bytes per rank and call.

    ``slab``: the libraries' programs cut a rank's block into calls of so many bytes.
    """

    family: str
    program: str
    bufsize: dict[int, str]
    iters: int
    pattern: str | None = None
    len: int | None = None
    stride: int | None = None
    slab: str | None = None
    file_per_process: bool = False
    beside: list[str] = []


class Cell(_Model):
    """Work, by so many ranks, written in one way; ``visibility`` is asked of Penstock alone.

    ``peers``: the libraries at their default and at their best, at their best, or not at all.
    """

    work: str
    ranks: int
    access: Access = "collective"
    end: End = "sync"
    regime: Regime = "warm"
    visibility: Visibility = "immediate"
    peers: Literal["both", "best", "none"] = "both"
    expected: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """``cubes3d-2-cold``: what differs from collective, synced, warm, immediate is named."""
        usual = {"collective", "sync", "warm", "immediate"}
        said = {"close": "unsynced"}
        more = [said.get(x, x) for x in self._ways if x not in usual]
        return "-".join([self.work, str(self.ranks), *more])

    @property
    def _ways(self) -> tuple[str, ...]:
        return (self.access, self.end, self.regime, self.visibility)


class Conclusion(_Model):
    """What the cells are to decide; ``of`` chooses cells by their keys.

    ``against`` says whose rate Penstock's is divided by; with ``families`` the geometric mean of
    the families' median ratios decides, and not each cell.
    """

    name: str
    says: str
    predicted: Verdict
    gate: bool
    of: dict[str, Any] = {}
    at_least: float = 0.0
    every_sample: bool = False
    ceiling: bool = False
    families: bool = False
    against: Literal["best peer", "ceiling", "own library"] = "best peer"

    def covers(self, cell: Cell) -> bool:
        """Whether a cell is among those that decide it."""
        for key, wanted in self.of.items():
            value = getattr(cell, key)
            if value not in (wanted if isinstance(wanted, list) else [wanted]):
                return False
        return True


class Cells(_Model):
    """cells.toml."""

    design: Design
    work: dict[str, Work] = {}
    cell: list[Cell]
    conclusion: list[Conclusion]


class Library(_Model):
    """An MPI library's own path: what starts it, and at which ranks it is fair."""

    title: str
    flavour: str
    start: list[str]
    ranks: list[int]
    full_ranks: list[int]
    grid: str
    env: dict[str, str] = {}


class Ours(_Model):
    """Penstock: which library it runs on, by number of ranks."""

    title: str
    on: dict[int, str]


class Beside(_Model):
    """A program of its own: the ceiling, or what users do instead of MPI-IO."""

    title: str
    program: str
    on: dict[int, str]
    options: dict[str, Any] = {}
    same_file: bool = True
    least_version: str | None = None


class ProgramSpec(_Model):
    """Where a program is in a build directory, and which of a cell's properties it takes.

    ``unsynced`` is a build that cannot sync, for the cells that do not.
    """

    path: str
    unsynced: str | None = None
    takes: list[str]
    options: dict[str, Any] = {}


class Grid(_Model):
    """Settings to try: one value of every axis together, and some more."""

    how: Literal["hint", "mca"]
    axes: list[list[Setting]]
    also: list[Setting] = []

    def settings(self, ranks: int) -> list[Setting]:
        """Every combination, the default (nothing set) first."""
        found: list[Setting] = [{}]
        for axis in self.axes:
            found = [{**before, **value} for before in found for value in axis]
        filled = [{k: v.format(ranks=ranks) for k, v in s.items()} for s in [*found, *self.also]]
        return [s for i, s in enumerate(filled) if s not in filled[:i]]


class Peers(_Model):
    """peers.toml."""

    library: dict[str, Library]
    penstock: Ours
    ceiling: Beside
    instead: dict[str, Beside]
    program: dict[str, ProgramSpec]
    grid: dict[str, Grid]


class Best(_Model):
    """The best setting of a library in a family at a number of ranks, and what it was found by."""

    family: str
    access: Access
    ranks: int
    library: str
    setting: Setting
    ratio_to_default: float
    found: str
    machine: str


class Bests(_Model):
    """best.toml."""

    best: list[Best] = []

    def of(self, family: str, access: Access, ranks: int, library: str) -> Setting | None:
        """None where no search was made."""
        for one in self.best:
            if (one.family, one.access, one.ranks, one.library) == (family, access, ranks, library):
                return one.setting
        return None


@dataclass(frozen=True)
class Specification:
    """The three files, and what the page of results begins with."""

    cells: Cells
    peers: Peers
    bests: Bests
    opening: str

    def family(self, cell: Cell) -> str:
        """The family that a cell's work belongs to."""
        return self.cells.work[cell.work].family

    @property
    def families(self) -> list[str]:
        """In the order of cells.toml."""
        return list(dict.fromkeys(work.family for work in self.cells.work.values()))


M = TypeVar("M", bound=BaseModel)


def read(path: Path, model: type[M]) -> M:
    """Read one file.

    Raises
    ------
    ArgumentError
        If it cannot be read or a key is wrong.
    """
    try:
        return model.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ArgumentError(
            f"{path.name}: {key}: {first['msg']}, got {first['input']!r}"
        ) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error}") from error


def load(folder: Path = HERE) -> Specification:
    """Read the files of a folder, and see that what one names is in the other.

    A file that the folder has not is that of ``bench/peers``; so are the works where its
    ``cells.toml`` has none.
    """
    cells = read(folder / "cells.toml", Cells)
    if not cells.work:
        cells = cells.model_copy(update={"work": read(HERE / "cells.toml", Cells).work})
    spec = Specification(
        cells,
        read(_own_or_shared(folder, "peers.toml"), Peers),
        read(_own_or_shared(folder, "best.toml"), Bests),
        _text(_own_or_shared(folder, "opening.md")),
    )
    _check(spec)
    return spec


def _own_or_shared(folder: Path, name: str) -> Path:
    own = folder / name
    return own if own.exists() else HERE / name


def _check(spec: Specification) -> None:
    works, peers = spec.cells.work, spec.peers
    for cell in spec.cells.cell:
        _known(f"cells.toml: work of {cell.name}", cell.work, works)
        _known(f"cells.toml: ranks of {cell.name}", cell.ranks, works[cell.work].bufsize)
    for name, work in works.items():
        _known(f"cells.toml: program of {name}", work.program, peers.program)
        for one in work.beside:
            _known(f"cells.toml: beside of {name}", one, peers.instead)
    for library in peers.library.values():
        _known(f"peers.toml: grid of {library.title}", library.grid, peers.grid)
    others: list[Ours | Beside] = [peers.penstock, peers.ceiling, *peers.instead.values()]
    for other in others:
        for where in other.on.values():
            _known(f"peers.toml: on of {other.title}", where, peers.library)
    names = [cell.name for cell in spec.cells.cell]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ArgumentError(f"cells.toml: there are two cells {', '.join(twice)}")
    for conclusion in spec.cells.conclusion:
        if wrong := sorted(set(conclusion.of) - set(Cell.model_fields)):
            raise ArgumentError(f"cells.toml: conclusion {conclusion.name}: no cell has {wrong}")


def _known(what: str, name: object, among: dict[Any, Any]) -> None:
    if name not in among:
        raise ArgumentError(f"{what} must be one of {', '.join(map(str, among))}, got {name}")
