"""``penstock compare``: is B faster than A, slower, or the same?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Cell, Margin, Without
from penstock.cli.output import console, print_json
from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from penstock.bench.differences import Differences, Side
    from penstock.bench.sample import RateKind
    from penstock.report.load import Wanted

_SLOWER, _UNCLEAR = 1, 3

Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Give exit code 3 where a comparison is unclear, or B lacks what A has.",
    ),
]


class Rates(StrEnum):
    """Which of the two rates are compared."""

    application = "application"
    actual = "actual"
    both = "both"


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="A results directory of penstock bench, or a file.")
    ],
    b: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Another. Not with two --variant of A.")
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this; given twice: the second against the first."),
    ] = None,
    cell: Cell = None,
    without: Without = None,
    rate: Annotated[
        Rates | None,
        typer.Option(
            metavar="application|actual|both",
            help="Until the program went on, or the device had every byte. Default: the rate that "
            "A was measured for.",
        ),
    ] = None,
    margin: Margin = 0.03,
    strict: Strict = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report, for programs.")] = False,
) -> None:
    """Say whether B is faster than A, slower, or the same, with intervals.

    The ratio is always the rate of B over the rate of A: above 1, B is better. Faster and slower
    are said when both an interval (a bootstrap's; the exact one where a side has fewer than 10
    samples) and a Mann-Whitney test exclude equality at 95 % and the ratio is beyond the margin;
    same, when the whole interval is within the margin; else the verdict is unclear
    (docs/statistics.md). Exit code 0: same or faster, 1: B is slower, wrong or failed, 2: wrong
    usage, 3, with --strict: unclear, or B lacks a cell or variant of A, where neither --variant,
    --cell nor --without chose.

    Examples:

        penstock compare before after

        penstock compare results --variant "mpi alone" --variant penstock

        penstock compare before after --rate both --margin 0.05 --strict

        penstock compare before after --cell contiguous-4 --without ceiling

        penstock compare before/samples.jsonl after/samples.jsonl --json
    """
    from penstock.report.load import Wanted

    wanted = Wanted(tuple(cell or ()), tuple(without or ()))
    found = _found(a, b, variant or [], wanted, rate, margin)
    if as_json:
        print_json(found.as_json())
    else:
        from penstock.bench.render import print_differences

        print_differences(found, console())
    lacks = bool(found.only_a) and not (variant or cell or without)
    raise typer.Exit(_exit_code(found.overall, strict, lacks))


def _exit_code(overall: str, strict: bool, lacks: bool) -> int:
    """``lacks``: B has not all of A, where all was to be compared."""
    if overall == "worse":
        return _SLOWER
    return _UNCLEAR if strict and (lacks or overall == "unclear") else 0


def _found(
    a: Path,
    b: Path | None,
    variants: list[str],
    wanted: Wanted,
    rate: Rates | None,
    margin: float,
) -> Differences:
    """Load and compare. Imported here: numpy, scipy and pydantic would slow every command."""
    from penstock.bench.differences import Side, differences
    from penstock.bench.store import load, same_files
    from penstock.report.load import narrowed

    if len(variants) > 2:
        raise ArgumentError(f"--variant can be given twice at most, got {len(variants)}")
    if b is None and len(set(variants)) != 2:
        raise ArgumentError(
            "give two results, or one and two variants of it: "
            "penstock compare DIR --variant x --variant y"
        )
    first, last = (variants[0], variants[-1]) if variants else (None, None)
    of_a = Side(str(a), narrowed(load(a), wanted, str(a)), first)
    if b is None or same_files(a, b):
        of_b = Side(str(b or a), of_a.results, last)
    else:
        of_b = Side(str(b), narrowed(load(b), wanted, str(b)), last)
    found = differences(of_a, of_b, _kinds(rate, of_a), margin)
    return found.model_copy(update={"notices": [*wanted.notes(), *found.notices]})


def _kinds(rate: Rates | None, a: Side) -> tuple[RateKind, ...]:
    if rate is Rates.both:
        return ("application", "actual")
    planned = a.results.headers[0].plan.get("rate") if a.results.headers else None
    actual = rate is Rates.actual or (rate is None and planned == "actual")
    return ("actual",) if actual else ("application",)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)
