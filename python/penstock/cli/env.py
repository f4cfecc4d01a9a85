"""``penstock env``: export lines for a shell."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from penstock import _core, native
from penstock.cli.config import DumpConfig, Json, dump
from penstock.cli.options import takes_options
from penstock.errors import ArgumentError
from penstock.launch.request import Options, configure
from penstock.launch.shell import exports


@takes_options
def env(
    options: Options,
    mpi: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(native.FLAVOURS),
            help="The program's MPI library. Default: that of mpiexec.",
        ),
    ] = None,
    dump_config: DumpConfig = False,
    as_json: Json = False,
) -> None:
    """Print export lines that preload Penstock into everything a shell starts.

    Shells and launchers run unharmed under it. Launchers that forward no environment to other nodes
    (Open MPI over ssh) need `penstock run` or `penstock-exec` instead. Every rank then reads the
    configuration files itself; `penstock run` reads them once for all.

    Where `penstock env` fails, `eval "$(penstock env)"` succeeds all the same and what follows runs
    without Penstock; the first example starts nothing then.

    Examples:

        set_up=$(penstock env) && eval "$set_up" && mpiexec -n 4 ./app

        eval "$(penstock env --mpi openmpi --method two_phase)"
    """
    if as_json and not dump_config:
        raise ArgumentError("--json says how --dump-config prints: give both, or neither")
    native.require_flavour(mpi)
    resolved, chosen = configure(options, os.environ)
    if dump_config:
        dump(resolved, as_json)
        return
    for notice in resolved.notices:
        typer.echo(f"penstock: {notice}", err=True)
    if resolved.mode == _core.Mode.off:
        why = resolved.left_alone or "PENSTOCK_DISABLE is set"
        typer.echo(f"penstock: {why}; nothing is preloaded", err=True)
        shim, chosen = None, {}
    else:
        shim = native.shim(native.directory(), _flavour(mpi))
    for line in exports(shim, chosen, os.environ):
        typer.echo(line)


def _flavour(mpi: str | None) -> str:
    if mpi is not None:
        return mpi
    flavour, why = native.detect_mpi()
    typer.echo(f"penstock: preloading for {flavour} ({why}); --mpi chooses another", err=True)
    return flavour


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("env")(env)
