"""How long a session will probably take, from its samples so far, or from a pilot."""

from __future__ import annotations

import math
from collections.abc import Iterable

from penstock.bench.blocks import Pair, Plan, Progress, decision
from penstock.bench.sample import Sample
from penstock.bench.statistics import Stopping, summarise


def expected_samples(stopping: Stopping, progress: Progress) -> int:
    """How many samples a variant will probably need in all: an interval narrows as 1/sqrt(n)."""
    n = len(progress.rates)
    if n < stopping.minimum or n < 2 or stopping.minimum == stopping.maximum:
        return stopping.minimum
    if decision(stopping, progress) != "go on":
        return n
    s = summarise(progress.rates)
    if not math.isfinite(s.half_width):
        return stopping.maximum
    needed = math.ceil(n * (s.half_width / stopping.precision) ** 2)
    looks = sorted({c for c in (*stopping.checks, stopping.maximum) if c > n})
    return next((look for look in looks if look >= needed), stopping.maximum)


def remaining_s(plan: Plan, samples: list[Sample], usual_s: float | None = None) -> float | None:
    """Seconds that a session will probably need yet; None before anything is known.

    Parameters
    ----------
    plan : Plan
        What is to be measured.
    samples : list of Sample
        Those that there are.
    usual_s : float, optional
        What a sample takes where a variant has none yet; the mean of all others if not given.
    """
    took = seconds_per_sample(samples)
    mean_s = usual_s if not took else sum(took.values()) / len(took)
    if mean_s is None:
        return None
    progress = plan.progress(samples)
    warm = {(s.cell, s.variant) for s in samples if s.warm_up}
    active = plan.wanted(samples)
    wanted_by_cell: dict[str, int] = {}
    for cell, variant in active:
        wanted = expected_samples(plan.stopping, progress[cell, variant])
        wanted_by_cell[cell] = max(wanted, wanted_by_cell.get(cell, 0))
    total_s, blocks = 0.0, 0
    for pair in active:
        left = max(wanted_by_cell[pair[0]] - progress[pair].attempts, 0)
        total_s += (left + (pair not in warm)) * took.get(pair, mean_s)
        blocks = max(blocks, left)
    return total_s + blocks * mean_s  # the canaries


def seconds_per_sample(samples: Iterable[Sample]) -> dict[Pair, float]:
    """Of each pair the mean over its samples, waits included."""
    took: dict[Pair, list[float]] = {}
    for s in samples:
        waited_s = s.settled.waited_s if s.settled else 0.0
        took.setdefault((s.cell, s.variant), []).append(s.wall_s + waited_s)
    return {pair: sum(times) / len(times) for pair, times in took.items()}


def samples_range(plan: Plan) -> tuple[int, int]:
    """The least and the most samples of a plan, with its warm-ups and canaries."""
    pairs = len(plan.pairs)
    least, most = plan.stopping.minimum, plan.stopping.maximum
    return pairs * (1 + least) + least, pairs * (1 + most) + most
