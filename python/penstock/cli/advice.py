"""How to run programs like a cell, which ``penstock bench`` says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from penstock import _core
from penstock.bench import quick
from penstock.bench.cases import Case, of_plan
from penstock.bench.sample import RateKind
from penstock.bench.store import Results
from penstock.bench.summary import CellSummary, VariantSummary

_SHARED = "shared"  # by all workers, as programs have their file unless told otherwise
Planned = Mapping[str, Case]  # by variant


def advice(cell: CellSummary, rate: RateKind, results: Results) -> str:
    """A line for a cell of ``results``; empty where its best is none of Penstock's methods.

    No method is named unless it is shown to beat the default, or that is not to be used.
    """
    best = next((v for v in cell.variants if v.variant == cell.ranking.best), None)
    if best is None or not best.method:
        return ""
    like = f"for programs like {cell.cell}"
    named = f"penstock run --method {shlex.quote(best.method)} -- ..."
    is_default = best.method == _default()
    planned = _planned(cell, results)
    pilot = quick.default_failed(results.headers[0].plan)
    other_files = not is_default and _has_other_files(best, cell, planned, pilot)
    if why := next(_against_the_default(cell, rate, planned, pilot), ""):
        if is_default or other_files:
            where = ", on other files" if other_files else ""
            return f"{like} there is no advice: {best.variant} is the best{where}, and {why}"
        return f"{like}, as {why}: {named}"
    if is_default:
        return f"{like}: penstock run -- ..."
    if other_files:
        return f"{like}, as {best.variant} writes other files than the default: penstock run -- ..."
    if not _beats_the_default(cell):
        why = f"{best.variant} is not shown to be better than the default"
        return f"{like}, as {why}: penstock run -- ..."
    return f"{like}: {named}"


def _default() -> str:
    return str(_core.default_method())


def _has_other_files(
    best: VariantSummary, cell: CellSummary, planned: Planned, pilot: Mapping[str, str]
) -> bool:
    """Whether it has a file for each worker, say, and the default one: no method does that."""
    known = {_files(v, planned) for v in cell.variants if _is_default(v, planned)}
    if pilot:
        known.add(_SHARED)
    return bool(known) and _files(best, planned) not in known


def _files(v: VariantSummary, planned: Planned) -> str:
    asked = planned[v.variant].parameters if v.variant in planned else {}
    return v.files or str(asked.get("files", _SHARED))


def _beats_the_default(cell: CellSummary) -> bool:
    defaults = {v.variant for v in cell.variants if v.method == _default()}
    return bool(defaults) and defaults <= set(cell.ranking.slower)


def _against_the_default(
    cell: CellSummary, rate: RateKind, planned: Planned, pilot: Mapping[str, str]
) -> Iterator[str]:
    """Why the default is not to be used, of each way that is it: a rate says nothing of that."""
    for v in cell.variants:
        if (why := _why_not(v, rate)) and _is_default(v, planned):
            yield f"{v.variant}, which is the default, {why}"
    for name, why in pilot.items():
        yield f"{name}, which is the default, failed when it was tried ({why})"


def _why_not(v: VariantSummary, rate: RateKind) -> str:
    if v.invalid:
        return "left wrong bytes"
    if v.failures and (v.rate(rate) is None or v.is_chance(rate)):
        return f"failed in {v.failures} of {v.failures + v.samples} samples"
    return ""


def _is_default(v: VariantSummary, planned: Planned) -> bool:
    """By what it said of itself, or where it always died before that by what was planned."""
    if v.method is not None:
        return v.method == _default()
    return v.variant in planned and planned[v.variant].is_default


def _planned(cell: CellSummary, results: Results) -> Planned:
    """The variants of a cell as they were planned."""
    measurements = (m for header in results.headers for m in header.plan.get("measurements", []))
    return {m["variant"]: of_plan(m) for m in measurements if m["cell"] == cell.cell}
