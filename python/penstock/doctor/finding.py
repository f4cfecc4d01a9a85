"""One thing that the doctor found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["ok", "note", "warn", "problem"]


@dataclass(frozen=True)
class Finding:
    """What was found about ``topic``, how bad it is, and what to do.

    ``ok``: as it should be. ``note``: good to know. ``warn``: a run works, not at its best or not
    everywhere. ``problem``: mend it before a run. ``values`` are the numbers behind the text.
    """

    level: Level
    topic: str
    text: str
    remedy: str = ""
    values: dict[str, Any] = field(default_factory=dict)
