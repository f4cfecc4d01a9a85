"""The include check finds what it is for, and leaves the rest alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import check_includes

CMAKE = """
penstock_layer(base)
penstock_layer(layout base)
penstock_layer(plan layout)
penstock_layer(io layout)
penstock_layer(comm base)
penstock_layer(exec plan io comm)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "src").mkdir()
    return tmp_path


def violations(tree: Path, path: str, text: str) -> list[str]:
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return [*check_includes.cxx_violations(tree), *check_includes.python_violations(tree)]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/layout/a.cpp", '#include "plan/plan.hpp"'),
        ("src/plan/a.cpp", '#include "comm/comm.hpp"'),
        ("src/comm/comm.hpp", "#include <mpi.h>"),
        ("src/capi/open.cpp", "#include <mpi.h>"),
        ("src/capi/open.cpp", "#include <penstock/penstock_mpi.h>"),
        ("src/exec/a.cpp", '#  include  "engine/file.hpp"'),
        ("src/io/a.cpp", '#include "layout/cursor.hpp"'),
        ("src/plan/a.cpp", "#include <unistd.h>"),
        ("src/nowhere/a.cpp", ""),
        ("python/penstock/library.py", "from penstock.cli.run import run"),
    ],
)
def test_an_inclusion_against_the_layers_is_named(tree: Path, path: str, line: str) -> None:
    found = violations(tree, path, line)
    assert len(found) == 1
    assert path.split("/")[-1] in found[0]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/exec/a.cpp", '#include "base/error.hpp"'),
        ("src/exec/a.cpp", '#include "layout/cursor.hpp"'),
        ("src/io/a.cpp", '#include "layout/geometry.hpp"'),
        ("src/comm/mpi_comm.cpp", "#include <mpi.h>"),
        ("src/capi/mpi_team.cpp", "#include <penstock/penstock_mpi.h>"),
        ("src/capi/open.cpp", "#include <penstock/penstock.h>"),
        ("src/pmpi/write.cpp", "#include <mpi.h>"),
        ("src/pmpi/write.cpp", '#include "exec/pipeline.hpp"'),
        ("src/plan/a.cpp", '// #include "exec/pipeline.hpp"'),
        ("python/penstock/cli/main.py", "from penstock.cli import run"),
    ],
)
def test_an_inclusion_along_the_layers_is_fine(tree: Path, path: str, line: str) -> None:
    assert violations(tree, path, line) == []


def test_this_repository_keeps_its_layers() -> None:
    assert check_includes.main(Path(__file__).parents[2]) == 0
