"""Two sets of results, or two variants of one: faster, slower, the same, or not shown.

The ratio is always B's rate over A's: above 1, B is better. All comparisons of a report are
corrected together (Holm).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.bench import provenance, statistics
from penstock.bench.sample import Provenance, RateKind, Sample, last_result
from penstock.bench.statistics import LEAST_TO_COMPARE, MARGIN, Verdict
from penstock.bench.store import Results
from penstock.bench.summary import RateSummary, rate_summary, rates
from penstock.errors import ArgumentError
from penstock.words import instead_of

SCHEMA = "penstock.compare/1"
# What may differ between two results of one machine, as it is what is compared.
_JOB = "slurm_job"
_SOFTWARE = ("penstock", "penstock_commit", "native", "native_digest", "python", _JOB)
_WORK = ("bytes", "workers", "ranks")
# What a variant of one name does alike in two sessions; two variants may be told apart by it.
_WORKLOAD = ("op", "pattern", "bufsize", "iters", "end", "regime", "access", "syncsize", "files")


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class Difference(_Model):
    """One rate of one cell, of A and of B.

    ``worse`` is what an exit code is made of: B is slower, wrong, or failed until it had too few
    samples to be compared where A has enough.
    """

    cell: str
    variant_a: str
    variant_b: str
    rate: RateKind
    a: RateSummary | None
    b: RateSummary | None
    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    why: str
    worse: bool


class Differences(_Model):
    """A report: what was compared, what was found, and what to know about it."""

    schema_name: str = Field(default=SCHEMA, alias="schema")
    a: str
    b: str
    margin: float
    differences: list[Difference]
    notices: list[str]
    only_a: list[str] = []
    """What A has and B has not, as ``cell/variant``."""

    @property
    def overall(self) -> Literal["worse", "unclear", "fine"]:
        """The worst of all: worse before unclear before the same or faster."""
        if any(d.worse for d in self.differences):
            return "worse"
        return "unclear" if any(d.verdict == "unclear" for d in self.differences) else "fine"

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {**self.model_dump(mode="json", by_alias=True), "overall": self.overall}


@dataclass(frozen=True)
class Side:
    """One side: results, what they are called, and the only variant that is looked at, if any."""

    name: str
    results: Results
    variant: str | None = None

    def groups(self) -> dict[tuple[str, str], list[Sample]]:
        """The side's samples by cell and variant; of warm-ups and canaries what went wrong."""
        found: dict[tuple[str, str], list[Sample]] = {}
        for s in self.results.samples:
            if s.is_told and self.variant in (None, s.variant):
                found.setdefault((s.cell, s.variant), []).append(s)
        return found

    @property
    def variants(self) -> list[str]:
        """All that there are."""
        return list(dict.fromkeys(s.variant for s in self.results.samples))


@dataclass(frozen=True)
class _Pair:
    cell: str
    variant_a: str
    variant_b: str
    kind: RateKind
    a: list[Sample]
    b: list[Sample]

    @property
    def rates(self) -> tuple[list[float], list[float]]:
        return rates(self.a, self.kind), rates(self.b, self.kind)


def differences(
    a: Side,
    b: Side,
    kinds: Sequence[RateKind] = ("application",),
    margin: float = MARGIN,
) -> Differences:
    """Compare B with A, cell by cell and variant by variant.

    Parameters
    ----------
    a, b : Side
        With a variant on each side those are compared, else variants of the same name.
    kinds : sequence of {"application", "actual"}
        Which rates.
    margin : float
        What does not matter, 0 to 1.

    Raises
    ------
    ArgumentError
        If a variant is not there, or A and B have nothing in common.
    """
    if not 0.0 <= margin < 1.0:
        raise ArgumentError(f"margin must be a fraction from 0 to 1, got {margin:g}: 0.03 is 3 %")
    for side in (a, b):
        _check(side)
    pairs = [_Pair(*key, kind, *both) for key, both in _common(a, b) for kind in kinds]
    if not pairs:
        raise ArgumentError(
            f"{a.name} and {b.name} have no cell and variant in common: {a.name} has "
            f"{_listed(a)}, {b.name} has {_listed(b)}"
        )
    return Differences(
        a=a.name if a.variant is None else f"{a.name}, {a.variant}",
        b=b.name if b.variant is None else f"{b.name}, {b.variant}",
        margin=margin,
        differences=_compared(pairs, margin),
        notices=list(_notices(a, b, pairs)),
        only_a=_only(a, [(p.cell, p.variant_a) for p in pairs]),
    )


def _check(side: Side) -> None:
    there = side.variants
    if side.variant is not None and side.variant not in there:
        raise ArgumentError(
            f'{side.name} has no variant "{side.variant}"; {instead_of(side.variant, there)}'
        )


def _listed(side: Side) -> str:
    names = [f'"{cell}/{variant}"' for cell, variant in side.groups()]
    shown = ", ".join(names[:6])
    return f"{shown} and {len(names) - 6} more" if len(names) > 6 else shown or "no samples"


_Both = tuple[list[Sample], list[Sample]]


def _common(a: Side, b: Side) -> Iterator[tuple[tuple[str, str, str], _Both]]:
    of_b = b.groups()
    for (name, variant), samples in a.groups().items():
        other = variant if b.variant is None else b.variant
        if (name, other) in of_b:
            yield (name, variant, other), (samples, of_b[name, other])


def _compared(pairs: Sequence[_Pair], margin: float) -> list[Difference]:
    """Those that have rates on both sides, all at once; the others by what is missing."""
    rated = [p for p in pairs if all(p.rates) and not _wrong(p.a) and not _wrong(p.b)]
    found = statistics.compare_many([p.rates for p in rated], margin)
    by_pair = {id(p): c for p, c in zip(rated, found, strict=True)}
    return [_difference(p, by_pair.get(id(p))) for p in pairs]


def _difference(pair: _Pair, c: statistics.Comparison | None) -> Difference:
    why, worse = _judged(pair, c) if c else _not_compared(pair)
    return Difference(
        cell=pair.cell,
        variant_a=pair.variant_a,
        variant_b=pair.variant_b,
        rate=pair.kind,
        a=rate_summary(pair.a, pair.kind),
        b=rate_summary(pair.b, pair.kind),
        verdict=c.verdict if c else "unclear",
        ratio=c.ratio if c else None,
        low=c.low if c else None,
        high=c.high if c else None,
        p=c.p if c else None,
        why=why,
        worse=worse,
    )


def _judged(pair: _Pair, c: statistics.Comparison) -> tuple[str, bool]:
    """The verdict in a sentence, and whether B is worse: too few samples excuse no failures."""
    n_a, n_b = map(len, pair.rates)
    last = _last_failure([s for s in pair.b if s.is_lost])
    if last is None or not n_b < LEAST_TO_COMPARE <= n_a:
        return c.why, c.verdict == "slower"
    return f"B failed and has only {n_b} sample{'s' if n_b > 1 else ''}: {last}", True


def _not_compared(pair: _Pair) -> tuple[str, bool]:
    """Why there is no ratio, and whether that is B's fault alone."""
    if _wrong(pair.b):
        return "INVALID: B left wrong bytes in the file", True
    if _wrong(pair.a):
        return "INVALID: A left wrong bytes in the file, so its rate is no measure", False
    of_a, of_b = pair.rates
    if of_a and not of_b:
        alone = not any(s.counts for s in pair.b)  # then its warm-up may say why
        last = _last_failure([s for s in pair.b if alone or s.is_lost])
        said = f": {last}" if last else ""
        return f"B has no {pair.kind} rate{said}", last is not None
    side = "A has" if of_b else "neither has"
    return f"{side} {'no' if of_b else 'an'} {pair.kind} rate", False


def _last_failure(samples: Sequence[Sample]) -> str | None:
    return next((s.failed for s in reversed(samples) if s.failed), None)


def _wrong(samples: Sequence[Sample]) -> bool:
    return any(s.wrong_bytes for s in samples)


def _notices(a: Side, b: Side, pairs: Sequence[_Pair]) -> Iterator[str]:
    for side in (a, b) if a.results is not b.results else (a,):
        for notice in side.results.notices:
            yield f"{side.name}: {notice}"
    if a.results is not b.results:
        yield (
            f"{a.name} and {b.name} were taken one after the other, not interleaved: what the "
            "machine did in between is in the ratios too. To be sure, measure both as variants of "
            "one session"
        )
    yield from _machines(a, b, pairs)
    yield from _left_over(a, b, pairs)
    yield from _other_work(pairs)
    yield from _failures(pairs)


def _machines(a: Side, b: Side, pairs: Sequence[_Pair]) -> Iterator[str]:
    """What differs between where, and with what, samples that are compared were taken."""
    said: dict[str, None] = {}
    for p in pairs:
        of_a, of_b = _places(a, p.a), _places(b, p.b)
        said |= dict.fromkeys([*_within(a, of_a), *_within(b, of_b)])
        if a.results is not b.results and of_a and of_b:
            said |= dict.fromkeys(_between(a, b, of_a[-1], of_b[-1]))
    yield from said


def _places(side: Side, samples: Sequence[Sample]) -> list[Provenance]:
    """Those of samples, by when each was met last."""
    known = side.results.provenances
    last_first = dict.fromkeys(s.provenance for s in reversed(samples))
    return [known[name] for name in reversed(last_first) if name in known]


def _within(side: Side, places: Sequence[Provenance]) -> Iterator[str]:
    for first, second in pairwise(places):
        machine, software = _changes(first, _of_the_same_job(first, second))
        if machine:
            yield f"samples of {side.name} are of several machines or settings: {machine}"
        if software:
            yield f"samples of {side.name} are of several versions: {software}"


def _of_the_same_job(first: Provenance, second: Provenance) -> Provenance:
    """The second as if it were: each session, and a part of one, has a job of its own."""
    return second.model_copy(update={_JOB: first.model_dump().get(_JOB)})


def _between(a: Side, b: Side, first: Provenance, second: Provenance) -> Iterator[str]:
    machine, software = _changes(first, _of_the_same_job(first, second))
    if machine:
        yield (
            f"{a.name} and {b.name} were taken on different machines or settings, so a difference "
            f"may be theirs: {machine}"
        )
    if software:
        yield f"{a.name} and {b.name} differ in software: {software}"


def _changes(first: Provenance, second: Provenance) -> tuple[str, str]:
    """Of the machine, and of the software."""
    of_a, of_b = ({name: p.model_dump().get(name) for name in _SOFTWARE} for p in (first, second))
    machine = provenance.changes(first, second.model_copy(update=of_a))
    return machine, provenance.changes(first, first.model_copy(update=of_b))


def _left_over(a: Side, b: Side, pairs: Sequence[_Pair]) -> Iterator[str]:
    """What only one side has, so that nobody takes it for compared."""
    compared_a = [(p.cell, p.variant_a) for p in pairs]
    compared_b = [(p.cell, p.variant_b) for p in pairs]
    for side, compared in ((a, compared_a), (b, compared_b)):
        if only := _only(side, compared):
            yield f"only {side.name} has {', '.join(only)}: not compared"


def _only(side: Side, compared: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{c}/{v}" for c, v in side.groups() if (c, v) not in compared]


def _other_work(pairs: Sequence[_Pair]) -> Iterator[str]:
    said = set()
    for p in pairs:
        names = _WORKLOAD if p.variant_a == p.variant_b else ()
        first, second = _work(p.a, names), _work(p.b, names)
        changed = [f"{k} {v} -> {second[k]}" for k, v in first.items() if second.get(k, v) != v]
        if changed and (p.cell, p.variant_a) not in said:
            said.add((p.cell, p.variant_a))
            yield f"{p.cell}/{p.variant_b}: not the same work in A and B: {', '.join(changed)}"


def _work(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, Any]:
    """Its amount, and those of these parameters that the program tells."""
    result = last_result(samples)
    if result is None:
        return {}
    told = {name: result.parameters[name] for name in names if name in result.parameters}
    return {name: getattr(result, name) for name in _WORK} | told


def _failures(pairs: Sequence[_Pair]) -> Iterator[str]:
    for p in pairs:
        if p.kind != pairs[0].kind:
            continue
        for side, name, samples in (("A", p.variant_a, p.a), ("B", p.variant_b, p.b)):
            failed = [s for s in samples if s.failed is not None]
            if failed:
                yield (
                    f"{p.cell}/{name}: {len(failed)} of {len(samples)} samples of {side} failed, "
                    f"the last: {failed[-1].failed}"
                )
