"""Intervals, stopping and comparisons do what docs/statistics.md says; honesty: test_honesty.py."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from penstock.bench import statistics
from penstock.bench.statistics import (
    Stopping,
    compare,
    compare_many,
    median_interval,
    ratio_interval,
    summarise,
)
from penstock.errors import ArgumentError


@pytest.mark.parametrize(("n", "low", "high"), [(6, 1, 6), (10, 2, 9), (15, 4, 12), (20, 6, 15)])
def test_the_medians_interval_is_of_order_statistics(n: int, low: int, high: int) -> None:
    interval = median_interval(list(range(1, n + 1)))
    assert (interval.low, interval.high) == (low, high)
    assert interval.confidence >= 0.95


def test_too_few_samples_say_what_their_range_covers() -> None:
    interval = median_interval([3.0, 1.0, 2.0])
    assert (interval.low, interval.high) == (1.0, 3.0)
    assert interval.confidence == pytest.approx(0.75)
    assert median_interval([1.0]).confidence == 0.0
    least = statistics.LEAST_FOR_INTERVAL
    assert median_interval(list(range(least))).confidence >= statistics.CONFIDENCE
    assert median_interval(list(range(least - 1))).confidence < statistics.CONFIDENCE


@pytest.mark.parametrize("n", [5, 6, 10, 17, 30, 1023, 2000])
def test_the_stated_confidence_is_the_binomials(n: int) -> None:
    low = int(median_interval(list(range(1, n + 1))).low)
    missed = 2 * sum(math.comb(n, i) for i in range(low)) / 2**n
    assert median_interval(list(range(n))).confidence == pytest.approx(1 - missed)


@pytest.mark.parametrize("n", [6, 10, 20, 30])
def test_the_medians_interval_covers_a_skewed_median(n: int) -> None:
    draws = np.random.default_rng(n).lognormal(sigma=0.5, size=(2000, n))
    covered = [i.low <= 1.0 <= i.high for i in map(median_interval, draws)]
    assert np.mean(covered) >= 0.94


def test_a_trimmed_mean_leaves_a_tenth_out_on_each_side() -> None:
    assert statistics.trimmed_mean([-1000.0, *range(1, 9), 1000.0]) == 4.5
    with pytest.raises(ValueError, match="cut must be"):
        statistics.trimmed_mean([1.0], cut=0.5)


@pytest.mark.parametrize("n", range(3, 10))
def test_of_few_samples_a_trimmed_mean_leaves_one_out_on_each_side(n: int) -> None:
    assert statistics.trimmed_mean([-1000.0, *[2.0] * (n - 2), 1000.0]) == 2.0
    assert statistics.trimmed_mean([1.0, 2.0]) == 1.5


@pytest.mark.parametrize("n", [5, 6, 9])
def test_the_interval_of_few_pairs_of_samples_covers_what_it_says(n: int) -> None:
    """A percentile bootstrap covers 90 to 93 % here."""
    draws = np.random.default_rng(n)
    told = [ratio_interval(*np.exp(draws.normal(0.0, 0.1, (2, n)))) for _ in range(3000)]
    assert all(r.confidence == told[0].confidence >= 0.95 for r in told)
    assert np.mean([r.low <= 1.0 <= r.high for r in told]) >= told[0].confidence - 0.01


def test_four_samples_leave_nothing_out_and_three_say_what_they_cover() -> None:
    four = statistics.shift_interval([1.0, 2.0, 3.0, 4.0], [11.0, 12.0, 13.0, 14.0])
    assert (four.low, four.high) == (7.0, 13.0)
    assert four.confidence == pytest.approx(1 - 2 / math.comb(8, 4))
    assert statistics.shift_interval([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).confidence == 0.9


@pytest.mark.parametrize("n", [5, 6, 10])
def test_ways_that_differ_by_the_margin_are_seldom_called_the_same(n: int) -> None:
    draws = np.random.default_rng(7)
    trials = 800
    same = sum(
        compare(draws.normal(100.0, 1.0, n), 1.03 * draws.normal(100.0, 1.0, n)).verdict == "same"
        for _ in range(trials)
    )
    assert same / trials <= 0.035 if n < 10 else same / trials <= 0.045


def test_outliers_are_flagged_and_kept() -> None:
    s = summarise([10.0, 11.0, 9.0, 10.5, 9.5, 10.2, 9.8, 100.0])
    assert s.outliers == (7,)
    assert s.n == 8
    assert s.spread == pytest.approx((100 - 9) / s.median)


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [[1.0]], [math.inf]])
def test_no_number_is_made_of_what_are_no_samples(bad: object) -> None:
    with pytest.raises(ValueError, match="x must be"):
        summarise(bad)  # type: ignore[arg-type]


NOISY = [0.6, 1.4] * 30
CALM = [0.99, 1.0, 1.01] * 20


def test_it_stops_where_it_checks_and_is_precise() -> None:
    rule = Stopping()
    assert rule.decide(CALM[:9]) == "go on"
    assert rule.decide(CALM[:10]) == "converged"
    assert [rule.decide(NOISY[:n]) for n in (10, 15, 20)] == ["go on"] * 3
    assert rule.decide(NOISY[:30]) == "not converged"


def test_it_looks_only_at_its_checks() -> None:
    assert {Stopping().decide(CALM[:n]) for n in (11, 14, 16, 29)} == {"go on"}
    assert Stopping().decide(CALM[:31]) == "converged"


def test_at_the_end_of_the_time_it_stops_and_says_whether_it_converged() -> None:
    assert Stopping().decide(CALM[:12], out_of_time=True) == "converged"
    assert Stopping().decide(CALM[:9], out_of_time=True) == "not converged"
    assert Stopping().decide(NOISY[:12], out_of_time=True) == "not converged"


def test_fewer_than_six_samples_never_converge() -> None:
    rule = Stopping(minimum=5, maximum=5)
    assert rule.decide([1.0] * 5) == "not converged"
    assert Stopping(minimum=6, maximum=7).decide([1.0] * 6) == "converged"


def test_a_rule_that_cannot_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="minimum must be"):
        Stopping(minimum=10, maximum=5)
    with pytest.raises(ValueError, match="precision must be"):
        Stopping(precision=0.0)


def test_a_plans_rule_is_read_back() -> None:
    rule = Stopping(minimum=6, maximum=8, checks=(6, 8), precision=0.1)
    plan = json.loads(json.dumps({"stopping": vars(rule), "seed": 1}))
    assert Stopping.of_plan(plan) == rule
    assert Stopping.of_plan({}) == Stopping()


def jittered(level: float, n: int = 30, noise: float = 0.005) -> list[float]:
    return list(level * (1 + noise * np.random.default_rng(n).standard_normal(n)))


@pytest.mark.parametrize(
    ("level", "verdict"), [(1.2, "faster"), (0.8, "slower"), (1.0, "same"), (1.01, "same")]
)
def test_the_verdict_is_on_b(level: float, verdict: str) -> None:
    c = compare(jittered(1.0), jittered(level, 25))
    assert c.verdict == verdict
    assert c.low <= c.ratio <= c.high
    assert c.ratio == pytest.approx(level, rel=0.01)
    assert (c.n_a, c.n_b) == (30, 25)


def test_times_are_turned_into_rates() -> None:
    c = compare([1.0, 1.01, 0.99, 1.0, 1.02, 1.0], [2.0, 2.01, 1.99, 2.0, 2.02, 2.0], of="time")
    assert c.verdict == "slower"
    assert c.ratio == pytest.approx(0.5, rel=0.01)


def test_the_margin_is_the_same_seen_from_both_sides() -> None:
    a, b = jittered(1.0), jittered(1.05, 29)
    assert compare(a, b, margin=0.1).verdict == compare(b, a, margin=0.1).verdict == "same"
    assert compare(a, b).verdict == "faster"
    assert compare(b, a).verdict == "slower"


@pytest.mark.parametrize(
    ("b", "says"),
    [
        (jittered(1.0, 30, 0.2), "includes 1"),
        (jittered(1.02, 30, 0.05), "includes 1|may or may not"),
        (jittered(2.0, 4), "too few"),
    ],
)
def test_what_is_not_shown_is_unclear_and_says_why(b: list[float], says: str) -> None:
    c = compare(jittered(1.0, 30, 0.01), b)
    assert c.verdict == "unclear"
    assert re.search(says, c.why)


def test_more_samples_in_the_slow_mode_are_never_called_the_same() -> None:
    mostly_fast = [1.0, 1.001, 0.999, 1.002] * 6 + [0.5, 0.501]
    half_slow = [1.0, 1.001, 0.999, 1.002] * 4 + [0.5, 0.501] * 5
    c = compare(mostly_fast, half_slow)
    assert c.ratio == pytest.approx(1.0, abs=0.01)
    assert c.means.ratio < 0.9
    assert c.verdict == "unclear"


def test_no_verdict_is_given_against_the_means() -> None:
    rarely_stuck = [1.0, 1.01, 0.99] * 10
    quick_or_stuck = [1.1, 1.11, 1.09] * 8 + [0.1] * 6
    c = compare(rarely_stuck, quick_or_stuck)
    assert c.ratio > 1.05
    assert c.means.ratio < 1.0
    assert c.verdict == "unclear"
    assert "opposite" in c.why


def test_equal_samples_are_the_same() -> None:
    assert compare([2.0] * 6, [2.0] * 6).verdict == "same"


def test_the_same_samples_and_seed_give_the_same_interval() -> None:
    a, b = jittered(1.0), jittered(1.1, 20, 0.1)
    assert compare(a, b, seed=7) == compare(a, b, seed=7)
    assert compare(a, b, seed=7).low != compare(a, b, seed=8).low


def test_many_comparisons_are_corrected_by_holm() -> None:
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([]) == []
    draws = np.random.default_rng(5)
    weak = (list(draws.normal(1, 0.05, 8)), list(draws.normal(1.07, 0.05, 8)))
    alone = compare(*weak)
    among = compare_many([weak] + [(jittered(1.0), jittered(1.0, 29))] * 50)[0]
    assert among.p > alone.p
    assert (among.low, among.high) == (alone.low, alone.high)


def test_pairs_cancel_what_disturbs_a_block() -> None:
    draws = np.random.default_rng(1)
    block = draws.lognormal(sigma=0.5, size=20)
    r = statistics.paired_ratio_interval(block, 1.1 * block * draws.normal(1, 0.01, 20))
    assert 1.08 < r.low < r.ratio < r.high < 1.12
    with pytest.raises(ValueError, match="must be pairs"):
        statistics.paired_ratio_interval([1.0], [1.0, 2.0])


@pytest.mark.parametrize("bad", [[0.0] * 6, [-1.0] * 6])
def test_a_rate_that_is_none_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="b must be positive"):
        compare([1.0] * 6, bad)
    with pytest.raises(ValueError, match="margin must be"):
        compare([1.0] * 6, [1.0] * 6, margin=-0.1)


@pytest.mark.parametrize(
    "said",
    ["fast", {"minimum": 0}, {"precision": "0.05"}, {"checks": 7}, {"precision": 0}],
)
def test_a_plan_whose_stopping_is_no_rule_is_told(said: object) -> None:
    with pytest.raises(ArgumentError, match=r"the plan's stopping is no rule: .*, got "):
        Stopping.of_plan({"stopping": said})
