"""An installed tree works from wherever it is, and is all that there is to an installation.

A build that is there already is installed, and moved away from where it was installed to.
PENSTOCK_TEST_BUILD names the build directory; default: build/release of this checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_TEST_BUILD", ROOT / "build" / "release")).resolve()
FLAVOURS = [name for name in ("mpich", "openmpi") if shutil.which(f"mpicc.{name}")]
WRITER = Path(__file__).with_name("writer.c")
LMOD = Path("/etc/profile.d/lmod.sh")
EXPECTED = """\
bin/penstock
bin/penstock-exec
include/penstock/penstock.h
lib/libpenstock-c.so
lib/libpenstock-c.so.0
lib/penstock/command_line.py
lib/penstock/penstock-exec
lib/pkgconfig/penstock-c.pc
share/bash-completion/completions/penstock
share/doc/penstock/LICENSE
share/doc/penstock/NOTICE
share/fish/vendor_completions.d/penstock.fish
share/man/man1/penstock-exec.1
share/man/man1/penstock-run.1
share/man/man1/penstock.1
share/man/man3/penstock.3
share/zsh/site-functions/_penstock
"""


@dataclass(frozen=True)
class Installed:
    """A prefix, and an empty home and working directory to use it from."""

    prefix: Path
    first_prefix: Path  # where it was installed to, before it was moved
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a user's shell has who put the prefix into PATH, and nothing of this checkout."""
        return {
            "PATH": f"{self.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }

    def run(
        self, *command: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command as that user; an exit code other than 0 is for the caller to judge."""
        return subprocess.run(
            [str(word) for word in command],
            cwd=cwd or self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """``cmake --install`` into an empty prefix, which is then moved."""
    cache = BUILD / "CMakeCache.txt"
    remedy = f"{BUILD} is no build with the command line; make it: scripts/build.sh release"
    assert cache.is_file(), remedy
    assert "PENSTOCK_PYTHON_INTERPRETER" in cache.read_text(), remedy
    work = tmp_path_factory.mktemp("install")
    first, moved, home = work / "first", work / "moved" / "to", work / "home"
    for directory in (moved.parent, home):
        directory.mkdir()
    command = ["cmake", "--install", str(BUILD), "--prefix", str(first)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    first.rename(moved)
    return Installed(moved, first, home)


def text_files(prefix: Path) -> list[tuple[Path, str]]:
    """Every file of the prefix that is text."""
    found = []
    for path in sorted(prefix.rglob("*")):
        if path.is_file() and not path.is_symlink() and b"\0" not in path.read_bytes():
            found.append((path, path.read_text(encoding="utf-8")))
    return found


def compiled(flavour: str, where: Path) -> Path:
    """The writer, built as its author would: with the MPI library's compiler and no Penstock."""
    program = where / f"writer-{flavour}"
    subprocess.run([f"mpicc.{flavour}", "-o", program, WRITER], check=True, timeout=60)
    return program


def launcher(flavour: str) -> list[str]:
    spread = ["--oversubscribe"] if flavour == "openmpi" else []
    return [f"mpiexec.{flavour}", *spread, "-n", "2"]


def test_every_part_is_where_a_user_looks_for_it(installed: Installed) -> None:
    missing = [name for name in EXPECTED.split() if not (installed.prefix / name).exists()]
    assert missing == []
    for flavour in FLAVOURS:
        for name in (f"libpenstock-{flavour}.so", f"penstock-engine-{flavour}.so"):
            assert (installed.prefix / "lib" / "penstock" / name).is_file()


def test_the_tree_names_nothing_of_where_it_was_built(installed: Installed) -> None:
    interpreter = re.search(
        r"^PENSTOCK_PYTHON_INTERPRETER:FILEPATH=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M
    )
    assert interpreter is not None
    for path, text in text_files(installed.prefix):
        rest = text.replace(interpreter.group(1), "")  # the launcher's Python: a site's own
        assert str(ROOT) not in rest, path
        assert str(BUILD) not in rest, path
        if path.suffix != ".lua":  # knows the first prefix, for a site that copies it out
            assert str(installed.first_prefix) not in rest, path


def test_the_libraries_look_nowhere_for_others(installed: Installed) -> None:
    libraries = sorted((installed.prefix / "lib" / "penstock").rglob("*.so"))
    assert libraries
    for library in libraries:
        dynamic = subprocess.run(
            ["readelf", "-d", library], capture_output=True, text=True, check=True, timeout=30
        ).stdout
        assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic), library


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("way", ["run", "exec"])
def test_a_program_is_served_by_the_moved_prefix(
    installed: Installed, tmp_path: Path, flavour: str, way: str
) -> None:
    start = [*launcher(flavour)]
    words = (
        ["penstock", "run", "--require", "--", *start]
        if way == "run"
        else [*start, "penstock-exec", "--require"]
    )
    done = installed.run(*words, compiled(flavour, tmp_path), "out.dat", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.dat").read_bytes() == b"a" * 1000 + b"b" * 1000
    mapped = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("mapped ")}
    mapped = {path for path in mapped if path.endswith(".so")}  # not the memory that ranks share
    there = installed.prefix / "lib" / "penstock"
    expected = {f"{there}/libpenstock-{flavour}.so", f"{there}/penstock-engine-{flavour}.so"}
    assert mapped == expected


def test_files_of_the_working_directory_are_not_taken_for_pythons(
    installed: Installed, tmp_path: Path
) -> None:
    for name in ("random.py", "typer.py", "penstock.py"):
        (tmp_path / name).write_text("raise SystemExit('a file of the user was imported')\n")
    done = installed.run("penstock", "--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_link_to_the_command_line_finds_its_prefix(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "penstock").symlink_to(installed.prefix / "bin" / "penstock")
    done = installed.run(tmp_path / "penstock", "run", "--dry-run", "--", "true")
    assert f"{installed.prefix}/lib/penstock/penstock-exec" in done.stdout


def test_a_python_that_is_gone_is_named_with_the_remedy(
    installed: Installed, tmp_path: Path
) -> None:
    text = (installed.prefix / "bin" / "penstock").read_text()
    orphan = tmp_path / "penstock"
    orphan.write_text(re.sub(r"(?m)^python='.*'$", "python='/nowhere/python3'", text))
    orphan.chmod(0o755)
    done = installed.run(orphan, "list")
    assert done.returncode == 127
    assert "/nowhere/python3" in done.stderr
    assert "install Penstock again, or use penstock-exec" in done.stderr


def test_a_python_without_the_packages_is_told_what_to_install(installed: Installed) -> None:
    start = installed.prefix / "lib" / "penstock" / "command_line.py"
    bare = shutil.which("python3", path="/usr/bin:/bin")
    assert bare is not None
    done = installed.run(bare, "-P", "-S", start)  # -S: no site-packages
    assert done.returncode == 127  # 1 would be a verdict of `compare`
    assert re.search(r"package '\w+' is not there for .*python3", done.stderr)
    target = installed.prefix / "lib" / "penstock" / "python"
    packages = "typer rich pydantic numpy scipy polars jinja2"
    assert f"-m pip install --target {target} {packages}" in done.stderr


def test_the_manual_is_found_beside_the_path(installed: Installed) -> None:
    done = installed.run("man", "-w", "penstock-run")
    assert done.stdout.strip() == f"{installed.prefix}/share/man/man1/penstock-run.1"


@pytest.mark.skipif(not LMOD.exists(), reason="lmod is not installed")
def test_the_module_loads_shows_and_unloads(installed: Installed, tmp_path: Path) -> None:
    script = f"""
        export PATH=/usr/bin:/bin; unset MANPATH
        source {LMOD} && module use {installed.prefix}/share/modulefiles
        module show penstock 2>&1 | grep -c '{installed.prefix}'
        module load penstock && command -v penstock penstock-exec
        man -w penstock-run ls
        module unload penstock; command -v penstock-exec || echo gone "$PATH" """
    done = installed.run("bash", "-c", script, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert int(lines[0]) > 0, done.stderr
    assert lines[1:4] == [
        f"{installed.prefix}/bin/penstock",
        f"{installed.prefix}/bin/penstock-exec",
        f"{installed.prefix}/share/man/man1/penstock-run.1",
    ], done.stderr
    assert lines[4].endswith("ls.1.gz")  # the system's pages are not hidden
    assert lines[5] == "gone /usr/bin:/bin"


@pytest.mark.skipif(not LMOD.exists(), reason="lmod is not installed")
def test_a_copied_module_whose_prefix_is_gone_refuses(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "penstock").mkdir()
    (module,) = (installed.prefix / "share" / "modulefiles" / "penstock").iterdir()
    shutil.copy(module, tmp_path / "penstock")
    script = f"source {LMOD} && module use {tmp_path} && module load penstock"
    done = installed.run("bash", "-c", script)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert f"there is no bin/penstock-exec in {installed.first_prefix}" in said


def test_bash_completes_the_commands(installed: Installed) -> None:
    script = f"""
        source {installed.prefix}/share/bash-completion/completions/penstock
        COMP_WORDS=(penstock ex) COMP_CWORD=1
        registered=$(complete -p penstock) && registered=${{registered##*-F }}
        "${{registered%% *}}" penstock ex penstock; echo "${{COMPREPLY[@]}}" """
    done = installed.run("bash", "-c", script)
    assert done.stdout.split() == ["explain"], done.stderr


def test_installing_and_using_it_leaves_the_home_directory_alone(installed: Installed) -> None:
    for command in (["list"], ["explain"], ["env", "--mpi", FLAVOURS[0]]):
        assert installed.run("penstock", *command).returncode == 0
    assert list(installed.home.iterdir()) == []
