"""Samples and results of made-up runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from made_samples import header, sample
from penstock.bench.sample import Provenance, Sample
from penstock.bench.store import Results
from penstock.reproduce.evidence import Evidence

Rates = Mapping[tuple[str, str], Sequence[float]]


def samples(rates: Rates, **more: Any) -> list[Sample]:
    """Of each (cell, variant) its i-th rate in block i."""
    return [
        sample(variant, block, rate, cell=cell, **more)
        for (cell, variant), own in rates.items()
        for block, rate in enumerate(own, start=1)
    ]


def evidence(rates: Rates, file_system: str = "ext4") -> Evidence:
    """What a session with these rates would have brought."""
    where = Provenance(id="p", file_system={"type": file_system})
    return Evidence(tuple(rates), tuple(samples(rates)), (where,))


def results(
    rates: Rates, name: str, parameters: Mapping[tuple[str, str], Mapping[str, Any]] | None = None
) -> Results:
    """A results file of these rates."""
    planned = [
        {"cell": c, "variant": v, "parameters": {"parameters": (parameters or {}).get((c, v), {})}}
        for c, v in rates
    ]
    first = header(name=name, plan={"rate": "application", "measurements": planned})
    where = Provenance(id="p", file_system={"type": "ext4"})
    return Results(headers=[first], provenances={"p": where}, samples=samples(rates))
