"""The native files are found where each kind of installation has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import native
from penstock.errors import LaunchError


def holds(directory: Path, *, program: bool = True, shim: bool = True) -> Path:
    """A directory with stand-ins for the native files."""
    directory.mkdir(parents=True, exist_ok=True)
    if program:
        (directory / "penstock-exec").write_text("#!/bin/sh\n")
        (directory / "penstock-exec").chmod(0o755)
    if shim:
        (directory / "libpenstock-mpich.so").touch()
    return directory


@pytest.fixture
def imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package's directory, in a prefix of no installation yet."""
    package = tmp_path / "prefix" / "lib" / "penstock" / "python" / "penstock"
    package.mkdir(parents=True)
    monkeypatch.setattr(native, "__file__", str(package / "native.py"))
    return package


def test_a_wheel_has_them_within_the_package(imported_from: Path) -> None:
    where = holds(imported_from / "_native")
    assert native.directory({"PATH": ""}) == where


def test_an_installed_prefix_has_them_in_lib_penstock(imported_from: Path) -> None:
    where = holds(imported_from.parents[1])
    assert native.directory({"PATH": ""}) == where


def test_site_packages_of_a_prefix_have_them_in_its_lib_penstock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lib" / "python3.13" / "site-packages" / "penstock"
    monkeypatch.setattr(native, "__file__", str(package / "native.py"))
    where = holds(tmp_path / "lib" / "penstock")
    assert native.directory({"PATH": ""}) == where


def test_a_wheel_without_native_files_takes_those_of_penstock_exec_in_path(
    imported_from: Path, tmp_path: Path
) -> None:
    (imported_from / "_native").mkdir()  # what a wheel built without an MPI has
    program = holds(tmp_path / "site" / "bin", shim=False)
    where = holds(tmp_path / "site" / "lib64" / "penstock")
    assert native.directory({"PATH": str(program)}) == where


def test_a_penstock_exec_without_shims_is_no_installation(
    imported_from: Path, tmp_path: Path
) -> None:
    program = holds(tmp_path / "site" / "bin", shim=False)
    with pytest.raises(
        LaunchError, match=r"not built; looked in .*make build; .*PREFIX/lib/penstock"
    ):
        native.directory({"PATH": str(program)})


def test_the_variable_comes_before_all_of_them(imported_from: Path, tmp_path: Path) -> None:
    holds(imported_from / "_native")
    where = holds(tmp_path / "mine")
    assert native.directory({"PENSTOCK_NATIVE_DIR": str(where)}) == where
