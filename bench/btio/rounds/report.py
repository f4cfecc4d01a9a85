"""What the samples say: rates and ratios of every cell, and the conclusions.

Ratios are of rates (above 1 the first is faster), paired by block, with the order-statistic
interval of their median.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beside.conclusions import decide, together
from beside.measured import NOT_KEPT, MeasuredReport, about, asked, cells_of
from beside.samples import by_block, not_by_chance, paired, spread
from beside.spec import Access, Setting, Verdict
from beside.values import CellVerdict, ConclusionReport, Spread, Value
from pydantic import Field

from penstock.bench.chance import is_dropped
from penstock.bench.sample import Sample
from penstock.bench.store import Results
from rounds.study import OWN_FILES, Conclusion, Kind

SCHEMA = "penstock.btio/1"


class Variant(Value):
    """One way of writing a cell; ``failed`` says why samples do not count, each reason once."""

    name: str
    title: str
    kind: Kind
    access: Access | None
    setting: Setting
    rate: Spread | None
    failures: int
    lost: int = 0
    dropped: bool = False
    failed: list[str]
    wrong: bool


class RatioReport(Value):
    """``ours`` over ``against``."""

    ours: str
    against: str
    ratio: Spread


class CellReport(Value):
    """A class on a number of ranks; the factor is that of its outputs."""

    name: str
    class_name: str = Field(alias="class")
    ranks: int
    outputs: int
    of: int
    end: str
    bytes: int | None
    variants: list[Variant]
    ratios: dict[str, RatioReport]  # by the conclusion's name


class Report(MeasuredReport):
    """A run."""

    schema_name: str = Field(default=SCHEMA, alias="schema")
    cells: list[CellReport]


def report(results: Results, conclusions: Sequence[Conclusion]) -> Report:
    """Make the report of a run.

    Parameters
    ----------
    results : Results
        As penstock.bench.store loads them; the plan in their header tells what the variants are.
    conclusions : sequence of Conclusion
        What is to be decided.
    """
    wanted = asked(results, conclusions)
    cells = [_cell(name, *of_cell, wanted) for name, of_cell in cells_of(results).items()]
    return Report(cells=cells, **about(results, [_conclusion(c, cells) for c in wanted]))


def _cell(
    name: str,
    planned: Sequence[dict[str, Any]],
    samples: Sequence[Sample],
    conclusions: Sequence[Conclusion],
) -> CellReport:
    by_variant = {p["variant"]: [s for s in samples if s.variant == p["variant"]] for p in planned}
    variants = [_variant(p, by_variant[p["variant"]]) for p in planned]
    ratios = {
        c.name: ratio for c in conclusions if (ratio := _ratio(c, variants, by_variant)) is not None
    }
    facts = planned[0]["parameters"]
    last = next((s.result for s in reversed(samples) if s.result is not None), None)
    return CellReport(
        name=name,
        **{k: facts[k] for k in ("class", "ranks", "outputs", "of", "end")},
        bytes=last.bytes if last else None,
        variants=variants,
        ratios=ratios,
    )


def _variant(planned: Mapping[str, Any], samples: Sequence[Sample]) -> Variant:
    facts = planned["parameters"]
    failed = [s.failed for s in samples if s.failed is not None]
    return Variant(
        name=planned["variant"],
        **{k: facts[k] for k in ("title", "kind", "access", "setting")},
        rate=spread(list(by_block(samples).values())),
        failures=len(failed),
        lost=sum(s.is_lost for s in samples),
        dropped=is_dropped(samples),
        failed=list(dict.fromkeys(failed)),
        wrong=any(s.wrong_bytes for s in samples),
    )


def best_peer(variants: Sequence[Variant], access: Access) -> str | None:
    """The fastest by the median; one that wrote a wrong byte is none."""
    peers = [v for v in variants if v.kind == "peer" and v.access == access]
    fit = not_by_chance([v for v in peers if v.rate is not None and not v.wrong])
    return max(fit, key=lambda v: v.rate.median if v.rate else 0.0).name if fit else None


def _ratio(
    conclusion: Conclusion,
    variants: Sequence[Variant],
    by_variant: Mapping[str, Sequence[Sample]],
) -> RatioReport | None:
    whom = _against(conclusion, variants)
    if conclusion.every_sample or whom is None:
        return None
    ours = f"penstock-{conclusion.ours}"
    ratio = paired(*(by_block(by_variant.get(name, [])) for name in (whom, ours)))
    return RatioReport(ours=ours, against=whom, ratio=ratio) if ratio is not None else None


def _against(conclusion: Conclusion, variants: Sequence[Variant]) -> str | None:
    if conclusion.against == "penstock collective":
        return "penstock-collective"
    access: Access = "collective" if conclusion.against == "best collective" else "independent"
    return best_peer(variants, access)


# ---- conclusions ------------------------------------------------------------------------------


def _conclusion(conclusion: Conclusion, cells: Sequence[CellReport]) -> ConclusionReport:
    verdicts = [_verdict(conclusion, cell) for cell in cells]
    return ConclusionReport(
        name=conclusion.name,
        says=conclusion.says,
        predicted=conclusion.predicted,
        verdict=together([v.verdict for v in verdicts]),
        gate=conclusion.gate,
        cells=verdicts,
    )


def _verdict(conclusion: Conclusion, cell: CellReport) -> CellVerdict:
    if conclusion.every_sample:
        return _every_sample(cell)
    one = cell.ratios.get(conclusion.name)
    if one is None:
        return _no_pair(conclusion, cell)
    verdict = decide(one.ratio, conclusion.at_least)
    return CellVerdict(cell=cell.name, verdict=verdict, why=_ratio_text(one))


def _no_pair(conclusion: Conclusion, cell: CellReport) -> CellVerdict:
    """Without a sample of ours because ours failed, it failed; else nobody was there to compare."""
    named = (v for v in cell.variants if v.name == f"penstock-{conclusion.ours}")
    ours = next(named, None)
    if ours is not None and ours.failed and not ours.rate:
        return CellVerdict(cell=cell.name, verdict="fails", why=ours.failed[0])
    return CellVerdict(cell=cell.name, verdict="not measured", why="no pair of samples")


def _every_sample(cell: CellReport) -> CellVerdict:
    ours = [v for v in cell.variants if v.kind == "penstock"]
    failed = [why for v in ours for why in v.failed]
    taken = sum(v.rate.n for v in ours if v.rate is not None)
    if failed:
        return CellVerdict(cell=cell.name, verdict="fails", why=failed[0])
    verdict: Verdict = "holds" if taken else "not measured"
    return CellVerdict(cell=cell.name, verdict=verdict, why=f"{taken} samples")


# ---- for people -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """How a page came to be."""

    title: str
    study: str  # the file of cells
    raw: str  # where the samples are, relative to the page
    measure: str  # the command that takes samples
    page: str  # its name


def markdown(said: Report, made: Made) -> str:
    """The page under docs/benchmarks."""
    opening = _OPENING.format(
        date=said.created[:10],
        penstock=said.penstock,
        place=_place(said),
        samples=said.samples,
        seed=said.seed,
        title=made.title,
        study=made.study,
        measure=made.measure,
        raw=made.raw,
        command=f"{made.measure} --table docs/benchmarks/{made.raw} "
        f"--page docs/benchmarks/{made.page}",
    )
    told = [] if said.conclusions_kept else [NOT_KEPT]
    return "\n\n".join([opening, *told, *tables(said)]) + "\n"


def tables(said: Report) -> list[str]:
    """What the page and the terminal have in common."""
    parts = ["## Conclusions", _table(_DECIDED, [_conclusion_row(c) for c in said.conclusions])]
    for end, title in (("close", "Not synced"), ("sync", "Synced")):
        if cells := [cell for cell in said.cells if cell.end == end]:
            parts += [f"## {title}", _ratio_table(said, cells), _rate_table(cells)]
    doubts = [*_failures(said), *(f"{f.name}: {f.evidence}" for f in said.findings), *said.notices]
    if doubts:
        parts += ["## What to doubt", "\n".join(f"- {line}" for line in doubts)]
    return parts


_DECIDED = ("", "conclusion", "verdict", "predicted", "decided by")
_OPENING = """\
# {title}

What NAS BT-IO writes, without computing: [bench/btio](../../bench/btio/README.md). Measured {date}
with Penstock {penstock} at its default method and without hints: {place}; {samples} samples in
random interleaved blocks (seed {seed}), each read back and compared byte by byte after the clock
had stopped. Cells, settings of the libraries, conclusions and predictions were committed before the
first sample (`{study}`).

`{measure}` measures it on your machine; this page was made by `{command}`
from [the raw samples]({raw}).

- The clock runs from before the open until after the close, as in liao-2007; *synced* with an
  `MPI_File_sync` before the close. What is not synced is written by a program that has none in it.
- A cell is a class and a number of ranks; how many of its outputs were written stands beside it.
- Rates in MB/s (10^6 bytes per second), the median and its interval. Ratios are of rates, paired by
  block, with the interval of the median of the pairs: above 1 Penstock is faster. *best* is the
  fastest library's by the median.
- A conclusion *holds* in a cell when the whole interval is at or above its threshold, *fails* when
  the whole of it is below, else it is *undecided*; it fails by one failing cell."""


def _place(said: Report) -> str:
    if not said.provenances:
        return "an unknown machine"
    found = said.provenances[-1]
    kind = found.file_system.get("type", "an unknown file system")
    memory = found.memory_bytes / 2**30
    return f"{found.cpus} cores, {memory:.0f} GiB, {kind}, Linux {found.kernel.split('-')[0]}"


def _conclusion_row(c: ConclusionReport) -> list[str]:
    own = [cell for cell in c.cells if cell.verdict == c.verdict]
    shown = "; ".join(f"{cell.cell}: {cell.why}" for cell in own[:4])
    more = f"; and {len(own) - 4} more" if len(own) > 4 else ""
    decided = f"{len(own)} of {len(c.cells)}: {shown}{more}"
    return [c.name, c.says, f"**{c.verdict}**", c.predicted, decided]


def _size_of(cell: CellReport) -> str:
    factor = "" if cell.outputs == cell.of else f", {cell.outputs} of {cell.of} outputs"
    return f"{cell.name}{factor}"


def _ratio_table(said: Report, cells: Sequence[CellReport]) -> str:
    shown = [c for c in said.conclusions if any(c.name in cell.ratios for cell in cells)]
    head = ["cell", *(f"{c.name} ({c.verdict})" for c in shown)]
    rows = [
        [_size_of(cell), *(_ratio_text(cell.ratios.get(c.name)) for c in shown)] for cell in cells
    ]
    return _table(head, rows)


def _ratio_text(one: RatioReport | None) -> str:
    if one is None:
        return "-"
    r = one.ratio
    return f"{r.median:.2f} [{r.low:.2f}-{r.high:.2f}] n={r.n} of {one.against}"


def _rate_table(cells: Sequence[CellReport]) -> str:
    names = list(dict.fromkeys(v.name for cell in cells for v in cell.variants))
    rows = []
    for cell in cells:
        by_name = {v.name: v for v in cell.variants}
        rows.append([cell.name, *(_rate_text(by_name.get(n)) for n in names)])
    marked = [f"{n} (other files)" if n == OWN_FILES else n for n in names]
    return _table(["cell", *marked], rows)


def _rate_text(variant: Variant | None) -> str:
    if variant is None:
        return "-"
    if variant.rate is None:
        return "failed" if variant.failed else "-"
    s = variant.rate
    low, middle, high = (f"{x / 1e6:.0f}" for x in (s.low, s.median, s.high))
    return f"{middle} [{low}-{high}]"


def _failures(said: Report) -> list[str]:
    return [
        f"{cell.name}: {v.title} failed {v.failures} times: {v.failed[0]}"
        for cell in said.cells
        for v in cell.variants
        if v.failed
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(x.replace("|", "\\|") for x in one) + " |" for one in lines)
