"""Samples made for tests, as a session would have taken them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from penstock.bench.sample import Header, Provenance, Sample, as_line

BEGIN = datetime(2025, 11, 21, 6, 0, tzinfo=UTC)
MIB = 2**20
GIB = 2**30


def result(
    rate: float, *, bytes_: int = 64 * MIB, actual: float | None = 5e8, wrong: int = 0, **more: Any
) -> dict[str, Any]:
    """What a measuring program prints."""
    line: dict[str, Any] = {
        "schema": "penstock.measure/1",
        "program": "penstock-measure",
        "version": "0.1.0",
        "parameters": {"end": "sync", "op": "write", "verify": "all"},
        "workers": 2,
        "ranks": 2,
        "bytes": bytes_,
        "application": {"seconds": bytes_ / rate, "bytes_per_s": rate},
        "verified": {"bytes": bytes_, "wrong_bytes": wrong, "first_wrong": None},
        "error": None,
    }
    if actual is not None:
        line["actual"] = {"seconds": bytes_ / actual, "bytes_per_s": actual, "source": "cachestat"}
    return line | more


def sample(
    variant: str = "x", block: int = 1, rate: float = 1e9, *, cell: str = "c", **more: Any
) -> Sample:
    """One sample; ``minute`` says when it was begun."""
    minute = more.pop("minute", block)
    values: dict[str, Any] = {
        "cell": cell,
        "variant": variant,
        "block": block,
        "place": 0,
        "started": (BEGIN + timedelta(minutes=minute)).isoformat(),
        "wall_s": 1.0,
        "command": ["true"],
        "provenance": "p",
        "result": result(rate),
    }
    return Sample.model_validate(values | more)


def reading(at_s: float, **more: Any) -> dict[str, Any]:
    """What the machine said at a moment."""
    values = {
        "at_s": at_s,
        "cpu_total_s": 2 * at_s,
        "cpu_busy_s": 0.0,
        "cpu_steal_s": 0.0,
        "own_cpu_s": 0.0,
        "dirty_bytes": 0,
        "writeback_bytes": 0,
        "memory_available_bytes": 8 * GIB,
    }
    return values | more


def session(rates: Mapping[str, Sequence[float]], *, cell: str = "c", **more: Any) -> list[Sample]:
    """A block of each variant's i-th rate, variants in turn."""
    return [
        sample(variant, block, rate, cell=cell, minute=block + place / 100, **more)
        for place, (variant, own) in enumerate(rates.items())
        for block, rate in enumerate(own, start=1)
    ]


def header(**more: Any) -> Header:
    """The first line of a results file."""
    values: dict[str, Any] = {
        "penstock": "0.1.0",
        "created": BEGIN.isoformat(),
        "name": "made",
        "seed": 7,
        "plan": {"rate": "application", "stopping": {}},
    }
    return Header(**values | more)


def write(path: Path, samples: Sequence[Sample], **provenance: Any) -> Path:
    """A results file of samples."""
    where = {"id": "p", "host": "here", "kernel": "6.1", "memory_bytes": 16 * GIB} | provenance
    records = [header(), Provenance(**where), *samples]
    path.write_text("".join(as_line(r) for r in records))
    return path
