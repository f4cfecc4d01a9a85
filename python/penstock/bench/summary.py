"""What the samples of a session say: rates per cell and variant, who is best, and what to doubt.

A summary is a value with a schema of its own (``penstock.summary/1``); rates in bytes per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock import _core
from penstock.bench import noise, statistics
from penstock.bench.chance import is_chance, is_dropped
from penstock.bench.doubts import Doubt, doubts
from penstock.bench.noise import Finding
from penstock.bench.sample import Provenance, RateKind, Result, Sample, last_result
from penstock.bench.statistics import MARGIN, Stopping, Verdict
from penstock.bench.store import Results
from penstock.errors import ArgumentError, PenstockError

SCHEMA = "penstock.summary/1"


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class RateSummary(_Model):
    """One of the two rates of a variant. ``low`` to ``high`` covers the median with ``confidence``.

    ``spread`` is (max - min) / median; ``outlier_blocks`` name the blocks of samples further than
    14.8 MAD from the median, which are counted like the others. ``source`` says where an actual
    rate was read.
    """

    n: int
    median_bytes_per_s: float
    low_bytes_per_s: float
    high_bytes_per_s: float
    confidence: float
    trimmed_mean_bytes_per_s: float
    spread: float
    mad_bytes_per_s: float
    outlier_blocks: list[int] = []
    source: str | None = None


class VariantSummary(_Model):
    """One way of doing a cell's work. ``invalid`` says why it must not be used, whatever its rate.

    ``lost`` are those of ``failures`` that left it fewer samples, as those of warm-ups and canaries
    do not; ``dropped`` is what failed so often in a row that it is not tried again;
    ``converged`` is None where there are no samples to judge; ``method`` is the one that wrote, or
    that a program was preloaded with; ``files`` is whose the files are, as the program has it;
    ``writes`` is False of the mechanism null, whose rate is a bound and no way of writing.
    """

    variant: str
    application: RateSummary | None
    actual: RateSummary | None
    converged: bool | None
    samples: int
    failures: int = 0
    lost: int = 0
    dropped: bool = False
    last_failure: str | None = None
    invalid: str | None = None
    bytes: int | None = None
    workers: int | None = None
    method: str | None = None
    files: str | None = None
    writes: bool = True

    def rate(self, kind: RateKind) -> RateSummary | None:
        """One of the two rates."""
        return self.application if kind == "application" else self.actual

    def is_chance(self, kind: RateKind) -> bool:
        """Whether failures left it so few samples that chance may have made its rate."""
        found = self.rate(kind)
        return found is not None and is_chance(found.confidence, found.n, self.lost, self.dropped)


class Against(_Model):
    """A variant against the cell's best: the ratio of its rate to the best's, and the verdict."""

    variant: str
    verdict: Verdict
    ratio: float
    low: float
    high: float
    p: float
    why: str


class Ranking(_Model):
    """Who is best, and who cannot be called worse.

    ``as_good`` are shown to be within the margin of the best; ``not_told_apart`` may be as good or
    not; ``slower`` are shown to be slower.
    """

    best: str | None
    as_good: list[str] = []
    not_told_apart: list[str] = []
    slower: list[str] = []
    against: list[Against] = []
    margin: float = MARGIN


def writing(variants: Sequence[VariantSummary]) -> list[VariantSummary]:
    """Those that write; all, where nobody does."""
    return [v for v in variants if v.writes] or list(variants)


class CellSummary(_Model):
    """A pattern of work and the ways it was done, best first."""

    cell: str
    variants: list[VariantSummary]
    ranking: Ranking

    @property
    def writing(self) -> list[VariantSummary]:
        """Those that write; all, where nobody does."""
        return writing(self.variants)

    @property
    def not_writing(self) -> list[VariantSummary]:
        """Beside others that write, those that do not."""
        return [v for v in self.variants if v not in self.writing]


class Canaries(_Model):
    """The same measured twice in a block: the ratio of both, which is 1 but for noise."""

    n: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


class Summary(_Model):
    """What a session's samples say. Parts that began at the same time have seeds of their own."""

    schema_name: str = Field(default=SCHEMA, alias="schema")
    name: str
    penstock: str
    created: str
    seed: int
    seeds: list[int]
    rate: RateKind
    samples: int
    cells: list[CellSummary]
    warnings: list[Doubt]
    findings: list[Finding]
    canaries: Canaries
    provenances: list[Provenance]
    notices: list[str]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return self.model_dump(mode="json", by_alias=True)


def summarise(results: Results, rate: RateKind | None = None, margin: float = MARGIN) -> Summary:
    """Summarise the samples of a session.

    Parameters
    ----------
    results : Results
        What penstock.bench.store loaded.
    rate : {"application", "actual"}, optional
        Which rate ranks and must have converged; by default the one that the session was for.
    margin : float
        What difference does not matter.

    Raises
    ------
    ArgumentError
        If the results are those of a session that had not begun.
    """
    if not results.headers:
        names = ", ".join(map(str, results.paths))
        raise ArgumentError(f"{names} holds no results: penstock bench was stopped at its start")
    header = results.headers[0]
    planned: RateKind = "actual" if header.plan.get("rate") == "actual" else "application"
    chosen: RateKind = rate or planned
    stopping = Stopping.of_plan(results.latest[0].plan)
    groups = _groups(results.samples)
    preloaded = _preloaded(results)
    cells = [
        _cell(cell, own, chosen, stopping, margin, preloaded.get(cell, {}))
        for cell, own in groups.items()
    ]
    return Summary(
        name=header.name,
        penstock=header.penstock,
        created=header.created,
        seed=header.seed,
        seeds=list(dict.fromkeys(one.seed for one in results.headers)),
        rate=chosen,
        samples=sum(s.counts for s in results.samples),
        cells=cells,
        warnings=[w for c in cells for w in doubts(c, groups[c.cell], results, chosen)],
        findings=noise.find(results.samples, chosen, results.left_out),
        canaries=_canaries(results.samples, chosen),
        provenances=list(results.provenances.values()),
        notices=list(results.notices),
    )


Groups = dict[str, dict[str, list[Sample]]]
Methods = Mapping[str, str]  # by variant
Rates = Mapping[str, Sequence[float]]  # by variant


def _groups(samples: Sequence[Sample]) -> Groups:
    """All samples by cell and variant, of those that have one to tell of."""
    groups: Groups = {}
    for sample in samples:
        if sample.is_told:
            groups.setdefault(sample.cell, {}).setdefault(sample.variant, [])
    for sample in samples:
        if sample.variant in groups.get(sample.cell, {}):
            groups[sample.cell][sample.variant].append(sample)
    return groups


def rates(samples: Sequence[Sample], kind: RateKind) -> list[float]:
    """The rates of those that count and have one."""
    return [r for s in samples if s.counts and (r := s.rate(kind)) is not None and r > 0.0]


def _cell(
    cell: str,
    own: dict[str, list[Sample]],
    rate: RateKind,
    stopping: Stopping,
    margin: float,
    preloaded: Methods,
) -> CellSummary:
    variants = [
        _variant(name, samples, rate, stopping, preloaded.get(name))
        for name, samples in own.items()
    ]
    variants.sort(key=lambda v: _order(v, rate))
    ranking = _rank(variants, _rates_of(own, rate), margin)
    return CellSummary(cell=cell, variants=variants, ranking=ranking)


def _rates_of(own: Mapping[str, Sequence[Sample]], rate: RateKind) -> Rates:
    return {name: rates(samples, rate) for name, samples in own.items()}


def rates_by_cell(samples: Sequence[Sample], rate: RateKind) -> dict[str, Rates]:
    """What ranks the ways of each cell."""
    return {cell: _rates_of(own, rate) for cell, own in _groups(samples).items()}


def among(cell: CellSummary, some: Sequence[VariantSummary], ranked: Rates) -> CellSummary:
    """A cell as if it had been done in these of its ways only; ``ranked`` are the rates of all."""
    variants = [v for v in cell.variants if v in some]
    ranking = _rank(variants, ranked, cell.ranking.margin)
    return CellSummary(cell=cell.cell, variants=variants, ranking=ranking)


def _order(variant: VariantSummary, rate: RateKind) -> tuple[bool, bool, bool, float]:
    found = variant.rate(rate)
    median = found.median_bytes_per_s if found else 0.0
    is_none = bool(variant.invalid) or found is None
    return (is_none, not variant.writes, variant.is_chance(rate), -median)


def _variant(
    name: str,
    everything: Sequence[Sample],
    rate: RateKind,
    stopping: Stopping,
    preloaded: str | None,
) -> VariantSummary:
    samples = [s for s in everything if s.is_told]
    failed = [s for s in samples if s.failed is not None]
    chosen = rates(samples, rate)
    result = last_result(samples)
    method = result.engine.method if result and result.engine else preloaded
    enough = len(chosen) >= stopping.minimum
    return VariantSummary(
        variant=name,
        application=rate_summary(samples, "application"),
        actual=rate_summary(samples, "actual"),
        converged=enough and stopping.precise(chosen) if chosen else None,
        samples=sum(s.counts for s in samples),
        failures=len(failed),
        lost=sum(s.is_lost for s in samples),
        dropped=is_dropped(everything),
        last_failure=failed[-1].failed if failed else None,
        invalid=_invalid(samples),
        bytes=result.bytes if result else None,
        workers=result.workers if result else None,
        method=method,
        files=_files(result),
        writes="null" not in _parts(method or ""),
    )


def _preloaded(results: Results) -> Mapping[str, Methods]:
    """By cell the methods that variants were preloaded with: their programs do not know of them."""
    known: dict[str, dict[str, str]] = {}
    measurements = (m for header in results.headers for m in header.plan.get("measurements", []))
    for m in measurements:
        if preload := m.get("parameters", {}).get("preload"):
            known.setdefault(m["cell"], {})[m["variant"]] = _spelt(preload)
    return known


def _spelt(preload: str | Literal[True]) -> str:
    """As the engine tells it; one that only another version or machine serves as it was given."""
    if preload is True:
        return str(_core.default_method())
    try:
        return str(_core.parse_method(preload))
    except PenstockError:
        return preload


def _files(result: Result | None) -> str | None:
    told = result.parameters.get("files") if result else None
    return None if told is None else str(told)


def _parts(method: str) -> list[str]:
    """The names in a method's text: ``two_phase(writers=1) + shm + null``."""
    return [part.partition("(")[0].strip() for part in method.split("+")]


def rate_summary(samples: Sequence[Sample], kind: RateKind) -> RateSummary | None:
    rated = [s for s in samples if s.counts and (s.rate(kind) or 0.0) > 0.0]
    if not rated:
        return None
    s = statistics.summarise(rates(rated, kind))
    source = rated[-1].result.actual if kind == "actual" and rated[-1].result else None
    return RateSummary(
        n=s.n,
        median_bytes_per_s=s.median,
        low_bytes_per_s=s.low,
        high_bytes_per_s=s.high,
        confidence=s.confidence,
        trimmed_mean_bytes_per_s=s.trimmed_mean,
        spread=s.spread,
        mad_bytes_per_s=s.mad,
        outlier_blocks=[rated[i].block for i in s.outliers],
        source=source.source if source else None,
    )


def _invalid(samples: Sequence[Sample]) -> str | None:
    """Wrong bytes in one sample are enough: a fast way to a wrong file is none."""
    wrong = [s.wrong_bytes for s in samples if s.wrong_bytes]
    if not wrong:
        return None
    return (
        f"{len(wrong)} of {len(samples)} samples left wrong bytes in the file, up to {max(wrong)}"
    )


def _rank(variants: Sequence[VariantSummary], ranked: Rates, margin: float) -> Ranking:
    """Everyone against the first, corrected for their number.

    That has the highest median of those whose failures left enough samples for an interval.
    """
    fit = [v for v in writing(variants) if not v.invalid and ranked[v.variant]]
    if not fit:
        return Ranking(best=None, margin=margin)
    best, *others = [v.variant for v in fit]
    pairs = [(ranked[best], ranked[other]) for other in others]
    compared = dict(zip(others, statistics.compare_many(pairs, margin), strict=True))
    return Ranking(
        best=best,
        as_good=[v for v, c in compared.items() if c.verdict == "same"],
        not_told_apart=[v for v, c in compared.items() if c.verdict in ("unclear", "faster")],
        slower=[v for v, c in compared.items() if c.verdict == "slower"],
        against=[
            Against(
                variant=v,
                verdict=c.verdict,
                ratio=c.ratio,
                low=c.low,
                high=c.high,
                p=c.p,
                why=c.why,
            )
            for v, c in compared.items()
        ],
        margin=margin,
    )


def _canaries(samples: Sequence[Sample], rate: RateKind) -> Canaries:
    ratio, n = noise.canary_ratio(samples, rate)
    if n == 0:
        return Canaries(n=0)
    return Canaries(n=n, ratio=ratio.ratio, low=ratio.low, high=ratio.high)
