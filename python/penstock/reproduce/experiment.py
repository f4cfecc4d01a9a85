"""A paper's experiment: what is measured in each size, and the tables that the paper made of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from penstock.bench import matrix as matrices
from penstock.bench.cases import Case
from penstock.bench.matrix import Matrix
from penstock.errors import ArgumentError
from penstock.reproduce import PAPERS, SIZES
from penstock.reproduce.measures import MEASURES
from penstock.reproduce.strict import Strict, hint, read, validated

Unit = Literal["s", "MB/s", "MiB", "calls"]


class Budgeted(Strict):
    """What a size is made of where minutes are given: the factor, and what the matrix gets."""

    scale: str
    matrix: dict[str, Any] = Field(default={})


class Size(Strict):
    """One size: by what it differs from the paper, how long it takes, what the matrix gets."""

    scale: str
    takes: str
    matrix: dict[str, Any] = Field(default={})
    budgeted: Budgeted | None = None

    def scale_of(self, budgeted: bool) -> str:
        """By what it differs from the paper, with or without a budget."""
        return self.budgeted.scale if budgeted and self.budgeted else self.scale

    def matrix_of(self, budgeted: bool) -> dict[str, Any]:
        """What the matrix gets."""
        if not budgeted or self.budgeted is None:
            return self.matrix
        more = self.budgeted.matrix
        defaults = {**self.matrix.get("defaults", {}), **more.get("defaults", {})}
        return {**self.matrix, **more, "defaults": defaults}


class TableSpec(Strict):
    """A table in the paper's layout.

    ``rows`` are labels with cells; ``columns`` labels with patterns of variants, of which the best
    is shown, "" where nothing is measured. ``paper`` are the paper's entries, if it prints any.
    ``marks`` name parameters of the best variant, with the letter that is put behind.
    """

    title: str
    unit: Unit
    measure: str = "application"
    measures: list[str] = Field(default=[])
    marks: dict[str, str] = Field(default={})
    rows: list[tuple[str, str]]
    columns: list[tuple[str, str]]
    paper: list[list[str]] = Field(default=[])

    @model_validator(mode="after")
    def _has_its_shape(self) -> TableSpec:
        if self.paper and [len(r) for r in self.paper] != [len(self.columns)] * len(self.rows):
            raise ValueError(
                f"paper must have {len(self.rows)} rows of {len(self.columns)} entries"
            )
        if self.measures and len(self.measures) != len(self.columns):
            raise ValueError(f"measures must be one for each of {len(self.columns)} columns")
        for name in (self.measure, *self.measures):
            if name not in MEASURES:
                raise ValueError(f"there is no measure {name}{hint(name, list(MEASURES))}")
        return self

    def measure_of(self, column: int) -> str:
        """What a column shows."""
        return self.measures[column] if self.measures else self.measure


class FitSpec(Strict):
    """A law T = K(p) n that is fitted to a variant, with the paper's by file system."""

    law: str
    cells: str
    variant: str
    paper: dict[str, str] = Field(default={})


class SeriesSpec(Strict):
    """The rate of each successive stretch of a run's calls."""

    title: str
    cell: str
    variants: list[str]
    rows: int = Field(default=16, ge=2)


class Experiment(Strict):
    """A file of ``papers/``."""

    title: str
    setting: str
    program: Literal["measure", "btio"] = "measure"
    notes: list[str] = Field(default=[])
    matrix: dict[str, Any]
    size: dict[Literal["quick", "full"], Size]
    table: list[TableSpec] = Field(default=[])
    fit: list[FitSpec] = Field(default=[])
    series: list[SeriesSpec] = Field(default=[])

    def sweep(self, size: str, where: Path, budgeted: bool = False) -> Matrix:
        """The matrix of a size: the paper's, and what the size says otherwise."""
        more = self.size[_size(size)].matrix_of(budgeted)
        values = {**self.matrix, **more}
        values["defaults"] = {**self.matrix.get("defaults", {}), **more.get("defaults", {})}
        return matrices.parse(values, where)

    def cases(self, size: str, where: Path, budgeted: bool = False) -> list[Case]:
        """Every variant of every cell of a size."""
        return matrices.expand(self.sweep(size, where, budgeted), str(where))


def _size(name: str) -> Literal["quick", "full"]:
    if name == "quick":
        return "quick"
    if name == "full":
        return "full"
    raise ArgumentError(f"the size must be quick or full, got {name}")


def path_of(name: str) -> Path:
    """The file of a paper.

    Raises
    ------
    ArgumentError
        If there is no such paper; the message has the nearest.
    """
    if name not in PAPERS:
        raise ArgumentError(f"there is no paper {name}{hint(name, list(PAPERS))}")
    return Path(__file__).parent / "papers" / f"{name}.toml"


@cache
def load(name: str) -> Experiment:
    """A paper's experiment."""
    path = path_of(name)
    return validated(Experiment, read(path), str(path))


@cache
def pairs(name: str) -> frozenset[tuple[str, str]]:
    """Cell and variant of everything that the experiment has in any size."""
    experiment = load(name)
    cases = [
        case
        for size in SIZES
        for budgeted in (False, True)
        for case in experiment.cases(size, path_of(name), budgeted)
    ]
    return frozenset((case.cell, case.variant) for case in cases)
