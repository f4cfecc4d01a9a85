"""The plan of a method, drawn for a small job that writes in the same way.

A run's own sizes make pictures of millions of pieces; what a plan looks like shows with few ranks
and small blocks. What was made smaller is said in the caption.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock import _core
from penstock.errors import PenstockError
from penstock.explain import svg
from penstock.explain.canvas import Canvas
from penstock.explain.example import Contiguous, Example, Interleaved, Subarray
from penstock.explain.story import Story, tell
from penstock.report.figures.frame import Figure

_MOST_RANKS = 8  # that a person tells apart at a glance
_BLOCK = 4096
_PARTS = {"slabs3d": (True, False), "cubes3d": (True, True)}  # which dimensions a grid cuts


@dataclass(frozen=True)
class Work:
    """How a run wrote: the method as the engine spells it, its workers and its pattern."""

    method: str
    workers: int
    pattern: str


@dataclass(frozen=True)
class NotDrawn:
    """Why there is no picture."""

    why: str


def work_of(method: str | None, workers: int | None, parameters: dict[str, Any]) -> Work | NotDrawn:
    """What a run's line tells of its plan."""
    if not method:
        return NotDrawn(
            "it is no method of Penstock's engine, or ran under penstock-exec, whose job log "
            "tells: there is no plan to draw"
        )
    pattern = str(parameters.get("pattern") or "contiguous")
    return Work(method, max(1, workers or 1), pattern)


def figure(work: Work) -> Figure | NotDrawn:
    """The picture, or why there is none."""
    access = _access(work.pattern, ranks := min(work.workers, _MOST_RANKS))
    if isinstance(access, NotDrawn):
        return access
    example = Example(
        title=f"{ranks} workers, {_kind(work.pattern)}",
        ranks=ranks,
        method=work.method,
        access=[access],
    )
    try:
        story = tell(example)
    except PenstockError as error:
        return NotDrawn(f"its plan cannot be told: {error}")
    return Figure(
        name="plan",
        title=f"The plan of {story.method}",
        description=svg.describe(story),
        paint=partial(_paint, story),
        caption=_caption(work, ranks),
        fixed=True,
    )


def _paint(story: Story, _: float) -> tuple[Canvas, float]:
    return svg.paint_story(story)


def _kind(pattern: str) -> str:
    return pattern.partition(":")[0]


def _access(pattern: str, ranks: int) -> Contiguous | Interleaved | Subarray | NotDrawn:
    kind = _kind(pattern)
    if kind == "contiguous":
        return Contiguous(kind="contiguous", bytes=4 * _BLOCK)
    if kind == "interleaved":
        return Interleaved(kind="interleaved", block=_BLOCK, blocks=4)
    if kind in _PARTS:
        grid = _grid(ranks, _PARTS[kind][1])
        sizes = [2 * grid[0], 2 * grid[1], 512]
        return Subarray(kind="subarray", sizes=sizes, grid=[*grid, 1], element=8)
    return NotDrawn(f"the pattern {pattern} has no small example that says how it looks")


def _grid(ranks: int, is_square: bool) -> list[int]:
    """The most equal two factors; all in the slowest dimension where it alone is cut."""
    if not is_square:
        return [ranks, 1]
    first = next(f for f in range(int(ranks**0.5), 0, -1) if ranks % f == 0)
    return [ranks // first, first]


def _caption(work: Work, ranks: int) -> str:
    of = f"{ranks} of its {work.workers} workers" if ranks < work.workers else "as many workers"
    return (
        f"Drawn small: {of}, the same pattern ({work.pattern}) with blocks of "
        f"{_core.format_size(_BLOCK)} or an array of 3 dimensions, on one node. Sizes of the run "
        "change how many cycles there are, not who writes what."
    )
