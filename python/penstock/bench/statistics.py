"""Statistics for noisy I/O: intervals, when to stop measuring, and which of two is faster.

Pure functions of samples. What each verdict means, how often it is wrong and why the ratio's
interval is made as it is: docs/statistics.md; ``python -m penstock.bench.honesty`` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import ArgumentError

Floats = NDArray[np.float64]
Verdict = Literal["faster", "slower", "same", "unclear"]
Decision = Literal["go on", "converged", "not converged"]
Kind = Literal["rate", "time"]

CONFIDENCE = 0.95
MARGIN = 0.03
PRECISION = 0.05
OUTLIER_MADS = 14.8  # ten standard deviations of a normal distribution
LEAST_TO_COMPARE = 5  # with 4 and 4, one straggler decides what Mann-Whitney can say
LEAST_FOR_INTERVAL = 6  # whose range covers the median with CONFIDENCE
LEAST_TO_TRIM = 3  # samples, of which one is left at each end
LEAST_TO_RESAMPLE = 10  # below it a percentile bootstrap of 95 % covers 90 to 93 %
RESAMPLES = 1000
_PAIRS_AT_ONCE = 2**17  # 1 MiB: stays in a cache


@dataclass(frozen=True)
class Interval:
    """``[low, high]``; ``confidence`` is what it really covers, not what was asked for."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Ratio:
    """How many times A's rate B's is: above 1, B is better."""

    ratio: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Summary:
    """What a set of samples says; nothing is dropped from it but by the trimmed mean.

    ``low`` and ``high`` are the median's interval, which covers with ``confidence``; ``spread`` is
    (max - min) / median; ``outliers`` are the places of samples further than 14.8 MAD from the
    median.
    """

    n: int
    median: float
    low: float
    high: float
    confidence: float
    trimmed_mean: float
    spread: float
    mad: float
    outliers: tuple[int, ...]

    @property
    def half_width(self) -> float:
        """Half of the median's interval, as a fraction of the median."""
        return (self.high - self.low) / (2.0 * self.median) if self.median else math.inf


@dataclass(frozen=True)
class Comparison:
    """B against A: a verdict on B, the ratio of B's rate to A's, and the evidence.

    ``p`` is of the Mann-Whitney test, corrected by Holm where several were compared at once;
    ``means`` is the ratio of the trimmed means; ``why`` is the verdict in a sentence.
    """

    verdict: Verdict
    ratio: float
    low: float
    high: float
    p: float
    n_a: int
    n_b: int
    margin: float
    means: Ratio
    why: str


def _samples(x: ArrayLike, name: str = "x") -> Floats:
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a list of at least one sample, got {values.shape}")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite numbers: leave failed samples out")
    return values


def _rates(x: ArrayLike, name: str, of: Kind) -> Floats:
    """Samples as rates, so that more is always better; a time's rate is its inverse."""
    values = _samples(x, name)
    if np.any(values <= 0.0):
        raise ValueError(f"{name} must be positive, got {values.min():g}: leave failed samples out")
    return values if of == "rate" else 1.0 / values


def _order(n: int, confidence: float) -> tuple[int, float]:
    """The largest k for which [x_k, x_(n+1-k)] covers the median; and how often it does."""
    tosses = 2**n  # whole numbers: a float holds no 2^1024
    below, here, k = 0, 1, 0  # tosses of n coins with fewer than k heads, and with k
    while k < (n + 1) // 2:
        if k > 0 and (below + here) / tosses > (1.0 - confidence) / 2.0:
            break
        below, here, k = below + here, here * (n - k) // (k + 1), k + 1
    k = max(k, 1)
    return k, max(0.0, 1.0 - 2.0 * (below / tosses))


def median_interval(x: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """The median's interval from order statistics: exact whatever the distribution.

    Parameters
    ----------
    x : array_like
        Independent samples, at least one.
    confidence : float
        What the interval should cover at least. Fewer than 6 samples cannot reach 95 %: then the
        interval is their range, and says what it covers.

    Returns
    -------
    Interval
        n=6: [x1, x6]; n=10: [x2, x9]; n=20: [x6, x15].
    """
    values = np.sort(_samples(x))
    k, covered = _order(values.size, confidence)
    return Interval(float(values[k - 1]), float(values[-k]), covered)


def trimmed_mean(x: ArrayLike, cut: float = 0.1) -> float:
    """The mean without the lowest and the highest ``cut`` of the samples (benson-2003).

    Of 3 samples and more at least one is left out at each end: a tenth of 6 would be none.
    """
    if not 0.0 <= cut < 0.5:
        raise ValueError(f"cut must be at least 0 and less than 0.5, got {cut:g}")
    return float(_trimmed_means(_samples(x), cut))


def _trimmed_means(rows: Floats, cut: float) -> Floats:
    """Of each row."""
    n = rows.shape[-1]
    least = 1 if cut and n >= LEAST_TO_TRIM else 0
    left_out = max(least, int(cut * n))
    means: Floats = np.sort(rows, axis=-1)[..., left_out : n - left_out].mean(axis=-1)
    return means


def summarise(x: ArrayLike, confidence: float = CONFIDENCE) -> Summary:
    """Median with its interval, trimmed mean, spread, MAD and outliers of samples."""
    values = _samples(x)
    median = float(np.median(values))
    away = np.abs(values - median)
    mad = float(np.median(away))
    interval = median_interval(values, confidence)
    return Summary(
        n=int(values.size),
        median=median,
        low=interval.low,
        high=interval.high,
        confidence=interval.confidence,
        trimmed_mean=trimmed_mean(values),
        spread=float(np.ptp(values)) / median if median else math.inf,
        mad=mad,
        outliers=tuple(int(i) for i in np.flatnonzero(away > OUTLIER_MADS * mad)),
    )


@dataclass(frozen=True)
class Stopping:
    """When enough was measured: on precision, never on significance.

    It is looked at ``checks``, ``minimum`` and ``maximum`` samples only, since a rule that looks
    after every sample stops at a lucky one. Precise enough is when half of the median's interval
    is at most ``precision`` of the median.
    """

    minimum: int = 10
    maximum: int = 30
    checks: tuple[int, ...] = (10, 15, 20, 30)
    precision: float = PRECISION

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError(
                f"minimum must be at least 1 and at most maximum ({self.maximum}), "
                f"got {self.minimum}"
            )
        if not self.precision > 0.0:
            raise ValueError(f"precision must be more than 0, got {self.precision:g}")

    def words(self) -> list[str]:
        """The option that asks for it, if it is so many samples whatever their spread."""
        return ["--rounds", str(self.minimum)] if self.minimum == self.maximum else []

    @classmethod
    def of_plan(cls, plan: Mapping[str, Any]) -> Stopping:
        """The rule of a results file's plan; its defaults where the plan is silent.

        Raises
        ------
        ArgumentError
            If what the plan says is no rule.
        """
        said = plan.get("stopping") or {}
        try:
            known = {k: v for k, v in said.items() if k in cls.__dataclass_fields__}
            if "checks" in known:
                known["checks"] = tuple(map(int, known["checks"]))
            return cls(**known)
        except (AttributeError, TypeError, ValueError) as error:
            raise ArgumentError(f"the plan's stopping is no rule: {error}, got {said!r}") from error

    def precise(self, x: ArrayLike) -> bool:
        """Whether the median's interval is narrow enough, and an interval at all (6 samples)."""
        s = summarise(x)
        return s.confidence >= CONFIDENCE and s.half_width <= self.precision

    def decide(self, x: ArrayLike, *, out_of_time: bool = False) -> Decision:
        """Go on, or stop and say whether it converged.

        Parameters
        ----------
        x : array_like
            The good samples so far.
        out_of_time : bool
            No further sample can be afforded: stop, whatever their number.
        """
        n = np.size(x)
        if not (out_of_time or n >= self.maximum or n == self.minimum or n in self.checks):
            return "go on"
        if n >= self.minimum and self.precise(x):
            return "converged"
        return "not converged" if out_of_time or n >= self.maximum else "go on"


def ratio_interval(
    a: ArrayLike,
    b: ArrayLike,
    *,
    of: Kind = "rate",
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Ratio:
    """How many times A's rate B's is, with its interval.

    The interval is a bootstrap's; where a side has fewer than 10 samples, of which that covers too
    little, the one that Mann-Whitney's test leaves (`shift_interval`).

    The ratio is the median over all pairs of one sample of A and one of B (Hodges and Lehmann's
    estimate, on logarithms): half of the time B does at least so much better. It is what
    Mann-Whitney tests, and it needs fewer samples than the ratio of the medians.

    Parameters
    ----------
    a, b : array_like
        Independent positive samples; times are turned into rates, so that above 1 B is better.
    of : {"rate", "time"}
        What the samples are.
    resamples, seed : int
        Of the percentile bootstrap: the same samples and seed give the same interval.
    """
    logs_a, logs_b = np.log(_rates(a, "a", of)), np.log(_rates(b, "b", of))
    shift = _shifts(logs_a[np.newaxis], logs_b[np.newaxis])[0]
    if min(logs_a.size, logs_b.size) < LEAST_TO_RESAMPLE:
        exact = shift_interval(logs_a, logs_b, confidence)
        ratio, low, high = (math.exp(x) for x in (shift, exact.low, exact.high))
        return Ratio(ratio, low, high, exact.confidence)
    draws = np.random.default_rng(seed)
    tail = (1.0 - confidence) / 2.0
    drawn = _resampled_shifts(logs_a, logs_b, resamples, draws)
    low, high = np.exp(np.quantile(drawn, [tail, 1.0 - tail]))
    return Ratio(float(np.exp(shift)), float(low), float(high), confidence)


def shift_interval(a: ArrayLike, b: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """By how much B's samples are above A's, from the order of all differences: exact.

    Those shifts that Mann-Whitney's test does not exclude (Hodges and Lehmann). Few samples cannot
    reach ``confidence``: then it is the range of the differences, and says what it covers.
    """
    values_a, values_b = _samples(a, "a"), _samples(b, "b")
    differences = np.sort(np.subtract.outer(values_b, values_a), axis=None)
    ways = _ways(min(values_a.size, values_b.size), max(values_a.size, values_b.size))
    all_ways = sum(ways)
    left_out, tail = 0, 0  # differences at each end, and orders in which more would be
    while tail + ways[left_out] <= (1.0 - confidence) / 2.0 * all_ways:
        tail += ways[left_out]
        left_out += 1
    if left_out == 0:
        return Interval(float(differences[0]), float(differences[-1]), 1.0 - 2.0 / all_ways)
    low, high = differences[left_out - 1], differences[-left_out]
    return Interval(float(low), float(high), 1.0 - 2.0 * tail / all_ways)


@cache
def _ways(m: int, n: int) -> list[int]:
    """In how many orders of m and n samples Mann-Whitney's U is 0, 1, .. m n (a q-binomial)."""
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, m * n + 1):
            ways[u] += ways[u - i]
    return ways


def _shifts(rows_a: Floats, rows_b: Floats) -> Floats:
    """For each row: the median of all differences of a sample of B and one of A."""
    differences = (rows_b[:, :, np.newaxis] - rows_a[:, np.newaxis, :]).reshape(len(rows_a), -1)
    n = differences.shape[1]
    differences.partition(n // 2, axis=-1)  # with one place a quarter of np.median's time
    upper = differences[:, n // 2]
    lower = upper if n % 2 else differences[:, : n // 2].max(axis=-1)
    shifts: Floats = (lower + upper) / 2.0
    return shifts


def means_interval(
    a: ArrayLike,
    b: ArrayLike,
    *,
    of: Kind = "rate",
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Ratio:
    """As ``ratio_interval``, of the ratio of the 10 % trimmed means.

    It moves when samples change between two modes, which the median over pairs may not notice.
    """
    rates_a, rates_b = _rates(a, "a", of), _rates(b, "b", of)
    draws = np.random.default_rng(seed)
    drawn_a, drawn_b = (
        _trimmed_means(r[draws.integers(0, r.size, size=(resamples, r.size))], 0.1)
        for r in (rates_a, rates_b)
    )
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(drawn_b / drawn_a, [tail, 1.0 - tail])
    ratio = trimmed_mean(rates_b) / trimmed_mean(rates_a)
    return Ratio(ratio, float(low), float(high), confidence)


def _resampled_shifts(a: Floats, b: Floats, resamples: int, draws: np.random.Generator) -> Floats:
    chosen_a = draws.integers(0, a.size, size=(resamples, a.size))
    chosen_b = draws.integers(0, b.size, size=(resamples, b.size))
    step = max(1, _PAIRS_AT_ONCE // (a.size * b.size))
    parts = [slice(i, i + step) for i in range(0, resamples, step)]
    return np.concatenate([_shifts(a[chosen_a[part]], b[chosen_b[part]]) for part in parts])


def paired_ratio_interval(
    a: ArrayLike, b: ArrayLike, *, of: Kind = "rate", confidence: float = CONFIDENCE
) -> Ratio:
    """The median of the pairs' ratios of B's rate to A's, with its order-statistic interval.

    For samples of the same blocks, ``a[i]`` beside ``b[i]``: what disturbed a whole block cancels.
    """
    rates_a, rates_b = _rates(a, "a", of), _rates(b, "b", of)
    if rates_a.size != rates_b.size:
        raise ValueError(
            f"a and b must be pairs, got {rates_a.size} and {rates_b.size} samples: "
            "keep the blocks that have both"
        )
    ratios = rates_b / rates_a
    interval = median_interval(ratios, confidence)
    return Ratio(float(np.median(ratios)), interval.low, interval.high, interval.confidence)


def compare(
    a: ArrayLike,
    b: ArrayLike,
    margin: float = MARGIN,
    *,
    of: Kind = "rate",
    seed: int = 0,
) -> Comparison:
    """Whether B is faster than A, slower, the same within the margin, or none of these is shown.

    Parameters
    ----------
    a, b : array_like
        Positive samples of two ways of doing the same work, interleaved in time.
    margin : float
        What does not matter: 0.03 is 3 %. On the slow side it ends at 1 / (1 + margin), so that
        B against A and A against B say the same.
    of : {"rate", "time"}
        What the samples are; the ratio is always one of rates, and above 1 means B is better.

    Returns
    -------
    Comparison
        "faster" and "slower" need both the bootstrap interval and Mann-Whitney to exclude
        equality at 95 %, a ratio beyond the margin, and trimmed means that agree; "same" needs the
        whole interval inside the margin, and that of the trimmed means too; everything else, and
        fewer than 5 samples a side, is "unclear".
    """
    return compare_many([(a, b)], margin, of=of, seed=seed)[0]


def compare_many(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]],
    margin: float = MARGIN,
    *,
    of: Kind = "rate",
    seed: int = 0,
) -> list[Comparison]:
    """Compare several pairs at once: as ``compare``, with Holm's correction of their p values."""
    if not margin >= 0.0:
        raise ValueError(f"margin must be at least 0, got {margin:g}: 0.03 is 3 %")
    compared = [_evidence(a, b, margin, of, seed) for a, b in pairs]
    corrected = holm([c.p for c in compared])
    return [_judged(replace(c, p=p)) for c, p in zip(compared, corrected, strict=True)]


def _evidence(a: ArrayLike, b: ArrayLike, margin: float, of: Kind, seed: int) -> Comparison:
    rates_a, rates_b = _rates(a, "a", of), _rates(b, "b", of)
    r = ratio_interval(rates_a, rates_b, seed=seed)
    few = min(rates_a.size, rates_b.size) < LEAST_TO_COMPARE  # then no verdict asks for p
    return Comparison(
        verdict="unclear",
        ratio=r.ratio,
        low=r.low,
        high=r.high,
        p=1.0 if few else mann_whitney(rates_a, rates_b),
        n_a=int(rates_a.size),
        n_b=int(rates_b.size),
        margin=margin,
        means=means_interval(rates_a, rates_b, seed=seed),
        why="",
    )


def mann_whitney(a: ArrayLike, b: ArrayLike) -> float:
    """The two-sided p of the Mann-Whitney test; 1 where all samples are equal."""
    from scipy import stats  # a second to import: only when used

    values_a, values_b = _samples(a, "a"), _samples(b, "b")
    if np.ptp(np.concatenate([values_a, values_b])) == 0.0:
        return 1.0
    return float(stats.mannwhitneyu(values_a, values_b).pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """P values corrected for their number (Holm 1979), in the order given."""
    corrected = [1.0] * len(p)
    largest = 0.0
    for place, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - place) * p[i]))
        corrected[i] = largest
    return corrected


def _judged(c: Comparison) -> Comparison:
    verdict, why = _verdict(c)
    return replace(c, verdict=verdict, why=why)


def _verdict(c: Comparison) -> tuple[Verdict, str]:
    if min(c.n_a, c.n_b) < LEAST_TO_COMPARE:
        few = f"{c.n_a} and {c.n_b} samples are too few: {LEAST_TO_COMPARE} of each are needed"
        return "unclear", few
    least, most = 1.0 / (1.0 + c.margin), 1.0 + c.margin
    inside = f"the margin of {100 * c.margin:g} %"
    if least <= c.low and c.high <= most:
        if least <= c.means.low and c.means.high <= most:
            return "same", f"the whole interval is inside {inside}"
        return "unclear", f"alike in most pairs, but the trimmed means may differ beyond {inside}"
    if c.low <= 1.0 <= c.high:
        return "unclear", f"the interval includes 1 and reaches beyond {inside}"
    if c.p >= 1.0 - CONFIDENCE:
        return "unclear", f"the interval excludes 1, but Mann-Whitney does not (p = {c.p:.2g})"
    if least <= c.ratio <= most:
        return "unclear", f"there is a difference, and it may or may not exceed {inside}"
    if (c.ratio > 1.0) != (c.means.ratio > 1.0):
        return "unclear", f"the trimmed means say the opposite ({c.means.ratio:.2f})"
    return ("faster" if c.ratio > 1.0 else "slower"), f"equality is excluded (p = {c.p:.2g})"
