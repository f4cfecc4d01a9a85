"""Summaries and comparisons for people: no number without its spread and its count.

MiB/s and GiB/s here, bytes per second in files. Brackets hold the 95 % interval of the median, and
of a ratio. A table that the terminal is too narrow for becomes lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.bench.differences import Difference, Differences
from penstock.bench.noise import Finding
from penstock.bench.provenance import place_of
from penstock.bench.statistics import Verdict
from penstock.bench.summary import (
    Against,
    CellSummary,
    RateSummary,
    Summary,
    VariantSummary,
)
from penstock.words import number_of

_MIB = 2.0**20
_COLOURS: dict[Verdict, str] = {
    "faster": "green",
    "slower": "red",
    "same": "cyan",
    "unclear": "yellow",
}


def rate_text(rate: RateSummary | None) -> str:
    """``1.31 GiB/s [1.22-1.40] n=10``; a dash where there is none."""
    if rate is None:
        return "-"
    scale, unit = (
        (_MIB * 1024, "GiB/s") if rate.median_bytes_per_s >= 1000 * _MIB else (_MIB, "MiB/s")
    )
    low, median, high = (
        _three_digits(v / scale)
        for v in (rate.low_bytes_per_s, rate.median_bytes_per_s, rate.high_bytes_per_s)
    )
    return f"{median} {unit} [{low}-{high}] n={rate.n}"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f}"


def ratio_text(ratio: float, low: float, high: float) -> str:
    """``0.93 [0.90-0.96]``; two digits of small ones, ``0.0071 [0.0068-0.0074]``."""
    r, lo, hi = (f"{v:.2f}" if v >= 0.1 else f"{v:.2g}" for v in (ratio, low, high))
    return f"{r} [{lo}-{hi}]"


def verdict_text(cell: CellSummary) -> str:
    """Who is best and how sure that is, in a sentence."""
    ranking = cell.ranking
    if ranking.best is None:
        return "no best: no variant has valid samples"
    words = [f"best: {ranking.best}"]
    if ranking.as_good:
        good = ", ".join(ranking.as_good)
        words.append(f"as good within {100 * ranking.margin:g} %: {good}")
    if ranking.not_told_apart:
        words.append(f"not told apart from it: {', '.join(ranking.not_told_apart)}")
    if ranking.slower:
        words.append(f"slower: {', '.join(ranking.slower)}")
    if len(words) == 1:
        words.append("it was compared with nothing")
    return "; ".join(words)


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Print a summary.

    Parameters
    ----------
    summary : Summary
        Of penstock.bench.summary.
    console : Console, optional
        Where to; by default stdout.
    """
    out = console or Console(emoji=False)
    out.print(
        f"[bold]{escape(summary.name)}[/]  {number_of(summary.samples, 'sample')} of "
        f"{number_of(len(summary.cells), 'cell')}, ranked by the {summary.rate} rate, "
        f"{_seeds(summary)}, {_where(summary)}",
        highlight=False,
    )
    for cell in summary.cells:
        out.print()
        _print_cell(cell, summary, out)
    _print_noise(summary, out)


def _seeds(summary: Summary) -> str:
    plural = "s" if len(summary.seeds) > 1 else ""
    return f"seed{plural} {', '.join(map(str, summary.seeds))}"


def _where(summary: Summary) -> str:
    hosts = dict.fromkeys(p.host for p in summary.provenances if p.host)
    types = dict.fromkeys(place_of(p.file_system) for p in summary.provenances if p.file_system)
    return escape(" ".join(filter(None, [", ".join(hosts), ", ".join(filter(None, types))])))


def _print_cell(cell: CellSummary, summary: Summary, out: Console) -> None:
    against = {a.variant: a for a in cell.ranking.against}
    table = _table(cell, against)
    if fits(table, out):
        out.print(table, highlight=False)
    else:
        for line in _lines(cell, against):
            out.print(line, highlight=False)
    say(out, verdict_text(cell), 2)
    for warning in summary.warnings:
        if warning.cell == cell.cell:
            colour = "red" if warning.name in ("invalid", "failed") else "yellow"
            say(out, warning.text, 2, colour)
            say(out, warning.remedy, 4)


def say(out: Console, text: str, indent: int = 0, style: str = "") -> None:
    """A sentence; where it is broken, its lines stay indented."""
    out.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))


def _table(cell: CellSummary, against: dict[str, Against]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", title_justify="left")
    table.title = f"[bold]{escape(cell.cell)}[/]"
    for heading in ("  variant", "application", "actual", "spread", "of the best", "verdict"):
        table.add_column(heading, no_wrap=True)
    for v in cell.variants:
        table.add_row(
            f"  {escape(v.variant)}",
            escape(rate_text(v.application)),
            escape(rate_text(v.actual)),
            _spreads(v),
            escape(_ratio(cell, v, against)),
            _verdict(cell, v, against),
        )
    return table


def _lines(cell: CellSummary, against: dict[str, Against]) -> Iterator[str]:
    yield f"[bold]{escape(cell.cell)}[/]"
    for v in cell.variants:
        yield f"  {escape(v.variant)}  {_verdict(cell, v, against)}"
        yield f"    application {escape(rate_text(v.application))}"
        yield f"    actual {escape(rate_text(v.actual))}"
        yield f"    spread {_spreads(v)}, of the best {escape(_ratio(cell, v, against))}"


def _spreads(v: VariantSummary) -> str:
    return _percents(v.application, v.actual)


def _percents(*rates: RateSummary | None) -> str:
    """The spreads of some rates, (max - min) / median: ``11/20 %``."""
    return f"{'/'.join(f'{100 * r.spread:.0f}' if r else '-' for r in rates)} %"


def _ratio(cell: CellSummary, v: VariantSummary, against: dict[str, Against]) -> str:
    if v.variant == cell.ranking.best:
        return "1"
    a = against.get(v.variant)
    return ratio_text(a.ratio, a.low, a.high) if a else "-"


def _verdict(cell: CellSummary, v: VariantSummary, against: dict[str, Against]) -> str:
    if v.invalid:
        return "[bold red]INVALID[/]"
    if v in cell.not_writing:
        return "[dim]writes nothing[/]"
    if v.variant == cell.ranking.best:
        return "[bold green]best[/]"
    a = against.get(v.variant)
    return f"[{_COLOURS[a.verdict]}]{a.verdict}[/]" if a else "[red]no samples[/]"


def _print_noise(summary: Summary, out: Console) -> None:
    out.print()
    c = summary.canaries
    if c.n and c.ratio is not None and c.low is not None and c.high is not None:
        say(out, f"canaries: the same measured twice: {ratio_text(c.ratio, c.low, c.high)} n={c.n}")
    print_findings(summary.findings, out)
    for notice in summary.notices:
        say(out, f"note: {notice}", 0, "yellow")


def print_findings(findings: Sequence[Finding], out: Console) -> None:
    """What disturbed the session; that nothing was found is said too."""
    if not findings:
        say(out, "noise: nothing that disturbed was found")
    for f in findings:
        where = f" of {f.variant} in {f.cell}" if f.cell else ""
        say(out, f"noise: {f.name}{where}: {f.evidence}", 0, "yellow")
        say(out, f.remedy, 4)


def print_differences(found: Differences, console: Console | None = None) -> None:
    """Print a comparison of two sets of results."""
    out = console or Console(emoji=False)
    say(out, f"A: {found.a}")
    say(out, f"B: {found.b}")
    say(out, "ratio: rate of B over rate of A; above 1, B is better", 0, "dim")
    out.print()
    table = _difference_table(found)
    if fits(table, out):
        out.print(table, highlight=False)
    else:
        for d in found.differences:
            _print_difference(d, out)
    out.print()
    for d in found.differences:
        if d.verdict == "unclear":
            say(out, f"{_called(d)}, {d.rate}: {d.why}")
    for notice in found.notices:
        say(out, f"note: {notice}", 0, "yellow")
    say(out, _overall(found), 0, "bold")


def fits(table: Table, out: Console) -> bool:
    """Whether nothing of a table has to be cut or folded."""
    endless = out.options.update(width=10_000)
    return Measurement.get(out, endless, table).maximum <= out.width


def _called(d: Difference) -> str:
    """``cell/variant``, or ``cell: x -> y`` where two variants are compared."""
    if d.variant_a == d.variant_b:
        return f"{d.cell}/{d.variant_a}"
    return f"{d.cell}: {d.variant_a} -> {d.variant_b}"


def _difference_table(found: Differences) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("cell", "rate", "A", "B", "spread", "ratio", "verdict"):
        table.add_column(heading, no_wrap=True)
    for d in found.differences:
        colour = _COLOURS[d.verdict]
        table.add_row(
            escape(_called(d)),
            d.rate,
            escape(rate_text(d.a)),
            escape(rate_text(d.b)),
            _percents(d.a, d.b),
            escape(_ratio_of(d)),
            f"[{colour}]{d.verdict}[/]",
        )
    return table


def _print_difference(d: Difference, out: Console) -> None:
    out.print(f"{escape(_called(d))}  [{_COLOURS[d.verdict]}]{d.verdict}[/]", highlight=False)
    for line in (
        f"{d.rate} A {rate_text(d.a)}",
        f"{d.rate} B {rate_text(d.b)}",
        f"ratio {_ratio_of(d)}, spread {_percents(d.a, d.b)}",
    ):
        say(out, line, 2)


def _ratio_of(d: Difference) -> str:
    if d.ratio is None or d.low is None or d.high is None:
        return "-"
    return ratio_text(d.ratio, d.low, d.high)


def _overall(found: Differences) -> str:
    counts = Counter(d.verdict for d in found.differences)
    said = [f"{n} {verdict}" for verdict in _COLOURS if (n := counts[verdict])]
    worse = [_called(d) for d in found.differences if d.worse]
    text = f"B is: {', '.join(said)} (margin {100 * found.margin:g} %)"
    return f"{text}; worse: {', '.join(dict.fromkeys(worse))}" if worse else text
