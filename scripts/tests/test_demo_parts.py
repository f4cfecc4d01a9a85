"""The demo's arithmetic: intervals, verdicts, and what is read from ranks' lines and from files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from demo_parts import full_disk, launch, pairs


@pytest.mark.parametrize(
    ("count", "low", "high"), [(5, 1, 5), (6, 1, 6), (10, 2, 9), (15, 4, 12), (20, 6, 15)]
)
def test_the_interval_is_the_order_statistic_one(count: int, low: int, high: int) -> None:
    values = [float(value) for value in range(count, 0, -1)]
    assert pairs.median_interval(values)[1:] == (low, high)


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ([1.5] * 6, "faster"),
        ([0.5] * 6, "slower"),
        ([1.02] * 6, "unclear"),
        ([0.9, 1.5, 1.5, 1.5, 1.5, 1.5], "unclear"),
    ],
)
def test_a_verdict_says_only_what_the_interval_allows(ratios: list[float], word: str) -> None:
    assert pairs.verdict(ratios) == word


def write_file(path: Path, good_blocks: int) -> None:
    """Two ranks' worth would do, but the view is of four: rank 1's blocks are good, then zeros."""
    total = full_disk.RANKS * 8
    with path.open("wb") as file:
        for block in range(total):
            rank, index = block % full_disk.RANKS, block // full_disk.RANKS
            good = rank == 1 and index < good_blocks
            file.write((b"b" if good else b"\0") * full_disk.BLOCK)


def test_the_true_prefix_ends_at_the_first_byte_that_is_missing(tmp_path: Path) -> None:
    write_file(tmp_path / "f", 3)
    assert full_disk.true_prefix(tmp_path / "f", 1) == 3 * full_disk.BLOCK
    assert full_disk.true_prefix(tmp_path / "f", 0) == 0


def test_a_rank_that_never_came_back_is_seen(tmp_path: Path) -> None:
    write_file(tmp_path / "f", 8)
    output = "rank 1 told ok after 16 calls counted_bytes 16777216\n"
    finished = launch.Finished(None, output, "", 10.0)
    (story,) = full_disk.read_story(finished, tmp_path / "f").ranks
    assert (story.sync, story.elapsed_s) == ("-", None)
    assert story.counted_bytes > story.true_bytes


def test_no_log_is_an_error_and_not_zero_bytes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no job log"):
        launch.read_logs(tmp_path)


def test_logs_are_summed(tmp_path: Path) -> None:
    log = {
        "totals": {"engine_bytes": 5, "passthrough_bytes": 0},
        "files": [{"algorithms": {"two_phase": 2}}],
    }
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(log))
    assert launch.read_logs(tmp_path) == launch.Logged(10, 0, ("two_phase",))
