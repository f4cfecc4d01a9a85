"""What a run says of a paper: a verdict per conclusion, and the paper's tables beside ours.

A value with a schema of its own (``penstock.reproduction/1``). Bytes per second and seconds are in
the units that the tables name, as in the paper.
"""

from __future__ import annotations

import re
import statistics as middle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from penstock import _core
from penstock.bench.store import Results
from penstock.reproduce import conclusions, experiment, fits, plan, simulated
from penstock.reproduce.conclusions import Claim, Conclusion
from penstock.reproduce.evidence import NOT_FITTING, NOT_MEASURED, NOT_YET, Evidence
from penstock.reproduce.experiment import SeriesSpec, TableSpec
from penstock.reproduce.measures import median_stretches
from penstock.reproduce.needs import NEEDS, OF_EACH, OF_FILE_SYSTEM, file_systems, invalid
from penstock.reproduce.places import Place, Places, across, split
from penstock.reproduce.places import of as of_places
from penstock.reproduce.predicates import Rule, Verdict, every, judge

SCHEMA = "penstock.reproduction/1"
_SCALES = {"s": 1.0, "MB/s": 1e6, "MiB": 2.0**20, "calls": 1.0}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Found(_Model):
    """What a claim says of a cell."""

    where: str
    verdict: Verdict
    why: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


class AtPlace(_Model):
    """The verdict on one of several file systems."""

    place: str
    verdict: Verdict
    why: str


class Concluded(_Model):
    """A conclusion, its verdict, and what of the claims decided it, also by place."""

    id: str
    section: str
    says: str
    numbers: str
    verdict: Verdict
    why: str
    findings: list[Found] = []
    places: list[AtPlace] = []


class Entry(_Model):
    """An entry of a table: the median, (max - min) / median, and of which variant."""

    value: float
    spread: float
    n: int
    variant: str
    marks: str = ""


class Row(_Model):
    """A row: the paper's entries and ours; None where nothing was measured."""

    label: str
    paper: list[str]
    here: list[Entry | None]


class Table(_Model):
    """A table in the paper's layout; ``place`` is the file system, "" where there is one.

    What was simulated and not ``measured`` has no spread.
    """

    place: str = ""
    measured: bool = True
    title: str
    unit: str
    columns: list[str]
    rows: list[Row]


class LawReport(_Model):
    """A law: the paper's by file system, and the forms fitted here, the best first.

    ``residuals`` are root mean squares of (T - fitted T) / T; ``verdict`` is that of
    `penstock.model.scaling`, or "not judged" where samples are of busy CPUs, None where too few.
    ``n`` is the fewest samples of a cell, without those ``left_out``, of all cells, as too short.
    """

    place: str = ""
    law: str
    paper: dict[str, str]
    here: list[str]
    residuals: list[float]
    n: int = 0
    left_out: int = 0
    verdict: str | None
    why: str


class Stretches(_Model):
    """The median rate of each successive part of the calls of each variant, in MB/s."""

    place: str = ""
    title: str
    variants: list[str]
    rows: list[list[float | None]]


class Report(_Model):
    """All of it."""

    schema_name: str = Field(default=SCHEMA, alias="schema")
    paper: str
    title: str
    setting: str
    size: str
    scale: str
    earlier_design: bool = False
    """Samples of cells that the experiment no longer has."""
    notes: list[str]
    chosen: str = ""
    budget_s: float | None = None
    file_systems: list[str]
    places: dict[str, str] = {}
    directories: list[str] = []
    samples: int
    nodes: int = 1
    """Of a job, at most."""
    failed: list[str]
    conclusions: list[Concluded]
    tables: list[Table]
    laws: list[LawReport]
    series: list[Stretches]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return self.model_dump(mode="json", by_alias=True)


def report(results: Results) -> Report:
    """The report of a run's samples.

    Raises
    ------
    ArgumentError
        If they are of something else than a paper.
    """
    paper, size = plan.of_results(results)
    found = experiment.load(paper)
    evidence = plan.evidence_of(results)
    planned = of_places(evidence, plan.places_of(results))
    places = planned.measured()
    options = _parameters(results)
    earlier = plan.earlier_design(paper, planned)
    least = found.sweep(size, experiment.path_of(paper)).stopping.minimum
    return Report(
        paper=paper,
        title=found.title,
        setting=found.setting,
        size=size,
        scale=earlier or found.in_size(size).scale,
        earlier_design=bool(earlier),
        notes=[*([] if earlier else found.notes), *_not_measured(planned, places)],
        budget_s=evidence.budget_s,
        chosen=_chosen(paper, size, planned),
        file_systems=file_systems(evidence),
        directories=[place.name for place in planned.each if place.name],
        places={p.name: " and ".join(file_systems(p.evidence)) for p in places.each if p.name},
        samples=len(evidence.samples),
        nodes=_nodes(evidence),
        failed=_failed(results),
        conclusions=[conclude(one, places) for one in conclusions.of_paper(paper)],
        tables=[
            *(_placed_table(spec, place, options) for spec in found.table for place in places.each),
            *(_simulated_tables() if paper == "gotwals1995" else []),
        ],
        laws=[_law(spec, place, least) for spec in found.fit for place in places.each],
        series=[_stretches(spec, place) for spec in found.series for place in places.each],
    )


def _nodes(evidence: Evidence) -> int:
    told = (sample.more.get("nodes") for sample in evidence.samples)
    return max((nodes for nodes in told if isinstance(nodes, int)), default=1)


def _not_measured(planned: Places, measured: Places) -> list[str]:
    """Directories that the session has no sample of."""
    seen = {place.name for place in measured.each}
    names = [place.name for place in planned.each if place.name not in seen]
    return [f"nothing was measured on {' and '.join(names)}"] if names else []


def _chosen(paper: str, size: str, places: Places) -> str:
    """What part of the size was chosen for the budget."""
    budget_s = places.whole.chosen_for_s
    if budget_s is None:
        return ""
    cases = experiment.load(paper).cases(size, experiment.path_of(paper))
    all_of_it = len(cases) * len(places.each)
    part = len(places.whole.planned)
    measured = len({(s.cell, s.variant) for s in places.whole.samples})
    return (
        f"for a budget of {budget_s:.12g} s: {part} of {all_of_it} measurements of this size were "
        f"begun (1/{all_of_it / max(part, 1):.3g}), {measured} were measured; first what "
        "conclusions need"
    )


def _failed(results: Results) -> list[str]:
    """Each variant that failed, with the last reason and how often."""
    reasons: dict[str, tuple[str, int]] = {}
    for sample in results.samples:
        if sample.failed is not None:
            name = f"{sample.cell}, {sample.variant}"
            reasons[name] = (sample.failed, reasons.get(name, ("", 0))[1] + 1)
    return [f"{name}: {n} failed, the last: {why}" for name, (why, n) in reasons.items()]


# ---- conclusions ------------------------------------------------------------------------------


def conclude(one: Conclusion, places: Places) -> Concluded:
    """The verdict on a conclusion: of the session, or of each place and then together."""
    if one.untestable:
        return _concluded(one, "cannot be tested here", one.untestable)
    if any(claim.roles() for claim in one.claims):
        return _across(one, places)
    if not any(claim.names() for claim in one.claims):
        return _judged(one, one.claims, places.whole)
    each = [(place.name, _at(one, place.evidence)) for place in places.each]
    return each[0][1] if len(each) == 1 else _together(one, each)


def _at(one: Conclusion, evidence: Evidence) -> Concluded:
    """The verdict by what was measured on one file system."""
    if why := _needed(one, one.claims, evidence):
        return _concluded(one, *_left_out("cannot be tested here", why))
    return _judged(one, one.claims, evidence)


def _across(one: Conclusion, places: Places) -> Concluded:
    """The verdict of claims that compare file systems."""
    claims: list[Claim] = []
    for claim in one.claims:
        placed = across(claim, places)
        if isinstance(placed, str):
            return _concluded(one, "cannot be tested here", placed)
        claims.append(placed)
    if why := _needed(one, claims, places.whole):
        return _concluded(one, *_left_out("cannot be tested here", why))
    return _judged(one, claims, places.whole)


def _judged(one: Conclusion, claims: Sequence[Claim], evidence: Evidence) -> Concluded:
    rule = Rule(one.effect, one.samples)
    evidence = replace(evidence, invalid=invalid(evidence, one.needs))
    judged = [judge(claim, rule, evidence) for claim in claims]
    verdict = every([j.verdict for j in judged])
    findings = [Found(**vars(finding)) for j in judged for finding in j.findings]
    said = _left_out(verdict, _why(verdict, findings), *(f.why for f in findings))
    return _concluded(one, *said, findings)


def _left_out(verdict: Verdict, why: str, *reasons: str) -> tuple[Verdict, str]:
    """What was not measured because of the budget, or not yet, could be tested: it is undecided."""
    untried = (NOT_FITTING, NOT_YET)
    told = next((said for said in (*reasons, why) if said.startswith(untried)), "")
    return ("undecided", told) if told and verdict == "cannot be tested here" else (verdict, why)


def _together(one: Conclusion, each: Sequence[tuple[str, Concluded]]) -> Concluded:
    """Of the places where it could be tested all must hold, and one that does not is enough."""
    places = [AtPlace(place=name, verdict=said.verdict, why=said.why) for name, said in each]
    tested = [place for place in places if place.verdict != "cannot be tested here"]
    verdict = every([place.verdict for place in tested]) if tested else "cannot be tested here"
    told = tested or places
    why = "; ".join(
        f"{place.place}: {place.verdict}, {place.why}" if tested else f"{place.place}: {place.why}"
        for place in told
    )
    findings = [
        found.model_copy(update={"where": f"{name}: {found.where}"})
        for name, said in each
        for found in said.findings
    ]
    concluded = _concluded(one, verdict, why, findings)
    return concluded.model_copy(update={"places": places})


def _concluded(
    one: Conclusion, verdict: Verdict, why: str, findings: Sequence[Found] = ()
) -> Concluded:
    return Concluded(
        id=one.id,
        section=one.section,
        says=one.says,
        numbers=one.numbers,
        verdict=verdict,
        why=why,
        findings=list(findings),
    )


def _needed(one: Conclusion, claims: Sequence[Claim], evidence: Evidence) -> str:
    """What the samples of some claims do not meet."""
    if not one.needs:
        return ""
    names = [name for claim in claims for name in claim.names()]
    cells = set(evidence.cells(cell for patterns, _ in names for cell in patterns))
    samples = [s for s in evidence.samples if s.cell in cells]
    # what the file system is does not hang on these samples
    of_all = [name for name in one.needs if name not in OF_EACH]
    known = [name for name in of_all if samples or name in OF_FILE_SYSTEM]
    reasons = (NEEDS[name](evidence, samples) for name in known)
    unmet = "; ".join(reason for reason in reasons if reason)
    wrong = (f"{v}: {why}" for (cell, v), why in evidence.invalid.items() if cell in cells)
    left_out = (
        why for of, v in names for c in evidence.cells(of) if (why := evidence.why_left_out(c, v))
    )
    return unmet or ("" if samples else next(wrong, next(left_out, NOT_MEASURED)))


def _why(verdict: Verdict, findings: Sequence[Found]) -> str:
    """The first finding of the verdict's kind, and how many there are of each.

    What is undecided because something could not be tested says what.
    """
    kinds = list(dict.fromkeys(f.verdict for f in findings))
    counted = ", ".join(f"{k} in {sum(f.verdict == k for f in findings)}" for k in kinds)
    wanted = [verdict, "cannot be tested here"] if verdict == "undecided" else [verdict]
    told = next((f for kind in wanted for f in findings if f.verdict == kind), findings[0])
    first = f"{told.where}: {told.why}"
    return first if len(findings) == 1 else f"{first} ({counted})"


# ---- tables -----------------------------------------------------------------------------------

Parameters = Mapping[tuple[str, str], Mapping[str, Any]]


def _parameters(results: Results) -> Parameters:
    """The options of each planned variant."""
    planned = results.headers[0].plan.get("measurements", []) if results.headers else []
    return {
        (one["cell"], one["variant"]): one["parameters"].get("parameters", {}) for one in planned
    }


def _placed_table(spec: TableSpec, place: Place, parameters: Parameters) -> Table:
    own = {(cell, v): o for (cell, v), o in parameters.items()}
    if place.name:
        known = (place.name,)
        split_cells = {(split(cell, known), v): o for (cell, v), o in parameters.items()}
        own = {(inner, v): o for ((name, inner), v), o in split_cells.items() if name}
    return table(spec, place.evidence, own).model_copy(update={"place": place.name})


def _simulated_tables() -> list[Table]:
    """Figures 3 and 4 by the simulator, and what the block size, which is not given, does."""
    curves, blocks = simulated.curve_rows(), simulated.block_rows()
    columns = list(simulated.CURVES)
    of_blocks: list[simulated.Curve] = ["demand actual", "early actual"]
    return [
        _simulated_table(
            "Figures 3 and 4: rates by output size, simulated with blocks of 1/5 of the memory",
            columns,
            [(label, simulated.paper_entries(label, columns), row) for label, row in curves],
        ),
        _simulated_table(
            "Figure 4 at five times the memory, by block size: the paper does not give it",
            list(of_blocks),
            [(label, ["0.6", "0.85"], row) for label, row in blocks],
        ),
    ]


def _simulated_table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, list[str], list[float]]]
) -> Table:
    made = [
        Row(
            label=label,
            paper=paper,
            here=[Entry(value=v, spread=0.0, n=1, variant="simulated") for v in values],
        )
        for label, paper, values in rows
    ]
    unit = "of the raw disk's rate"
    return Table(title=title, unit=unit, columns=list(columns), rows=made, measured=False)


def table(spec: TableSpec, evidence: Evidence, parameters: Parameters) -> Table:
    """A table of the paper with our entries."""
    rows = []
    for number, (label, cell) in enumerate(spec.rows):
        here = [
            _entry(spec, column, cell, pattern, evidence, parameters)
            for column, (_, pattern) in enumerate(spec.columns)
        ]
        rows.append(Row(label=label, paper=spec.paper[number] if spec.paper else [], here=here))
    labels = [label for label, _ in spec.columns]
    return Table(title=spec.title, unit=spec.unit, columns=labels, rows=rows)


def _entry(
    spec: TableSpec,
    column: int,
    cell: str,
    pattern: str,
    evidence: Evidence,
    parameters: Parameters,
) -> Entry | None:
    """The best of the variants that a column is about."""
    measure = spec.measure_of(column)
    variant = evidence.best_name(cell, [pattern], measure) if pattern else None
    if variant is None:
        return None
    if spec.unit == "s" and measure == "application":
        measure = "seconds"  # who has the highest rate has the least time: all write the same
    values = [v / _SCALES[spec.unit] for v in evidence.values(cell, variant, measure).values()]
    median = middle.median(values)
    own = dict(parameters.get((cell, variant), {}))
    options = own | _options_of(str(own.get("method", "")))
    marks = [_mark(options[name], letter) for name, letter in spec.marks.items() if name in options]
    return Entry(
        value=median,
        spread=(max(values) - min(values)) / median,
        n=len(values),
        variant=variant,
        marks=" ".join(marks),
    )


def _options_of(method: str) -> dict[str, str]:
    """What is set within a method's text, ``mmap(window=8388608)``, as ``8MiB``."""
    found = re.findall(r"(\w+)=(\d+)", method)
    return {name: _short_size(int(value)) for name, value in found}


def _short_size(size_bytes: int) -> str:
    """``8MiB``."""
    return _core.human_size(size_bytes).replace(" ", "").replace(".0", "")


def _mark(value: Any, letter: str) -> str:
    """``8Mf`` of ``8MiB``; what was left at 0 happened at the end."""
    return "at end" if value == 0 else f"{str(value).replace('iB', '')}{letter}"


def _law(spec: experiment.FitSpec, place: Place, least: int) -> LawReport:
    found = fits.judged(place.evidence, spec, least)
    return LawReport(
        place=place.name,
        law=spec.law,
        paper=dict(spec.paper),
        here=[fits.text(form) for form in found.forms],
        residuals=[form.residual for form in found.forms],
        n=found.n,
        left_out=found.left_out,
        verdict=found.verdict,
        why=found.why,
    )


def _stretches(spec: SeriesSpec, place: Place) -> Stretches:
    columns = [
        median_stretches(place.evidence.of_variant(spec.cell, variant), spec.rows)
        for variant in spec.variants
    ]
    rows = [[column[i] for column in columns] for i in range(spec.rows)]
    return Stretches(place=place.name, title=spec.title, variants=list(spec.variants), rows=rows)
