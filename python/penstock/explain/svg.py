"""Draws a story: heading and legend, the file as it is held, then one row per cycle.

Everything drawn comes from the plan in `penstock._core`; this file and `rows` only choose
coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penstock import _core
from penstock.errors import ArgumentError
from penstock.explain.canvas import INK, MAX_COLOURS, MUTED, RULE, Canvas, colour
from penstock.explain.rows import (
    FILE_HEIGHT,
    LEFT,
    OPACITY,
    RIGHT,
    WIDTH,
    Row,
    Scale,
    draw_cycle,
    file_bar,
    kind_of,
    label,
    memory_scales,
    paint,
)
from penstock.explain.story import Range, Story
from penstock.explain.table import facts, span

MAX_CYCLES = 12


def draw(story: Story) -> str:
    """The picture as SVG text; see `paint_story`."""
    canvas, height = paint_story(story)
    return canvas.document(height, story.title, describe(story))


def paint_story(story: Story) -> tuple[Canvas, float]:
    """The picture and its height.

    Raises
    ------
    ArgumentError
        If there are more ranks than can be told apart.
    """
    if story.ranks > MAX_COLOURS:
        raise ArgumentError(
            f"a picture can tell {MAX_COLOURS} ranks apart, got {story.ranks}: draw fewer ranks, "
            "or leave --draw out for the table"
        )
    canvas = Canvas(WIDTH)
    file_scale = Scale(story.bounds, LEFT, RIGHT)
    row = Row(canvas, story, file_scale, memory_scales(story))
    y = _heading(canvas, story)
    y = _legend(canvas, story, y)
    y = _whole_file(canvas, story, file_scale, y)
    for turns in story.cycles[:MAX_CYCLES]:
        y = draw_cycle(row, turns, y)
    if len(story.cycles) > MAX_CYCLES:
        rest = f"{len(story.cycles) - MAX_CYCLES} more cycles follow and are not drawn"
        canvas.text(LEFT, y + 8, rest, fill=MUTED)
        y += 24
    return canvas, y


def describe(story: Story) -> str:
    """What the picture shows, in sentences."""
    sentences = [f"{what}: {value}." for what, value in facts(story)]
    for turns in story.cycles[:MAX_CYCLES]:
        for turn in turns:
            ranks = ", ".join(str(d.rank) for d in turn.deliveries) or "none"
            what = f"rank {turn.rank} writes {span(turn.extent)} from ranks {ranks}"
            sentences.append(f"Cycle {turn.cycle}: {what}.")
    return " ".join(sentences)


def _heading(canvas: Canvas, story: Story) -> float:
    values = dict(facts(story))
    canvas.text(40, 46, story.title, size=22, weight=600)
    canvas.text(40, 70, story.method, size=13, fill=MUTED, mono=True)
    moved = f"{values['moved between ranks']} moved between ranks"
    line = f"{values['ranks']}  ·  {values['file']}  ·  {moved}"
    canvas.text(40, 92, line, size=13, fill=MUTED)
    return 112


def _legend(canvas: Canvas, story: Story, y: float) -> float:
    """Chips for ranks, then what bands and hatching mean, as far as they occur."""
    x = 40.0
    for rank in range(story.ranks):
        name = f"rank {rank}"
        if x + _chip_width(name) > RIGHT:
            x, y = 40.0, y + 24
        x = _chip(canvas, x, y, name, partial(_swatch, canvas, fill=colour(rank)))
    x, y = 40.0, y + 24
    for meaning, sample in _meanings(canvas, story):
        x = _chip(canvas, x, y, meaning, sample)
    return y + 46


def _chip(
    canvas: Canvas, x: float, y: float, text: str, sample: Callable[[float, float], None]
) -> float:
    sample(x, y)
    canvas.text(x + 20, y + 11, text, size=12)
    return x + _chip_width(text) + 18


def _chip_width(text: str) -> float:
    return 20 + 6.9 * len(text)


def _swatch(canvas: Canvas, x: float, y: float, fill: str, stroke: str = "none") -> None:
    canvas.rect(x, y, 13, 13, fill, radius=2, stroke=stroke)


def _meanings(canvas: Canvas, story: Story) -> list[tuple[str, Callable[[float, float], None]]]:
    kinds = {kind_of(story, t, d) for turns in story.cycles for t in turns for d in t.deliveries}
    samples: list[tuple[str, Callable[[float, float], None]]] = []
    for kind, meaning in (
        ("own", "own bytes, not sent"),
        ("node", "sent within a node"),
        ("network", "sent between nodes"),
    ):
        if kind in kinds:
            samples.append((meaning, partial(_band_sample, canvas, kind=kind)))
    if story.holes:
        samples.append(
            ("hole: nobody writes it", partial(_swatch, canvas, fill="url(#hole)", stroke=RULE))
        )
    if story.scatters:
        samples.append(("one write", partial(_swatch, canvas, fill="none", stroke=INK)))
    unit = f"unit of {_core.format_size(story.unit_bytes)}"
    samples.append((unit, lambda x, y: canvas.line(x + 6, y - 1, x + 6, y + 14, INK)))
    return samples


def _band_sample(canvas: Canvas, x: float, y: float, kind: str) -> None:
    canvas.band(
        (x, x + 13), y, (x, x + 13), y + 13, MUTED, opacity=OPACITY[kind], dashed=kind == "network"
    )


def _whole_file(canvas: Canvas, story: Story, scale: Scale, y: float) -> float:
    """Who holds each byte of the file, before anything moves, with the axis."""
    label(canvas, y + 12, "the file", "who holds it")
    file_bar(canvas, story, scale, y)
    for rank, pieces in enumerate(story.held):
        paint(canvas, scale, pieces, y, rank, 1)
    _units(canvas, story, scale, y)
    _axis(canvas, scale, y + FILE_HEIGHT)
    return y + FILE_HEIGHT + 62


def _units(canvas: Canvas, story: Story, scale: Scale, y: float) -> None:
    """Marks the boundaries of units, unless they would only be a grey mass."""
    begin, end = story.bounds
    first = -(-begin // story.unit_bytes) * story.unit_bytes
    if (end - begin) // story.unit_bytes > 160:
        return
    for offset in range(first, end + 1, story.unit_bytes):
        canvas.line(scale(offset), y - 3, scale(offset), y + 3, INK)


def _axis(canvas: Canvas, scale: Scale, y: float) -> None:
    step = _tick_step(scale.domain)
    begin, end = scale.domain
    for offset in range(-(-begin // step) * step, end + 1, step):
        canvas.line(scale(offset), y, scale(offset), y + 5, MUTED)
        canvas.text(
            scale(offset), y + 18, _core.format_size(offset), size=11, fill=MUTED, anchor="middle"
        )


def _tick_step(domain: Range) -> int:
    """A power of two of bytes that gives at most nine ticks."""
    step = 1
    while (domain[1] - domain[0]) > 8 * step:
        step *= 2
    return step
