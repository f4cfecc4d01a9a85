"""bench/overlap/run.py: what it says of a way to write, and what it refuses."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "bench" / "overlap" / "run.py"


def load() -> Any:
    """The program, whose name others have too."""
    spec = importlib.util.spec_from_file_location("overlap_run", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("of_max", "holds", "end"),
    [
        (None, None, "2.000 s [1.900-2.500]"),
        (1.02, True, "1.020 of max(c, v/b)  holds"),
        (1.3, False, "1.300 of max(c, v/b)  FAILS"),
        (2.0, None, "2.000 of max(c, v/b)  to compare"),
    ],
)
def test_a_line_ends_with_its_verdict(of_max: float | None, holds: bool | None, end: str) -> None:
    record = {"way": "split", "c": 1.0, "seconds": [2.5, 2.0, 1.9]}
    line = load().words_of({**record, "of_max": of_max, "holds": holds})
    assert line.startswith("split      c  1.000 s   2.000 s [1.900-2.500]")
    assert line.endswith(end)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--build", "nowhere"], "--build nowhere has no native/penstock-exec"),
        (["--build", "nowhere", "--repeat", "0"], "--repeat must be at least 1, got 0"),
        (["--build", "nowhere", "--step-bytes", "-1"], "--step-bytes must be at least 1, got -1"),
    ],
)
def test_what_cannot_be_is_named(words: list[str], said: str) -> None:
    command = [sys.executable, str(PROGRAM), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
