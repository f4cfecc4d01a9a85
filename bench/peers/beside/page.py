"""A report for people: text for a terminal, Markdown for docs/benchmarks and for the README.

Rates in MB/s (10^6 bytes per second) with the interval of their median; no number without both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from beside.measured import NOT_KEPT
from beside.report import Report
from beside.values import CellReport, ConclusionReport, Spread, Variant
from penstock.bench.noise import Finding
from penstock.bench.provenance import place_of
from penstock.bench.sample import Provenance

_HEAD = (
    "cell",
    "best peer",
    "its MB/s",
    "Penstock, MB/s",
    "ratio",
    "page ring, MB/s",
    "of the ring",
    "other files, MB/s",
)
_README = """\
## Beside what programs use otherwise

Synced collective writes in warm memory on {place}: Penstock's default method, and the fastest of
all MPI-IO libraries, each at its default and at the best of a grid of settings. Ratio: Penstock's
rate over that peer's, paired by block, with the interval of its median. The ceiling is a program
that knows the file's layout beforehand.

{table}

`make bench-peers` measures it on your machine. {written}: {verdicts}.
Which these are, independent, unsynced and cold writes, every peer at every setting, and the raw
samples: [{page}]({page}).
"""
_TIMES = """\
## Where the time goes

Milliseconds that the slowest rank spent in the open, in the writes (waiting for others included),
in the final sync and in the close, medians. The page ring opens no file of the MPI library, which
Penstock must."""
_PHASES = ("open", "write", "sync", "close")
_RULE = """\
A cell *holds* when the whole interval is at or above the threshold, *fails* when the whole of it is
below, else it is *undecided*; a conclusion fails by one failing cell."""
_ALL = ("competitor", "setting", "MB/s", "until on the device", "n", "failures")


def text(report: Report) -> str:
    """For a terminal."""
    parts = [_as_text(_HEAD, [_row(c) for c in report.cells])]
    parts += [_as_text(("conclusion", "verdict", "predicted", ""), _conclusions(report))]
    parts += _unwell(report)
    return "\n\n".join(parts)


def markdown(report: Report, opening: str, raw: str, command: str) -> str:
    """The page under docs/benchmarks.

    Parameters
    ----------
    report : Report
        Of a run.
    opening : str
        What the page begins with, the specification's opening.md; says {date}, {penstock}, {place},
        {samples}, {seed}, {command} and {raw}.
    raw : str
        Where its samples are, relative to the page.
    command : str
        What made the page from them.
    """
    parts = [_opening(report, opening, raw, command)]
    parts += [] if report.conclusions_kept else [NOT_KEPT]
    parts += ["## Conclusions", _conclusion_page(report)]
    for family in report.families:
        cells = [c for c in report.cells if c.family == family]
        parts += [f"## {family}", as_markdown(_HEAD, [_row(c) for c in cells])]
        parts += [_details(cell) for cell in cells]
    parts += _times(report)
    unwell = _unwell(report)
    if unwell:
        parts += ["## What to doubt", *unwell]
    return "\n\n".join(parts) + "\n"


def readme(report: Report, page: str) -> str:
    """The README's section, with its heading."""
    rows = [
        (
            c.name,
            _title(c),
            _rate(_best(c)),
            _rate(_of(c, "penstock")),
            _ratio(c.ratio),
            _ratio(c.of_ceiling),
        )
        for c in report.cells
        if c.cell.end == "sync" and c.cell.regime == "warm" and c.cell.access == "collective"
    ]
    head = ("cell-ranks", "best peer", "its MB/s", "Penstock, MB/s", "ratio", "of the ceiling")
    table = as_markdown(head, rows)
    verdicts = ", ".join(f"*{c.name}* {c.verdict}" for c in report.conclusions)
    written = "Conclusions written down before" if report.conclusions_kept else "Conclusions"
    return _README.format(
        place=_place(report), table=table, written=written, verdicts=verdicts, page=page
    )


# ---- pieces -----------------------------------------------------------------------------------


def _opening(report: Report, opening: str, raw: str, command: str) -> str:
    return opening.format(
        date=report.created[:10],
        penstock=report.penstock,
        place=_place(report),
        samples=report.samples,
        seed=report.seed,
        command=command,
        raw=raw,
    ).rstrip()


def _place(report: Report) -> str:
    found = report.provenances[-1] if report.provenances else None
    return machine(found) if found else "on an unknown machine"


def machine(found: Provenance) -> str:
    """A machine and its file system, for a person: ``2 cores, 24 GiB, ext4, Linux 6.18.44``."""
    kind = place_of(found.file_system)
    memory = found.memory_bytes / 2**30
    return f"{found.cpus} cores, {memory:.0f} GiB, {kind}, Linux {found.kernel.split('-')[0]}"


def _conclusions(report: Report) -> list[tuple[str, ...]]:
    return [
        (c.name, c.verdict.upper() if c.verdict == "fails" else c.verdict, c.predicted, c.says)
        for c in report.conclusions
    ]


def _conclusion_page(report: Report) -> str:
    head = ("", "conclusion", "verdict", "predicted", "decided by")
    asked = [c for c in report.conclusions if any(v.verdict != "not measured" for v in c.cells)]
    rows = [(c.name, c.says, f"**{c.verdict}**", c.predicted, _decided(c)) for c in asked]
    left = [f"*{c.name}*" for c in report.conclusions if c not in asked]
    left_out = f" No sample of this run is of {', '.join(left)}." if left else ""
    known = [c for c in report.cells if c.as_expected is not None]
    met = sum(bool(c.as_expected) for c in known)
    table = as_markdown(head, rows)
    return (
        f"{_RULE}\n\n{table}\n\nOf {len(known)} ratios that were predicted, {met} came out within "
        f"the predicted range.{left_out}"
    )


def _decided(conclusion: ConclusionReport) -> str:
    """The cells that decided: those with the verdict, unless all have it. Or the families."""
    total = len(conclusion.cells)
    if total == 1 and conclusion.cells[0].cell == "families":
        return conclusion.cells[0].why
    own = [c for c in conclusion.cells if c.verdict == conclusion.verdict]
    if conclusion.verdict == "holds" or not own:
        return f"{total} cells"
    shown = "; ".join(f"{c.cell}: {c.why}" for c in own[:6])
    more = f"; and {len(own) - 6} more" if len(own) > 6 else ""
    return f"{len(own)} of {total} cells: {shown}{more}"


def _row(cell: CellReport) -> tuple[str, ...]:
    others = [v for v in cell.variants if v.kind == "instead" and not v.same_file]
    return (
        cell.name,
        cell.best_peer or "none",
        _rate(_best(cell)),
        _rate(_of(cell, "penstock")),
        _ratio(cell.ratio) + ("" if cell.as_expected in (None, True) else " (!)"),
        _rate(_of(cell, "ceiling")),
        _ratio(cell.of_ceiling),
        "; ".join(f"{v.name} {_rate(v)}" for v in others) or "-",
    )


def _details(cell: CellReport) -> str:
    rows = [
        (
            v.name,
            ", ".join(f"{k}={w}" for k, w in v.setting.items()) or "default",
            _rate(v),
            _interval(v.actual, 1e6),
            str(v.rate.n if v.rate else 0),
            f"{v.failures}: {v.failed[0]}" if v.failed else "0",
        )
        for v in sorted(cell.variants, key=lambda v: -(v.rate.median if v.rate else 0.0))
    ]
    told = f", {_bytes(cell)} MB"
    expected = cell.cell.expected
    if expected:
        told += f", predicted {expected[0]:g}-{expected[1]:g}"
    table = as_markdown(_ALL, rows)
    return f"<details><summary>{cell.name}{told}</summary>\n\n{table}\n\n</details>"


def _times(report: Report) -> list[str]:
    """Of Penstock, the best peer and the page ring; nothing where no sample tells its phases."""
    rows = [
        (c.name, *(_phases_of(v) for v in (_of(c, "penstock"), _best(c), _of(c, "ceiling"))))
        for c in report.cells
        if any(v.phases for v in c.variants)
    ]
    words = ", ".join(_PHASES)
    head = ("cell", *(f"{who}: {words}" for who in ("Penstock", "best peer", "page ring")))
    return [_TIMES, as_markdown(head, rows)] if rows else []


def _phases_of(variant: Variant | None) -> str:
    if variant is None or not variant.phases:
        return "-"
    return ", ".join(_digits(1e3 * variant.phases[f"{name}_s"]) for name in _PHASES)


def _bytes(cell: CellReport) -> str:
    known = [v.bytes for v in cell.variants if v.bytes is not None]
    return f"{max(known) / 1e6:.0f}" if known else "?"


def _unwell(report: Report) -> list[str]:
    """Failures, findings and notices: nothing is kept from the reader."""
    lines = [
        f"{c.name}: {v.title} ({v.name}) failed {v.failures} times: {v.failed[0]}"
        for c in report.cells
        for v in c.variants
        if v.failed
    ]
    lines += [_finding(f) for f in report.findings]
    lines += report.notices
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def _finding(found: Finding) -> str:
    where = " ".join(x for x in (found.cell, found.variant) if x)
    return f"{found.name}{f' ({where})' if where else ''}: {found.evidence}"


def _best(cell: CellReport) -> Variant | None:
    return next((v for v in cell.variants if v.name == cell.best_peer), None)


def _title(cell: CellReport) -> str:
    best = _best(cell)
    if best is None:
        return "none"
    setting = ", ".join(f"{k}={v}" for k, v in best.setting.items())
    return f"{best.title}, {setting}" if setting else best.title


def _of(cell: CellReport, kind: str) -> Variant | None:
    return next((v for v in cell.variants if v.kind == kind), None)


def _rate(variant: Variant | None) -> str:
    if variant is None:
        return "-"
    if variant.rate is None:
        return "failed" if variant.failed else "-"
    return _interval(variant.rate, 1e6)


def _interval(spread: Spread | None, unit: float) -> str:
    if spread is None:
        return "-"
    low, middle, high = (_digits(x / unit) for x in (spread.low, spread.median, spread.high))
    return middle if spread.n == 1 else f"{middle} [{low}-{high}]"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    if spread.n == 1:
        return f"{spread.median:.2f} n=1"
    return f"{spread.median:.2f} [{spread.low:.2f}-{spread.high:.2f}] n={spread.n}"


def as_markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(x.replace("|", "\\|") for x in line) + " |" for line in lines
    )


def _as_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in [head, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)
