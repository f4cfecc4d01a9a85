"""penstock-exec goes before the program, whatever the launcher, and nowhere else."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from penstock.errors import LaunchError
from penstock.launch.launchers import FLUX_RUN, MPIEXEC, SRUN, find
from penstock.launch.rewrite import parse, require_commands, require_in_place, rewrite

# Written as a user types them; | marks where the program begins.
CASES = [
    # MPICH
    "mpiexec -n 4 | ./app a b",
    "mpiexec.mpich -np 4 | ./app -n 3",
    "mpiexec.hydra -n 4 -hosts a,b -ppn 2 | ./app",
    "strace -f -o mpiexec.trace mpiexec -n 2 | ./app",
    "perf record -o mpirun.data mpirun -n 4 | ./app",
    "mpiexec -genv A 1 -genvlist X,Y -n 2 -env B 2 | ./app",
    "mpiexec -genv A=1 -n 2 -env B=2 | ./app",
    "mpiexec -n=4 -bind-to=core -l | ./app",
    "mpiexec -launcher ssh -f hosts -print-all-exitcodes -wdir /tmp -n 1 | ./app",
    "mpiexec -n 2 | ./ocean : -n 3 -env C 1 | ./atmosphere x",
    # Open MPI
    "mpirun -np 4 --oversubscribe | ./app",
    "mpirun.openmpi --mca btl self,vader -x OMP_NUM_THREADS=2 -x PATH --map-by ppr:2:node | ./app",
    "orterun -H a:2,b:2 --bind-to none -display-map --tag-output -n 4 | ./app --mca no",
    "mpiexec --allow-run-as-root -gmca pml ob1 -c 2 -rf ranks.txt | ./app",
    "mpirun --prtemca a b --display map --output tag | ./app",
    "mpiexec --with-ft ulfm --set-env A=b --stop-on-exec --pset one -n 4 | ./app",
    "mpirun -n 1 --wdir /tmp | ./a : -n 1 -x Q | ./b : -host c | ./c",
    # Intel MPI
    "mpiexec.hydra -genv I_MPI_DEBUG 5 -perhost 2 -n 4 | ./app",
    "mpirun -rr -n 4 | ./app",
    "mpirun -grr 2 -n 4 | ./app",
    # Slurm
    "srun | ./app",
    "srun -n4 -N2 | ./app -n 3",
    "srun -n 4 --ntasks-per-node=2 --mpi pmi2 -lu | ./app",
    "srun --mpi=pmix --cpu-bind=cores -c 2 -p debug -t 10 --exclusive | ./app",
    "srun -vvn4 -lN 2 --label --kill-on-bad-exit | ./app",
    "srun --export ALL,A=1 --ntasks-per-n=4 | ./app",
    "srun -n1 | ./a : -n2 | ./b",
    "srun -K1 -I30 -n2 | ./app",
    "srun -lK0 | ./app",
    # others
    "aprun -n 8 -N 4 -cc cpu -ss -d2 | ./app",
    "jsrun -n 2 -a4 --smpiargs=-gpu -E A=1 | ./app",
    "flux run -n 4 -N2 -o cpu-affinity=per-task --env=A=1 | ./app",
    "flux mini run -n4 | ./app",
    "flux run -n 2 | ./app a : true",
    # the program's own shape
    "mpiexec -n 2 | python3 -m package --flag 'two words'",
    "mpiexec -n 2 -- | ./app",
    "mpiexec -n 2 | ./wrapper.sh mpiexec -n 3",
    # behind wrappers
    "timeout 10 mpiexec -n 2 | ./app",
    "env A=1 nice -n 5 srun -n2 | ./app",
    "env HYDRA_LAUNCHER_EXEC=/usr/bin/srun mpiexec -n 4 | ./app",
    "strace --output=/tmp/mpiexec srun -n2 | ./app",
]


@pytest.mark.parametrize("case", CASES)
def test_the_program_alone_is_preloaded(case: str) -> None:
    given = shlex.split(case.replace("| ", ""))
    expected = shlex.split(case.replace("| ", "penstock-exec --quiet -- "))
    assert rewrite(parse(given), ["penstock-exec", "--quiet"]) == expected


def test_a_wrappers_file_is_no_launcher() -> None:
    assert parse(shlex.split("strace -o mpiexec.trace ./app")).parts[0].program[0] == "strace"
    found = parse(shlex.split("nice mpirun.none -n 4 ./app --launcher srun")).prefix
    assert found == ("nice", "mpirun.none")


def test_a_command_without_a_launcher_is_the_program() -> None:
    command = parse(["./app", "mpiexec", ":", "-n"])
    assert command.launcher is None
    assert rewrite(command, ["penstock-exec"]) == [
        *("penstock-exec", "--", "./app", "mpiexec", ":", "-n")
    ]


def test_a_program_started_by_penstock_exec_stays_as_it_is() -> None:
    words = ["mpiexec", "-n", "2", "/x/penstock-exec", "--verify", "--", "./app"]
    assert rewrite(parse(words), ["penstock-exec"]) == words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mpiexec -n 4", "mpiexec is given no program"),
        ("mpiexec -n 4 ./a :", "mpiexec is given no program"),
        ("mpiexec -frobnicate ./a", "-frobnicate is not known to penstock run"),
        ("mpiexec --frob=1 ./a", "mpiexec option --frob is not known"),
        ("mpiexec --overscribe ./a", "did you mean oversubscribe"),
        ("mpiexec -configfile cf", "before each program in that file"),
        ("mpirun --app contexts", "before each program in that file"),
        ("srun --multi-prog conf", "before each program in that file"),
        ("mpirun -s ./a", "leave it out"),
        ("srun --zzz ./a", "--zzz? is not known|-zzz is not known"),
        ("srun -n2 -! ./a", "-! is not known"),
        ("srun -K1x ./a", "-K1x is not known"),
        ("flux alloc -n 1 ./a", "knows `flux run`"),
        ("", "there is no command to run"),
    ],
)
def test_what_cannot_be_rewritten_is_refused_with_a_remedy(words: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        parse(words.split())
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "environ", "message"),
    [
        ("srun --bcast=/tmp/a -n 2 ./a", {}, "srun --bcast=/tmp/a cannot .* not the program: copy"),
        ("srun -n 2 --bc ./a", {}, "copy the program to every node first, and start the copy$"),
        ("mpirun --preload-binary ./a", {}, "--preload-binary cannot be obeyed"),
        ("mpirun -n 2 ./a : --preload-binary ./b", {}, "--preload-binary cannot be obeyed"),
        ("srun ./a", {"SLURM_BCAST": ""}, "SLURM_BCAST cannot .* first, .*; unset SLURM_BCAST"),
    ],
)
def test_what_would_copy_penstock_exec_in_the_place_of_the_program_is_refused(
    words: str, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(LaunchError, match=message):
        require_in_place(parse(words.split()), environ)


def test_what_copies_nothing_is_not_refused() -> None:
    for words, environ in (("srun ./a --bcast", {}), ("mpiexec ./a", {"SLURM_BCAST": ""})):
        require_in_place(parse(words.split()), environ)
    require_in_place(parse(["./a"]), {"SLURM_BCAST": ""})


def test_an_option_that_is_not_known_names_penstock_exec_as_the_way_out() -> None:
    with pytest.raises(LaunchError, match=r"mpiexec \.\.\. penstock-exec \./app"):
        parse(["mpiexec", "--unheard-of", "1", "./app"])


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["mpiexec-that-is-not-here", "-n", "1", "true"], "launcher"),
        (["env", "srun", "-n", "1", "true"], "launcher"),
        (["no-such-program"], "program no-such-program was not found"),
        (["./no-such-program"], "there is no such file"),
    ],
)
def test_what_is_missing_is_named_and_gives_127(
    words: list[str], missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "env").symlink_to("/usr/bin/env")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LaunchError, match=missing) as caught:
        require_commands(parse(words))
    assert caught.value.exit_code == 127


@pytest.mark.parametrize("words", ["./place", "mpiexec ./place", "./place/mpiexec ./app"])
def test_what_may_not_be_executed_gives_126_as_a_shell(
    words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "place" / "mpiexec").mkdir(parents=True)
    (tmp_path / "mpiexec").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LaunchError, match="is a directory: name the") as caught:
        require_commands(parse(words.split()))
    assert caught.value.exit_code == 126


def test_a_file_that_may_not_be_executed_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "app").write_text("text")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LaunchError, match="chmod") as caught:
        require_commands(parse(["./app"]))
    assert caught.value.exit_code == 126


def test_after_a_change_of_directory_the_program_is_not_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mpiexec").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    require_commands(parse(["mpiexec", "-wdir", "/elsewhere", "./app"]))
    with pytest.raises(LaunchError, match="app was not found"):
        require_commands(parse(["mpiexec", "./app"]))


def test_a_bare_name_in_the_working_directory_is_found_as_open_mpi_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = tmp_path / "only_here"
    app.write_text("#!/bin/sh\n")
    app.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert rewrite(parse(["mpirun", "only_here"]), ["penstock-exec"])[-1] == "./only_here"


@pytest.mark.parametrize(
    ("word", "launcher"),
    [
        ("/opt/mpi/bin/mpirun", MPIEXEC),
        ("mpiexec.mpich", MPIEXEC),
        ("srun", SRUN),
        ("flux", FLUX_RUN),
        ("mpiexecutor", None),
        ("./app", None),
    ],
)
def test_launchers_are_known_by_their_file_name(word: str, launcher: object) -> None:
    assert find(word) is launcher
