"""What check_clang.py repeats of a compilation, and that it can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "check_clang.py"


def check(build: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--build", str(build), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build of one source that needs a definition, a standard and a header of ours."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "ours.hpp").write_text("inline int ours() { return 1; }\n")
    (tmp_path / "good.cpp").write_text(
        '#include <concepts>\n#include "ours.hpp"\nstatic_assert(std::integral<int>);\n'
        "static_assert(NEEDED == 2);\n"
    )
    add(tmp_path, "good.cpp")
    return tmp_path


def add(build: Path, name: str, precompiled: str = "gone/cmake_pch.hxx") -> None:
    database = build / "compile_commands.json"
    entries = json.loads(database.read_text()) if database.exists() else []
    flags = "-DNEEDED=2 -I include -std=gnu++20 -fno-such-option-of-clang"
    command = f"g++ {flags} -Winvalid-pch -include {precompiled} -o {name}.o -c {name}"
    entries.append({"directory": str(build), "file": str(build / name), "command": command})
    database.write_text(json.dumps(entries))


def test_what_clang_takes_passes(build: Path) -> None:
    done = check(build)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")


def test_what_only_gcc_takes_fails_and_is_named(build: Path) -> None:
    (build / "bad.cpp").write_text("int f(int n) { int g() { return n; } return g(); }\n")
    add(build, "bad.cpp")
    done = check(build)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed")
    assert "bad.cpp" in done.stdout


def test_sources_compiled_at_a_time_are_read_each_by_itself(build: Path) -> None:
    (build / "one.cpp").write_text("inline int one() { return 1; }\n")
    (build / "two.cpp").write_text("int two() { return one() + one(); }\n")
    members = [f'#include "{build / name}"' for name in ("one.cpp", "two.cpp")]
    (build / "unity_0_cxx.cxx").write_text("\n".join(["/* by CMake */", *members]))
    add(build, "unity_0_cxx.cxx")
    done = check(build)
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed"
    assert "two.cpp" in done.stdout
    assert check(build, "--together").stdout.splitlines()[-1] == "2 passed, 0 failed"
    (build / "two.cpp").write_text("int two() { return three(); }\n")
    assert check(build, "--together").stdout.splitlines()[-1] == "1 passed, 1 failed"


def test_what_the_build_precompiles_is_precompiled(build: Path) -> None:
    header = build / "cmake_pch.hxx"
    header.write_text("struct Once {};\n")
    (build / "use.cpp").write_text("Once once;\n")
    add(build, "use.cpp", precompiled=str(header))
    assert check(build).stdout.splitlines()[-1] == "2 passed, 0 failed"
    header.write_text("not C++\n")
    assert check(build).stdout.splitlines()[-1] == "1 passed, 1 failed"


def test_tests_and_what_is_precompiled_are_left_out(build: Path) -> None:
    for name in ("x_test.cpp", "cmake_pch.hxx.cxx", "plain.c"):
        add(build, name)
    assert check(build).stdout.splitlines()[-1] == "1 passed, 0 failed"


def test_without_the_compiler_or_a_build_it_says_so(build: Path) -> None:
    missing = check(build, "--compiler", "clangg++")
    assert missing.returncode == 2
    assert "--compiler clangg++" in missing.stdout
    (build / "compile_commands.json").write_text("[]")
    assert check(build).returncode == 2
    nowhere = check(build / "nowhere")
    assert nowhere.returncode == 2
    assert "scripts/build.sh" in nowhere.stdout
