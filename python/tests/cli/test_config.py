"""``penstock config`` and ``--dump-config``: where settings come from, as a user meets it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from penstock.launch.request import Options
from support import Cli


def project(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "empty" / "penstock.toml"
    file.write_text(text)
    file.chmod(0o644)
    return file


def sources(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {s["key"]: s["source"] for s in json.loads(done.stdout)["settings"]}


def test_every_setting_tells_who_set_it(cli: Cli, tmp_path: Path) -> None:
    file = project(tmp_path, "quiet = true\n\nmethod = 'two_phase'\n")
    user = tmp_path / "home" / ".config" / "penstock" / "penstock.toml"
    user.parent.mkdir(parents=True)
    user.write_text("verify = true\nquiet = false\n")
    done = cli("config", "--json", "--no-log", PENSTOCK_CYCLE="64KiB")
    assert sources(done) == {
        "method": f"{file}:3",
        "writers": "default",
        "cycle": "PENSTOCK_CYCLE",
        "require": "default",
        "verify": f"{user}:1",
        "read": "default",
        "write_behind": "default",
        "write_behind_page": "default",
        "write_behind_limit": "default",
        "write_behind_seconds": "default",
        "write_behind_progress": "default",
        "write_behind_subbuffer": "default",
        "visibility": "default",
        "quiet": f"{file}:1",
        "log": "--no-log",
        "log_dir": "default",
    }


@pytest.mark.parametrize(
    "command", [["config"], ["run", "--dump-config"], ["env", "--dump-config"]]
)
def test_a_dump_is_toml_that_config_reads_back_as_itself(
    cli: Cli, tmp_path: Path, command: list[str]
) -> None:
    project(
        tmp_path,
        "method = 'two_phase'\nwriters = 2\nleave_alone = ['ls']\n"
        "[[file]]\npattern = ['*.chk', 'a \"b\"']\nmethod = 'off'\n",
    )
    first = cli(*command, "--verify")
    dump = tmp_path / "dump.toml"
    dump.write_text(first.stdout)
    again = cli(*command, "--isolated", "--config", str(dump))
    assert again.returncode == 0, again.stderr
    assert tomllib.loads(again.stdout) == tomllib.loads(first.stdout)
    assert tomllib.loads(first.stdout)["verify"] is True
    assert "# --verify" in first.stdout


def test_json_alone_is_refused(cli: Cli) -> None:
    for command in ("run", "env"):
        done = cli(command, "--json")
        assert done.returncode == 2
        assert "--dump-config" in done.stderr


def test_a_file_that_others_may_write_stops_before_anything_runs(cli: Cli, tmp_path: Path) -> None:
    file = project(tmp_path, "quiet = true\n")
    file.chmod(0o664)
    done = cli("run", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"mode 0664), so it is not obeyed; chmod go-w {file}" in done.stderr
    assert cli("run", "--isolated", "--", "echo", "ran").stdout.endswith("ran\n")


def test_the_manuals_way_to_a_file_works_where_the_group_may_write_new_ones(
    clean_environment: dict[str, str], tmp_path: Path
) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"
    _, _, lines = page.read_text().partition("    penstock config --method two_phase > ")
    first, second, *_ = f"penstock config --method two_phase > {lines}".splitlines()
    assert "penstock.toml" in second
    text = f'penstock() {{ {sys.executable} -m penstock "$@"; }}; umask 002'
    done = subprocess.run(
        ["sh", "-ec", "\n".join([text, first, second, "penstock config"])],
        cwd=tmp_path,
        env=clean_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"# {tmp_path / 'penstock.toml'}:" in done.stdout


def test_a_misspelt_variable_is_said_once_and_the_job_runs(cli: Cli) -> None:
    done = cli("run", "--", "echo", "ran", PENSTOCK_METHD="off")
    assert done.stdout.endswith("ran\n")
    assert done.stderr.count("did you mean PENSTOCK_METHOD?") == 1
    assert cli("run", "--require", "--", "echo", PENSTOCK_METHD="off").returncode == 2


def test_a_program_of_the_sites_list_runs_untouched_and_it_is_said(
    cli: Cli, tmp_path: Path
) -> None:
    project(tmp_path, "leave_alone = ['ech*']\n")
    done = cli("run", "--", "echo", "ran")
    assert done.stdout == "ran\n"
    assert 'program echo is left alone (leave_alone has "ech*"' in done.stderr
    assert cli("run", "--quiet", "--", "echo").stderr == ""


def test_the_prefix_of_an_installation_has_a_configuration(cli: Cli, tmp_path: Path) -> None:
    library = tmp_path / "opt" / "lib" / "penstock"
    library.mkdir(parents=True)
    file = tmp_path / "opt" / "etc" / "penstock" / "penstock.toml"
    file.parent.mkdir(parents=True)
    file.write_text("quiet = true\n")
    done = cli("config", "--json", PENSTOCK_NATIVE_DIR=str(library))
    assert sources(done)["quiet"] == f"{file}:1"


def test_what_env_prints_keeps_options_above_tables(cli: Cli) -> None:
    done = cli("env", "--mpi", "mpich", "--method", "two_phase", "--no-log")
    assert "export PENSTOCK_METHOD=two_phase" in done.stdout
    assert "export PENSTOCK_LOG=0" in done.stdout
    assert "export PENSTOCK_OPTIONS=METHOD,LOG" in done.stdout


def test_the_reference_page_names_every_key_variable_and_option(cli: Cli) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "configuration.md").read_text()
    for setting in json.loads(cli("config", "--json").stdout)["settings"]:
        assert f"| `{setting['key']}` | `PENSTOCK_{setting['key'].upper()}` |" in page
    for field in dataclasses.fields(Options):
        assert f"--{field.name.replace('_', '-')}`" in page
