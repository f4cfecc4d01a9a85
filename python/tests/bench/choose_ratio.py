"""Which ratio, and which bootstrap: the table behind the choice in docs/statistics.md.

    PYTHONPATH=python .venv/bin/python python/tests/bench/choose_ratio.py [TRIALS]

Every estimate of B's rate over A's sees the same samples and resamples. "false": the interval
excludes 1 though A and B are equal. "found": it lies below 1 when B is 10 % slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy import stats

from penstock.bench.honesty import SLOWDOWN, SYNTHETIC
from penstock.bench.statistics import Floats, _shifts

N = 30
RESAMPLES = 1000
Estimate = Callable[[Floats, Floats], Floats]  # of each row of A and of B


def _medians(a: Floats, b: Floats) -> Floats:
    ratios: Floats = np.median(b, axis=1) / np.median(a, axis=1)
    return ratios


def _trimmed(a: Floats, b: Floats) -> Floats:
    ratios: Floats = stats.trim_mean(b, 0.1, axis=1) / stats.trim_mean(a, 0.1, axis=1)
    return ratios


def _pairs(a: Floats, b: Floats) -> Floats:
    ratios: Floats = np.exp(_shifts(np.log(a), np.log(b)))
    return ratios


ESTIMATES: dict[str, Estimate] = {
    "medians": _medians,
    "trimmed means": _trimmed,
    "median over pairs": _pairs,
}


def bca(drawn: Floats, a: Floats, b: Floats, of: Estimate) -> tuple[float, float]:
    """The places of a BCa interval's ends (Efron and Tibshirani, chapter 14)."""
    ratio = of(a[np.newaxis], b[np.newaxis])[0]
    below = (np.mean(drawn < ratio) + np.mean(drawn <= ratio)) / 2
    bias = stats.norm.ppf(np.clip(below, 1e-4, 1 - 1e-4))
    without = np.array([np.delete(np.arange(N), i) for i in range(N)])
    repeat = np.ones((N, 1))
    away = [
        (lambda j: j.mean() - j)(of(a[without], b * repeat)),
        (lambda j: j.mean() - j)(of(a * repeat, b[without])),
    ]
    spread = sum(float((d**2).sum()) for d in away)
    skew = sum(float((d**3).sum()) for d in away) / (6 * spread**1.5) if spread else 0.0
    z = bias + stats.norm.ppf([0.025, 0.975])
    low, high = stats.norm.cdf(bias + z / (1 - skew * z))
    return float(low), float(high)


def row(name: str, trials: int) -> str:
    counts = {(e, m): np.zeros(2) for e in ESTIMATES for m in ("percentile", "BCa")}
    for trial in range(trials):
        draws = np.random.default_rng([21, trial])
        blocks = draws.permuted(SYNTHETIC[name](draws, 2 * N).reshape(N, 2), axis=1)
        a, b = blocks[:, 0], blocks[:, 1]
        rows_a = a[draws.integers(0, N, (RESAMPLES, N))]
        rows_b = b[draws.integers(0, N, (RESAMPLES, N))]
        for estimate, of in ESTIMATES.items():
            drawn = of(rows_a, rows_b)
            for method, ends in (("percentile", (0.025, 0.975)), ("BCa", bca(drawn, a, b, of))):
                low, high = np.quantile(drawn, ends)
                found = counts[estimate, method]
                found += [not low <= 1.0 <= high, SLOWDOWN * high < 1.0]
    cells = [f"{100 * f / trials:.0f} / {100 * p / trials:.0f}" for f, p in counts.values()]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    heads = [f"{e}, {m}" for e in ESTIMATES for m in ("percentile", "BCa")]
    print(f"| noise | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 1) + "|")
    for name in SYNTHETIC:
        print(row(name, trials), flush=True)


if __name__ == "__main__":
    main()
