"""docs/messages.md: a table of messages by section, and its rows read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from provocation import ANY, Answer, Provocation

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "messages.md"

HEAD = """# Messages of the first ten minutes

What a new user can meet, and what Penstock then says. Every row was provoked:
`tests/messages/run.py --write` makes this page, and `--check` fails where it is no longer true.
`<prefix>` is where Penstock's files are, `<dir>` the working directory, `<job>` a job's number.
Only Penstock's lines are shown, each once, and those of the program (`writer:`). An exit code of
*the launcher's* is what the MPI library's launcher makes of a job that fails.
"""
COLUMNS = "| What was done | Exit code | What is said |\n|---|---|---|\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def row(asked: Provocation, answer: Answer) -> str:
    done = asked.shown or f"`{asked.command}`"
    code = str(answer.code) if asked.code not in (None, ANY) else "the launcher's"
    lines = dict.fromkeys(answer.text.splitlines())  # how many ranks get to say it is chance
    said = "<br>".join(cell(line) for line in lines) or "*(nothing)*"
    return f"| {done.replace('|', chr(92) + '|')} | {code} | {said} |"


def render(asked: Sequence[Provocation], rows: dict[str, str]) -> str:
    text = HEAD
    for section in dict.fromkeys(one.section for one in asked):
        text += f"\n## {section}\n\n{COLUMNS}"
        names = [one.name for one in asked if one.section == section]
        text += "".join(f"{rows[name]}\n" for name in names if name in rows)
    return text


def read_rows(text: str) -> dict[str, str]:
    """By what was done. The first row of a table is its head, the second the rule."""
    rows = {}
    for line in text.splitlines():
        if not line.startswith("| ") or line.startswith("| What was done"):
            continue
        done = line.removeprefix("| ").split(" | ")[0]
        name = done.replace("\\|", "|")
        bare = (
            name[1:-1]
            if name.startswith("`") and name.count("`") == 2 and name.endswith("`")
            else name
        )
        rows[bare] = line
    return rows
