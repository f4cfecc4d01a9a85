"""Measured times of one operation, and the least time of each of its cells.

barro-2002 fits the minimum of many repetitions, after timing outliers "were taken into account".
The minimum is not moved by samples that took too long; it is by one that was too short, such as a
read that a cache answered. So a sample below half of its cell's median is left out, and reported.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from penstock.errors import ArgumentError

TOO_SHORT = 0.5  # of the cell's median
LEAST_TO_JUDGE = 4  # with fewer samples of a cell a median says nothing about one of them


@dataclass(frozen=True, order=True)
class Sample:
    """One repetition: so many bytes by so many processes in so many seconds."""

    n_bytes: float
    processes: int
    seconds: float


@dataclass(frozen=True)
class Minima:
    """The least time of each (n, p), ascending, and the samples that were left out as too short."""

    cells: tuple[Sample, ...]
    left_out: tuple[Sample, ...]


def minima(samples: Iterable[Sample]) -> Minima:
    """Reduce samples to the least time of each cell.

    Raises
    ------
    ArgumentError
        If there is no sample, or one has a size, a number of processes or a time that is not
        positive.
    """
    by_cell: dict[tuple[float, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        _check(sample)
        by_cell[sample.n_bytes, sample.processes].append(sample)
    if not by_cell:
        raise ArgumentError("a fit needs samples, got none")
    cells, left_out = [], []
    for _, cell in sorted(by_cell.items()):
        short = _too_short(cell)
        cells.append(min((s for s in cell if s not in short), key=lambda s: s.seconds))
        left_out += short
    return Minima(tuple(cells), tuple(left_out))


def _check(sample: Sample) -> None:
    values = (sample.n_bytes, sample.processes, sample.seconds)
    if not all(math.isfinite(v) and v > 0 for v in values):
        raise ArgumentError(f"n_bytes, processes and seconds must be positive, got {sample}")


def _too_short(cell: list[Sample]) -> list[Sample]:
    if len(cell) < LEAST_TO_JUDGE:
        return []
    least = TOO_SHORT * median(s.seconds for s in cell)
    return [s for s in cell if s.seconds < least]
