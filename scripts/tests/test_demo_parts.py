"""The demo's arithmetic: intervals, verdicts, and what is read from ranks' lines and from files."""

from __future__ import annotations

import json
import signal
import subprocess
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


class BrokenOff(subprocess.Popen[bytes]):
    """A job that is waited for in vain: Ctrl-C is pressed so many times."""

    presses = 1

    def wait(self, timeout: float | None = None) -> int:
        self.presses -= 1
        if self.presses >= 0:
            raise KeyboardInterrupt
        return super().wait(timeout)


def test_a_demo_that_is_broken_off_leaves_no_job() -> None:
    with BrokenOff(["sleep", "60"], start_new_session=True) as job:
        with pytest.raises(KeyboardInterrupt):
            launch.wait(job, 60)
        code, job.presses = job.poll(), 0
        job.kill()
    assert code == -signal.SIGTERM


def test_a_second_interrupt_kills_a_job_that_does_not_hear() -> None:
    deaf = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]
    with BrokenOff(deaf, start_new_session=True, stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == b"ready\n"
        job.presses = 2
        with pytest.raises(KeyboardInterrupt):
            launch.wait(job, 60)
        code, job.presses = job.poll(), 0
        job.kill()
    assert code == -signal.SIGKILL


class Mounts:
    """Stands for mount(8): a disk that is there until umount takes it away, if that may be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, allowed: bool) -> None:
        self.allowed, self.calls = allowed, 0
        monkeypatch.setattr(Path, "is_mount", lambda _: not (self.allowed and self.calls))
        monkeypatch.setattr(full_disk.subprocess, "run", self.run)

    def run(self, command: list[str], **_: object) -> None:
        assert command[0] == "umount"
        self.calls += 1
        if not self.allowed:
            raise subprocess.CalledProcessError(32, command)


def test_the_disk_of_a_demo_that_was_killed_is_unmounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out" / "disk").mkdir(parents=True)
    mounts = Mounts(monkeypatch, allowed=True)
    full_disk.fresh_directory(tmp_path / "out")
    assert mounts.calls == 1
    assert list((tmp_path / "out").iterdir()) == []


def test_a_disk_that_cannot_be_unmounted_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mounts(monkeypatch, allowed=False)
    disk = tmp_path / "disk"
    with pytest.raises(RuntimeError, match=f"as root:\n  umount --lazy {disk}; rm -rf {tmp_path}$"):
        full_disk.fresh_directory(tmp_path)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("told", "flavour", "other"),
    [
        ("mpiexec (OpenRTE) 4.1.4", "openmpi", "mpich"),
        ("mpiexec (Open MPI) 5.0.6", "openmpi", "mpich"),
        ("HYDRA build details:", "mpich", "openmpi"),
    ],
)
def test_a_plain_mpiexec_is_of_the_flavour_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, flavour: str, other: str
) -> None:
    plain = program(tmp_path / "bin" / "mpiexec", f"echo '{told}'")
    monkeypatch.setenv("PATH", str(plain.parent))
    assert (launch.launcher(flavour), launch.launcher(other)) == (str(plain), None)
    named = program(plain.with_name(f"mpiexec.{other}"), "exit 1")
    assert launch.launcher(other) == str(named)


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
