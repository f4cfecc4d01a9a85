"""Points in time of logs in words: a log may hold one that is in no calendar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime


def utc(unix_s: float) -> str:
    """``2023-11-14T22:13:20+00:00``, for what is to be the same wherever it is made."""
    return _in_words(unix_s, lambda when: when.isoformat(timespec="seconds"))


def local(unix_s: float) -> str:
    """``2023-11-14 17:13:20``, by the clock of whoever reads it."""
    return _in_words(unix_s, lambda when: f"{when.astimezone():%Y-%m-%d %H:%M:%S}")


def _in_words(unix_s: float, words: Callable[[datetime], str]) -> str:
    try:
        return words(datetime.fromtimestamp(unix_s, UTC))
    except (ValueError, OverflowError, OSError):
        return f"{unix_s:g} s after 1970"
