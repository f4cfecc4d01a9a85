"""What commands that render share: JSON to stdout, and a console for people."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console


def print_json(value: Any) -> None:
    """Machine output: complete, and alone on stdout."""
    typer.echo(json.dumps(value, indent=2))


def unwrapped(command: Callable[..., Any] | None) -> str:
    """A command's docstring as help: a paragraph is one line, which the terminal's width breaks."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(p if p.startswith("    ") else " ".join(p.split()) for p in paragraphs)


def console() -> Console:
    """For people. Without a terminal nothing is cut off to fit a width that nobody has."""
    made = Console()
    return made if made.is_terminal else Console(width=160)
