"""What a report on two results says of itself."""

from __future__ import annotations

from pathlib import Path

import made_reports
from made_samples import sample
from penstock.bench.differences import Side, differences
from penstock.bench.store import load
from penstock.report import compared
from penstock.report.load import Wanted, narrowed


def test_what_was_left_out_is_said_and_the_command_leaves_it_out_again(tmp_path: Path) -> None:
    made = made_reports.session({"a": {"x": 2e9, "y": 1e9}, "b": {"x": 1e9, "y": 1e9}})
    wanted = Wanted(cells=("a",), without=("y",))
    results = narrowed(load(made_reports.write(tmp_path / "s.jsonl", made)), wanted)
    a, b = Side("A.jsonl", results), Side("B.jsonl", results)
    report = compared.report(a, b, differences(a, b, ("actual",), 0.05), wanted, "actual")
    said = [caution.text for caution in report.cautions]
    assert "Left out, as asked for by --without: y." in said
    assert "Only these cells, as asked for by --cell: a." in said
    assert report.commands[0].line == (
        "penstock report A.jsonl B.jsonl --rate actual --margin 0.05 --cell a --without y"
    )
    assert report.commands[1].line == (
        "penstock compare A.jsonl B.jsonl --rate actual --margin 0.05 --cell a --without y"
    )


def test_the_comparison_with_an_exit_code_is_of_the_same(tmp_path: Path) -> None:
    made = made_reports.session({"a": {"x": 2e9}, "b": {"x": 1e9}})
    side = Side("A", load(made_reports.write(tmp_path / "s.jsonl", made)))

    def compares(wanted: Wanted) -> list[str]:
        found = differences(side, side, ("application", "actual"), 0.03)
        report = compared.report(side, side, found, wanted)
        return [c.line for c in report.commands if c.line.startswith("penstock compare")]

    line = "penstock compare A A --rate both --margin 0.03"
    assert compares(Wanted()) == [line]
    assert compares(Wanted(cells=("a", "b"))) == [f"{line} --cell a --cell b"]
    without = Wanted(without=("a ceiling",))
    assert compares(without) == [f"{line} --without 'a ceiling'"]


def test_what_failed_down_to_a_few_samples_is_a_grave_caution(tmp_path: Path) -> None:
    good = made_reports.session({"a": {"x": 2e9}})
    few = [*made_reports.session({"a": {"x": 2e9}}, n=2)]
    few += [sample("x", 50, cell="a", failed="ended by SIGSEGV", result=None)]
    a = Side("A", load(made_reports.write(tmp_path / "a.jsonl", good)))
    b = Side("B", load(made_reports.write(tmp_path / "b.jsonl", few)))
    report = compared.report(a, b, differences(a, b), Wanted())
    grave = [caution.text for caution in report.cautions if caution.grave]
    assert grave == ["a, x, application: B failed and has only 2 samples: ended by SIGSEGV"]
