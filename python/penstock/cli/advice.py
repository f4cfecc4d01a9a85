"""How to run programs like a cell, which ``penstock bench`` says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock import _core
from penstock.bench import quick
from penstock.bench.cases import Case, of_plan
from penstock.bench.sample import RateKind
from penstock.bench.store import Results
from penstock.bench.summary import (
    CellSummary,
    Rates,
    Summary,
    VariantSummary,
    among,
    rates_by_cell,
)

_SHARED = "shared"  # by all workers, as programs have their file unless told otherwise


@dataclass(frozen=True)
class _Known:
    """What results tell of a cell: its ways as planned, and their rates that rank.

    ``pilot`` are the ways of the default that failed when they were tried, and why.
    """

    planned: Mapping[str, Case]
    pilot: Mapping[str, str]
    ranked: Rates


def advice(said: Summary, results: Results) -> Iterator[str]:
    """A line for each cell of ``results`` whose best is one of Penstock's methods.

    No method is named unless it is shown to beat the default, or that is not to be used.
    """
    pilot = quick.default_failed(results.headers[0].plan)
    ranked = rates_by_cell(results.samples, said.rate)
    for cell in said.cells:
        known = _Known(_planned(cell, results), pilot, ranked[cell.cell])
        if line := _of_cell(cell, said.rate, known):
            yield line


def _of_cell(cell: CellSummary, rate: RateKind, known: _Known) -> str:
    served = _served(cell, known)
    best = next((v for v in served.variants if v.variant == served.ranking.best), None)
    if best is None or not best.method:
        return ""
    like = f"for programs like {cell.cell}"
    named = f"penstock run --method {shlex.quote(best.method)} -- ..."
    is_default = best.method == _default()
    other_files = not is_default and _has_other_files(best, served, known)
    if why := next(_against_the_default(cell, rate, known), ""):
        if is_default or other_files:
            where = ", on other files" if other_files else ""
            return f"{like} there is no advice: {best.variant} is the best{where}, and {why}"
        return f"{like}, as {why}: {named}"
    if is_default:
        return f"{like}: penstock run -- ..."
    if other_files:
        return f"{like}, as {best.variant} writes other files than the default: penstock run -- ..."
    if not _beats_the_default(served):
        why = f"{best.variant} is not shown to be better than the default"
        return f"{like}, as {why}: penstock run -- ..."
    return f"{like}: {named}"


def _served(cell: CellSummary, known: _Known) -> CellSummary:
    """A cell's ways of MPI, where it has any: penstock run serves no other programs."""
    ranks = {name for name, case in known.planned.items() if case.mpi != "none"}
    some = [v for v in cell.variants if v.variant in ranks]
    return among(cell, some, known.ranked) if some else cell


def _default() -> str:
    return str(_core.default_method())


def _has_other_files(best: VariantSummary, cell: CellSummary, known: _Known) -> bool:
    """Whether it has a file for each worker, say, and the default one: no method does that."""
    usual = {_files(v, known) for v in cell.variants if _is_default(v, known)}
    if known.pilot:
        usual.add(_SHARED)
    return bool(usual) and _files(best, known) not in usual


def _files(v: VariantSummary, known: _Known) -> str:
    asked = known.planned[v.variant].parameters if v.variant in known.planned else {}
    return v.files or str(asked.get("files", _SHARED))


def _beats_the_default(cell: CellSummary) -> bool:
    defaults = {v.variant for v in cell.variants if v.method == _default()}
    return bool(defaults) and defaults <= set(cell.ranking.slower)


def _against_the_default(cell: CellSummary, rate: RateKind, known: _Known) -> Iterator[str]:
    """Why the default is not to be used, of each way that is it, even if its rate is the best."""
    for v in (v for v in cell.variants if _is_default(v, known)):
        if why := _why_not(v, rate) or _outdone(v, cell, known):
            yield f"{v.variant}, which is the default, {why}"
    for name, why in known.pilot.items():
        yield f"{name}, which is the default, failed when it was tried ({why})"


def _why_not(v: VariantSummary, rate: RateKind) -> str:
    if v.invalid:
        return "left wrong bytes"
    if v.failures and (v.rate(rate) is None or v.is_chance(rate)):
        return f"failed in {v.failures} of {v.failures + v.samples} samples"
    return ""


def _outdone(default: VariantSummary, cell: CellSummary, known: _Known) -> str:
    """By its MPI library alone, on the same files."""
    for v in cell.variants:
        if _is_library_of(default, v, known) and _files(v, known) == _files(default, known):
            ranking = among(cell, [v, default], known.ranked).ranking
            if default.variant in ranking.slower:
                return f"is slower than {v.variant}"
    return ""


def _is_library_of(default: VariantSummary, v: VariantSummary, known: _Known) -> bool:
    asked, own = known.planned.get(v.variant), known.planned.get(default.variant)
    if asked is None or own is None or asked.preload:
        return False
    return asked.parameters.get("route") == "mpi" and asked.mpi == own.mpi


def _is_default(v: VariantSummary, known: _Known) -> bool:
    """By what it said of itself, or where it always died before that by what was planned."""
    if v.method is not None:
        return v.method == _default()
    return v.variant in known.planned and known.planned[v.variant].is_default


def _planned(cell: CellSummary, results: Results) -> Mapping[str, Case]:
    """The variants of a cell as they were planned."""
    measurements = (m for header in results.headers for m in header.plan.get("measurements", []))
    return {m["variant"]: of_plan(m) for m in measurements if m["cell"] == cell.cell}
