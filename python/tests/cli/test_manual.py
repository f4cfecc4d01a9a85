"""The committed manual pages are what the commands say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock import native
from penstock.cli import manual

MAN = Path(__file__).parents[3] / "docs" / "man"


@pytest.mark.parametrize("name", manual.pages())
def test_the_committed_page_is_up_to_date(name: str) -> None:
    remedy = "run: .venv/bin/python -m penstock.cli.manual docs/man"
    assert (MAN / name).read_text(encoding="utf-8") == manual.pages()[name], remedy


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_every_page_is_formatted_without_warnings() -> None:
    for page in MAN.glob("*.[13]"):
        done = subprocess.run(
            ["man", "--warnings=all", "-l", str(page)],
            env={
                "PATH": "/usr/bin:/bin",
                "MANPAGER": "cat",
                "MANWIDTH": "100",
                "LC_ALL": "C.UTF-8",
            },
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert "SYNOPSIS" in done.stdout, page
        assert done.stderr == "", page


def test_the_page_of_penstock_exec_names_the_options_that_run_hands_it() -> None:
    source = Path(native.__file__).with_name("launch") / "request.py"
    handed = set(re.findall(r'"(--[a-z-]+)"', source.read_text(encoding="utf-8")))
    page = (MAN / "penstock-exec.1").read_text(encoding="utf-8").replace("\\-", "-")
    assert handed
    assert all(option in page for option in handed)
