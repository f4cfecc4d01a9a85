"""What limits what a summary says: bytes that were wrong or not read back, rates of memory, .."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from penstock.bench import statistics
from penstock.bench.sample import Provenance, RateKind, Result, Sample
from penstock.bench.statistics import Stopping
from penstock.bench.store import Results
from penstock.words import number_of

if TYPE_CHECKING:
    from penstock.bench.summary import CellSummary

Name = Literal[
    "invalid",
    "failed",
    "free-run-memory",
    "not-converged",
    "unverified",
    "no-rate",
    "few-samples",
    "off-regime",
]
Own = Mapping[str, Sequence[Sample]]  # the samples of each variant of a cell


class Doubt(BaseModel):
    """A limit of what a summary says of some variants of a cell, and the remedy."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: Name
    cell: str
    variants: list[str]
    text: str
    remedy: str


def doubts(cell: CellSummary, own: Own, results: Results, rate: RateKind) -> Iterator[Doubt]:
    """What to doubt of a cell."""
    yield from _invalid_or_failed(cell)
    yield from _unsure(cell, rate, results.latest[0].plan)
    yield from _unverified(cell, own)
    yield from _off_regime(cell, own)
    if rate == "application":
        yield from _free_run(cell, own, results)


def _invalid_or_failed(cell: CellSummary) -> Iterator[Doubt]:
    for v in cell.variants:
        if v.invalid:
            yield Doubt(
                name="invalid",
                cell=cell.cell,
                variants=[v.variant],
                text=f"INVALID: {v.variant} is not ranked: {v.invalid}",
                remedy="do not use it; keep the samples and report it to whoever wrote it",
            )
        if v.failures:
            tried = v.failures + v.samples
            yield Doubt(
                name="failed",
                cell=cell.cell,
                variants=[v.variant],
                text=f"{v.variant} failed in {v.failures} of {tried} samples, the last time: "
                f"{v.last_failure}",
                remedy="its rate is that of the samples that succeeded"
                if v.samples
                else "run its command by hand: it is in the samples",
            )


def _unsure(cell: CellSummary, rate: RateKind, plan: dict[str, Any]) -> Iterator[Doubt]:
    """Who has too few or too scattered samples, or none at all."""
    rule = Stopping.of_plan(plan)
    groups: dict[str, list[str]] = {}
    for v in cell.variants:
        found = v.rate(rate)
        if found is None and v.samples:
            groups.setdefault("no-rate", []).append(v.variant)
        elif found is None:
            continue  # said as failed
        elif found.n < statistics.LEAST_TO_COMPARE:
            group = "dropped" if v.dropped else "few-samples"
            groups.setdefault(group, []).append(f"{v.variant} (n={found.n})")
        elif not v.converged:
            half = (found.high_bytes_per_s - found.low_bytes_per_s) / found.median_bytes_per_s / 2
            fewer = f" of {rule.minimum}" if found.n < rule.minimum else ""
            text = f"{v.variant} (±{100 * half:.0f} %, n={found.n}{fewer})"
            groups.setdefault("not-converged", []).append(text)
    few: Name = "few-samples"
    said: dict[str, tuple[Name, str, str]] = {
        "no-rate": (
            "no-rate",
            f"there is no {rate} rate of",
            "give --rate the other of application and actual, or see why the samples failed",
        ),
        "dropped": (
            few,
            "too few samples to compare with:",
            "mend what failed twice in a row, which is not tried again, and give another --out",
        ),
        "few-samples": (
            few,
            "too few samples to compare with:",
            f"take at least {statistics.LEAST_TO_COMPARE}, better 10: run the same command again"
            f"{_so_that_more_are_taken(rule, plan)}",
        ),
        "not-converged": (
            "not-converged",
            "not converged:",
            "the interval is wide, not wrong: take more samples, or find what disturbs",
        ),
    }
    for group, variants in groups.items():
        name, text, remedy = said[group]
        yield Doubt(
            name=name,
            cell=cell.cell,
            variants=variants,
            text=f"{text} {', '.join(variants)}",
            remedy=remedy,
        )


def _so_that_more_are_taken(rule: Stopping, plan: dict[str, Any]) -> str:
    if rule.maximum < statistics.LEAST_TO_COMPARE:
        return " with --rounds 10"
    return "" if plan.get("budget_s") is None else " with more time"


def _unverified(cell: CellSummary, own: Own) -> Iterator[Doubt]:
    unverified = [
        v.variant
        for v in cell.variants
        if v.writes and any(_is_unverified(s) for s in own[v.variant] if s.counts)
    ]
    if unverified:
        yield Doubt(
            name="unverified",
            cell=cell.cell,
            variants=unverified,
            text=f"the bytes in the file were not read back: {', '.join(unverified)}",
            remedy="measure with verify = all before trusting the rate: it is outside the clock",
        )


def _is_unverified(sample: Sample) -> bool:
    result = sample.result
    if result is None or result.parameters.get("op") == "read":
        return False
    return result.verified is None or result.verified.bytes < result.bytes


def _off_regime(cell: CellSummary, own: Own) -> Iterator[Doubt]:
    """Samples whose memory was not as warm or as cold, or that began otherwise, than asked for."""
    variants, last = {}, ""
    for v in cell.variants:
        counted = [s for s in own[v.variant] if s.counts]
        told = [s.off_regime for s in counted if s.off_regime]
        if told:
            variants[v.variant] = f"{len(told)} of {number_of(len(counted), 'sample')}"
            last = told[-1]
    if variants:
        named = ", ".join(f"{name} ({samples})" for name, samples in variants.items())
        yield Doubt(
            name="off-regime",
            cell=cell.cell,
            variants=list(variants),
            text=f"not in the regime asked for: {named}, the last: {last}",
            remedy="its rate is that of what the machine gave: free memory, lower warm_memory, or "
            "ask for no regime (regime = asis, page_reports = asis)",
        )


def _free_run(cell: CellSummary, own: Own, results: Results) -> Iterator[Doubt]:
    """Application rates that end before a sync, of bytes that the page cache takes unthrottled."""
    fitting: dict[str, tuple[int, int]] = {}
    methods = {v.variant: v.method or "" for v in cell.variants}
    for name, samples in own.items():
        for s in (s for s in samples if s.counts):
            limit = free_run_bytes(s, results.provenances.get(s.provenance))
            if limit is None or s.result is None:
                continue
            method = s.result.engine.method if s.result.engine else methods[name]
            if _only_to_memory(s.result, method, limit):
                fitting[name] = (_bytes_per_node(s.result), limit)
    if fitting:
        most, least = max(b for b, _ in fitting.values()), min(f for _, f in fitting.values())
        yield Doubt(
            name="free-run-memory",
            cell=cell.cell,
            variants=list(fitting),
            text=f"{most / 2**20:.0f} MiB fit into the {least / 2**20:.0f} MiB that the page cache "
            f"takes at memory speed: the application rate of {', '.join(fitting)} measures memory, "
            "not storage",
            remedy="read the actual rate, end with a sync, or write more than that",
        )


def _only_to_memory(result: Result, method: str, limit_bytes: int) -> bool:
    if result.parameters.get("op") == "read":
        return False
    past_memory = _always_direct(method) or _syncs_at_close(method) or _syncs_within(result)
    return not past_memory and _bytes_per_node(result) < limit_bytes


def _always_direct(method: str) -> bool:
    """Whether it asks for writes past the page cache, not only while memory is cold."""
    return re.search(r"\bdirect\b(?!=)", method) is not None


def _syncs_at_close(method: str) -> bool:
    """Whether its policy leaves everything on the device at close, within the clock."""
    return re.search(r"\+ (end|every|coordinated|background|pulse)\b", method) is not None


def _syncs_within(result: Result) -> bool:
    """Whether the program itself syncs before its clock stops."""
    said = result.parameters
    files = {"per_worker": result.workers, "per_node": _nodes(result)}.get(
        str(said.get("files")), 1
    )
    size = said.get("syncsize")
    due = isinstance(size, int) and 0 < size <= result.bytes // max(1, files)
    return said.get("end") == "sync" or bool(said.get("sync_each")) or due


def _bytes_per_node(result: Result) -> int:
    return result.bytes // _nodes(result)


def _nodes(result: Result) -> int:
    return max(1, int((result.model_extra or {}).get("nodes") or 1))


def free_run_bytes(sample: Sample, where: Provenance | None) -> int | None:
    """How many dirty bytes Linux lets gather before it throttles a writer.

    (T + B) / 2 with T = dirty_ratio and B = dirty_background_ratio of the available memory, or the
    bytes that are set instead; a B that is not below T counts as T / 2 (mm/page-writeback.c). None
    where the memory is not known.
    """
    facts = where.model_dump() if where is not None else {}
    available = (sample.machine_before or {}).get("memory_available_bytes")
    available = available or facts.get("memory_bytes")
    if not available:
        return None
    if facts.get("memory_limit_bytes"):
        available = min(available, facts["memory_limit_bytes"])
    set_to = facts.get("write_back") or {}
    limit = _threshold(set_to, "dirty", 20, available)
    background = _threshold(set_to, "dirty_background", 10, available)
    if background >= limit:
        background = limit / 2
    return int((limit + background) / 2)


def _threshold(set_to: dict[str, Any], name: str, percent: int, available: float) -> float:
    fixed = int(set_to.get(f"{name}_bytes") or 0)
    ratio = set_to.get(f"{name}_ratio")
    return fixed or available * int(percent if ratio is None else ratio) / 100.0
