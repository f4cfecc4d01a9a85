"""Which page of the site shows which file of the checkout, and links between them.

Links are written for whoever reads the files where they lie. On the site the README is the start
page, docs/ is its root, and any other file that a page points to has a page below source/. A
directory is its README.md, which is made up where there is none.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs/"
_OWN = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LANGUAGES = {".toml": "toml", ".py": "python", ".c": "c", ".f90": "fortran", ".sh": "bash"}
_FENCE = re.compile(r"^ *(```|~~~)")
# Inline code, which is not looked into, or a target without a scheme.
_LINK = re.compile(r"(`+[^`]+?`+)|(\]\()(?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?(\))")


def place_of(path: str) -> str:
    """Where the site has a file of the checkout."""
    if path in _OWN:
        return _OWN[path]
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return f"source/{path}" if path.endswith(".md") else f"source/{path}.md"


def on_site(markdown: str, path: str) -> str:
    """A page's text with its links as the site needs them; `path` is its file in the checkout."""
    here = posixpath.dirname(place_of(path)) or "."
    return _each_link(markdown, lambda link: posixpath.relpath(place_of(_target(path, link)), here))


def front_pages() -> dict[str, str]:
    """By path, the text of the pages that lie beside docs/."""
    return {path: (ROOT / path).read_text() for path in _OWN}


def made_up(pages: Iterable[str]) -> dict[str, str]:
    """By path, the text of everything else without a page that pages point to, and these to."""
    made: dict[str, str] = {}
    waiting = [path for page in pages for path in _without_page(page, (ROOT / page).read_text())]
    while waiting:
        path = waiting.pop()
        if path not in made:
            made[path] = _shown(path)
            waiting += _without_page(path, made[path])
    return made


def _without_page(page: str, markdown: str) -> list[str]:
    """What a text points to that is there, but neither in docs/ nor a page beside it."""
    found: list[str] = []

    def seen(link: str) -> str:
        found.append(_target(page, link))
        return link

    _each_link(markdown, seen)
    return [f for f in found if f not in _OWN and _is_there(f) and not _is_in_docs(f)]


def _is_there(path: str) -> bool:
    file = ROOT / path
    return file.exists() or (file.name == "README.md" and file.parent.is_dir())


def _is_in_docs(path: str) -> bool:
    return path.startswith(DOCS) and (ROOT / path).exists()


def _target(page: str, link: str) -> str:
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return f"{path}/README.md" if (ROOT / path).is_dir() else path


def _each_link(markdown: str, moved: Callable[[str], str]) -> str:
    """The text with every relative target exchanged; code blocks stay as they are."""

    def exchanged(match: re.Match[str]) -> str:
        code, begin, link, anchor, end = match.groups()
        return code or f"{begin}{moved(link)}{anchor or ''}{end}"

    return "\n".join(
        line if is_code else _LINK.sub(exchanged, line) for line, is_code in with_code(markdown)
    )


def with_code(markdown: str) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it belongs to a fenced block."""
    fence = ""
    for line in markdown.split("\n"):
        match = _FENCE.match(line)
        yield line, bool(fence or match)
        if match and not fence:
            fence = match[1]
        elif match and match[1] == fence:
            fence = ""


# ---- pages for what is none ----


def _shown(path: str) -> str:
    """Markdown as it is, a directory as its files, anything else as code."""
    if posixpath.basename(path) == "README.md":
        return _directory(posixpath.dirname(path))
    if path.endswith(".md"):
        return (ROOT / path).read_text()
    text = (ROOT / path).read_text().rstrip("\n")
    return f"# {path}\n\n~~~~{_LANGUAGES.get(Path(path).suffix, 'text')}\n{text}\n~~~~\n"


def _directory(path: str) -> str:
    """Its README, and a line for each of its files."""
    files = sorted(f for f in (ROOT / path).iterdir() if f.is_file() and f.name[0] != ".")
    readme = ROOT / path / "README.md"
    head = readme.read_text() if readme in files else f"# {Path(path).name.capitalize()}\n"
    return head + "\n" + "".join(f"- {_line(f)}\n" for f in files if f != readme)


def _line(file: Path) -> str:
    return f"[{title(file) if file.suffix == '.md' else f'`{file.name}`'}]({file.name})"


def title(page: Path) -> str:
    """The heading of a page."""
    return page.read_text().split("\n", 1)[0].removeprefix("# ")
