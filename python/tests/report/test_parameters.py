"""Which parameters tell most, and the map over them."""

from __future__ import annotations

from pathlib import Path

import pytest

import made_reports
from penstock.bench.store import load
from penstock.bench.summary import summarise
from penstock.report import bench, parameters
from penstock.report.load import Wanted

WAYS = ("x", "y")


def points(tmp_path: Path, rates: dict[tuple[str, str, str], float]) -> list[parameters.Point]:
    """Of cells named by (bufsize, pattern, seed), each with two ways of the rate and half of it."""
    levels = {",".join(key): {"x": rate, "y": rate / 2} for key, rate in rates.items()}
    named = {
        ",".join(key): dict(zip(("bufsize", "pattern", "seed"), key, strict=True)) for key in rates
    }
    path = made_reports.write(tmp_path / "s.jsonl", made_reports.session(levels, n=6), named)
    results = load(path)
    return parameters.points(summarise(results).cells, results.headers[0], "application")


def grid(tmp_path: Path, weight: dict[str, float]) -> list[parameters.Point]:
    sizes = {"64KiB": 1.0, "1MiB": weight["bufsize"]}
    patterns = {"contiguous": 1.0, "strided": weight["pattern"]}
    seeds = {"1": 1.0, "2": weight["seed"]}
    return points(
        tmp_path,
        {
            (s, p, d): 1e9 * fs * fp * fd
            for s, fs in sizes.items()
            for p, fp in patterns.items()
            for d, fd in seeds.items()
        },
    )


def test_what_explains_most_comes_first(tmp_path: Path) -> None:
    told = parameters.telling(grid(tmp_path, {"bufsize": 8.0, "pattern": 4.0, "seed": 1.0}))
    assert [t.name for t in told[:3]] == ["bufsize", "pattern", "variant"]
    assert told[0].share > told[1].share > told[2].share
    assert told[-1].name == "seed"
    assert told[-1].share < 0.05


def test_the_map_is_over_the_two_first(tmp_path: Path) -> None:
    found = grid(tmp_path, {"bufsize": 8.0, "pattern": 4.0, "seed": 1.0})
    assert set(parameters.two(found) or ()) == {"bufsize", "pattern"}
    found = grid(tmp_path, {"bufsize": 1.0, "pattern": 1.0, "seed": 9.0})
    assert set(parameters.two(found) or ()) == {"seed", "variant"}


def test_a_parameter_that_follows_another_is_not_its_partner(tmp_path: Path) -> None:
    """Seed says what bufsize says: a map over both would be a diagonal."""
    found = points(
        tmp_path,
        {("1KiB", "p", "1"): 1e8, ("1MiB", "p", "2"): 1e9, ("2MiB", "p", "3"): 2e9},
    )
    assert set(parameters.two(found) or ()) == {"bufsize", "variant"}


def test_squares_hold_medians_and_name_their_cells(tmp_path: Path) -> None:
    found = grid(tmp_path, {"bufsize": 8.0, "pattern": 4.0, "seed": 1.0})
    only = [p for p in found if p.values["variant"] == "x"]
    made = parameters.mapped(only, "bufsize", "pattern")
    assert made.rows == ["64KiB", "1MiB"]
    assert len(made.squares) == 4
    square = next(s for s in made.squares if (s.row, s.column) == ("1MiB", "strided"))
    assert len(square.rates) == 2
    assert square.rate == pytest.approx(32e9, rel=0.03)
    assert "median of 2 medians" in square.said
    assert "n=12" in square.said


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        (["16", "2", "8"], ["2", "8", "16"]),
        (["1MiB", "64KiB", "4MB"], ["64KiB", "1MiB", "4MB"]),
        (["strided", "contiguous"], ["strided", "contiguous"]),
    ],
)
def test_axes_are_ordered_by_size_where_they_have_one(
    tmp_path: Path, values: list[str], ordered: list[str]
) -> None:
    found = points(tmp_path, {(v, "p", "1"): 1e9 * (i + 1) for i, v in enumerate(values)})
    assert list(parameters.mapped(found, "bufsize", "variant").rows) == ordered


def test_cells_without_parameters_are_mapped_by_name(tmp_path: Path) -> None:
    samples = made_reports.session({c: {"x": 1e9, "y": 2e9} for c in "abd"}, n=6)
    results = load(made_reports.write(tmp_path / "s.jsonl", samples))
    found = parameters.points(summarise(results).cells, results.headers[0], "application")
    assert set(parameters.two(found) or ()) == {"cell", "variant"}


def test_one_cell_spans_no_map(tmp_path: Path) -> None:
    samples = made_reports.session({"c": {"x": 1e9, "y": 2e9}}, n=6)
    results = load(made_reports.write(tmp_path / "s.jsonl", samples))
    found = parameters.points(summarise(results).cells, results.headers[0], "application")
    assert parameters.two(found) is None


def test_a_pair_that_leaves_its_map_mostly_empty_is_not_taken(tmp_path: Path) -> None:
    """The second pattern was measured with one of many sizes only."""
    sizes = ("1KiB", "2KiB", "4KiB", "8KiB", "16KiB")
    rates = {(s, "contiguous", "1"): 1e8 * 4**i for i, s in enumerate(sizes)}
    found = points(tmp_path, rates | {("1KiB", "strided", "1"): 1e6})
    assert set(parameters.two(found) or ()) == {"bufsize", "variant"}


def test_of_a_sweep_in_parts_all_cells_have_their_parameters(tmp_path: Path) -> None:
    cells = {name: {"x": 1e9 * int(name)} for name in "1234"}
    for number, own in enumerate((["1", "2"], ["3", "4"])):
        path = tmp_path / f"samples.{number}.jsonl"
        samples = made_reports.session({c: cells[c] for c in own}, n=6)
        made_reports.write(path, samples, {c: {"bufsize": f"{c}MiB"} for c in own})
    results = load(tmp_path)
    whole = bench.Session("r", results, summarise(results), Wanted())
    assert set(parameters.of_cells(whole.header)) == set("1234")
    report = bench.report(whole)
    own = [c.what for c in report.commands if c.what.startswith("x of")]
    assert own == [f"x of {c}" for c in "1234"]
