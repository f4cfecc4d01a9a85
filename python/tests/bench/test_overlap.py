"""bench/overlap/run.py: what it says of a way to write, and what it refuses."""

from __future__ import annotations

import runpy
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "bench" / "overlap" / "run.py"


pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="only in a checkout")


@pytest.fixture(scope="module")
def program() -> Iterator[dict[str, Any]]:
    """What its file defines."""
    before = list(sys.path)
    yield runpy.run_path(str(PROGRAM), run_name="overlap_run")
    sys.path[:] = before


@pytest.mark.parametrize(
    ("of_max", "holds", "end"),
    [
        (None, None, "2.000 s [1.900-2.500]"),
        (1.02, True, "1.020 of max(c + w, v/b)  holds"),
        (1.3, False, "1.300 of max(c + w, v/b)  FAILS"),
        (2.0, None, "2.000 of max(c + w, v/b)  to compare"),
    ],
)
def test_a_line_ends_with_its_verdict(
    program: dict[str, Any], of_max: float | None, holds: bool | None, end: str
) -> None:
    record = {"case": "by turns", "way": "split", "c": 1.0, "seconds": [2.5, 2.0, 1.9]}
    line = program["words_of"]({**record, "of_max": of_max, "holds": holds})
    assert line.startswith("by turns   split      c  1.000 s   2.000 s [1.900-2.500]")
    assert line.endswith(end)


@pytest.mark.parametrize(("times", "kept"), [(0.5, True), (1.0, True), (2.0, False)])
def test_what_writes_more_slowly_than_the_disk_takes_does_not_hold(
    program: dict[str, Any], monkeypatch: pytest.MonkeyPatch, times: float, kept: bool
) -> None:
    args = Namespace(
        steps=4, step_bytes=80, rate=100, ranks=2, nodes=1, mpi="mpich", repeat=3, json=True
    )
    args.bound, args.case = 1.15, None

    def one_run(*job: Any) -> dict[str, float]:
        """Overlaps as well as can be, at a rate of its own."""
        write_s = times * args.steps * args.step_bytes / args.rate
        return {"total_s": max(write_s, args.steps * job[-1]), "inside_s": 0.0}

    monkeypatch.setitem(program["measure"].__globals__, "one_run", one_run)
    assert program["measure"](args, None, Path("steps")) is kept


@pytest.mark.parametrize(
    ("memory", "how", "least"),
    [
        (None, "split", 3.0),
        (1.1, "split", 3.0),
        (0.6, "split", 3.8),  # 0.4 of 2 s are waited for
        (0.6, "iwrite_all", 3.8),
        (0.6, "write_all", 3.0),  # there to compare
    ],
)
def test_calls_wait_for_what_memory_does_not_hold_of_a_step(
    program: dict[str, Any], memory: float | None, how: str, least: float
) -> None:
    args = Namespace(step_bytes=20 << 20, ranks=2, nodes=1)
    case = program["Case"]("some", memory=memory)
    assert program["least_s"](args, case, how, 3.0, 2.0) == pytest.approx(least)


def test_the_least_memory_is_less_than_what_is_written(program: dict[str, Any]) -> None:
    args = Namespace(step_bytes=20 << 20, ranks=2, nodes=1)
    limits = [program["limit_of"](args, case, "split") for case in program["CASES"]]
    assert limits[-2:] == [11 << 20, 6 << 20]
    said = program["settings"](args, program["CASES"][-1], limits[-1])
    assert said == ["env", f"PENSTOCK_WRITE_BEHIND_LIMIT={6 << 20}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--build", "nowhere", "--repeat", "0"], "--repeat must be at least 1, got 0"),
        (["--build", "nowhere", "--step-bytes", "-1"], "--step-bytes must be at least 1, got -1"),
    ],
)
def test_what_cannot_be_is_named(words: list[str], said: str) -> None:
    command = [sys.executable, str(PROGRAM), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_build_that_is_none_is_named(
    program: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        program["small_program"].under_penstock(Path("nowhere"), "auto")
    assert end.value.code == 2
    assert "nowhere has no penstock-exec" in capsys.readouterr().err
