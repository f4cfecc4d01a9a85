"""Both rates over time: within a run, and from run to run of a session."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from penstock.bench.sample import RateKind, Sample
from penstock.errors import ArgumentError
from penstock.explain.canvas import INK, MUTED, RULE, Canvas, Point
from penstock.report.figures.frame import WIDE, Figure, Scale, axis, legend, shortened, ticks
from penstock.report.figures.rates import COLOURS, KINDS, LEGEND, draw_median, unit_of
from penstock.report.runs import Series

LEAST_BINS = 3  # fewer show no course
_LEFT = 52.0


@dataclass(frozen=True)
class Course:
    """Rates of one kind by bin, bytes per second: of one run, and the range over all."""

    low: list[float]
    typical: list[float]
    high: list[float]


def course(runs: Sequence[Series], kind: RateKind) -> Course | None:
    """The course of one rate; None where it was not read. A run that has ended moves nothing.

    The typical run is the one of the middle length. A median of each bin would be no run: where
    bursts come at other times in every run, it shows none of them.
    """
    read = [b for r in runs if (b := r.of(kind)) is not None]
    if not read:
        return None
    bins = max(len(r.application_bytes) for r in runs)
    padded = [[n / runs[0].bin_s for n in b] + [0.0] * (bins - len(b)) for b in read]
    typical = sorted(range(len(read)), key=lambda i: len(read[i]))[(len(read) - 1) // 2]
    columns = list(zip(*padded, strict=True))
    return Course([min(c) for c in columns], padded[typical], [max(c) for c in columns])


def within_runs(number: int, title: str, runs: Sequence[Series]) -> Figure:
    """Both rates over the time of a run: one of the runs, and the range of all of them."""
    courses = {k: c for k in KINDS if (c := course(runs, k)) is not None}
    said = [
        f"{kind}: {', '.join(f'{v / 2**20:.0f}' for v in c.typical)} MiB/s by bin."
        for kind, c in courses.items()
    ]
    counted = f"n={len(runs)}, bins of {runs[0].bin_s:g} s"
    return Figure(
        name=f"run-{number}",
        title=title,
        description=f"The run of the middle length, {counted}. {' '.join(said)}",
        paint=partial(_paint_courses, courses, runs[0].bin_s),
        caption=f"Line: the run of the middle length; band: the range of all; {counted}. What of "
        "the band is beyond the axis is cut off; The numbers have it.",
    )


def _paint_courses(
    courses: dict[RateKind, Course], bin_s: float, width: float
) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    largest = 1.2 * max(max(c.typical) for c in courses.values())
    unit, name = unit_of(largest)
    top = legend(canvas, 8, 20, [(COLOURS[k], LEGEND[k]) for k in courses]) + 20
    bottom = top + 170
    marks = ticks(largest / unit, 4)
    y = Scale(marks[-1] * unit, bottom, top)
    bins = max(len(c.typical) for c in courses.values())
    x = Scale(bins * bin_s, _LEFT, width - 16)
    _side_axis(canvas, Scale(marks[-1], bottom, top), marks, name)
    times = [t for t in ticks(bins * bin_s, 5) if t <= bins * bin_s * 1.0001]
    axis(canvas, x, times, bottom, bottom, "seconds")
    for kind, c in courses.items():
        high = [min(h, y.end) for h in c.high]
        band = _steps(high, x, y, bin_s) + list(reversed(_steps(c.low, x, y, bin_s)))
        canvas.area(band, COLOURS[kind], opacity=0.16)
        # Where both are one, both are seen.
        thick = 4.4 if kind == "application" else 1.8
        canvas.trace(_steps(c.typical, x, y, bin_s), COLOURS[kind], width=thick)
    for i in range(bins):
        said = [f"{i * bin_s:g} to {(i + 1) * bin_s:g} s"]
        said += [f"{kind} rate {_bin(c, i)}" for kind, c in courses.items()]
        begin, end = x(i * bin_s), x((i + 1) * bin_s)
        canvas.target(begin, top, end - begin, bottom - top, "; ".join(said))
    return canvas, bottom + 40


def _bin(c: Course, i: int) -> str:
    low, typical, high = (values[i] / 2**20 for values in (c.low, c.typical, c.high))
    return f"{typical:.0f} MiB/s [{low:.0f}-{high:.0f}]"


def _steps(values: Sequence[float], x: Scale, y: Scale, bin_s: float) -> list[Point]:
    return [
        point
        for i, value in enumerate(values)
        for point in ((x(i * bin_s), y(value)), (x((i + 1) * bin_s), y(value)))
    ]


def _side_axis(canvas: Canvas, y: Scale, marks: list[float], unit: str) -> None:
    for mark in marks:
        canvas.line(_LEFT, y(mark), canvas.width - 16, y(mark), RULE)
        canvas.text(_LEFT - 6, y(mark) + 4, f"{mark:g}", size=11, fill=MUTED, anchor="end")
    canvas.text(_LEFT - 6, y.last - 10, unit, size=11, fill=MUTED, anchor="end")


# --- From run to run ---


def over_session(number: int, cell: str, own: dict[str, list[Sample]]) -> Figure:
    """Every run of a cell at the time when it was begun, one panel per variant."""
    runs = sum(len(s) for s in own.values())
    said = [f"{variant}: {_medians(samples)}." for variant, samples in own.items()]
    return Figure(
        name=f"session-{number}",
        title=f"Over the session: {cell}",
        description=f"Each run's rates by the time of its begin. {' '.join(said)}",
        paint=partial(_paint_session, own),
        caption=f"Every run that counts, {runs} in all, at the time when it was begun: a drift or "
        "a disturbance meets all ways alike, as they are interleaved.",
    )


def _medians(samples: Sequence[Sample]) -> str:
    parts = []
    for kind in KINDS:
        rates = [r for s in samples if (r := s.rate(kind))]
        if rates:
            parts.append(
                f"{kind} {statistics.median(rates) / 2**20:.0f} MiB/s "
                f"[{min(rates) / 2**20:.0f}-{max(rates) / 2**20:.0f}] n={len(rates)}"
            )
    return ", ".join(parts) or "no rates"


def _paint_session(own: dict[str, list[Sample]], width: float) -> tuple[Canvas, float]:
    canvas = Canvas(width)
    begins = [_minutes(s) for samples in own.values() for s in samples]
    first = min(begins)
    largest = max(r for ss in own.values() for s in ss for k in KINDS if (r := s.rate(k)))
    unit, name = unit_of(largest)
    marks = ticks(largest / unit, 3)
    kinds = [k for k in KINDS if any(s.rate(k) for ss in own.values() for s in ss)]
    top = legend(canvas, 8, 20, [(COLOURS[k], LEGEND[k]) for k in kinds]) + 22
    times = ticks(max(begins) - first, 5 if width >= WIDE else 4)
    x = Scale(times[-1], _LEFT, width - 16)
    for variant, samples in own.items():
        bottom = top + 84
        y = Scale(marks[-1], bottom, top)
        _side_axis(canvas, y, marks, name)
        label = shortened(variant, width - _LEFT - 16, 12)
        canvas.text(_LEFT, top - 8, label, size=12, weight=600, fill=INK)
        for s in samples:
            at = x(_minutes(s) - first)
            _run_dots(canvas, s, at, Scale(marks[-1] * unit, bottom, top))
        top = bottom + 40
    bottom = top - 40
    axis(canvas, x, times, bottom, bottom, "minutes since the first run")
    return canvas, bottom + 40


def _run_dots(canvas: Canvas, sample: Sample, x: float, y: Scale) -> None:
    for kind in KINDS:
        rate = sample.rate(kind)
        if rate:
            said = f"{sample.variant}, block {sample.block}: {kind} {rate / 2**20:.0f} MiB/s"
            draw_median(canvas, x, y(rate), kind, 3.4)
            canvas.target(x - 7, y(rate) - 7, 14, 14, said)


def _minutes(sample: Sample) -> float:
    try:
        return datetime.fromisoformat(sample.started).timestamp() / 60
    except (ValueError, OverflowError) as error:
        raise ArgumentError(
            f"a sample of {sample.variant} in {sample.cell} was begun at {sample.started!r}, which "
            "is no time: remove its line to report on the others"
        ) from error
