"""Which two parameters of a session tell most about the rates, and the maps over them.

A parameter counts if it is one of the cells (the same for all that is compared in a cell) and has
several values; the variant is one more. How much it tells is the share of the variance of the
logarithms of the median rates that its values explain alone, corrected for their number (the
adjusted coefficient of determination).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from penstock import _core
from penstock.bench.sample import Header, RateKind
from penstock.bench.summary import CellSummary, RateSummary
from penstock.errors import PenstockError
from penstock.report.figures.heat import Map, Square

VARIANT, CELL = "variant", "cell"
_MOST_ROWS, _MOST_COLUMNS = 32, 16
_LEAST_FULL = 2 / 3  # of the squares of a map


@dataclass(frozen=True)
class Point:
    """A variant of a cell: its parameters and its rate."""

    values: Mapping[str, str]
    rate: RateSummary

    @property
    def level(self) -> float:
        """What variance is of."""
        return math.log(self.rate.median_bytes_per_s)


@dataclass(frozen=True)
class Told:
    """A parameter and the share of the variance that it explains alone."""

    name: str
    share: float


def of_cells(header: Header) -> dict[str, dict[str, str]]:
    """By cell: its parameters, spelt as the plan does. Those of variants and lists are left out."""
    seen: dict[str, dict[str, set[str]]] = {}
    for one in measurements(header):
        own = seen.setdefault(one["cell"], {})
        for name, value in _scalars(one.get("parameters", {})).items():
            own.setdefault(name, set()).add(value)
    return {
        cell: {n: next(iter(v)) for n, v in own.items() if len(v) == 1}
        for cell, own in seen.items()
    }


def measurements(header: Header) -> list[dict[str, Any]]:
    """What was planned, as far as it names a cell and a variant."""
    planned = header.plan.get("measurements")
    return [
        one
        for one in (planned if isinstance(planned, list) else [])
        if isinstance(one, dict) and all(isinstance(one.get(k), str) for k in (CELL, VARIANT))
    ]


def _scalars(parameters: Any) -> dict[str, str]:
    if not isinstance(parameters, dict):
        return {}
    inner = parameters.get("parameters")
    both = {**parameters, **(inner if isinstance(inner, dict) else {})}
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in both.items()
        if isinstance(value, str | int | float)
    }


def points(cells: Sequence[CellSummary], header: Header, kind: RateKind) -> list[Point]:
    """Every valid variant of every cell that has such a rate."""
    known = of_cells(header)
    return [
        Point({**known.get(c.cell, {}), CELL: c.cell, VARIANT: v.variant}, rate)
        for c in cells
        for v in c.writing
        if not v.invalid and (rate := v.rate(kind)) is not None
    ]


def telling(points: Sequence[Point]) -> list[Told]:
    """The parameters with several values, by what they explain, most first."""
    names = dict.fromkeys(n for p in points for n in p.values if n != CELL)
    common = [n for n in names if all(n in p.values for p in points)]
    several = [n for n in common if len({p.values[n] for p in points}) > 1]
    told = [Told(n, _explained(points, n)) for n in several]
    return sorted(told, key=lambda t: -t.share)


def _explained(points: Sequence[Point], name: str) -> float:
    groups: dict[str, list[float]] = {}
    for p in points:
        groups.setdefault(p.values[name], []).append(p.level)
    levels = [p.level for p in points]
    total, within = _squares(levels), sum(_squares(g) for g in groups.values())
    free = len(levels) - len(groups)
    if total <= 0 or free <= 0:
        return 0.0
    return max(0.0, 1 - (within / free) / (total / (len(levels) - 1)))


def _squares(levels: Iterable[float]) -> float:
    own = list(levels)
    mean = sum(own) / len(own)
    return sum((level - mean) ** 2 for level in own)


def two(points: Sequence[Point]) -> tuple[str, str] | None:
    """The two most telling that span a map: (rows, columns). None where there are none."""
    names = [t.name for t in telling(points)]
    cells = {p.values[CELL] for p in points}
    if names == [VARIANT] and len(cells) > 1:
        names.append(CELL)
    ranked = sorted(combinations(range(len(names)), 2), key=sum)
    pairs = [(names[i], names[j]) for i, j in ranked if _spans(points, names[i], names[j])]
    return _laid_out(points, pairs[0]) if pairs else None


def _spans(points: Sequence[Point], a: str, b: str) -> bool:
    """Whether both vary for themselves, fill a map, and have few enough values to be read."""
    first, second = ({p.values[n] for p in points} for n in (a, b))
    both = {(p.values[a], p.values[b]) for p in points}
    fewer, more = sorted((len(first), len(second)))
    is_full = len(both) >= _LEAST_FULL * fewer * more
    return is_full and len(both) > more and fewer <= _MOST_COLUMNS and more <= _MOST_ROWS


def _laid_out(points: Sequence[Point], pair: tuple[str, str]) -> tuple[str, str]:
    """The one of more values as rows."""
    counts = {n: len({p.values[n] for p in points}) for n in pair}
    rows, columns = sorted(pair, key=lambda n: (-counts[n], n != VARIANT))
    return rows, columns


def mapped(points: Sequence[Point], rows: str, columns: str) -> Map:
    """The points sorted into squares."""
    squares: dict[tuple[str, str], list[Point]] = {}
    for p in points:
        squares.setdefault((p.values[rows], p.values[columns]), []).append(p)
    return Map(
        rows,
        columns,
        _ordered(p.values[rows] for p in points),
        _ordered(p.values[columns] for p in points),
        [
            Square(
                row,
                column,
                tuple(p.rate for p in own),
                tuple(f"{p.values[VARIANT]} in {p.values[CELL]}" for p in own),
            )
            for (row, column), own in squares.items()
        ],
    )


def _ordered(values: Iterable[str]) -> list[str]:
    """By size where all are numbers or sizes, else as they came."""
    there = list(dict.fromkeys(values))
    for read in (float, _core.parse_size):
        numbers = [_number(read, v) for v in there]
        if None not in numbers:
            return sorted(there, key=lambda v: _number(read, v) or 0.0)
    return there


def _number(read: Callable[[str], float], value: str) -> float | None:
    try:
        return read(value)
    except (ValueError, PenstockError):
        return None
