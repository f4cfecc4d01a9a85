"""``penstock list``: the variants of the five choices."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from penstock import catalogue
from penstock.cli.output import console, print_json
from penstock.errors import ArgumentError
from penstock.refused import refusals


def list_variants(
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="The table of the documentation.")
    ] = False,
) -> None:
    """List algorithms, exchanges, mechanisms, sync policies and returns.

    What this machine or version lacks is listed with its reason, and so is what does not go
    together.

    Examples:

        penstock list

        penstock list --json
    """
    if as_json and markdown:
        raise ArgumentError("--json and --markdown exclude each other: give one of them")
    if as_json:
        print_json(catalogue.as_json())
    elif markdown:
        typer.echo(catalogue.as_markdown(), nl=False)
    else:
        _print_table()


def _print_table() -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("choice")
    table.add_column("variant", no_wrap=True)
    table.add_column("what it does")
    for family in catalogue.families():
        for i, entry in enumerate(family.entries):
            name = f"[{'dim' if entry.unavailable else 'green'}]{escape(entry.spelling)}[/]"
            what = escape(entry.summary)
            if entry.unavailable:
                what += f"\n[yellow]not here:[/] {escape(entry.unavailable)}"
            table.add_row(f"[bold]{family.name}[/]" if i == 0 else "", name, what)
    out = console()
    out.print(table)
    out.print(_refused_table())
    out.print(f"\ndefault method: {catalogue.as_json()['default_method']}", highlight=False)


def _refused_table() -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
    table.add_column("\nalgorithm", no_wrap=True)
    table.add_column("\nnot with")
    for refusal in refusals():
        others = escape(", ".join(refusal.others))
        table.add_row(refusal.algorithm, f"{others}\n[dim]{escape(refusal.why)}[/]")
    return table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list")(list_variants)
