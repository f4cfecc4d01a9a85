"""bench/limit/what_limits.py: what a sample tells, and what limits a cell."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench" / "limit"), str(ROOT / "bench" / "peers")]
import what_limits  # noqa: E402
from beside import spec  # noqa: E402
from disk_busy import Look  # noqa: E402
from what_limits import Row, Seen, seen  # noqa: E402

from penstock.bench.execute import ProgramResult  # noqa: E402
from penstock.bench.session import Measurement  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402

FAKE = Path(__file__).with_name("fake_program.py")


def row(*samples: Seen) -> Row:
    cell = spec.Cell(work="btio", ranks=4, peers="best")
    return Row(cell, samples={"penstock": list(samples), "ceiling": []})


def test_a_sample_is_the_programs_clock_and_the_disks_largest_burst() -> None:
    record = {
        "application": {"seconds": 0.04},
        "phases": {"open_s": 0.01},
        "cpus": {"busy_s": 0.03, "total_s": 0.06},
    }
    looks = [Look(0.0, 0, 0), Look(0.001, 1, 0), Look(0.2, 1, 0), Look(0.201, 1, 4)]
    looks += [Look(0.211, 1000, 0)]
    found = seen(record, looks)
    assert (found.total_s, found.open_s, found.cpus_busy) == (0.04, 0.01, 0.5)
    assert found.disk_s == pytest.approx(0.011)
    assert found.disk_busy == pytest.approx(1.0)


def test_a_program_that_does_not_tell_its_processors_has_none() -> None:
    record = {"application": {"seconds": 0.04}, "phases": {"open_s": 0.01}}
    found = seen(record, [])
    assert found.cpus_busy is None
    assert found.disk_s == 0


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The kernel's files of one that does nothing."""
    (tmp_path / "stat").write_text("0 " * 11)
    (tmp_path / "inflight").write_text("0 0")
    return tmp_path


def test_a_run_that_is_not_what_was_to_be_measured_is_refused(disk: Path) -> None:
    command = [sys.executable, str(FAKE)]
    right = Measurement("btio-4", "penstock", command)
    assert what_limits.sample(disk, right, disk).total_s > 0

    def all_passed(ran: ProgramResult) -> str:
        return f"{ran.result.bytes if ran.result else 0} bytes passed by"

    wrong = replace(right, expect=all_passed)
    with pytest.raises(PenstockError, match="btio-4, penstock: 1048576 bytes passed by"):
        what_limits.sample(disk, wrong, disk)


def test_the_logs_that_are_looked_at_are_of_this_run(disk: Path) -> None:
    earlier = disk / "penstock-app-1.json"
    earlier.touch()
    what_limits.sample(disk, Measurement("c", "v", [sys.executable, str(FAKE)]), disk)
    assert not earlier.exists()


@pytest.mark.parametrize(
    ("sample", "limits"),
    [
        (Seen(0.1, 0.001, 0.09, 1.0, 0.5), "the disk"),
        (Seen(0.1, 0.001, 0.09, 0.5, 0.5), "waiting"),
        (Seen(0.1, 0.03, 0.09, 1.0, 0.8), "the disk, the processors, opening"),
        (Seen(0.1, 0.001, 0.3, 1.0, 0.5), "the disk"),
        (Seen(0.1, 0.001, 0.02, 1.0, None), "waiting"),
    ],
)
def test_what_takes_most_of_the_time_limits(sample: Seen, limits: str) -> None:
    assert row(sample).limits == limits


def test_what_is_shown_as_reaching_the_limit_reaches_it() -> None:
    below = row(Seen(0.1, 0.001, 0.0749, 1.0, 0.5))
    assert (below.limits, below.words()[4]) == ("waiting", "74%")
    reached = row(Seen(0.5, 0.001, 0.375, 1.0, 0.5))
    assert (reached.limits, reached.words()[4]) == ("the disk", "75%")


def test_a_row_has_a_word_for_each_head() -> None:
    words = row(Seen(0.1, 0.001, 0.09, 1.0, None)).words()
    assert len(words) == len(what_limits.head("ceiling"))
    assert words[:7] == ["btio-4", "100.0", "1.0", "90.0", "90%", "-", "the disk"]
    assert words[7:] == ["-", "-", "-"]


def test_the_head_names_who_is_measured_beside() -> None:
    assert "page ring, ms" in what_limits.head("ceiling")
    assert "fio-direct-4MiB, ms" in what_limits.head("fio-direct-4MiB")


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        what_limits.main(["--rounds", "0"])
    assert "--rounds must be at least 1, got 0" in capsys.readouterr().err
    assert what_limits.main(["--cells", "btoi-4"]) == 2
    assert "what_limits.py: --cells must be of" in capsys.readouterr().err
    assert what_limits.main(["--cells", "btio-4", "--beside", "fioo"]) == 2
    assert "what_limits.py: --beside must be of" in capsys.readouterr().err
