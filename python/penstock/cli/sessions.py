"""What the commands that measure share: options, how a session is shown, and how it ended."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from penstock.bench.session import Ending
    from penstock.bench.sweep import Sweep

INTERRUPTED = 130

Budget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Begin no sample after so much time, such as 10min."),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Draws the order. Default: a new one, printed.")
]
Launcher = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Start ranks so: 'mpiexec --map-by node -n {ranks}'."),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="List what would run and how long it would take, which a few samples say.",
    ),
]


def tell(text: str) -> None:
    """For people, on stderr."""
    typer.echo(f"penstock: {text}", err=True)


def budget_seconds(budget: str | None) -> float | None:
    """Of ``--budget``."""
    from penstock.bench import matrix as matrices

    try:
        return None if budget is None else matrices.seconds(budget)
    except ValueError as error:
        raise ArgumentError(f"--budget {error}") from error


@contextmanager
def trials(said: str = "interrupted before anything was measured") -> Iterator[None]:
    """What is done before a session begins, and around it: it can be stopped as the session can."""
    from penstock.bench.session import terminations_interrupt

    try:
        with terminations_interrupt():
            yield
    except KeyboardInterrupt:
        tell(said)
        raise typer.Exit(INTERRUPTED) from None


def run_shown(sweep: Sweep) -> Ending:
    """Run a session, with its progress on stderr."""
    from rich.console import Console

    from penstock.bench.progress import Show

    shown = Console(stderr=True, emoji=False)
    wide = Console(stderr=True, emoji=False, width=1000)
    show = Show(shown if shown.is_terminal else wide)
    with trials(f"interrupted: the samples so far are in {sweep.out}"), show:
        return sweep.run(show)


def say_how_it_ended(ending: Ending, out: Path) -> None:
    """And what goes on with it, where it was cut short."""
    again = _with_more_time(["penstock", *sys.argv[1:]])
    if ending.reason == "interrupted":
        same = shlex.join(["penstock", *sys.argv[1:]])
        tell(f"interrupted: the samples so far are in {out}; to go on: {same}")
    elif ending.reason == "budget":
        tell(f"the budget is used up; to go on give more of it: {again}")


def _with_more_time(words: Sequence[str]) -> str:
    """The command line with another budget; behind a -- there are no options."""
    kept = [w for w in words if not w.startswith("--budget=")]
    if "--budget" in kept:
        at = kept.index("--budget")
        del kept[at : at + 2]
    end = kept.index("--") if "--" in kept else len(kept)
    return shlex.join([*kept[:end], "--budget", "TIME", *kept[end:]])
