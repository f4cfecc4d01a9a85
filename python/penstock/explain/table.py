"""A story as rows for people and as JSON for programs."""

from __future__ import annotations

from typing import Any

from penstock import _core
from penstock.explain.story import Delivery, Range, Story, Turn

SCHEMA_VERSION = 1
_INSIDE_A_NODE = (
    "inside a node straight into file pages that their owners write, "
    "alike with stages=1 and stages=2"
)


def rows(story: Story) -> list[tuple[str, ...]]:
    """(cycle, writer, extent, from, writes, received) of each turn with something to write."""
    return [_row(turn) for turns in story.cycles for turn in turns if turn.size]


def _row(turn: Turn) -> tuple[str, ...]:
    senders = ", ".join(_sender(turn, d) for d in turn.deliveries)
    return (
        str(turn.cycle),
        f"{turn.writer} (rank {turn.rank})",
        span(turn.extent),
        senders,
        _core.human_size(turn.size),
        _core.human_size(turn.received),
    )


def _sender(turn: Turn, delivery: Delivery) -> str:
    amount = _core.human_size(delivery.size)
    return f"own {amount}" if delivery.rank == turn.rank else f"r{delivery.rank} {amount}"


def span(extent: Range) -> str:
    """``[0, 64KiB)``"""
    return f"[{_core.format_size(extent[0])}, {_core.format_size(extent[1])})"


def facts(story: Story) -> list[tuple[str, str]]:
    """What holds for the whole plan, as (what, value)."""
    moved = sum(turn.received for turns in story.cycles for turn in turns)
    share = f" ({100 * moved / story.size:.0f} %)" if story.size else ""
    writers = ", ".join(map(str, story.writer_ranks[:16]))
    if len(story.writer_ranks) > 16:
        writers += f", ... {len(story.writer_ranks)} in all"
    return [
        ("method", story.method),
        ("ranks", f"{_count(story.ranks, 'rank')} on {_count(story.nodes, 'node')}"),
        ("writers", f"{len(story.writer_ranks)}: ranks {writers}"),
        ("cycles", str(len(story.cycles))),
        ("file", f"{span(story.bounds)}, {_core.human_size(story.size)} written"),
        ("moved between ranks", _core.human_size(moved) + share),
        ("unit", f"{_core.format_size(story.unit_bytes)}: {_ownership(story)}"),
        *([("independent writes", _INSIDE_A_NODE)] if story.stages else []),
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _ownership(story: Story) -> str:
    return "each is written by one writer" if story.owns_blocks else "may be written by several"


def as_json(story: Story) -> dict[str, Any]:
    """The whole story as JSON values; sizes and offsets in bytes, ranges half-open."""
    return {
        "schema_version": SCHEMA_VERSION,
        "title": story.title,
        "method": story.method,
        "ranks": story.ranks,
        "nodes": story.nodes,
        "unit_bytes": story.unit_bytes,
        "owns_blocks": story.owns_blocks,
        "exchanges": story.exchanges,
        "bounds": list(story.bounds),
        "bytes_by_rank": list(story.sizes),
        "writer_ranks": list(story.writer_ranks),
        "holes": [list(h) for h in story.holes],
        "cycles": [[_turn_json(turn) for turn in turns] for turns in story.cycles],
    }


def _turn_json(turn: Turn) -> dict[str, Any]:
    return {
        "writer": turn.writer,
        "rank": turn.rank,
        "cycle": turn.cycle,
        "extent": list(turn.extent),
        "deliveries": [
            {"rank": d.rank, "stream": list(d.stream), "pieces": [list(p) for p in d.pieces]}
            for d in turn.deliveries
        ],
    }
