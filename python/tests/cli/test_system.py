"""What the system refuses, or sends, while a command runs: one line, and a code of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import made_reports
from penstock.extras import pip_install
from support import Cli

PENSTOCK = [sys.executable, "-m", "penstock"]
TOO_LONG = "x" * 300  # bytes of a name, of which a file system takes 255


def test_what_cannot_be_reached_is_no_verdict_of_compare(cli: Cli) -> None:
    done = cli("compare", TOO_LONG, TOO_LONG)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"penstock: {TOO_LONG}: File name too long\n"


def test_a_closed_stdout_changes_no_refusal() -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *PENSTOCK, "compare", "no1", "no2"]
    done = subprocess.run(closed, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.fixture
def ok(tmp_path: Path) -> Path:
    """Results."""
    where = tmp_path / "ok"
    where.mkdir()
    made_reports.write(where / "samples.jsonl", made_reports.session({"c": {"x": 1e9}}, n=8))
    return where


@pytest.mark.parametrize(
    ("words", "code", "remedy"),
    [
        (["config"], 2, ""),
        (["compare", "OK", "OK"], 2, ""),
        (["report", "OK", "--format", "md"], 1, "; give --out FILE"),
        (["explain", "--draw", "-"], 1, "; give --draw FILE.svg"),
    ],
)
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_full_stdout_is_said_in_one_line(
    clean_environment: dict[str, str],
    ok: Path,
    words: list[str],
    code: int,
    remedy: str,
    buffered: str,
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PENSTOCK, *(str(ok) if word == "OK" else word for word in words)],
            env=clean_environment | {"PYTHONUNBUFFERED": buffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = f"penstock: stdout cannot be written: No space left on device{remedy}\n"
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["explain", "--draw", "LOOP"], 1, "LOOP cannot be written: Too many levels of symbolic"),
        (["report", "OK", "--out", "LOOP"], 1, "LOOP cannot be written: Too many levels of symb"),
        (["report", "OK", "--out", TOO_LONG], 1, f"{TOO_LONG} cannot be written: File name too"),
        (["bench", ".", "--out", "LOOP", "--dry-run"], 2, "--out LOOP is a link that leads to no"),
        (["bench", "LOOP", "--dry-run"], 2, "DIR must be a directory, and there is no LOOP"),
        (["compare", "OK", "KNOT"], 2, "KNOT/samples.jsonl cannot be read: Too many levels of"),
    ],
)
def test_links_in_a_loop_and_names_too_long_are_one_line(
    cli: Cli, ok: Path, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    loop, knot = tmp_path / "loop", tmp_path / "knot"
    knot.mkdir()
    for link in (loop, knot / "samples.jsonl"):
        link.symlink_to(link)
    places = {"OK": str(ok), "LOOP": str(loop), "KNOT": str(knot)}
    for name, place in places.items():
        says = says.replace(name, place)
    done = cli(*(places.get(word, word) for word in words))
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"penstock: {says}")
    assert len(done.stderr.splitlines()) == 1
    assert loop.is_symlink()


@pytest.mark.parametrize("development", [False, True])
def test_a_fault_of_ours_is_one_line_and_no_verdict(development: bool) -> None:
    code = "from penstock import cli\ncli.app = lambda: [][0]\ncli.main()\n"
    mode = ["-X", "dev"] if development else []
    done = subprocess.run(
        [sys.executable, *mode, "-c", code], capture_output=True, text=True, check=False
    )
    assert ("Traceback" in done.stderr) is development
    if not development:
        assert done.returncode == 70
        assert "ended the command (IndexError: list index out of range)" in done.stderr
        assert "PYTHONDEVMODE=1" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def in_python_without(package: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A command where the package cannot be imported."""
    code = f"import sys\nsys.modules[{package!r}] = None\nfrom penstock import cli\ncli.main()\n"
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("package", "words"),
    [("jinja2", ["report", "OK", "--out", "PAGE"]), ("numpy", ["compare", "OK", "OK"])],
)
def test_a_package_that_only_some_commands_need_is_named(
    ok: Path, tmp_path: Path, package: str, words: list[str]
) -> None:
    places = {"OK": str(ok), "PAGE": str(tmp_path / "page.html")}
    done = in_python_without(package, [places.get(word, word) for word in words])
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.startswith(f"penstock: the Python package '{package}' is not there for ")
    assert done.stderr.endswith(f"{pip_install(package)}\n")


@pytest.mark.parametrize("package", ["penstock.joblog", "json.decoder"])
def test_a_module_that_pip_has_not_is_a_fault_of_ours(package: str) -> None:
    code = (
        "from penstock import cli\n"
        f"def app(): raise ModuleNotFoundError('no module', name={package!r})\n"
        "cli.app = app\ncli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "pip" not in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["config"], ["explain"], ["compare"]])
def test_a_reader_that_has_left_is_no_verdict(
    clean_environment: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    samples = tmp_path / "samples.jsonl"
    made_reports.write(samples, made_reports.session({"c": {"x": 1e9}}, n=8))
    files = [str(samples)] * 2 if words == ["compare"] else []
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [*PENSTOCK, *words, *files],
        env=clean_environment,
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("text", ["[" * 100000, "1" * 5000])
def test_json_that_cannot_be_is_refused(cli: Cli, tmp_path: Path, text: str) -> None:
    log = tmp_path / "penstock-app-1.json"
    log.write_text(text)
    done = cli("log", str(log))
    assert done.returncode == 2
    assert done.stderr.startswith(f"penstock: {log} is not JSON: ")


def test_a_program_in_a_directory_that_is_not_utf8_runs(
    clean_environment: dict[str, str], tmp_path: Path
) -> None:
    place = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(place)  # noqa: PTH102 - pathlib takes no bytes
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\necho started\n")
    launcher.chmod(0o755)
    done = subprocess.run(
        [*PENSTOCK, "run", "--", str(launcher), "-n", "1", "/bin/true"],
        cwd=place,
        env=clean_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr


@pytest.fixture
def not_utf8(tmp_path: Path) -> str:
    """A directory whose name is not UTF-8."""
    place = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(place)  # noqa: PTH102 - pathlib takes no bytes
    return os.fsdecode(place)


def test_a_directory_that_is_not_utf8_is_examined(cli: Cli, not_utf8: str) -> None:
    told = json.loads(cli("doctor", "--json", not_utf8).stdout)
    assert told["directory"] == not_utf8
    texts = [f["text"] for f in told["findings"]]
    assert any("free for you" in text for text in texts)


@pytest.mark.parametrize("words", [["bench"], ["reproduce", "liao2007", "--dir"]])
def test_results_of_a_directory_that_they_cannot_name_are_not_begun(
    cli: Cli, not_utf8: str, words: list[str]
) -> None:
    done = cli(*words, not_utf8)
    assert done.returncode == 2
    assert done.stderr.startswith("penstock: DIR must have a name that is UTF-8")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["simulate", "--memory"], ["reproduce"], ["env", "--mpi"], ["explain", "--method"]]
)
def test_text_that_is_not_utf8_is_named(cli: Cli, words: list[str]) -> None:
    done = cli(*words, "a\udcff")
    assert (done.returncode, done.stderr) == (2, "penstock: 'a\\udcff' must be UTF-8\n")


@pytest.mark.parametrize("words", [["doctor"], ["run", "--log-dir", "logs", "--", "mpiexec", "ls"]])
def test_a_working_directory_that_is_gone_is_named(
    clean_environment: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", gone, *PENSTOCK, *words],
        env=clean_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = "penstock: the working directory was removed: go to one that is there\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_signals_are_handed_on_as_programs_expect_them(
    clean_environment: dict[str, str], tmp_path: Path
) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    launcher.chmod(0o755)
    done = subprocess.run(
        [*PENSTOCK, "run", "--", str(launcher), "-n", "1", "/bin/true"],
        env=clean_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    ignored = int(done.stdout.split()[1], 16)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        assert not ignored & 1 << number - 1, number.name


@pytest.mark.parametrize("given", [{}, {"LC_CTYPE": "C"}, {"LANG": "C"}])
def test_a_program_has_the_locale_that_the_user_has(
    clean_environment: dict[str, str], given: dict[str, str]
) -> None:
    names = ("LANG", "LC_ALL", "LC_CTYPE")
    environ = {k: v for k, v in clean_environment.items() if k not in names} | given
    done = subprocess.run(
        [*PENSTOCK, "run", "--method", "off", "--", "env"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert {k: v for k, v in found.items() if k in names} == given


def test_a_report_does_not_take_the_place_of_its_source(cli: Cli, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    made_reports.write(samples, made_reports.session({"c": {"x": 1e9, "y": 2e9}}, n=8))
    before = samples.read_bytes()
    for source in (samples, tmp_path):
        done = cli("report", str(source), "--out", str(samples))
        assert done.returncode == 2
        assert str(samples) in done.stderr
    assert samples.read_bytes() == before


def test_trials_before_a_session_end_by_a_termination_signal(
    clean_environment: dict[str, str], tmp_path: Path
) -> None:
    launcher, data = tmp_path / "slow", tmp_path / "data"
    launcher.write_text("#!/bin/sh\nexec sleep 100\n")
    launcher.chmod(0o755)
    data.mkdir()
    words = ["bench", str(data), "--dry-run", "--mpi", "mpich", "--ranks", "2"]
    environment = {k: v for k, v in clean_environment.items() if k != "PENSTOCK_NATIVE_DIR"}
    bench = subprocess.Popen(
        [*PENSTOCK, *words, "--launcher", f"{launcher} {{ranks}}"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for_a_directory_in(data, bench)
        bench.send_signal(signal.SIGTERM)
        _, said = bench.communicate(timeout=30)
    finally:
        bench.kill()
    assert bench.returncode == 130
    assert said.endswith("penstock: interrupted before anything was measured\n")
    assert list(data.iterdir()) == []


def wait_for_a_directory_in(place: Path, bench: subprocess.Popen[str]) -> None:
    """The trials have one there."""
    end_s = time.monotonic() + 60
    while not list(place.iterdir()):
        if bench.poll() is not None:
            pytest.skip(f"nothing can be measured here: {bench.communicate()[1]}")
        assert time.monotonic() < end_s
        time.sleep(0.05)
