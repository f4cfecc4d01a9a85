"""What the figures share: their two widths, colours, axes from zero, and texts that fit.

A figure is drawn in the colours of the light palette; the page's stylesheet says what each becomes
in the dark (`DARK`).
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.explain import canvas as shapes
from penstock.explain.canvas import INK, MUTED, RULE, Canvas

WIDE, NARROW = 760.0, 360.0  # a page's column, and a phone's
_MOST_LINES = 3  # of a name

# After Okabe and Ito; what differs in colour differs in shape, place or words too.
APPLICATION, ACTUAL = "#0072b2", "#c2500a"
PHASES = ("#8c97a3", "#56b4e9", "#1b6ca8", "#e69f00", "#009e73", "#cc79a7")
MARGIN_FILL = "#e3e9ee"
DARK = {
    shapes.PAPER: "#171c22",
    INK: "#e7ecf1",
    MUTED: "#a3afbb",
    RULE: "#3a444e",
    shapes.FAINT: "#222a32",
    APPLICATION: "#5db8f0",
    ACTUAL: "#f39a5c",
    MARGIN_FILL: "#2c353e",
}

Paint = Callable[[float], tuple[Canvas, float]]


@dataclass(frozen=True)
class Figure:
    """A picture that can be drawn as wide as its place is.

    ``name`` is ours, never a stranger's: files and ids are called so. ``paint`` gives the canvas
    of a width, and its height; ``fixed`` says that it knows one width only.
    """

    name: str
    title: str
    description: str
    paint: Paint
    caption: str = ""
    fixed: bool = False

    def svg(self) -> str:
        """On its own, as wide as a page's column."""
        canvas, height = self.paint(WIDE)
        return canvas.document(height, self.title, self.description)

    def inline(self, width: float) -> str:
        """As part of a page."""
        canvas, height = self.paint(width)
        return canvas.inline(height, self.title, self.description, f"{self.name}-{width:g}")


@dataclass(frozen=True)
class Scale:
    """Maps values from 0 to ``end`` to x or y."""

    end: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        """The coordinate of a value."""
        return self.first + (self.last - self.first) * value / (self.end or 1.0)


def ticks(end: float, most: int = 5) -> list[float]:
    """From 0 in steps of 1, 2 or 5 times a power of ten, the last at least ``end``."""
    if not end > 0:
        return [0.0, 1.0]
    rough = end / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
    return [step * i for i in range(math.ceil(end / step - 1e-9) + 1)]


def axis(canvas: Canvas, scale: Scale, marks: list[float], y: float, top: float, unit: str) -> None:
    """A horizontal axis below ``y`` with its grid up to ``top``; the unit stands behind the end."""
    for mark in marks:
        canvas.line(scale(mark), top, scale(mark), y, RULE)
        canvas.text(scale(mark), y + 16, f"{mark:g}", size=11, fill=MUTED, anchor="middle")
    canvas.text(scale.last, y + 32, unit, size=11, fill=MUTED, anchor="end")


def text_width(text: str, size: float) -> float:
    """How wide a line is, by a mean width of its letters."""
    return 0.58 * size * len(text)


def column(texts: Iterable[str], size: float, least: float) -> float:
    """How wide a column is in which none of these texts, which hold numbers, is shortened."""
    return max([least, *(text_width(t, size) + 24 for t in texts)])


def shortened(text: str, width: float, size: float) -> str:
    """The text, or its two ends where it is too wide: names often differ in the last letters."""
    room = int(width / (0.58 * size))
    if len(text) <= room:
        return text
    head = max(1, (room - 1) * 2 // 3)
    tail = max(1, room - 1 - head)
    return f"{text[:head]}…{text[-tail:]}"


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text as lines, broken behind commas too; its two ends where they would be many."""
    room = max(1, int(width / (0.58 * size)))
    whole = shortened(text, _MOST_LINES * width, size)
    return textwrap.wrap(re.sub(r",(?=\S)", ", ", whole), room) or [""]


def legend(canvas: Canvas, x: float, y: float, entries: list[tuple[str, str]]) -> float:
    """Swatches with their words, as many lines as they need; the y below them."""
    at = x
    for fill, words in entries:
        needed = 18 + text_width(words, 12) + 14
        if at > x and at + needed > canvas.width:
            at, y = x, y + 20
        canvas.rect(at, y - 10, 12, 12, fill, radius=2)
        canvas.text(at + 18, y, words, size=12)
        at += needed
    return y + 14
