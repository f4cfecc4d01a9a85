"""``penstock bench``: which way of writing is best in a directory, with honest statistics."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from penstock.paths import real
from penstock.words import duration_text, number_of

if TYPE_CHECKING:
    from penstock.bench.export import Format
    from penstock.bench.parts import Gathered
    from penstock.bench.store import Results
    from penstock.bench.summary import Summary
    from penstock.bench.sweep import Request, Sweep

_FORMATS: tuple[Format, ...] = ("parquet", "csv")
# What the elements of a job array must not be told again.
_OF_SUBMISSION = ("--submit", "--sbatch")


def bench(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to write; what is measured.")
    ] = Path(),
    matrix: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A sweep in TOML (docs/bench.md).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Results. Default: ./penstock-bench-NAME."),
    ] = None,
    budget: Budget = None,
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", help="Take N samples of each, whatever their spread."),
    ] = None,
    seed: Seed = None,
    mpi: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MPI", help="none, mpich, openmpi, abi or the path of an mpiexec; repeatable."
        ),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(metavar="N", help="MPI ranks. Default: cores, at most 4.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads. Default: cores, at most 4.")
    ] = None,
    launcher: Launcher = None,
    dry_run: DryRun = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the last sample's files where they are.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The summary, for programs, alone on stdout.")
    ] = False,
    export: Annotated[
        str | None, typer.Option(metavar="FORMATS", help="Also write parquet, csv or both.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(metavar="I/N", help="Measure part I of N: one of a job array.")
    ] = None,
    submit: Annotated[
        int | None,
        typer.Option(metavar="N", help="Submit to Slurm as an array of N parts; measure nothing."),
    ] = None,
    sbatch: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION", help="With --submit: an option of sbatch; repeatable."),
    ] = None,
) -> None:
    """Measure ways of writing into DIR and say which is best, and how sure that is.

    Without --matrix a quick look: under a minute, a handful of ways, sizes that fit this machine.
    Ctrl-C, a kill or a power cut costs at most one sample; the same command goes on. Exit code 0:
    measured, 1: nothing could be measured, 2: wrong usage, 130: interrupted.

    Examples:

        penstock bench /scratch/me

        penstock bench /scratch/me --matrix sizes.toml --dry-run

        penstock bench /scratch/me --matrix sizes.toml --budget 1h --export parquet,csv

        penstock bench /scratch/me --matrix sizes.toml --submit 4 --sbatch=--nodes=2
    """
    from penstock.bench.sweep import Request

    formats = _formats(export)
    request = Request(
        directory=directory,
        matrix=matrix,
        out=out,
        budget_s=budget_seconds(budget),
        seed=seed,
        rounds=rounds,
        mpi=tuple(mpi or ()),
        ranks=ranks,
        threads=threads,
        launcher=launcher,
        keep=keep,
        part=_part(part),
    )
    if sbatch and submit is None:
        raise ArgumentError("--sbatch says how --submit submits: give both, or neither")
    if as_json and submit is not None:
        raise ArgumentError(
            "--json is the summary of what was measured, and --submit measures nothing: leave "
            "--json out here, and give it to the command that gathers the parts"
        )
    if submit is not None:
        _submit(request, submit, sbatch or [], dry_run)
        return
    _measure(request, formats, dry_run, as_json)


def _formats(text: str | None) -> list[Format]:
    words = [one for one in (text or "").split(",") if one]
    chosen: list[Format] = [known for known in _FORMATS if known in words]
    if len(chosen) != len(words):
        raise ArgumentError(f"--export must be parquet, csv or parquet,csv, got {text}")
    return chosen


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if found is None:
        raise ArgumentError(f"--part must be I/N such as 0/4, got {text}")
    return int(found[1]), int(found[2])


def _submit(request: Request, parts: int, sbatch: list[str], dry_run: bool) -> None:
    from penstock.bench import submit, sweep

    if request.part is not None:
        number, of = request.part
        raise ArgumentError(
            f"--part is what --submit gives each element of the array: leave one of them out, got "
            f"--part {number}/{of} and --submit {parts}"
        )
    made = submit.SubmitOptions(
        directory=real(sweep.results_directory(request)),
        working_directory=Path.cwd(),
        sbatch=sbatch,
        dry_run=dry_run,
    )
    submit.check(parts, made)
    sweep.check_submission(request, parts)
    command = submit.command_of(_arguments_to_repeat(sys.argv[1:]))
    typer.echo(submit.submit(command, parts, made).text())


def _arguments_to_repeat(arguments: list[str]) -> list[str]:
    """Of this command line, what each part of it is started with."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in _OF_SUBMISSION:
            next(words, None)
        elif word != "--dry-run" and not word.startswith(tuple(f"{n}=" for n in _OF_SUBMISSION)):
            kept.append(word)
    return kept


def _measure(request: Request, formats: list[Format], dry_run: bool, as_json: bool) -> None:
    from penstock.bench import sweep as sweeps

    if not dry_run and (found := sweeps.gathered(request)) is not None:
        _conclude_parts(found, formats, as_json)
        return
    with trials():
        sweep = sweeps.prepare(request)
        for note in sweep.notes:
            tell(note)
        if not sweep.cases:
            tell(f"part {request.part[0] if request.part else 0} has no cell: nothing to measure")
            return
        if dry_run:
            sweep.check_earlier()
            _print_plan(sweep, as_json)
            return
    tell(f"seed {sweep.seed}; results in {sweep.out}")
    ending = run_shown(sweep)
    say_how_it_ended(ending, sweep.out)
    from penstock.bench.store import load

    results = load(sweep.samples_file)
    stem = sweep.samples_file.stem
    good = bool(results.headers) and _conclude(results, sweep.out, formats, as_json, stem)
    if ending.reason == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if not good:
        raise typer.Exit(1)


def _conclude_parts(found: Gathered, formats: list[Format], as_json: bool) -> None:
    for note in found.notes:
        tell(note)
    if found.results is None or not _conclude(found.results, found.out, formats, as_json):
        raise typer.Exit(1)


def _conclude(
    results: Results, out: Path, formats: list[Format], as_json: bool, stem: str = "samples"
) -> bool:
    """Tell what the samples say; whether there is anything to tell."""
    from penstock.bench import render, summary

    said = summary.summarise(results)
    if as_json:
        print_json(said.as_json())
    else:
        render.print_summary(said, console())
        _print_next(said, results, out)
    if formats:
        _export(results, out, formats, stem)
    return any(cell.ranking.best is not None for cell in said.cells)


def _print_next(said: Summary, results: Results, out: Path) -> None:
    from penstock.cli.advice import advice

    typer.echo(f"\nresults: {out}")
    for line in advice(said, results):
        typer.echo(line)
    typer.echo(f"against another run: penstock compare OTHER {shlex.quote(str(out))}")
    typer.echo(f"as a page: penstock report {shlex.quote(str(out))}")


def _export(results: Results, out: Path, formats: list[Format], stem: str) -> None:
    from penstock.bench.export import export

    for path in export(results, out, formats, stem):
        tell(f"{path} written")


def _print_plan(sweep: Sweep, as_json: bool) -> None:
    """What would run, and how long; nothing is stored."""
    from penstock.bench.estimate import samples_range
    from penstock.bench.store import require_nobody_writes
    from penstock.bench.sweep import estimate

    require_nobody_writes(sweep.samples_file)  # whose directory, and mark of processes, is this one
    guess = estimate(sweep)
    least, most = samples_range(sweep.plan)
    if as_json:
        plan = [m.as_plan() for m in sweep.measurements()]
        told: dict[str, object] = {"name": sweep.name, "out": str(sweep.out), "rate": sweep.rate}
        told |= {"samples_at_least": least, "samples_at_most": most, "measurements": plan}
        print_json(told | {"estimate_s": guess.seconds, "estimate_source": guess.source})
        return
    for cell in dict.fromkeys(case.cell for case in sweep.cases):
        typer.echo(cell)
        for one in sweep.measurements():
            if one.cell == cell:
                typer.echo(f"  {one.variant}: {shlex.join(one.command)}")
    cells = len({case.cell for case in sweep.cases})
    typer.echo(
        f"{number_of(cells, 'cell')}, {number_of(len(sweep.cases), 'measurement')}, {least} to "
        f"{most} samples with warm-ups and canaries, into {sweep.out}"
    )
    for failed in guess.failed:
        typer.echo(f"the pilot failed: {failed}")
    if guess.seconds is not None:
        limit = f", budget {duration_text(sweep.budget_s)}" if sweep.budget_s else ""
        typer.echo(f"about {duration_text(guess.seconds)} ({guess.source}){limit}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bench")(bench)
