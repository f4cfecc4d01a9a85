"""The layers that only ranks see, on real ranks: hints, tables, and nodes whose files differ."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock import native
from penstock.errors import ArgumentError, LaunchError
from penstock.launch.request import Options, Start, command_line
from support import Cli

FLAVOURS = [
    f for f in ("mpich", "openmpi") if shutil.which(f"mpicc.{f}") and shutil.which(f"mpiexec.{f}")
]
PATIENCE_S = 60  # a hang is what some of these tests are about


def built() -> Path | None:
    try:
        return native.directory()
    except LaunchError:
        return None


pytestmark = pytest.mark.skipif(not FLAVOURS or built() is None, reason="no MPI, or not built")


@dataclass(frozen=True)
class Job:
    """What two ranks of the program need: words and variables."""

    launcher: list[str]
    program: str
    variables: dict[str, str]
    directory: Path
    cli: Cli

    def run(self, *options: str, hints: str = "", file: str = "out.dat") -> str:
        """``penstock run``; gives stdout and stderr."""
        words = [*options, "--", *self.launcher, "-n", "2", self.program, file, *hints.split()]
        done = self.cli("run", *words, **self.variables)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def alone(self, *parts: str, words: str = "") -> str:
        """penstock-exec once per part, a rank each, with the variables that a part names."""
        command = list(self.launcher)
        for number, part in enumerate(parts):
            command += [":"] if number else []
            program = [str(native.directory() / "penstock-exec"), *words.split(), self.program]
            command += ["-n", "1", "env", *part.split(), *program, "out.dat"]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.variables | {"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(params=FLAVOURS)
def job(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    cli: Cli,
    clean_environment: dict[str, str],
    compiled: Callable[[str], Path],
) -> Job:
    """Two ranks on one MPI library."""
    extra = ["--oversubscribe", "--bind-to", "none"] if request.param == "openmpi" else []
    variables = clean_environment | {"PENSTOCK_NATIVE_DIR": str(native.directory())}
    program = str(compiled(request.param))
    launcher = [f"mpiexec.{request.param}", *extra]
    return Job(launcher, program, variables, tmp_path / "empty", cli)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program, for an MPI library."""

    def build(flavour: str) -> Path:
        program = tmp_path_factory.getbasetemp() / f"hint-{flavour}"
        if not program.exists():
            source = Path(__file__).with_name("hint.c")
            subprocess.run([f"mpicc.{flavour}", "-o", program, source], check=True, timeout=120)
        return program

    return build


def test_hints_win_over_variables_and_options_over_hints(job: Job) -> None:
    job.variables["PENSTOCK_METHOD"] = "two_phase"
    hints = "penstock_method individual"
    assert "method individual + none" in job.run(hints=hints)
    assert "method two_phase(writers=1)" in job.run("--method", "two_phase(writers=1)", hints=hints)
    assert "method auto(writers=1)" in job.run("--method", "auto", hints="cb_nodes 1")
    exec_option = job.alone("A=1", "A=1", words="--method individual")
    assert "method individual + none" in exec_option


def test_hints_of_mpi_fill_what_is_open_and_are_reported_back(job: Job) -> None:
    told = job.run(hints="cb_nodes 1 cb_buffer_size 65536 striping_unit 131072")
    assert "method auto(writers=1, cycle=64KiB)" in told
    for hint in ("cb_nodes=1;", "cb_buffer_size=65536;", "romio_cb_write=automatic;"):
        assert hint in told
    assert "striping_unit=131072;" in told
    told = job.run(hints="romio_cb_write disable cb_nodes 1")
    assert "method individual + none" in told
    assert "romio_cb_write=disable;" in told
    assert "cb_nodes=2;" in told
    told = job.run(hints="striping_factor 1")
    assert "method auto(writers=1)" in told
    assert "striping_factor=1;" in told


def test_penstocks_own_configuration_wins_over_hints_of_mpi(job: Job) -> None:
    hints = "cb_nodes 2 cb_buffer_size 65536 romio_cb_write disable"
    told = job.run("--method", "two_phase(writers=1, cycle=1MiB)", hints=hints)
    assert "method two_phase(writers=1, cycle=1MiB)" in told
    for hint in ("cb_nodes=1;", "cb_buffer_size=1048576;", "romio_cb_write=enable;"):
        assert hint in told


def test_a_hint_that_is_not_valid_is_in_the_log(job: Job) -> None:
    told = job.run(hints="romio_cb_write perhaps")
    assert 'hint romio_cb_write="perhaps" is ignored: it must be' in told
    assert "method auto + shm" in told
    assert "2 B by engine" in told


def test_a_hint_leaves_a_file_alone_and_a_wrong_one_is_named(job: Job) -> None:
    told = job.run(hints="penstock_method off")
    assert "left alone by the hint penstock_method=off" in told
    told = job.run(hints="penstock_method two_fase")
    assert 'hint penstock_method: algorithm "two_fase" is not known; did you mean' in told
    assert "2 B verified" in job.run(hints="penstock_verify 1")


def test_a_table_reaches_every_rank(job: Job) -> None:
    config = job.directory / "penstock.toml"
    config.write_text("[[file]]\npattern = '*.chk'\nmethod = 'off'\n")
    assert f'left alone by [[file]] "*.chk" ({config}:1)' in job.run(file="a.chk")
    assert "2 B by engine" in job.run(file="a.dat")
    assert "2 B by engine" in job.run("--method", "two_phase", file="a.chk")


@pytest.mark.parametrize(
    "text",
    ["method = 'off'", "leave_alone = 'hint-*'", "method = 'individual'", "nonsense = 1"],
    ids=["off", "leave_alone", "method", "wrong"],
)
def test_nodes_whose_files_differ_never_wait_for_each_other(job: Job, text: str) -> None:
    other = job.directory / "other" / "penstock" / "penstock.toml"
    other.parent.mkdir(parents=True)
    other.write_text(text + "\n")
    told = job.alone("XDG_CONFIG_HOME=/nowhere", f"XDG_CONFIG_HOME={other.parents[1]}")
    assert (job.directory / "out.dat").read_bytes() == b"xx"
    assert "by engine" in told  # the log of the rank that is configured; nothing was served
    assert "0 B by engine" in told


def test_verification_that_one_node_asks_for_is_done_by_all(job: Job) -> None:
    other = job.directory / "other" / "penstock" / "penstock.toml"
    other.parent.mkdir(parents=True)
    other.write_text("verify = true\n")
    told = job.alone("XDG_CONFIG_HOME=/nowhere", f"XDG_CONFIG_HOME={other.parents[1]}")
    assert "2 B verified" in told


def test_what_run_resolved_wins_over_the_files_and_variables_of_a_node(job: Job) -> None:
    """The environment of the launch says one thing; `--isolated` and an option said another."""
    (job.directory / "penstock.toml").write_text("method = 'individual'\nverify = true\n")
    told = job.run("--isolated", "--method", "two_phase")
    assert "method two_phase" in told
    assert "verified" not in told


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of a launcher, a program, and one that takes no preloaded library."""
    where = tmp_path / "programs"
    where.mkdir()
    (where / "mpiexec").symlink_to("/bin/true")
    shutil.copy("/bin/true", where / "ocean")
    static = ["/usr/bin/cc", "-static", "-x", "c", "-o", str(where / "sealed"), "-"]
    subprocess.run(static, input=b"int main(void) { return 0; }", check=True, timeout=60)
    monkeypatch.setenv("PATH", str(where))
    return where


COUPLED = ["mpiexec", "-n", "2", "ocean", ":", "-n", "1", "sealed"]


@pytest.mark.usefixtures("programs")
def test_one_program_that_cannot_be_taken_over_leaves_the_whole_command_alone() -> None:
    environ = {"PENSTOCK_NATIVE_DIR": str(native.directory())}
    launch = command_line(COUPLED, Options(), environ)
    assert launch.words == COUPLED
    assert "sealed: statically linked programs take no preloaded library" in launch.notices[0]
    assert "it runs without" not in launch.notices[0]
    with pytest.raises(ArgumentError, match="but require is set"):
        command_line(COUPLED, Options(require=True), environ)
    for alike in (["mpiexec", "ocean", ":", "ocean"], ["mpiexec", "sealed"]):
        assert "--resolved" in command_line(alike, Options(), environ).words


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("name", "value"), [("LD_PRELOAD", "libm.so.6"), ("PENSTOCK_METHOD", "off")]
)
def test_a_program_cannot_be_taken_over_whatever_the_variables_say(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    where = str(native.directory())
    monkeypatch.setenv(name, value)
    environ = {"PENSTOCK_NATIVE_DIR": where, name: value}
    launch = command_line(COUPLED, Options(method="auto"), environ)
    assert launch.words == COUPLED
    assert "sealed: statically linked programs take no preloaded library" in launch.notices[0]


@pytest.mark.usefixtures("programs")
def test_the_variable_require_refuses_programs_of_which_one_cannot_be_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = str(native.directory())
    monkeypatch.setenv("PENSTOCK_REQUIRE", "1")
    environ = {"PENSTOCK_NATIVE_DIR": where, "PENSTOCK_REQUIRE": "1"}
    with pytest.raises(ArgumentError, match=r"sealed: statically linked .* but require is set"):
        command_line(COUPLED, Options(), environ)


def of_unknown_mpi(where: Path) -> None:
    """A program ``strange`` of an MPI library that Penstock has no build for."""
    (where / "mpi.c").write_text("int MPI_Init(void) { return 0; }\n")
    (where / "main.c").write_text("int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n")
    library = ["-shared", "-fPIC", "-Wl,-soname,libmpi.so.20", "-o", "libmpi.so.20", "mpi.c"]
    for words in (library, ["-o", "strange", "main.c", "libmpi.so.20"]):
        subprocess.run(["/usr/bin/cc", *words], cwd=where, check=True, timeout=60)


def test_the_mpi_that_is_said_holds_for_each_of_several_programs(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    of_unknown_mpi(programs)
    words = ["mpiexec", "ocean", ":", "strange"]
    environ = {"PENSTOCK_NATIVE_DIR": str(native.directory())}
    launch = command_line(words, Options(), environ)
    assert launch.words == words
    assert "strange: needs libmpi.so.20" in launch.notices[0]
    assert command_line(words, Options(), environ, Start(mpi="mpich")).words.count("--mpi") == 2


def test_a_bare_name_in_the_working_directory_is_asked_as_it_will_be_started(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_launcher = tmp_path / "bin"
    only_launcher.mkdir()
    (programs / "mpiexec").rename(only_launcher / "mpiexec")
    monkeypatch.setenv("PATH", str(only_launcher))
    monkeypatch.chdir(programs)
    launch = command_line(COUPLED, Options(), {"PENSTOCK_NATIVE_DIR": str(native.directory())})
    assert launch.words == COUPLED
    assert "./sealed: statically linked programs take no preloaded library" in launch.notices[0]


def test_a_program_whose_name_is_not_utf8_is_asked_too(programs: Path) -> None:
    (programs / "ocean").rename(programs / "oc\udcffan")
    words = ["mpiexec", "oc\udcffan", ":", "sealed"]
    launch = command_line(words, Options(), {"PENSTOCK_NATIVE_DIR": str(native.directory())})
    assert launch.words == words


@pytest.mark.parametrize(
    "words",
    [
        "mpiexec -wdir {0} ./ocean : -wdir={0} ./sealed",
        "mpiexec -n 1 -wd {0} ./sealed : -dir {0} ./ocean",
        "srun --chdir={0} ./ocean : --chd {0} ./sealed",
        "srun -lD{0} ./ocean : -D {0} ./sealed",
    ],
)
def test_a_program_behind_a_directory_option_is_asked_in_that_directory(
    programs: Path, tmp_path: Path, words: str
) -> None:
    (programs / "srun").symlink_to("/bin/true")
    elsewhere = tmp_path / "elsewhere=1"
    elsewhere.mkdir()
    for name in ("ocean", "sealed"):
        (programs / name).rename(elsewhere / name)
    environ = {"PENSTOCK_NATIVE_DIR": str(native.directory())}
    given = words.format(elsewhere).split()
    launch = command_line(given, Options(), environ)
    assert launch.words == given
    assert "sealed: statically linked programs take no preloaded library" in launch.notices[0]
    alike = words.replace("sealed", "ocean").format(elsewhere).split()
    assert "--resolved" in command_line(alike, Options(), environ).words


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("words", ["-path {0} sea : ocean", "ocean : -wdir {0}/none ./ice"])
def test_a_program_that_cannot_be_asked_here_leaves_the_whole_command_alone(
    tmp_path: Path, words: str
) -> None:
    environ = {"PENSTOCK_NATIVE_DIR": str(native.directory())}
    given = ["mpiexec", *words.format(tmp_path).split()]
    launch = command_line(given, Options(), environ)
    assert launch.words == given
    assert "is not seen from here" in launch.notices[0]
    with pytest.raises(ArgumentError, match="but require is set"):
        command_line(given, Options(require=True), environ)
