"""Numbers in words."""

from __future__ import annotations


def number_of(n: int, what: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
