"""The verdict never says more than the statistics showed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import made_reports
from made_samples import result, sample
from penstock.bench.differences import Differences, Side, differences
from penstock.bench.sample import Sample
from penstock.bench.store import Results, load
from penstock.bench.summary import Summary, summarise
from penstock.report import verdict
from penstock.report.figures import ranking, ratios


def summary(tmp_path: Path, samples: list[Sample]) -> Summary:
    return summarise(load(made_reports.write(tmp_path / "samples.jsonl", samples)))


def test_a_clear_lead_is_said_with_ratio_interval_and_count(tmp_path: Path) -> None:
    made = made_reports.session({"c": {"two_phase": 2e9, "cyclic": 1e9}})
    said = verdict.of_session(summary(tmp_path, made))
    assert said.sure == "shown"
    assert said.headline.startswith("two_phase is the fastest at 1.8")
    assert "n=10: " in said.headline
    assert "times the next, cyclic." in said.headline
    ratio = float(said.headline.partition("n=10: ")[2].split()[0])
    assert ratio == pytest.approx(2.0, rel=0.03)


def test_equal_ways_are_not_told_apart(tmp_path: Path) -> None:
    made = made_reports.session({"c": {"x": 1e9, "y": 1.002e9}}, cv=0.1)
    said = verdict.of_session(summary(tmp_path, made))
    assert said.sure == "not told apart"
    assert "not told apart from" in said.headline
    assert "fastest" not in said.headline


def test_ways_that_are_the_same_within_the_margin_are_called_as_good(tmp_path: Path) -> None:
    made = made_reports.session({"c": {"x": 1e9, "y": 1.001e9}}, cv=0.002)
    said = verdict.of_session(summary(tmp_path, made))
    assert said.sure == "not told apart"
    assert "within 3 % as good: " in said.headline


def test_one_way_is_compared_with_nothing(tmp_path: Path) -> None:
    said = verdict.of_session(summary(tmp_path, made_reports.session({"c": {"x": 1e9}})))
    assert said.sure == "not compared"
    assert "compared with nothing" in said.headline


def test_wrong_bytes_are_never_recommended(tmp_path: Path) -> None:
    wrong = {"bytes": 5, "wrong_bytes": 5, "first_wrong": None}
    made = [
        s.model_copy(update={"result": s.result.model_copy(update={"verified": None})})
        for s in made_reports.session({"c": {"x": 1e9}})
        if s.result is not None
    ]
    values = [s.model_dump(by_alias=True) for s in made]
    for one in values:
        one["result"]["verified"] = wrong
    said = verdict.of_session(summary(tmp_path, [Sample.model_validate(v) for v in values]))
    assert said.sure == "wrong"
    assert "none can be recommended" in said.headline


def test_of_the_fastest_it_is_said_first_where_it_left_wrong_bytes(tmp_path: Path) -> None:
    made = made_reports.session({c: {"x": 2e9, "y": 1e9} for c in "abd"})
    for i, s in enumerate(made):
        if (s.cell, s.variant, s.block) == ("b", "x", 1):
            printed = result(2e9, wrong=5)
            made[i] = sample("x", 1, cell="b", failed="5 bytes are wrong", result=printed)
    said = verdict.of_session(summary(tmp_path, made))
    assert said.headline == "x is the fastest in 2 of 3 cells."
    assert said.sure == "wrong"
    assert said.details[0] == (
        "It left wrong bytes in 1: b. Do not use it before that is understood."
    )
    assert not any("did not take part" in detail for detail in said.details)


def test_what_failed_may_have_had_a_higher_rate(tmp_path: Path) -> None:
    made = made_reports.session({"c": {"lucky": 9e9, "right": 1e9}})
    failed = {"failed": "timed out"}
    tried = [
        s.model_copy(update=failed) if s.variant == "lucky" and s.block > 1 else s for s in made
    ]
    said = verdict.of_session(summary(tmp_path, tried))
    assert said.headline.startswith("right has the highest rate of what has enough samples, ")


def test_over_several_cells_it_counts_them_and_says_where_it_loses(tmp_path: Path) -> None:
    made = made_reports.session(
        {
            "a": {"x": 2e9, "y": 1e9},
            "b": {"x": 3e9, "y": 1e9},
            "d": {"x": 1e9, "y": 2e9},
        }
    )
    found = summary(tmp_path, made)
    said = verdict.of_session(found)
    assert said.headline == "x is the fastest in 2 of 3 cells."
    assert said.sure == "mixed"
    assert "In 2 of them everything else is shown to be slower" in said.details[0]
    assert "2.0" in said.details[0]
    assert re.search(r"to (2\.9|3\.0)", said.details[0])
    assert "slower than the best in 1: d." in said.details[1]


def test_a_way_that_is_never_shown_to_lead_is_not_told_apart(tmp_path: Path) -> None:
    made = made_reports.session({"a": {"x": 1e9, "y": 1e9}, "b": {"x": 1e9, "y": 1e9}}, cv=0.2)
    said = verdict.of_session(summary(tmp_path, made))
    assert said.sure == "not told apart"
    assert "has the highest rate in " in said.headline
    assert said.details[0] == "In none of them is everything else shown to be slower."


@pytest.mark.parametrize(
    ("n", "says"),
    [
        ((6, 6), "brackets are 95 % intervals."),
        ((5, 1), "brackets are ranges, for a 95 % interval takes 6 samples."),
        ((6, 5), "brackets are 95 % intervals, and ranges of fewer than 6 samples."),
    ],
)
def test_a_range_is_not_called_an_interval(tmp_path: Path, n: tuple[int, int], says: str) -> None:
    made = made_reports.session({"c": {"x": 2e9}, "d": {"x": 2e9, "y": 1e9}}, n=n[0])
    made += made_reports.session({"c": {"y": 1e9}}, n=n[1])
    own = summary(tmp_path, made)
    assert says in verdict.of_session(own).details[-1]
    results = Results()
    for one in made:
        results.add(one)
    found = differences(Side("before", results, "x"), Side("after", results, "y"))
    assert says.rstrip(".") + ". Faster" in verdict.of_differences(found).details[-1]
    lines = "Lines" + says.removeprefix("brackets").rstrip(".") + ";"
    assert lines in ranking.figure(1, next(c for c in own.cells if c.cell == "c")).caption
    assert lines in ratios.figure(found.differences, found.margin).caption


@pytest.mark.parametrize(
    ("n", "says"),
    [
        ((10, 12), "where a bootstrap interval and a Mann-Whitney test"),
        ((9, 6), "where an exact interval and a Mann-Whitney test"),
        ((10, 9), "(a bootstrap's; the exact one of fewer than 10 samples) and a Mann-Whitney"),
    ],
)
def test_the_interval_of_a_ratio_is_called_what_it_is(
    tmp_path: Path, n: tuple[int, int], says: str
) -> None:
    made = made_reports.session({"c": {"x": 2e9}}, n=n[0])
    made += made_reports.session({"c": {"y": 1e9}}, n=n[1])
    assert says in verdict.of_session(summary(tmp_path, made)).details[-1]
    results = load(tmp_path / "samples.jsonl")
    found = differences(Side("before", results, "x"), Side("after", results, "y"))
    assert says in verdict.of_differences(found).details[-1]


def compared(a: dict[str, float], b: dict[str, float], cv: float = 0.01) -> Differences:
    sides = []
    for name, levels, seed in (("before", a, 1), ("after", b, 2)):
        results = Results()
        for s in made_reports.session({"c": levels}, cv=cv, seed=seed):
            results.add(s)
        sides.append(Side(name, results))
    return differences(*sides)


@pytest.mark.parametrize(
    ("level", "says", "sure"),
    [
        (2e9, "B is faster than A: 2.0", "shown"),
        (1e9, "B and A are the same within 3 %", "shown"),
        (5e8, "B is slower than A: 0.5", "shown"),
    ],
)
def test_a_comparison_says_which_and_by_how_much(level: float, says: str, sure: str) -> None:
    said = verdict.of_differences(compared({"x": 1e9}, {"x": level}, cv=0.003))
    assert said.headline.startswith(says)
    assert said.sure == sure
    assert "n=10" in said.details[0]


def test_an_unclear_comparison_says_why() -> None:
    said = verdict.of_differences(compared({"x": 1e9}, {"x": 1e9}, cv=0.3))
    assert said.sure == "not told apart"
    assert said.headline.startswith("B and A are not told apart")
    assert said.details[1].startswith("Why: ")


def test_many_comparisons_are_counted_and_the_extremes_named() -> None:
    said = verdict.of_differences(
        compared({"x": 1e9, "y": 1e9, "z": 1e9}, {"x": 2e9, "y": 5e8, "z": 1e9}, cv=0.003)
    )
    assert said.headline == "Of 3 comparisons B is faster in 1, the same in 1, slower in 1."
    assert any(d.startswith("Slower in c, y (application rate): 0.5") for d in said.details)


def failing(good: int, ways: Sequence[str] = ("x",)) -> Differences:
    """B is like A where it ends, and of its ``ways`` some samples are killed."""
    before, after = Results(), Results()
    for s in made_reports.session({"c": dict.fromkeys(ways, 1e9)}, cv=0.003):
        before.add(s)
    for s in made_reports.session({"c": dict.fromkeys(ways, 1e9)}, cv=0.003, seed=2, n=good):
        after.add(s)
    for i in range(2):
        after.add(sample("x", 50 + i, failed="ended by SIGSEGV", result=None))
    return differences(Side("before", before), Side("after", after))


@pytest.mark.parametrize("good", [1, 4])
def test_few_samples_of_what_failed_are_worse_and_not_a_question(good: int) -> None:
    found = failing(good)
    assert found.overall == "worse"
    said = verdict.of_differences(found)
    assert said.sure == "wrong"
    count = "1 sample" if good == 1 else f"{good} samples"
    assert said.headline == f"B is worse than A: B failed and has only {count}: ended by SIGSEGV."
    assert f"n={good}" in said.details[0]
    assert not any(detail.startswith("Why: ") for detail in said.details)


def test_what_failed_is_counted_for_itself_among_many() -> None:
    said = verdict.of_differences(failing(2, ("x", "y")))
    assert said.sure == "wrong"
    assert said.headline == (
        "Of 2 comparisons B is not told apart from A in 1, wrong or failed in 1."
    )
    assert said.details[0] == (
        "Wrong or failed in c, x (application rate): B failed and has only 2 samples: ended by "
        "SIGSEGV."
    )


def test_samples_of_a_foreign_program_without_an_actual_rate_are_ranked(tmp_path: Path) -> None:
    made = [sample(v, i, r) for i in range(1, 8) for v, r in (("x", 1e9), ("y", 2e9))]
    assert verdict.of_session(summary(tmp_path, made)).headline.startswith("y is the fastest")


def test_several_cells_of_one_way_are_compared_with_nothing(tmp_path: Path) -> None:
    said = verdict.of_session(
        summary(tmp_path, made_reports.session({"a": {"x": 1e9}, "b": {"x": 2e9}}))
    )
    assert said.sure == "not compared"
    assert said.headline == "In none of 2 cells was a way of writing compared with another."


def test_the_count_is_of_all_that_are_compared(tmp_path: Path) -> None:
    made = made_reports.session({"c": {"x": 2e9}}, n=10)
    made += made_reports.session({"c": {"y": 1e9}}, n=6)
    (detail,) = verdict.of_session(summary(tmp_path, made)).details
    assert "n=6 to 10 of each" in detail
