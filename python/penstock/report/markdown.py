"""A report as Markdown for a pull request: the verdict, the tables, the warnings, the commands.

No figure is in it: a pull request shows pictures only from a server. ``--format png`` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.plain import plain
from penstock.report.model import Command, Drawn, Report, Section, Table
from penstock.report.page import SURE

# What means something in Markdown, in the HTML that it may hold, or notifies a person.
_SPECIAL = re.compile(r"[\\`*|<>&@#]|~~|!(?=\[)|\](?=[\[(:])|_(?!\w)|(?<!\w)_|://|(?<=[Ww]{3})\.")
_NO_WIDTH = "&#8203;"  # a space that nobody sees
_FEW_COMMANDS = 6
_MOST_ROWS = 60  # of a figure's numbers; more are a picture's business


def markdown(report: Report) -> str:
    """The text."""
    lines = [f"## {text(report.verdict.headline)}", "", f"**{SURE[report.verdict.sure]}.**"]
    lines += [text(d) for d in report.verdict.details]
    lines += ["", text(report.subtitle), ""]
    if report.cautions:
        lines += ["### Warnings", ""]
        for c in report.cautions:
            remedy = f" ({text(c.remedy)})" if c.remedy else ""
            lines.append(f"- {'**Grave:** ' if c.grave else ''}{text(c.text)}{remedy}")
        lines.append("")
    for section in report.sections:
        lines += _section(section)
    lines += ["### Commands to repeat it", "", *_commands(report.commands)]
    return "\n".join(lines).rstrip() + "\n"


def text(value: str) -> str:
    """A stranger's text as itself: no markup, no mention, no link, on one line."""
    return _SPECIAL.sub(_entities, " ".join(plain(value).split()))


def _entities(found: re.Match[str]) -> str:
    """As entities; these are resolved before GitHub looks for ``@bob``, ``#12`` and ``www.x``.

    So these are parted, too.
    """
    if found[0] == ".":
        return f"{_NO_WIDTH}."
    named = "".join(f"&#{ord(c)};" for c in found[0])
    return named + _NO_WIDTH if found[0] in "@#" else named


def _section(section: Section) -> Iterator[str]:
    tables = [p.numbers if isinstance(p, Drawn) else p for p in section.parts]
    short = [t for t in tables if len(t.rows) <= _MOST_ROWS]
    yield from (f"### {text(section.title)}", "")
    for line in section.text:
        yield from (text(line), "")
    for part in section.parts:
        yield from _part(part)
    if len(short) < len(tables):
        yield from (
            f"{len(tables) - len(short)} tables of more than {_MOST_ROWS} rows are left out: they "
            "are in the HTML report.",
            "",
        )


def _part(part: Drawn | Table) -> Iterator[str]:
    table = part.numbers if isinstance(part, Drawn) else part
    if len(table.rows) > _MOST_ROWS:
        return
    title = part.figure.title if isinstance(part, Drawn) else part.title
    if title:
        yield from (f"**{text(title)}**", "")
    if isinstance(part, Drawn) and part.figure.caption:
        yield from (text(part.figure.caption), "")
    yield f"| {' | '.join(text(h) or ' ' for h in table.headings)} |"
    yield f"|{'---|' * len(table.headings)}"
    for row in table.rows:
        yield f"| {' | '.join(text(cell) or ' ' for cell in row)} |"
    yield ""


def _commands(commands: tuple[Command, ...]) -> Iterator[str]:
    for c in commands[:_FEW_COMMANDS]:
        yield from (f"{text(c.what)}:", "", *_fenced(c.line), "")
    if len(commands) > _FEW_COMMANDS:
        yield f"{len(commands) - _FEW_COMMANDS} more are in the HTML report and in the results."


def _fenced(line: str) -> tuple[str, str, str]:
    """A fence longer than any run of backticks within, which cannot end it; always one line."""
    one = " ".join(plain(line).splitlines())
    longest = max((len(run) for run in re.findall("`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh", one, fence
