"""What a run of the peers says: per cell the best peer, Penstock, the ceiling and their ratios; and
what becomes of the conclusions that cells.toml asks for. A value with a schema of its own.

Ratios are of rates (above 1 the first is faster), paired by block, with the order-statistic
interval of their median. The clock is the one that the cell's ``end`` stops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from beside import conclusions as decided
from beside.measured import MeasuredReport, about, asked, cells_of
from beside.samples import by_block, not_by_chance, of_its_library, paired, phases, spread
from beside.spec import Cell, Conclusion
from beside.values import CellReport, Spread, Variant
from penstock.bench.chance import is_dropped
from penstock.bench.sample import Sample
from penstock.bench.store import Results

SCHEMA = "penstock.peers/1"


class Report(MeasuredReport):
    """A run."""

    schema_name: str = Field(default=SCHEMA, alias="schema")
    cells: list[CellReport]

    @property
    def families(self) -> list[str]:
        """In the order of the plan."""
        return list(dict.fromkeys(cell.family for cell in self.cells))


def report(
    results: Results, conclusions: Sequence[Conclusion], notices: Sequence[str] = ()
) -> Report:
    """Make the report of the results of a run.

    Parameters
    ----------
    results : Results
        As penstock.bench.store loads them; the plan in their header tells what the variants are.
    conclusions : sequence of Conclusion
        What is to be decided where the results do not keep what was asked.
    notices : sequence of str
        What a reader should know besides, such as who could not be measured.
    """
    cells = [_cell(name, *of_cell) for name, of_cell in cells_of(results).items()]
    drawn = [decided.conclude(c, cells) for c in asked(results, conclusions)]
    return Report(cells=cells, **about(results, drawn, notices))


# ---- a cell -----------------------------------------------------------------------------------


def _cell(name: str, planned: list[dict[str, Any]], samples: Sequence[Sample]) -> CellReport:
    by_variant = {p["variant"]: _samples_of(p, samples) for p in planned}
    variants = [_variant(p, by_variant[p["variant"]]) for p in planned]
    facts = planned[0]["parameters"]
    cell = Cell.model_validate({k: v for k, v in facts.items() if k in Cell.model_fields})
    best = best_peer(variants)

    def against(other: str | None, whose: str = "penstock") -> Spread | None:
        return paired(*(by_block(by_variant.get(name or "", [])) for name in (other, whose)))

    ratio = against(best)
    expected = cell.expected
    return CellReport(
        name=name,
        cell=cell,
        family=facts["family"],
        variants=variants,
        best_peer=best,
        ratio=ratio,
        of_ceiling=against("ceiling"),
        of_own=against(own_path(variants)),
        ring=against(best, "ceiling"),
        instead={
            v.name: r
            for v in variants
            if v.kind == "instead" and not v.same_file and (r := against(v.name)) is not None
        },
        as_expected=expected[0] <= ratio.median <= expected[1] if expected and ratio else None,
    )


def _samples_of(planned: dict[str, Any], samples: Sequence[Sample]) -> list[Sample]:
    title = planned["parameters"]["title"]
    return [of_its_library(s, title) for s in samples if s.variant == planned["variant"]]


def best_peer(variants: Sequence[Variant]) -> str | None:
    """Who writes the same file fastest, by the median; one that wrote a wrong byte is none."""
    rated = [v for v in variants if v.is_peer and v.rate is not None and not v.wrong]
    fit = not_by_chance(rated)
    return max(fit, key=lambda v: v.rate.median if v.rate else 0.0).name if fit else None


def own_path(variants: Sequence[Variant]) -> str | None:
    """The MPI library that Penstock runs on, at its default where that was measured."""
    ours = next((v for v in variants if v.kind == "penstock"), None)
    own = [v for v in variants if ours and v.kind == "library" and v.library == ours.library]
    return min(own, key=lambda v: bool(v.setting)).name if own else None


def _variant(planned: dict[str, Any], samples: Sequence[Sample]) -> Variant:
    facts = planned["parameters"]
    failed = [s.failed for s in samples if s.failed is not None]
    last = next((s.result for s in reversed(samples) if s.result is not None), None)
    known = {k: facts[k] for k in ("title", "kind", "library", "setting", "is_best", "same_file")}
    return Variant(
        name=planned["variant"],
        mpi=last.mpi if last else None,
        bytes=last.bytes if last else None,
        rate=spread(list(by_block(samples).values())),
        actual=spread([r for s in samples if s.counts and (r := s.rate("actual"))]),
        phases=phases(samples),
        failures=len(failed),
        lost=sum(s.is_lost for s in samples),
        dropped=is_dropped(samples),
        failed=list(dict.fromkeys(failed)),
        wrong=any(s.wrong_bytes for s in samples),
        **known,
    )
