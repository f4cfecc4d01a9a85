"""A report on a job's log says what one run can say, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import made_reports
from penstock import _core, joblog
from penstock.report import job
from penstock.report.model import Drawn, Report


def of(tmp_path: Path, **changes: Any) -> Report:
    path = made_reports.job_log(tmp_path / "log.json", **changes)
    return job.report(str(path), joblog.load(path))


def section(report: Report, name: str) -> Any:
    return next(s for s in report.sections if s.name == name)


def test_it_says_method_and_rates_and_that_nothing_was_compared(tmp_path: Path) -> None:
    said = of(tmp_path).verdict
    assert said.headline.startswith("two_phase wrote 64.0 MiB to /scratch/heat.dat")
    assert "610.4 MiB/s (n=1)" in said.headline
    assert "not known: this kernel has no cachestat" in said.headline
    assert said.sure == "single run"
    assert "compares with nothing" in said.details[-1]


def test_what_degraded_failed_or_passed_is_a_warning(tmp_path: Path) -> None:
    report = of(
        tmp_path,
        state="running",
        file={"errors": 3, "first_error": "no space", "passthrough_bytes": 4096, "closed": False},
    )
    said = " / ".join(c.text for c in report.cautions)
    for words in ("killed", "3 calls failed, first: no space", "collective buffer was cut",
                  "4.0 KiB were passed through", "was not closed"):  # fmt: skip
        assert words in said
    assert [c.grave for c in report.cautions][:2] == [True, True]


def test_of_a_file_still_open_one_ranks_part_is_told_as_that(tmp_path: Path) -> None:
    of_one = {"closed": False, "ranks": 1}
    report = of(tmp_path, state="running", ranks=4, file=of_one)
    assert any("one rank's part" in words for words in report.verdict.details)
    assert any("one rank's part" in c.text for c in report.cautions)
    assert "ranks: 4 ranks" in section(report, "plan").parts[0].figure.description


def test_entries_of_several_ranks_are_one_file(tmp_path: Path) -> None:
    log = made_reports.job_log(tmp_path / "log.json", file={"closed": False, "ranks": 1})
    known = joblog.load(log)
    twice = known.model_copy(update={"files": known.files * 2})
    assert not any("largest" in words for words in job.report("log", twice).verdict.details)


def test_rates_of_both_writers_name_both_amounts(tmp_path: Path) -> None:
    file = {"engine_bytes": 4096, "passthrough_bytes": 10 << 30, "passthrough_calls": 9}
    said = of(tmp_path, file=file).verdict.headline
    assert "wrote 4.0 KiB, and the MPI library 10.0 GiB, together to /scratch/heat.dat" in said


def test_errors_and_wrong_bytes_are_the_verdict(tmp_path: Path) -> None:
    wrong = {"verified_bytes": 0, "unverified_bytes": 0, "mismatched_bytes": 512}
    report = of(tmp_path, file={"verify": wrong})
    assert report.verdict.sure == "wrong"
    assert "differ" in report.verdict.headline


def test_a_job_that_penstock_did_not_serve_says_so(tmp_path: Path) -> None:
    totals = {"engine_bytes": 0, "passthrough_bytes": 8192, "errors": 0, "degraded": {}}
    report = of(tmp_path, totals=totals, file={"engine_bytes": 0, "algorithms": {}})
    assert report.verdict.headline.startswith("Penstock wrote nothing for heat: 8.0 KiB")
    assert section(report, "plan").text[0].startswith("Not drawn: ")


def test_an_observed_job_is_told_as_one(tmp_path: Path) -> None:
    path = made_reports.observed_log(tmp_path / "log.json")
    report = job.report(str(path), joblog.load(path))
    assert report.verdict.headline.startswith("The MPI library, observed, wrote 64.0 MiB to ")
    assert not report.cautions
    (times,) = section(report, "phases").parts
    assert times.rows == (("/scratch/heat.dat", "1.5000", "0.2500"),)
    assert section(report, "calls").text[0].endswith("is not known, for none was served.")
    assert section(report, "machine").parts[0].rows[0] == ("file systems", "not known")
    assert any(c.line.startswith("penstock run --observe -- mpiexec") for c in report.commands)


def test_how_unserved_calls_lie_beside_served_ones_is_not_known(tmp_path: Path) -> None:
    report = of(tmp_path, file={"passthrough_calls": 3, "passthrough_bytes": 4096})
    assert section(report, "calls").text[0].endswith("; of 3 that were not served it is not known.")
    assert [f.name for f in report.figures] == ["phases-1", "sizes", "plan"]


def test_a_log_whose_totals_are_of_no_file_is_reported(tmp_path: Path) -> None:
    assert of(tmp_path, files=[]).verdict.headline.startswith("Penstock wrote nothing for heat")


def test_a_job_without_files_is_reported(tmp_path: Path) -> None:
    totals = {"engine_bytes": 0, "passthrough_bytes": 0, "errors": 0, "degraded": {}}
    report = of(tmp_path, totals=totals, files=[])
    assert report.figures == []
    assert section(report, "phases").text


def test_phases_sizes_and_plan_are_drawn_from_the_log(tmp_path: Path) -> None:
    report = of(tmp_path)
    assert [f.name for f in report.figures] == ["phases-1", "sizes", "plan"]
    (phases,) = section(report, "phases").parts
    assert isinstance(phases, Drawn)
    assert phases.numbers.rows[0][3] == "0.1200"  # exchange
    assert "to 4MiB: 32 calls" in report.figures[1].description
    assert "interleaved" in report.figures[2].caption


@pytest.mark.parametrize(
    ("ran", "method"),
    [
        ("individual", "auto + shm + pwrite + none + written"),
        ("individual", "auto(writers=2, cycle=64KiB) + shm + pwrite + none + written"),
        ("two_phase", "auto(writers=2) + shm + pwrite + none + written"),
        ("cyclic", "auto(writers=2) + shm + pwrite + none + written"),
    ],
)
def test_the_plan_is_of_what_auto_chose(tmp_path: Path, ran: str, method: str) -> None:
    report = of(tmp_path, file={"algorithms": {ran: 8}, "method": method})
    figure = next(f for f in report.figures if f.name == "plan")
    assert figure.title.startswith(f"The plan of {ran}")


def test_the_commands_are_safe_to_paste(tmp_path: Path) -> None:
    report = of(tmp_path, program="heat; rm -rf ~")
    line = next(c.line for c in report.commands if c.line.startswith("penstock run"))
    method = "--method 'auto + messages + pwrite + none + written'"
    assert line == f"penstock run {method} -- mpiexec -n 4 'heat; rm -rf ~' ..."


def test_the_default_method_is_not_asked_for_by_name(tmp_path: Path) -> None:
    report = of(tmp_path, file={"method": str(_core.default_method())})
    line = next(c.line for c in report.commands if c.line.startswith("penstock run"))
    assert line == "penstock run -- mpiexec -n 4 heat ..."
