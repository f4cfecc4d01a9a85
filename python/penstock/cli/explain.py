"""``penstock explain``: who holds, sends and writes which bytes, per cycle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from penstock.cli.output import console, print_json, require_one_on_stdout, write_picture
from penstock.errors import ArgumentError
from penstock.explain.shipped import DEFAULT, shipped

if TYPE_CHECKING:
    from penstock.explain.story import Story


def explain(
    described: Annotated[
        str,
        typer.Argument(
            metavar="EXAMPLE.toml",
            help=f"A described job, or a shipped one: {', '.join(shipped())}.",
        ),
    ] = DEFAULT,
    method: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Instead of the example's own method.")
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the plan. - is stdout.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole plan, for programs.")] = False,
) -> None:
    """Explain a plan by a small described job: who sends and writes which bytes, per cycle.

    The keys of a described job: docs/reference/explain-example.md.

    Examples:

        penstock explain

        penstock explain heat --draw heat.svg

        penstock explain my-job.toml --method "two_phase(writers=1)" --json
    """
    from penstock.explain import example, svg, table
    from penstock.explain.story import tell

    require_one_on_stdout(draw, as_json=as_json)
    job = example.load(described)
    if method is not None and not method.strip():
        raise ArgumentError(f"--method must be such as two_phase + messages, got {method!r}")
    if method is not None:
        job = job.model_copy(update={"method": method})
    story = tell(job)
    if draw is not None:
        write_picture(draw, svg.draw(story))
    if as_json:
        print_json(table.as_json(story))
    elif draw is None or str(draw) != "-":
        _print(story)


def _print(story: Story) -> None:
    from penstock.explain import table

    out = console()
    out.print(f"[bold]{escape(story.title)}[/]")
    for what, value in table.facts(story):
        out.print(f"  {what:<20} {escape(value)}", highlight=False)
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("cycle", "writer", "file extent", "from", "writes", "received"):
        rows.add_column(heading)
    for row in table.rows(story):
        rows.add_row(*map(escape, row))
    out.print()
    out.print(rows)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)
