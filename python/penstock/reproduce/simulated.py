"""gotwals-1995's figures 3 and 4 by the simulator: curves at several block sizes, as tables too.

The block size is the only parameter that the paper does not give, so what is claimed of a curve is
asked of every block size, and the range of the answers decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

from penstock.simulate.gotwals import (
    BLOCKS_IN_MEMORY,
    PAPER,
    PAPER_AT,
    RATIOS,
    Pair,
    Point,
    curves,
)
from penstock.simulate.output import System

# A curve of figures 3 and 4: with which memory, and which of the two rates.
Curve = Literal[
    "demand application",
    "demand actual",
    "early application",
    "early actual",
    "without application",
    "without actual",
]
CURVES: tuple[Curve, ...] = (
    "without application",
    "without actual",
    "demand application",
    "demand actual",
    "early application",
    "early actual",
)


def value(point: Point, curve: Curve) -> float:
    """The height of a curve, as a part of the raw disk's rate."""
    memory, _, rate = curve.partition(" ")
    pairs: dict[str, Pair] = {
        "demand": point.demand,
        "early": point.early,
        "without": point.without,
    }
    pair = pairs[memory]
    return pair.application if rate == "application" else pair.actual


@cache
def point(blocks: int, at: float) -> Point:
    """The paper's system with so many blocks in its memory, at a multiple of that memory."""
    return curves(_system(blocks), [at])[0]


def ratios(curve: Curve, at: float, over: Curve | None, over_at: float) -> dict[int, float]:
    """By blocks in memory: a curve's height, over that of another where one is given."""
    found = {}
    for blocks in BLOCKS_IN_MEMORY:
        height = value(point(blocks, at), curve)
        found[blocks] = height / (value(point(blocks, over_at), over) if over else 1.0)
    return found


def curve_rows(sizes: Sequence[float] = RATIOS) -> list[tuple[str, list[float]]]:
    """Of each size all curves, with blocks of a fifth of the memory."""
    found = curves(System(), sizes)
    return [(f"{p.ratio:g} x memory", [value(p, curve) for curve in CURVES]) for p in found]


def block_rows() -> list[tuple[str, list[float]]]:
    """Of each block size the actual rates at five times the memory."""
    wanted: tuple[Curve, ...] = ("demand actual", "early actual")
    return [
        (f"1/{blocks} of memory", [value(point(blocks, PAPER_AT), curve) for curve in wanted])
        for blocks in BLOCKS_IN_MEMORY
    ]


def paper_entries(label: str, curves_shown: Sequence[Curve]) -> list[str]:
    """What the paper prints of a row of `curve_rows`."""
    if label != f"{PAPER_AT:g} x memory":
        return [""] * len(curves_shown)
    known = {f"{paging} actual": f"{rate:g}" for paging, rate in PAPER.items()}
    return [known.get(curve, "") for curve in curves_shown]


def _system(blocks: int) -> System:
    """Memory of whole blocks: a scrap would take a frame."""
    whole = System()
    block = whole.memory_bytes // blocks
    return replace(whole, block_bytes=block, memory_bytes=blocks * block)
