"""Nested values in one level, as a table or a comparison wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; only dictionaries are opened."""
    opened: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            opened |= flat(value, f"{before}{name}.")
        else:
            opened[before + name] = value
    return opened
