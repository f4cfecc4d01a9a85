"""What a remake leaves half made is made again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

STAMPED = Path(__file__).resolve().parents[1] / "stamped.sh"
MAKER = """#!/bin/bash
rm -rf "$OUT/lib"
test -z "$FAIL" && mkdir "$OUT/lib"
"""


def get(folder: Path, stamp: str, fail: str = "") -> None:
    script = f'program=maker out="$OUT"; . {STAMPED}; get lib "{stamp}"'
    env = {"OUT": str(folder / "out"), "FAIL": fail, "PATH": os.environ["PATH"]}
    subprocess.run(["bash", "-c", script], cwd=folder, env=env, check=True)


def test_a_failed_remake_takes_the_stamp_away(tmp_path: Path) -> None:
    maker = tmp_path / "scripts" / "maker.sh"
    maker.parent.mkdir()
    maker.write_text(MAKER)
    maker.chmod(0o755)
    made = tmp_path / "out" / "lib"
    get(tmp_path, "1")
    assert made.is_dir()
    get(tmp_path, "2", fail="yes")
    assert not made.exists()
    get(tmp_path, "1")
    assert made.is_dir()
