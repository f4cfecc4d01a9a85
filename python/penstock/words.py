"""Numbers, times and choices in words."""

from __future__ import annotations

from collections.abc import Iterable

from penstock import _core


def instead_of(given: str, names: Iterable[str]) -> str:
    """What a message says there is: the nearest first, each in quotes, as names have blanks."""
    there = list(dict.fromkeys(names))
    near = _core.nearest(given, there)
    others = ", ".join(f'"{name}"' for name in there if name != near)
    if near:
        return f'did you mean "{near}"?' + (f" There are also {others}" if others else "")
    return f"there are {others}" if others else "there are none"


def number_of(n: int, what: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def duration_text(seconds: float) -> str:
    """``0.5 s``, ``45 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if 0.05 <= seconds < 0.95 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
