"""The raw samples of a run, small enough to be committed, and without this machine's paths.

What is left out of a sample: time series, single calls, its command (the plan in the header
has it), its parameters, and the readings of the machine: what these alone tell of disturbances is
kept as events. Build directories, the scratch directory and the checkout become words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.bench import noise
from penstock.bench.noise import Finding
from penstock.bench.sample import Event, Header, Provenance, Sample, as_line
from penstock.bench.store import load

_KEPT = ("schema", "program", "version", "mpi", "workers", "ranks", "bytes", "application")
_AFTER = ("actual", "phases", "verified", "notes", "error")


def compact(source: Path, target: Path, words: Mapping[str, str]) -> int:
    """Write the compact form of a results file.

    Parameters
    ----------
    source : Path
        ``samples.jsonl`` or its directory.
    target : Path
        What is written; it can be read as any results file.
    words : mapping
        Paths and what to call them instead, the longest first.

    Returns
    -------
    int
        How many samples there are.
    """
    results = load(source)
    records: list[Header | Provenance | Sample | Event] = [
        *results.headers,
        *results.provenances.values(),
        *results.samples,
        *results.events,
    ]
    lines = [
        _said(_small(record.model_dump(mode="json", by_alias=True)), words) for record in records
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    seen = noise.find(load(target).samples)
    lost = [f for f in noise.find(results.samples) if f not in seen]
    with target.open("a", encoding="utf-8") as file:
        file.writelines(as_line(_event(f, results.headers[0].created)) for f in lost)
    return len(results.samples)


def _event(found: Finding, at: str) -> Event:
    where = " ".join(x for x in (found.cell, found.variant) if x)
    return Event(at=at, what="noise", text=f"{found.name} {where}: {found.evidence}")


def _small(record: dict[str, Any]) -> dict[str, Any]:
    if record["record"] == "provenance":
        return {**record, "host": ""}
    if record["record"] != "sample":
        return record
    result = record["result"]
    if result is not None:
        result = {k: _rounded(result.get(k)) for k in (*_KEPT, *_AFTER) if k in result}
    machine = dict.fromkeys(("machine_before", "machine_after"))
    return {**record, **machine, "command": [], "result": result}


def _rounded(value: Any) -> Any:
    """A rate does not have seventeen digits."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items() if k != "why"}
    return value


def _said(record: dict[str, Any], words: Mapping[str, str]) -> str:
    line = json.dumps(record, separators=(",", ":"))
    for path in sorted(words, key=len, reverse=True):
        line = line.replace(path, words[path])
    return line
