"""What a run says of a paper: a verdict per conclusion, and the paper's tables beside ours.

A value with a schema of its own (``penstock.reproduction/1``). Bytes per second and seconds are in
the units that the tables name, as in the paper.
"""

from __future__ import annotations

import statistics as middle
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from penstock.bench.sample import Sample
from penstock.bench.statistics import trimmed_mean
from penstock.bench.store import Results
from penstock.reproduce import conclusions, experiment, fits, plan
from penstock.reproduce.conclusions import Conclusion
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.experiment import Experiment, SeriesSpec, TableSpec
from penstock.reproduce.measures import stretches
from penstock.reproduce.needs import NEEDS, file_systems
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


class Concluded(_Model):
    """A conclusion, its verdict, and what of the claims decided it."""

    id: str
    section: str
    says: str
    numbers: str
    verdict: Verdict
    why: str
    findings: list[Found] = []


class Entry(_Model):
    """An entry of a table: the 10 % trimmed mean, (max - min) / median, and of which variant."""

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
    """A table in the paper's layout."""

    title: str
    unit: str
    columns: list[str]
    rows: list[Row]


class LawReport(_Model):
    """A law: the paper's by file system, and the forms fitted here, the best first.

    ``residuals`` are root mean squares of (T - fitted T) / T; ``verdict`` is that of
    `penstock.model.scaling`, None where samples are too few.
    """

    law: str
    paper: dict[str, str]
    here: list[str]
    residuals: list[float]
    verdict: str | None
    why: str


class Stretches(_Model):
    """The median rate of each successive part of the calls of each variant, in MB/s."""

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
    notes: list[str]
    file_systems: list[str]
    samples: int
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
    evidence = Evidence.of(results)
    return Report(
        paper=paper,
        title=found.title,
        setting=found.setting,
        size=size,
        scale=_scale(found, size),
        notes=list(found.notes),
        file_systems=file_systems(evidence),
        samples=len(evidence.samples),
        failed=_failed(results),
        conclusions=[conclude(one, evidence) for one in conclusions.of_paper(paper)],
        tables=[table(spec, evidence, _parameters(results)) for spec in found.table],
        laws=[_law(spec, evidence) for spec in found.fit],
        series=[_stretches(spec, evidence) for spec in found.series],
    )


def _scale(found: Experiment, size: str) -> str:
    return next(one.scale for name, one in found.size.items() if name == size)


def _failed(results: Results) -> list[str]:
    """Each variant that failed, with the last reason and how often."""
    reasons: dict[str, tuple[str, int]] = {}
    for sample in results.samples:
        if sample.failed is not None:
            name = f"{sample.cell}, {sample.variant}"
            reasons[name] = (sample.failed, reasons.get(name, ("", 0))[1] + 1)
    return [f"{name}: {n} failed, the last: {why}" for name, (why, n) in reasons.items()]


# ---- conclusions ------------------------------------------------------------------------------


def conclude(one: Conclusion, evidence: Evidence) -> Concluded:
    """The verdict on a conclusion."""
    if why := one.untestable or _unmet(one, evidence):
        return _concluded(one, "cannot be tested here", why)
    rule = Rule(one.effect, one.samples)
    judged = [judge(claim, rule, evidence) for claim in one.claims]
    verdict = every([j.verdict for j in judged])
    findings = [Found(**vars(finding)) for j in judged for finding in j.findings]
    return _concluded(one, verdict, _why(verdict, findings), findings)


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


def _unmet(one: Conclusion, evidence: Evidence) -> str:
    """What it needs and has not got."""
    if not one.needs:
        return ""
    names = [cell for claim in one.claims for cells, _ in claim.names() for cell in cells]
    cells = set(evidence.cells(names))
    samples = [s for s in evidence.samples if s.cell in cells]
    if not samples:
        return "not measured in this size"
    reasons = (NEEDS[name](evidence, samples) for name in one.needs)
    return "; ".join(reason for reason in reasons if reason)


def _why(verdict: Verdict, findings: Sequence[Found]) -> str:
    """The first finding of the verdict's kind, and how many there are of each."""
    kinds = list(dict.fromkeys(f.verdict for f in findings))
    counted = ", ".join(f"{k} in {sum(f.verdict == k for f in findings)}" for k in kinds)
    told = next((f for f in findings if f.verdict == verdict), findings[0])
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
    own = parameters.get((cell, variant), {})
    marks = [_mark(own[name], letter) for name, letter in spec.marks.items() if name in own]
    return Entry(
        value=trimmed_mean(values),
        spread=(max(values) - min(values)) / middle.median(values),
        n=len(values),
        variant=variant,
        marks=" ".join(marks),
    )


def _mark(value: Any, letter: str) -> str:
    """``8Mf`` of ``8MiB``; what was left at 0 happened at the end."""
    return "at end" if value == 0 else f"{str(value).replace('iB', '')}{letter}"


def _law(spec: experiment.FitSpec, evidence: Evidence) -> LawReport:
    found = fits.fit(evidence, spec)
    forms = found.fits if found is not None else ()
    return LawReport(
        law=spec.law,
        paper=dict(spec.paper),
        here=[fits.text(form) for form in forms],
        residuals=[form.residual for form in forms],
        verdict=found.verdict if found is not None else None,
        why=found.reason if found is not None else "too few samples: sizes or numbers of processes",
    )


def _stretches(spec: SeriesSpec, evidence: Evidence) -> Stretches:
    columns = [
        _medians(evidence.of_variant(spec.cell, variant), spec.rows) for variant in spec.variants
    ]
    rows = [[column[i] for column in columns] for i in range(spec.rows)]
    return Stretches(title=spec.title, variants=list(spec.variants), rows=rows)


def _medians(samples: Sequence[Sample], rows: int) -> list[float | None]:
    """Of each stretch, over the samples."""
    rates = [r for sample in samples if (r := stretches(sample, rows))]
    if not rates:
        return [None] * rows
    return [middle.median(one[i] for one in rates) / 1e6 for i in range(rows)]
