"""Manual pages as Markdown: the few requests of roff that those in docs/man use, and no other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_FONTS = {"B": "**", "I": "*"}
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")
_FONT = re.compile(r"\\f([BIR])")
_REFERENCE = re.compile(r"\*\*(penstock(?:-[a-z]+)?)\*\*\(([13])\)")


def markdown(roff: str) -> str:
    """The page; references to other pages are links. A request that is not known is an error."""
    return "\n".join(_Page(iter(roff.splitlines())).lines()) + "\n"


def plain(text: str) -> str:
    """Text without fonts, as it stands in examples."""
    return _characters(_FONT.sub("", text))


def styled(text: str) -> str:
    """A line of running text. Every font that is begun ends with the line at the latest."""
    out, font = "", ""
    for i, part in enumerate(_FONT.split(text)):
        if i % 2:
            out += font
            font = _FONTS.get(part, "")
            out += font
        else:
            out += _SPECIAL.sub(r"\\\1", _characters(part))
    return _REFERENCE.sub(r"[\1(\2)](\1.\2.md)", out + font)


def _characters(text: str) -> str:
    text = text.replace(r"\&", "").replace(r"\-", "-").replace(r"\ ", " ")
    return text.replace(r"\e", "\\")


def _alternating(fonts: str, arguments: str) -> str:
    """``.BI bold "italic"``: the arguments without a space between, in two fonts by turns."""
    words = shlex.split(arguments.replace("\\", "\\\\"))
    return "".join(rf"\f{fonts[i % 2]}{word}\fR" for i, word in enumerate(words))


class _Page:
    """Reads a page line by line."""

    def __init__(self, source: Iterator[str]) -> None:
        self._source = source
        self._as_is = False  # between .nf and .fi
        self._indent = ""  # of what a .TP explains

    def lines(self) -> Iterator[str]:
        for line in self._source:
            request, _, rest = line.partition(" ")
            if line.startswith("."):
                yield from self._request(request, rest)
            else:
                yield self._text(line)

    def _text(self, line: str) -> str:
        return "    " + plain(line) if self._as_is else self._indent + styled(line)

    def _request(self, request: str, rest: str) -> Iterator[str]:
        if request in (".B", ".BI", ".BR"):
            fonts = "BB" if request == ".B" else request[1:]
            yield self._text(_alternating(fonts, rest if request != ".B" else shlex.quote(rest)))
        elif request == ".TP":
            yield from self._term()
        elif request in (".RS", ".RE"):
            pass
        else:
            self._indent = ""
            yield from self._block(request, rest)

    def _term(self) -> Iterator[str]:
        """A term and what is said of it: an entry of a definition list."""
        self._indent = ""
        line = next(self._source)
        if line.startswith("."):
            yield from ("", *self._request(*line.split(" ", 1)))
        else:
            yield from ("", styled(line))
        yield ":   " + styled(next(self._source))
        self._indent = "    "

    def _block(self, request: str, rest: str) -> Iterator[str]:
        if request == ".TH":
            name, section = shlex.split(rest.replace("\\-", "-"))[:2]
            yield f"# {name.lower()}({section})"
        elif request in (".SH", ".SS"):
            yield from (
                "",
                f"{'##' if request == '.SH' else '###'} {styled(rest.capitalize())}",
                "",
            )
        elif request == ".PP":
            yield ""
        elif request in (".nf", ".fi"):
            self._as_is = request == ".nf"
            yield ""
        else:
            raise ValueError(f"a manual page has the request {request!r}, which is not known here")
