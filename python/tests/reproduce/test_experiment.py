"""Every paper's file: what it measures exists, and its tables are about what it measures."""

from __future__ import annotations

import fnmatch
import itertools
import re
from pathlib import Path

import pytest

from penstock.errors import ArgumentError
from penstock.reproduce import PAPERS, SIZES, experiment
from penstock.reproduce.btio import _OPTIONS
from penstock.reproduce.experiment import TableSpec
from penstock.strict import validated

ROOT = Path(__file__).resolve().parents[3]
MEASURE = ROOT / "docs" / "reference" / "measure.md"
PER_PAPER = pytest.mark.parametrize("paper", PAPERS)


@PER_PAPER
def test_every_size_expands_and_says_its_scale_and_time(paper: str) -> None:
    found = experiment.load(paper)
    assert found.sizes()[:2] == ["quick", "full"]
    for size in found.sizes():
        assert found.cases(size, experiment.path_of(paper))
        assert found.sweep(size, experiment.path_of(paper)).rounds
        assert found.in_size(size).scale
        assert found.in_size(size).takes


@PER_PAPER
def test_the_paper_s_own_size_is_there_where_full_is_scaled(paper: str) -> None:
    found = experiment.load(paper)
    assert SIZES[-1] == "paper"
    with pytest.raises(ArgumentError, match=r"--size must be quick or full.*, got ful"):
        found.in_size("ful")
    assert ("paper" in found.sizes()) == ("1/" in found.in_size("full").scale)


@PER_PAPER
def test_every_parameter_is_an_option_of_the_program(paper: str) -> None:
    if experiment.load(paper).program == "btio":
        known = set(_OPTIONS)
    else:
        table = re.findall(r"^\| `--([a-z-]+)`", MEASURE.read_text(encoding="utf-8"), re.MULTILINE)
        known = {name.replace("-", "_") for name in table}
    assert known
    for size in experiment.load(paper).sizes():
        for case in experiment.load(paper).cases(size, experiment.path_of(paper)):
            assert set(case.parameters) <= known, case


@PER_PAPER
def test_tables_laws_and_series_are_about_what_is_measured(paper: str) -> None:
    found, pairs = experiment.load(paper), experiment.pairs(paper)
    cells, variants = ({pair[i] for pair in pairs} for i in (0, 1))
    for table in found.table:
        assert {cell for _, cell in table.rows} <= cells
        for _, pattern in table.columns:
            assert not pattern or fnmatch.filter(variants, pattern), pattern
    for law in found.fit:
        assert fnmatch.filter(cells, law.cells)
        assert law.variant in variants
    for series in found.series:
        assert all((series.cell, variant) in pairs for variant in series.variants)


@PER_PAPER
def test_the_quick_size_measures_a_part_of_the_full_one(paper: str) -> None:
    found, path = experiment.load(paper), experiment.path_of(paper)
    sizes = [{(c.cell, c.variant) for c in found.cases(s, path)} for s in found.sizes()]
    for smaller, larger in itertools.pairwise(sizes):
        assert smaller - larger == set()


def test_a_paper_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(
        ArgumentError, match="there is no paper benson2004; did you mean benson2003"
    ):
        experiment.path_of("benson2004")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"paper": [["1", "2"]]}, "paper must have 1 rows of 1 entries"),
        ({"measure": "knees"}, "there is no measure knees; did you mean knee"),
        ({"measures": ["knee", "late"]}, "measures must be one for each of 1 columns"),
        ({"unit": "h"}, "unit: input should be"),
        ({"titel": ""}, "there is no key titel; did you mean title"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(more: dict[str, object], said: str) -> None:
    values = {"title": "t", "unit": "s", "rows": [["r", "c"]], "columns": [["c", "v"]]}
    with pytest.raises(ArgumentError, match=re.escape(said)):
        validated(TableSpec, values | more, "x.toml")
