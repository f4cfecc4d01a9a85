"""Where it was measured: file system, machine and software, from the provenance of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock import _core
from penstock.bench.flat import flat
from penstock.bench.sample import Provenance
from penstock.report.model import Section, Table

# What a person asks first, in this order and these words; whatever else is known follows as it is
# called in the results.
_WORDS = {
    "file_system.type": "file system",
    "file_system.mount": "mounted at",
    "file_system.source": "from",
    "file_system.options": "mount options",
    "file_system.device.name": "device",
    "cpu_model": "CPU",
    "cpus": "CPUs",
    "memory_bytes": "memory",
    "memory_limit_bytes": "memory limit",
    "kernel": "kernel",
    "host": "host",
    "penstock": "Penstock",
    "penstock_commit": "commit",
    "native_digest": "build",
    "python": "Python",
}
_LEFT_OUT = {"id", "record"}


def section(provenances: Sequence[Provenance], names: Sequence[str] = ()) -> Section:
    """A table with a column for each provenance; ``names`` head the columns of several."""
    if not provenances:
        return Section("machine", "File system and machine", ("The results do not tell.",))
    columns = [_facts(p.model_dump()) for p in provenances]
    keys = list(dict.fromkeys(key for c in columns for key in c))
    ordered = [k for k in _WORDS if k in keys] + [k for k in keys if k not in _WORDS]
    heads = names or [f"from record {i}" for i in range(1, len(columns) + 1)]
    rows = tuple((_WORDS.get(k, k), *(c.get(k, "-") for c in columns)) for k in ordered)
    headings = ("", *(heads if len(columns) > 1 else ("",)))
    text = (f"The session went on in {len(columns)} environments." if len(columns) > 1 else "",)
    said = () if names else tuple(t for t in text if t)
    return Section("machine", "File system and machine", said, (Table(headings, rows),))


def _facts(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: _spelt(key, value)
        for key, value in flat(values).items()
        if key not in _LEFT_OUT and value not in (None, "")
    }


def _spelt(key: str, value: Any) -> str:
    if key.endswith("_bytes") and isinstance(value, int) and 0 <= value < 2**63:
        return _core.human_size(value)
    return _listed(value)


def _listed(value: Any) -> str:
    """Lists and what they hold, without what is empty."""
    if isinstance(value, list):
        return "; ".join(_listed(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{k} {_listed(v)}" for k, v in value.items() if v not in (None, "", []))
    return str(value)
