"""What there is to choose from, and what this machine lacks: the five choices of a write method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock import _core
from penstock.errors import PenstockError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One variant of a choice. ``unavailable`` is empty, or says why it cannot be used here."""

    name: str
    summary: str
    unavailable: str = ""
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """One of the five choices."""

    name: str
    decides: str
    entries: tuple[Entry, ...]


# Exchanges and returns are not plugged in one by one and have no descriptors: their words are those
# of the design, and whether this version has them is asked of the parser.
_EXCHANGES = {
    "none": "every rank writes its own bytes",
    "messages": "point-to-point messages to the writers",
    "shm": "straight into the writer's file page in shared memory",
    "node_leaders": "few large messages between the nodes' leaders",
}
_RETURNS = {
    "written": "when the bytes are in the file",
    "staged": "when the bytes are copied; bounded in bytes and seconds",
}


def families() -> list[Family]:
    """Algorithms, exchanges, mechanisms, sync policies and returns, in a method's order."""
    return [
        Family("algorithm", "who writes which bytes, in which cycle", _algorithms()),
        Family("exchange", "how bytes reach the writer", _words(_EXCHANGES, _exchange_method)),
        Family("mechanism", "how bytes enter the file", _mechanisms()),
        Family("sync", "what is pushed to the device beyond what the program asks", _syncs()),
        Family("return", "when the call comes back", _words(_RETURNS, _return_method)),
    ]


def as_json() -> dict[str, Any]:
    """The families as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "version": _core.VERSION,
        "default_method": str(_core.default_method()),
        "families": [asdict(family) for family in families()],
    }


def as_markdown() -> str:
    """The table of the documentation."""
    lines = ["| Choice | Variant | What it does | Available |", "|---|---|---|---|"]
    for family in families():
        for i, entry in enumerate(family.entries):
            choice = f"**{family.name}**: {family.decides}" if i == 0 else ""
            available = entry.unavailable.replace("|", "\\|") or "yes"
            lines.append(f"| {choice} | `{entry.name}` | {entry.summary} | {available} |")
    return "\n".join(lines) + "\n"


def _algorithms() -> tuple[Entry, ...]:
    return tuple(
        Entry(
            a.name,
            a.summary,
            properties={
                "source": a.source,
                "needs": a.needs,
                "owns_blocks": "yes" if a.owns_blocks else "no",
                "options": "; ".join(f"{name}: {summary}" for name, summary in a.options),
            },
        )
        for a in _core.algorithms()
    )


def _mechanisms() -> tuple[Entry, ...]:
    return tuple(
        Entry(
            m.name,
            m.summary,
            m.unavailable,
            {"alignment_bytes": str(m.alignment_bytes)},
        )
        for m in _core.mechanisms()
    )


def _syncs() -> tuple[Entry, ...]:
    return tuple(Entry(s.name, s.summary) for s in _core.sync_policies())


def _exchange_method(word: str) -> str:
    """A method with this exchange, legal if the exchange exists."""
    exchanging = word != "none"
    name = next(a.name for a in _core.algorithms() if a.exchanges is exchanging)
    return f"{name} + {word}"


def _return_method(word: str) -> str:
    return str(_core.default_method()).rpartition("+")[0] + f"+ {word}"


def _words(words: dict[str, str], method_of: Callable[[str], str]) -> tuple[Entry, ...]:
    return tuple(Entry(word, summary, _refusal(method_of(word))) for word, summary in words.items())


def _refusal(method: str) -> str:
    """Why the parser refuses a method; empty when it does not."""
    try:
        _core.parse_method(method)
    except PenstockError as error:
        return str(error)
    return ""
