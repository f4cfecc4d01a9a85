"""One row of a picture: a cycle, from the ranks' memory to the file.

The bytes that a rank gives are solid in its own stream. Where writers divide the file, a band
carries them to their writer, and the writer's extent of the file shows where each byte lands. Where
writers interleave in the file an extent says little: each piece has its own band, through the
writer's page if it has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock import _core
from penstock.explain.canvas import FAINT, INK, MUTED, Canvas, colour
from penstock.explain.story import Delivery, Range, Story, Turn, join
from penstock.explain.table import span

WIDTH = 1120.0
LEFT, RIGHT = 128.0, WIDTH - 40.0
FILE_HEIGHT = 26.0

_MEMORY_HEIGHT = 18.0
_BAND_HEIGHT = 74.0
_PAGE_STEP = 78.0  # from a writer's page to the file
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


@dataclass(frozen=True)
class Row:
    """What every row is drawn with."""

    canvas: Canvas
    story: Story
    file: Scale
    memory: list[Scale]  # by rank


def memory_scales(story: Story) -> list[Scale]:
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


OPACITY = {"own": 0.16, "node": 0.5, "network": 0.5}


def kind_of(story: Story, turn: Turn, delivery: Delivery) -> str:
    if delivery.rank == turn.rank:
        return "own"
    same_node = story.node_of(delivery.rank) == story.node_of(turn.rank)
    return "node" if same_node else "network"


def label(canvas: Canvas, y: float, first: str, second: str) -> None:
    canvas.text(40, y, first, size=13, weight=600)
    canvas.text(40, y + 15, second, size=11, fill=MUTED)


def file_bar(canvas: Canvas, story: Story, scale: Scale, y: float) -> None:
    canvas.rect(LEFT, y, RIGHT - LEFT, FILE_HEIGHT, FAINT)
    for hole in story.holes:
        x0, x1 = scale.span(hole)
        canvas.rect(x0, y, x1 - x0, FILE_HEIGHT, "url(#hole)", title=f"hole {span(hole)}")


def paint(
    canvas: Canvas, scale: Scale, pieces: tuple[Range, ...], y: float, rank: int, opacity: float
) -> None:
    for piece in pieces:
        x0, x1 = scale.span(piece)
        title = f"rank {rank}: {span(piece)}" if opacity == 1 else ""
        canvas.rect(x0, y, x1 - x0, FILE_HEIGHT, colour(rank), title=title, opacity=opacity)


def draw_cycle(row: Row, turns: tuple[Turn, ...], y: float) -> float:
    """Memory above, the file below, and how the bytes come there; gives the next row's y."""
    number = turns[0].cycle if turns else 0
    row.canvas.line(40, y - 34, RIGHT, y - 34)
    label(row.canvas, y + 12, f"cycle {number}", "memory")
    _memory_row(row.canvas, row.story, row.memory, y)
    y_file = y + _MEMORY_HEIGHT + _BAND_HEIGHT + (_PAGE_STEP if row.story.scatters else 0)
    row.canvas.text(40, y_file + 17, "the file", size=11, fill=MUTED)
    file_bar(row.canvas, row.story, row.file, y_file)
    _paint_earlier(row.canvas, row.story, row.file, number, y_file)
    if row.story.scatters:
        row.canvas.text(40, y_file - _PAGE_STEP + 13, "writers' pages", size=11, fill=MUTED)
    for place, turn in enumerate(turns):
        if row.story.scatters:
            _through_page(row, turn, (place, len(turns)), y)
        elif row.story.exchanges:
            _to_domain(row, turn, y)
        else:
            _alone(row, turn, y)
    return y_file + FILE_HEIGHT + (78 if row.story.exchanges and not row.story.scatters else 54)


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
                paint(canvas, scale, delivery.pieces, y, delivery.rank, 0.3)


def _give(row: Row, delivery: Delivery, turn: Turn, y: float) -> str:
    """What a rank gives, solid in its memory; gives the text that goes with it."""
    size = _core.human_size(delivery.size)
    title = f"rank {delivery.rank} gives {size} to rank {turn.rank}"
    x0, x1 = row.memory[delivery.rank].span(delivery.stream)
    row.canvas.rect(x0, y, x1 - x0, _MEMORY_HEIGHT, colour(delivery.rank), title=title)
    return title


# --- Writers that divide the file ---


def _to_domain(row: Row, turn: Turn, y: float) -> None:
    """One writer in one cycle: its bands, its bytes in the file, its name."""
    y_band = y + _MEMORY_HEIGHT
    y_file = y_band + _BAND_HEIGHT
    x0, x1 = row.file.span(turn.extent)
    at = x0
    for delivery in turn.deliveries:
        share = (x1 - x0) * delivery.size / turn.size
        top = row.memory[delivery.rank].span(delivery.stream)
        kind = kind_of(row.story, turn, delivery)
        title = _give(row, delivery, turn, y)
        row.canvas.band(
            top, y_band, (at, at + share), y_file, colour(delivery.rank),
            opacity=OPACITY[kind], dashed=kind == "network", title=title,
        )  # fmt: skip
        paint(row.canvas, row.file, delivery.pieces, y_file, delivery.rank, 1)
        at += share
    _writer(row, turn, x0, x1, y_file)


def _name(row: Row, turn: Turn, width: float) -> str:
    """Who the writer is, as long as the width allows."""
    a_thread_of = "a thread of " if row.story.writes_behind else ""
    texts = (
        f"writer {turn.writer} is {a_thread_of}rank {turn.rank}",
        f"w{turn.writer} = r{turn.rank}",
    )
    return next((t for t in texts if 6.4 * len(t) < width), f"r{turn.rank}")


def _where(row: Row, turn: Turn) -> str:
    """The writer's extent; and which cycle is collected while a thread writes it, if one is."""
    follows = row.story.writes_behind and turn.cycle + 1 < len(row.story.cycles)
    meanwhile = f", while cycle {turn.cycle + 1} is collected" if follows else ""
    return span(turn.extent) + meanwhile


def _writer(row: Row, turn: Turn, x0: float, x1: float, y: float) -> None:
    """The outline of the writer's extent and who it is, as long as its width allows."""
    canvas = row.canvas
    canvas.rect(x0, y, x1 - x0, FILE_HEIGHT, "none", stroke=INK, stroke_width=1.6, radius=2)
    width = max(x1 - x0, 0) + 24
    name, where = _name(row, turn, width), _where(row, turn)
    for text, below, size, fill, weight in ((name, 15, 11, INK, 600), (where, 29, 10, MUTED, 400)):
        half = 0.29 * size * len(text)
        if text == name or 2 * half < width:
            middle = min(max((x0 + x1) / 2, LEFT + half), RIGHT - half)
            canvas.text(
                middle, y + FILE_HEIGHT + below, text,
                size=size, fill=fill, weight=weight, anchor="middle",
            )  # fmt: skip


# --- Writers that interleave in the file ---


def _pieces_of(delivery: Delivery) -> Iterator[tuple[Range, Range]]:
    """(stream bytes, file bytes) of each piece: file views are monotone, so both ascend."""
    at = delivery.stream[0]
    for begin, end in delivery.pieces:
        yield (at, at + end - begin), (begin, end)
        at += end - begin


def _alone(row: Row, turn: Turn, y: float) -> None:
    """A rank writes its own pieces where they belong."""
    y_band = y + _MEMORY_HEIGHT
    y_file = y_band + _BAND_HEIGHT
    for delivery in turn.deliveries:
        _give(row, delivery, turn, y)
        scale, fill = row.memory[delivery.rank], colour(delivery.rank)
        for stream, piece in _pieces_of(delivery):
            top, bottom = scale.span(stream), row.file.span(piece)
            row.canvas.band(top, y_band, bottom, y_file, fill, opacity=OPACITY["own"])
        paint(row.canvas, row.file, delivery.pieces, y_file, delivery.rank, 1)


def _through_page(row: Row, turn: Turn, column: tuple[int, int], y: float) -> None:
    """A writer collects its pieces side by side in its page, in file order, and writes them."""
    place, columns = column
    width = (RIGHT - LEFT) / columns
    largest = max(t.size for turns in row.story.cycles for t in turns)
    page = Scale((0, largest), LEFT + place * width, LEFT + (place + 0.5) * width)
    y_page = y + _MEMORY_HEIGHT + _BAND_HEIGHT
    y_file = y_page + _PAGE_STEP
    at = 0
    for delivery, stream, piece in _in_file_order(turn):
        end = at + piece[1] - piece[0]
        _into_page(row, (turn, delivery), stream, page.span((at, end)), y)
        _out_of_page(row, delivery, page.span((at, end)), piece, y_page)
        at = end
    for delivery in turn.deliveries:
        _give(row, delivery, turn, y)
    for write in join(sorted(p for d in turn.deliveries for p in d.pieces)):
        x0, x1 = row.file.span(write)
        row.canvas.rect(x0, y_file, x1 - x0, FILE_HEIGHT, "none", stroke=INK, radius=2)
    _page_frame(row, turn, page, y_page)


def _in_file_order(turn: Turn) -> list[tuple[Delivery, Range, Range]]:
    pieces = [(d, *piece) for d in turn.deliveries for piece in _pieces_of(d)]
    return sorted(pieces, key=lambda one: one[2])


def _into_page(
    row: Row, whose: tuple[Turn, Delivery], stream: Range, page: tuple[float, float], y: float
) -> None:
    turn, delivery = whose
    kind, fill = kind_of(row.story, turn, delivery), colour(delivery.rank)
    top = row.memory[delivery.rank].span(stream)
    y_band = y + _MEMORY_HEIGHT
    row.canvas.band(
        top, y_band, page, y_band + _BAND_HEIGHT, fill,
        opacity=OPACITY[kind], dashed=kind == "network",
    )  # fmt: skip


def _out_of_page(
    row: Row, delivery: Delivery, page: tuple[float, float], piece: Range, y: float
) -> None:
    fill, y_file = colour(delivery.rank), y + _PAGE_STEP
    row.canvas.rect(page[0], y, page[1] - page[0], _MEMORY_HEIGHT, fill)
    bottom = row.file.span(piece)
    row.canvas.band(page, y + _MEMORY_HEIGHT, bottom, y_file, fill, opacity=OPACITY["own"])
    paint(row.canvas, row.file, (piece,), y_file, delivery.rank, 1)


def _page_frame(row: Row, turn: Turn, page: Scale, y: float) -> None:
    """The outline of a page, and beside it whose it is."""
    canvas = row.canvas
    width = page(turn.size) - page.begin_x
    canvas.rect(page.begin_x, y, width, _MEMORY_HEIGHT, "none", stroke=INK, stroke_width=1.6)
    name = _name(row, turn, page.end_x - page.begin_x - 8)
    canvas.text(page.end_x + 8, y + 13, name, size=11, weight=600)
