"""A comparison: B's rate over A's with its interval, around 1 and the margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from penstock.bench.differences import Difference
from penstock.bench.render import rate_text, ratio_text
from penstock.explain.canvas import FAINT, INK, MUTED, PAPER, RULE, Canvas
from penstock.report.figures.frame import MARGIN_FILL, WIDE, Figure, column, shortened, wrapped
from penstock.report.figures.rates import COLOURS
from penstock.report.words import intervals

_LEFT, _RIGHT = 250.0, 170.0  # columns beside the plot, where there is room; right at least
_LINE = 15.0  # of a row's words


@dataclass(frozen=True)
class _Log:
    """Maps ratios to x: twice as much is as far to the right as half is to the left."""

    low: float
    high: float
    first: float
    last: float

    def __call__(self, ratio: float) -> float:
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return self.first + (self.last - self.first) * min(max(share, 0.0), 1.0)


def called(d: Difference) -> str:
    """``cell, variant``, or ``cell: x -> y`` where two variants are compared."""
    return f"{d.cell}{', ' if d.variant_a == d.variant_b else ': '}{_ways(d)}"


def _ways(d: Difference) -> str:
    return d.variant_a if d.variant_a == d.variant_b else f"{d.variant_a} -> {d.variant_b}"


def said(d: Difference) -> str:
    """The verdict and the ratio with its interval."""
    if d.ratio is None or d.low is None or d.high is None:
        return f"{d.verdict}: {d.why}"
    return f"{d.verdict}: {ratio_text(d.ratio, d.low, d.high)}"


def figure(differences: Sequence[Difference], margin: float) -> Figure:
    """The figure of comparisons of which one has a ratio."""
    lines = [f"{called(d)}, {d.rate} rate: {said(d)}." for d in differences]
    all_n = [rate.n for d in differences if d.ratio for rate in (d.a, d.b) if rate]
    return Figure(
        name="ratios",
        title="Rate of B over rate of A",
        description=" ".join(lines),
        paint=partial(_paint, differences, margin),
        caption=f"Right of 1, B is faster. {intervals('Lines', all_n)}; the band is the margin of "
        f"{100 * margin:g} % that does not matter.",
    )


def _marks(low: float, high: float) -> list[float]:
    """1 and, to both sides, what a person counts in."""
    steps = (1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
    marks = [1.0, *steps, *(1 / s for s in steps)]
    there = sorted(m for m in marks if low <= m <= high)
    kept = [1.0]
    for m in sorted(there, key=lambda m: -abs(math.log(m))):
        if all(abs(math.log(m / k)) > math.log(high / low) / 8 for k in kept):
            kept.append(m)
    return sorted(kept)


def _paint(differences: Sequence[Difference], margin: float, width: float) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    beside = width >= WIDE
    ends = [e for d in differences for e in (d.low, d.high) if e is not None and e > 0]
    low = min([*ends, 1 / (1 + 2 * margin), 0.9])
    high = max([*ends, 1 + 2 * margin, 1.1])
    right = column((said(d) for d in differences if d.ratio is not None), 11, _RIGHT)
    sides = (_LEFT, width - right) if beside else (12.0, width - 16)
    x = _Log(low, high, *sides)
    rows = [_words(d, width) for d in differences]
    words = _LINE * max(map(len, rows))  # as high as the row with most of them
    step = words + (6 if beside else 32)
    top, bottom = 12.0, 12 + step * len(differences)
    marks = _marks(low, high)
    if beside:
        _ground(canvas, x, margin, marks, (top, bottom))
    for i, (d, lines) in enumerate(zip(differences, rows, strict=True)):
        y = top + step * i
        at = y + (step / 2 if beside else words + 14)
        first = y + 14 + ((words - _LINE * len(lines)) / 2 if beside else 0)
        if not beside:  # the words have the whole width
            _ground(canvas, x, margin, marks, (at - 9, at + 9))
        for n, (line, size, fill) in enumerate(lines):
            canvas.text(8, first + _LINE * n, line, size=size, fill=fill)
        _row(canvas, d, x, at)
    for m in marks:
        canvas.text(x(m), bottom + 16, f"{m:.3g}", size=11, fill=MUTED, anchor="middle")
    return canvas, bottom + 28


def _ground(
    canvas: Canvas, x: _Log, margin: float, marks: Sequence[float], ys: tuple[float, float]
) -> None:
    """The band of the margin, and a line for each mark."""
    x0, x1 = x(1 / (1 + margin)), x(1 + margin)
    canvas.rect(x0, ys[0], x1 - x0, ys[1] - ys[0], MARGIN_FILL)
    for m in marks:
        canvas.line(x(m), ys[0], x(m), ys[1], INK if m == 1 else RULE)


def _words(d: Difference, width: float) -> list[tuple[str, float, str]]:
    """Lines that no other row has: the cell, the variants and the rate, each with size, colour."""
    beside = width >= WIDE
    room = _LEFT - 20 if beside else width - 16
    below = [f"{_ways(d)}, {d.rate} rate", *([] if beside else [said(d)])]
    lines = [(line, 12.0, INK) for line in wrapped(d.cell, room, 12)]
    return lines + [(line, 11.0, MUTED) for text in below for line in wrapped(text, room, 11)]


def _row(canvas: Canvas, d: Difference, x: _Log, at: float) -> None:
    if canvas.width >= WIDE:
        verdict = shortened(said(d), canvas.width - x.last - 20, 11)
        canvas.text(x.last + 14, at + 4, verdict, size=11, fill=MUTED)
    label = f"{called(d)}, {d.rate}"
    if d.ratio is None or d.low is None or d.high is None:
        canvas.rect(x.first, at - 3, x.last - x.first, 6, FAINT, title=f"{label}: {said(d)}")
        return
    title = f"{label}: {said(d)}; A {rate_text(d.a)}, B {rate_text(d.b)}"
    fill = COLOURS[d.rate]
    canvas.rect(x(d.low), at - 1.5, max(x(d.high) - x(d.low), 1), 3, fill)
    canvas.dot(x(d.ratio), at, 4.5, PAPER if d.verdict == "unclear" else fill, stroke=fill)
    canvas.target(x(d.low) - 8, at - 9, x(d.high) - x(d.low) + 16, 18, title)
