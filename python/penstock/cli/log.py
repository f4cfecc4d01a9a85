"""``penstock log``: a job's log for people."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
