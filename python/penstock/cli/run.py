"""``penstock run``: start a program with its MPI-IO writes served by Penstock."""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from penstock import native
from penstock.cli.config import DumpConfig, Json, dump
from penstock.cli.options import takes_options
from penstock.errors import ArgumentError, LaunchError
from penstock.launch.request import Options, Start, command_line, configure
from penstock.launch.shell import others_preloaded


@takes_options
def run(
    options: Options,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The launcher and its program.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command line that would run.")
    ] = False,
    mpi: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(native.FLAVOURS),
            help="The program's MPI library, where neither the program (a script, an interpreter) "
            "nor its launcher (srun) tells.",
        ),
    ] = None,
    thread_multiple: Annotated[
        bool,
        typer.Option(
            "--thread-multiple",
            help="Have MPI_Init grant MPI_THREAD_MULTIPLE, for write_behind_progress = thread.",
        ),
    ] = False,
    dump_config: DumpConfig = False,
    as_json: Json = False,
) -> None:
    """Run a program with its MPI-IO writes served by Penstock.

    The launcher's command line is rewritten so that only the program is preloaded, on every node.
    mpiexec and mpirun (MPICH, Open MPI, Intel MPI), srun, aprun, jsrun and flux run are known; any
    other command is run as a program of one rank. The exit code and signals are the program's.

    Examples:

        penstock run -- mpiexec -n 64 ./app input.nml

        penstock run --method "two_phase(writers=4, cycle=16MiB)" -- srun -N 4 -n 64 ./app

        penstock run --observe -- mpiexec -n 2 ./ocean : -n 2 ./atmosphere

        penstock run --verify -- mpiexec -n 4 python3 simulate.py

        penstock run --dump-config > run.toml
    """
    if as_json and not dump_config:
        raise ArgumentError("--json says how --dump-config prints: give both, or neither")
    start = Start(mpi, thread_multiple)
    if dump_config:
        _refuse_start(dry_run, start)
        dump(configure(options, os.environ)[0], as_json)
        return
    launch = command_line(command or [], options, os.environ, start)
    for notice in launch.notices:
        typer.echo(f"penstock: {notice}", err=True)
    if dry_run:
        typer.echo(shlex.join(launch.words))
        return
    if launch.untouched:
        _preload_none_of_ours()
    _become(launch.words)


def _preload_none_of_ours() -> None:
    """As a shell does in which `penstock env` was used."""
    if others := others_preloaded(os.environ):
        os.environ["LD_PRELOAD"] = ":".join(others)
    else:
        os.environ.pop("LD_PRELOAD", None)


def _refuse_start(dry_run: bool, start: Start) -> None:
    """Raise ArgumentError where --dump-config, which starts nothing, is told how to start."""
    given = (["--dry-run"] if dry_run else []) + start.options()
    if given:
        raise ArgumentError(
            f"--dump-config starts nothing, so {given[0]} would have no effect: give one of them"
        )


def _become(words: list[str]) -> None:
    """Replace this process, so that exit code and signals are the launcher's own."""
    if not words:
        raise LaunchError("there is no command to run: penstock run -- mpiexec -n 4 ./app")
    # Python ignores these, and what is ignored stays so across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    _forget_locale()
    try:
        os.execvp(words[0], words)  # noqa: S606 - running the user's command is the purpose
    except FileNotFoundError as error:
        raise LaunchError(f"{words[0]} was not found", exit_code=127) from error
    except OSError as error:
        raise LaunchError(f"{words[0]}: {error.strerror}", exit_code=126) from error


def _forget_locale() -> None:
    """Where the locale was C Python has set another for what it starts (PEP 538)."""
    with suppress(OSError):  # no /proc
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
        os.environb.pop(b"LC_CTYPE", None)
        os.environb.update({w[:8]: w[9:] for w in given if w.startswith(b"LC_CTYPE=")})


def register(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}
    app.command("run", context_settings=settings)(run)
