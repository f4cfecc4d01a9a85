"""``penstock doctor``: what this machine offers, and what to mend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from penstock import doctor as library
from penstock.cli.output import console, print_json
from penstock.plain import plain

_COLOURS = {"ok": "green", "note": "cyan", "warn": "yellow", "problem": "red"}


def doctor(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where a program would write.")
    ] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="The report, for programs.")] = False,
) -> None:
    """Look at MPI libraries, a directory, the kernel and the configuration; say what to mend.

    The configuration, and where the log goes, are those of a job that is started here. Nothing is
    changed; a small file is made in DIR and removed. Exit code 0: good, 1: something is
    to be mended before a run.

    Examples:

        penstock doctor

        penstock doctor /scratch/me

        penstock doctor --json
    """
    report = library.examine(directory)
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)
    if not report.good:
        raise typer.Exit(1)


def _print(report: library.Report) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in report.findings:
        colour = _COLOURS[finding.level]
        text = escape(plain(finding.text))
        if finding.remedy:
            text += f"\n[bold]remedy:[/] {escape(plain(finding.remedy))}"
        table.add_row(
            f"[{colour}]{finding.level}[/]", f"[bold]{escape(plain(finding.topic))}[/]", text
        )
    out = console()
    out.print(table, highlight=False)
    problems = sum(f.level == "problem" for f in report.findings)
    good = "[green]nothing has to be mended[/]"
    out.print(f"\n{good if report.good else f'[red]{problems} to be mended[/]'}", highlight=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)
