"""A heat map: a rate over two parameters, one colour scale, the number in every square."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from penstock.bench.render import rate_text
from penstock.bench.sample import RateKind
from penstock.bench.summary import RateSummary
from penstock.explain.canvas import FAINT, MUTED, Canvas
from penstock.report.figures.frame import WIDE, Figure, shortened, text_width
from penstock.report.figures.rates import unit_of

# From light to dark by lightness alone, so that neither print nor the eye needs the hue.
_LIGHT, _DARK = (222, 235, 247), (8, 48, 107)
_TALLEST = 150.0  # heads of columns
# Not the palette's white and ink: what stands on a square keeps its colour in the dark.
_ON_DARK, _ON_LIGHT = "#fffffe", "#10161c"


@dataclass(frozen=True)
class Square:
    """One or more cells with the same two values; ``where`` names them."""

    row: str
    column: str
    rates: tuple[RateSummary, ...]
    where: tuple[str, ...]

    @property
    def rate(self) -> float:
        """The median of the cells' medians."""
        return statistics.median(r.median_bytes_per_s for r in self.rates)

    @property
    def said(self) -> str:
        """All that a person can know of it."""
        if len(self.rates) == 1:
            return f"{self.row}, {self.column}: {rate_text(self.rates[0])} ({self.where[0]})"
        own = [r.median_bytes_per_s / 2**20 for r in self.rates]
        return (
            f"{self.row}, {self.column}: median of {len(own)} medians {self.rate / 2**20:.0f} "
            f"MiB/s [{min(own):.0f}-{max(own):.0f}], n={sum(r.n for r in self.rates)}"
        )


@dataclass(frozen=True)
class Map:
    """Squares and the order of their rows and columns."""

    row_name: str
    column_name: str
    rows: Sequence[str]
    columns: Sequence[str]
    squares: Sequence[Square]


def figure(kind: RateKind, drawn: Map, caption: str) -> Figure:
    """The figure of a map that has a square."""
    return Figure(
        name=f"heat-{kind}",
        title=f"{kind.capitalize()} rate by {drawn.row_name} and {drawn.column_name}",
        description=" ".join(f"{s.said}." for s in drawn.squares),
        paint=partial(_paint, drawn),
        caption=caption,
    )


def _paint(drawn: Map, width: float) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    unit, name = unit_of(max(s.rate for s in drawn.squares))
    longest = max(len(r) for r in drawn.rows)
    left = min(8 + 7.2 * longest + 10, 170.0 if width >= WIDE else 96.0)
    side = (width - left - 8) / len(drawn.columns)
    height = min(side, 44.0)
    canvas.text(8, 18, f"{name}; rows: {drawn.row_name}", size=11, fill=MUTED)
    canvas.text(8, 34, f"columns: {drawn.column_name}", size=11, fill=MUTED)
    tall = _column_heads(canvas, drawn.columns, left, side)
    top = 44 + tall
    for i, row in enumerate(drawn.rows):
        y = top + height * i
        label = shortened(row, left - 14, 12)
        canvas.text(left - 8, y + height / 2 + 4, label, size=12, anchor="end")
        for j in range(len(drawn.columns)):
            canvas.rect(left + side * j + 1, y + 1, side - 2, height - 2, FAINT)
    low, high = min(s.rate for s in drawn.squares), max(s.rate for s in drawn.squares)
    for s in drawn.squares:
        x = left + side * drawn.columns.index(s.column)
        y = top + height * drawn.rows.index(s.row)
        share = (s.rate - low) / (high - low) if high > low else 1.0
        _square(canvas, s, (x, y, side, height), share, unit)
    return canvas, top + height * len(drawn.rows) + 12


def _column_heads(canvas: Canvas, columns: Sequence[str], left: float, side: float) -> float:
    """Level where all fit, else upwards; how much room they take."""
    if all(text_width(c, 12) < side - 4 for c in columns):
        for j, c in enumerate(columns):
            canvas.text(left + side * (j + 0.5), 58, c, size=12, anchor="middle")
        return 22
    texts = [shortened(c, _TALLEST, 11) for c in columns]
    tall = max(text_width(t, 11) for t in texts) + 8
    for j, text in enumerate(texts):
        canvas.text(left + side * (j + 0.5) + 4, 40 + tall, text, size=11, upwards=True)
    return tall


def _square(
    canvas: Canvas, s: Square, box: tuple[float, float, float, float], share: float, unit: float
) -> None:
    x, y, side, height = box
    mixed = [round(a + (b - a) * share) for a, b in zip(_LIGHT, _DARK, strict=True)]
    fill = "#{:02x}{:02x}{:02x}".format(*mixed)
    canvas.rect(x + 1, y + 1, side - 2, height - 2, fill, title=s.said)
    size = 12 if side > 44 else 9
    value = s.rate / unit
    text = f"{value:.2f}" if value < 10 else f"{value:.0f}"
    if len(text) * 0.6 * size < side - 4:
        ink = _ON_DARK if share > 0.45 else _ON_LIGHT
        middle = y + height / 2 + 4
        canvas.text(x + side / 2, middle, text, size=size, anchor="middle", fill=ink)
