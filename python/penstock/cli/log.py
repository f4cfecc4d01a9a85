"""``penstock log``: a job's log for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock import _core, moment
from penstock.cli.output import console, shown

if TYPE_CHECKING:
    from penstock import joblog

_BAR = 24


def log(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="penstock-PROGRAM-JOB.json")
    ],
    as_json: Annotated[
        bool,
        typer.Option("--json", help="The log itself, checked, for programs; of several, an array."),
    ] = False,
) -> None:
    """Show the logs of jobs: bytes, method, phases, rates, and what degraded.

    Examples:

        penstock log penstock-app-*.json

        penstock log --json penstock-app-1234.json
    """
    from penstock import joblog
    from penstock.strict import text_of

    texts = [text_of(file) for file in files]  # once: a pipe gives its bytes once
    jobs = [joblog.parse(text, str(file)) for text, file in zip(texts, files, strict=True)]
    if as_json:
        all_of_them = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]\n"
        typer.echo(all_of_them.encode(), nl=False)
        return
    out = console()
    for i, job in enumerate(jobs):
        if i > 0:
            out.print()
        _print_job(out, job)
        for one in job.files:
            _print_file(out, job, one)


def _print_job(out: Console, job: joblog.JobLog) -> None:
    state = "" if job.state == "finished" else " [yellow](running, or killed before its end)[/]"
    seconds = job.known_elapsed_s
    took = "for a time not known" if seconds is None else f"{seconds:.1f} s"
    out.print(f"[bold]{shown(job.program)}[/] on {job.ranks} ranks, job {shown(job.job_id)}{state}")
    out.print(
        f"  {moment.local(job.start_unix_s)}, {took}, {shown(job.mpi_library)}{_build(job)}, "
        f"{shown(job.host)}",
        highlight=False,
    )
    totals = job.totals
    out.print(
        f"  {_core.human_size(totals.engine_bytes)} by engine, "
        f"{_core.human_size(totals.passthrough_bytes)} passed through, "
        f"{_count(totals.errors, 'error')}{_differ(totals.mismatched_bytes)}",
        highlight=False,
    )
    if job.not_listed:
        out.print(f"  [yellow]{job.not_listed}[/]", highlight=False)


def _build(job: joblog.JobLog) -> str:
    return f" (Penstock for {shown(job.build)})" if job.build else ""


def _print_file(out: Console, job: joblog.JobLog, file: joblog.File) -> None:
    out.print(f"\n[bold]{shown(file.path)}[/]", highlight=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for what, value in _facts(job, file, "#" if out.options.ascii_only else "█"):
        table.add_row(what, value)
    out.print(table, highlight=False)


def _facts(job: joblog.JobLog, file: joblog.File, mark: str) -> list[tuple[str, str]]:
    ran = (
        ", ".join(f"{name} ({_count(n, 'time')})" for name, n in file.algorithms.items()) or "none"
    )
    calls = ", ".join(f"{n} {shown(name)}" for name, n in file.calls.items() if n) or "none"
    facts = [
        ("bytes", f"{_core.human_size(file.engine_bytes)} by engine, "
         f"{_core.human_size(file.passthrough_bytes)} passed through"),
        *_cold(file),
        *_reads(file),
        ("method", shown(file.method)),
        ("ran", shown(ran)),
        ("calls", f"{calls}, by {_count(file.ranks, 'rank')}"),
        ("pattern", _pattern(file)),
        ("file system", shown(file.file_system or "not known")),
        ("application rate", _rate(file.application_rate_bytes_per_s)),
        ("actual rate", _actual_rate(file)),
    ]  # fmt: skip
    facts += _phases(file, mark)
    for why, times in file.degraded.items():
        facts.append(("degraded", f"[yellow]{shown(why)}[/] ({_count(times, 'time')})"))
    if file.first_error is not None:
        facts.append(("errors", f"[red]{file.errors}, first: {shown(file.first_error)}[/]"))
    if not file.closed:
        part = ": its numbers are one rank's part" if job.is_part(file) else ""
        facts.append(("state", f"[yellow]not closed when this was written{part}[/]"))
    return facts + _verified(file.verify)


def _cold(file: joblog.File) -> list[tuple[str, str]]:
    past = file.traffic.cold_bytes
    return [("cold memory", f"{_core.human_size(past)} past the page cache")] if past else []


def _reads(file: joblog.File) -> list[tuple[str, str]]:
    if not (file.read_bytes or file.engine_read_bytes):
        return []
    text = f"{_core.human_size(file.engine_read_bytes)} by engine"
    return [("read", f"{text}, {_core.human_size(file.read_bytes)} passed through")]


def _actual_rate(file: joblog.File) -> str:
    """Until the device has the bytes; the source says how it was measured, or why it was not."""
    if file.actual_rate_bytes_per_s is None:
        return shown(file.no_actual_rate)
    return f"{_rate(file.actual_rate_bytes_per_s)} ({shown(file.actual_rate_source)})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _pattern(file: joblog.File) -> str:
    if file.is_all_passed:
        return "not known: no write was served"
    p = file.pattern
    text = (
        f"{p.contiguous_calls} contiguous, {p.strided_calls} strided, {p.irregular_calls} irregular"
    )
    return text + (f", {file.passthrough_calls} not known" if file.passthrough_calls else "")


def _rate(bytes_per_s: float | None) -> str:
    return "not known" if bytes_per_s is None else f"{bytes_per_s / 2**20:,.1f} MiB/s"


def _phases(file: joblog.File, mark: str) -> list[tuple[str, str]]:
    """Seconds per phase, summed over ranks, with a bar of their share."""
    times = file.times_s
    passed = {"write calls": times.write_calls, "close": times.close}
    seconds = passed if file.is_all_passed else times.phases
    whole = sum(seconds.values()) or 1.0
    said = "seconds of all ranks together" if file.ranks > 1 else "seconds"
    return [("time in", said)] + [
        (phase, f"{s:10.4f} s  [cyan]{mark * round(_BAR * s / whole)}[/]")
        for phase, s in seconds.items()
    ]


def _verified(verify: joblog.Verify) -> list[tuple[str, str]]:
    if not (verify.verified_bytes or verify.unverified_bytes or verify.mismatched_bytes):
        return []
    text = f"{_core.human_size(verify.verified_bytes)} read back and equal"
    if verify.unverified_bytes:
        text += f", {_core.human_size(verify.unverified_bytes)} not verified"
    return [("verify", text + _differ(verify.mismatched_bytes))]


def _differ(wrong_bytes: int) -> str:
    return f", [red]{_core.human_size(wrong_bytes)} DIFFER[/]" if wrong_bytes else ""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("log")(log)
