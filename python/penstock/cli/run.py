"""``penstock run``: start a program with its MPI-IO writes served by Penstock."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

from penstock.cli import options as opt
from penstock.errors import LaunchError
from penstock.launch.request import Options, command_line


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The launcher and its program.")
    ],
    method: opt.Method = None,
    writers: opt.Writers = None,
    cycle: opt.Cycle = None,
    observe: opt.Observe = False,
    verify: opt.Verify = False,
    require: opt.Require = False,
    quiet: opt.Quiet = False,
    log_dir: opt.LogDir = None,
    config: opt.Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command line that would run.")
    ] = False,
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
    """
    options = Options(
        method=method,
        observe=observe,
        verify=verify,
        require=require,
        quiet=quiet,
        log_dir=log_dir,
        config=config,
        writers=writers,
        cycle=cycle,
    )
    words = command_line(command, options, os.environ)
    if dry_run:
        typer.echo(shlex.join(words))
        return
    _become(words)


def _become(words: list[str]) -> None:
    """Replace this process, so that exit code and signals are the launcher's own."""
    try:
        os.execvp(words[0], words)  # noqa: S606 - running the user's command is the purpose
    except FileNotFoundError as error:
        raise LaunchError(f"{words[0]} was not found", exit_code=127) from error
    except OSError as error:
        raise LaunchError(f"{words[0]}: {error.strerror}", exit_code=126) from error


def register(app: typer.Typer) -> None:
    """Add the command."""
    settings = {"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}
    app.command("run", context_settings=settings)(run)
