"""A report as a value: the verdict, sections of text, figures and tables, warnings and commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.report.figures.frame import Figure

# How sure a verdict is. "single run": nothing was compared, so there is nothing to be sure of.
Sure = Literal["shown", "not told apart", "mixed", "not compared", "single run", "wrong"]


@dataclass(frozen=True)
class Verdict:
    """Which, how much faster, how sure: a sentence, and those that limit it."""

    headline: str
    sure: Sure
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows of plain text under headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


@dataclass(frozen=True)
class Drawn:
    """A figure and the numbers in it."""

    figure: Figure
    numbers: Table


@dataclass(frozen=True)
class Section:
    """A part of the report. ``name`` is of its link; one with nothing to show says why in text."""

    name: str
    title: str
    text: tuple[str, ...] = ()
    parts: tuple[Drawn | Table, ...] = ()


@dataclass(frozen=True)
class Caution:
    """What limits what the report says, and the remedy; grave: wrong bytes, failures."""

    text: str
    remedy: str = ""
    grave: bool = False


@dataclass(frozen=True)
class Command:
    """A command line, and what it repeats."""

    what: str
    line: str


@dataclass(frozen=True)
class Report:
    """All of it, in the order in which it is read."""

    title: str
    subtitle: str
    verdict: Verdict
    sections: tuple[Section, ...]
    cautions: tuple[Caution, ...] = ()
    commands: tuple[Command, ...] = ()

    @property
    def figures(self) -> list[Figure]:
        """Every figure, in order; their names differ."""
        return [p.figure for s in self.sections for p in s.parts if isinstance(p, Drawn)]
