"""scripts/bootstrap.sh: a checkout in a directory that nothing could be built in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

BOOTSTRAP = Path(__file__).parents[1] / "bootstrap.sh"


def bootstrap(checkout: Path, tools: Path) -> str:
    """Why it stops, where there is neither a package manager nor a compiler."""
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(BOOTSTRAP, checkout / "scripts")
    tools.mkdir()
    for name in ("dirname", "mkdir"):
        (tools / name).symlink_to(str(shutil.which(name)))
    bash = str(shutil.which("bash"))
    done = subprocess.run(
        [bash, str(checkout / "scripts" / "bootstrap.sh")],
        env={"PATH": str(tools)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("name", ["my work", "a:b", "a\tb"])
def test_blanks_and_colons_are_refused_with_the_remedy(tmp_path: Path, name: str) -> None:
    said = bootstrap(tmp_path / name, tmp_path / "tools")
    assert f"without blanks and colons, got '{tmp_path / name}'" in said
    assert f"mv '{tmp_path / name}' $HOME/penstock" in said
    assert not (tmp_path / name / "build").exists()


def test_other_paths_are_not_refused(tmp_path: Path) -> None:
    said = bootstrap(tmp_path / "penstock-0.1_x+y", tmp_path / "tools")
    assert said.startswith("bootstrap: no C++ compiler")
