"""The committed schema is that of the records, and real results are of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema

from penstock.bench.schema import schema
from penstock.bench.session import Measurement, Session

COMMITTED = Path(__file__).resolve().parents[3] / "docs" / "reference" / "bench-results.schema.json"


def test_the_committed_schema_is_current() -> None:
    assert json.loads(COMMITTED.read_text()) == schema(), (
        f"python -m penstock.bench.schema > {COMMITTED.name}"
    )


def test_every_line_of_a_session_is_of_the_schema(
    measurement: Callable[..., Measurement], session: Callable[..., Session], tmp_path: Path
) -> None:
    session([measurement("c", "good"), measurement("c", "bad", "--exit", "1", "--silent")]).run()
    for line in (tmp_path / "results" / "samples.jsonl").read_text().splitlines():
        jsonschema.validate(json.loads(line), schema())
