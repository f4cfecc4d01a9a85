"""``penstock simulate`` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli import simulate
from penstock.errors import ArgumentError
from penstock.simulate import gotwals
from penstock.simulate.output import System
from support import Cli


def test_the_table_has_both_rates_the_sweep_and_the_paper(cli: Cli) -> None:
    done = cli("simulate")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "n/m" in done.stdout
    assert "limit" in done.stdout
    assert "0.60 on demand and 0.85 early; here 0.6" in done.stdout


def test_rates_of_several_nodes_are_said_to_be_in_all_their_disks(cli: Cli) -> None:
    done = cli("simulate", "--nodes", "4", "--sizes", "1")
    assert "Rates in units of all 4 raw output disks; without: " in done.stdout
    swept = cli("simulate", "--sizes", "1", "--sweep", "nodes").stdout
    assert "Rates in raw output disks; without: " in swept
    assert "by the number of I/O nodes on the same network, in units of all their disks:" in swept


def test_a_narrow_terminal_has_lines_with_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    points = gotwals.curves(System(memory_bytes=5 << 20), [5.0])
    simulate._show(simulate._curves(points), Console(width=40))
    shown = " ".join(capsys.readouterr().out.split())
    assert "n/m 5 output 25.0 MiB, application: without" in shown
    assert "\u2026" not in shown


def test_json_is_alone_on_stdout(cli: Cli) -> None:
    done = cli("simulate", "gotwals-1995", "--sizes", "1,5", "--sweep", "paging-disk", "--json")
    value = json.loads(done.stdout)
    assert value["name"] == "gotwals-1995"
    assert value["sweep"]["over"] == "paging-disk"
    assert set(value["timelines"]) == {"demand", "early"}


def test_json_names_the_size_that_was_swept_where_two_have_as_many_bytes(cli: Cli) -> None:
    done = cli("simulate", "--memory", "1", "--block", "1", "--sizes", "0.1,1", "--json")
    assert json.loads(done.stdout)["sweep"]["ratio"] == 1


def test_options_reach_the_simulator(cli: Cli) -> None:
    options = ["--memory", "8MiB", "--disk", "2MiB", "--network", "3", "--paging-disk", "1"]
    options += ["--block", "64KiB", "--buffer", "16MiB", "--nodes", "2", "--mapping", "blocked"]
    options += ["--order", "file", "--startup", "0.5", "--sizes", "2"]
    system = json.loads(cli("simulate", *options, "--json").stdout)["system"]
    assert system == {
        "memory_bytes": 8 << 20,
        "disk_bytes_per_s": 2.0 * (1 << 20),
        "network_ratio": 3.0,
        "paging_ratio": 1.0,
        "block_bytes": 64 << 10,
        "buffer_bytes": 16 << 20,
        "nodes": 2,
        "mapping": "blocked",
        "order": "file",
        "startup_s": 0.5,
    }


def test_nothing_is_played_but_the_sizes_and_their_sweep(cli: Cli) -> None:
    done = cli("simulate", "--block", "1", "--sizes", "0.01")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "The paper's figure 4" not in done.stdout


def test_a_sweep_that_nobody_asked_for_leaves_out_what_is_too_large(
    capsys: pytest.CaptureFixture[str],
) -> None:
    simulate._check_sweep(System(nodes=2000), 6, None)
    assert capsys.readouterr().err == (
        "the sweep over blocks is without 1/1024: that would be more than 10000000 blocks\n"
    )
    simulate._check_sweep(System(nodes=1000), 6, None)
    assert capsys.readouterr().err == ""
    with pytest.raises(ArgumentError, match="give smaller --sizes or --sweep paging-disk"):
        simulate._check_sweep(System(nodes=2000), 6, "block")


def test_a_picture_goes_into_a_file_or_to_stdout(cli: Cli, tmp_path: Path) -> None:
    there = tmp_path / "curves.svg"
    assert cli("simulate", "--draw", str(there)).returncode == 0
    assert cli("simulate", "--draw", "-").stdout == there.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sizes", "1,x"], "--sizes must be numbers like 0.5,1,2, got '1,x'"),
        (["--sizes", "-1"], "positive multiple of the memory, got -1.0"),
        (["--memory", "5 furlongs"], "--memory must be a size"),
        (["--memory", "0"], "--memory must be at least 1 byte, got 0"),
        (["--memory", "0", "--block", "4KiB"], "--memory must be at least 1 byte, got 0"),
        (["--block", "64MiB"], "--block must fit into --memory, 5.0 MiB, got 64.0 MiB"),
        (["--block", "0"], "--block must be at least 1 byte, got 0"),
        (["--buffer", "1000"], "--buffer must be 0 (none) or hold a --block, 1.0 MiB, got 1000"),
        (["--network", "0"], "--network must be from 1e-09 to 1e+09 disks, got 0"),
        (["--paging-disk", "nan"], "--paging-disk must be from 1e-09 to 1e+09 disks, got nan"),
        (["--network", "1e-320"], "--network must be from 1e-09 to 1e+09 disks, got"),
        (["--disk", "0"], "--disk must be from 1 to 9e+18 bytes a second, got 0"),
        (["--disk", str(2**63 - 1)], "--disk must be from 1 to 9e+18 bytes a second, got"),
        (["--startup", "-1"], "--startup must be finite and not negative, got -1 seconds"),
        (["--nodes", "0"], "--nodes must be from 1 to 100000, got 0"),
        (["--nodes", "3000000000"], "--nodes must be from 1 to 100000, got 3000000000"),
        (["--block", "1"], "--sizes plays an output of 6 memories, 30.0 MiB, as more than 100"),
        (["--block", "1", "--sizes", "100"], "blocks of 1 B: give a larger --block or smaller"),
        (["--block", "1", "--sizes", "1", "--draw", "-"], "--draw plays an output of 6 memories"),
        (["--block", "1", "--sizes", "1", "--sweep", "nodes"], "--sweep nodes plays an output of"),
        (["--nodes", "2000", "--sweep", "block"], "blocks of 5.0 KiB: give smaller --sizes or -"),
        (["--sizes", "20000", "--sweep", "block"], "--sweep block plays an output of 20000 mem"),
        (["--sizes", "1e300"], "must fit into 64 bits, got 1e+300 times the memory, 5.0 MiB on"),
        (["--memory", "8191PiB"], "must fit into 64 bits, got 6 times the memory, "),
        (["--draw", "-", "--json"], "--draw - and --json would both print to stdout: give --draw"),
        (["elsewhere"], "gotwals-1995"),
    ],
)
def test_what_is_wrong_is_one_line_and_gives_2(cli: Cli, words: list[str], says: str) -> None:
    done = cli("simulate", *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""
