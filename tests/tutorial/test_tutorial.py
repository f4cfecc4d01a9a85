"""The tutorials' own text, put into a copy of the sources, is built and picked up everywhere.

A code block after ``<!-- file: PATH -->`` is a whole file, one after ``<!-- append: PATH -->`` is
the line to add to a list. The copy stays in build/tutorial: a second run builds only what changed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "tutorial"
COPY = WORK / "source"
# Where `make build` has its own, seen from the sources: what both compile alike comes from ccache.
BUILD = COPY / "build" / "release"
PAGES = ["docs/adding-an-algorithm.md", "docs/adding-a-mechanism.md"]
BLOCK = re.compile(r"<!-- (file|append): (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)
TARGETS = ["plan_tests", "io_tests", "exec_tests", "_core"]


def copy_sources() -> None:
    """Times are kept: what did not change is not built again."""
    for old in COPY.glob("*"):
        if old.name != "build":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name in (
        "src",
        "bench",
        "cmake",
        "bindings",
        "packaging",
        "python",
        "tests/CMakeLists.txt",
        "tests/btio",
        "tests/memory",
    ):
        source, target = ROOT / name, COPY / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy2(source, target)
    shutil.copy2(ROOT / "CMakeLists.txt", COPY)
    shutil.copy2(ROOT / "CMakePresets.json", COPY)


def apply_page(page: Path) -> list[str]:
    """Does to the copy what the page tells the reader to do; gives the paths it touched."""
    touched = []
    for kind, path, text in BLOCK.findall(page.read_text()):
        target = COPY / path
        if kind == "file":
            assert not target.exists(), f"{path} is there already: the tutorial's name is taken"
            target.write_text(text)
            os.utime(target, (page.stat().st_mtime,) * 2)
        else:
            target.write_text(target.read_text() + text)
        touched.append(path)
    return touched


def run(*command: str | Path, folder: Path = COPY) -> str:
    """Runs a command in a folder; what it said is the message when it fails."""
    environment = os.environ | {
        "CCACHE_BASEDIR": str(COPY),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",  # as scripts/build.sh
        "PYTHONPATH": str(COPY / "python"),
    }
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
        timeout=1200,
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built() -> Path:
    """A build of the copy with both tutorials applied."""
    copy_sources()
    for page in PAGES:
        apply_page(ROOT / page)
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    options = ["-DPENSTOCK_MPI=OFF", "-DPENSTOCK_PYTHON=ON", "-DPENSTOCK_PYTHON_INPLACE=ON"]
    options += [f"-DPython_EXECUTABLE={sys.executable}", *launcher]
    run("cmake", "--preset", "release", "-S", COPY, *options)
    run("cmake", "--build", BUILD, "--target", *TARGETS)
    return BUILD


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_one_file_and_one_line(page: str) -> None:
    kinds = [
        (kind, text.strip().count("\n"))
        for kind, _, text in BLOCK.findall((ROOT / page).read_text())
    ]
    assert [kind for kind, _ in kinds] == ["file", "append"]
    assert kinds[1][1] == 0


@pytest.mark.parametrize("page", PAGES)
def test_the_code_is_formatted_as_all_code_is(page: str, tmp_path: Path) -> None:
    shutil.copy2(ROOT / ".clang-format", tmp_path)
    ((_, path, text), _) = BLOCK.findall((ROOT / page).read_text())
    file = tmp_path / Path(path).name
    file.write_text(text)
    run("clang-format", "--dry-run", "--Werror", file, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["snake_toy", "lseek_write"])
def test_the_conformance_suite_picks_it_up_and_it_passes(built: Path, name: str) -> None:
    said = run(built / "exec_tests", f"--gtest_filter=*{name}*")
    passed = re.search(r"\[  PASSED  \] (\d+) test", said)
    assert passed is not None
    assert int(passed[1]) >= 2, said


@pytest.mark.slow
def test_every_plan_keeps_its_promises(built: Path) -> None:
    run(built / "plan_tests")


@pytest.mark.slow
def test_every_mechanism_keeps_its_promises(built: Path) -> None:
    run(built / "io_tests")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "name"), [("algorithm", "snake_toy"), ("mechanism", "lseek_write")]
)
def test_penstock_list_and_the_docs_table_name_it(built: Path, family: str, name: str) -> None:
    assert built
    listed = json.loads(run(sys.executable, "-m", "penstock", "list", "--json"))
    entries = {each["name"]: each["entries"] for each in listed["families"]}
    assert name in [entry["name"] for entry in entries[family]]
    assert f"`{name}`" in run(sys.executable, "-m", "penstock", "list", "--markdown")
