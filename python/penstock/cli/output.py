"""What commands that render share: JSON to stdout, and a console for people."""

from __future__ import annotations

import codecs
import inspect
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from penstock import whole
from penstock.errors import ArgumentError, WriteError
from penstock.plain import plain

_WHITE = re.compile(r"[\n\r\t]")


def print_json(value: Any) -> None:
    """Machine output: complete, and alone on stdout."""
    typer.echo(json.dumps(value, indent=2))


def require_one_on_stdout(draw: Path | None, *, as_json: bool) -> None:
    """Raise ArgumentError where a picture and JSON would follow each other on stdout."""
    if as_json and str(draw) == "-":
        raise ArgumentError(
            "--draw - and --json would both print to stdout: give --draw FILE.svg, or one of them"
        )


def write_stdout(data: bytes, remedy: str) -> None:
    """What a command makes, to stdout; ``remedy`` ends the message where that fails.

    Raises
    ------
    WriteError
        If that fails, unless its reader has left, which is no failure.
    """
    try:
        typer.echo(data, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        why = f"stdout cannot be written: {error.strerror}; {remedy}"
        raise WriteError(error.errno, why) from error


def write_picture(path: Path, svg: str) -> None:
    """A picture into a file, or to stdout for ``-``."""
    if str(path) == "-":
        write_stdout(svg.encode(), "give --draw FILE.svg")
        return
    whole.write(path, svg.encode(), "give another --draw")
    typer.echo(f"penstock: drew {path}", err=True)


def shown(text: str) -> str:
    """Text of strangers for a line of a terminal: nothing in it is markup, or moves the cursor."""
    return escape(_WHITE.sub("\ufffd", plain(text)))


def print_whatever_comes() -> None:
    """A character that stdout cannot hold is no reason to end."""
    codecs.register_error("penstock", _as_it_can)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="penstock")


def _as_it_can(error: UnicodeError) -> tuple[str | bytes, int]:
    """A name that is not UTF-8 as its bytes; else, by its number, what the encoding lacks."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


def unwrapped(command: Callable[..., Any] | None) -> str:
    """A command's docstring as help: a paragraph is one line, which the terminal's width breaks."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(p if p.startswith("    ") else " ".join(p.split()) for p in paragraphs)


def console() -> Console:
    """For people. Without a terminal nothing is cut off to fit a width that nobody has."""
    made = Console(emoji=False)  # a name may have :100: in it
    return made if made.is_terminal else Console(emoji=False, width=160)
