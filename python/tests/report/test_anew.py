"""The commands that reports give to repeat a session."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import made_reports
from made_samples import header
from penstock.bench import matrix, quick
from penstock.bench.sample import Event
from penstock.bench.statistics import Stopping
from penstock.bench.store import Results, load
from penstock.bench.summary import summarise
from penstock.report import anew

ASKED = quick.record(
    quick.Wish(Path(), 20.0, ("none", "openmpi"), threads=2, launcher="mpirun -n {ranks}")
)
FIXED = {"stopping": {"minimum": 3, "maximum": 3, "checks": [3]}}


@pytest.mark.parametrize(
    ("name", "plan", "command"),
    [
        ("sizes", {}, "penstock bench DIR --matrix FILE.toml"),
        ("sizes", FIXED, "penstock bench DIR --matrix FILE.toml --rounds 3"),
        ("quick", {"stopping": vars(quick.STOPPING)}, "penstock bench DIR"),  # of an early version
        ("quick", quick.record(quick.Wish(Path(), ranks=3)), "penstock bench DIR --ranks 3"),
        (
            "quick",
            ASKED | FIXED,
            "penstock bench DIR --mpi none --mpi openmpi --threads 2 "
            "--launcher 'mpirun -n {ranks}' --budget 20s --rounds 3",
        ),
        (
            "reproduce liao2007 quick",
            {"budget_s": None},
            "penstock reproduce liao2007 --size quick --dir DIR",
        ),
        (
            "reproduce liao2007 quick",
            FIXED,
            "penstock reproduce liao2007 --size quick --dir DIR --rounds 3",
        ),
        (
            "reproduce barro2002 full on ext4,nfs",
            {"budget_s": 480.0},
            "penstock reproduce barro2002 --size full --dir ext4=DIR --dir nfs=DIR --budget 480s",
        ),
        ("reproduce nobody", {}, "penstock bench DIR --matrix FILE.toml"),
    ],
)
def test_a_session_is_repeated_as_it_was_asked_for(
    name: str, plan: dict[str, Any], command: str
) -> None:
    assert anew.line(header(name=name, plan=plan)) == f"{command} --seed 7"


@pytest.mark.parametrize("budget", ["300h", "500h", "1234567s", "12345.678s", "0.01ms", "0.3s"])
def test_a_repeated_session_has_the_same_budget(budget: str) -> None:
    asked_s = matrix.seconds(budget)
    looks = header(name="quick", plan=quick.record(quick.Wish(Path(), asked_s)))
    paper = header(name="reproduce liao2007 quick", plan={"budget_s": asked_s})
    for one in (looks, paper):
        words = shlex.split(anew.line(one))
        assert matrix.seconds(words[words.index("--budget") + 1]) == asked_s


def test_parts_have_seeds_of_their_own() -> None:
    made = Results(headers=[header(seed=seed) for seed in (4, 5, 4)])
    told = [(c.what, c.line.rpartition(" ")[2]) for c in anew.commands(made, "A anew")]
    what = "A anew, in the same order of a part"
    assert told == [(what, "4"), (what, "5")]


def test_a_session_that_went_on_is_repeated_as_it_was_asked_for_last(tmp_path: Path) -> None:
    results = Results()
    for number, rounds in ((0, 5), (1, None)):
        results.add(header(name="sizes", seed=number, plan=FIXED))
        if rounds:
            last = {"stopping": vars(Stopping(rounds, rounds, (rounds,))), "budget_s": None}
            results.add(Event(at="", what="resumed", text="goes on", plan=last))
    lines = [one.line for one in anew.commands(results, "anew")]
    assert [line.partition(" --rounds ")[2] for line in lines] == ["5 --seed 0", "3 --seed 1"]


@pytest.mark.parametrize("begun_s", [300.0, None])
@pytest.mark.parametrize("later_s", [None, 600.0])
@pytest.mark.parametrize("name", ["quick", "reproduce liao2007 quick"])
def test_what_a_budget_chose_at_the_start_is_chosen_anew(
    name: str, begun_s: float | None, later_s: float | None
) -> None:
    def plan(budget_s: float | None) -> dict[str, Any]:
        look = quick.record(quick.Wish(Path(), budget_s or quick.BUDGET_S))
        return {"budget_s": budget_s, **(look if name == "quick" else {})}

    results = Results()
    results.add(header(name=name, plan=plan(begun_s)))
    later = {"stopping": vars(Stopping(2, 2, (2,))), **plan(later_s)}
    results.add(Event(at="", what="resumed", text="goes on", plan=later))
    (told,) = anew.commands(results, "anew")
    assert told.line.endswith(f"{' --budget 300s' if begun_s else ''} --rounds 2 --seed 7")
    assert ("--budget" in told.line) is (begun_s is not None)


def test_what_is_said_of_samples_is_by_the_rule_of_the_last_run(tmp_path: Path) -> None:
    results = load(
        made_reports.write(tmp_path / "s.jsonl", made_reports.session({"c": {"x": 1e9}}))
    )
    assert summarise(results).cells[0].variants[0].converged
    last = {"stopping": vars(Stopping(20, 20, (20,)))}
    results.add(Event(at="", what="resumed", text="goes on", plan=last))
    said = summarise(results)
    assert not said.cells[0].variants[0].converged
    assert any("n=10 of 20" in doubt.text for doubt in said.warnings)
