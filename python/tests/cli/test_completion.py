"""Shell completion: what a shell offers after the script was read, and that it is up to date."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock import native
from penstock.bench.export import FORMATS
from penstock.bench.programs import NAMES
from penstock.cli import completion
from penstock.explain.shipped import shipped
from support import Cli

COMMITTED = Path(__file__).parents[3] / "packaging" / "completion"


def offered(*words: str) -> list[str]:
    """What bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    asked = (
        f"{completion.script(completion.Shell.bash)}\n"
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _penstock penstock\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", asked], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["penstock", "ru"], ["run"]),
        (["penstock", "run", "--dum"], ["--dump-config"]),
        (["penstock", "run", "--method", "two"], ["two_phase"]),
        (["penstock", "run", "--quiet", "--meth"], ["--method"]),
        (["penstock", "compare", "--rate", "=", "ac"], ["actual"]),
        (["penstock", "run", "--method", "=", "two"], ["two_phase"]),
        (["penstock", "bench", "--mpi", ""], list(NAMES)),
        (["penstock", "bench", "--export", ""], [*FORMATS, ",".join(FORMATS)]),
        (["penstock", "env", "--mpi", "="], list(native.FLAVOURS)),
        (["penstock", "env", "--mpi", ""], list(native.FLAVOURS)),
        (["penstock", "run", "--config", ""], []),  # the shell offers files
        (["penstock", "explain", "hea"], ["heat"]),
        (["penstock", "explain", "--method", "o"], []),
        (["penstock", "run", "--method", "o"], ["observe", "off"]),
        (["penstock", "simulate", "g"], ["gotwals-1995"]),
        (["penstock", "explain", ""], list(shipped())),
        (["penstock", "completion", "z"], ["zsh"]),
        (["penstock", "--ver"], ["--version"]),
    ],
)
def test_bash_offers_commands_options_and_values(words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_every_command_and_option_is_offered() -> None:
    names = [c.name for c in completion.commands()]
    assert set(offered("penstock", "")) == {*names, "--version", "--help"}
    for command in completion.commands():
        options = {n for o in command.options for n in o.names}
        assert options <= set(offered("penstock", command.name, "-"))


@pytest.mark.parametrize("command", ["log", "compare", "report", "bench", "doctor"])
def test_where_a_file_may_be_the_shell_offers_files(command: str) -> None:
    assert offered("penstock", command, "") == []
    assert "--help" in offered("penstock", command, "--")


def test_behind_two_dashes_comes_the_programs_own_command_line() -> None:
    assert "bash" in offered("penstock", "run", "--", "bas")
    assert offered("penstock", "run", "--", "bash", "--ver") == []


@pytest.mark.parametrize("shell", completion.Shell)
def test_what_packages_install_is_what_the_command_prints(
    cli: Cli, shell: completion.Shell
) -> None:
    committed = (COMMITTED / f"penstock.{shell}").read_text(encoding="utf-8")
    remedy = f"run: .venv/bin/penstock completion {shell} > packaging/completion/penstock.{shell}"
    assert committed == cli("completion", shell).stdout, remedy


@pytest.mark.parametrize("shell", [s for s in completion.Shell if shutil.which(s)])
def test_a_shell_reads_its_script_without_a_word(shell: completion.Shell, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(completion.script(shell))
    start = "autoload -Uz compinit && compinit -u -D; " if shell == "zsh" else ""
    done = subprocess.run(
        [shell, "-c", f"{start}. {script}"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
