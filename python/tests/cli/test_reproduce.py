"""``penstock reproduce``: from a paper's name to verdicts; what is said when it cannot be."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

import pytest

from penstock import native
from penstock.bench.store import load
from penstock.errors import LaunchError
from penstock.reproduce import PAPERS, btio
from support import Cli

FAKE = Path(__file__).resolve().parents[1] / "bench" / "fake_program.py"
CASES = 10  # of gotwals1995, which needs no MPI


@pytest.fixture
def measure(native_dir: Path, tmp_path: Path, cli: Cli) -> Path:
    """A stand-in for penstock-measure-threads; gives the directory that is measured."""
    program = native_dir / "penstock-measure-threads"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {FAKE} --noise 0.01 "$@"\n')
    program.chmod(0o755)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_without_a_name_it_lists_the_papers(cli: Cli) -> None:
    done = cli("reproduce")
    assert done.returncode == 0, done.stderr
    assert all(f"{name}: " in done.stdout for name in PAPERS)
    assert done.stdout.count("--size quick: ") == len(PAPERS)
    assert set(json.loads(cli("reproduce", "--json").stdout)) == set(PAPERS)


def test_a_run_gives_tables_and_a_verdict_for_each_conclusion(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    done = cli(*("reproduce", "gotwals1995", "--dir", str(measure), "--rounds", "1", "--seed", "3"))
    assert done.returncode == 0, done.stderr
    assert "gotwals1995, quick: 4 minutes" in done.stderr
    assert "seed 3; results in penstock-reproduce-gotwals1995-quick" in done.stderr
    assert "block 1, 1/11: " in done.stderr
    assert "Figure 6: application and actual rate" in done.stdout
    assert "HOLDS: Virtual memory on the I/O node raises" in done.stdout
    assert "1 holds" in done.stdout
    results = load(tmp_path / "empty" / "penstock-reproduce-gotwals1995-quick")
    assert len(results.samples) == 2 * CASES + 1
    assert not list(measure.iterdir())


def test_the_same_command_goes_on_and_a_run_is_printed_again(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    words = ("reproduce", "gotwals1995", "--dir", str(measure), "--out", "r")
    first = cli(*words, "--rounds", "1", "--budget", "300s")
    assert first.returncode == 0, first.stderr
    done = cli(*words, "--rounds", "2")
    assert done.returncode == 0, done.stderr
    assert "goes on after " in done.stderr
    again = cli("reproduce", "--table", "r")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    told = json.loads(cli("reproduce", "gotwals1995", "--table", "r", "--json").stdout)
    assert told["schema"] == "penstock.reproduction/1"
    assert (told["paper"], told["size"], told["samples"]) == ("gotwals1995", "quick", 2 * CASES)
    assert told["budget_s"] is None
    assert "for a budget of 300 s" in told["chosen"]
    page = (tmp_path / "empty" / "r" / "pages" / "gotwals1995.md").read_text()
    assert "--size quick --dir DIR --budget 300s --rounds 2\n" in page
    other = cli("reproduce", "liao2007", "--table", "r")
    assert other.returncode == 2
    assert "r holds a run of gotwals1995, not of liao2007" in other.stderr


def test_a_dry_run_lists_and_stores_nothing(cli: Cli, measure: Path, tmp_path: Path) -> None:
    words = ("reproduce", "gotwals1995", "--dir", str(measure), "--dry-run")
    done = cli(*words, "--size", "full")
    assert done.returncode == 0, done.stderr
    assert "64 MiB, 8 writers | calls: " in done.stdout
    assert f"{CASES} measurements, 230 to 230 samples" in done.stdout
    assert "13 conclusions, 1 of which no run here can decide" in done.stdout
    assert json.loads(cli(*words, "--json").stdout)["size"] == "quick"
    assert not list((tmp_path / "empty").iterdir())
    assert not list(measure.iterdir())


def test_several_directories_are_measured_in_one_session(
    cli: Cli, measure: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    where = ("--dir", f"ext4={measure}", "--dir", f"slow={tmp_path / 'other'}")
    done = cli("reproduce", "gotwals1995", *where, "--rounds", "1", "--out", "r", "--seed", "1")
    assert done.returncode == 0, done.stderr
    results = load(tmp_path / "empty" / "r")
    cells = {sample.cell.partition(": ")[0] for sample in results.samples}
    assert cells == {"ext4", "slow"}
    assert len(results.samples) == 2 * (2 * CASES) + 1
    assert not list(measure.iterdir())
    assert not list((tmp_path / "other").iterdir())
    page = (tmp_path / "empty" / "r" / "pages" / "gotwals1995.md").read_text()
    assert "by amount, 2 writers (the paper prints figures), on slow" in page
    assert "--dir ext4=DIR --dir slow=DIR" in page
    raw = (tmp_path / "empty" / "r" / "pages" / "raw" / "gotwals1995.jsonl.xz").read_bytes()
    assert str(tmp_path).encode() not in lzma.decompress(raw)


def test_a_budget_begins_less_and_says_what(cli: Cli, measure: Path, tmp_path: Path) -> None:
    words = ("reproduce", "gotwals1995", "--dir", str(measure), "--out", "r")
    told = cli(*words, "--budget", "20s", "--dry-run")
    assert told.returncode == 0, told.stderr
    assert f"of {CASES} measurements of the size" in told.stdout
    assert "MB/s of 8 MiB with fsync" in told.stdout
    done = cli(*words, "--budget", "20s")
    assert done.returncode == 0, done.stderr
    assert "for a budget of 20 s" in done.stdout
    blocks: dict[int, int] = {}
    for sample in load(tmp_path / "empty" / "r").samples:
        blocks[sample.block] = blocks.get(sample.block, 0) + 1
    begun = blocks.pop(0)
    assert begun < CASES
    assert len(set(blocks.values())) == 1, "only whole blocks"
    anew = cli(*words, "--budget", "20s", "--dry-run", "--seed", "5")
    assert anew.returncode == 2
    assert "not 5. Give another --out" in anew.stderr
    none = cli(*words[:-1], "other", "--budget", "0.1s", "--dry-run")
    assert none.returncode == 2
    assert "too short for any conclusion of gotwals1995" in none.stderr


def test_a_budget_does_not_go_on_with_another_plan(cli: Cli, measure: Path) -> None:
    words = ("reproduce", "gotwals1995", "--out", "r", "--dir")
    assert cli(*words, f"ext4={measure}", "--rounds", "1").returncode == 0
    for more in (["--dry-run"], []):
        done = cli(*words, str(measure), "--budget", "300s", *more)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("penstock: ")
        assert "holds the results of another plan" in done.stderr
        assert "Give another --out" in done.stderr


def test_warm_ups_that_use_the_budget_up_are_told(
    cli: Cli, measure: Path, native_dir: Path
) -> None:
    program = native_dir / "penstock-measure-threads"
    program.write_text(program.read_text().replace("--noise", "--sleep 1.5 --noise"))
    done = cli("reproduce", "gotwals1995", "--dir", str(measure), "--budget", "6s")
    assert done.returncode == 1, done.stderr
    assert "no conclusion fits what the warm-ups left of the budget" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gotwals1994",), "there is no paper gotwals1994; did you mean gotwals1995?"),
        (("gotwals1995", "--size", "large"), "--size must be quick or full, got large"),
        (("gotwals1995", "--budget", "soon"), "--budget must be a time"),
        (("gotwals1995", "--rounds", "0"), "penstock: --rounds must be at least 1, got 0"),
        (("gotwals1995", "--rounds", "-3"), "penstock: --rounds must be at least 1, got -3"),
        (("gotwals1995", "--dir", "none"), "none"),
        (("gotwals1995", "--seed", "-1"), "penstock: --seed must be at least 0, got -1"),
        (("--table", "none"), "there are no results at none"),
        (
            ("--table", "r", "--dry-run"),
            "--table prints an earlier run and measures nothing, so --d",
        ),
        (("--table", "r", "--size", "quick"), "so --size would have no effect: leave one of them"),
        (("--table", "r", "--seed", "1"), "so --seed would have no effect"),
        (("gotwals1995", "--table", "r", "--dir", "."), "so --dir would have no effect"),
        (
            ("--dry-run",),
            "--dry-run is for the run of a paper, and none is named: give NAME, one of",
        ),
        (("--json", "--pages", "x"), "--pages is for the run of a paper, and none is named"),
    ],
)
def test_wrong_usage_is_told(cli: Cli, measure: Path, words: tuple[str, ...], said: str) -> None:
    done = cli("reproduce", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout


def test_what_cannot_be_started_here_is_left_out_and_said(cli: Cli, measure: Path) -> None:
    done = cli("reproduce", "liao2007", "--dir", str(measure), PATH="/nowhere")
    assert done.returncode == 1
    assert "nothing of liao2007 can be measured here: 9 of 9 measurements: " in done.stderr
    assert "no mpiexec of openmpi is in PATH" in done.stderr


def test_bt_io_is_planned_with_its_own_program(cli: Cli, tmp_path: Path) -> None:
    try:
        btio.BtioPrograms().of("openmpi")
    except LaunchError as error:
        pytest.skip(f"BT-IO cannot be started: {error}")
    words = ("reproduce", "liao2007", "--dir", str(tmp_path), "--dry-run")
    done = cli(*words, PENSTOCK_NATIVE_DIR=str(native.directory()))
    assert done.returncode == 0, done.stderr
    assert "peer-btio-unsynced-openmpi" in done.stdout
