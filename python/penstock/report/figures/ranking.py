"""The ways of a cell, best first: median and interval of both rates, and the verdict in words."""

from __future__ import annotations

from functools import partial

from penstock.bench.render import rate_text, ratio_text, verdict_text
from penstock.bench.summary import CellSummary, RateSummary, VariantSummary
from penstock.explain.canvas import INK, MUTED, RULE, Canvas
from penstock.report.figures.frame import (
    WIDE,
    Figure,
    Scale,
    axis,
    column,
    legend,
    shortened,
    ticks,
)
from penstock.report.figures.rates import COLOURS, KINDS, LEGEND, draw_interval, unit_of
from penstock.report.words import intervals

_LEFT, _RIGHT = 238.0, 196.0  # columns beside the plot, where there is room; left at least


def figure(number: int, cell: CellSummary) -> Figure:
    """The figure of a cell that has at least one rate."""
    lines = intervals("Lines", [r.n for r in _all_rates(cell)])
    said = [f"{v.variant}: {standing(cell, v)}; {_rates(v)}." for v in cell.variants]
    return Figure(
        name=f"ranking-{number}",
        title=f"Ranked: {cell.cell}",
        description=f"{verdict_text(cell)}. {' '.join(said)}",
        paint=partial(_paint, cell),
        caption=f"{verdict_text(cell)}. {lines}; the dot is the median; below a name: its rate "
        f"over the best one's.{_not_drawn(cell)}",
    )


def standing(cell: CellSummary, v: VariantSummary) -> str:
    """What the ranking says of a variant."""
    if v.invalid:
        return "INVALID"
    if v in cell.not_writing:
        return "writes nothing"
    if v.variant == cell.ranking.best:
        return "best" if cell.ranking.against else "compared with nothing"
    a = next((a for a in cell.ranking.against if a.variant == v.variant), None)
    if a is None:
        return "no samples"
    words = {"same": "as good", "slower": "slower"}.get(a.verdict, "not told apart")
    return f"{words}: {ratio_text(a.ratio, a.low, a.high)}"


def _not_drawn(cell: CellSummary) -> str:
    names = ", ".join(v.variant for v in cell.not_writing)
    return f" Not drawn, for they write nothing: {names}." if names else ""


def _rates(v: VariantSummary) -> str:
    return "; ".join(f"{kind} {rate_text(v.rate(kind))}" for kind in KINDS)


def _all_rates(cell: CellSummary) -> list[RateSummary]:
    return [r for v in cell.writing for kind in KINDS if (r := v.rate(kind))]


def _paint(cell: CellSummary, width: float) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    largest = max(r.high_bytes_per_s for r in _all_rates(cell))
    unit, name = unit_of(largest)
    beside = width >= WIDE
    marks = ticks(largest / unit, 6 if beside else 4)
    left = column((standing(cell, v) for v in cell.writing), 11, _LEFT)
    ends = (left, width - _RIGHT) if beside else (12.0, width - 16)
    scale = Scale(marks[-1] * unit, *ends)
    kinds = [k for k in KINDS if any(v.rate(k) for v in cell.writing)]
    top = legend(canvas, 8, 20, [(COLOURS[k], LEGEND[k]) for k in kinds])
    step = 46.0 if beside else 84.0
    bottom = top + step * len(cell.writing)
    axis(canvas, Scale(marks[-1], *ends), marks, bottom, top, name)
    for i, v in enumerate(cell.writing):
        _row(canvas, cell, v, scale, top + step * i)
    return canvas, bottom + 40


def _row(canvas: Canvas, cell: CellSummary, v: VariantSummary, scale: Scale, y: float) -> None:
    beside = canvas.width >= WIDE
    canvas.line(0, y, canvas.width, y, RULE)
    room = scale.first - 16 if beside else canvas.width - 16
    weight = 600 if v.variant == cell.ranking.best else 400
    canvas.text(8, y + 18, shortened(v.variant, room, 13), size=13, weight=weight, fill=INK)
    canvas.text(8, y + 34, shortened(standing(cell, v), room, 11), size=11, fill=MUTED)
    at = y + 14 if beside else y + 48
    for kind in KINDS:
        rate = v.rate(kind)
        if rate is not None:
            draw_interval(canvas, scale, at, kind, rate, v.variant)
            if beside:
                text = rate_text(rate)
                canvas.text(canvas.width - _RIGHT + 18, at + 4, text, size=11, fill=COLOURS[kind])
        at += 18
