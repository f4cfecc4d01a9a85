"""The measuring programs, and how ranks of them are started: mpiexec, mpirun, srun, or a template.

There is one measuring program per binary interface of MPI, and one for threads, beside
penstock-exec (penstock.native). Inside a Slurm allocation ranks are started by srun where its
plugins serve the library, else by the library's own launcher, which knows Slurm.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock import _core, joblog, native
from penstock.bench.execute import ProgramResult
from penstock.doctor import ask, tools
from penstock.errors import ArgumentError, LaunchError
from penstock.launch.request import is_utf8
from penstock.launch.rewrite import launcher_length

THREADS = "threads"
NAMES = ("none", "mpich", "openmpi", "abi")
_RANKS = "{ranks}"
_RANKS_PER_CORE = 64  # more do not measure, and some thousands stop a machine
# What a batch system or a list of hosts sets: then a launcher reaches more than this machine.
_OF_HOSTS = ("SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "PE_HOSTFILE", "HYDRA_HOST_FILE")
_PATIENCE_S = 30.0
# Open MPI refuses more ranks than cores, and binds each rank, with its threads, to one core.
_EXTRA = {"openmpi": ("--oversubscribe", "--bind-to", "none")}
_PMI_OF = {"mpich": "pmi2", "openmpi": "pmix", "abi": "pmi2"}


@dataclass(frozen=True)
class Launcher:
    """How a number of ranks is started; ``words`` hold ``{ranks}`` where the number goes.

    ``most_ranks`` are those that this machine bears; None where they may run on others, too.
    """

    flavour: str
    words: tuple[str, ...] = ()
    version: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    most_ranks: int | None = None

    def why_not(self, ranks: int) -> str:
        """What is wrong with a number of ranks; empty if it can be started."""
        if self.flavour == THREADS and ranks != 1:
            return f"ranks must be 1 without MPI, got {ranks}: give threads, or an mpi"
        if self.most_ranks is not None and ranks > self.most_ranks:
            return (
                f"ranks must be at most {self.most_ranks} on this machine ({_RANKS_PER_CORE} for "
                f"each core), got {ranks}: where others take part, say so with --launcher"
            )
        return ""

    def before(self, ranks: int, more: Sequence[str] = ()) -> list[str]:
        """The words before a program of so many ranks; ``more`` options of the launcher's own."""
        if why := self.why_not(ranks):
            raise ArgumentError(why)
        if self.flavour == THREADS:
            return []
        words = [word.replace(_RANKS, str(ranks)) for word in self.words]
        end = launcher_length(words)
        return [*words[:end], *more, *words[end:]]

    def as_json(self) -> dict[str, Any]:
        """For a provenance."""
        return {"flavour": self.flavour, "launcher": list(self.words), "version": self.version}


@dataclass(frozen=True)
class Program:
    """A measuring program and what starts it."""

    path: Path
    launcher: Launcher

    def command(
        self,
        parameters: Mapping[str, Any],
        ranks: int = 1,
        preload: Sequence[str] = (),
        launcher_options: Sequence[str] = (),
    ) -> list[str]:
        """The whole command line.

        Parameters
        ----------
        parameters : mapping
            Options by their long names, with ``-`` or ``_``. True gives the bare option, False and
            None none, a list the option once per value.
        ranks : int
            MPI ranks; 1 without MPI.
        preload : words
            penstock-exec and its options, for a program whose MPI-IO Penstock takes over.
        launcher_options : words
            Options of the launcher, such as ``--mca io romio321``.
        """
        before = [
            *self.launcher.before(ranks, launcher_options),
            *preload,
            *(["--"] if preload else []),
        ]
        return [*before, str(self.path), *options(parameters)]

    def ask(self, question: str) -> dict[str, Any]:
        """What the program says of itself: ``--describe`` or ``--list``.

        Raises
        ------
        LaunchError
            If it cannot be asked.
        """
        try:
            done = self._run([question])
            values = json.loads(done.stdout) if done.returncode == 0 else None
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            raise LaunchError(f"{self.path} {question} failed: {error}") from error
        if not isinstance(values, dict):
            words = done.stderr.strip().splitlines()
            why = words[-1] if words else f"exit code {done.returncode}"
            raise LaunchError(f"{self.path} {question} failed: {why}")
        return values

    def why_refused(self, parameters: Mapping[str, Any]) -> str:
        """What the program has against values, in its own words; empty where they can be used.

        Raises
        ------
        LaunchError
            If it cannot be asked.
        """
        try:
            done = self._run(["--check", "--file", "unnamed", *options(parameters)])
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LaunchError(f"{self.path} --check failed: {error}") from error
        if done.returncode == 0:
            return ""
        words = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return words[-1].removeprefix(f"{self.path.name}: ")

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own program
            [str(self.path), *words],
            env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )


def options(parameters: Mapping[str, Any]) -> list[str]:
    """Parameters as words of a command line."""
    words: list[str] = []
    for name, value in parameters.items():
        option = "--" + name.replace("_", "-")
        values = value if isinstance(value, list | tuple) else [value]
        for one in values:
            if one is True:
                words.append(option)
            elif one is not False and one is not None:
                words += [option, str(one)]
    return words


def program(launcher: Launcher, environ: Mapping[str, str] | None = None) -> Program:
    """The measuring program that a launcher starts.

    Raises
    ------
    LaunchError
        If it is not built; the message says how it comes to be.
    """
    where = native.directory(environ)
    path = where / f"penstock-measure-{launcher.flavour}"
    if not path.is_file():
        needs = (
            "" if launcher.flavour == THREADS else f" with {launcher.flavour}'s development files"
        )
        raise LaunchError(
            f"{path.name} is not in {where}: build Penstock{needs} (make build), or choose one of "
            f"{', '.join(built(where)) or 'none: nothing is built'} with --mpi"
        )
    return Program(path, launcher)


def built(where: Path) -> list[str]:
    """What --mpi can be, as far as measuring programs are in ``where``."""
    flavours = {"none": THREADS} | {name: name for name in NAMES[1:]}
    return [n for n, f in flavours.items() if (where / f"penstock-measure-{f}").is_file()]


def launcher(
    mpi: str, environ: Mapping[str, str] | None = None, template: str | None = None
) -> Launcher:
    """What starts ranks.

    Parameters
    ----------
    mpi : str
        ``none``, ``mpich``, ``openmpi``, ``abi``, or the path of an mpiexec or of an installation.
    environ : mapping
        The environment to look in.
    template : str
        Words to use instead, such as ``mpiexec --map-by node``; ``{ranks}`` says where the number
        goes, else ``-n`` and the number are put behind them.

    Raises
    ------
    ArgumentError
        If ``mpi`` or ``template`` is not UTF-8.
    LaunchError
        If there is none; the message says what there is.
    """
    for option, said in (("--mpi", mpi), ("--launcher", template or "")):
        if not is_utf8(said):
            raise ArgumentError(
                f"{option} must be UTF-8, for results hold it, got {said!a}: give another path, "
                "such as a link to it"
            )
    environ = os.environ if environ is None else environ
    if mpi == "none":
        return Launcher(THREADS)
    if template is not None:
        return _from_template(mpi, template, environ)
    if "/" in mpi:
        return _from_path(Path(mpi), environ)
    if mpi not in NAMES:
        near = _core.nearest(mpi, list(NAMES))
        hint = f" (did you mean {near}?)" if near else ""
        raise LaunchError(
            f"mpi must be one of {', '.join(NAMES)} or the path of an mpiexec, got {mpi}{hint}"
        )
    if found := _by_srun(mpi, environ):
        return found
    for one in present(environ):
        if one.flavour == mpi:
            return one
    raise LaunchError(
        f"no mpiexec of {mpi} is in PATH: load its module, or give its path with --mpi",
        exit_code=127,
    )


def present(environ: Mapping[str, str]) -> list[Launcher]:
    """The launchers in PATH, one per binary interface, that a plain name means first."""
    found: dict[str, Launcher] = {}
    plain = [shutil.which(name, path=environ.get("PATH")) for name in ("mpiexec", "mpirun")]
    others = (p for p in tools.files(environ) if not p.name.startswith("mpicc"))
    for path in (*(Path(p) for p in plain if p), *others):
        one = _asked(path, environ)
        if one is not None and one.flavour not in found:
            found[one.flavour] = _by_srun(one.flavour, environ) or one
    return list(found.values())


def _asked(path: Path, environ: Mapping[str, str]) -> Launcher | None:
    """A launcher by what it says of itself."""
    told = ask.output([str(path), "--version"], environ)
    lines = [" ".join(line.split()) for line in told.splitlines() if line.strip()]
    for sign, flavour in native.SIGNS.items():
        for line in lines:
            if sign in line.lower():
                number = next((x for x in lines if re.search(r"\d+\.\d+", x)), "")
                version = line if number in ("", line) else f"{line} {number}"
                words = (str(path), *_EXTRA.get(flavour, ()), "-n", _RANKS)
                return Launcher(flavour, words, version, _root_env(flavour), _most_ranks(environ))
    return None


def _most_ranks(environ: Mapping[str, str]) -> int | None:
    """Of a plain mpiexec."""
    if any(environ.get(name) for name in _OF_HOSTS):
        return None
    return _RANKS_PER_CORE * len(os.sched_getaffinity(0))


def _root_env(flavour: str) -> dict[str, str]:
    """Open MPI asks root twice; a sweep that root started was meant."""
    if flavour != "openmpi" or os.geteuid() != 0:
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def _from_path(path: Path, environ: Mapping[str, str]) -> Launcher:
    given = path
    if path.is_dir():
        path = path / "bin" / "mpiexec"
    if not path.is_file():
        raise LaunchError(f"mpi {given} is no mpiexec, and {path} is not there", exit_code=127)
    found = _asked(path.absolute(), environ)
    if found is None:
        template = f"{shlex.quote(str(path))} -n {_RANKS}"
        raise LaunchError(
            f"{path} --version names no MPI that is known: give --mpi mpich, openmpi or abi, and "
            f"--launcher {shlex.quote(template)}"
        )
    libraries = path.absolute().parent.parent / "lib"
    if not libraries.is_dir() or libraries in (Path("/usr/lib"), Path("/lib")):
        return found
    search = ":".join(x for x in (str(libraries), environ.get("LD_LIBRARY_PATH", "")) if x)
    return replace(found, env={**found.env, "LD_LIBRARY_PATH": search})


def _from_template(mpi: str, template: str, environ: Mapping[str, str]) -> Launcher:
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise LaunchError(f"--launcher cannot be read ({error}), got {template}") from error
    if not words:
        raise LaunchError("--launcher must be words such as 'mpirun', got none")
    if not any(_RANKS in word for word in words):
        words += ["-n", _RANKS]
    if shutil.which(words[0], path=environ.get("PATH")) is None:
        raise LaunchError(f"--launcher: {words[0]} was not found in PATH", exit_code=127)
    if mpi in NAMES:
        return Launcher(mpi, tuple(words), template, _root_env(mpi))
    known = _from_path(Path(mpi), environ)
    return Launcher(known.flavour, tuple(words), template, known.env)


def _by_srun(flavour: str, environ: Mapping[str, str]) -> Launcher | None:
    """srun, inside an allocation, if it has the plugin that the library speaks."""
    srun = shutil.which("srun", path=environ.get("PATH"))
    if srun is None or not environ.get("SLURM_JOB_ID"):
        return None
    plugin = _PMI_OF[flavour]
    if not re.search(rf"\b{plugin}\b", _all_output([srun, "--mpi=list"], environ)):
        return None
    # A step within a step shares its processors; one of a batch script has them all.
    overlap = ("--overlap",) if environ.get("SLURM_STEP_ID") else ()
    words = (srun, f"--mpi={plugin}", *overlap, "-n", _RANKS)
    version = ask.output([srun, "--version"], environ).strip()
    return Launcher(flavour, words, f"{version} with {plugin}")


def _all_output(words: list[str], environ: Mapping[str, str]) -> str:
    """srun lists its plugins on either stream, by version."""
    try:
        done = subprocess.run(  # noqa: S603
            words,
            env=dict(environ),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def preload(log_directory: Path, penstock_options: Sequence[str] = ()) -> list[str]:
    """penstock-exec and the options that make a run under it count.

    It reads no configuration file of the user, and stops where a write would pass Penstock by.
    """
    executable = native.executable(native.directory())
    fixed = ["--quiet", "--isolated", "--require", "--all-ranks", "--log-dir", str(log_directory)]
    return [str(executable), *fixed, *penstock_options]


def engine_wrote_all(log_directory: Path) -> Callable[[ProgramResult], str | None]:
    """Expect that the job logs of a run under penstock-exec account for every byte of it.

    Of a run that reads these are the bytes read: it writes its file beforehand by itself.
    """

    def expect(ran: ProgramResult) -> str | None:
        logs = [joblog.load(path) for path in sorted(log_directory.glob("*.json"))]
        if not logs:
            return f"there is no job log in {log_directory}: Penstock was not in the run"
        expected = ran.result.bytes if ran.result else 0
        if ran.result is not None and ran.result.parameters.get("op") == "read":
            did, moved = "read", sum(log.totals.engine_read_bytes for log in logs)
        else:
            did, moved = "wrote", sum(log.totals.engine_bytes for log in logs)
        return f"Penstock's engine {did} {moved} of {expected} bytes" if moved < expected else None

    return expect
