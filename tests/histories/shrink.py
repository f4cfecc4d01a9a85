"""Cuts a history that fails until nothing more can be left out of it.

A history is "ranks N" and a line for each operation (history.hpp); every part of one is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Lines = list[str]
Fails = Callable[[Lines], bool]


def shrink(history: Lines, fails: Fails, may_go_on: Callable[[], bool]) -> Lines:
    """The shortest that was found of which ``fails`` still holds; ``history`` is such a one."""
    while may_go_on():
        shorter = next((h for h in _smaller(history) if not may_go_on() or fails(h)), None)
        if shorter is None or not may_go_on():
            break
        history = shorter
    return history


def _smaller(history: Lines) -> Iterator[Lines]:
    """What to try next, the largest steps first."""
    head, ops = history[0], history[1:]
    size = len(ops)
    while size >= 1:
        for begin in range(0, len(ops), size):
            yield [head, *ops[:begin], *ops[begin + size :]]
        size //= 2
    if (fewer := _without_last_rank(history)) is not None:
        yield fewer
    for i, op in enumerate(ops):
        for simpler in _simpler(op):
            yield [head, *ops[:i], simpler, *ops[i + 1 :]]


def _without_last_rank(history: Lines) -> Lines | None:
    ranks = int(history[0].split()[1])
    if ranks == 1:
        return None
    kept = []
    for op in history[1:]:
        words = op.split()
        if words[2] == f"@{ranks - 1}":
            continue
        has_all = words[2] == "all" and len(words) == 4 + ranks
        kept.append(" ".join(words[:-1] if has_all else words))
    return [f"ranks {ranks - 1}", *kept]


def _simpler(op: str) -> Iterator[str]:
    """Shorter pieces, smaller numbers, the plain form."""
    words = op.split()
    moves = re.match(r"(write|read)", words[0]) is not None
    if moves and words[3] != "now":
        yield " ".join([*words[:3], "now", *words[4:]])
    for i in range(4, len(words)):
        for piece in _simpler_piece(words[i], moves=moves):
            yield " ".join([*words[:i], piece, *words[i + 1 :]])


def _simpler_piece(piece: str, *, moves: bool) -> Iterator[str]:
    numbers = [int(n) for n in piece.split(":")]
    if moves and len(numbers) == 2:  # offset and count
        offset, count = numbers
        yield from (f"{offset}:{n}" for n in (0, 1, count // 2) if n < count)
        yield from (f"{n}:{count}" for n in (0, offset // 2) if n < offset)
    elif len(numbers) == 3:  # displacement, block and stride
        at, block, stride = numbers
        yield from (f"{n}:{block}:{stride}" for n in (0, at // 2) if n < at)
        yield from (f"{at}:{n}:{stride}" for n in (1, block // 2) if 1 <= n < block)
    elif len(numbers) == 1:
        yield from (str(n) for n in (0, numbers[0] // 2) if abs(n) < abs(numbers[0]))
