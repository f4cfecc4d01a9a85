"""The recipes of Spack, EasyBuild and Apptainer say what CMakeLists.txt says.

Spack and EasyBuild themselves are not at hand in the quick tier: the recipes are run against
stand-ins that note what they declare. scripts/check_install.sh hands EasyBuild's to EasyBuild, and
scripts/check_fresh.sh runs the sections of Apptainer's.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
SPACK = PACKAGING / "spack" / "spack_repo" / "penstock"
(EASYCONFIG,) = (PACKAGING / "easybuild").glob("*.eb")
DEFINITION = PACKAGING / "apptainer" / "penstock.def"
CMAKE = (ROOT / "CMakeLists.txt").read_text()
VERSION = re.search(r"project\(penstock VERSION ([0-9.]+)", CMAKE)[1]  # type: ignore[index]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def options() -> set[str]:
    """Every PENSTOCK_ option and cache variable of the project's CMake files."""
    files = [ROOT / "CMakeLists.txt", ROOT / "bindings" / "CMakeLists.txt"]
    text = "".join(path.read_text() for path in [*files, *(ROOT / "cmake").glob("*.cmake")])
    named = set(re.findall(r"(?:option|set|find_program)\(\s*(PENSTOCK_[A-Z_]+)", text))
    return named | {f"PENSTOCK_MPICC_{name}" for name in ("MPICH", "OPENMPI", "ABI")}


# ---- Spack ----


class Recorder:
    """Stands for Spack's directives: notes the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def directive(self, name: str) -> Any:
        return lambda *args, **kwargs: self.calls.append((name, args, kwargs))

    def first(self, name: str) -> set[str]:
        """The first argument of every call of a directive."""
        return {args[0] for called, args, _ in self.calls if called == name}


def stand_ins(recorder: Recorder) -> dict[str, ModuleType]:
    """The modules that a recipe imports."""
    names = ("version", "variant", "depends_on", "extends", "conflicts", "license")
    package = ModuleType("spack.package")
    for name in names:
        setattr(package, name, recorder.directive(name))
    package.when = lambda _: contextlib.nullcontext()  # type: ignore[attr-defined]
    package.python_platlib = "/prefix/lib/python3.13/site-packages"  # type: ignore[attr-defined]
    cmake = ModuleType("spack_repo.builtin.build_systems.cmake")
    cmake.CMakePackage = type("CMakePackage", (), {})  # type: ignore[attr-defined]
    python = ModuleType("spack_repo.builtin.build_systems.python")
    python.PythonExtension = type("PythonExtension", (), {})  # type: ignore[attr-defined]
    above = {"spack": ModuleType("spack")}
    for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        above[name] = ModuleType(name)
    return above | {module.__name__: module for module in (package, cmake, python)}


class Spec(dict[str, Any]):
    """A concrete spec of the recipe's: its dependencies by name."""

    def satisfies(self, constraint: str) -> bool:
        return constraint == "+python"


@pytest.fixture
def spack(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Recorder]:
    """The recipe's class, and what it declared."""
    recorder = Recorder()
    for name, module in stand_ins(recorder).items():
        monkeypatch.setitem(sys.modules, name, module)
    source = SPACK / "packages" / "penstock" / "package.py"
    scope: dict[str, Any] = {"__name__": "penstock_recipe"}
    exec(compile(source.read_text(), source, "exec"), scope)  # noqa: S102 - our own recipe
    return scope["Penstock"], recorder


def test_spacks_recipe_has_the_projects_version_and_archive(spack: tuple[Any, Recorder]) -> None:
    recipe, recorder = spack
    assert recorder.first("version") == {VERSION}
    assert recipe.url.endswith(f"/penstock-{VERSION}.tar.gz")
    assert recipe.manual_download
    layout = (SPACK / "repo.yaml").read_text()
    assert re.search(r"namespace: penstock\n\s+api: v2\.", layout)


def test_spacks_recipe_asks_for_all_that_the_command_line_needs(
    spack: tuple[Any, Recorder],
) -> None:
    wanted = spack[1].first("depends_on")
    for need in PROJECT["dependencies"]:
        assert f"py-{need.replace('>=', '@')}:" in wanted
    assert {"mpi", "cmake@3.25:", "python@3.11:", "tl-expected"} <= wanted


def test_spacks_recipe_sets_only_options_that_there_are(spack: tuple[Any, Recorder]) -> None:
    recipe = spack[0]()
    recipe.prefix = "/prefix"
    recipe.define = lambda name, value: f"{name}={value}"
    recipe.define_from_variant = lambda name, variant: f"{name}={variant}"
    python = type("python", (), {"command": type("c", (), {"path": "/usr/bin/python3"})})
    recipe.spec = Spec(mpi=type("mpi", (), {"mpicc": "/opt/mpi/bin/mpicc"}), python=python)
    given = dict(argument.split("=", 1) for argument in recipe.cmake_args())
    assert given["PENSTOCK_PYTHON_DIR"] == "lib/python3.13/site-packages"
    assert {name for name in given if name.startswith("PENSTOCK_")} <= options()


# ---- EasyBuild ----


def easyconfig() -> dict[str, Any]:
    """What the easyconfig sets, with EasyBuild's own constants in scope."""
    scope: dict[str, Any] = {"SOURCE_TAR_GZ": "%(name)s-%(version)s.tar.gz", "SHLIB_EXT": "so"}
    exec(compile(EASYCONFIG.read_text(), EASYCONFIG, "exec"), scope)  # noqa: S102 - our own recipe
    return scope


def test_easybuilds_recipe_has_the_projects_version_and_name() -> None:
    recipe = easyconfig()
    toolchain = f"{recipe['toolchain']['name']}-{recipe['toolchain']['version']}"
    assert recipe["version"] == VERSION
    assert EASYCONFIG.name == f"penstock-{VERSION}-{toolchain}.eb"
    assert len(recipe["sources"]) == len(recipe["checksums"]) == 1


def test_easybuilds_recipe_sets_only_options_that_there_are() -> None:
    given = set(re.findall(r"-D(PENSTOCK_[A-Z_]+)=", easyconfig()["configopts"]))
    assert given
    assert given <= options()


def test_easybuilds_recipe_looks_for_files_that_are_installed() -> None:
    installed = {"bin/penstock", "bin/penstock-exec"}
    installed |= {f"lib/penstock/{name}-openmpi.so" for name in ("libpenstock", "penstock-engine")}
    assert set(easyconfig()["sanity_check_paths"]["files"]) == installed


# ---- Apptainer ----


def sections() -> dict[str, str]:
    """The definition's sections, by name."""
    parts = re.split(r"(?m)^%(\w+)[^\n]*\n", DEFINITION.read_text())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_apptainers_definition_has_the_projects_version_and_archive() -> None:
    found = sections()
    assert f"Version {VERSION}" in found["labels"]
    assert found["files"].split()[0] == f"dist/penstock-{VERSION}.tar.gz"
    assert "Bootstrap: docker\nFrom: debian:12\n" in DEFINITION.read_text()


@pytest.mark.parametrize("name", ["post", "environment", "test", "runscript"])
def test_apptainers_sections_are_shell_scripts(name: str) -> None:
    subprocess.run(["sh", "-n"], input=sections()[name], text=True, check=True, timeout=10)
