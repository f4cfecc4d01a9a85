"""Whether a rank died of a signal that nobody had sent it, by what launchers and libraries say."""

from __future__ import annotations

import re

# SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV; not SIGKILL, by which tests and launchers end ranks.
SAID = re.compile(
    r"signal (?:4|6|7|8|11)\b|Signal: |Segmentation fault|core dumped|\bAborted\b"
    r"|BUS ERROR|[Bb]us error|EXIT CODE: 13(?:[2-6]|[89])\b"
)


def crash_problems(said: str) -> list[str]:
    """The lines that say so."""
    return [f"a rank crashed: {line.strip()}" for line in said.splitlines() if SAID.search(line)]
