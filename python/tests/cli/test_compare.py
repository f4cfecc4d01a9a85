"""``penstock compare`` end to end: verdicts, exit codes, and results that it cannot use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from made_samples import session, write
from support import Cli


def results(tmp_path: Path, name: str, levels: Mapping[str, float], cv: float = 0.01) -> str:
    """A results directory."""
    seed = sum(name.encode())
    draws = np.random.default_rng(seed)
    where = tmp_path / name
    where.mkdir()
    ways = {v: list(level * draws.lognormal(0.0, cv, 12)) for v, level in levels.items()}
    write(where / "samples.jsonl", session(ways))
    return str(where)


@pytest.mark.parametrize(
    ("level", "verdict", "code"), [(2e9, "faster", 0), (1e9, "same", 0), (5e8, "slower", 1)]
)
def test_the_exit_code_is_the_verdict(
    cli: Cli, tmp_path: Path, level: float, verdict: str, code: int
) -> None:
    a = results(tmp_path, "before", {"x": 1e9})
    b = results(tmp_path, "after", {"x": level})
    done = cli("compare", a, b)
    assert (done.returncode, done.stderr) == (code, "")
    assert f"B is: 1 {verdict}" in done.stdout
    assert "above 1, B is better" in done.stdout


def test_what_is_unclear_fails_only_when_strict(cli: Cli, tmp_path: Path) -> None:
    a = results(tmp_path, "before", {"x": 1e9}, cv=0.5)
    b = results(tmp_path, "after", {"x": 1e9}, cv=0.5)
    assert cli("compare", a, b).returncode == 0
    done = cli("compare", a, b, "--strict")
    assert (done.returncode, done.stderr) == (3, "")
    assert "includes 1 and reaches beyond" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--strict"], 3),
        (["--strict", "--variant", "x"], 0),
        (["--strict", "--without", "y"], 2),  # B has none to leave out
        (["--strict", "--cell", "c"], 0),
    ],
)
def test_what_only_a_has_fails_when_strict_and_nothing_was_chosen(
    cli: Cli, tmp_path: Path, words: list[str], code: int
) -> None:
    a = results(tmp_path, "before", {"x": 1e9, "y": 1e9})
    b = results(tmp_path, "after", {"x": 1e9})
    done = cli("compare", a, b, *words)
    assert done.returncode == code, done.stderr
    assert cli("compare", b, a, *(w for w in words if w == "--strict")).returncode == 0


def test_slower_outweighs_unclear(cli: Cli, tmp_path: Path) -> None:
    a = results(tmp_path, "before", {"x": 1e9, "y": 1e9}, cv=0.1)
    b = results(tmp_path, "after", {"x": 1e9, "y": 3e8}, cv=0.1)
    assert cli("compare", a, b, "--strict").returncode == 1


def test_json_stands_alone_on_stdout(cli: Cli, tmp_path: Path) -> None:
    a = results(tmp_path, "before", {"x": 1e9})
    b = results(tmp_path, "after", {"x": 5e8})
    done = cli("compare", f"{a}/samples.jsonl", b, "--json", "--rate", "both")
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    assert report["schema"] == "penstock.compare/1"
    assert [d["rate"] for d in report["differences"]] == ["application", "actual"]
    assert report["differences"][0]["b"]["median_bytes_per_s"] == pytest.approx(5e8, rel=0.02)


def test_two_variants_of_one_session_are_compared(cli: Cli, tmp_path: Path) -> None:
    a = results(tmp_path, "r", {"mpi alone": 1e9, "penstock": 2e9})
    done = cli("compare", a, "--variant", "mpi alone", "--variant", "penstock")
    assert done.returncode == 0
    assert "mpi alone -> penstock" in done.stdout
    assert "1 faster" in done.stdout
    assert cli("compare", a, "--variant", "penstock", "--variant", "mpi alone").returncode == 1


def test_a_variant_that_is_left_out_decides_nothing_and_is_said(cli: Cli, tmp_path: Path) -> None:
    a = results(tmp_path, "before", {"x": 1e9, "y": 1e9})
    b = results(tmp_path, "after", {"x": 1e9, "y": 3e8})
    assert cli("compare", a, b).returncode == 1
    done = cli("compare", a, b, "--without", "y")
    assert (done.returncode, done.stderr) == (0, "")
    assert "B is: 1 same (margin 3 %)" in done.stdout
    assert "as asked for by --without: y." in done.stdout


def test_several_cells_are_compared_and_said(cli: Cli, tmp_path: Path) -> None:
    draws = np.random.default_rng(7)
    where = [tmp_path / f"{name}.jsonl" for name in ("before", "after")]
    for path in where:
        cells = (session({"x": list(1e9 * draws.lognormal(0.0, 0.01, 9))}, cell=c) for c in "abc")
        write(path, [one for own in cells for one in own])
    done = cli("compare", *map(str, where), "--cell", "a", "--cell", "c", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [d["cell"] for d in told["differences"]] == ["a", "c"]
    assert told["notices"][0].endswith("as asked for by --cell: a, c.")


@pytest.mark.parametrize("command", ["compare", "report"])
def test_a_margin_that_is_no_number_is_shown(cli: Cli, tmp_path: Path, command: str) -> None:
    a = results(tmp_path, "r", {"x": 1e9})
    done = cli(command, a, a, "--margin", "3%")
    assert done.returncode == 2
    assert "'--margin': must be a fraction such as 0.03, got '3%'" in done.stderr


def test_the_margin_decides_what_matters(cli: Cli, tmp_path: Path) -> None:
    a = results(tmp_path, "before", {"x": 1e9})
    b = results(tmp_path, "after", {"x": 0.93e9})
    assert cli("compare", a, b).returncode == 1
    done = cli("compare", a, b, "--margin", "0.15")
    assert done.returncode == 0
    assert "1 same (margin 15 %)" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["{a}"], "two variants"),
        (["{a}", "--variant", "x"], "two variants"),
        (["{a}", "{a}", "--variant", "x", "--variant", "x", "--variant", "x"], "twice at most"),
        (["{a}", "{a}", "--variant", "xx"], 'no variant "xx"; did you mean "x"?'),
        (["{a}", "{a}", "--variant", "other"], 'no variant "other"; there are "x"'),
        (["{a}", "{a}", "--cell", "other"], '"other", and {a} has no such cell; there are "c"'),
        (["{a}", "{a}", "--without", "other"], '{a} has no such variant; there are "x"'),
        (["{a}", "{a}", "--without", "x"], "--without leaves no samples"),
        (["{a}", "{a}", "--margin", "3"], "0.03 is 3 %"),
        (["{a}", "{tmp}/none"], "there are no results"),
        (["{a}", "{tmp}"], "holds no results"),
        (["{a}", "{tmp}/other.jsonl"], "no cell and variant in common"),
        (["{a}", "{tmp}/future.jsonl"], "penstock.bench/9"),
        (["{a}", "{tmp}/text.jsonl"], "not JSON"),
    ],
)
def test_what_cannot_be_compared_is_one_line_on_stderr_and_2(
    cli: Cli, tmp_path: Path, words: list[str], says: str
) -> None:
    a = results(tmp_path, "r", {"x": 1e9})
    write(tmp_path / "other.jsonl", session({"y": [1e9] * 6}, cell="d"))
    future = (tmp_path / "other.jsonl").read_text().replace("penstock.bench/1", "penstock.bench/9")
    (tmp_path / "future.jsonl").write_text(future)
    (tmp_path / "text.jsonl").write_text("hello\n")
    done = cli("compare", *(w.format(a=a, tmp=tmp_path) for w in words))
    assert done.returncode == 2
    assert says.format(a=a) in done.stderr
    assert done.stderr.startswith("penstock: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_torn_line_is_said_and_the_rest_compared(cli: Cli, tmp_path: Path) -> None:
    a, b = results(tmp_path, "before", {"x": 1e9}), results(tmp_path, "after", {"x": 1e9})
    with (Path(b) / "samples.jsonl").open("a") as file:
        file.write('{"record": "sample", "ce')
    done = cli("compare", a, b)
    assert done.returncode == 0
    assert "ends within a line" in done.stdout


@pytest.mark.parametrize("again", ["r", "r/samples.jsonl", "link"])
def test_the_same_results_twice_are_those_of_one_session(
    cli: Cli, tmp_path: Path, again: str
) -> None:
    a = results(tmp_path, "r", {"x": 1e9, "y": 2e9})
    (tmp_path / "link").symlink_to(a)
    with (Path(a) / "samples.jsonl").open("a") as file:
        file.write('{"record": "sample", "ce')
    done = cli(*("compare", a, str(tmp_path / again), "--variant", "x", "--variant", "y", "--json"))
    assert done.returncode == 0, done.stderr
    notices = json.loads(done.stdout)["notices"]
    assert len(notices) == 1
    assert "ends within a line" in notices[0]


def test_help_has_examples_and_tells_the_direction(cli: Cli) -> None:
    done = cli("compare", "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert "penstock compare before after" in done.stdout
    assert "above 1, B is better" in " ".join(done.stdout.replace("│", "").split())


@pytest.mark.parametrize("words", [["--help"], ["compare", "--help"], ["run", "--dry-run", "true"]])
def test_other_commands_do_not_wait_for_numpy(
    clean_environment: dict[str, str], words: list[str]
) -> None:
    script = (
        f"import sys; sys.argv[1:] = {words!r}\n"
        "import penstock.cli\n"
        "try: penstock.cli.main()\n"
        "except SystemExit: pass\n"
        "slow = {'numpy', 'scipy', 'polars'} & {name.split('.')[0] for name in sys.modules}\n"
        "print('SLOW', sorted(slow), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=clean_environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "SLOW []"
