"""What the papers conclude, and the predicates that decide it: docs/reproductions/conclusions.toml.

The vocabulary is closed: each predicate is a class here and a function of predicates.py. A cell,
variant or measure that an experiment does not have is an error, so that no claim is about nothing.
"""

from __future__ import annotations

import fnmatch
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from penstock.errors import ArgumentError
from penstock.reproduce import PAPERS
from penstock.reproduce import experiment as experiments
from penstock.reproduce.measures import MEASURES
from penstock.reproduce.needs import NEEDS
from penstock.reproduce.simulated import Curve
from penstock.strict import Strict, hint, read, validated

NAME = "conclusions.toml"
Patterns = list[str]
Role = Literal["nfs", "parallel", "raw"]
Found = frozenset[tuple[str, str]]


class Claim(Strict, ABC):
    """One predicate of a conclusion."""

    @abstractmethod
    def names(self) -> list[tuple[list[str], list[str]]]:
        """Patterns of cells, with patterns of variants that each of these cells must have."""

    @abstractmethod
    def measures_used(self) -> list[str]:
        """What is read off the samples."""

    def roles(self) -> list[str]:
        """The file systems that are compared with each other; none where one is enough."""
        return []


class Pair(Claim):
    """Of the best of ``of`` and the best of ``over``, paired by block, the ratio of a measure.

    ``over_cells``, one for each of ``cells``, is where ``over`` was measured if elsewhere; ``on``
    and ``over_on`` are file systems of one session.
    """

    cells: Patterns = Field(min_length=1)
    over_cells: list[str] = Field(default=[])
    of: Patterns = Field(min_length=1)
    over: Patterns = Field(min_length=1)
    measure: str = "application"
    over_measure: str = ""
    on: Role | Literal[""] = ""
    over_on: Role | Literal[""] = ""
    where: Literal["every", "most"] = Field(default="every", alias="in")

    @model_validator(mode="after")
    def _cells_pair_up(self) -> Pair:
        if self.over_cells and len(self.over_cells) != len(self.cells):
            raise ValueError(f"over_cells must be {len(self.cells)}, one for each of cells")
        if bool(self.on) != bool(self.over_on) or (self.on and self.on == self.over_on):
            raise ValueError("give on and over_on, two file systems, or neither")
        return self

    def roles(self) -> list[str]:
        """Both sides."""
        return [self.on, self.over_on] if self.on else []

    def names(self) -> list[tuple[list[str], list[str]]]:
        """The cells of both sides."""
        over_cells = self.over_cells or self.cells
        return [(self.cells, [one]) for one in self.of] + [(over_cells, [o]) for o in self.over]

    def measures_used(self) -> list[str]:
        """Those of both sides."""
        return [self.measure, self.over_measure or self.measure]


class Faster(Pair):
    """The ratio is at least 1 + effect."""

    predicate: Literal["faster"]


class NotFaster(Pair):
    """The ratio is at most 1 + effect."""

    predicate: Literal["not_faster"]


class NotSlower(Pair):
    """The ratio is at least 1 / (1 + effect)."""

    predicate: Literal["not_slower"]


class Same(Pair):
    """The ratio is within the effect of 1."""

    predicate: Literal["same"]


class WithinRatio(Pair):
    """The ratio is from ``least`` to ``most``."""

    predicate: Literal["ratio"]
    least: float = Field(gt=0)
    most: float = Field(gt=0)

    @model_validator(mode="after")
    def _is_a_range(self) -> WithinRatio:
        if self.least >= self.most:
            raise ValueError(f"least must be below most ({self.most:g}), got {self.least:g}")
        return self


class Trend(Claim):
    """By what factor a measure changes from the first to the last, by a line through all."""

    of: Patterns = Field(default=[])
    along: Patterns = Field(default=[])  # variants of one cell
    cells: Patterns = Field(default=[])
    along_cells: list[str] = Field(default=[])  # cells that have the variant
    measure: str = "application"

    @model_validator(mode="after")
    def _goes_along_one_thing(self) -> Trend:
        by_cell, by_variant = bool(self.along_cells), bool(self.along)
        if by_cell == by_variant:
            raise ValueError("give along (variants, in cells) or along_cells (cells, of a variant)")
        if by_cell and (not self.of or self.cells):
            raise ValueError("along_cells needs of, and no cells")
        if by_variant and (self.of or not self.cells):
            raise ValueError("along needs cells, and no of")
        if len(self.along_cells or self.along) < 2:
            raise ValueError("a trend needs at least two points")
        return self

    def names(self) -> list[tuple[list[str], list[str]]]:
        """Each point."""
        if self.along_cells:
            return [([cell], [one]) for cell in self.along_cells for one in self.of]
        return [(self.cells, [one]) for one in self.along]

    def measures_used(self) -> list[str]:
        """One."""
        return [self.measure]


class Rising(Trend):
    """The factor is at least 1 + effect."""

    predicate: Literal["rising"]


class NotRising(Trend):
    """The factor is at most 1 + effect."""

    predicate: Literal["not_rising"]


class Falling(Trend):
    """The factor is at most 1 / (1 + effect)."""

    predicate: Literal["falling"]


class Flat(Trend):
    """The factor is within the effect of 1."""

    predicate: Literal["flat"]


class ScalesBetter(Claim):
    """From the first cell to the last ``of`` gains at least 1 + effect more than ``over``.

    ``on``, one for each of the cells, are file systems of one session.
    """

    predicate: Literal["scales_better"]
    of: Patterns = Field(min_length=1)
    over: Patterns = Field(min_length=1)
    along_cells: list[str] = Field(min_length=2)
    over_cells: list[str] = Field(default=[])
    on: list[Role] = Field(default=[])
    measure: str = "application"

    @model_validator(mode="after")
    def _is_somewhere(self) -> ScalesBetter:
        lengths = {len(self.along_cells), len(self.over_cells or self.along_cells), len(self.on)}
        if self.on and len(lengths) != 1:
            raise ValueError("on, along_cells and over_cells must be as many")
        return self

    def roles(self) -> list[str]:
        """Each once."""
        return list(dict.fromkeys(self.on))

    def names(self) -> list[tuple[list[str], list[str]]]:
        """The points of both."""
        over_cells = self.over_cells or self.along_cells
        return [([c], [o]) for c in self.along_cells for o in self.of] + [
            ([c], [o]) for c in over_cells for o in self.over
        ]

    def measures_used(self) -> list[str]:
        """One."""
        return [self.measure]


class NoneBest(Claim):
    """Each of ``among`` is slower than another, by the effect, in some cell, of ``on``."""

    predicate: Literal["none_best"]
    cells: Patterns = Field(min_length=1)
    among: Patterns = Field(min_length=2)
    on: list[Role] = Field(default=[])
    measure: str = "application"

    def names(self) -> list[tuple[list[str], list[str]]]:
        """Each of them."""
        return [(self.cells, [one]) for one in self.among]

    def roles(self) -> list[str]:
        """Each once."""
        return list(dict.fromkeys(self.on))

    def measures_used(self) -> list[str]:
        """One."""
        return [self.measure]


class SpreadAtLeast(Claim):
    """In some variant the slowest sample takes (1 + least) times as long as the fastest."""

    predicate: Literal["spread_at_least"]
    cells: Patterns = Field(min_length=1)
    of: Patterns = Field(min_length=1)
    least: float = Field(gt=0)
    measure: str = "application"

    def names(self) -> list[tuple[list[str], list[str]]]:
        """What is looked at."""
        return [(self.cells, [one]) for one in self.of]

    def measures_used(self) -> list[str]:
        """One."""
        return [self.measure]


class VariesLess(Claim):
    """The spread of ``of`` is at most 1 / (1 + effect) of that of ``over``, over the cells.

    Of each cell the medians of the variants' (max - min) / median.
    """

    predicate: Literal["varies_less"]
    cells: Patterns = Field(min_length=1)
    of: Patterns = Field(min_length=1)
    over: Patterns = Field(min_length=1)
    measure: str = "application"

    def names(self) -> list[tuple[list[str], list[str]]]:
        """Both sides."""
        return [(self.cells, [one]) for one in (*self.of, *self.over)]

    def measures_used(self) -> list[str]:
        """One."""
        return [self.measure]


class Equals(Claim):
    """In each cell every sample of the measure is the number expected."""

    predicate: Literal["equals"]
    of: Patterns = Field(min_length=1)
    measure: str
    expected: dict[str, float] = Field(min_length=1)

    def names(self) -> list[tuple[list[str], list[str]]]:
        """Each cell of the table."""
        return [([cell], self.of) for cell in self.expected]

    def measures_used(self) -> list[str]:
        """One."""
        return [self.measure]


class Simulated(Claim):
    """A curve of gotwals-1995's simulator at ``at`` times the memory is from ``least`` to ``most``.

    With ``over`` the ratio to that curve, at ``over_at`` times the memory if elsewhere. Asked of
    every block size, which the paper does not give.
    """

    predicate: Literal["simulated"]
    of: Curve
    at: float = Field(gt=0)
    over: Curve | None = None
    over_at: float | None = Field(default=None, gt=0)
    least: float = Field(default=0.0, ge=0)
    most: float = Field(default=math.inf, gt=0)

    @model_validator(mode="after")
    def _is_a_range(self) -> Simulated:
        if self.least >= self.most:
            raise ValueError(f"least must be below most ({self.most:g}), got {self.least:g}")
        if self.over_at is not None and self.over is None:
            raise ValueError("over_at needs over")
        return self

    def names(self) -> list[tuple[list[str], list[str]]]:
        """Nothing that is measured."""
        return []

    def measures_used(self) -> list[str]:
        """None."""
        return []


PREDICATES: dict[str, type[Claim]] = {
    "faster": Faster,
    "not_faster": NotFaster,
    "not_slower": NotSlower,
    "same": Same,
    "ratio": WithinRatio,
    "rising": Rising,
    "not_rising": NotRising,
    "falling": Falling,
    "flat": Flat,
    "scales_better": ScalesBetter,
    "none_best": NoneBest,
    "spread_at_least": SpreadAtLeast,
    "varies_less": VariesLess,
    "equals": Equals,
    "simulated": Simulated,
}


class Written(Strict):
    """A conclusion as the file has it, its claims unread."""

    id: str
    section: str
    says: str
    numbers: str
    effect: float = Field(gt=0, lt=1)
    samples: int = Field(ge=1)
    needs: list[str] = Field(default=[])
    untestable: str = ""
    claim: list[dict[str, Any]] = Field(default=[])

    @model_validator(mode="after")
    def _can_be_decided_or_says_why_not(self) -> Written:
        if bool(self.untestable) == bool(self.claim):
            raise ValueError("give claims, or untestable with the reason: one of the two")
        for name in self.needs:
            if name not in NEEDS:
                raise ValueError(f"needs: there is no {name}{hint(name, list(NEEDS))}")
        return self


class Conclusion(Strict):
    """A conclusion of a paper. ``paper`` is what its id begins with."""

    id: str
    paper: str
    section: str
    says: str
    numbers: str
    effect: float
    samples: int
    needs: list[str]
    untestable: str
    claims: list[Claim]


class _File(Strict):
    conclusion: list[dict[str, Any]] = Field(min_length=1)


def default_path() -> Path:
    """Beside this package where it is installed, else in the documents of the checkout.

    Raises
    ------
    ArgumentError
        If it is in neither.
    """
    here = Path(__file__).resolve().parent
    places = [here / NAME, here.parents[2] / "docs" / "reproductions" / NAME]
    for place in places:
        if place.is_file():
            return place
    raise ArgumentError(f"{NAME} is not installed; looked in {', '.join(map(str, places))}")


def load(path: Path | None = None) -> list[Conclusion]:
    """Every conclusion, checked against the experiments.

    Raises
    ------
    ArgumentError
        Naming the file, the conclusion's id and the value that is wrong.
    """
    path = path or default_path()
    file = validated(_File, read(path), str(path))
    found = [_conclusion(values, i, path) for i, values in enumerate(file.conclusion, start=1)]
    ids = [one.id for one in found]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ArgumentError(f"{path}: {twice[0]} is there twice: give each conclusion its own id")
    return found


def of_paper(paper: str, path: Path | None = None) -> list[Conclusion]:
    """Those of a paper."""
    return [one for one in load(path) if one.paper == paper]


def _conclusion(values: dict[str, Any], number: int, path: Path) -> Conclusion:
    name = values.get("id")
    where = f"{path}: {name if isinstance(name, str) else f'conclusion {number}'}"
    written = validated(Written, values, where)
    paper = written.id.partition("-")[0]
    if paper not in PAPERS:
        known = hint(paper, list(PAPERS))
        raise ArgumentError(f"{where}: id must begin with a paper, got {paper}{known}")
    claims = [
        _claim(one, f"{where}: claim {i}", paper) for i, one in enumerate(written.claim, start=1)
    ]
    kept = {k: v for k, v in written.model_dump().items() if k != "claim"}
    return Conclusion.model_construct(**kept, paper=paper, claims=claims)


def _claim(values: dict[str, Any], where: str, paper: str) -> Claim:
    predicate = values.get("predicate")
    if not isinstance(predicate, str) or predicate not in PREDICATES:
        known = hint(str(predicate), list(PREDICATES))
        raise ArgumentError(f"{where}: there is no predicate {predicate}{known}")
    claim = validated(PREDICATES[predicate], values, where)
    for measure in claim.measures_used():
        if measure not in MEASURES:
            known = hint(measure, list(MEASURES))
            raise ArgumentError(f"{where}: there is no measure {measure}{known}")
    for cells, variants in claim.names():
        _check_names(cells, variants, paper, where)
    return claim


def _check_names(cells: Sequence[str], variants: Sequence[str], paper: str, where: str) -> None:
    """Every pattern must match something that some size of the experiment has."""
    pairs = experiments.pairs(paper)
    all_cells = sorted({cell for cell, _ in pairs})
    for cell in cells:
        own = {v for c, v in pairs if fnmatch.fnmatchcase(c, cell)}
        if not own:
            raise ArgumentError(f"{where}: {paper} has no cell {cell}{hint(cell, all_cells)}")
    reached = sorted({v for c, v in pairs if any(fnmatch.fnmatchcase(c, one) for one in cells)})
    for variant in variants:
        if not any(fnmatch.fnmatchcase(v, variant) for v in reached):
            raise ArgumentError(
                f"{where}: {paper} has no variant {variant} in {', '.join(cells)}"
                f"{hint(variant, reached)}"
            )
