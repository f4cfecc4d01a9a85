"""Command lines: programs, launchers, and what is said when one is missing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from made_samples import result
from penstock.bench import programs
from penstock.bench.execute import ProgramResult
from penstock.bench.programs import Launcher, Program, launcher, options, present
from penstock.bench.sample import Result
from penstock.errors import ArgumentError, LaunchError

MPICH_SAYS = "HYDRA build details:\n    Version:    4.0.2\n"
OPENMPI_SAYS = "mpiexec (OpenRTE) 4.1.4\n"


@pytest.fixture
def tool(tmp_path: Path) -> Callable[..., Path]:
    """Makes a launcher that says what it is."""

    def make(name: str, says: str, directory: str = "bin") -> Path:
        path = tmp_path / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}END\n")
        path.chmod(0o755)
        return path

    return make


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "LC_ALL": "C"} | more


def test_options_are_spelt_for_a_command_line() -> None:
    given = {"bufsize": "1MiB", "each_call": True, "sync-each": False, "hint": ["a=1", "b=2"]}
    assert options(given) == ["--bufsize", "1MiB", "--each-call", "--hint", "a=1", "--hint", "b=2"]


def test_a_command_line_has_launcher_preload_and_program() -> None:
    program = Program(Path("/x/measure"), Launcher("mpich", ("mpiexec", "-n", "{ranks}")))
    assert program.command({"iters": 2}, 4, ["penstock-exec", "--quiet"], ["-l"]) == [
        *("mpiexec", "-l", "-n", "4"),
        *("penstock-exec", "--quiet", "--"),
        *("/x/measure", "--iters", "2"),
    ]


@pytest.mark.parametrize(
    ("op", "totals", "says"),
    [
        ("read", {"engine_bytes": 0, "engine_read_bytes": 64}, None),
        ("read", {"engine_bytes": 64, "engine_read_bytes": 63}, "engine read 63 of 64 bytes"),
        ("write", {"engine_bytes": 64}, None),
        ("write", {"engine_bytes": 63, "engine_read_bytes": 64}, "engine wrote 63 of 64 bytes"),
    ],
)
def test_the_engine_must_have_moved_what_is_measured(
    tmp_path: Path, op: str, totals: dict[str, int], says: str | None
) -> None:
    log = json.loads((Path(__file__).parents[1] / "data" / "job-log.json").read_text())
    log["totals"].update(totals)
    (tmp_path / "log.json").write_text(json.dumps(log))
    printed = result(1e9, bytes_=64) | {"parameters": {"op": op}}
    ran = ProgramResult(0, Result.model_validate(printed), "", 1.0, None)
    said = programs.engine_wrote_all(tmp_path)(ran)
    assert said == (says and f"Penstock's {says}")


def test_threads_have_no_launcher_and_one_rank() -> None:
    assert launcher("none").before(1) == []
    with pytest.raises(ArgumentError, match="ranks must be 1 without MPI, got 2"):
        launcher("none").before(2)


def test_a_machine_bears_so_many_ranks(tmp_path: Path, tool: Callable[..., Path]) -> None:
    tool("mpiexec", MPICH_SAYS)
    most = 64 * len(os.sched_getaffinity(0))
    here = launcher("mpich", environ(tmp_path))
    assert here.before(most)[-1] == str(most)
    with pytest.raises(ArgumentError, match=rf"at most {most} on this .*, got 1000000: .*--launch"):
        here.before(1000000)
    for elsewhere in (
        launcher("mpich", environ(tmp_path, PBS_NODEFILE="/x")),
        launcher("mpich", environ(tmp_path), "mpiexec -f hosts"),
    ):
        assert elsewhere.before(1000000)[-1] == "1000000"


def test_plain_names_come_first(tmp_path: Path, tool: Callable[..., Path]) -> None:
    plain = tool("mpiexec", OPENMPI_SAYS)
    other = tool("mpiexec.hydra", MPICH_SAYS)
    found = {one.flavour: one for one in present(environ(tmp_path))}
    assert found["openmpi"].words[0] == str(plain)
    assert found["mpich"].words[0] == str(other)
    assert "4.0.2" in found["mpich"].version


def test_open_mpi_may_have_more_ranks_than_cores(tmp_path: Path, tool: Callable[..., Path]) -> None:
    tool("mpiexec", OPENMPI_SAYS)
    found = launcher("openmpi", environ(tmp_path))
    assert found.before(3)[1:] == ["--oversubscribe", "--bind-to", "none", "-n", "3"]
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in found.env) == (os.geteuid() == 0)


def test_an_installation_brings_its_libraries(tmp_path: Path, tool: Callable[..., Path]) -> None:
    path = tool("mpiexec", MPICH_SAYS, "opt/mpich5/bin")
    (tmp_path / "opt" / "mpich5" / "lib").mkdir()
    for given in (path, tmp_path / "opt" / "mpich5"):
        found = launcher(str(given), environ(tmp_path, LD_LIBRARY_PATH="/old"))
        assert found.flavour == "mpich"
        assert found.env["LD_LIBRARY_PATH"] == f"{tmp_path}/opt/mpich5/lib:/old"


def test_srun_starts_ranks_in_an_allocation(tmp_path: Path, tool: Callable[..., Path]) -> None:
    tool("mpiexec", MPICH_SAYS)
    tool("srun", "MPI plugin types are...\n\tnone\n\tpmi2\n")
    inside = environ(tmp_path, SLURM_JOB_ID="17")
    assert launcher("mpich", inside).before(4)[1:] == ["--mpi=pmi2", "-n", "4"]
    assert launcher("mpich", environ(tmp_path)).words[0].endswith("mpiexec")
    assert "--overlap" in launcher("mpich", inside | {"SLURM_STEP_ID": "0"}).words


def test_without_its_plugin_open_mpi_keeps_its_own_launcher(
    tmp_path: Path, tool: Callable[..., Path]
) -> None:
    tool("mpiexec", OPENMPI_SAYS)
    tool("srun", "MPI plugin types are...\n\tnone\n\tpmi2\n")
    found = launcher("openmpi", environ(tmp_path, SLURM_JOB_ID="17"))
    assert found.words[0].endswith("mpiexec")


def test_more_options_go_behind_the_launcher(tmp_path: Path, tool: Callable[..., Path]) -> None:
    tool("mpirun", OPENMPI_SAYS)
    tool("flux", "")
    for template, begins in (
        ("env A=1 mpirun -n {ranks}", ["env", "A=1", "mpirun"]),
        ("flux run -n {ranks}", ["flux", "run"]),
    ):
        found = launcher("openmpi", environ(tmp_path), template)
        assert found.before(2, ["-o", "x"]) == [*begins, "-o", "x", "-n", "2"]


def test_a_template_is_used_as_it_is(tmp_path: Path, tool: Callable[..., Path]) -> None:
    tool("myrun", "")
    found = launcher("mpich", environ(tmp_path), "myrun --np={ranks} -x")
    assert found.before(8) == ["myrun", "--np=8", "-x"]
    assert launcher("mpich", environ(tmp_path), "myrun -x").before(2) == ["myrun", "-x", "-n", "2"]


def test_a_template_for_an_installation_keeps_its_libraries(
    tmp_path: Path, tool: Callable[..., Path]
) -> None:
    tool("mpiexec", MPICH_SAYS, "opt/mpich5/bin")
    (tmp_path / "opt" / "mpich5" / "lib").mkdir()
    tool("myrun", "")
    found = launcher(str(tmp_path / "opt" / "mpich5"), environ(tmp_path), "myrun -x")
    assert (found.flavour, found.words[0]) == ("mpich", "myrun")
    assert found.env["LD_LIBRARY_PATH"] == f"{tmp_path}/opt/mpich5/lib"


@pytest.mark.parametrize(
    ("mpi", "template", "words"),
    [
        ("mpihc", None, "did you mean mpich"),
        ("/nowhere/mpiexec", None, "is not there"),
        ("mpich", "", "must be words such as"),
        ("mpich", "nowhere -n {ranks}", "nowhere was not found in PATH"),
        ("mpich", "'unclosed {ranks}", "cannot be read"),
    ],
)
def test_what_cannot_be_launched_is_named(
    tmp_path: Path, mpi: str, template: str | None, words: str
) -> None:
    with pytest.raises(LaunchError, match=words):
        launcher(mpi, environ(tmp_path), template)


@pytest.mark.parametrize(
    ("mpi", "template", "option"),
    [("/opt/\udcff/bin/mpiexec", None, "--mpi"), ("mpich", "/opt/\udcff -n {ranks}", "--launcher")],
)
def test_what_results_cannot_name_is_not_launched(
    tmp_path: Path, mpi: str, template: str | None, option: str
) -> None:
    with pytest.raises(ArgumentError, match=rf"^{option} must be UTF-8, .* got '/opt/\\udcff"):
        launcher(mpi, environ(tmp_path), template)


def test_the_template_for_an_mpi_that_is_not_known_can_be_given(
    tmp_path: Path, tool: Callable[..., Path]
) -> None:
    path = tool("mpiexec", "Hello\n", "my mpi")
    with pytest.raises(LaunchError, match="names no MPI that is known") as raised:
        launcher(str(path), environ(tmp_path))
    option, template = shlex.split(str(raised.value))[-2:]
    assert option == "--launcher"
    given = launcher("mpich", environ(tmp_path), template)
    assert given.before(3) == [str(path), "-n", "3"]


def test_a_missing_mpi_is_named(tmp_path: Path) -> None:
    nothing = {"PATH": str(tmp_path)}
    with pytest.raises(LaunchError, match=r"no mpiexec of mpich is in PATH.*--mpi"):
        launcher("mpich", nothing)


def test_a_program_that_is_not_built_is_named(tmp_path: Path) -> None:
    (tmp_path / "penstock-measure-threads").touch()
    environment = {"PENSTOCK_NATIVE_DIR": str(tmp_path)}
    assert programs.program(Launcher("threads"), environment).path.parent == tmp_path
    with pytest.raises(LaunchError, match=r"penstock-measure-mpich is not in .*choose one of none"):
        programs.program(Launcher("mpich"), environment)


def test_a_program_that_answers_nonsense_is_named(tmp_path: Path) -> None:
    path = tmp_path / "measure"
    path.write_text("#!/bin/sh\necho who are you >&2\nexit 2\n")
    path.chmod(0o755)
    with pytest.raises(LaunchError, match="--describe failed: who are you"):
        Program(path, Launcher("threads")).ask("--describe")
    with pytest.raises(LaunchError, match="--list failed"):
        Program(Path(shutil.which("true") or "true"), Launcher("threads")).ask("--list")
