"""Draws a story: one row per cycle, from the ranks' memory to the file.

In each row the bytes that a rank gives are solid in its own stream, a band carries them to their
writer, and the writer's extent of the file shows where each byte lands. Everything drawn comes from
the plan in `penstock._core`; this file only chooses coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from penstock import _core
from penstock.errors import ArgumentError
from penstock.explain.canvas import FAINT, INK, MAX_COLOURS, MUTED, RULE, Canvas, colour
from penstock.explain.story import Delivery, Range, Story, Turn
from penstock.explain.table import facts, span

WIDTH = 1120.0
LEFT, RIGHT = 128.0, WIDTH - 40.0
MAX_CYCLES = 12

_MEMORY_HEIGHT = 18.0
_BAND_HEIGHT = 74.0
_FILE_HEIGHT = 26.0
_GAP = 10.0  # between ranks; between nodes three times as much


@dataclass(frozen=True)
class Scale:
    """Maps bytes to x."""

    domain: Range
    begin_x: float
    end_x: float

    def __call__(self, offset: int) -> float:
        """The x of a byte."""
        begin, end = self.domain
        return self.begin_x + (offset - begin) * (self.end_x - self.begin_x) / max(1, end - begin)

    def span(self, extent: Range) -> tuple[float, float]:
        """The x of both ends."""
        return self(extent[0]), self(extent[1])


def draw(story: Story) -> str:
    """The picture as SVG text.

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
    memory = _memory_scales(story)
    y = _heading(canvas, story)
    y = _legend(canvas, story, y)
    y = _whole_file(canvas, story, file_scale, y)
    for turns in story.cycles[:MAX_CYCLES]:
        y = _cycle(canvas, story, turns, file_scale, memory, y)
    if len(story.cycles) > MAX_CYCLES:
        rest = f"{len(story.cycles) - MAX_CYCLES} more cycles follow and are not drawn"
        canvas.text(LEFT, y + 8, rest, fill=MUTED)
        y += 24
    return canvas.document(y, story.title, _description(story))


def _description(story: Story) -> str:
    sentences = [f"{what}: {value}." for what, value in facts(story)]
    for turns in story.cycles[:MAX_CYCLES]:
        for turn in turns:
            ranks = ", ".join(str(d.rank) for d in turn.deliveries) or "none"
            what = f"rank {turn.rank} writes {span(turn.extent)} from ranks {ranks}"
            sentences.append(f"Cycle {turn.cycle}: {what}.")
    return " ".join(sentences)


def _memory_scales(story: Story) -> list[Scale]:
    """Where each rank's stream is drawn: equal widths, in rank order, nodes set apart."""
    gaps = [
        _GAP * (3 if story.node_of(r) != story.node_of(r + 1) else 1)
        for r in range(story.ranks - 1)
    ]
    width = (RIGHT - LEFT - sum(gaps)) / story.ranks
    scales: list[Scale] = []
    x = LEFT
    for rank, size in enumerate(story.sizes):
        scales.append(Scale((0, size), x, x + width))
        x += width + (gaps[rank] if rank < len(gaps) else 0)
    return scales


def _heading(canvas: Canvas, story: Story) -> float:
    values = dict(facts(story))
    canvas.text(40, 46, story.title, size=22, weight=600)
    canvas.text(40, 70, story.method, size=13, fill=MUTED, mono=True)
    moved = f"{values['moved between ranks']} moved between ranks"
    line = f"{values['ranks']}  ·  {values['file']}  ·  {moved}"
    canvas.text(40, 92, line, size=13, fill=MUTED)
    return 112


def _legend(canvas: Canvas, story: Story, y: float) -> float:
    """Chips for ranks on one line, then what bands and hatching mean, as far as they occur."""
    x = 40.0
    for rank in range(story.ranks):
        x = _chip(canvas, x, y, f"rank {rank}", partial(_swatch, canvas, fill=colour(rank)))
    x, y = 40.0, y + 24
    for label, sample in _meanings(canvas, story):
        x = _chip(canvas, x, y, label, sample)
    return y + 46


def _chip(
    canvas: Canvas, x: float, y: float, label: str, sample: Callable[[float, float], None]
) -> float:
    sample(x, y)
    canvas.text(x + 20, y + 11, label, size=12)
    return x + 20 + 6.9 * len(label) + 18


def _swatch(canvas: Canvas, x: float, y: float, fill: str, stroke: str = "none") -> None:
    canvas.rect(x, y, 13, 13, fill, radius=2, stroke=stroke)


def _meanings(canvas: Canvas, story: Story) -> list[tuple[str, Callable[[float, float], None]]]:
    kinds = {_kind(story, t, d) for turns in story.cycles for t in turns for d in t.deliveries}
    samples: list[tuple[str, Callable[[float, float], None]]] = []
    for kind, label in (
        ("own", "own bytes, not sent"),
        ("node", "sent within a node"),
        ("network", "sent between nodes"),
    ):
        if kind in kinds:
            samples.append((label, partial(_band_sample, canvas, kind=kind)))
    if story.holes:
        samples.append(
            ("hole: nobody writes it", partial(_swatch, canvas, fill="url(#hole)", stroke=RULE))
        )
    unit = f"unit of {_core.format_size(story.unit_bytes)}"
    samples.append((unit, lambda x, y: canvas.line(x + 6, y - 1, x + 6, y + 14, INK)))
    return samples


_OPACITY = {"own": 0.16, "node": 0.5, "network": 0.5}


def _band_sample(canvas: Canvas, x: float, y: float, kind: str) -> None:
    canvas.band(
        (x, x + 13), y, (x, x + 13), y + 13, MUTED, opacity=_OPACITY[kind], dashed=kind == "network"
    )


def _kind(story: Story, turn: Turn, delivery: Delivery) -> str:
    if delivery.rank == turn.rank:
        return "own"
    same_node = story.node_of(delivery.rank) == story.node_of(turn.rank)
    return "node" if same_node else "network"


def _whole_file(canvas: Canvas, story: Story, scale: Scale, y: float) -> float:
    """Who holds each byte of the file, before anything moves, with the axis."""
    _label(canvas, y + 12, "the file", "who holds it")
    _file_bar(canvas, story, scale, y)
    for rank, pieces in enumerate(story.held):
        _paint(canvas, scale, pieces, y, rank, 1)
    _units(canvas, story, scale, y)
    _axis(canvas, scale, y + _FILE_HEIGHT)
    return y + _FILE_HEIGHT + 62


def _file_bar(canvas: Canvas, story: Story, scale: Scale, y: float) -> None:
    canvas.rect(LEFT, y, RIGHT - LEFT, _FILE_HEIGHT, FAINT)
    for hole in story.holes:
        x0, x1 = scale.span(hole)
        canvas.rect(x0, y, x1 - x0, _FILE_HEIGHT, "url(#hole)", title=f"hole {span(hole)}")


def _paint(
    canvas: Canvas, scale: Scale, pieces: tuple[Range, ...], y: float, rank: int, opacity: float
) -> None:
    for piece in pieces:
        x0, x1 = scale.span(piece)
        title = f"rank {rank}: {span(piece)}" if opacity == 1 else ""
        canvas.rect(x0, y, x1 - x0, _FILE_HEIGHT, colour(rank), title=title, opacity=opacity)


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


def _label(canvas: Canvas, y: float, first: str, second: str) -> None:
    canvas.text(40, y, first, size=13, weight=600)
    canvas.text(40, y + 15, second, size=11, fill=MUTED)


def _cycle(
    canvas: Canvas, story: Story, turns: tuple[Turn, ...], file_scale: Scale,
    memory: list[Scale], y: float,
) -> float:  # fmt: skip
    """One row: memory above, bands, the file below."""
    number = turns[0].cycle if turns else 0
    canvas.line(40, y - 34, RIGHT, y - 34)
    _label(canvas, y + 12, f"cycle {number}", "memory")
    _memory_row(canvas, story, memory, y)
    y_file = y + _MEMORY_HEIGHT + _BAND_HEIGHT
    canvas.text(40, y_file + 17, "the file", size=11, fill=MUTED)
    _file_bar(canvas, story, file_scale, y_file)
    _paint_earlier(canvas, story, file_scale, number, y_file)
    for turn in turns:
        _turn(canvas, story, turn, file_scale, memory, y)
    return y_file + _FILE_HEIGHT + 78


def _memory_row(canvas: Canvas, story: Story, memory: list[Scale], y: float) -> None:
    """The streams of all ranks, pale, with their names; nodes where there are several."""
    for rank, scale in enumerate(memory):
        width = scale.end_x - scale.begin_x
        canvas.rect(scale.begin_x, y, width, _MEMORY_HEIGHT, FAINT)
        empty = "" if story.sizes[rank] else " (nothing)"
        name = f"rank {rank}{empty}" if width > 40 + 8 * len(empty) else str(rank)
        canvas.text(scale.begin_x, y - 5, name, size=11, fill=INK)
        if story.nodes > 1 and (rank == 0 or story.node_of(rank) != story.node_of(rank - 1)):
            canvas.text(
                scale.begin_x,
                y - 19,
                f"node {story.node_of(rank)}",
                size=11,
                fill=MUTED,
                weight=600,
            )
        if story.sizes[rank]:
            canvas.rect(scale.begin_x, y, width, _MEMORY_HEIGHT, colour(rank), opacity=0.15)


def _paint_earlier(canvas: Canvas, story: Story, scale: Scale, cycle: int, y: float) -> None:
    """What earlier cycles have written already, pale."""
    for turns in story.cycles[:cycle]:
        for turn in turns:
            for delivery in turn.deliveries:
                _paint(canvas, scale, delivery.pieces, y, delivery.rank, 0.3)


def _turn(
    canvas: Canvas, story: Story, turn: Turn, file_scale: Scale, memory: list[Scale], y: float
) -> None:
    """One writer in one cycle: its bands, its bytes in the file, its name."""
    y_band = y + _MEMORY_HEIGHT
    y_file = y_band + _BAND_HEIGHT
    x0, x1 = file_scale.span(turn.extent)
    at = x0
    for delivery in turn.deliveries:
        share = (x1 - x0) * delivery.size / turn.size
        top = memory[delivery.rank].span(delivery.stream)
        fill = colour(delivery.rank)
        kind = _kind(story, turn, delivery)
        title = f"rank {delivery.rank} gives {_core.human_size(delivery.size)} to rank {turn.rank}"
        canvas.rect(top[0], y, top[1] - top[0], _MEMORY_HEIGHT, fill, title=title)
        canvas.band(
            top, y_band, (at, at + share), y_file, fill,
            opacity=_OPACITY[kind], dashed=kind == "network", title=title,
        )  # fmt: skip
        _paint(canvas, file_scale, delivery.pieces, y_file, delivery.rank, 1)
        at += share
    _writer(canvas, turn, x0, x1, y_file)


def _writer(canvas: Canvas, turn: Turn, x0: float, x1: float, y: float) -> None:
    """The outline of the writer's extent and who it is, as long as its width allows."""
    canvas.rect(x0, y, x1 - x0, _FILE_HEIGHT, "none", stroke=INK, stroke_width=1.6, radius=2)
    texts = (
        f"writer {turn.writer} is rank {turn.rank}",
        f"w{turn.writer} = r{turn.rank}",
    )
    width = max(x1 - x0, 0) + 24
    name = next((t for t in texts if 6.4 * len(t) < width), f"r{turn.rank}")
    middle = min(max((x0 + x1) / 2, LEFT + 3.2 * len(name)), RIGHT - 3.2 * len(name))
    canvas.text(middle, y + _FILE_HEIGHT + 15, name, size=11, weight=600, anchor="middle")
    where = f"{span(turn.extent)}"
    if 6.4 * len(where) < width:
        canvas.text(middle, y + _FILE_HEIGHT + 29, where, size=10, fill=MUTED, anchor="middle")
