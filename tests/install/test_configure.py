"""What CMake says when something needed is missing or too old: what was found, and the remedy.

Old compilers and C libraries are played by wrappers of the compiler that is here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def configure(build: Path, *options: str) -> tuple[int, str]:
    """Exit code and messages of cmake, its line breaks taken out."""
    command = ["cmake", "-S", str(ROOT), "-B", str(build), "-DPENSTOCK_TESTS=OFF", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def compiler(where: Path, body: str) -> str:
    """A C++ compiler made of a shell script; `real` is the real one."""
    real = shutil.which("g++") or shutil.which("c++")
    path = where / "compiler"
    path.write_text(f"#!/bin/sh\nreal={real}\n{body}\n")
    path.chmod(0o755)
    return f"-DCMAKE_CXX_COMPILER={path}"


def test_an_old_compiler_is_named_with_the_remedy(tmp_path: Path) -> None:
    old = compiler(tmp_path, 'exec $real -U__GNUC__ -D__GNUC__=9 "$@"')
    code, said = configure(tmp_path / "build", old)
    assert code != 0
    assert re.search(r"GCC 11 or Clang 14 or newer, but the compiler is GNU 9\.", said)
    assert f"({tmp_path}/compiler)" in said
    assert "-DCMAKE_CXX_COMPILER=g++-11" in said


def test_an_old_c_library_is_named_with_the_remedy(tmp_path: Path) -> None:
    asked = 'case "$*" in *penstock_glibc.h*) echo "penstock_glibc=2 . 17" && exit ;; esac'
    old = compiler(tmp_path, f'{asked}\nexec $real "$@"')
    code, said = configure(tmp_path / "build", old)
    assert code != 0
    assert "needs glibc 2.28 or newer" in said
    assert "this system has 2.17. Build in a container" in said


def test_an_old_kernel_is_a_warning_that_names_it(tmp_path: Path) -> None:
    toolchain = tmp_path / "toolchain.cmake"
    toolchain.write_text(
        "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_VERSION 3.10.0-1160.el7)\n"
        "set(CMAKE_SYSTEM_PROCESSOR x86_64)\n"
    )
    _, said = configure(tmp_path / "build", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}")
    assert "needs Linux 4.18 or newer, but this machine runs 3.10.0-1160.el7" in said


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("tomlplusplus", "libtomlplusplus-dev"),
        ("nlohmann-json", "nlohmann-json3-dev"),
        ("expected", "libexpected-dev"),
        ("cli11", "libcli11-dev"),
    ],
)
def test_a_missing_library_is_named_with_three_remedies(
    tmp_path: Path, name: str, package: str
) -> None:
    variable = f"PENSTOCK_{name.replace('-', '_').upper()}_INCLUDE_DIR"
    code, said = configure(
        tmp_path / "build", "-DCMAKE_IGNORE_PATH=/usr/include", *others(variable)
    )
    assert code != 0
    assert f"penstock: {name} was not found" in said
    for remedy in (
        f"apt-get install {package}",
        "-DCMAKE_PREFIX_PATH=DIR",
        "-DPENSTOCK_DEPS=bundled",
    ):
        assert remedy in said


def others(missing: str) -> list[str]:
    """Says where the other libraries are, so that the one is the first that is missed."""
    every = [
        f"PENSTOCK_{name}_INCLUDE_DIR"
        for name in ("TOMLPLUSPLUS", "NLOHMANN_JSON", "EXPECTED", "CLI11")
    ]
    return [f"-D{name}=/usr/include" for name in every if name != missing]


def test_a_library_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree("/usr/include/nlohmann", old / "nlohmann")
    header = old / "nlohmann" / "detail" / "abi_macros.hpp"
    header.write_text(re.sub(r"(VERSION_MINOR) \d+", r"\1 7", header.read_text()))
    code, said = configure(
        tmp_path / "build", f"-DCMAKE_PREFIX_PATH={old}", f"-DCMAKE_INCLUDE_PATH={old}"
    )
    assert code != 0
    assert re.search(
        rf'needs nlohmann-json 3\.11\.0 or newer, but {old}/nlohmann/json\.hpp is "3\.7\.', said
    )


def test_bundled_takes_the_archives_libraries_or_says_where_they_would_be(tmp_path: Path) -> None:
    code, said = configure(tmp_path / "build", "-DPENSTOCK_DEPS=bundled")
    there = f"{ROOT}/third_party/tomlplusplus/include"
    if (ROOT / "third_party").exists():  # these sources are an archive's
        assert code == 0, said
        assert f"{there} (bundled)" in said or f"{there}/ (bundled)" in said
    else:
        assert code != 0
        assert f"{there} has no toml++/toml.h" in said
        assert "Build from that archive, or say -DPENSTOCK_DEPS=system" in said


def test_a_word_that_is_no_choice_is_answered_with_the_choices(tmp_path: Path) -> None:
    code, said = configure(tmp_path / "build", "-DPENSTOCK_DEPS=vendored")
    assert code != 0
    assert "PENSTOCK_DEPS must be system or bundled, got vendored" in said


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("", "say where to: scripts/install.sh PREFIX (make install PREFIX=$HOME/penstock)"),
        ("relative/x", "PREFIX must be an absolute path, got 'relative/x'"),
        ("/proc/x", "PREFIX must be a directory that you may write to, got '/proc/x'"),
        ("/opt/a b", "PREFIX must be without blanks and colons, got '/opt/a b'"),
    ],
)
def test_a_prefix_that_cannot_be_is_refused_before_anything_is_built(
    prefix: str, said: str
) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "install.sh", prefix],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert said in done.stderr


OLD_CMAKE = """#!/bin/sh
case " $* " in *" --fresh "*) echo "CMake Error: Unknown argument --fresh" && exit 1 ;; esac
echo "penstock: needs CMake 3.25 or newer, but this is 3.22.1"
exit 1
"""


FULL_DISK = """#!/bin/sh
case $1 in
-S) for mpi in 1 2 3 4 5 6 7 8; do echo "-- penstock: mpich: /x/$mpi"; done ;;
--install)
  echo "-- Install configuration: error: none yet"
  echo "CMake Error at cmake_install.cmake:1 (file):"
  echo "  file INSTALL cannot copy file"
  echo
  echo "  Disk quota exceeded."
  exit 1 ;;
esac
"""


def install_by(cmake_text: str, where: Path) -> subprocess.CompletedProcess[str]:
    """install.sh of sources that are nothing else, by another cmake."""
    script, cmake = where / "scripts" / "install.sh", where / "bin" / "cmake"
    for directory in (script.parent, cmake.parent):
        directory.mkdir()
    shutil.copy(ROOT / "scripts" / "install.sh", script)
    cmake.write_text(cmake_text)
    cmake.chmod(0o755)
    return subprocess.run(
        [script, where / "prefix"],
        env={"PATH": f"{cmake.parent}:/usr/bin:/bin", "PYTHON": "none"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_cmake_that_is_too_old_is_told_which_is_needed(tmp_path: Path) -> None:
    """And nothing is left of what an earlier installation found."""
    found = tmp_path / "build" / "install" / "cmake"
    (found / "CMakeFiles").mkdir(parents=True)
    (found / "CMakeCache.txt").touch()
    done = install_by(OLD_CMAKE, tmp_path)
    assert done.returncode == 1
    assert "penstock: needs CMake 3.25 or newer, but this is 3.22.1" in done.stderr
    assert list(found.iterdir()) == []


def test_a_step_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    done = install_by(FULL_DISK, tmp_path)
    assert done.returncode == 1
    assert "CMake Error at cmake_install.cmake:1 (file):" in done.stderr
    assert "Disk quota exceeded" in done.stderr  # CMake breaks its lines
    assert "install: this failed: cmake --install" in done.stderr
    assert "-- " not in done.stderr.replace("cmake --install", "")


def test_a_python_that_will_not_do_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "install.sh", tmp_path / "x"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": "/nowhere/python3"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "PYTHON must be Python 3.11 or newer" in done.stderr
    assert "got /nowhere/python3" in done.stderr
