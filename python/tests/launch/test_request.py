"""Options of a run: checked before anything is launched, and carried to every rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ArgumentError, LaunchError
from penstock.launch.request import Options, command_line, configure


def words_before_program(words: list[str]) -> list[str]:
    return words[1 : words.index("--")]


def test_options_reach_every_rank_on_the_command_line_of_penstock_exec(native_dir: Path) -> None:
    options = Options(
        method="two_phase", writers=2, cycle="8KiB", verify=True, require=True, quiet=True
    )
    words = command_line(["true"], options, {"PENSTOCK_NATIVE_DIR": str(native_dir)})
    assert words_before_program(words) == [
        *("--method", "two_phase", "--writers", "2", "--cycle", "8KiB"),
        *("--verify", "--require", "--quiet"),
    ]


def test_variables_travel_as_options_because_not_every_launcher_forwards_them(
    native_dir: Path,
) -> None:
    environ = {
        "PENSTOCK_NATIVE_DIR": str(native_dir),
        "PENSTOCK_METHOD": "individual",
        "PENSTOCK_VERIFY": "1",
    }
    words = command_line(["true"], Options(), environ)
    assert words_before_program(words) == ["--method", "individual", "--verify"]


def test_an_option_overrides_its_variable() -> None:
    config, _ = configure(Options(method="individual"), {"PENSTOCK_METHOD": "two_phase"})
    assert config.method.algorithm == "individual"


def test_observe_travels_as_such(native_dir: Path) -> None:
    words = command_line(
        ["true"], Options(method="observe"), {"PENSTOCK_NATIVE_DIR": str(native_dir)}
    )
    assert words_before_program(words) == ["--observe"]


def test_relative_paths_are_made_absolute_because_ranks_may_run_elsewhere(
    native_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text("quiet = true\n")
    words = command_line(
        ["true"],
        Options(log_dir=Path("logs"), config=Path("run.toml")),
        {"PENSTOCK_NATIVE_DIR": str(native_dir)},
    )
    assert words_before_program(words) == [
        *("--log-dir", str(tmp_path / "logs"), "--config", str(tmp_path / "run.toml"), "--quiet")
    ]


@pytest.mark.parametrize(
    "environ", [{"PENSTOCK_METHOD": "off"}, {"PENSTOCK_DISABLE": "1"}], ids=["method", "disable"]
)
def test_off_runs_the_command_as_it_was_given(environ: dict[str, str]) -> None:
    words = ["mpiexec", "--not-even-known", "x"]
    assert command_line(words, Options(), environ) == words


def test_off_in_the_configuration_file_is_off(tmp_path: Path) -> None:
    file = tmp_path / "off.toml"
    file.write_text('method = "off"\n')
    assert command_line(["x"], Options(config=file), {}) == ["x"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(method="two_phaze"), '--method.*"two_phaze".*two_phase'),
        (Options(cycle="1000"), "--cycle.*1000"),
        (Options(writers=-1), "--writers.*-1"),
        (Options(config=Path("/no/such.toml")), "such.toml"),
        (Options(observe=True, method="two_phase"), "give one of them"),
    ],
)
def test_a_wrong_value_is_named_before_anything_is_launched(options: Options, message: str) -> None:
    with pytest.raises((ArgumentError, OSError), match=message):
        command_line(["true"], options, {})


def test_a_launched_command_is_told_that_all_ranks_are_preloaded(
    native_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mpiexec", "app"):
        (tmp_path / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    environ = {"PENSTOCK_NATIVE_DIR": str(native_dir)}
    assert "--all-ranks" in command_line(["mpiexec", "app"], Options(), environ)
    assert "--all-ranks" not in command_line(["app"], Options(), environ)


def test_native_files_that_are_not_built_are_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"penstock-exec is not in .*make build"):
        command_line(["true"], Options(), {"PENSTOCK_NATIVE_DIR": str(tmp_path)})
