"""How to run programs like a cell, which ``penstock bench`` says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from penstock import _core
from penstock.bench import quick
from penstock.bench.cases import Case, of_plan
from penstock.bench.sample import RateKind, last_result
from penstock.bench.store import Results
from penstock.bench.summary import CellSummary, VariantSummary

_SHARED = "shared"  # by all workers, as programs have their file unless told otherwise


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
    other_files = _has_other_files(best, cell, results)
    if why := next(_against_the_default(cell, rate, results), ""):
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


def _has_other_files(best: VariantSummary, cell: CellSummary, results: Results) -> bool:
    """Whether it has a file for each worker, say, and the default one: no method does that."""
    defaults = (v for v in cell.variants if _is_default(v, cell, results))
    known = {_files(v, cell, results) for v in defaults}
    if quick.default_failed(results.headers[0].plan):
        known.add(_SHARED)
    return bool(known) and _files(best, cell, results) not in known


def _files(v: VariantSummary, cell: CellSummary, results: Results) -> str:
    own = [s for s in results.samples if (s.cell, s.variant) == (cell.cell, v.variant)]
    result = last_result(own)
    planned = (case.parameters for case in _planned(v, cell, results))
    said = result.parameters if result else next(planned, {})
    return str(said.get("files", _SHARED))


def _beats_the_default(cell: CellSummary) -> bool:
    defaults = {v.variant for v in cell.variants if v.method == _default()}
    return bool(defaults) and defaults <= set(cell.ranking.slower)


def _against_the_default(cell: CellSummary, rate: RateKind, results: Results) -> Iterator[str]:
    """Why the default is not to be used, of each way that is it: a rate says nothing of that."""
    for v in cell.variants:
        if (why := _why_not(v, rate)) and _is_default(v, cell, results):
            yield f"{v.variant}, which is the default, {why}"
    for name, why in quick.default_failed(results.headers[0].plan).items():
        yield f"{name}, which is the default, failed when it was tried ({why})"


def _why_not(v: VariantSummary, rate: RateKind) -> str:
    if v.invalid:
        return "left wrong bytes"
    if v.failures and (v.rate(rate) is None or v.is_chance(rate)):
        return f"failed in {v.failures} of {v.failures + v.samples} samples"
    return ""


def _is_default(v: VariantSummary, cell: CellSummary, results: Results) -> bool:
    """By what it said of itself, or where it always died before that by what was planned."""
    if v.method is not None:
        return v.method == _default()
    return any(case.is_default for case in _planned(v, cell, results))


def _planned(v: VariantSummary, cell: CellSummary, results: Results) -> Iterator[Case]:
    """The variant in the plan of each part that has it."""
    measurements = (m for header in results.headers for m in header.plan.get("measurements", []))
    for one in measurements:
        if (one["cell"], one["variant"]) == (cell.cell, v.variant):
            yield of_plan(one)
