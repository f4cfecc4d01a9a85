"""``penstock env``: export lines for a shell."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from penstock import _core, native
from penstock.cli import options as opt
from penstock.launch.request import Options, configure
from penstock.launch.shell import exports


class Mpi(StrEnum):
    """The MPI libraries that there is a shim for."""

    mpich = "mpich"
    openmpi = "openmpi"


def env(
    mpi: Annotated[
        Mpi | None,
        typer.Option(
            metavar="mpich|openmpi", help="The program's MPI library. Default: that of mpiexec."
        ),
    ] = None,
    method: opt.Method = None,
    writers: opt.Writers = None,
    cycle: opt.Cycle = None,
    observe: opt.Observe = False,
    verify: opt.Verify = False,
    require: opt.Require = False,
    quiet: opt.Quiet = False,
    log_dir: opt.LogDir = None,
    config: opt.Config = None,
) -> None:
    """Print export lines that preload Penstock into everything a shell starts.

    Shells and launchers run unharmed under it. Launchers that forward no environment to other nodes
    (Open MPI over ssh) need `penstock run` or `penstock-exec` instead.

    Examples:

        eval "$(penstock env)" && mpiexec -n 4 ./app

        eval "$(penstock env --mpi openmpi --method two_phase)"
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
    checked, chosen = configure(options, os.environ)
    if checked.mode == _core.Mode.off:
        typer.echo("penstock: method off: nothing is preloaded", err=True)
        return
    shim = native.shim(native.directory(), _flavour(mpi))
    for line in exports(shim, chosen, os.environ):
        typer.echo(line)


def _flavour(mpi: Mpi | None) -> str:
    if mpi is not None:
        return mpi.value
    flavour, why = native.detect_mpi()
    typer.echo(f"penstock: preloading for {flavour} ({why}); --mpi chooses another", err=True)
    return flavour


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("env")(env)
