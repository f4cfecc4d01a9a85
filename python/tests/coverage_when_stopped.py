"""How often the median's interval covers the median, in sessions that stop when it is narrow.

    PYTHONPATH=python .venv/bin/python python/tests/coverage_when_stopped.py 4000

docs/statistics.md has its table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.bench.statistics import Stopping, median_interval

Samples = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Samples]


@dataclass(frozen=True)
class Coverage:
    """Parts of the sessions: whose interval covers, that converged, and of these whose covers."""

    covered: float
    converged: float
    of_converged: float


def normal(percent: float) -> Draw:
    """Around 100."""
    return lambda draws, n: draws.normal(100.0, percent, n)


def two_modes(draws: np.random.Generator, n: int) -> Samples:
    """At 100 in 55 of 100, else at 75."""
    fast = draws.random(n) < 0.55
    return np.where(fast, draws.normal(100.0, 2.0, n), draws.normal(75.0, 2.0, n))


NOISES: Mapping[str, Draw] = {
    "normal, 3 %": normal(3.0),
    "normal, 5 %": normal(5.0),
    "normal, 8 %": normal(8.0),
    "normal, 10 %": normal(10.0),
    "normal, 12 %": normal(12.0),
    "normal, 15 %": normal(15.0),
    "two modes, 55/45": two_modes,
}


def stopped(samples: Samples, rule: Stopping) -> tuple[Samples, bool]:
    """The samples that a session takes of these, and whether it converged."""
    n = 1
    while (decided := rule.decide(samples[:n])) == "go on":
        n += 1
    return samples[:n], decided == "converged"


def coverage(draw: Draw, trials: int, seed: int = 1) -> Coverage:
    """Of so many sessions by the default rule."""
    rule, draws = Stopping(), np.random.default_rng(seed)
    median = float(np.median(draw(draws, 1_000_000)))
    told = []
    for _ in range(trials):
        taken, converged = stopped(draw(draws, rule.maximum), rule)
        interval = median_interval(taken)
        told.append((interval.low <= median <= interval.high, converged))
    covers, ends = np.array(told).T
    return Coverage(float(covers.mean()), float(ends.mean()), float(covers[ends].mean()))


def main() -> None:
    """The table."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print("| noise | all sessions cover | converged | of these cover |\n|---|---|---|---|")
    for name, draw in NOISES.items():
        c = coverage(draw, trials)
        print(f"| {name} | {c.covered:.1%} | {c.converged:.0%} | {c.of_converged:.1%} |")


if __name__ == "__main__":
    main()
