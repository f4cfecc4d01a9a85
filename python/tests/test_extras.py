"""What an extra needs is installed where this Penstock finds it, under its own name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import penstock
from penstock.extras import pip_install


def test_in_an_environment_pip_knows_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/somewhere/else")
    assert pip_install("x") == f"{sys.executable} -m pip install x"


def test_of_an_installed_prefix_it_is_told_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(penstock, "__file__", str(tmp_path / "a b" / "penstock" / "__init__.py"))
    told = pip_install("x")
    assert told == f"{sys.executable} -m pip install --target '{tmp_path / 'a b'}' x"
