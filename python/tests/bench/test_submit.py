"""Sweeps as job arrays, against stand-ins for Slurm; tests/instrument has the real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench.submit import SlurmError, SubmitOptions, command_of, script_text, submit
from penstock.errors import ArgumentError, UnsupportedError, WriteError

COMMAND = ["penstock", "bench", "/mnt/my data", "--out", "results"]


class FakeSlurm:
    """sbatch, squeue and scancel that note how they were called and say what they are told to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.says("sbatch", "42")
        self.says("squeue", "")
        self.says("scancel", "")

    def says(self, client: str, output: str, code: int = 0, errors: str = "") -> None:
        path = self.directory / client
        lines = [
            "#!/bin/sh",
            f'echo {client} "$@" >>{self.directory}/calls',
            f"cat <<'END'\n{output}\nEND",
            f"echo '{errors}' >&2",
            f"exit {code}",
        ]
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o755)

    def calls(self) -> list[str]:
        path = self.directory / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = FakeSlurm(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{fake.directory}:{os.environ['PATH']}")
    return fake


@pytest.fixture
def options(tmp_path: Path) -> SubmitOptions:
    return SubmitOptions(directory=tmp_path / "results", working_directory=tmp_path)


def directives(text: str) -> list[str]:
    return [x.removeprefix("#SBATCH ") for x in text.splitlines() if x.startswith("#SBATCH ")]


def array_of(text: str) -> str:
    found = [x for x in directives(text) if x.startswith("--array=")]
    assert len(found) == 1
    return found[0].removeprefix("--array=")


def test_an_element_runs_the_command_with_its_part(tmp_path: Path, options: SubmitOptions) -> None:
    show = ["printf", "%s|", "a b", "$HOME", "--out", "results"]
    script = tmp_path / "script"
    script.write_text(script_text(show, range(3), 3, options))
    env = {"SLURM_ARRAY_TASK_ID": "1", "PATH": os.environ["PATH"]}
    out = subprocess.run(
        ["bash", str(script)], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert out == "a b|$HOME|--out|results|--part|1/3|"


def test_the_part_stands_before_the_end_of_the_options(options: SubmitOptions) -> None:
    text = script_text(["penstock", "bench", "--out", "r", "--", "-my data"], [0], 1, options)
    assert """exec penstock bench --out r --part "$SLURM_ARRAY_TASK_ID/1" -- '-my data'""" in text


def test_a_command_runs_where_it_was_given(tmp_path: Path, options: SubmitOptions) -> None:
    place = tmp_path / "it's here"
    place.mkdir()
    text = script_text(["pwd"], [0], 1, replace(options, working_directory=place))
    script = tmp_path / "script"
    script.write_text(text.replace("exec pwd --part", "pwd; exec true --part"))
    out = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=True).stdout
    assert out.strip() == str(place)


def test_parts_run_one_after_another_unless_told(options: SubmitOptions) -> None:
    assert array_of(script_text(COMMAND, range(4), 4, options)) == "0-3%1"
    together = replace(options, at_once=4)
    assert array_of(script_text(COMMAND, range(4), 4, together)) == "0-3%4"


def test_the_users_options_stand_last(options: SubmitOptions) -> None:
    given = ("--partition=debug", "-t 10:00")
    text = script_text(COMMAND, range(2), 2, replace(options, sbatch=given))
    assert directives(text)[-2:] == list(given)


def test_file_names_are_not_patterns(tmp_path: Path, options: SubmitOptions) -> None:
    odd = replace(options, directory=tmp_path / "100%j of it")
    output = [x for x in directives(script_text(COMMAND, [0], 1, odd)) if x.startswith("--output")]
    assert output == [f'--output="{tmp_path}/100%%j of it/slurm-%A_%a.log"']


@pytest.mark.parametrize(
    ("name", "quoted"), [('a"b', r'"a\"b"'), ("it's", '"it\'s"'), ("a#1", '"a#1"'), ("a", "a")]
)
def test_file_names_are_one_word_to_sbatch(
    tmp_path: Path, options: SubmitOptions, name: str, quoted: str
) -> None:
    text = script_text(COMMAND, [0], 1, replace(options, directory=Path(name)))
    output = [x for x in directives(text) if x.startswith("--output")]
    inner, closing = quoted.rstrip('"'), quoted[len(quoted.rstrip('"')) :]
    assert output == [f"--output={inner}/slurm-%A_%a.log{closing}"]


@pytest.mark.parametrize("name", ["a\nb", "a\\b"])
def test_paths_that_sbatch_cannot_read_are_refused(options: SubmitOptions, name: str) -> None:
    with pytest.raises(ArgumentError, match=r"newline or a backslash .* give another --out"):
        submit(COMMAND, 1, replace(options, directory=options.directory / name))


def test_a_dry_run_submits_and_writes_nothing(slurm: FakeSlurm, options: SubmitOptions) -> None:
    done = submit(COMMAND, 3, replace(options, dry_run=True))
    assert done.job is None
    assert done.text() == script_text(COMMAND, range(3), 3, options)
    assert slurm.calls() == []
    assert not options.directory.exists()


def test_what_was_submitted_is_told(slurm: FakeSlurm, options: SubmitOptions) -> None:
    done = submit(COMMAND, 3, options)
    assert done.job == "42"
    assert slurm.calls() == [f"sbatch --parsable {options.directory}/submit.sh"]
    text = done.text()
    for words in ("job 42: parts 0-2 of 3", "squeue -j 42", "scancel 42", "slurm-42_*.log"):
        assert words in text
    assert "penstock bench '/mnt/my data' --out results" in text


def test_the_gathering_command_is_told_as_it_is_typed(
    slurm: FakeSlurm, options: SubmitOptions
) -> None:
    installed = "/opt/lib/penstock/command_line.py"
    for words in (["-P", "-m", "penstock"], ["-P", installed]):
        done = submit(["/opt/penstock/python3", *words, "bench", "/mnt"], 1, options)
        assert done.gather == "penstock bench /mnt"
        assert f"exec /opt/penstock/python3 {' '.join(words)} bench /mnt --part" in done.script


def test_what_an_installation_starts_is_its_own_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", "/opt/lib/penstock/command_line.py", raising=False)
    wanted = [sys.executable, "-P", "/opt/lib/penstock/command_line.py", "bench", "/mnt"]
    assert command_of(["bench", "/mnt"]) == wanted


def test_a_clusters_name_is_no_part_of_the_number(slurm: FakeSlurm, options: SubmitOptions) -> None:
    slurm.says("sbatch", "42;big")
    assert submit(COMMAND, 3, options).job == "42"


def test_only_parts_that_are_not_queued_are_submitted_again(
    slurm: FakeSlurm, options: SubmitOptions
) -> None:
    submit(COMMAND, 5, options)
    slurm.says("sbatch", "57")
    slurm.says("squeue", "42 1\n41 0\n42 3\n99 N/A")
    done = submit(COMMAND, 5, options)
    assert (done.job, done.parts, done.queued) == ("57", (0, 2, 4), (1, 3))
    assert array_of(done.script) == "0,2,4%1"
    assert "parts 1,3 of an earlier job still wait or run" in done.text()
    slurm.says("squeue", "42 1\n57 0\n57 2\n42 3\n57 4")
    with pytest.raises(ArgumentError, match=r"queued or running already.*scancel 57"):
        submit(COMMAND, 5, options)


def test_jobs_that_slurm_has_forgotten_are_over(slurm: FakeSlurm, options: SubmitOptions) -> None:
    submit(COMMAND, 2, options)
    assert submit(COMMAND, 2, options).parts == (0, 1)
    assert slurm.calls()[1].startswith("squeue --noheader --array --user=")


def test_another_number_of_parts_is_refused(slurm: FakeSlurm, options: SubmitOptions) -> None:
    submit(COMMAND, 3, options)
    with pytest.raises(ArgumentError, match=r"submitted in 3 parts.*got 4, or give another --out"):
        submit(COMMAND, 4, options)
    assert len(slurm.calls()) == 1


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("partition=debug", "must be one option of sbatch"),
        ("--mem=1G\n#SBATCH -p x", "must be one option of sbatch"),
        ("--array=0-9", "may not set --array"),
        ("--array 0-9", "may not set --array"),
        ("-a0-9", "may not set --array"),
        ("--output=x", "may not set --output"),
        ("-o x", "may not set --output"),
        ("-D /", "may not set --chdir"),
    ],
)
def test_options_that_would_break_the_array_are_refused(
    slurm: FakeSlurm, options: SubmitOptions, option: str, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        submit(COMMAND, 3, replace(options, sbatch=(option,)))
    assert slurm.calls() == []


def test_the_users_own_options_are_taken(slurm: FakeSlurm, options: SubmitOptions) -> None:
    given: Sequence[str] = ("--account=physics", "-A physics", "--ntasks=4", "--overcommit")
    submit(COMMAND, 1, replace(options, sbatch=given))
    assert len(slurm.calls()) == 1


@pytest.mark.parametrize("parts", [0, -1])
def test_there_is_at_least_one_part(options: SubmitOptions, parts: int) -> None:
    with pytest.raises(ArgumentError, match=f"at least 1, got {parts}"):
        submit(COMMAND, parts, options)


def test_without_slurm_the_remedy_is_told(
    tmp_path: Path, options: SubmitOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"needs Slurm.*--dry-run"):
        submit(COMMAND, 3, options)
    assert submit(COMMAND, 3, replace(options, dry_run=True)).script
    assert not options.directory.exists()


def test_what_slurm_says_is_passed_on(slurm: FakeSlurm, options: SubmitOptions) -> None:
    slurm.says("sbatch", "", 1, "sbatch: error: invalid partition specified: nowhere")
    with pytest.raises(SlurmError, match="invalid partition specified: nowhere"):
        submit(COMMAND, 3, options)
    assert not (options.directory / "submit.json").exists()


def test_an_answer_without_a_number_is_no_job(slurm: FakeSlurm, options: SubmitOptions) -> None:
    slurm.says("sbatch", "Submitted")
    with pytest.raises(SlurmError, match="did not tell the job's number"):
        submit(COMMAND, 3, options)


def test_a_job_that_cannot_be_remembered_does_not_stay(
    slurm: FakeSlurm, options: SubmitOptions
) -> None:
    (options.directory / "submit.json.new").mkdir(parents=True)
    with pytest.raises(WriteError, match=r"submit\.json cannot be written"):
        submit(COMMAND, 3, options)
    assert slurm.calls()[-1] == "scancel 42"


def test_a_directory_that_cannot_be_made_is_named(slurm: FakeSlurm, options: SubmitOptions) -> None:
    missing = replace(options, directory=options.directory / "below" / "it")
    with pytest.raises(WriteError, match=r"below/it/submit\.sh cannot be written: No such file"):
        submit(COMMAND, 3, missing)
    assert slurm.calls() == []


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"schema": "penstock.submit/9", "jobs": [], "parts": 3}', "has schema"),
    ],
)
def test_a_state_that_cannot_be_read_is_named(
    slurm: FakeSlurm, options: SubmitOptions, state: str, message: str
) -> None:
    options.directory.mkdir()
    (options.directory / "submit.json").write_text(state)
    with pytest.raises(ArgumentError, match=message):
        submit(COMMAND, 3, options)
    assert slurm.calls() == []


def test_the_state_names_every_job(slurm: FakeSlurm, options: SubmitOptions) -> None:
    submit(COMMAND, 2, options)
    slurm.says("sbatch", "57")
    submit(COMMAND, 2, options)
    state = json.loads((options.directory / "submit.json").read_text())
    assert (state["jobs"], state["parts"]) == (["42", "57"], 2)
