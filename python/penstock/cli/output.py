"""What commands that render share: JSON to stdout, and a console for people."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console


def print_json(value: Any) -> None:
    """Machine output: complete, and alone on stdout."""
    typer.echo(json.dumps(value, indent=2))


def console() -> Console:
    """For people. Without a terminal nothing is cut off to fit a width that nobody has."""
    made = Console()
    return made if made.is_terminal else Console(width=160)
