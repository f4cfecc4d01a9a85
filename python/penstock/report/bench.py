"""A report on the results of penstock bench."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.bench.render import rate_text, ratio_text, verdict_text
from penstock.bench.sample import Header, RateKind, Sample
from penstock.bench.store import Results
from penstock.bench.summary import CellSummary, Summary, VariantSummary
from penstock.report import anew, machine, parameters, phases, runs, verdict
from penstock.report.figures import heat, plan, ranking, series
from penstock.report.figures.frame import Figure
from penstock.report.figures.rates import KINDS
from penstock.report.load import Wanted
from penstock.report.model import Caution, Command, Drawn, Report, Section, Table
from penstock.report.words import counts
from penstock.words import number_of

_MOST_DRAWN = 3  # cells whose courses and phases are drawn; the others are named
_GRAVE = ("invalid", "failed")


@dataclass(frozen=True)
class Session:
    """What the sections are made of."""

    name: str  # of the source, as the command line gave it
    results: Results
    summary: Summary
    wanted: Wanted

    @cached_property
    def header(self) -> Header:
        """The headers of all parts as one: each has the measurements of its own cells."""
        first, *others = self.results.headers
        planned = [m for one in (first, *others) for m in parameters.measurements(one)]
        return first.model_copy(update={"plan": {**first.plan, "measurements": planned}})

    @cached_property
    def chosen(self) -> verdict.Chosen | None:
        """The variant that the verdict names."""
        return verdict.choose(self.summary.cells)

    @cached_property
    def drawn(self) -> list[CellSummary]:
        """The cells whose courses and phases are drawn: first where the chosen one is best."""
        best = self.chosen.best if self.chosen else ()
        first = {c.cell for c in best}
        others = [c for c in self.summary.cells if c.cell not in first]
        return [*best, *others][:_MOST_DRAWN]

    @property
    def left_out(self) -> str:
        """How many cells are not drawn, and the remedy; empty where all are."""
        rest = len(self.summary.cells) - len(self.drawn)
        if not rest:
            return ""
        return (
            f"Drawn for {len(self.drawn)} cells, {rest} more are not: --cell NAME reports on those "
            "that you name."
        )

    @cached_property
    def _runs(self) -> dict[tuple[str, str], list[Sample]]:
        found: dict[tuple[str, str], list[Sample]] = {}
        for s in self.results.samples:
            if s.counts:
                found.setdefault((s.cell, s.variant), []).append(s)
        return found

    def own(self, cell: str, variant: str) -> list[Sample]:
        """The samples of a variant that count."""
        return self._runs.get((cell, variant), [])


def report(session: Session) -> Report:
    """The whole report."""
    summary = session.summary
    return Report(
        title=f"Penstock report: {summary.name}",
        subtitle=f"{summary.samples} samples of {number_of(len(summary.cells), 'cell')}, "
        f"ranked by the {summary.rate} rate; measured {summary.created} by penstock "
        f"{summary.penstock}, seed {summary.seed}",
        verdict=verdict.of_session(summary),
        sections=(
            _over_time(session),
            _ranked(session),
            _maps(session),
            _phases(session),
            _plan(session),
            machine.section(summary.provenances),
        ),
        cautions=tuple(_cautions(session)),
        commands=tuple(_commands(session)),
    )


# --- Both rates over time ---


def _over_time(session: Session) -> Section:
    drawn = [*_within_runs(session), *_over_session(session)]
    text = [] if session.chosen else ["No way of writing has valid samples."]
    if not any(d.figure.name.startswith("run-") for d in drawn):
        text.append(
            f"The course within a run is not drawn: no run of the chosen way recorded "
            f"{series.LEAST_BINS} bins of time or more (--bins of the measuring program)."
        )
    text.append(session.left_out)
    return Section("time", "Both rates over time", tuple(filter(None, text)), tuple(drawn))


def _within_runs(session: Session) -> Iterator[Drawn]:
    if session.chosen is None:
        return
    for number, cell in enumerate(session.drawn, start=1):
        found, _ = runs.series(session.own(cell.cell, session.chosen.variant))
        if max((len(s.application_bytes) for s in found), default=0) < series.LEAST_BINS:
            continue
        title = f"Within a run: {session.chosen.variant} in {cell.cell}"
        figure = series.within_runs(number, title, found)
        yield Drawn(figure, _courses(found))


def _courses(found: Sequence[runs.Series]) -> Table:
    rows = []
    for kind in KINDS:
        c = series.course(found, kind)
        if c is not None:
            rows += [
                (
                    kind,
                    f"{i * found[0].bin_s:g}-{(i + 1) * found[0].bin_s:g}",
                    *(f"{v / 2**20:.1f}" for v in (c.low[i], c.typical[i], c.high[i])),
                )
                for i in range(len(c.typical))
            ]
    heads = ("rate", "seconds", "lowest MiB/s", "typical run MiB/s", "highest MiB/s")
    return Table(heads, tuple(rows), f"n={len(found)} runs")


def _over_session(session: Session) -> Iterator[Drawn]:
    for number, cell in enumerate(session.drawn, start=1):
        own = {v.variant: session.own(cell.cell, v.variant) for v in cell.writing}
        rated = {v: ss for v, ss in own.items() if any(s.rate(k) for s in ss for k in KINDS)}
        if rated:
            yield Drawn(series.over_session(number, cell.cell, rated), _each_run(rated))


def _each_run(own: dict[str, list[Sample]]) -> Table:
    rows = tuple(
        (variant, str(s.block), s.started, *(_mib(s.rate(kind)) for kind in KINDS))
        for variant, samples in own.items()
        for s in samples
    )
    return Table(("variant", "block", "begun", "application MiB/s", "actual MiB/s"), rows)


def _mib(rate: float | None) -> str:
    return f"{rate / 2**20:.1f}" if rate else "-"


# --- Ranked ---


def _ranked(session: Session) -> Section:
    parts: list[Drawn | Table] = []
    if len(session.summary.cells) > 1:
        parts.append(_best_of_each(session.summary))
    text = []
    for number, cell in enumerate(session.summary.cells, start=1):
        if any(v.rate(kind) for v in cell.writing for kind in KINDS):
            parts.append(Drawn(ranking.figure(number, cell), _standings(cell)))
        else:
            text.append(f"{cell.cell}: {verdict_text(cell)}.")
    return Section("ranked", "Methods ranked", tuple(text), tuple(parts))


def _best_of_each(summary: Summary) -> Table:
    rows = []
    for cell in summary.cells:
        best = next((v for v in cell.variants if v.variant == cell.ranking.best), None)
        next_best = verdict.lead(cell)
        rows.append(
            (
                cell.cell,
                best.variant if best else "none is valid",
                rate_text(best.rate(summary.rate)) if best else "-",
                f"{next_best[1]} times {next_best[0].variant}" if next_best else "-",
                "shown" if verdict.is_shown(cell) else "not told apart" if next_best else "-",
            )
        )
    heads = ("cell", "best", f"{summary.rate} rate", "how much faster than the next", "how sure")
    return Table(heads, tuple(rows), "The best of each cell")


def _standings(cell: CellSummary) -> Table:
    against = {a.variant: a for a in cell.ranking.against}
    rows = []
    for v in cell.variants:
        a = against.get(v.variant)
        rows.append(
            (
                v.variant,
                rate_text(v.application),
                rate_text(v.actual),
                _spreads(v),
                ratio_text(a.ratio, a.low, a.high) if a else "-",
                f"{a.p:.2g}" if a else "-",
                ranking.standing(cell, v).partition(":")[0],
            )
        )
    heads = ("variant", "application", "actual", "spreads", "of the best", "p", "verdict")
    return Table(heads, tuple(rows), cell.cell)


def _spreads(v: VariantSummary) -> str:
    said = [f"{100 * r.spread:.0f}" if (r := v.rate(kind)) else "-" for kind in KINDS]
    return f"{'/'.join(said)} %"


# --- Heat maps ---


def _maps(session: Session) -> Section:
    title = "Heat maps over the two most telling parameters"
    header, summary = session.header, session.summary
    points = parameters.points(summary.cells, header, summary.rate)
    told = parameters.telling(points)
    pair = parameters.two(points)
    if pair is None:
        return Section("maps", title, ("There are not two parameters that vary, so no map.",))
    names = ", ".join(f"{t.name} {100 * t.share:.0f} %" for t in told) or "none"
    text = [
        f"Of the variance of the {summary.rate} rates' logarithms explain, each alone: {names}."
    ]
    whose = None if parameters.VARIANT in pair else session.chosen
    if whose is not None:
        text.append(f"The maps are of {whose.variant}.")
    drawn = []
    for kind in KINDS:
        own = [
            p
            for p in parameters.points(summary.cells, header, kind)
            if whose is None or p.values[parameters.VARIANT] == whose.variant
        ]
        if own:
            drawn.append(_map(kind, own, pair))
    return Section("maps", title, tuple(text), tuple(drawn))


def _map(kind: RateKind, own: list[parameters.Point], pair: tuple[str, str]) -> Drawn:
    made = parameters.mapped(own, *pair)
    several = any(len(s.rates) > 1 for s in made.squares)
    n = counts([r.n for s in made.squares for r in s.rates])
    caption = f"Medians, {n}; darker is faster. Intervals are under the pointer and in The numbers."
    if several:
        caption += " A square of several cells shows the median of their medians."
    rows = tuple(
        (s.row, s.column, f"{s.rate / 2**20:.1f}", str(sum(r.n for r in s.rates)), s.said)
        for s in made.squares
    )
    numbers = Table((made.row_name, made.column_name, "MiB/s", "n", "in full"), rows)
    return Drawn(heat.figure(kind, made, caption), numbers)


# --- Phases and the plan ---


def _phases(session: Session) -> Section:
    drawn = []
    for number, cell in enumerate(session.drawn, start=1):
        own = {v.variant: session.own(cell.cell, v.variant) for v in cell.variants}
        made = phases.of_cell(number, cell.cell, own)
        if made is not None:
            drawn.append(made)
    text = session.left_out if drawn else "The runs did not tell where their time went."
    return Section("phases", "Where the time went", tuple(filter(None, [text])), tuple(drawn))


def _plan(session: Session) -> Section:
    title = "The plan of the chosen method"
    made = _plan_of(session)
    if isinstance(made, plan.NotDrawn):
        return Section("plan", title, (f"Not drawn: {made.why}.",))
    numbers = Table(("what",), tuple((line,) for line in made.description.split(". ") if line))
    return Section("plan", title, (), (Drawn(made, numbers),))


def _plan_of(session: Session) -> Figure | plan.NotDrawn:
    if session.chosen is None:
        return plan.NotDrawn("no way of writing was chosen")
    cell = session.chosen.best[0].cell
    result = next(
        (s.result for s in reversed(session.own(cell, session.chosen.variant)) if s.result), None
    )
    if result is None:
        return plan.NotDrawn("the chosen way has no result")
    method = result.engine.method if result.engine else None
    work = plan.work_of(method, result.workers, result.parameters)
    return work if isinstance(work, plan.NotDrawn) else plan.figure(work)


# --- Warnings and commands ---


def _cautions(session: Session) -> Iterator[Caution]:
    for d in sorted(session.summary.warnings, key=lambda d: d.name not in _GRAVE):
        yield Caution(f"{d.cell}: {d.text}", d.remedy, d.name in _GRAVE)
    for f in session.summary.findings:
        where = f" of {f.variant} in {f.cell}" if f.cell else ""
        yield Caution(f"{f.name}{where}: {f.evidence}", f.remedy)
    yield from map(Caution, session.wanted.notes())
    for notice in session.summary.notices:
        yield Caution(notice)
    for e in session.results.events:
        yield Caution(f"{e.at}: {e.what}: {e.text}")


def _commands(session: Session) -> Iterator[Command]:
    yield Command("this report", shlex.join(_words(session)))
    yield from anew.commands(session.results, "the session anew")
    kept = {(s.cell, s.variant) for s in session.results.samples}
    for one in parameters.measurements(session.header):
        if (one["cell"], one["variant"]) in kept:
            yield Command(f"{one['variant']} of {one['cell']}", _line(one))


def _words(session: Session) -> list[str]:
    """The command line of this report."""
    words = ["penstock", "report", session.name, "--rate", session.summary.rate]
    for cell in session.summary.cells[:1]:
        words += ["--margin", f"{cell.ranking.margin:g}"]
    return words + session.wanted.words()


def _line(measurement: Mapping[str, Any]) -> str:
    env, command = measurement.get("env"), measurement.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    if isinstance(env, dict) and env:
        words = ["env", *(f"{name}={value}" for name, value in env.items()), *words]
    return shlex.join(words)
