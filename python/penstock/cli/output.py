"""What commands that render share: JSON to stdout, and a console for people."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from penstock.errors import WriteError


def print_json(value: Any) -> None:
    """Machine output: complete, and alone on stdout."""
    typer.echo(json.dumps(value, indent=2))


def write_picture(path: Path, svg: str) -> None:
    """A picture into a file, or to stdout for ``-``."""
    if str(path) == "-":
        typer.echo(svg, nl=False)
        return
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise WriteError(error.errno, f"{path} cannot be written: {error.strerror}") from error
    typer.echo(f"penstock: drew {path}", err=True)


def unwrapped(command: Callable[..., Any] | None) -> str:
    """A command's docstring as help: a paragraph is one line, which the terminal's width breaks."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(p if p.startswith("    ") else " ".join(p.split()) for p in paragraphs)


def console() -> Console:
    """For people. Without a terminal nothing is cut off to fit a width that nobody has."""
    made = Console()
    return made if made.is_terminal else Console(width=160)
