"""How rates are written in figures: one unit per axis, intervals with their count."""

from __future__ import annotations

from penstock.bench.render import rate_text
from penstock.bench.sample import RateKind
from penstock.bench.summary import RateSummary
from penstock.explain.canvas import Canvas
from penstock.report.figures.frame import ACTUAL, APPLICATION, Scale

MIB = 2.0**20
COLOURS: dict[RateKind, str] = {"application": APPLICATION, "actual": ACTUAL}
KINDS: tuple[RateKind, ...] = ("application", "actual")
LEGEND = {
    "application": "application rate: until the program went on",
    "actual": "actual rate: until the device had every byte",
}


def unit_of(largest_bytes_per_s: float) -> tuple[float, str]:
    """The unit of an axis that reaches so far, as (bytes per second, its name)."""
    return (1024 * MIB, "GiB/s") if largest_bytes_per_s >= 1000 * MIB else (MIB, "MiB/s")


def draw_interval(
    canvas: Canvas, scale: Scale, y: float, kind: RateKind, rate: RateSummary, whose: str
) -> None:
    """The median as a disc (application) or a ring (actual), its interval as a line.

    ``scale`` maps bytes per second.
    """
    fill = COLOURS[kind]
    low, high = scale(rate.low_bytes_per_s), scale(rate.high_bytes_per_s)
    said = f"{whose}, {kind} rate: {rate_text(rate)}, spread {100 * rate.spread:.0f} %"
    canvas.rect(low, y - 1.5, max(high - low, 1), 3, fill)
    for end in (low, high):
        canvas.rect(end - 1, y - 5, 2, 10, fill)
    draw_median(canvas, scale(rate.median_bytes_per_s), y, kind)
    canvas.target(low - 8, y - 9, high - low + 16, 18, said)


def draw_median(canvas: Canvas, x: float, y: float, kind: RateKind, radius: float = 4.5) -> None:
    """A disc for the application rate, a ring for the actual one."""
    if kind == "actual":
        canvas.dot(x, y, radius, "none", stroke=ACTUAL)
    else:
        canvas.dot(x, y, radius, APPLICATION)
