"""bench/overlap/run.py: what it says of a way to write, and what it refuses."""

from __future__ import annotations

import runpy
import subprocess
import sys
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
        (1.02, True, "1.020 of max(c, v/b)  holds"),
        (1.3, False, "1.300 of max(c, v/b)  FAILS"),
        (2.0, None, "2.000 of max(c, v/b)  to compare"),
    ],
)
def test_a_line_ends_with_its_verdict(
    program: dict[str, Any], of_max: float | None, holds: bool | None, end: str
) -> None:
    record = {"way": "split", "c": 1.0, "seconds": [2.5, 2.0, 1.9]}
    line = program["words_of"]({**record, "of_max": of_max, "holds": holds})
    assert line.startswith("split      c  1.000 s   2.000 s [1.900-2.500]")
    assert line.endswith(end)


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
