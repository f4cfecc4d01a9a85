"""Laws T(n, p) = K(p) n of barro-2002: K = k/p, k/log2 p, or k where nothing scales.

By least squares over the fewest seconds of each cell, as in the paper; n in MB, T in s. Cells whose
samples are fewer than two processes are left out, since log2 1 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reproduce.evidence import Evidence
from penstock.reproduce.experiment import FitSpec
from penstock.reproduce.measures import seconds

FORMS: dict[str, Callable[[float], float]] = {
    "k/p": lambda p: 1.0 / p,
    "k/log2 p": lambda p: 1.0 / math.log2(p),
    "k": lambda _: 1.0,
}


@dataclass(frozen=True)
class Point:
    """The fewest seconds of a cell: so many MB by so many processes."""

    megabytes: float
    processes: int
    seconds: float


@dataclass(frozen=True)
class Law:
    """A fitted form, and the root of the mean squared error, in s."""

    form: str
    k: float
    error_s: float

    @property
    def text(self) -> str:
        """``0.0123/log2 p``"""
        return f"{self.k:.4g}{self.form[1:]}"


def fit(points: Sequence[Point]) -> list[Law]:
    """Every form, the best first. Empty for fewer than two points."""
    usable = [p for p in points if p.processes >= 2]
    if len(usable) < 2:
        return []
    return sorted((_law(form, usable) for form in FORMS), key=lambda law: law.error_s)


def _law(form: str, points: Sequence[Point]) -> Law:
    shape = [p.megabytes * FORMS[form](p.processes) for p in points]
    k = sum(p.seconds * x for p, x in zip(points, shape, strict=True)) / sum(x * x for x in shape)
    squares = [(p.seconds - k * x) ** 2 for p, x in zip(points, shape, strict=True)]
    return Law(form, k, math.sqrt(sum(squares) / len(squares)))


def points_of(evidence: Evidence, spec: FitSpec) -> list[Point]:
    """A point for each cell of a law."""
    found = []
    for cell in evidence.cells([spec.cells]):
        samples = evidence.of_variant(cell, spec.variant)
        timed = [(t, s.result) for s in samples if (t := seconds(s)) is not None and s.result]
        if timed:
            least_s, result = min(timed, key=lambda one: one[0])
            found.append(Point(result.bytes / 1e6, result.workers, least_s))
    return found
