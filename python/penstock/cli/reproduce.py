"""``penstock reproduce``: a paper's experiment, its tables beside ours, and verdicts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import _core
from penstock.cli.options import given
from penstock.cli.output import console, print_json
from penstock.cli.sessions import (
    INTERRUPTED,
    Budget,
    DryRun,
    Launcher,
    Seed,
    budget_seconds,
    run_shown,
    say_how_it_ended,
    tell,
    trials,
)
from penstock.errors import ArgumentError
from penstock.reproduce import PAPERS
from penstock.words import duration_text

if TYPE_CHECKING:
    from penstock.bench.session import Ending
    from penstock.bench.store import Results
    from penstock.reproduce.plan import Planned


_OF_TABLE = ("--table", "--pages", "--json")


def reproduce(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The paper; none lists them.")
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            metavar="quick|full|paper",
            help="Minutes; all of the paper, scaled to this machine by a printed factor; the "
            "paper's own parameters where full is scaled.",
        ),
    ] = "quick",
    directory: Annotated[
        list[str] | None,
        typer.Option(
            "--dir",
            metavar="[NAME=]DIR",
            help="Where to write; what is measured. Several, with names, in one session: ext4, "
            "nfs, parallel, slow, raw.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Results. Default: ./penstock-reproduce-NAME-SIZE."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="RESULTS", help="Measure nothing: print an earlier run again."),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where NAME.md, NAME-report.html and raw/NAME.jsonl.xz go. "
            "Default: pages in the results; with --table they are written only if asked for.",
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Take N samples of each instead.")
    ] = None,
    budget: Budget = None,
    seed: Seed = None,
    launcher: Launcher = None,
    dry_run: DryRun = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The report, for programs, alone on stdout.")
    ] = False,
) -> None:
    """Run a paper's experiment: its tables beside ours, and a verdict on each conclusion.

    The conclusions were written down before any run (docs/reproductions). Each holds, does not
    hold, is undecided, or cannot be tested here, with the reason. --budget begins what conclusions
    need first, and only whole blocks. Ctrl-C, a kill or a power cut costs at most one sample; the
    same command goes on. Exit code 0: measured, whatever the verdicts, 1: nothing could be
    measured, 2: wrong usage, 130: interrupted.

    Examples:

        penstock reproduce

        penstock reproduce liao2007 --dir /scratch/me

        penstock reproduce benson2003 --size full --dir /scratch/me --dry-run

        penstock reproduce gotwals1995 --dir /mnt/slow --out slow

        penstock reproduce barro2002 --size full --budget 8min --dir ext4=/tmp --dir nfs=/mnt

        penstock reproduce --table slow --json

        penstock reproduce --table raw/liao2007.jsonl.xz --pages docs/reproductions
    """
    _refuse_idle(given(context), name, table)
    if table is not None:
        _print_again(name, table, as_json, pages)
        return
    if name is None:
        _list(as_json)
        return
    _known(name)
    from penstock.bench.sweep import Request
    from penstock.reproduce import places, plan

    directories = places.directories(directory or [])
    request = Request(
        directory=next(iter(directories.values())),
        out=out or plan.default_out(name, size),
        budget_s=budget_seconds(budget),
        seed=seed,
        rounds=rounds,
        launcher=launcher,
    )
    with trials():
        planned = plan.prepare(name, size, request, directories)
        for reason in planned.left_out:
            tell(f"left out: {reason}")
        if dry_run:
            planned.sweep.check_earlier()
            _print_plan(planned, as_json)
            return
    _measure(planned, as_json, pages)


def _refuse_idle(options: list[str], name: str | None, table: Path | None) -> None:
    """Raise ArgumentError where an option is for a run, and none is asked for."""
    if table is not None:
        if idle := [one for one in options if one not in _OF_TABLE]:
            raise ArgumentError(
                f"--table prints an earlier run and measures nothing, so {idle[0]} would have no "
                "effect: leave one of them out"
            )
    elif name is None and (idle := [one for one in options if one != "--json"]):
        raise ArgumentError(
            f"{idle[0]} is for the run of a paper, and none is named: give NAME, one of "
            f"{', '.join(PAPERS)}"
        )


def _known(name: str) -> None:
    """Said before anything is imported that takes a second."""
    if name not in PAPERS:
        near = _core.nearest(name, list(PAPERS))
        hint = f"; did you mean {near}?" if near else f"; there are {', '.join(PAPERS)}"
        raise ArgumentError(f"there is no paper {name}{hint}")


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


def _print_again(name: str | None, path: Path, as_json: bool, pages: Path | None) -> None:
    from penstock.bench.store import load
    from penstock.reproduce import plan

    results = load(path)
    paper, _ = plan.of_results(results)
    if name is not None and name != paper:
        _known(name)
        raise ArgumentError(f"{path} holds a run of {paper}, not of {name}")
    _print_report(results, as_json)
    _write_pages(results, pages)


def _write_pages(results: Results, directory: Path | None) -> None:
    if directory is None:
        return
    from penstock.reproduce import pages

    for path in pages.write(results, directory):
        tell(f"wrote {path}")


def _measure(planned: Planned, as_json: bool, pages: Path | None) -> None:
    ending = _run(planned)
    from penstock.bench.store import load

    results = load(planned.sweep.samples_file)
    measured = any(sample.counts for sample in results.samples)
    if measured:
        _print_report(results, as_json)
        _write_pages(results, pages or planned.sweep.out / "pages")
    say_how_it_ended(ending, planned.sweep.out)
    if ending.reason == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if not measured:
        why = ""
        if planned.sweep.keep is not None and any(s.failed is None for s in results.samples):
            why = ": no conclusion fits what the warm-ups left of the budget; give more of it"
        tell(f"nothing was measured{why}")
        raise typer.Exit(1)


def _run(planned: Planned) -> Ending:
    sweep = planned.sweep
    size = planned.experiment.size
    takes = next(one.takes for name, one in size.items() if name == planned.size)
    tell(f"{planned.paper}, {planned.size}: {takes}; seed {sweep.seed}; results in {sweep.out}")
    return run_shown(sweep)


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
    from penstock.reproduce.plan import estimated_s

    sweep = planned.sweep
    size = next(one for name, one in planned.experiment.size.items() if name == planned.size)
    least, most = samples_range(sweep.plan)
    wanted = conclusions.of_paper(planned.paper)
    if as_json:
        plan = [m.as_plan() for m in sweep.measurements()]
        told: dict[str, object] = {"paper": planned.paper, "size": planned.size}
        told |= {"scale": planned.scale}
        told |= {"takes": size.takes, "out": str(sweep.out)}
        told |= {"estimated_s": estimated_s(planned), "not_fitting": list(planned.not_fitting)}
        print_json({**told, "samples_at_most": most, "measurements": plan})
        return
    for one in sweep.measurements():
        typer.echo(f"{one.cell} | {one.variant}: {shlex.join(one.command)}")
    untestable = sum(bool(one.untestable) for one in wanted)
    typer.echo(f"scale: {planned.scale}")
    typer.echo(
        f"{len(sweep.cases)} measurements, {least} to {most} samples with warm-ups and canaries, "
        f"into {sweep.out}: {size.takes}; estimated for here: {duration_text(estimated_s(planned))}"
    )
    _print_choice(planned)
    typer.echo(f"{len(wanted)} conclusions, {untestable} of which no run here can decide")


def _print_choice(planned: Planned) -> None:
    """What each directory takes, and what the budget leaves of the size."""
    for place, rate in planned.rates.items():
        typer.echo(f"{place or 'the directory'} takes {rate / 1e6:.0f} MB/s of 8 MiB with fsync")
    if planned.sweep.keep is None:
        return
    part, whole = len(planned.sweep.cases), planned.all_measurements
    typer.echo(
        f"for the budget: {part} of {whole} measurements of the size (1/{whole / part:.3g}) are "
        "begun; the times of their warm-ups decide which go on, whole blocks of all that do"
    )
    for name in planned.not_fitting:
        typer.echo(f"does not fit: {name}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce")(reproduce)
