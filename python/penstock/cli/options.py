"""The options that ``run`` and ``env`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Method = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help='How to write, such as "two_phase(writers=4, cycle=16MiB) + messages + pwrite". '
        "auto (the default) lets the engine choose per call; off runs the program untouched.",
    ),
]
Observe = Annotated[
    bool, typer.Option("--observe", help="Take over nothing: time the program's own MPI-IO.")
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Read every file back at close and compare checksums.")
]
Require = Annotated[
    bool, typer.Option("--require", help="Stop wherever a write would pass Penstock by.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print no line at the end; the log is still written.")
]
LogDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the job log goes. Default: the job's directory."),
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A TOML file with these options.")
]
Writers = Annotated[
    int | None,
    typer.Option(metavar="N", help="Ranks that write. 0 lets the team decide; leave it alone."),
]
Cycle = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Collective buffer of one writer, such as 16MiB (binary) or 16MB (decimal).",
    ),
]
