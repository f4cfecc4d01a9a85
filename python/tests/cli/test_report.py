"""``penstock report`` end to end: formats, where they go, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import made_reports
from support import Cli

LEVELS = {"small": {"x": 1e9, "y": 2e9}, "large": {"x": 2e9, "y": 4e9}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    where = tmp_path / "results"
    where.mkdir()
    made_reports.write(where / "samples.jsonl", made_reports.session(LEVELS, n=8))
    return where


def test_a_page_is_written_where_asked_and_stdout_stays_empty(
    cli: Cli, results: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    done = cli("report", str(results), "--out", str(out))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"penstock: report in {out}\n"
    assert "y is the fastest in 2 of 2 cells." in out.read_text()


def test_by_default_the_page_is_in_the_working_directory(
    cli: Cli, results: Path, tmp_path: Path
) -> None:
    assert cli("report", str(results)).returncode == 0
    assert (tmp_path / "empty" / "penstock-report.html").read_text().startswith("<!DOCTYPE html>")


def test_markdown_goes_to_stdout_or_to_a_file_by_its_name(
    cli: Cli, results: Path, tmp_path: Path
) -> None:
    done = cli("report", str(results), "--format", "md")
    assert done.stdout.startswith("## y is the fastest in 2 of 2 cells.\n")
    assert done.stderr == ""
    out = tmp_path / "comment.md"
    assert cli("report", str(results), "--out", str(out)).returncode == 0
    assert out.read_text() == done.stdout


def test_two_results_are_compared(cli: Cli, results: Path, tmp_path: Path) -> None:
    other = tmp_path / "after"
    other.mkdir()
    faster = {cell: {v: 1.5 * r for v, r in own.items()} for cell, own in LEVELS.items()}
    made_reports.write(other / "samples.jsonl", made_reports.session(faster, n=8, seed=4))
    done = cli("report", str(results), str(other), "--format", "md")
    assert done.stdout.startswith("## Of 8 comparisons B is faster in 8.\n")
    assert "not interleaved" in done.stdout


def test_the_same_results_twice_are_those_of_one_session(cli: Cli, results: Path) -> None:
    with (results / "samples.jsonl").open("a") as file:
        file.write('{"record": "sample", "ce')
    again = str(results / "samples.jsonl")
    done = cli("report", str(results), again, "--format", "md", "--without", "y")
    assert done.returncode == 0, done.stderr
    assert "not interleaved" not in done.stdout
    assert done.stdout.count("ends within a line") == 1


def test_a_job_log_is_reported(cli: Cli) -> None:
    done = cli("report", str(made_reports.JOB_LOG), "--format", "md")
    assert done.stdout.startswith("## two_phase wrote 64.0 MiB to /scratch/heat.dat")


def test_figures_become_files(cli: Cli, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    done = cli("report", str(results), "--format", "svg", "--out", str(out))
    assert done.returncode == 0
    names = {p.name for p in out.iterdir()}
    assert {"ranking-1.svg", "phases-2.svg", "heat-actual.svg", "plan.svg"} <= names
    assert done.stderr == f"penstock: {len(names)} figures in {out}\n"


def test_cells_and_variants_are_left_out_and_that_is_said(cli: Cli, results: Path) -> None:
    done = cli("report", str(results), "--format", "md", "--cell", "small", "--without", "y")
    assert done.stdout.startswith("## x wrote at 950 MiB/s [")
    assert "Left out, as asked for by --without: y." in done.stdout
    assert "| y |" not in done.stdout


def test_the_rate_that_ranks_can_be_chosen(cli: Cli, results: Path) -> None:
    done = cli("report", str(results), "--format", "md", "--rate", "actual")
    assert "ranked by the actual rate" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["{tmp}/none"], "none cannot be read: No such file or directory; a report is made from"),
        (["{tmp}"], "holds no results"),
        (["{tmp}/text"], "is nothing that a report is made from"),
        (["{job}", "{job}"], "one run has no spread to compare"),
        (["{results}", "{job}"], "one run has no spread to compare"),
        (["{job}", "--cell", "x"], "leave --cell out"),
        (["{job}", "--margin", "0.5"], "is a log of one run: leave --margin out"),
        (["{job}", "--rate", "actual"], "is a log of one run: leave --rate out"),
        (["{results}", "--without", "xx"], 'no such variant; did you mean "x"? There are also "'),
        (["{results}", "--cell", "z"], '--cell names "z"'),
        (["{results}", "--margin", "3"], "0.03 is 3 %"),
        (["{results}", "--format", "svg", "--out", "-"], "must be a directory"),
        (["{tmp}/empty.jsonl"], "is empty"),
    ],
)
def test_what_is_wrong_is_one_line_on_stderr_and_2(
    cli: Cli, results: Path, tmp_path: Path, words: list[str], says: str
) -> None:
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "empty.jsonl").touch()
    places = {"tmp": tmp_path, "results": results, "job": made_reports.JOB_LOG}
    done = cli("report", *(w.format(**places) for w in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.startswith("penstock: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_place_that_cannot_be_written_is_1(cli: Cli, results: Path, tmp_path: Path) -> None:
    done = cli("report", str(results), "--out", str(tmp_path / "no" / "report.html"))
    assert done.returncode == 1
    assert "give another --out" in done.stderr


def test_a_session_that_had_not_begun_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"record": "header"})[:-4])
    done = cli("report", str(path))
    assert done.returncode == 2
    assert "holds no results" in done.stderr


def test_help_has_examples(cli: Cli) -> None:
    done = cli("report", "--help")
    assert "Examples:" in done.stdout
    assert "penstock report before after --format md" in done.stdout
