"""From a described access to each rank's file view and the stream range that it writes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock import _core
from penstock.explain.example import (
    Contiguous,
    Example,
    Interleaved,
    Subarray,
    Vector,
    members_of,
)


@dataclass(frozen=True)
class Part:
    """What one rank writes: stream bytes ``[0, size)`` through ``view``."""

    view: _core.FileView
    size: int


def parts(example: Example) -> list[Part]:
    """One part per rank, in rank order; ranks without an access write nothing."""
    by_rank = [Part(_core.FileView(), 0) for _ in range(example.ranks)]
    for access in example.access:
        members = members_of(access, example.ranks)
        for index, rank in enumerate(members):
            by_rank[rank] = _part(access, index, len(members))
    return by_rank


def _part(access: Contiguous | Interleaved | Vector | Subarray, index: int, members: int) -> Part:
    match access:
        case Contiguous():
            return _at(access.offset + index * access.bytes, _core.LoopTree.bytes(1), access.bytes)
        case Interleaved():
            tile = _spread(access.block, members * access.block)
            return _at(access.offset + index * access.block, tile, access.blocks * access.block)
        case Vector():
            tile = _spread(access.block, access.stride)
            begin = access.offset + index * access.rank_offset
            return _at(begin, tile, access.blocks * access.block)
        case Subarray():
            return _box(access, index)


def _spread(block: int, stride: int) -> _core.LoopTree:
    return _core.LoopTree.resized(_core.LoopTree.bytes(block), 0, stride)


def _at(displacement: int, filetype: _core.LoopTree, size: int) -> Part:
    return Part(_core.FileView(displacement, 1, filetype), size)


def _box(access: Subarray, index: int) -> Part:
    """Rank ``index``'s box; grid cells are numbered in C order, as MPI_Cart_create does."""
    starts: list[int] = []
    subsizes: list[int] = []
    for size, cells in zip(reversed(access.sizes), reversed(access.grid), strict=True):
        index, cell = divmod(index, cells)
        begin, end = cell * size // cells, (cell + 1) * size // cells
        starts.insert(0, begin)
        subsizes.insert(0, end - begin)
    element = _core.LoopTree.bytes(access.element)
    tree = _core.LoopTree.subarray(access.sizes, subsizes, starts, element)
    return _at(access.offset, tree, tree.size)
