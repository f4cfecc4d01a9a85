"""Options of a run: checked before anything is launched, and carried to every rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import _core
from penstock.errors import ArgumentError, LaunchError
from penstock.launch.request import Launch, Options, Start, command_line, configure


def rank_obeys(launch: Launch, directory: Path) -> _core.Config:
    """What a rank whose node has files and variables of its own makes of a command line."""
    words = launch.words[1 : launch.words.index("--")]
    assert words[0] == "--resolved"
    (directory / "penstock.toml").write_text("of another node\n")
    return _core.load_config({"PENSTOCK_RESOLVED": words[1]}, directory=str(directory))


def test_options_reach_every_rank_on_the_command_line_of_penstock_exec(
    native_dir: Path, tmp_path: Path
) -> None:
    options = Options(
        method="two_phase", writers="2", cycle="8KiB", verify=True, require=True, no_log=True
    )
    launch = command_line(["true"], options, {"PENSTOCK_NATIVE_DIR": str(native_dir)})
    rank = rank_obeys(launch, tmp_path)
    assert str(rank.method).startswith("two_phase(writers=2, cycle=8KiB) + shm")
    assert (rank.verify, rank.require, rank.quiet, rank.log) == (True, True, False, False)
    # The shim stops a job without an engine; it knows the variable alone.
    assert launch.words[3] == "--require"


def test_the_thread_level_is_asked_for_on_every_rank(native_dir: Path) -> None:
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir)}
    launch = command_line(["true"], Options(), environ, Start(thread_multiple=True))
    assert launch.words[3:5] == ["--thread-multiple", "--"]
    assert "--thread-multiple" not in command_line(["true"], Options(), environ).words


def test_the_mpi_is_said_on_every_rank(native_dir: Path) -> None:
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir)}
    launch = command_line(["true"], Options(), environ, Start(mpi="mpich"))
    assert launch.words[3:6] == ["--mpi", "mpich", "--"]
    assert "--mpi" not in command_line(["true"], Options(), environ).words


def test_variables_and_files_travel_too_because_nodes_may_have_others(
    native_dir: Path, tmp_path: Path
) -> None:
    user = tmp_path / ".config" / "penstock" / "penstock.toml"
    user.parent.mkdir(parents=True)
    user.write_text("quiet = true\n[[file]]\npattern = '*.chk'\nmethod = 'off'\n")
    environ = {
        "HOME": str(tmp_path),
        "PENSTOCK_NATIVE_DIR": str(native_dir),
        "PENSTOCK_METHOD": "individual",
        "PENSTOCK_LOG": "0",
    }
    rank = rank_obeys(command_line(["true"], Options(), environ), tmp_path)
    assert rank.method.algorithm == "individual"
    assert (rank.quiet, rank.log) == (True, False)
    assert f"{user}:2" in rank.for_file("a.chk").left_alone


def test_an_option_overrides_its_variable() -> None:
    config, _ = configure(Options(method="individual"), {"PENSTOCK_METHOD": "two_phase"})
    assert config.method.algorithm == "individual"


@pytest.mark.parametrize("options", [Options(method="observe"), Options(observe=True)], ids=str)
def test_observe_travels_as_such(native_dir: Path, tmp_path: Path, options: Options) -> None:
    launch = command_line(["true"], options, {"PENSTOCK_NATIVE_DIR": str(native_dir)})
    assert rank_obeys(launch, tmp_path).mode == _core.Mode.observe


def test_an_option_wins_over_tables_on_every_rank(native_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[[file]]\npattern = '*'\nverify = true\nmethod = 'individual'\n")
    options = Options(method="two_phase", config=file)
    launch = command_line(["true"], options, {"PENSTOCK_NATIVE_DIR": str(native_dir)})
    one = rank_obeys(launch, tmp_path).for_file("x")
    assert (one.method.algorithm, one.verify) == ("two_phase", True)


def test_relative_paths_are_made_absolute_because_ranks_may_run_elsewhere(
    native_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text("quiet = true\n")
    launch = command_line(
        ["true"],
        Options(log_dir=Path("logs"), config=Path("run.toml")),
        {"PENSTOCK_NATIVE_DIR": str(native_dir)},
    )
    rank = rank_obeys(launch, tmp_path)
    assert rank.log_dir == str(tmp_path / "logs")
    assert rank.quiet


@pytest.mark.parametrize(
    "environ", [{"PENSTOCK_METHOD": "off"}, {"PENSTOCK_DISABLE": "1"}], ids=["method", "disable"]
)
def test_off_runs_the_command_as_it_was_given(environ: dict[str, str]) -> None:
    words = ["mpiexec", "--not-even-known", "x"]
    assert command_line(words, Options(), environ) == Launch(words, untouched=True)


def test_off_in_the_configuration_file_is_off_and_said(tmp_path: Path) -> None:
    file = tmp_path / "off.toml"
    file.write_text('method = "off"\n')
    launch = command_line(["x"], Options(config=file), {})
    assert launch.words == ["x"]
    assert f"{file}:1" in launch.notices[0]
    assert command_line(["x"], Options(config=file, quiet=True), {}).notices == ()


def test_one_program_of_the_sites_list_leaves_the_whole_command_alone(
    native_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mpiexec", "ocean", "vasp_std"):
        (tmp_path / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "site.toml"
    file.write_text("leave_alone = ['vasp_*']\n")
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir), "PENSTOCK_CONFIG": str(file)}
    words = ["mpiexec", "-n", "2", "ocean", ":", "-n", "1", "vasp_std"]
    launch = command_line(words, Options(), environ)
    assert launch.words == words
    assert 'program vasp_std is left alone (leave_alone has "vasp_*"' in launch.notices[0]
    with pytest.raises(ArgumentError, match="but require is set"):
        command_line(words, Options(require=True), environ)
    assert "--resolved" in command_line(words, Options(method="auto"), environ).words
    assert "--resolved" in command_line(["mpiexec", "ocean"], Options(), environ).words


def test_a_misspelt_variable_is_a_notice(native_dir: Path) -> None:
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir), "PENSTOCK_METHD": "two_phase"}
    launch = command_line(["true"], Options(), environ)
    assert "did you mean PENSTOCK_METHOD?" in launch.notices[0]


def test_a_variable_that_is_not_utf8_is_named() -> None:
    with pytest.raises(ArgumentError, match="PENSTOCK_LOG_DIR' must be UTF-8"):
        configure(Options(), {"PENSTOCK_LOG_DIR": "/a\udcff"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(method="two_phaze"), '--method.*"two_phaze".*two_phase'),
        (Options(cycle="1000"), "--cycle.*1000"),
        (Options(writers="-1"), "--writers.*-1"),
        (Options(config=Path("/no/such.toml")), "such.toml"),
        (Options(observe=True, method="two_phase"), "give one of them"),
        (Options(observe=True, require=True), "--observe takes .*, so --require would have no eff"),
        (Options(observe=True, verify=True), "so --verify would have no effect"),
        (Options(observe=True, writers="2"), "so --writers 2 would have no effect"),
        (Options(method="observe", cycle="1MiB"), "^--method observe takes .* --cycle 1MiB would"),
        (Options(observe=True, method="off"), "^--observe takes .*, so --method off would have no"),
        (Options(method="off", require=True), "^--method off runs the program untouched, so --req"),
        (Options(method="off", verify=True), "so --verify would have no effect"),
        (Options(method="off", writers="none"), "so --writers none would have no effect"),
        (Options(method="off", cycle="1"), "so --cycle 1 would have no effect: give one of them"),
        (Options(method="off", config=Path("no.toml")), "so --config no.toml would have no effect"),
        (Options(method="off", log_dir=Path("x")), "so --log-dir x would have no effect"),
        (Options(no_log=True, log_dir=Path("x")), "--no-log writes no log, so --log-dir x would"),
        (Options(config=Path()), "^--config must name a TOML file of settings, got"),
    ],
)
def test_a_wrong_value_is_named_before_anything_is_launched(options: Options, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        command_line(["true"], options, {})


def test_off_by_a_variable_refuses_no_option() -> None:
    asked = Options(require=True, verify=True, writers="2")
    for name, value in (("PENSTOCK_METHOD", "off"), ("PENSTOCK_DISABLE", "1")):
        assert command_line(["x"], asked, {name: value}) == Launch(["x"], untouched=True)


def test_off_asks_for_no_thread_level() -> None:
    with pytest.raises(ArgumentError, match="so --thread-multiple would have no effect"):
        command_line(["x"], Options(method="off"), {}, Start(thread_multiple=True))


def test_a_variable_by_which_penstock_exec_would_be_copied_is_refused(
    native_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("srun", "app"):
        (tmp_path / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir), "SLURM_BCAST": "/x/app"}
    with pytest.raises(LaunchError, match="unset SLURM_BCAST"):
        command_line(["srun", "app"], Options(), environ)
    off = command_line(["srun", "app"], Options(method="off"), environ)
    assert off.words == ["srun", "app"]
    alone = tmp_path / "alone.toml"
    alone.write_text("leave_alone = 'app'\n")
    for words in (["srun", "app"], ["srun", "--bcast", "app"]):
        assert command_line(words, Options(config=alone), environ).words == words


def test_a_launched_command_is_told_that_all_ranks_are_preloaded(
    native_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mpiexec", "app"):
        (tmp_path / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir)}
    assert "--all-ranks" in command_line(["mpiexec", "app"], Options(), environ).words
    assert "--all-ranks" not in command_line(["app"], Options(), environ).words


def test_native_files_that_are_not_built_are_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"penstock-exec is not in .*make build"):
        command_line(["true"], Options(), {"PENSTOCK_NATIVE_DIR": str(tmp_path)})


@pytest.mark.parametrize(
    ("options", "start", "named"),
    [
        (Options(method="off"), Start(), "--method off"),
        (Options(verify=True, no_log=True), Start(), "--verify, --no-log"),
        (Options(require=True), Start(thread_multiple=True), "--require, --thread-multiple"),
        (Options(), Start(mpi="abi"), "--mpi abi"),
    ],
    ids=["off", "switches", "threads", "mpi"],
)
@pytest.mark.parametrize(
    "words",
    ["mpiexec -n 2 {exec} true", "mpiexec true : {exec} --verify -- true", "{exec} true"],
)
def test_options_that_a_penstock_exec_of_the_command_would_not_get_are_refused(
    native_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: Options,
    start: Start,
    named: str,
    words: str,
) -> None:
    (tmp_path / "mpiexec").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir), "PENSTOCK_VERIFY": "1"}
    command = words.format(exec=native_dir / "penstock-exec").split()
    message = f"starts penstock-exec itself, which would not get {named}: give it these options"
    with pytest.raises(LaunchError, match=message) as caught:
        command_line(command, options, environ, start)
    assert caught.value.exit_code == 2
    assert str(native_dir / "penstock-exec") in command_line(command, Options(), environ).words


OFF_IN_FILE = "off.toml"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (Options(method="off"), "--method off"),
        (Options(config=Path(OFF_IN_FILE)), f"--config {OFF_IN_FILE}"),
    ],
    ids=["method", "file"],
)
@pytest.mark.parametrize(
    "words",
    [
        "mpiexec -n 2 env A=1 /x/penstock-exec ./app",
        "nice mpiexec ./app : nice -n 5 penstock-exec --verify -- ./app",
        "env A=1 penstock-exec ./app",
    ],
)
def test_off_is_refused_where_a_penstock_exec_behind_a_wrapper_would_serve(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: Options,
    named: str,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(OFF_IN_FILE).write_text('method = "off"\n')
    with pytest.raises(LaunchError, match=f"which would not get {named}: give it") as caught:
        command_line(words.split(), options, {})
    assert caught.value.exit_code == 2


def test_off_by_a_variable_reaches_a_penstock_exec_behind_a_wrapper_too() -> None:
    words = ["env", "A=1", "penstock-exec", "./app"]
    for name, value in (("PENSTOCK_METHOD", "off"), ("PENSTOCK_DISABLE", "1")):
        assert command_line(words, Options(quiet=True), {name: value}) == Launch(
            words, untouched=True
        )


def test_a_penstock_exec_behind_a_wrapper_is_served_as_the_run_says(native_dir: Path) -> None:
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir)}
    words = ["env", "A=1", "penstock-exec", "true"]
    assert "--resolved" in command_line(words, Options(verify=True), environ).words


def test_off_takes_no_command_apart_that_it_cannot() -> None:
    words = ["mpiexec", "--not-even-known", "penstock-exec", "x"]
    assert command_line(words, Options(method="off"), {}) == Launch(words, untouched=True)
