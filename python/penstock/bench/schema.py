"""The JSON schema of a results file's records, made from their models.

python -m penstock.bench.schema > docs/reference/bench-results.schema.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from penstock.bench.sample import RECORD, SCHEMA


def schema() -> dict[str, Any]:
    """The schema of one line of ``samples.jsonl``."""
    made = RECORD.json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Penstock bench results: a line of samples.jsonl ({SCHEMA})",
        "description": "One record per line, the first of them a header. Bytes, seconds and bytes "
        "per second throughout. Members may be added within a schema; one that changes its "
        "meaning or goes away raises its number.",
        **made,
    }


def main() -> None:
    """Print it."""
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")


if __name__ == "__main__":
    main()
