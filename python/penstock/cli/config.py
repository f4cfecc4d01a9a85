"""``penstock config`` and ``--dump-config``: every setting, its value and who set it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from penstock import _core, settings
from penstock.cli.options import takes_options
from penstock.cli.output import print_json
from penstock.launch.request import Options, configure

DumpConfig = Annotated[
    bool,
    typer.Option(
        "--dump-config",
        help="Print every setting, its value and who set it, as TOML that --config reads back.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="The dump, for programs.")]


def dump(resolved: _core.Config, as_json: bool) -> None:
    """Print a configuration to stdout and its notices to stderr."""
    for notice in resolved.notices:
        typer.echo(f"penstock: {notice}", err=True)
    if as_json:
        print_json(settings.as_json(resolved))
    else:
        typer.echo(resolved.to_toml(), nl=False)


@takes_options
def config(options: Options, as_json: Json = False) -> None:
    """Print every setting of a run here, its value and who set it.

    Lowest first: built-in defaults; penstock.toml of the system (/etc/penstock), of the installed
    prefix (PREFIX/etc/penstock), of the user (~/.config/penstock) and of the project (the working
    directory or the nearest parent of your own); the file of PENSTOCK_CONFIG; PENSTOCK_* variables;
    the file of --config; tables per file; MPI_Info hints penstock_*;
    options.

    A penstock.toml that others may write is refused, also one that the shell has just made for the
    output (umask 002): write under another name, take their right away, and rename the file.

    Examples:

        penstock config

        penstock config --method two_phase > new.toml

        chmod go-w new.toml && mv new.toml penstock.toml

        penstock config --json
    """
    dump(configure(options, os.environ)[0], as_json)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("config")(config)
