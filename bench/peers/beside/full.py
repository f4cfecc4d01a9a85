"""The cells beyond the gate set: the whole product, drawn from by a seeded design.

Every draw takes, among the cells that are left, the one whose levels (work, ranks, access, end,
regime) were drawn least so far; ties are broken by the seed. So any number of cells covers every
level about equally, and the first n of n + 1 are the same.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import get_args

from beside.spec import Access, Cell, End, Regime, Specification

Level = tuple[str, object]


def product(spec: Specification) -> list[Cell]:
    """Every cell that there could be."""
    return [
        Cell(work=name, ranks=ranks, access=access, end=end, regime=regime, peers="both")
        for name, work in spec.cells.work.items()
        for ranks, access, end, regime in itertools.product(
            work.bufsize, get_args(Access), get_args(End), get_args(Regime)
        )
    ]


def draw(spec: Specification, number: int, seed: int) -> list[Cell]:
    """``number`` cells that are not in the gate set, or all that there are."""
    named = {cell.name for cell in spec.cells.cell}
    rest = [cell for cell in product(spec) if cell.name not in named]
    random.Random(seed).shuffle(rest)
    seen: Counter[Level] = Counter()
    chosen: list[Cell] = []
    while rest and len(chosen) < number:
        best = min(rest, key=lambda cell: sum(seen[level] for level in _levels(cell)))
        rest.remove(best)
        chosen.append(best)
        seen.update(_levels(best))
    return chosen


def _levels(cell: Cell) -> Sequence[Level]:
    names = ("work", "ranks", "access", "end", "regime")
    return [(name, getattr(cell, name)) for name in names]
