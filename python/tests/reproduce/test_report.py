"""From results to a report: verdicts, the paper's tables with ours, and what failed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from made_runs import Rates, results
from made_samples import result, sample
from penstock.bench.sample import Event
from penstock.bench.store import Results
from penstock.errors import ArgumentError
from penstock.reproduce import experiment, render
from penstock.reproduce.report import Concluded, Report, report

CELL = "contiguous, 0 s"
EVEN = [1e9, 1.01e9, 0.99e9, 1e9, 1.02e9, 0.98e9]
SYNCED = "threads S1A write,syncsize=8MiB"


def rates(threads: float) -> Rates:
    return {
        (CELL, "threads S1A write,syncsize=0"): [0.5 * threads * rate for rate in EVEN],
        (CELL, SYNCED): [threads * rate for rate in EVEN],
        (CELL, "ranks S1A write,syncsize=0"): EVEN,
    }


def made(threads: float = 2.0) -> Report:
    parameters = {(CELL, SYNCED): {"syncsize": "8MiB"}}
    return report(results(rates(threads), "reproduce benson2003 quick", parameters))


def concluded(said: Report, name: str) -> Concluded:
    return next(one for one in said.conclusions if one.id == f"benson2003-{name}")


def test_every_conclusion_has_a_verdict_and_a_reason() -> None:
    said = made()
    assert len(said.conclusions) == 17
    assert all(one.why for one in said.conclusions)
    assert said.samples == 18
    untestable = concluded(said, "syncs-help-mmap")
    assert untestable.verdict == "cannot be tested here"
    assert "not measured in this size" in untestable.why


@pytest.mark.parametrize(("threads", "first"), [(2.0, "holds"), (0.5, "does not hold")])
def test_a_seeded_difference_is_found_with_its_sign(threads: float, first: str) -> None:
    one = concluded(made(threads), "threads-where-io-dominates")
    assert one.findings[0].where == CELL
    assert one.findings[0].verdict == first
    assert one.findings[0].n == 6
    # rows of 2 s were not measured: only a claim that fails is decided
    assert one.verdict == ("undecided" if first == "holds" else "does not hold")


def test_a_need_that_is_not_met_comes_before_any_claim() -> None:
    """The made-up device is half as fast as the program's memory."""
    cells = ("1 MiB, 2 writers", "4 MiB, 2 writers")
    said = report(results({(c, "calls"): EVEN for c in cells}, "reproduce gotwals1995 quick"))
    one = next(o for o in said.conclusions if o.id == "gotwals1995-application-rate-ahead")
    assert one.verdict == "cannot be tested here"
    assert "less than 5 times as much" in one.why
    assert not one.findings


def test_a_window_is_said_as_a_sync_size_is() -> None:
    mapped = "threads S1A mmap 8MiB,syncsize=1MiB"
    parameters = {
        (CELL, mapped): {"syncsize": "1MiB", "method": "S1A + mmap(window=8388608)"},
    }
    runs = results({(CELL, mapped): EVEN}, "reproduce benson2003 quick", parameters)
    tables = report(runs).tables
    marks = {e.marks for table in tables for row in table.rows for e in row.here if e is not None}
    assert marks == {"1Mf 8Mw"}


def test_a_table_has_the_papers_entry_and_our_best_with_its_sync_size() -> None:
    table = next(one for one in made().tables if one.title.startswith("Table 3"))
    row = table.rows[0]
    assert row.paper[0] == "2.27 64Mf"
    entry = row.here[0]
    assert entry is not None
    assert entry.variant == SYNCED
    assert entry.marks == "8Mf"
    assert entry.value == pytest.approx(2**26 / 2e9, rel=0.01)
    assert entry.spread == pytest.approx(0.04, rel=0.1)
    assert row.here[1] is None
    assert table.rows[3].here[0] is None


def test_an_entry_is_not_moved_by_a_few_samples_that_memory_took() -> None:
    """Two of eight were taken by memory: their mean is a rate that the disk never had."""
    rates = tuple(1e6 * r for r in (10.0, 10.0, 14.8, 16.1, 16.3, 20.1, 731.7, 810.4))
    runs = results({("1 MiB, 2 writers", "calls"): rates}, "reproduce gotwals1995 full")
    rows = [row for table in report(runs).tables if table.unit == "MB/s" for row in table.rows]
    shown = [e.value for row in rows for e in row.here if e is not None and e.n == len(rates)]
    assert pytest.approx(16.2) in shown


def test_a_report_is_printed_whole_and_as_json() -> None:
    said = made()
    out = io.StringIO()
    render.print_report(said, Console(file=out, width=200))
    text = out.getvalue()
    assert "computation x 1/64" in text
    assert "2.27" in text
    assert "64Mf" in text
    assert "0.0336" in text
    assert "8Mf" in text
    assert "CANNOT BE TESTED HERE: Syncs between help mmap." in text
    assert "on ext4" in text
    told = json.loads(json.dumps(said.as_json()))
    assert told["schema"] == "penstock.reproduction/1"
    assert len(told["conclusions"]) == 17


def test_a_variant_that_left_wrong_bytes_once_decides_nothing() -> None:
    parameters = {(CELL, SYNCED): {"syncsize": "8MiB"}}
    found = results(rates(2.0), "reproduce benson2003 quick", parameters)
    unsynced = "threads S1A write,syncsize=0"
    wrong = {"warm_up": True, "failed": "512 bytes are wrong", "result": result(1e9, wrong=512)}
    found.samples += [sample(v, 0, cell=CELL, **wrong) for v in (SYNCED, unsynced)]
    one = concluded(report(found), "threads-where-io-dominates")
    assert one.verdict == "cannot be tested here"
    assert "left wrong bytes in the file" in one.why


def within(rates: Rates, paper: str = "benson2003 quick", on: str = "") -> Results:
    """Of a session with a budget, which chose what has rates."""
    found = results(rates, f"reproduce {paper}{on}")
    found.headers[0].plan["budget_s"] = 300.0
    return found


def decided(found: Results, name: str) -> tuple[str, str]:
    one = concluded(report(found), name)
    return one.verdict, one.why


NOT_FITTING = ("undecided", "not measured within the budget of 300 s")
NOT_YET = ("undecided", "not measured yet: the same command goes on")
LEFT = {  # by other conclusions, which fitted
    (CELL, "threads S1A write,syncsize=0"): [0.5 * rate for rate in EVEN],
    (CELL, "ranks S1A write,syncsize=0"): EVEN,
}


def test_what_did_not_fit_the_budget_is_not_judged_by_what_others_left() -> None:
    assert decided(within(LEFT), "threads-where-io-dominates") == NOT_FITTING


def test_what_the_warm_ups_dropped_did_not_fit_the_budget() -> None:
    dropped: Rates = {("contiguous, 8 s", "threads S1A write,syncsize=0"): []}
    found = within(LEFT | dropped)
    ((cell, variant),) = dropped
    found.samples.append(sample(variant, 0, cell=cell, warm_up=True))
    assert decided(found, "mpi-where-computing-dominates") == NOT_FITTING


@pytest.mark.parametrize(
    ("what", "blocks", "said"),
    [
        ("interrupted", 1, NOT_YET),
        ("interrupted", 6, NOT_FITTING),  # by what the warm-ups took
        ("budget", 1, NOT_FITTING),
    ],
)
def test_what_an_interrupted_session_lacks_is_not_blamed_on_the_budget(
    what: str, blocks: int, said: tuple[str, str]
) -> None:
    quick = experiment.load("benson2003").cases("quick", experiment.path_of("benson2003"))
    found = within({(c.cell, c.variant): EVEN[:blocks] if c.cell == CELL else [] for c in quick})
    found.events.append(Event(at=found.headers[0].created, what=what, text=""))
    assert decided(found, "mpi-where-computing-dominates") == said


def interrupted(budget_s: float | None, dear_s: float = 0.0) -> Results:
    """In block 1, in a first cell; of the others so long a warm-up took where computing counts."""
    quick = experiment.load("benson2003").cases("quick", experiment.path_of("benson2003"))
    begun = {(c.cell, c.variant): EVEN[:1] if c.cell == CELL else [] for c in quick}
    found = results(begun, "reproduce benson2003 quick")
    found.headers[0].plan["budget_s"] = budget_s
    for case in quick if budget_s else ():
        wall_s = dear_s if case.cell == "contiguous, 8 s" else 0.01
        warm_up = sample(case.variant, 0, cell=case.cell, wall_s=wall_s, warm_up=True)
        found.samples.append(warm_up)
    found.events.append(Event(at=found.headers[0].created, what="interrupted", text=""))
    return found


@pytest.mark.parametrize(
    ("budget_s", "dear_s", "said"),
    [(None, 0.0, NOT_YET), (300.0, 0.01, NOT_YET), (300.0, 20.0, NOT_FITTING)],
)
def test_what_is_not_measured_yet_is_what_the_same_command_goes_on_with(
    budget_s: float | None, dear_s: float, said: tuple[str, str]
) -> None:
    """With a budget the times of the warm-ups have decided what that is."""
    assert decided(interrupted(budget_s, dear_s), "mpi-where-computing-dominates") == said


def test_what_the_size_lacks_is_not_blamed_on_the_budget() -> None:
    verdict, why = decided(within(LEFT), "romio-at-32s")
    assert verdict == "cannot be tested here"
    assert "not measured in this size" in why


def test_what_cannot_be_started_here_is_not_blamed_on_the_budget() -> None:
    quick = experiment.load("benson2003").cases("quick", experiment.path_of("benson2003"))
    rates = {(case.cell, case.variant): EVEN for case in quick if case.mpi == "none"}
    of_threads = within(rates)
    of_threads.headers[0].plan["absent_mpis"] = ["mpich"]
    without = results(rates, "reproduce benson2003 quick")
    assert report(of_threads).conclusions == report(without).conclusions


def test_what_failed_with_a_budget_did_fit_it() -> None:
    whole = {pair: EVEN for pair in experiment.pairs("benson2003") if pair[0] == CELL}
    found = within(whole)
    bad = {"failed": "exit code 3", "result": None}
    found.samples = [
        s.model_copy(update=bad) if s.variant.startswith("threads") else s for s in found.samples
    ]
    one = concluded(report(found), "threads-where-io-dominates")
    assert one.findings[0].why == "threads *: no sample has it"


def test_what_failed_is_told() -> None:
    found = results(rates(1.0), "reproduce benson2003 quick")
    bad = sample("MPI-IO,syncsize=0", cell=CELL, failed="exit code 3")
    found.samples += [bad, bad]
    assert report(found).failed == [
        f"{CELL}, MPI-IO,syncsize=0: 2 failed, the last: exit code 3",
    ]


@pytest.mark.parametrize(("rounds", "verdict"), [(1, None), (5, None), (6, "does not scale")])
def test_a_law_is_judged_by_as_many_samples_as_the_size_has_rounds(
    rounds: int, verdict: str | None
) -> None:
    full = experiment.load("barro2002").cases("full", experiment.path_of("barro2002"))
    reads = [c for c in full if c.cell.startswith("contiguous read,") and c.variant == "collective"]
    found = results({(c.cell, c.variant): [] for c in reads}, "reproduce barro2002 full")
    cpus = {"busy_s": 0.1, "total_s": 1.0}
    for case in reads:
        total = int(case.parameters["bufsize"]) * case.ranks
        line = result(1e7, bytes_=total, workers=case.ranks, cpus=cpus)
        blocks = range(1, rounds + 1)
        found.samples += [sample("collective", b, cell=case.cell, result=line) for b in blocks]
    said = report(found)
    (law,) = (one for one in said.laws if one.law == "contiguous read_all")
    assert (law.verdict, law.n, bool(law.here)) == (verdict, rounds, True)
    out = io.StringIO()
    render.print_report(said, Console(file=out, width=200))
    told = next(one for one in out.getvalue().splitlines() if "contiguous read_all" in one)
    assert f" {rounds} " in told.partition("off)")[2]


@pytest.mark.parametrize("name", ["sizes", "reproduce benson2004 quick", "reproduce benson2003 xl"])
def test_results_of_something_else_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="not what penstock reproduce measured"):
        report(results(rates(1.0), name))


def test_every_papers_report_can_be_made_of_no_samples_at_all() -> None:
    for paper in ("gotwals1995", "barro2002", "liao2007", "chaarawi2009"):
        said = report(results({}, f"reproduce {paper} full"))
        measured = [one for one in said.conclusions if "simulator" not in one.why]
        assert {one.verdict for one in measured} <= {"cannot be tested here", "undecided"}
        assert len(said.conclusions) - len(measured) == (3 if paper == "gotwals1995" else 0)
        render.print_report(said, Console(file=io.StringIO(), width=160))


def test_conclusions_come_from_the_documents(tmp_path: Path) -> None:
    from penstock.reproduce import conclusions

    assert conclusions.default_path().parts[-3:] == ("docs", "reproductions", "conclusions.toml")
