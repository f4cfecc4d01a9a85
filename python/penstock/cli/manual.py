"""The manual pages, made from the commands themselves: ``python -m penstock.cli.manual docs/man``.

A test compares the committed pages with what this makes. The page of penstock-exec, a C program, is
written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import typer

from penstock.cli import app

_EXIT = (
    "The exit code and signals are the program's. 2: an option or value is wrong. "
    "126: it may not be executed. 127: the launcher or the program was not found."
)


def pages() -> dict[str, str]:
    """File name to text of every page that the commands make."""
    group: Any = typer.main.get_command(app)
    commands: dict[str, Any] = group.commands
    made = {"penstock.1": _page("penstock", group, "COMMAND [ARGUMENTS]", _commands(commands))}
    for name, command in commands.items():
        made[f"penstock-{name}.1"] = _page(f"penstock {name}", command, _arguments(command), [])
    return made


def write(directory: Path) -> None:
    """Write every page into a directory."""
    for name, text in pages().items():
        (directory / name).write_text(text, encoding="utf-8")


def _page(title: str, command: Any, arguments: str, more: list[str]) -> str:
    name = title.replace(" ", "-")
    summary, description, examples = _help(command)
    lines = [
        f'.TH {_escape(name.upper())} 1 "" "Penstock" "Penstock manual"',
        ".SH NAME",
        f"{_escape(name)} \\- {_escape(summary[0].lower() + summary[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_escape(title)}",
        f"[OPTIONS] {_escape(arguments)}",
    ]
    if description:
        lines += [".SH DESCRIPTION", *_paragraphs(description)]
    lines += [*more, ".SH OPTIONS", *_options(command)]
    if examples:
        lines += [".SH EXAMPLES", *_examples(examples)]
    if name == "penstock-run":
        lines += [".SH EXIT STATUS", _escape(_EXIT)]
    others = [n for n in ("penstock", "penstock-exec") if n != name]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{_escape(n)}\\fR(1)" for n in others)]
    return "\n".join(lines) + "\n"


def _help(command: Any) -> tuple[str, list[str], list[str]]:
    """Summary, paragraphs and examples of a command's help text."""
    text = re.sub(r"[ \t]+", " ", command.help or "")
    paragraphs = [" ".join(p.split()) for p in text.split("\n\n") if p.strip()]
    at = paragraphs.index("Examples:") if "Examples:" in paragraphs else len(paragraphs)
    return paragraphs[0], paragraphs[1:at], paragraphs[at + 1 :]


def _paragraphs(paragraphs: list[str]) -> list[str]:
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [".PP", _escape(paragraph)]
    return lines[1:]


def _examples(examples: list[str]) -> list[str]:
    lines: list[str] = []
    for example in examples:
        lines += [".PP", ".nf", ".RS", _escape(example), ".RE", ".fi"]
    return lines


def _commands(commands: dict[str, Any]) -> list[str]:
    lines = [".SH COMMANDS"]
    for name, command in commands.items():
        lines += [".TP", f"\\fBpenstock\\-{_escape(name)}\\fR(1)", _escape(_help(command)[0])]
    return lines


def _arguments(command: Any) -> str:
    words = [
        (parameter.metavar or parameter.name.upper(), parameter.required)
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]
    return " ".join(word if required else f"[{word}]" for word, required in words)


def _options(command: Any) -> list[str]:
    lines: list[str] = []
    for parameter in command.params:
        if parameter.param_type_name == "option":
            value = "" if parameter.is_flag else f" \\fI{_escape(_value(parameter))}\\fR"
            names = ", ".join(f"\\fB{_escape(name)}\\fR" for name in parameter.opts)
            lines += [".TP", names + value, _escape(parameter.help or "")]
    return [*lines, ".TP", "\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "Show the options."]


def _value(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _escape(text: str) -> str:
    """Text as roff reads it: backslashes and hyphens are themselves, no line is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


if __name__ == "__main__":
    write(Path(sys.argv[1]))
