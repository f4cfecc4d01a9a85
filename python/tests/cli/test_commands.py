"""The command line from end to end, in an empty directory, as a user meets it."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.cli.output import write_picture
from penstock.errors import WriteError
from support import Cli

LAUNCHERS = [n for n in ("mpiexec.mpich", "mpiexec.openmpi") if shutil.which(n)]


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"penstock {penstock.__version__}\n"


@pytest.mark.parametrize(
    "command", ["run", "env", "config", "list", "explain", "log", "report", "simulate"]
)
def test_every_command_has_help_with_examples(cli: Cli, command: str) -> None:
    done = cli(command, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert f"penstock {command}" in done.stdout


def test_a_misspelt_command_names_the_nearest_and_gives_2(cli: Cli) -> None:
    done = cli("explane")
    assert done.returncode == 2
    assert "explain" in done.stderr
    assert done.stdout == ""


def test_a_misspelt_option_names_the_nearest_and_gives_2(cli: Cli) -> None:
    done = cli("run", "--methd", "two_phase", "--", "true")
    assert done.returncode == 2
    assert "--method" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "--method", "two_phaze", "--", "true"], 'did you mean "two_phase"'),
        (["run", "--cycle", "1000", "--", "true"], "got 1000"),
        (["run", "--writers", "x", "--", "true"], 'writers must be an integer, got "x"'),
        (["run", "--config", "/no/such.toml", "--", "true"], '--config names "/no/such.toml"'),
        (["run", "--", "mpiexec", "--unheard-of", "./app"], "penstock-exec"),
        (["explain", "--method", ""], "--method must be such as two_phase + messages, got ''"),
        (["explain", "--draw", "-", "--json"], "--draw - and --json would both print to stdout"),
        (["explain", "no-such.toml"], "no-such.toml cannot be read"),
        (["explain", "/dev/zero"], "/dev/zero must be a described job of at most 1048576"),
        (["list", "--json", "--markdown"], "exclude each other"),
        (
            ["env", "--mpi", "mpichh"],
            "got mpichh; did you mean mpich",
        ),
        (
            ["env", "--mpi", "bogus", "--method", "off"],
            "--mpi must be mpich or openmpi or abi, got",
        ),
        (["env", "--mpi", "bogus", "--dump-config"], "--mpi must be mpich or openmpi or abi, got"),
        (
            ["run", "--dump-config", "--thread-multiple"],
            "--dump-config starts nothing, so --thread",
        ),
        (["run", "--dump-config", "--mpi", "abi"], "so --mpi would have no effect"),
        (
            ["run", "--mpi", "opnmpi", "--", "true"],
            "must be mpich or openmpi or abi, got opnmpi; did you mean openmpi?",
        ),
        (["run", "--dump-config", "--dry-run", "--", "true"], "so --dry-run would have no effect"),
        (["config", "--config="], "--config must name a TOML file of settings, got"),
    ],
)
def test_a_wrong_value_is_one_line_on_stderr_and_2(cli: Cli, words: list[str], says: str) -> None:
    done = cli(*words)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.startswith("penstock: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("quiet = \n", "run.toml:1: "),
        ("quite = true\n", 'did you mean "quiet"'),
        ("writers = 2.5\n", "writers"),
    ],
)
def test_a_wrong_configuration_file_is_named_before_anything_runs(
    cli: Cli, tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    done = cli("run", "--config", str(file), "--", "echo", "ran")
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stdout == ""


def test_a_missing_launcher_gives_127(cli: Cli) -> None:
    done = cli("run", "--", "mpiexec.not-installed", "-n", "2", "true")
    assert done.returncode == 127
    assert "launcher mpiexec.not-installed was not found" in done.stderr


def test_a_missing_program_gives_127(cli: Cli) -> None:
    assert cli("run", "--", "./not-there").returncode == 127


def test_the_exit_code_is_the_programs(cli: Cli) -> None:
    assert cli("run", "--", "sh", "-c", "exit 37").returncode == 37


def test_a_signal_is_the_programs_own(cli: Cli) -> None:
    assert cli("run", "--", "sh", "-c", "kill -TERM $$").returncode == -15


def test_no_wrapper_process_stays_behind(cli: Cli) -> None:
    done = cli("run", "--", "sh", "-c", "cat /proc/$PPID/comm")
    assert "python" in done.stdout  # the test itself: penstock has become the shell


def test_off_changes_nothing(cli: Cli) -> None:
    done = cli("run", "--method", "off", "--", "sh", "-c", "echo ${LD_PRELOAD:-none}")
    assert done.stdout == "none\n"


def test_off_is_off_in_a_shell_that_preloads_penstock(cli: Cli, native_dir: Path) -> None:
    ours = f"{native_dir}/libpenstock-mpich.so"
    shell = ["sh", "-c", "echo ${LD_PRELOAD:-none}"]
    done = cli("run", "--method", "off", "--", *shell, LD_PRELOAD=ours)
    assert done.stdout == "none\n"


def test_a_dry_run_prints_a_line_that_a_shell_reads_back(cli: Cli, native_dir: Path) -> None:
    done = cli("run", "--dry-run", "--verify", "--", "sh", "-c", "echo 'a b'")
    words = shlex.split(done.stdout)
    assert words[:2] == [f"{native_dir}/penstock-exec", "--resolved"]
    assert words[3:] == ["--", "sh", "-c", "echo 'a b'"]
    again = subprocess.run(["sh", "-c", done.stdout], capture_output=True, text=True, check=True)
    assert again.stdout.endswith("\na b\n")


@pytest.mark.skipif(not LAUNCHERS, reason="no MPI launcher is installed")
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_rank_of_every_part_is_preloaded(cli: Cli, launcher: str) -> None:
    words = [launcher, *("-n", "2", "echo", "left", ":", "-n", "1", "echo", "right")]
    if launcher.endswith("openmpi"):
        words.insert(1, "--oversubscribe")
    done = cli("run", "--quiet", "--", *words)
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    resolved = 'option {quiet = true, options = ["quiet"]}'
    options = ["option --all-ranks", "option --resolved", resolved]
    assert lines == sorted(["left"] * 2 + ["right"] + options * 3)


def test_env_prints_lines_that_a_shell_evaluates(cli: Cli, native_dir: Path) -> None:
    done = cli("env", "--mpi", "mpich", "--method", "two_phase(writers=2)")
    script = done.stdout + 'echo "$LD_PRELOAD|$PENSTOCK_METHOD"'
    shell = subprocess.run(
        ["sh", "-c", script], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert shell.stdout == f"{native_dir}/libpenstock-mpich.so|two_phase(writers=2)\n"


def test_env_says_which_mpi_it_found(cli: Cli, tmp_path: Path) -> None:
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    fake = bin_dir / "mpiexec"
    fake.write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 9.9'\n")
    fake.chmod(0o755)
    done = cli("env", PATH=f"{bin_dir}:{os.environ['PATH']}")
    assert "libpenstock-openmpi.so" in done.stdout
    assert "preloading for openmpi" in done.stderr


def test_env_bears_a_launcher_that_says_more_than_utf8(cli: Cli, tmp_path: Path) -> None:
    fake = tmp_path / "mpiexec"
    fake.write_bytes(b"#!/bin/sh\necho 'caf\xe9'\necho 'mpiexec (OpenRTE) 9.9'\n")
    fake.chmod(0o755)
    done = cli("env", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert "libpenstock-openmpi.so" in done.stdout


def test_env_without_any_mpi_asks_for_it(cli: Cli, tmp_path: Path) -> None:
    done = cli("env", PATH=str(tmp_path))
    assert done.returncode == 127
    assert "--mpi" in done.stderr
    assert done.stdout == ""


def test_list_names_every_family_in_all_forms(cli: Cli) -> None:
    told = json.loads(cli("list", "--json").stdout)
    names = {f["name"]: [e["name"] for e in f["entries"]] for f in told["families"]}
    spelled = [e["spelling"] for f in told["families"] for e in f["entries"]]
    assert set(names) == {"algorithm", "exchange", "mechanism", "sync", "return"}
    assert {"individual", "two_phase", "cyclic"} <= set(names["algorithm"])
    text, markdown = cli("list").stdout, cli("list", "--markdown").stdout
    assert {"individual", "every=BYTES", "coordinated=BYTES", "pulse=BYTES"} <= set(spelled)
    for spelling in spelled:
        assert spelling in text
        assert f"`{spelling}`" in markdown


def test_what_does_not_go_together_is_listed_with_its_reason(cli: Cli) -> None:
    told = json.loads(cli("list", "--json").stdout)["refused"]
    refused = {(r["algorithm"], other) for r in told for other in r["others"]}
    assert {("auto", "mmap"), ("individual", "pwrite(direct)"), ("two_phase", "none")} <= refused
    assert not {("individual", "none"), ("two_phase", "mmap"), ("cyclic", "written")} & refused
    markdown = cli("list", "--markdown").stdout
    for refusal in told:
        assert f"| `{refusal['algorithm']}` |" in markdown
        assert refusal["why"] in markdown


def test_what_is_not_available_is_listed_with_its_reason(cli: Cli) -> None:
    told = json.loads(cli("list", "--json").stdout)
    entries = {e["name"]: e for f in told["families"] for e in f["entries"]}
    for name in ("messages", "shm", "node_leaders", "write_behind"):
        assert entries[name]["unavailable"] == ""


def test_what_is_listed_as_available_is_what_the_parser_takes(cli: Cli) -> None:
    told = json.loads(cli("list", "--json").stdout)
    algorithms = {e["name"]: e for e in told["families"][0]["entries"]}
    for name, entry in algorithms.items():
        done = cli("run", "--method", name, "--dry-run", "--", "true")
        assert (done.returncode == 0) is (entry["unavailable"] == ""), name
    syncs = next(f for f in told["families"] if f["name"] == "sync")
    for entry in syncs["entries"]:
        method = "auto + messages + pwrite + " + entry["spelling"].replace("BYTES", "4MiB")
        done = cli("run", "--method", method, "--dry-run", "--", "true")
        assert (done.returncode == 0) is (entry["unavailable"] == ""), method


def test_explain_tells_and_draws(cli: Cli, tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    done = cli("explain", "--draw", str(picture))
    assert "two_phase(writers=2" in done.stdout
    assert picture.read_text().startswith("<svg")


def test_explain_draws_to_stdout_and_nothing_else(cli: Cli) -> None:
    done = cli("explain", "holes", "--draw", "-")
    assert done.stdout.startswith("<svg")
    assert done.stdout.endswith("</svg>\n")


def test_explain_json_is_alone_on_stdout(cli: Cli) -> None:
    assert json.loads(cli("explain", "heat", "--json").stdout)["ranks"] == 6


def test_a_picture_that_cannot_be_written_is_said(cli: Cli) -> None:
    done = cli("explain", "--draw", "/no/such/dir/plan.svg")
    assert done.returncode == 1
    assert "/no/such/dir/plan.svg cannot be written" in done.stderr
    assert "give another --draw" in done.stderr


def test_a_picture_that_does_not_fit_leaves_the_one_before(tmp_path: Path, full_disk: None) -> None:
    picture = tmp_path / "plan.svg"
    picture.write_text("before")
    with pytest.raises(WriteError, match=r"plan\.svg cannot be written: File too large; give"):
        write_picture(picture, "x" * 1000)
    assert picture.read_text() == "before"


def test_the_committed_picture_is_what_explain_draws(cli: Cli) -> None:
    committed = Path(__file__).parents[3] / "docs" / "images" / "plan-two-phase.svg"
    assert committed.read_text() == cli("explain", "--draw", "-").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_than_root_is_served(tmp_path: Path) -> None:
    """An ordinary user needs nothing that only root may read or write, beyond the installation."""
    nobody = pwd.getpwnam("nobody")
    package = Path(penstock.__file__).parent
    copy = Path("/tmp") / f"penstock-nobody-{os.getpid()}"  # noqa: S108 - readable by all on purpose
    shutil.copytree(package, copy / "penstock", ignore=shutil.ignore_patterns("__pycache__"))
    packages = [p for p in sys.path if p.endswith("site-packages")]
    try:
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755)
        python = next(filter(_same_and_readable, [sys.executable, "/usr/bin/python3"]), None)
        if python is None or not all(map(_readable_by_others, packages)):
            pytest.skip("this Python lies where other users cannot read")
        done = subprocess.run(
            [python, "-m", "penstock", "explain"],
            env={"PYTHONPATH": os.pathsep.join([str(copy), *packages]), "PATH": "/usr/bin"},
            cwd="/",
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        shutil.rmtree(copy)
    assert done.returncode == 0, done.stderr
    assert "two_phase" in done.stdout


def _same_and_readable(python: str) -> bool:
    """The extension serves one minor version only."""
    if not Path(python).exists() or not _readable_by_others(python):
        return False
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split() == [str(v) for v in sys.version_info[:2]]


def _readable_by_others(name: str) -> bool:
    path = Path(name).resolve()
    return all(p.stat().st_mode & 0o001 for p in [path, *path.parents])


def test_a_log_may_come_through_a_pipe(cli: Cli, tmp_path: Path) -> None:
    log = Path(__file__).parent.parent / "data" / "job-log.json"
    script = f"exec {shlex.quote(sys.executable)} -m penstock log --json <(cat {log}) <(cat {log})"
    done = subprocess.run(["bash", "-c", script], capture_output=True, cwd=tmp_path, check=True)
    one, two = json.loads(done.stdout)
    assert one == two == json.loads(log.read_text())
