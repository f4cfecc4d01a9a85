"""``penstock log`` and its reader, on a log as src/engine/job_log.cpp writes it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import made_reports
from penstock import joblog
from penstock.errors import ArgumentError
from penstock.report import job as job_report
from support import Cli

LOG: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "job-log.json").read_text())


SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "job-log.schema.json"


def write(tmp_path: Path, **changes: object) -> Path:
    file = tmp_path / "log.json"
    file.write_text(json.dumps({**copy.deepcopy(LOG), **changes}))
    return file


def test_the_sample_is_what_the_published_schema_describes() -> None:
    jsonschema.validate(LOG, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_every_key_that_the_reader_needs_is_required_by_the_schema() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    needed = {name for name, field in joblog.JobLog.model_fields.items() if field.is_required()}
    assert needed <= set(schema["required"])
    assert set(joblog.JobLog.model_fields) <= set(schema["properties"])


@pytest.mark.parametrize(
    ("changes", "elapsed_s"),
    [
        ({}, 12.5),  # of an earlier version, by the wall clock
        ({"written_unix_s": 1_600_000_000.0}, None),  # which was set back
        ({"written_unix_s": 1_600_000_000.0, "elapsed_s": 7.25}, 7.25),
    ],
)
def test_a_wall_clock_that_was_set_back_gives_no_time(
    tmp_path: Path, cli: Cli, changes: dict[str, float], elapsed_s: float | None
) -> None:
    path = write(tmp_path, **changes)
    job = joblog.load(path)
    assert job.known_elapsed_s == elapsed_s
    said = cli("log", str(path)).stdout
    subtitle = job_report.report("log.json", job).subtitle
    if elapsed_s is None:
        assert ", for a time not known, " in said
        assert "a time not known until the log was written" in subtitle
    else:
        assert f", {elapsed_s:.1f} s, " in said
        assert f"{elapsed_s:.1f} s until the log was written" in subtitle


def test_bytes_by_engine_and_passed_through_are_read(tmp_path: Path) -> None:
    job = joblog.load(write(tmp_path))
    assert job.files[0].engine_bytes == LOG["files"][0]["engine_bytes"]
    assert job.totals.passthrough_bytes == LOG["totals"]["passthrough_bytes"]


def test_keys_that_a_later_engine_adds_are_ignored(tmp_path: Path) -> None:
    assert joblog.load(write(tmp_path, news=1)).ranks == LOG["ranks"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 99}, "schema_version 99, and this penstock reads 1"),
        ({"schema_version": None}, "no job log"),
        ({"ranks": "many"}, "ranks"),
        ({"state": "asleep"}, "state"),
    ],
)
def test_what_is_no_job_log_is_refused_with_its_key(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        joblog.load(write(tmp_path, **changes))


def test_half_a_log_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "half.json"
    file.write_text('{"schema_version": 1, ')
    with pytest.raises(ArgumentError, match="is not JSON"):
        joblog.load(file)


def test_the_command_shows_bytes_method_phases_rates_and_degradations(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli("log", str(write(tmp_path)))
    assert done.returncode == 0, done.stderr
    one = LOG["files"][0]
    for shown in (one["path"], one["method"], "exchange", "MiB/s", *one["degraded"]):
        assert shown in done.stdout


@pytest.mark.parametrize(("n", "begins"), [(1, "1 more file is"), (4000, "4000 more files are")])
def test_that_not_all_files_are_listed_is_said(
    cli: Cli, tmp_path: Path, n: int, begins: str
) -> None:
    totals = LOG["totals"] | {"files_not_listed": n}
    one = LOG["files"][0]
    file = str(write(tmp_path, totals=totals, files=[one, one | {"path": "/scratch/other"}]))
    page = cli("report", file, "--format", "md").stdout
    for said in (cli("log", file).stdout, page):
        assert f"{begins} in the sums of the job" in said
    assert "the largest of 2 files that the log lists" in page


def test_what_went_to_files_that_are_not_listed_was_written(cli: Cli, tmp_path: Path) -> None:
    totals = LOG["totals"] | {"files_not_listed": 5}
    unwritten = LOG["files"][0] | {"engine_bytes": 0}
    page = cli("report", str(write(tmp_path, totals=totals, files=[unwritten])), "--format", "md")
    assert "Penstock wrote 64.0 MiB for" in page.stdout
    assert "Penstock wrote nothing" not in page.stdout


def test_wrong_bytes_of_files_that_are_not_listed_are_told(cli: Cli, tmp_path: Path) -> None:
    of_file = LOG["files"][0]["verify"] | {"mismatched_bytes": 4096}
    totals = LOG["totals"] | {"files_not_listed": 5, "mismatched_bytes": 12288}
    both = {"totals": totals, "files": [LOG["files"][0] | {"verify": of_file}]}
    file = str(write(tmp_path, **both))
    assert "0 errors, 12.0 KiB DIFFER" in cli("log", file).stdout
    page = cli("report", file, "--format", "md").stdout
    assert "12.0 KiB read back differ; see the warnings." in page
    assert "8.0 KiB read back DIFFER in files that the log does not list" in page
    earlier = {k: v for k, v in LOG["totals"].items() if k != "mismatched_bytes"}
    file = str(write(tmp_path, **(both | {"totals": earlier})))
    page = cli("report", file, "--format", "md").stdout
    assert "4.0 KiB read back differ; see the warnings." in page
    assert "does not list" not in page


def test_what_a_method_pushes_between_writes_is_sync(cli: Cli, tmp_path: Path) -> None:
    times = LOG["files"][0]["times_s"] | {"sync": 0.5, "policy_sync": 2.25}
    file = str(write(tmp_path, files=[LOG["files"][0] | {"times_s": times}]))
    shown = cli("log", file).stdout
    assert re.search(r"sync +2\.7500 s", shown), shown
    assert "seconds of all ranks together" in shown
    assert " 2.7500 " in cli("report", file, "--format", "md").stdout


def test_what_went_past_the_page_cache_is_shown_where_something_did(
    cli: Cli, tmp_path: Path
) -> None:
    for past, said in ((48 << 20, True), (0, False)):
        traffic = LOG["files"][0].get("traffic", {}) | {"cold_bytes": past}
        file = str(write(tmp_path, files=[LOG["files"][0] | {"traffic": traffic}]))
        found = re.search(r"cold memory +48\.0 MiB past the page cache", cli("log", file).stdout)
        assert bool(found) is said
        page = cli("report", file, "--format", "md").stdout
        assert ("48.0 MiB went past the page cache" in page) is said


@pytest.mark.parametrize("source", ["not known: nobody called sync", "nobody called sync"])
def test_that_a_rate_is_not_known_is_said_once(cli: Cli, tmp_path: Path, source: str) -> None:
    one = LOG["files"][0] | {"actual_rate_bytes_per_s": None, "actual_rate_source": source}
    file = str(write(tmp_path, files=[one]))
    for said in (cli("log", file).stdout, cli("report", file, "--format", "md").stdout):
        assert "not known: nobody called sync" in said
        assert "not known: not known" not in said


def test_what_is_not_known_of_an_observed_file_is_not_shown_as_zero(
    cli: Cli, tmp_path: Path
) -> None:
    path = made_reports.observed_log(tmp_path / "log.json")
    told = [line.split(maxsplit=1) for line in cli("log", str(path)).stdout.splitlines()]
    rows = {words[0]: words[1].strip() for words in told if len(words) == 2}
    assert rows["pattern"] == "not known: no write was served"
    assert rows["file"] == "system         not known"
    assert rows["write"].startswith("calls             1.5000 s")
    assert "plan" not in rows


def test_a_name_cannot_move_the_cursor(cli: Cli, tmp_path: Path) -> None:
    one = LOG["files"][0] | {"path": "\x1b[2Ja[red]b\u202e"}
    done = cli("log", str(write(tmp_path, files=[one])))
    assert "\ufffd[2Ja[red]b\ufffd" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_name_makes_no_line_and_a_calls_name_no_markup(cli: Cli, tmp_path: Path) -> None:
    changes = {"path": "a\nb", "calls": {"[/x]\x1b[2J": 1}}
    done = cli("log", str(write(tmp_path, files=[LOG["files"][0] | changes])))
    assert done.returncode == 0, done.stderr
    assert "a\ufffdb" in done.stdout
    assert "1 [/x]\ufffd[2J" in done.stdout


def test_a_name_with_colons_is_shown_as_it_is(cli: Cli, tmp_path: Path) -> None:
    one = LOG["files"][0] | {"path": "/scratch/a:100:b", "file_system": ":ok:"}
    shown = cli("log", str(write(tmp_path, program="run:100:", files=[one]))).stdout
    for name in ("run:100:", "/scratch/a:100:b", ":ok:"):
        assert name in shown


def test_a_log_is_shown_where_stdout_takes_ascii_only(cli: Cli, tmp_path: Path) -> None:
    one = LOG["files"][0] | {"path": "/scratch/é"}
    file = write(tmp_path, files=[one])
    done = cli("log", str(file), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "/scratch/\\xe9" in done.stdout
    assert "####" in done.stdout
    told = cli("log", "--json", str(file), PYTHONIOENCODING="ascii")
    assert json.loads(told.stdout)["files"][0]["path"] == "/scratch/é"
    page = cli("report", str(file), "--format", "md", PYTHONIOENCODING="ascii")
    assert "/scratch/é" in page.stdout


def test_a_job_whose_start_is_in_no_calendar_is_shown(cli: Cli, tmp_path: Path) -> None:
    done = cli("log", str(write(tmp_path, start_unix_s=1e12)))
    assert done.returncode == 0, done.stderr
    assert "1e+12 s after 1970, for a time not known" in done.stdout


def test_the_start_of_a_job_is_shown_in_local_time(cli: Cli, tmp_path: Path) -> None:
    done = cli("log", str(write(tmp_path, start_unix_s=1_700_000_000.25)), TZ="EST5")
    assert "2023-11-14 17:13:20, " in done.stdout


def test_a_killed_job_is_told_from_a_finished_one(cli: Cli, tmp_path: Path) -> None:
    assert "killed" in cli("log", str(write(tmp_path, state="running"))).stdout
    assert "killed" not in cli("log", str(write(tmp_path, state="finished"))).stdout


def test_of_a_file_still_open_one_ranks_part_is_told_as_that(cli: Cli, tmp_path: Path) -> None:
    one = LOG["files"][0] | {"closed": False, "ranks": 1}
    for ranks, is_part in ((4, True), (1, False)):
        file = write(tmp_path, state="running", ranks=ranks, files=[one])
        shown = cli("log", str(file)).stdout
        assert "not closed when this was written" in shown
        assert ("its numbers are one rank's part" in shown) is is_part


def test_json_is_the_log_itself(cli: Cli, tmp_path: Path) -> None:
    file = write(tmp_path)
    assert cli("log", "--json", str(file)).stdout == file.read_text()


def test_several_logs_are_shown_one_after_the_other(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    files = [str(write(tmp_path, program="heat")), str(write(tmp_path / "second", program="waves"))]
    shown = cli("log", *files).stdout
    assert shown.index("heat") < shown.index("waves")
    documents = json.loads(cli("log", "--json", *files).stdout)
    assert [one["program"] for one in documents] == ["heat", "waves"]


def test_a_log_that_is_not_there_gives_2(cli: Cli) -> None:
    done = cli("log", "none.json")
    assert done.returncode == 2
    assert "none.json cannot be read" in done.stderr
