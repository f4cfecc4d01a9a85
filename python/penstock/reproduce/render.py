"""A report for people: tables in the paper's layout, then a verdict per conclusion."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as RichTable

from penstock.bench.render import say
from penstock.reproduce.predicates import Verdict
from penstock.reproduce.report import Concluded, Entry, LawReport, Report, Row, Stretches, Table

_COLOURS: dict[Verdict, str] = {
    "holds": "green",
    "does not hold": "red",
    "undecided": "yellow",
    "cannot be tested here": "cyan",
}


def print_report(report: Report, out: Console) -> None:
    """All of a report."""
    out.print(report.title, style="bold", markup=False, highlight=False)
    say(out, report.setting)
    kinds = " and ".join(report.file_systems) or "an unknown file system"
    say(out, f"{report.size}: {report.scale}; {report.samples} samples on {kinds}")
    if report.chosen:
        say(out, report.chosen, 2)
    for note in report.notes:
        say(out, note, 2)
    for failed in report.failed:
        say(out, failed, 2, "red")
    for table in report.tables:
        _print_table(table, out)
    _print_laws(report.laws, out)
    for series in report.series:
        _print_series(series, out)
    _print_conclusions(report.conclusions, out)


def _print_table(table: Table, out: Console) -> None:
    out.print()
    said = "median, and (max - min) / median of all"
    unit = f"{table.unit}; here: {said}" if table.measured else table.unit
    say(out, f"{_placed(table.title, table.place)} [{unit}]", style="bold")
    shown = RichTable(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for name in ("", "", *table.columns):
        shown.add_column(name)
    for row in table.rows:
        _add_row(shown, row, table.measured)
    out.print(shown, highlight=False)


def _placed(title: str, place: str) -> str:
    return f"{title}, on {place}" if place else title


def _add_row(shown: RichTable, row: Row, measured: bool) -> None:
    """The paper's line and ours: what was best is under a time, as in the papers' tables."""
    if row.paper:
        shown.add_row(row.label, "paper", *(text.replace(" ", "\n", 1) for text in row.paper))
    label = "" if row.paper else row.label
    shown.add_row(label, "here", *(entry_text(entry) for entry in row.here), style="bold")
    if measured and any(row.here):
        spreads = (f"{100 * e.spread:.0f} % n={e.n}" if e else "" for e in row.here)
        shown.add_row("", "spread", *spreads, style="dim")


def entry_text(entry: Entry | None) -> str:
    """A number, and below it the best sync size; a dash where nothing was measured."""
    if entry is None:
        return "-"
    return f"{number_text(entry.value)}\n{entry.marks}".rstrip()


def number_text(value: float) -> str:
    """A number as people read it: three digits; counts whole."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _print_laws(laws: Sequence[LawReport], out: Console) -> None:
    if not laws:
        return
    out.print()
    say(out, "Laws T = K(p) n, s for n in MB; best form first, how far off it is", style="bold")
    shown = RichTable(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("call", "on", "paper", "here", "n", "which holds", "why"):
        shown.add_column(name)
    for law in laws:
        paper = ", ".join(f"{where} {text}" for where, text in law.paper.items())
        forms = zip(law.here, law.residuals, strict=True)
        here = "\n".join(f"{text} ({residual:.0%} off)" for text, residual in forms)
        n = str(law.n) if law.here else "-"
        shown.add_row(law.law, law.place, paper, here or "-", n, law.verdict or "-", law.why)
    out.print(shown, highlight=False)


def _print_series(series: Stretches, out: Console) -> None:
    out.print()
    say(out, _placed(series.title, series.place), style="bold")
    shown = RichTable(box=None, padding=(0, 2, 0, 0), header_style="bold")
    shown.add_column("stretch")
    for variant in series.variants:
        shown.add_column(variant, justify="right")
    for number, row in enumerate(series.rows, start=1):
        rates = ("-" if rate is None else number_text(rate) for rate in row)
        shown.add_row(f"{number} of {len(series.rows)}", *rates)
    out.print(shown, highlight=False)


def _print_conclusions(conclusions: Sequence[Concluded], out: Console) -> None:
    out.print()
    say(out, "Conclusions", style="bold")
    for one in conclusions:
        say(out, f"{one.verdict.upper()}: {one.says}", 0, _COLOURS[one.verdict])
        say(out, f"the paper ({one.section}): {one.numbers}", 4)
        for where in one.places:
            say(out, f"{where.place}: {where.verdict}, {where.why}", 4)
        if not one.places:
            say(out, f"here: {one.why}", 4)
    counted = {v: sum(c.verdict == v for c in conclusions) for v in _COLOURS}
    out.print()
    say(out, ", ".join(f"{number} {verdict}" for verdict, number in counted.items()))
