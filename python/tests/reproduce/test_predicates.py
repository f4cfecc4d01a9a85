"""Verdicts by made-up samples: what is so holds, what is not does not, what is unclear is said."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from made_runs import Rates, evidence
from penstock.reproduce import predicates
from penstock.reproduce.conclusions import PREDICATES, Claim
from penstock.reproduce.predicates import Judged, Rule

RULE = Rule(effect=0.10, samples=6)
NOISE = (1.0, 1.02, 0.98, 1.01, 0.99, 1.03, 0.97, 1.0)


def around(rate: float, n: int = 8) -> list[float]:
    return [rate * one for one in NOISE[:n]]


def claim(predicate: str, **more: Any) -> Claim:
    return PREDICATES[predicate].model_validate({"predicate": predicate, **more})


def pair(predicate: str, **more: Any) -> Claim:
    return claim(predicate, **{"cells": ["*"], "of": ["a"], "over": ["b"], **more})


def judge(one: Claim, rates: Rates, rule: Rule = RULE) -> Judged:
    return predicates.judge(one, rule, evidence(rates))


def two(ratio: float, n: int = 8) -> Rates:
    return {("c", "a"): around(ratio, n), ("c", "b"): around(1.0, n)}


@pytest.mark.parametrize(
    ("predicate", "more", "holds", "fails"),
    [
        ("faster", {}, (1.11, 2.0), (1.09, 1.0, 0.5)),
        ("not_faster", {}, (1.09, 1.0, 0.5), (1.11, 2.0)),
        ("not_slower", {}, (0.92, 1.0, 2.0), (0.90, 0.5)),
        ("same", {}, (1.0, 1.09, 0.92), (1.11, 0.90)),
        ("ratio", {"least": 2.0, "most": 3.0}, (2.01, 2.5, 2.99), (1.99, 3.01)),
    ],
)
def test_a_pair_is_judged_by_its_range(
    predicate: str, more: dict[str, Any], holds: tuple[float, ...], fails: tuple[float, ...]
) -> None:
    for ratio in holds:
        assert judge(pair(predicate, **more), two(ratio)).verdict == "holds", ratio
    for ratio in fails:
        assert judge(pair(predicate, **more), two(ratio)).verdict == "does not hold", ratio


def test_an_interval_across_the_edge_is_undecided() -> None:
    rates = {("c", "a"): [1.0, 1.4, 0.9, 1.3, 1.1, 1.2, 1.05, 1.15], ("c", "b"): [1.0] * 8}
    assert judge(pair("faster"), rates).verdict == "undecided"
    below = {**rates, ("c", "a"): [0.9, 0.95, 1.0, 1.0, 1.05, 1.05, 1.2, 1.3]}
    assert judge(pair("faster"), below).verdict == "undecided"


def test_pairs_are_of_one_block_so_a_machine_that_drifts_changes_nothing() -> None:
    drift = [1.0, 5.0, 0.2, 3.0, 0.7, 2.0, 0.1, 4.0]
    rates = {("c", "a"): [1.2 * d for d in drift], ("c", "b"): drift}
    assert judge(pair("faster"), rates).verdict == "holds"


def test_fewer_pairs_than_asked_for_decide_nothing() -> None:
    found = judge(pair("faster"), two(3.0, n=5))
    assert found.verdict == "undecided"
    assert "6 pairs are needed" in found.findings[0].why
    found = judge(pair("faster"), two(3.0, n=5), Rule(0.10, 3))
    assert found.verdict == "undecided"
    assert "the interval covers 94 %" in found.findings[0].why


def test_what_this_size_does_not_measure_cannot_be_tested() -> None:
    assert judge(pair("faster", cells=["x"]), two(3.0)).verdict == "cannot be tested here"
    found = judge(pair("faster", over=["z"]), two(3.0))
    assert found.verdict == "cannot be tested here"
    assert "z: not measured in this size" in found.findings[0].why
    none = {("c", "a"): around(1.0), ("c", "b"): []}
    assert "no sample has it" in judge(pair("faster"), none).findings[0].why


def test_the_best_of_some_without_one_that_failed_decides_nothing() -> None:
    failed: Rates = {("c", "b"): []}
    assert judge(pair("faster", of=["a"], over=["b", "z"]), two(2.0)).verdict == "holds"
    there = two(2.0)
    one = pair("faster", of=["a"], over=["z", "b"])
    found = judge(one, {("c", "a"): there["c", "a"], ("c", "z"): around(1.0), **failed})
    assert found.verdict == "cannot be tested here"
    assert found.findings[0].why == "b: no sample has it"


def test_one_cell_that_fails_is_enough_and_one_that_is_missing_leaves_it_open() -> None:
    good, bad = two(2.0), {("d", "a"): around(0.5), ("d", "b"): around(1.0)}
    missing: Rates = {("d", "a"): around(2.0)}
    assert judge(pair("faster"), {**good, **bad}).verdict == "does not hold"
    assert judge(pair("faster"), {**good, **missing}).verdict == "undecided"


def test_most_is_more_than_half_of_what_was_tested() -> None:
    cells = {
        (f"c{i}", variant): around(rate)
        for i, ratio in enumerate((2.0, 2.0, 0.5))
        for variant, rate in (("a", ratio), ("b", 1.0))
    }
    most = pair("faster", **{"in": "most"})
    assert judge(most, cells).verdict == "holds"
    two_bad = {**cells, ("c1", "a"): around(0.5)}
    assert judge(most, two_bad).verdict == "does not hold"
    even = {k: v for k, v in cells.items() if k[0] != "c1"}
    assert judge(most, even).verdict == "does not hold"


def test_another_cell_may_be_the_other_side() -> None:
    rates = {("c", "a"): around(8.0), ("d", "a"): around(1.0)}
    far = pair("ratio", cells=["c"], over_cells=["d"], over=["a"], least=7.0, most=9.0)
    assert judge(far, rates).verdict == "holds"


def test_the_best_of_many_is_not_chosen_by_the_samples_it_is_judged_by() -> None:
    """Of 40 variants that are all alike, the luckiest of each block would be a third faster."""
    draws = random.Random(7)  # noqa: S311
    rates = {("c", f"a{i}"): [draws.lognormvariate(0, 0.2) for _ in range(20)] for i in range(40)}
    rates[("c", "b")] = [draws.lognormvariate(0, 0.2) for _ in range(20)]
    found = judge(pair("faster", of=["a*"]), rates)
    assert found.verdict != "holds"
    assert found.findings[0].ratio is not None
    assert found.findings[0].ratio < 1.3


def test_no_difference_is_hardly_ever_called_one() -> None:
    draws = random.Random(11)  # noqa: S311
    wrong = 0
    for _ in range(200):
        a, b = ([draws.lognormvariate(0, 0.3) for _ in range(8)] for _ in range(2))
        wrong += judge(pair("faster"), {("c", "a"): a, ("c", "b"): b}).verdict == "holds"
    assert wrong <= 4


# ---- trends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "verdicts"),
    [
        (2.0, {"rising": True, "not_rising": False, "falling": False, "flat": False}),
        (1.0, {"rising": False, "not_rising": True, "falling": False, "flat": True}),
        (0.5, {"rising": False, "not_rising": True, "falling": True, "flat": False}),
    ],
)
def test_a_trend_is_the_factor_from_first_to_last(last: float, verdicts: dict[str, bool]) -> None:
    steps = (1.0, last**0.5, last)
    by_variant = {("c", f"w{i}"): around(rate) for i, rate in enumerate(steps)}
    by_cell = {(f"n{i}", "a"): around(rate) for i, rate in enumerate(steps)}
    for predicate, good in verdicts.items():
        expected = "holds" if good else "does not hold"
        along = claim(predicate, cells=["c"], along=["w0", "w1", "w2"])
        assert judge(along, by_variant).verdict == expected, predicate
        along = claim(predicate, of=["a"], along_cells=["n0", "n1", "n2"])
        found = judge(along, by_cell)
        assert found.verdict == expected, predicate
        assert found.findings[0].ratio == pytest.approx(last)


def test_a_trend_needs_two_points_of_this_size() -> None:
    along = claim("rising", cells=["c"], along=["w0", "w1"])
    assert judge(along, {("c", "w0"): around(1.0)}).verdict == "cannot be tested here"


@pytest.mark.parametrize(("gain", "verdict"), [(4.0, "holds"), (2.0, "does not hold")])
def test_who_gains_more_scales_better(gain: float, verdict: str) -> None:
    one = claim("scales_better", of=["a"], over=["b"], along_cells=["c1", "c2"])
    rates = {
        ("c1", "a"): around(1.0),
        ("c2", "a"): around(gain),
        ("c1", "b"): around(5.0),
        ("c2", "b"): around(10.0),
    }
    assert judge(one, rates).verdict == verdict


# ---- the others -------------------------------------------------------------------------------


def test_none_is_always_best_where_each_is_beaten_somewhere() -> None:
    one = claim("none_best", cells=["*"], among=["a", "b"])
    crossing = {
        ("c", "a"): around(2.0),
        ("c", "b"): around(1.0),
        ("d", "a"): around(1.0),
        ("d", "b"): around(2.0),
    }
    assert judge(one, crossing).verdict == "holds"
    always = {**crossing, ("d", "a"): around(3.0)}
    assert judge(one, always).verdict == "does not hold"
    few = {pair_: rates[:4] for pair_, rates in crossing.items()}
    assert judge(one, few).verdict == "undecided"
    more = claim("none_best", cells=["*"], among=["a", "b", "z"])
    assert judge(more, crossing).verdict == "holds"  # z is in no plan
    assert judge(more, {**crossing, ("c", "z"): []}).verdict == "undecided"


def test_a_wide_spread_is_found_and_a_narrow_one_is_not() -> None:
    one = claim("spread_at_least", cells=["*"], of=["*"], least=3.0)
    assert judge(one, two(1.0)).verdict == "does not hold"
    wide = {**two(1.0), ("c", "w"): [1.0, 4.1, *around(1.0, 6)]}
    found = judge(one, wide)
    assert found.verdict == "holds"
    assert found.findings[0].where == "c, w"
    less = {("c", "w"): [1.0, 3.9, *around(1.0, 6)]}
    assert judge(one, less).verdict == "does not hold"
    assert judge(one, {("c", "a"): [1.0, 9.0]}).verdict == "undecided"


def test_a_count_must_be_exact_in_every_sample() -> None:
    one = claim("equals", of=["a"], measure="application", expected={"c": 40, "d": 40})
    rates = {("c", "a"): [40.0, 40.0], ("d", "a"): [40.0]}
    rule = Rule(0.10, 1)
    assert judge(one, rates, rule).verdict == "holds"
    found = judge(one, {**rates, ("c", "a"): [40.0, 41.0]}, rule)
    assert found.verdict == "does not hold"
    assert "41, n=2, wanted 40" in found.findings[0].why
    assert judge(one, {("c", "a"): [40.0]}, rule).verdict == "undecided"


def simulated(**more: Any) -> Judged:
    return judge(claim("simulated", **{"of": "demand actual", "at": 5, **more}), {})


def test_a_simulated_curve_is_judged_by_every_block_size() -> None:
    held = simulated(least=0.5, most=0.7)
    assert held.verdict == "holds"
    assert "0.621 to 0.666 with blocks of 1/3 to 1/1024 of the memory" in held.findings[0].why
    # a plateau that the curve has not: a false claim must not hold
    assert simulated(least=0.9, most=1.1).verdict == "does not hold"
    assert simulated(over="without actual", least=0.9, most=1.1).verdict == "does not hold"


def test_what_depends_on_the_block_size_is_undecided_and_says_with_which_it_is_so() -> None:
    split = simulated(least=0.5, most=0.64)
    assert split.verdict == "undecided"
    assert "so with blocks of 1/4" in split.findings[0].why


def test_curves_are_compared_at_their_own_sizes() -> None:
    falls = {"over": "demand actual", "over_at": 1.0, "most": 0.9}
    assert simulated(**falls).verdict == "holds"
    assert simulated(**falls | {"at": 0.6}).verdict == "does not hold"


@pytest.mark.parametrize("wrong", [{"least": 1.0, "most": 0.5}, {"over_at": 1.0}, {"of": "late"}])
def test_a_simulated_claim_that_says_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"least|over_at|of"):
        claim("simulated", **{"of": "demand actual", "at": 5, **wrong})


def spreads(of: float, over: float, cells: int = 8) -> Rates:
    """Six samples each, so far apart."""
    found: Rates = {}
    for i in range(cells):
        for name, width in (("a", of), ("b", over)):
            own = width * (1 + i / 100)
            found = {**found, (f"c{i}", name): [1.0, 1.0, 1.0 - own / 2, 1.0 + own / 2, 1.0, 1.0]}
    return found


@pytest.mark.parametrize(
    ("of", "over", "cells", "verdict"),
    [
        (0.1, 0.3, 8, "holds"),
        (0.3, 0.1, 8, "does not hold"),
        (0.3, 0.3, 8, "does not hold"),
        (0.1, 0.3, 4, "undecided"),
        (0.1, 0.3, 0, "undecided"),
    ],
)
def test_spreads_are_compared_over_the_cells(
    of: float, over: float, cells: int, verdict: str
) -> None:
    one = pair("varies_less")
    assert judge(one, spreads(of, over, cells)).verdict == verdict


@pytest.mark.parametrize(
    "one",
    [
        pair("faster"),
        claim("rising", cells=["*"], along=["a", "b"]),
        claim("none_best", cells=["*"], among=["a", "b"]),
        claim("varies_less", cells=["*"], of=["a"], over=["b"]),
        claim("equals", of=["*"], measure="application", expected={"c": 1.0}),
    ],
)
def test_what_the_budget_left_out_decides_nothing(one: Claim) -> None:
    measured = evidence({("c", "a"): around(1.0), ("c", "b"): around(2.0)})
    left = replace(measured, left_out=(("c", "a"), ("c", "b")), budget_s=300.0)
    found = predicates.judge(one, RULE, replace(left, samples=measured.samples[:8]))
    assert found.verdict == "cannot be tested here"
    assert found.findings[0].why == "not measured within the budget of 300 s"


@pytest.mark.parametrize(
    ("spread", "least", "verdict"),
    [(0.5, 0.3, "holds"), (0.1, 0.3, "cannot be tested here"), (0.1, 0.05, "holds")],
)
def test_a_spread_that_was_found_needs_nothing_that_the_budget_left_out(
    spread: float, least: float, verdict: str
) -> None:
    one = claim("spread_at_least", cells=["*"], of=["*"], least=least)
    measured = evidence({("c", "a"): [1.0] * 5 + [1.0 + spread]})
    left = replace(measured, left_out=(("c", "b"),), budget_s=300.0)
    assert predicates.judge(one, RULE, left).verdict == verdict
    none = replace(left, samples=())
    assert predicates.judge(one, RULE, none).findings[0].why.endswith("within the budget of 300 s")
