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
from penstock.strict import Strict, hint, read, validated

Unit = Literal["s", "MB/s", "MiB", "calls"]


class Size(Strict):
    """One size: by what it differs from the paper, how long it takes, what the matrix gets."""

    scale: str
    takes: str
    matrix: dict[str, Any] = Field(default={})


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
    size: dict[Literal["quick", "full", "paper"], Size]
    table: list[TableSpec] = Field(default=[])
    fit: list[FitSpec] = Field(default=[])
    series: list[SeriesSpec] = Field(default=[])

    def sizes(self) -> list[str]:
        """Those that there are: where full is all of the paper nothing is left for paper."""
        return [name for name in SIZES if name in self.size]

    def in_size(self, name: str) -> Size:
        """One of them.

        Raises
        ------
        ArgumentError
            If there is no such size; the message has those that there are.
        """
        for known, size in self.size.items():
            if known == name:
                return size
        raise ArgumentError(f"--size must be {' or '.join(self.sizes())}, got {name}")

    def sweep(self, size: str, where: Path) -> Matrix:
        """The matrix of a size: the paper's, and what the size says otherwise."""
        more = self.in_size(size).matrix
        values = {**self.matrix, **more}
        values["defaults"] = {**self.matrix.get("defaults", {}), **more.get("defaults", {})}
        return matrices.parse(values, where)

    def cases(self, size: str, where: Path) -> list[Case]:
        """Every variant of every cell of a size."""
        return matrices.expand(self.sweep(size, where), str(where))


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
    cases = [case for size in experiment.sizes() for case in experiment.cases(size, path_of(name))]
    return frozenset((case.cell, case.variant) for case in cases)
