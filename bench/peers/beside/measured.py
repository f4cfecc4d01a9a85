"""What every study beside peers says of its run, and what of the results counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from beside.values import ConclusionReport, Value
from penstock.bench import noise
from penstock.bench.noise import Finding
from penstock.bench.sample import Provenance, Sample
from penstock.bench.store import Results
from penstock.words import number_of

_KEPT = "conclusions"  # in the plan of results
_UNKNOWN = {"predicted": "not kept with these samples"}
NOT_KEPT = """\
These samples do not hold the conclusions that were asked when they were taken. The ones below are
today's: they and their predictions need not have been there before the first sample."""
Asked = TypeVar("Asked", bound=BaseModel)


class MeasuredReport(Value):
    """A run. ``samples`` counts neither warm-ups nor canaries."""

    schema_name: str = Field(alias="schema")
    name: str
    created: str
    penstock: str
    seed: int
    samples: int
    conclusions: list[ConclusionReport]
    conclusions_kept: bool = True
    """As they were asked before the first sample; else they are today's."""
    findings: list[Finding]
    provenances: list[Provenance]
    notices: list[str]

    @property
    def gate_failed(self) -> list[str]:
        """The gating conclusions that failed."""
        return [c.name for c in self.conclusions if c.gate and c.verdict == "fails"]


def keeps(conclusions: Sequence[BaseModel]) -> dict[str, Any]:
    """What results keep of the conclusions: they and the predictions as of the first sample."""
    return {_KEPT: [one.model_dump(mode="json") for one in conclusions]}


def asked(results: Results, today: Sequence[Asked]) -> Sequence[Asked]:
    """The conclusions that results keep; today's where they keep none, as older ones."""
    kept = results.headers[0].plan.get(_KEPT)
    if kept is None or not today:
        return today
    return [type(today[0]).model_validate(one) for one in kept]


def cells_of(results: Results) -> dict[str, tuple[list[dict[str, Any]], list[Sample]]]:
    """By cell, what was planned and all samples, warm-ups and canaries too."""
    cells: dict[str, tuple[list[dict[str, Any]], list[Sample]]] = {}
    for one in results.headers[0].plan["measurements"]:
        cells.setdefault(one["cell"], ([], []))[0].append(one)
    for sample in results.samples:
        if sample.cell in cells:
            cells[sample.cell][1].append(sample)
    return cells


def counted(results: Results) -> list[Sample]:
    """The samples but for warm-ups and canaries."""
    return [s for s in results.samples if not (s.warm_up or s.canary)]


def about(
    results: Results, conclusions: Sequence[ConclusionReport], notices: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields of MeasuredReport but for its schema; ``notices`` come last."""
    header = results.headers[0]
    kept = _KEPT in header.plan
    return {
        "name": header.name,
        "created": header.created,
        "penstock": header.penstock,
        "seed": header.seed,
        "samples": len(counted(results)),
        "conclusions": [c if kept else c.model_copy(update=_UNKNOWN) for c in conclusions],
        "conclusions_kept": kept,
        "findings": noise.find(results.samples, "application"),
        "provenances": list(results.provenances.values()),
        "notices": [*results.notices, *_told(results), *_off_regime(results), *notices],
    }


def _off_regime(results: Results) -> list[str]:
    """Samples whose regime was not as it was to be, by cell and variant."""
    found: dict[tuple[str, str], list[str]] = {}
    for sample in counted(results):
        if sample.off_regime:
            found.setdefault((sample.cell, sample.variant), []).append(sample.off_regime)
    return [
        f"{cell}, {variant}: not in its regime: {number_of(len(told), 'sample')}, "
        f"the last: {told[-1]}"
        for (cell, variant), told in found.items()
    ]


def _told(results: Results) -> list[str]:
    """Events that a reader of the tables should know."""
    kinds = ("noise", "provenance", "missing", "dropped")
    return [f"{e.what}: {e.text}" for e in results.events if e.what in kinds]
