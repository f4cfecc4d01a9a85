"""``penstock bench``: from a directory or a matrix to a verdict; what is said when it cannot be."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.bench.store import load
from support import Cli

FAKE = Path(__file__).resolve().parents[1] / "bench" / "fake_program.py"
MATRIX = """
rounds = 2
settle = "0.1s"
[sweep]
iters = [1, 2]
[compare]
method = ["a", "b"]
"""
TELLS = {"PYTHONWARNINGS": "default"}


@pytest.fixture
def measure(native_dir: Path, tmp_path: Path, cli: Cli) -> Path:
    """A stand-in for penstock-measure-threads; gives the directory that is measured."""
    program = native_dir / "penstock-measure-threads"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {FAKE} --noise 0.01 "$@"\n')
    program.chmod(0o755)
    (tmp_path / "data").mkdir()
    (tmp_path / "empty" / "sizes.toml").write_text(MATRIX)
    return tmp_path / "data"


def test_a_matrix_is_measured_and_summarised(cli: Cli, measure: Path, tmp_path: Path) -> None:
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--seed", "5")
    assert done.returncode == 0, done.stderr
    assert "seed 5; results in penstock-bench-sizes" in done.stderr
    assert "block 1, 1/5: " in done.stderr
    assert "n=2" in done.stdout
    assert "results: penstock-bench-sizes" in done.stdout
    results = load(tmp_path / "empty" / "penstock-bench-sizes")
    assert len(results.samples) == 4 + 2 * 5
    assert results.headers[0].seed == 5
    assert not list(measure.iterdir())


def test_the_same_command_again_measures_nothing_new(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        done = cli("bench", str(measure), "--matrix", "sizes.toml")
        assert done.returncode == 0, done.stderr
    assert "all 14 samples were there already" in done.stderr
    assert len(load(tmp_path / "empty" / "penstock-bench-sizes").samples) == 14


def test_commands_that_are_printed_can_be_run(cli: Cli, measure: Path) -> None:
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--out", "my results")
    assert "penstock compare OTHER 'my results'\n" in done.stdout
    assert "penstock report 'my results'\n" in done.stdout


def test_json_is_alone_on_stdout(cli: Cli, measure: Path) -> None:
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--json")
    assert json.loads(done.stdout)["schema"] == "penstock.summary/1"


def test_samples_are_exported(cli: Cli, measure: Path, tmp_path: Path) -> None:
    done = cli(
        *("bench", str(measure), "--matrix", "sizes.toml", "--export", "parquet,csv", "--out", "r"),
        **TELLS,
    )
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "empty" / "r").iterdir()}
    assert {"samples.jsonl", "samples.csv", "samples.parquet"} <= names


def test_a_dry_run_lists_and_estimates_and_stores_nothing(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "2 cells, 4 measurements, 14 to 14 samples" in done.stdout
    assert "--iters 2 --method b" in done.stdout
    assert "from a pilot of" in done.stdout
    assert not (tmp_path / "empty" / "penstock-bench-sizes").exists()
    assert not list(measure.iterdir())


def test_values_that_the_program_refuses_are_told_before_anything_runs(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    text = (tmp_path / "empty" / "sizes.toml").read_text()
    (tmp_path / "empty" / "wrong.toml").write_text(text.replace('"b"', '"no-such-method"'))
    for more in (["--dry-run"], []):
        done = cli("bench", str(measure), "--matrix", "wrong.toml", *more)
        assert done.returncode == 2, done.stdout
        assert "wrong.toml: method: no-such-method is not known" in done.stderr
    assert not list(measure.iterdir())


def test_a_dry_run_after_samples_estimates_from_them(cli: Cli, measure: Path) -> None:
    cli("bench", str(measure), "--matrix", "sizes.toml", "--rounds", "1")
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--dry-run", "--json")
    told = json.loads(done.stdout)
    assert "earlier samples" in told["estimate_source"]
    assert told["estimate_s"] > 0
    assert len(told["measurements"]) == 4


def test_a_dry_run_refuses_what_the_run_would_refuse(cli: Cli, measure: Path) -> None:
    words = ("bench", str(measure), "--matrix", "sizes.toml")
    assert cli(*words, "--seed", "7").returncode == 0
    for more in (["--dry-run"], ["--dry-run", "--json"], []):
        done = cli(*words, "--seed", "8", *more)
        assert done.returncode == 2, done.stderr
        assert "holds the results of another plan: its seed is 7, not 8" in done.stderr
        assert done.stdout == ""


def test_a_budget_says_how_to_go_on(cli: Cli, measure: Path) -> None:
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--budget", "0.2s")
    assert done.returncode in (0, 1)
    assert "the budget is used up; to go on give more of it" in done.stderr
    assert done.stderr.rstrip().endswith(" --budget TIME")


def test_what_goes_on_stands_before_the_end_of_the_options(cli: Cli, measure: Path) -> None:
    done = cli("bench", "--matrix", "sizes.toml", "--budget", "0.2s", "--", str(measure))
    assert f"penstock bench --matrix sizes.toml --budget TIME -- {measure}" in done.stderr


def test_parts_are_measured_apart_and_gathered(cli: Cli, measure: Path, tmp_path: Path) -> None:
    for number in range(3):
        done = cli("bench", str(measure), "--matrix", "sizes.toml", "--part", f"{number}/3")
        assert done.returncode == 0, done.stderr
    assert "part 2 has no cell: nothing to measure" in done.stderr
    names = {p.name for p in (tmp_path / "empty" / "penstock-bench-sizes").iterdir()}
    assert names == {"samples.0.jsonl", "samples.1.jsonl"}
    whole = cli("bench", str(measure), "--matrix", "sizes.toml")
    assert whole.returncode == 0, whole.stderr
    assert "parts 0-1 of 3 in penstock-bench-sizes" in whole.stderr
    assert "not begun" not in whole.stderr
    assert "iters=1" in whole.stdout
    assert "iters=2" in whole.stdout
    assert (
        len({header.seed for header in load(tmp_path / "empty/penstock-bench-sizes").headers}) == 1
    )


def test_a_part_without_a_cell_has_nothing_to_try(cli: Cli, measure: Path) -> None:
    words = ("--matrix", "sizes.toml", "--part", "2/3", "--dry-run")
    for more in ([], ["--json"]):
        done = cli("bench", str(measure), *words, *more)
        assert done.returncode == 0, done.stderr
        assert done.stderr == "penstock: part 2 has no cell: nothing to measure\n"
        assert done.stdout == ""


def test_one_cell_is_not_called_cells(cli: Cli, measure: Path) -> None:
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--part", "0/2", "--dry-run")
    assert "\n1 cell, 2 measurements, " in done.stdout


def part_of_two(cli: Cli, measure: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The first of two parts, into r."""
    words = ("bench", str(measure), "--matrix", "sizes.toml", "--out", "r", "--part", "0/2")
    return cli(*words, *more)


def test_gathering_tells_which_parts_are_missing(cli: Cli, measure: Path, tmp_path: Path) -> None:
    part_of_two(cli, measure, "--budget", "0.1s")
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--out", "r", "--rounds", "9")
    for words in ("part 0 of 2 in r", "not begun: part 1", "not complete: part 0", "--part 1/2"):
        assert words in done.stderr


def test_gathering_reads_parts_alone(cli: Cli, measure: Path, tmp_path: Path) -> None:
    words = ("bench", str(measure), "--matrix", "sizes.toml", "--out", "r")
    assert cli(*words).returncode == 0
    whole = tmp_path / "empty" / "r" / "samples.jsonl"
    whole.rename(whole.with_name("samples-whole.jsonl"))
    assert part_of_two(cli, measure).returncode == 0
    done = cli(*words)
    assert "not begun: part 1" in done.stderr
    assert "iters=2" not in done.stdout  # which the other part measures


def test_parts_are_exported_apart(cli: Cli, measure: Path, tmp_path: Path) -> None:
    words = ("bench", str(measure), "--matrix", "sizes.toml", "--out", "r", "--export", "csv")
    for number in (0, 1):
        assert cli(*words, "--part", f"{number}/2").returncode == 0
    assert cli(*words).returncode == 0
    there = tmp_path / "empty" / "r"
    lines = [
        (there / f"{name}.csv").read_text().splitlines()
        for name in ("samples.0", "samples.1", "samples")
    ]
    assert not set(lines[0][1:]) & set(lines[1][1:])
    assert len(lines[2]) == len(lines[0]) + len(lines[1]) - 1


def test_parts_that_drew_their_own_seeds_show_them_all(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    for number in range(2):
        words = ("--matrix", "sizes.toml", "--part", f"{number}/2", "--seed", str(number + 5))
        assert cli("bench", str(measure), *words).returncode == 0
    done = cli("bench", str(measure), "--matrix", "sizes.toml")
    assert "seeds 5, 6" in done.stdout


def test_parts_of_another_plan_are_refused(cli: Cli, measure: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "other.toml").write_text(MATRIX.replace("[1, 2]", "[1, 2, 3]"))
    part_of_two(cli, measure)
    data = str(measure)
    for words, says in (
        ([data, "--matrix", "other.toml"], "a of iters=3 is new in the plan"),
        ([data, "--matrix", "sizes.toml", "--seed", "1"], "its seed is"),
        (["elsewhere", "--matrix", "sizes.toml"], "it did not measure elsewhere"),
        ([data, "--matrix", "missing.toml"], "missing.toml cannot be read"),
        ([data], "r holds parts of a sweep: give its --matrix"),
        ([data, "--matrix", "sizes.toml", "--part", "1/3"], "begun in 2 parts"),
    ):
        done = cli("bench", *words, "--out", "r")
        assert done.returncode == 2
        assert says in done.stderr
        assert done.stdout == ""


def test_a_part_and_a_whole_sweep_do_not_share_results(cli: Cli, measure: Path) -> None:
    cli("bench", str(measure), "--matrix", "sizes.toml", "--out", "r")
    done = part_of_two(cli, measure)
    assert done.returncode == 2
    assert "r holds samples.jsonl, of a sweep that was not measured in parts" in done.stderr


def test_a_seed_below_0_and_an_empty_matrix_are_refused(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty" / "empty.toml").touch()
    for words, says in (
        (["--seed", "-1"], "penstock: --seed must be at least 0, got -1\n"),
        (["--matrix", "empty.toml"], "penstock: empty.toml says nothing, and a matrix has"),
    ):
        done = cli("bench", str(measure), *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(says)
    assert not list(measure.iterdir())


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """The variables that put an sbatch, which takes whatever it is given, into PATH."""
    where = tmp_path / "slurm"
    where.mkdir()
    for client, told in (("sbatch", "echo 42"), ("squeue", "exit 0")):
        (where / client).write_text(f"#!/bin/sh\n{told}\n")
        (where / client).chmod(0o755)
    return {"PATH": f"{where}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere", "--matrix", "sizes.toml"], "DIR must be a directory"),
        (["DATA", "--matrix", "missing.toml"], "missing.toml cannot be read"),
        (["DATA", "--matrix", "parameter.toml"], "did you mean bufsize?"),
        (["DATA", "--matrix", "sizes.toml", "--ranks", "2"], "--ranks is for the quick look"),
        (["DATA", "--matrix", "sizes.toml", "--submit", "0"], "--submit must be a number of parts"),
        (["DATA", "--matrix", "sizes.toml", "--submit", "999999999"], "at most the cells of sizes"),
        (["DATA"], "divide the cells of a --matrix"),
        (
            ["DATA", "--matrix", "sizes.toml", "--json"],
            "--submit measures nothing: leave --json out",
        ),
        (
            ["DATA", "--matrix", "empty.toml"],
            "empty.toml says nothing, and a matrix has [defaults]",
        ),
        (["DATA", "--matrix", "sizes.toml", "--part", "0/2"], "leave one of them out, got --part"),
    ],
)
def test_what_every_part_would_refuse_is_not_submitted(
    cli: Cli,
    measure: Path,
    tmp_path: Path,
    slurm: dict[str, str],
    words: list[str],
    says: str,
) -> None:
    (tmp_path / "empty" / "parameter.toml").write_text("[defaults]\nbufsiz = 2")
    (tmp_path / "empty" / "empty.toml").write_text("# to be written\n")
    given = [str(measure) if word == "DATA" else word for word in words]
    done = cli("bench", "--submit", "2", "--out", "r", *given, **slurm)
    assert done.returncode == 2
    assert says in done.stderr
    assert not (tmp_path / "empty" / "r").exists()


def test_gathering_what_has_not_begun_measures_nothing(
    cli: Cli, measure: Path, tmp_path: Path, slurm: dict[str, str]
) -> None:
    words = ("bench", str(measure), "--matrix", "sizes.toml", "--out", "r")
    done = cli(*words, "--submit", "2", **slurm)
    assert done.returncode == 0, done.stderr
    gathered = cli(*words)
    assert gathered.returncode == 1
    assert "no part of r has begun: squeue -j 42" in gathered.stderr
    assert not list((tmp_path / "empty" / "r").glob("samples*"))
    assert "was submitted in 2 parts" in cli(*words, "--part", "0/3").stderr


def test_a_quick_look_needs_no_configuration(cli: Cli, measure: Path, tmp_path: Path) -> None:
    words = ("bench", str(measure), "--mpi", "none", "--budget", "15s")
    done = cli(*words, **TELLS)
    assert done.returncode == 0, done.stderr
    assert "penstock, threads" in done.stdout
    assert (tmp_path / "empty" / "penstock-bench-data" / "samples.jsonl").exists()
    again = cli(*words, **TELLS)  # with the sizes of the first time
    assert again.returncode == 0, again.stderr
    assert "were there already" in again.stderr or "the budget of" in again.stderr


def test_a_quick_look_does_not_go_on_with_a_sweep(cli: Cli, measure: Path, tmp_path: Path) -> None:
    words = ("bench", str(measure), "--out", "my results")
    assert cli(*words, "--matrix", "sizes.toml").returncode == 0
    before = (tmp_path / "empty" / "my results" / "samples.jsonl").read_bytes()
    for more in ([], ["--dry-run"]):
        done = cli(*words, *more)
        assert done.returncode == 2, done.stdout
        assert "my results holds the results of a sweep, not of a quick look" in done.stderr
        assert done.stderr.endswith("or read them with penstock report 'my results'\n")
    assert (tmp_path / "empty" / "my results" / "samples.jsonl").read_bytes() == before


def processes_of(directory: Path) -> list[Path]:
    """Those that have a directory on their command line."""
    found = []
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(directory) in words.read_bytes():
                found.append(words)
    return found


QUICK = ["--mpi", "none", "--budget", "15s"]
SWEEP = ["--matrix", "sizes.toml"]


@pytest.mark.parametrize(
    ("words", "of_next"),
    [
        (QUICK, QUICK),
        ([*SWEEP, "--dry-run"], [*SWEEP, "--dry-run"]),
        ([*SWEEP, "--dry-run"], SWEEP),
    ],
)
def test_what_a_pilot_left_that_was_killed_goes_with_the_next(
    cli: Cli,
    measure: Path,
    tmp_path: Path,
    clean_environment: dict[str, str],
    words: list[str],
    of_next: list[str],
) -> None:
    program = tmp_path / "native" / "penstock-measure-threads"
    text = program.read_text()
    program.write_text(text.replace("--noise", "--sleep 50 --noise"))
    command = [sys.executable, "-m", "penstock", "bench", str(measure), *words]
    killed = subprocess.Popen(
        command, cwd=tmp_path / "empty", env=clean_environment, stderr=subprocess.DEVNULL
    )
    until_s = time.monotonic() + 30
    while not list(measure.glob(".penstock-*/data*")) and time.monotonic() < until_s:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    assert len(processes_of(measure)) == 1
    program.write_text(text)
    done = cli("bench", str(measure), *of_next, **TELLS)
    assert done.returncode == 0, done.stderr
    assert processes_of(measure) == []
    assert list(measure.iterdir()) == []


def test_a_submission_shows_its_script(cli: Cli, measure: Path) -> None:
    done = cli(
        *("bench", str(measure), "--matrix", "sizes.toml", "--submit", "2", "--dry-run"),
        "--sbatch=--nodes=2",
    )
    assert done.returncode == 0, done.stderr
    assert "#SBATCH --nodes=2" in done.stdout
    assert '--part "$SLURM_ARRAY_TASK_ID/2"' in done.stdout
    assert "--submit" not in done.stdout.split("exec ")[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "DIR must be a directory"),
        (["DATA", "--matrix", "missing.toml"], "missing.toml cannot be read: No such file"),
        (["DATA", "--matrix", "typo.toml"], "did you mean rounds?"),
        (["DATA", "--matrix", "parameter.toml"], "did you mean bufsize?"),
        (["DATA", "--matrix", "sizes.toml", "--ranks", "2"], "--ranks is for the quick look"),
        (["DATA", "--budget", "soon"], "--budget must be a time such as"),
        (["DATA", "--rounds", "0"], "--rounds must be at least 1, got 0"),
        (["DATA", "--export", "xlsx"], "--export must be parquet, csv"),
        (["DATA", "--part", "4/4"], "--part must be I/N with I from 0 to N - 1"),
        (["DATA", "--part", "x"], "--part must be I/N such as 0/4"),
        (["DATA", "--part", "\u00b2/4"], "--part must be I/N such as 0/4"),
        (["DATA", "--part", f"0/1{'0' * 5000}"], "--part must be I/N such as 0/4"),
        (["DATA", "--part", "0/2"], "divide the cells of a --matrix"),
        (["DATA", "--mpi", "mpihc"], "did you mean mpich"),
        (["DATA", "--sbatch=-N2"], "--sbatch says how --submit submits"),
        (["DATA", "--matrix", "sizes.toml", "--out", "a/b/c"], "make a/b first"),
        (["DATA", "--out", "a/b/c"], "make a/b first"),
        (["DATA", "--out", "typo.toml"], "--out must be a directory, got the file typo.toml"),
    ],
)
def test_wrong_usage_is_one_line_with_the_remedy(
    cli: Cli, measure: Path, tmp_path: Path, words: list[str], says: str
) -> None:
    (tmp_path / "empty" / "typo.toml").write_text("ruonds = 2")
    (tmp_path / "empty" / "parameter.toml").write_text("[defaults]\nbufsiz = 2")
    done = cli("bench", *[str(measure) if word == "DATA" else word for word in words])
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("penstock: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_results_of_another_version_are_left_alone(cli: Cli, measure: Path, tmp_path: Path) -> None:
    cli("bench", str(measure), "--matrix", "sizes.toml")
    path = tmp_path / "empty" / "penstock-bench-sizes" / "samples.jsonl"
    path.write_text(path.read_text().replace("penstock.bench/1", "penstock.bench/7"))
    before = path.read_bytes()
    done = cli("bench", str(measure), "--matrix", "sizes.toml")
    assert done.returncode == 2
    assert "measure anew with another --out" in done.stderr
    assert path.read_bytes() == before


def test_when_nothing_can_be_measured_it_says_so(cli: Cli, measure: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "bad.toml").write_text("rounds = 2\n[defaults]\ncomptime = 60\n")
    program = tmp_path / "native" / "penstock-measure-threads"
    text = program.read_text()
    program.write_text(text.replace("--noise", "--sleep 0.001 --error 'disk full' --noise"))
    done = cli("bench", str(measure), "--matrix", "bad.toml")
    assert done.returncode == 1
    assert "dropped: default of bad failed" in done.stderr
    assert "write of worker 1 failed: MPI_ERR_NO_SPACE" in done.stderr


def test_gathering_where_nothing_could_be_measured_says_so_by_its_code(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    program = tmp_path / "native" / "penstock-measure-threads"
    program.write_text(program.read_text().replace("--noise", "--error 'disk full' --noise"))
    assert part_of_two(cli, measure).returncode == 1
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--out", "r")
    assert done.returncode == 1, done.stderr


def test_results_of_an_empty_line_are_named(cli: Cli, measure: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "r").mkdir()
    (tmp_path / "empty" / "r" / "samples.jsonl").write_text("\n")
    done = cli("bench", str(measure), "--matrix", "sizes.toml", "--out", "r")
    assert done.returncode == 2
    assert "samples.jsonl, line 1 is not JSON" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_is_fast() -> None:
    """It loads no numerical library: `penstock run` starts within every job."""
    code = (
        "import sys; from penstock.cli import app; "
        "sys.exit(', '.join({'numpy', 'scipy', 'polars'} & {*sys.modules}) or 0)"
    )
    python = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=python, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
