"""Draws gotwals-1995's figures 3 and 4 side by side: rates against the size of an output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock import _core
from penstock.explain.canvas import INK, MUTED, Canvas, colour
from penstock.simulate.gotwals import (
    PAPER,
    PAPER_AT,
    Point,
    curves,
    has_limit,
    is_the_papers,
    limit,
)
from penstock.simulate.output import Paging, System

WIDTH, HEIGHT = 1000.0, 500.0
_TOP, _BOTTOM = 150.0, 420.0
_PANEL = 370.0
_LEFT, _RIGHT = 80.0, 560.0
MOST = 6.0  # times the memory
_STEPS = 30
_BLACK, _BLUE, _ORANGE = MUTED, colour(0), colour(4)

Value = Callable[[Point], float]


@dataclass(frozen=True)
class Panel:
    """Where a diagram is, and what its axes say."""

    canvas: Canvas
    left: float
    top_value: float
    heading: str

    def at(self, ratio: float, value: float) -> tuple[float, float]:
        """The place of a point."""
        x = self.left + _PANEL * ratio / MOST
        return x, _BOTTOM - (_BOTTOM - _TOP) * value / self.top_value

    def curve(self, ratios: Sequence[float], values: Sequence[float], stroke: str,
              title: str, *, dashed: bool = False) -> None:  # fmt: skip
        """A curve with its name as a tooltip."""
        places = [self.at(r, v) for r, v in zip(ratios, values, strict=True)]
        self.canvas.trace(places, stroke, dashed=dashed, title=title)

    def axes(self, marks: Sequence[float]) -> None:
        """Rules at the marks, and a number of memories below."""
        self.canvas.text(self.left, _TOP - 22, self.heading, size=14, weight=600)
        for mark in marks:
            _, y = self.at(0, mark)
            self.canvas.line(self.left, y, self.left + _PANEL, y)
            self.canvas.text(self.left - 8, y + 4, f"{mark:g}", size=11, fill=MUTED, anchor="end")
        for ratio in range(int(MOST) + 1):
            x, y = self.at(ratio, 0)
            self.canvas.line(x, y, x, y + 5, MUTED)
            self.canvas.text(x, y + 19, str(ratio), size=11, fill=MUTED, anchor="middle")
        middle = self.left + _PANEL / 2
        self.canvas.text(
            middle, _BOTTOM + 40, "output / memory", size=12, fill=MUTED, anchor="middle"
        )


def draw(system: System) -> str:
    """The picture as SVG text; the paper's points where the system has its ratios."""
    canvas = Canvas(WIDTH)
    ratios = [MOST * (i + 1) / _STEPS for i in range(_STEPS)]
    points = curves(system, ratios)
    _heading(canvas, system)
    _applications(canvas, points, system)
    _actuals(canvas, points, system)
    _legend(canvas, system)
    return canvas.document(HEIGHT, "Application and actual rate against the output", _words(points))


def _heading(canvas: Canvas, system: System) -> None:
    canvas.text(40, 44, "An output through an I/O node with virtual memory", size=22, weight=600)
    block = _core.human_size(system.block)
    line = (
        f"memory {_core.human_size(system.memory_bytes)}, blocks of {block}; network "
        f"{system.network_ratio:g}, paging disk {system.paging_ratio:g} times the output disk"
    )
    if system.nodes > 1:
        line += f"; {system.nodes} I/O nodes, {system.mapping}"
    canvas.text(40, 70, line, size=13, fill=MUTED)


def _unit(system: System) -> str:
    return "raw disk" if system.nodes == 1 else f"all {system.nodes} raw disks"


def _applications(canvas: Canvas, points: Sequence[Point], system: System) -> None:
    panel = Panel(canvas, _LEFT, system.network_ratio / system.nodes,
                  f"Application rate / {_unit(system)}, either algorithm")  # fmt: skip
    panel.axes([system.network_ratio / system.nodes * i / 5 for i in range(6)])
    ratios = [p.ratio for p in points]
    panel.curve(ratios, [p.without.application for p in points], _BLACK, "without virtual memory")
    panel.curve(ratios, [p.demand.application for p in points], _BLUE, "with, either algorithm")


def _actuals(canvas: Canvas, points: Sequence[Point], system: System) -> None:
    panel = Panel(canvas, _RIGHT, 1.0, f"Actual rate / {_unit(system)}")
    panel.axes([0, 0.2, 0.4, 0.6, 0.8, 1])
    ratios = [p.ratio for p in points]
    panel.curve(ratios, [p.without.actual for p in points], _BLACK, "without virtual memory")
    played: list[tuple[Paging, str, Value]] = [
        ("demand", _BLUE, lambda p: p.demand.actual),
        ("early", _ORANGE, lambda p: p.early.actual),
    ]
    for paging, stroke, value in played:
        panel.curve(ratios, [value(p) for p in points], stroke, paging)
        if has_limit(system):
            limits = [limit(system, r, paging).actual for r in ratios]
            panel.curve(ratios, limits, stroke, f"{paging}, ever smaller blocks", dashed=True)
        if is_the_papers(system):
            x, y = panel.at(PAPER_AT, PAPER[paging])
            canvas.dot(x, y, 5, stroke, stroke=INK)
            canvas.target(x - 5, y - 5, 10, 10, f"the paper, {paging}: {PAPER[paging]}")


def _legend(canvas: Canvas, system: System) -> None:
    entries: list[tuple[str, str, bool]] = [
        (_BLACK, "buffer in memory alone", False),
        (_BLUE, "demand paging", False),
        (_ORANGE, "early page-in", False),
    ]
    if has_limit(system):
        entries.append((MUTED, "limit of small blocks", True))
    x = 40.0
    for stroke, words, dashed in entries:
        canvas.trace([(x, 96), (x + 28, 96)], stroke, dashed=dashed)
        canvas.text(x + 36, 100, words, size=12)
        x += 36 + 7 * len(words) + 30
    if is_the_papers(system):
        canvas.dot(x + 5, 96, 5, "#ffffff", stroke=INK)
        canvas.text(x + 18, 100, "the paper's figure 4", size=12)


def _words(points: Sequence[Point]) -> str:
    return " ".join(
        f"At {p.ratio:g} times the memory: application {p.demand.application:.2f}, actual "
        f"{p.demand.actual:.2f} on demand and {p.early.actual:.2f} early."
        for p in points[4::5]
    )
