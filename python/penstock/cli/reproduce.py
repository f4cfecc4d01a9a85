"""``penstock reproduce``: a paper's experiment, its tables beside ours, and verdicts."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import _core
from penstock.cli.output import console, print_json
from penstock.errors import ArgumentError
from penstock.reproduce import PAPERS

if TYPE_CHECKING:
    from penstock.bench.session import Ending
    from penstock.bench.store import Results
    from penstock.reproduce.plan import Planned

_INTERRUPTED = 130


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The paper; none lists them.")
    ] = None,
    size: Annotated[
        str, typer.Option(metavar="quick|full", help="Minutes, or the paper's own parameters.")
    ] = "quick",
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Where to write; what is measured.")
    ] = Path(),
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Results. Default: ./penstock-reproduce-NAME-SIZE."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="RESULTS", help="Measure nothing: print an earlier run again."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Take N samples of each instead.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Begin no sample after so much time, such as 10min."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draws the order. Default: a new one, printed.")
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Start ranks so: 'mpiexec --map-by node -n {ranks}'."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would run and how long it would take.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The report, for programs, alone on stdout.")
    ] = False,
) -> None:
    """Run a paper's experiment: its tables beside ours, and a verdict on each conclusion.

    The conclusions were written down before any run (docs/reproductions). Each holds, does not
    hold, is undecided, or cannot be tested here, with the reason. Ctrl-C, a kill or a power cut
    costs at most one sample; the same command goes on. Exit code 0: measured, whatever the
    verdicts, 1: nothing could be measured, 2: wrong usage, 130: interrupted.

    Examples:

        penstock reproduce

        penstock reproduce liao2007 --dir /scratch/me

        penstock reproduce benson2003 --size full --dir /scratch/me --dry-run

        penstock reproduce gotwals1995 --dir /mnt/slow --out slow

        penstock reproduce --table slow --json
    """
    if table is not None:
        _print_again(name, table, as_json)
        return
    if name is None:
        _list(as_json)
        return
    _known(name)
    from penstock.bench.sweep import Request
    from penstock.reproduce import plan

    request = Request(
        directory=directory,
        out=out or plan.default_out(name, size),
        budget_s=_seconds(budget),
        seed=seed,
        rounds=rounds,
        launcher=launcher,
    )
    planned = plan.prepare(name, size, request)
    for reason in planned.left_out:
        _tell(f"left out: {reason}")
    if dry_run:
        _print_plan(planned, as_json)
    else:
        _measure(planned, as_json)


def _known(name: str) -> None:
    """Said before anything is imported that takes a second."""
    if name not in PAPERS:
        near = _core.nearest(name, list(PAPERS))
        hint = f"; did you mean {near}?" if near else f"; there are {', '.join(PAPERS)}"
        raise ArgumentError(f"there is no paper {name}{hint}")


def _seconds(budget: str | None) -> float | None:
    from penstock.bench import matrix as matrices

    try:
        return None if budget is None else matrices.seconds(budget)
    except ValueError as error:
        raise ArgumentError(f"--budget {error}") from error


def _list(as_json: bool) -> None:
    from penstock.reproduce import experiment

    papers = {name: experiment.load(name) for name in PAPERS}
    if as_json:
        told = {name: {"title": p.title, "setting": p.setting} for name, p in papers.items()}
        print_json(told)
        return
    for name, paper in papers.items():
        typer.echo(f"{name}: {paper.title}")
        for size, one in paper.size.items():
            typer.echo(f"  --size {size}: {one.takes}; scale {one.scale}")


def _print_again(name: str | None, path: Path, as_json: bool) -> None:
    from penstock.bench.store import load
    from penstock.reproduce import plan

    results = load(path)
    paper, _ = plan.of_results(results)
    if name is not None and name != paper:
        _known(name)
        raise ArgumentError(f"{path} holds a run of {paper}, not of {name}")
    _print_report(results, as_json)


def _measure(planned: Planned, as_json: bool) -> None:
    ending = _run(planned)
    from penstock.bench.store import load

    results = load(planned.sweep.samples_file)
    measured = any(sample.counts for sample in results.samples)
    if measured:
        _print_report(results, as_json)
    _say_how_it_ended(ending, planned)
    if ending.reason == "interrupted":
        raise typer.Exit(_INTERRUPTED)
    if not measured:
        _tell("nothing was measured")
        raise typer.Exit(1)


def _run(planned: Planned) -> Ending:
    from rich.console import Console

    from penstock.bench.progress import Show

    sweep = planned.sweep
    size = planned.experiment.size
    takes = next(one.takes for name, one in size.items() if name == planned.size)
    _tell(f"{planned.paper}, {planned.size}: {takes}; seed {sweep.seed}; results in {sweep.out}")
    shown = Console(stderr=True)
    with Show(shown if shown.is_terminal else Console(stderr=True, width=1000)) as show:
        return sweep.run(show)


def _say_how_it_ended(ending: Ending, planned: Planned) -> None:
    again = shlex.join(["penstock", *sys.argv[1:]])
    if ending.reason == "interrupted":
        _tell(f"interrupted: the samples so far are in {planned.sweep.out}; to go on: {again}")
    elif ending.reason == "budget":
        _tell(f"the budget is used up; to go on give more of it: {again} --budget TIME")


def _print_report(results: Results, as_json: bool) -> None:
    from penstock.reproduce import render
    from penstock.reproduce.report import report

    said = report(results)
    if as_json:
        print_json(said.as_json())
    else:
        render.print_report(said, console())


def _print_plan(planned: Planned, as_json: bool) -> None:
    """What would run; nothing is measured and nothing stored."""
    from penstock.bench.estimate import samples_range
    from penstock.reproduce import conclusions

    sweep = planned.sweep
    size = next(one for name, one in planned.experiment.size.items() if name == planned.size)
    least, most = samples_range(sweep.plan)
    wanted = conclusions.of_paper(planned.paper)
    if as_json:
        plan = [m.as_plan() for m in sweep.measurements()]
        told = {"paper": planned.paper, "size": planned.size, "scale": size.scale}
        told |= {"takes": size.takes, "out": str(sweep.out)}
        print_json({**told, "samples_at_most": most, "measurements": plan})
        return
    for one in sweep.measurements():
        typer.echo(f"{one.cell} | {one.variant}: {shlex.join(one.command)}")
    untestable = sum(bool(one.untestable) for one in wanted)
    typer.echo(f"scale: {size.scale}")
    typer.echo(
        f"{len(sweep.cases)} measurements, {least} to {most} samples with warm-ups and canaries, "
        f"into {sweep.out}: {size.takes}"
    )
    typer.echo(f"{len(wanted)} conclusions, {untestable} of which no run here can decide")


def _tell(text: str) -> None:
    typer.echo(f"penstock: {text}", err=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce")(reproduce)
