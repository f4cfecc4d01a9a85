"""A report on two results of penstock bench: is B faster than A?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from penstock.bench.differences import Difference, Differences, Side
from penstock.bench.render import rate_text, ratio_text
from penstock.bench.sample import Provenance, RateKind, Sample
from penstock.report import anew, machine, phases, verdict
from penstock.report.figures import ratios
from penstock.report.load import Wanted
from penstock.report.model import Caution, Command, Drawn, Report, Section, Table


def report(
    a: Side, b: Side, found: Differences, wanted: Wanted, rate: RateKind | None = None
) -> Report:
    """The whole report: of what is ``wanted`` of both, by one ``rate`` or by each there is."""
    return Report(
        title="Penstock report: B against A",
        subtitle=f"A: {found.a}; B: {found.b}",
        verdict=verdict.of_differences(found),
        sections=(
            _ratios(found),
            _phases(a, b),
            machine.section(*_provenances(a, b)),
        ),
        cautions=(*map(Caution, wanted.notes()), *_cautions(found)),
        commands=(
            Command("this report", _this(a, b, found, wanted, rate)),
            *_commands(a, b, found, wanted, rate),
        ),
    )


def _ratios(found: Differences) -> Section:
    rows = tuple(
        (
            ratios.called(d),
            d.rate,
            rate_text(d.a),
            rate_text(d.b),
            _ratio(d),
            "-" if d.p is None else f"{d.p:.2g}",
            d.verdict,
            d.why,
        )
        for d in found.differences
    )
    heads = ("what", "rate", "A", "B", "B over A", "p", "verdict", "why")
    table = Table(heads, rows, "All comparisons")
    if not any(d.ratio for d in found.differences):
        return Section("ratios", "B against A", (), (table,))
    figure = ratios.figure(found.differences, found.margin)
    return Section("ratios", "B against A", (), (Drawn(figure, table),))


def _ratio(d: Difference) -> str:
    if d.ratio is None or d.low is None or d.high is None:
        return "-"
    return ratio_text(d.ratio, d.low, d.high)


def _phases(a: Side, b: Side) -> Section:
    """Both sides of every cell in one figure."""
    by_cell: dict[str, dict[str, Sequence[Sample]]] = {}
    for letter, side in (("A", a), ("B", b)):
        for (cell, variant), samples in side.groups().items():
            by_cell.setdefault(cell, {})[f"{variant}, {letter}"] = samples
    drawn = [
        made
        for number, (cell, own) in enumerate(by_cell.items(), start=1)
        if (made := phases.of_cell(number, cell, dict(sorted(own.items())))) is not None
    ]
    text = () if drawn else ("The runs did not tell where their time went.",)
    return Section("phases", "Where the time went", text, tuple(drawn))


def _provenances(a: Side, b: Side) -> tuple[list[Provenance], list[str]]:
    sides = (("A", a), ("B", b))
    both = [(name, p) for name, side in sides for p in side.results.provenances.values()]
    if a.results is b.results:
        both = [(name, p) for name, p in both if name == "A"]
    return [p for _, p in both], [name for name, _ in both]


def _cautions(found: Differences) -> Iterator[Caution]:
    for d in found.differences:
        if verdict.is_broken(d):
            yield Caution(f"{ratios.called(d)}, {d.rate}: {d.why}", grave=True)
    for notice in found.notices:
        yield Caution(notice)


def _this(a: Side, b: Side, found: Differences, wanted: Wanted, rate: RateKind | None) -> str:
    words = ["penstock", "report", a.name, b.name, *(["--rate", rate] if rate else [])]
    return shlex.join([*words, "--margin", f"{found.margin:g}", *wanted.words()])


def _commands(
    a: Side, b: Side, found: Differences, wanted: Wanted, rate: RateKind | None
) -> Iterator[Command]:
    words = ["penstock", "compare", a.name, b.name, "--rate", rate or "both"]
    words += ["--margin", f"{found.margin:g}", *wanted.words()]
    yield Command("the comparison, with an exit code", shlex.join(words))
    for letter, side in (("A", a), ("B", b)):
        yield from anew.commands(side.results, f"{letter} anew")
