"""Stacked bars: where the time of runs and jobs went. And plain bars: how often, by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from penstock.explain.canvas import INK, MUTED, Canvas
from penstock.report.figures.frame import (
    APPLICATION,
    PHASES,
    WIDE,
    Figure,
    Scale,
    axis,
    legend,
    shortened,
    ticks,
)

_LEFT = 190.0


@dataclass(frozen=True)
class Bar:
    """What is stacked: seconds by phase, in the figure's order, and what is said of each."""

    label: str
    seconds: tuple[float, ...]
    said: tuple[str, ...]


def stacked(
    name: str, title: str, phases: Sequence[str], bars: Sequence[Bar], caption: str
) -> Figure:
    """One bar per way or file, in parts of a phase each; phases that took no time are left out."""
    used = [i for i in range(len(phases)) if any(b.seconds[i] > 0 for b in bars)]
    said = [f"{b.label}: {', '.join(b.said[i] for i in used)}." for b in bars]
    return Figure(
        name=name,
        title=title,
        description=" ".join(said),
        paint=partial(_paint_stacked, phases, bars, used),
        caption=caption,
    )


def _paint_stacked(
    phases: Sequence[str], bars: Sequence[Bar], used: list[int], width: float
) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    beside = width >= WIDE
    top = legend(canvas, 8, 20, [(PHASES[i % len(PHASES)], phases[i]) for i in used])
    longest = max(sum(b.seconds) for b in bars)
    unit, name = (1.0, "seconds") if longest >= 1 else (0.001, "milliseconds")
    marks = ticks(longest / unit, 6 if beside else 4)
    ends = (_LEFT, width - 24) if beside else (12.0, width - 16)
    step = 34.0 if beside else 50.0
    bottom = top + step * len(bars) + 4
    axis(canvas, Scale(marks[-1], *ends), marks, bottom, top, name)
    scale = Scale(marks[-1] * unit, *ends)
    for i, bar in enumerate(bars):
        y = top + step * i + (8 if beside else 24)
        room = _LEFT - 16 if beside else width - 16
        label = shortened(bar.label, room, 13)
        canvas.text(8, y + (14 if beside else -6), label, size=13, fill=INK)
        _stack(canvas, scale, bar, used, y)
    return canvas, bottom + 40


def _stack(canvas: Canvas, scale: Scale, bar: Bar, used: list[int], y: float) -> None:
    at = 0.0
    for i in used:
        x0, x1 = scale(at), scale(at + bar.seconds[i])
        said = f"{bar.label}: {bar.said[i]}"
        canvas.rect(x0, y, x1 - x0, 20, PHASES[i % len(PHASES)], title=said)
        at += bar.seconds[i]


def counted(
    name: str, title: str, bars: Sequence[tuple[str, int]], unit: str, caption: str
) -> Figure:
    """How often, by class."""
    return Figure(
        name=name,
        title=title,
        description=f"{title}: {', '.join(f'{label}: {n}' for label, n in bars)} {unit}.",
        paint=partial(_paint_counted, bars, unit),
        caption=caption,
    )


def _paint_counted(
    bars: Sequence[tuple[str, int]], unit: str, width: float
) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    left, top = 130.0, 12.0
    bottom = top + 24 * len(bars)
    scale = Scale(max(n for _, n in bars), left, width - 90)
    for i, (label, n) in enumerate(bars):
        y = top + 24 * i
        canvas.text(left - 8, y + 14, label, size=12, anchor="end", fill=MUTED)
        length = max(scale(n) - left, 1.0 if n else 0.0)
        canvas.rect(left, y + 3, length, 16, APPLICATION, title=f"{label}: {n} {unit}")
        canvas.text(left + length + 6, y + 15, f"{n}", size=11, fill=INK)
    return canvas, bottom + 12
