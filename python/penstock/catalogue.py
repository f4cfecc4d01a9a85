"""What there is to choose from, and what this machine lacks: the five choices of a write method."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from penstock import _core
from penstock.refused import refusals

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One variant of a choice.

    ``unavailable`` is empty, or says why it cannot be used here. ``spelling`` is how a method names
    it: its name, with ``=BYTES`` where it needs them.
    """

    name: str
    summary: str
    unavailable: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    spelling: str = ""

    def __post_init__(self) -> None:
        if not self.spelling:
            object.__setattr__(self, "spelling", self.name)


@dataclass(frozen=True)
class Family:
    """One of the five choices."""

    name: str
    decides: str
    entries: tuple[Entry, ...]


# Returns are not plugged in one by one and have no descriptors.
_RETURNS = {
    "written": "blocking calls when the bytes are in the file; independent ones that go behind, "
    "and all other calls, when copied",
    "staged": "as written, within `limit=BYTES`; 0: all calls when the bytes are in the file",
}
# A name for choices of several families has none either.
_SHORT = Entry(
    "write_behind",
    "short for cyclic + staged, fed by independent calls",
    properties={
        "options": "stages: 2, or 1 to gather nothing before it is sent to another node; "
        "page: of file pages; limit: of a rank's pages; seconds: that a byte may stay there"
    },
)


def families() -> list[Family]:
    """Algorithms, exchanges, mechanisms, sync policies and returns, in a method's order."""
    return [
        Family("algorithm", "who writes which bytes, in which cycle", (*_algorithms(), _SHORT)),
        Family("exchange", "how bytes reach the writer", _exchanges()),
        Family("mechanism", "how bytes enter the file", _mechanisms()),
        Family("sync", "what is pushed to the device beyond what the program asks", _syncs()),
        Family("return", "when the call comes back", _words(_RETURNS)),
    ]


def as_json() -> dict[str, Any]:
    """The families as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "version": _core.VERSION,
        "default_method": str(_core.default_method()),
        "families": [asdict(family) for family in families()],
        "refused": [asdict(refusal) for refusal in refusals()],
    }


def as_markdown() -> str:
    """The tables of the documentation: what there is, and what does not go together."""
    words = "What does not go together is refused, with the reason:"
    return f"{_variants_table()}\n{words}\n\n{_refused_table()}"


def _refused_table() -> str:
    lines = ["| Algorithm | not with | since |", "|---|---|---|"]
    for refusal in refusals():
        others = ", ".join(f"`{other}`" for other in refusal.others)
        lines.append(f"| `{refusal.algorithm}` | {others} | {refusal.why} |")
    return "\n".join(lines) + "\n"


def _variants_table() -> str:
    lines = ["| Choice | Variant | What it does | Available |", "|---|---|---|---|"]
    for family in families():
        for i, entry in enumerate(family.entries):
            choice = f"**{family.name}**: {family.decides}" if i == 0 else ""
            available = entry.unavailable.replace("|", "\\|") or "yes"
            lines.append(f"| {choice} | `{entry.spelling}` | {entry.summary} | {available} |")
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


def _exchanges() -> tuple[Entry, ...]:
    none = Entry("none", "every rank writes its own bytes")
    return (none, *(Entry(e.name, e.summary) for e in _core.exchanges()))


def _mechanisms() -> tuple[Entry, ...]:
    return tuple(
        Entry(
            m.name,
            m.summary,
            m.unavailable,
            {"alignment_bytes": str(m.alignment_bytes), "options": _mechanism_options(m)},
        )
        for m in _core.mechanisms()
    )


def _mechanism_options(m: _core.Mechanism) -> str:
    """As an algorithm's: "direct: past the page cache; depth: ..."; empty when it takes none."""
    taken = {
        "direct: past the page cache": m.takes_direct,
        "direct=cold: past the page cache while memory is cold": m.takes_cold,
        "registered: the kernel keeps hold of the buffers": m.takes_registered,
        "window: of the whole file (file), not of a cycle": m.takes_window,
        f"depth: writes under way at a time, {m.default_depth} by default": m.default_depth > 0,
    }
    return "; ".join(text for text, is_taken in taken.items() if is_taken)


def _syncs() -> tuple[Entry, ...]:
    return tuple(
        Entry(s.name, s.summary, spelling=f"{s.name}=BYTES" if s.takes_bytes else "")
        for s in _core.sync_policies()
    )


def _words(words: dict[str, str]) -> tuple[Entry, ...]:
    return tuple(Entry(word, summary) for word, summary in words.items())
