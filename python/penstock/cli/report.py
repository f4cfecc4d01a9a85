"""``penstock report``: results or a log as one page."""

from __future__ import annotations

import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import Cell, Margin, Without, given
from penstock.cli.output import write_stdout
from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from penstock.bench.differences import Side
    from penstock.bench.sample import RateKind
    from penstock.report.load import BenchResults, Source, Wanted
    from penstock.report.model import Report

_OF_RESULTS = ("--rate", "--margin", "--cell", "--without")
_HTML, _FIGURES = Path("penstock-report.html"), Path("penstock-report-figures")


class Format(StrEnum):
    """What is made."""

    html = "html"
    md = "md"
    svg = "svg"
    png = "png"


class Rate(StrEnum):
    """Which of the two rates ranks."""

    application = "application"
    actual = "actual"


def report(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="Results of penstock bench, the JSON log of a penstock run, or a Darshan log.",
        ),
    ],
    source2: Annotated[
        Path | None,
        typer.Argument(metavar="[SOURCE2]", help="Other results, to compare with the first."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The file, - for stdout, or for svg and png a directory. Default: "
            f"{_HTML}, stdout for md, {_FIGURES}.",
        ),
    ] = None,
    kind: Annotated[
        Format | None,
        typer.Option(
            "--format",
            metavar="html|md|svg|png",
            help="One page, Markdown for a pull request, or each figure as a file. Default: md if "
            "PATH ends so, else html.",
        ),
    ] = None,
    rate: Annotated[
        Rate | None,
        typer.Option(
            metavar="application|actual",
            help="Which rate ranks. Default: the one that was measured for; of two results both.",
        ),
    ] = None,
    margin: Margin = 0.03,
    cell: Cell = None,
    without: Without = None,
) -> None:
    """Make one self-contained page of results or of a log: the verdict first, then the reasons.

    The page loads nothing from anywhere, and shows its figures without JavaScript. It says which
    method, how much faster and how sure; both rates over time, methods ranked with intervals,
    maps over the two most telling parameters, where the time went, the plan of the method, the
    file system and machine, warnings, and the commands to repeat it.

    Examples:

        penstock report penstock-bench-quick

        penstock report results --without ceiling --cell contiguous-4 --out contiguous.html

        penstock report before after --format md --out comment.md

        penstock report penstock-app-1234.json --out job.html

        penstock report results --format png --out figures
    """
    wanted = (tuple(cell or ()), tuple(without or ()))
    asked = given(context)
    made = _made(source, source2, rate.value if rate else None, margin, wanted, asked)
    _spare(out, [one for one in (source, source2) if one is not None])
    _write(made, _format(kind, out), out)


def _spare(out: Path | None, sources: list[Path]) -> None:
    """A report does not take the place of what it is made from."""
    from penstock.bench.store import files_of

    if out is None or str(out) == "-" or not os.path.isfile(out):  # noqa: PTH113 - whatever its name
        return
    read = [file for source in sources for file in files_of(source)]
    if any(out.samefile(file) for file in read):
        raise ArgumentError(f"--out is a file that the report is made from: {out}; give another")


def _format(kind: Format | None, out: Path | None) -> Format:
    if kind is not None:
        return kind
    return Format.md if out is not None and out.suffix == ".md" else Format.html


def _made(
    path: Path,
    path2: Path | None,
    rate: RateKind | None,
    margin: float,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    asked: list[str],
) -> Report:
    """Load and report. Imported here: numpy, scipy and pydantic would slow every command."""
    from penstock.bench.store import same_files
    from penstock.report.load import BenchResults, DarshanLog, Wanted, load

    if not 0.0 <= margin < 1.0:
        raise ArgumentError(f"margin must be a fraction from 0 to 1, got {margin:g}: 0.03 is 3 %")
    wanted = Wanted(*names)
    first = load(path)
    if path2 is not None:
        second = first if same_files(path, path2) else load(path2)
        return _compared((first, path), (second, path2), rate, margin, wanted)
    if isinstance(first, BenchResults):
        return _session(first, rate, margin, wanted)
    _refuse_options(path, asked)
    if isinstance(first, DarshanLog):
        from penstock.report import darshan_log

        return darshan_log.report(str(path), darshan_log.read(path))
    from penstock.report import job

    return job.report(str(path), first.log)


def _refuse_options(path: Path, asked: list[str]) -> None:
    for option in asked:
        if option in _OF_RESULTS:
            raise ArgumentError(
                f"{option} is for results of penstock bench, and {path} is a log of one run: "
                f"leave {option} out"
            )


def _session(source: BenchResults, rate: RateKind | None, margin: float, wanted: Wanted) -> Report:
    from penstock.bench.summary import summarise
    from penstock.report import bench
    from penstock.report.load import narrowed

    results = narrowed(source.results, wanted)
    summary = summarise(results, rate, margin)
    return bench.report(bench.Session(str(source.path), results, summary, wanted))


def _compared(
    first: tuple[Source, Path],
    second: tuple[Source, Path],
    rate: RateKind | None,
    margin: float,
    wanted: Wanted,
) -> Report:
    from penstock.bench.differences import differences
    from penstock.report import compared

    a = _side(*first, wanted)
    b = replace(a, name=str(second[1])) if second[0] is first[0] else _side(*second, wanted)
    kinds: tuple[RateKind, ...] = (rate,) if rate else ("application", "actual")
    return compared.report(a, b, differences(a, b, kinds, margin), wanted, rate)


def _side(source: Source, path: Path, wanted: Wanted) -> Side:
    from penstock.bench.differences import Side
    from penstock.report.load import BenchResults, narrowed

    if not isinstance(source, BenchResults):
        raise ArgumentError(
            f"{path} is a log of one run, and one run has no spread to compare: measure both with "
            "penstock bench, and give its two results"
        )
    return Side(str(path), narrowed(source.results, wanted, str(path)))


def _write(made: Report, kind: Format, out: Path | None) -> None:
    from penstock.report import export, markdown, page

    if kind in (Format.svg, Format.png):
        directory = out or _FIGURES
        if str(directory) == "-":
            raise ArgumentError(f"--out must be a directory for --format {kind}, got -")
        written = export.write_figures(made, directory, "svg" if kind is Format.svg else "png")
        typer.echo(f"penstock: {len(written)} figures in {directory}", err=True)
        return
    text = markdown.markdown(made) if kind is Format.md else page.html(made)
    target = out or (Path("-") if kind is Format.md else _HTML)
    if str(target) == "-":
        write_stdout(text.encode(), "give --out FILE")
        return
    export.write(target, text.encode("utf-8"))
    typer.echo(f"penstock: report in {target}", err=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)
