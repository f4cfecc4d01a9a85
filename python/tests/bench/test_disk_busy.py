"""bench/limit/disk_busy.py: what of a disk's looks is a burst, and how busy it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "bench" / "limit" / "disk_busy.py"
sys.path.insert(0, str(PROGRAM.parent))
from disk_busy import Burst, Look, bursts  # noqa: E402

MS = 1e-3


def looks(*seen: tuple[float, int, int]) -> list[Look]:
    """(ms, bytes done, writes in flight)."""
    return [Look(ms * MS, done, flying) for ms, done, flying in seen]


def test_idle_time_between_writes_is_told() -> None:
    seen = looks((0, 5, 0), (1, 5, 3), (2, 9, 0), (3, 9, 0), (4, 9, 1), (5, 15, 0), (6, 15, 0))
    (burst,) = bursts(seen)
    assert burst.done_bytes == 10
    assert burst.seconds == pytest.approx(5 * MS)
    assert burst.busy == pytest.approx(4 / 5)


def test_a_pause_ends_a_burst_and_quiet_before_and_after_belongs_to_none() -> None:
    seen = looks((0, 0, 0), (9, 0, 0), (10, 4, 0), (40, 4, 0), (41, 4, 0), (42, 9, 1), (99, 9, 0))
    first, second = bursts(seen)
    assert (first.looks[0].at_s, first.done_bytes) == (pytest.approx(9 * MS), 4)
    assert (second.looks[0].at_s, second.done_bytes) == (pytest.approx(41 * MS), 5)
    assert bursts(looks((0, 7, 0), (1, 7, 0))) == []


def test_parts_are_of_a_step_and_lose_nothing() -> None:
    burst = Burst(looks(*[(ms, 10 * ms, 1) for ms in range(11)]))
    parts = burst.parts(4 * MS)
    assert [p.done_bytes for p in parts] == [40, 40, 20]
    assert sum(p.done_bytes for p in parts) == burst.done_bytes


def watched(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The program's own run; a skip where the kernel counts no disk."""
    command = [sys.executable, str(PROGRAM), "--dir", str(directory), "--json", "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "on no disk" in done.stderr:
        pytest.skip(f"{directory} lies on no disk that the kernel counts")
    return done


def test_what_a_program_writes_is_seen(tmp_path: Path) -> None:
    to = [f"of={tmp_path / 'data'}", "bs=1M", "count=16", "conv=fsync", "status=none"]
    done = watched(tmp_path, "dd", "if=/dev/zero", *to)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # a machine that is busy may make several bursts of them
    assert told["all_bytes"] >= 16 << 20
    assert 0 < told["bytes"] <= told["all_bytes"]
    assert 0 < told["busy"] <= 1


def test_the_exit_code_is_the_programs() -> None:
    assert watched(ROOT, "false").returncode == 1
