"""packaging/launcher: a command line that cannot begin ends with 127, not with a verdict."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parents[2] / "packaging" / "launcher" / "command_line.py"


def started(prefix: Path, package: str) -> subprocess.CompletedProcess[str]:
    """`penstock compare` of a prefix whose Python package begins with this text."""
    start = prefix / "command_line.py"
    text = LAUNCHER.read_text()
    start.write_text(text.replace("@PENSTOCK_LIBRARY_TO_PYTHON@", "python"))
    (prefix / "python" / "penstock").mkdir(parents=True)
    (prefix / "python" / "penstock" / "__main__.py").write_text(package)
    bare = str(shutil.which("python3", path="/usr/bin:/bin"))
    return subprocess.run(
        [bare, "-P", "-S", str(start), "compare", "a.jsonl", "b.jsonl"],  # -S: no site-packages
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_a_package_that_is_not_there(tmp_path: Path) -> None:
    done = started(tmp_path, "import typer\n")
    assert done.returncode == 127  # 1 would say that B is slower
    assert "penstock: the Python package 'typer' is not there for " in done.stderr
    assert f"-m pip install --target {tmp_path / 'python'} typer rich pydantic" in done.stderr


def test_a_package_that_does_not_load(tmp_path: Path) -> None:
    done = started(tmp_path, "raise ImportError('an engine of another Python')\n")
    assert done.returncode == 127
    assert done.stderr.startswith("penstock: it does not load in ")
    assert done.stderr.endswith("): an engine of another Python\n")
    assert done.stdout == ""
