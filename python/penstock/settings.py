"""A resolved configuration as values: for ``--dump-config``, its JSON and ``penstock config``."""

from __future__ import annotations

import tomllib
from typing import Any

from penstock import _core

SCHEMA_VERSION = 1


def as_json(config: _core.Config) -> dict[str, Any]:
    """Every setting with its value and source; what is open has the value None."""
    return {
        "schema_version": SCHEMA_VERSION,
        "version": _core.VERSION,
        "settings": [
            {"key": s.key, "value": _value(s.value), "source": s.source, "layer": s.layer}
            for s in config.settings()
        ],
        "leave_alone": [{"pattern": p.glob, "source": p.source} for p in config.leave_alone],
        "files": [
            {
                "pattern": rule.patterns,
                "settings": {s.key: s.value for s in rule.settings},
                "source": rule.source,
            }
            for rule in config.files
        ],
        "left_alone": config.left_alone or None,
        "notices": config.notices,
    }


def _value(spelt: str) -> Any:
    return tomllib.loads(f"value = {spelt}")["value"] if spelt else None
