"""What ``penstock bench`` advises at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_samples import result, sample, write
from penstock import _core
from penstock.bench.store import load
from penstock.bench.summary import summarise
from penstock.cli.bench import _advice


@pytest.mark.parametrize(
    ("lead", "says"),
    [
        (1.0, "c, as individual is not shown to be better than the default: penstock run -- ..."),
        (2.0, "c: penstock run --method 'individual + none + pwrite' -- ..."),
    ],
)
def test_no_method_is_advised_that_is_not_shown_to_beat_the_default(
    tmp_path: Path, lead: float, says: str
) -> None:
    ways = {"penstock": str(_core.default_method()), "individual": "individual + none + pwrite"}
    samples = [
        sample(variant, block, result=result(rate * step, engine={"method": method}))
        for (variant, method), rate in zip(ways.items(), (1e9, lead * 1.01e9), strict=True)
        for block, step in enumerate((0.9, 0.95, 1.0, 1.05, 1.1, 1.15), start=1)
    ]
    (cell,) = summarise(load(write(tmp_path / "samples.jsonl", samples))).cells
    assert cell.ranking.best == "individual"
    assert _advice(cell) == f"for programs like {says}"


def test_no_method_is_advised_where_the_default_was_not_measured(tmp_path: Path) -> None:
    ways = ("individual + none + pwrite", "individual + none + pwritev")
    samples = [
        sample(way, block, result=result(rate * step, engine={"method": way}))
        for way, rate in zip(ways, (2e9, 1e9), strict=True)
        for block, step in enumerate((0.9, 0.95, 1.0, 1.05, 1.1, 1.15), start=1)
    ]
    (cell,) = summarise(load(write(tmp_path / "samples.jsonl", samples))).cells
    assert cell.ranking.slower
    assert "is not shown to be better than the default: penstock run -- ..." in _advice(cell)
